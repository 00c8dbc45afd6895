//! Errors of an evaluation.

use std::fmt;
use std::sync::Arc;

use super::{Exceeded, Value};
use crate::types::Type;

/// Effects of an error on the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A value of the language: it is passed on from operand to operator, and `||`, `&&` and `?:` may
    /// absorb it.
    Value,
    /// The evaluation ends at once: the cost limit is exceeded, or it was interrupted.
    Cancelled,
    /// The evaluation ends at once: it exceeds a limit of this implementation, and the result upstream is not known.
    Limit(Exceeded),
    /// The evaluation ends at once: upstream panics, and recovers outside of the evaluation.
    Internal,
}

/// An error of an evaluation: its text is upstream's.
///
/// Source: cel-go `common/types/err.go`, `Err`.
#[derive(Clone)]
pub struct EvalError(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    Owned(Arc<Content>),
}

#[derive(Clone)]
struct Content {
    kind: ErrorKind,
    message: Box<str>,
    /// The index of the innermost step that failed, where it is known.
    origin: Option<u32>,
}

/// The longest text of an error, in bytes. Upstream has no limit, and quotes values of any length.
pub(super) const MAX_MESSAGE: usize = 256 << 10;

/// The end of a text that was cut.
const CUT: &str = "...";

/// Ends an evaluation that exceeds a limit of this implementation.
impl From<Exceeded> for EvalError {
    fn from(limit: Exceeded) -> Self {
        Self::of_kind(ErrorKind::Limit(limit), limit.to_string())
    }
}

/// Errors are equal that have the same effect and text, wherever they came up.
impl PartialEq for EvalError {
    fn eq(&self, other: &Self) -> bool {
        (self.kind(), self.message()) == (other.kind(), other.message())
    }
}

impl Eq for EvalError {}

impl EvalError {
    /// An error with a text that is always the same.
    #[must_use]
    pub const fn fixed(message: &'static str) -> Self {
        Self(Repr::Static(message))
    }

    /// An error with the text `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Value, message.into())
    }

    /// An error that ends the evaluation, with the text `message`.
    #[must_use]
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::of_kind(ErrorKind::Cancelled, message.into())
    }

    /// The error that is made of a panic of upstream's, with the text of the panic.
    ///
    /// Source: cel-go `cel/program.go`, `prog.Eval` (`internal error: %v`).
    #[must_use]
    pub fn internal(panic: &str) -> Self {
        Self::of_kind(ErrorKind::Internal, format!("internal error: {panic}"))
    }

    fn of_kind(kind: ErrorKind, mut message: String) -> Self {
        if message.len() > MAX_MESSAGE {
            cut(&mut message, MAX_MESSAGE);
        }
        Self(Repr::Owned(Arc::new(Content {
            kind,
            message: message.into_boxed_str(),
            origin: None,
        })))
    }

    /// `no such overload`, alone.
    ///
    /// Source: cel-go `common/types/err.go`, `MaybeNoSuchOverloadErr`.
    #[must_use]
    pub const fn no_such_overload() -> Self {
        Self::fixed("no such overload")
    }

    /// `no such overload: f(int, string)`.
    ///
    /// Source: cel-go `common/decls/decls.go`, `MaybeNoSuchOverload`.
    #[must_use]
    pub fn no_such_overload_of(function: &str, args: &[Value]) -> Self {
        let types: Vec<String> = args.iter().map(|arg| arg.type_().type_name()).collect();
        Self::new(format!(
            "no such overload: {function}({})",
            types.join(", ")
        ))
    }

    /// `type conversion error from 'a' to 'b'`.
    ///
    /// Source: cel-go `common/types`, `ConvertToType` of each type.
    #[must_use]
    pub fn conversion(from: &Type, to: &Type) -> Self {
        Self::new(format!(
            "type conversion error from '{}' to '{}'",
            from.declared_string(),
            to.declared_string()
        ))
    }

    /// `no such key: k`.
    #[must_use]
    pub fn no_such_key(key: impl fmt::Display) -> Self {
        Self::new(format!("no such key: {key}"))
    }

    /// Returns the bytes that only this error uses; zero if it is shared.
    pub(super) fn own_size(&self) -> usize {
        match &self.0 {
            Repr::Static(_) => 0,
            Repr::Owned(owned) => {
                let n_bytes = size_of::<Content>().saturating_add(owned.message.len());
                super::footprint::size_of_new(owned, n_bytes)
            }
        }
    }

    /// The text, upstream's.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.0 {
            Repr::Static(message) => message,
            Repr::Owned(owned) => &owned.message,
        }
    }

    /// Returns the effect of the error on the evaluation.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Repr::Static(_) => ErrorKind::Value,
            Repr::Owned(owned) => owned.kind,
        }
    }

    /// The error with the step `id` for its origin, unless it has one.
    #[must_use]
    pub(crate) fn at_step(mut self, id: u32) -> Self {
        self.set_step(id);
        self
    }

    /// As [`EvalError::at_step`], in place.
    pub(crate) fn set_step(&mut self, id: u32) {
        if let Repr::Static(message) = &self.0 {
            self.0 = Repr::Owned(Arc::new(Content {
                kind: ErrorKind::Value,
                message: (*message).into(),
                origin: None,
            }));
        }
        if let Repr::Owned(content) = &mut self.0
            && content.origin.is_none()
        {
            Arc::make_mut(content).origin = Some(id);
        }
    }

    /// The index of the expression that failed, in its tree: a selection, an index or a call, or what an operator or
    /// a macro cannot take. `None` where that is not known.
    #[must_use]
    pub fn origin(&self) -> Option<usize> {
        match &self.0 {
            Repr::Static(_) => None,
            Repr::Owned(owned) => owned.origin.and_then(|id| usize::try_from(id).ok()),
        }
    }

    /// Reports whether the evaluation must end, whatever operators surround the place of the error.
    #[must_use]
    pub fn ends_evaluation(&self) -> bool {
        self.kind() != ErrorKind::Value
    }
}

/// Shortens `text` to at most `max` bytes and marks it as cut.
pub(super) fn cut(text: &mut String, max: usize) {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.truncate(end);
    text.push_str(CUT);
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EvalError({:?}, {:?})", self.kind(), self.message())
    }
}

impl std::error::Error for EvalError {}
