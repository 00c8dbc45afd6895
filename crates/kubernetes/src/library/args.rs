//! Accessors for the arguments of a call.
//!
//! The evaluator checks arguments against the signature before the call. The errors here are those that upstream, too,
//! detects during the call.

use cel::value::{EvalError, Opaque, Value};

/// The result of an implementation.
pub(super) type Result = std::result::Result<Value, EvalError>;

/// Returns the argument at `n` as the type `T`.
pub(super) fn opaque<T: Opaque>(args: &[Value], n: usize) -> std::result::Result<&T, EvalError> {
    args.get(n)
        .and_then(Value::downcast)
        .ok_or(EvalError::no_such_overload())
}

/// Returns the argument at `n` as a string.
pub(super) fn text(args: &[Value], n: usize) -> std::result::Result<&str, EvalError> {
    args.get(n)
        .and_then(Value::as_str)
        .ok_or(EvalError::no_such_overload())
}

/// Creates a list of strings.
pub(super) fn strings<T: Into<Value>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::list(texts.into_iter().map(Into::into).collect::<Vec<Value>>())
}

/// Creates an evaluation error with the text of `error`.
pub(super) fn failed(error: impl std::fmt::Display) -> EvalError {
    EvalError::new(error.to_string())
}
