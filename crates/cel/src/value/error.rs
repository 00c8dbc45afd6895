//! Errors of an evaluation.

use std::fmt;
use std::sync::Arc;

use super::Value;
use crate::types::Type;

/// What an error does to the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A value of the language: it is passed on from operand to operator, and `||`, `&&` and `?:` may
    /// absorb it.
    Value,
    /// The evaluation ends at once: the cost limit is exceeded, or it was interrupted.
    Cancelled,
    /// The evaluation ends at once: upstream panics, and recovers outside of the evaluation.
    Internal,
}

/// An error of an evaluation: its text is upstream's.
///
/// Source: cel-go `common/types/err.go`, `Err`.
#[derive(Clone, PartialEq, Eq)]
pub struct EvalError(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    Static(&'static str),
    Owned(Arc<(ErrorKind, Box<str>)>),
}

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

    fn of_kind(kind: ErrorKind, message: String) -> Self {
        Self(Repr::Owned(Arc::new((kind, message.into_boxed_str()))))
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

    /// The text, upstream's.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.0 {
            Repr::Static(message) => message,
            Repr::Owned(owned) => &owned.1,
        }
    }

    /// What the error does to the evaluation.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &self.0 {
            Repr::Static(_) => ErrorKind::Value,
            Repr::Owned(owned) => owned.0,
        }
    }

    /// Whether the evaluation must end, whatever operators are around the place of the error.
    #[must_use]
    pub fn ends_evaluation(&self) -> bool {
        self.kind() != ErrorKind::Value
    }
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
