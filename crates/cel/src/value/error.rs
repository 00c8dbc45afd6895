//! Evaluation errors.

use std::fmt;
use std::sync::Arc;

use super::{Exceeded, Value};
use crate::types::Type;

/// Effect of an error on the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The error is a value of the language. The error propagates from operand to operator, and `||`, `&&` and `?:`
    /// may absorb it.
    Value,
    /// The evaluation ends immediately because it exceeds the cost limit or was interrupted.
    Cancelled,
    /// The evaluation ends immediately because it exceeds a limit of this implementation. Upstream's result
    /// is unknown.
    Limit(Exceeded),
    /// The evaluation ends immediately because upstream panics and recovers outside the evaluation.
    Internal,
}

/// An evaluation error with upstream's message.
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
    /// The id of the innermost step that failed, if known.
    origin: Option<u32>,
}

/// Maximum length of a message in bytes. Upstream has no limit and quotes values of any length.
pub(super) const MAX_MESSAGE: usize = 256 << 10;

/// Suffix of a truncated message.
const CUT: &str = "...";

/// Creates the error for exceeding a limit of this implementation.
impl From<Exceeded> for EvalError {
    fn from(limit: Exceeded) -> Self {
        Self::with_kind(ErrorKind::Limit(limit), limit.to_string())
    }
}

/// Errors are equal if they have the same effect and message, regardless of their origin.
impl PartialEq for EvalError {
    fn eq(&self, other: &Self) -> bool {
        (self.kind(), self.message()) == (other.kind(), other.message())
    }
}

impl Eq for EvalError {}

impl EvalError {
    /// Creates an error with a static message.
    #[must_use]
    pub const fn fixed(message: &'static str) -> Self {
        Self(Repr::Static(message))
    }

    /// Creates an error that is a value, with the given message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::with_kind(ErrorKind::Value, message.into())
    }

    /// Creates an error that ends the evaluation, with the given message.
    #[must_use]
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::with_kind(ErrorKind::Cancelled, message.into())
    }

    /// Creates the error for a panic of upstream, with the message of the panic.
    ///
    /// Source: cel-go `cel/program.go`, `prog.Eval` (`internal error: %v`).
    #[must_use]
    pub fn internal(panic: &str) -> Self {
        Self::with_kind(ErrorKind::Internal, format!("internal error: {panic}"))
    }

    fn with_kind(kind: ErrorKind, mut message: String) -> Self {
        if message.len() > MAX_MESSAGE {
            cut(&mut message, MAX_MESSAGE);
        }
        Self(Repr::Owned(Arc::new(Content {
            kind,
            message: message.into_boxed_str(),
            origin: None,
        })))
    }

    /// Creates the error `no such overload`, without a signature.
    ///
    /// Source: cel-go `common/types/err.go`, `MaybeNoSuchOverloadErr`.
    #[must_use]
    pub const fn no_such_overload() -> Self {
        Self::fixed("no such overload")
    }

    /// Creates an error such as `no such overload: f(int, string)`.
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

    /// Creates an error such as `type conversion error from 'a' to 'b'`.
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

    /// Creates an error such as `no such key: k`.
    #[must_use]
    pub fn no_such_key(key: impl fmt::Display) -> Self {
        Self::new(format!("no such key: {key}"))
    }

    /// Returns the memory owned exclusively by this error, in bytes. Zero if the error is shared.
    pub(super) fn own_size(&self) -> usize {
        match &self.0 {
            Repr::Static(_) => 0,
            Repr::Owned(owned) => {
                let n_bytes = size_of::<Content>().saturating_add(owned.message.len());
                super::footprint::size_of_new(owned, n_bytes)
            }
        }
    }

    /// Returns the message, which is upstream's.
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

    /// Sets the origin to the step `id`, unless the error already has an origin.
    #[must_use]
    pub(crate) fn at_step(mut self, id: u32) -> Self {
        self.set_step(id);
        self
    }

    /// Sets the origin in place, like [`EvalError::at_step`].
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

    /// Returns the index of the failed expression in its AST: a selection, an index, a call, or an invalid
    /// operand of an operator or macro. `None` if it is unknown.
    #[must_use]
    pub fn origin(&self) -> Option<usize> {
        match &self.0 {
            Repr::Static(_) => None,
            Repr::Owned(owned) => owned.origin.and_then(|id| usize::try_from(id).ok()),
        }
    }

    /// Returns true if the evaluation must end, regardless of enclosing operators.
    #[must_use]
    pub fn ends_evaluation(&self) -> bool {
        self.kind() != ErrorKind::Value
    }
}

/// Truncates a string to at most `max` bytes and appends a marker.
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
