//! Accessors for the arguments of a CEL function call.
//!
//! The evaluator checks arguments against the overload's signature before the call. The errors returned here are those
//! that upstream also detects only during the call.

use cel::value::{EvalError, Opaque, Value};

/// The result of evaluating a function call.
pub(super) type Result = std::result::Result<Value, EvalError>;

/// Returns the argument at index `n` as the type `T`.
pub(super) fn opaque<T: Opaque>(args: &[Value], n: usize) -> std::result::Result<&T, EvalError> {
    args.get(n)
        .and_then(Value::downcast)
        .ok_or(EvalError::no_such_overload())
}

/// Returns the argument at index `n` as a string.
pub(super) fn text(args: &[Value], n: usize) -> std::result::Result<&str, EvalError> {
    args.get(n)
        .and_then(Value::as_str)
        .ok_or(EvalError::no_such_overload())
}

/// Creates a CEL list of strings.
pub(super) fn strings<T: Into<Value>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::list(texts.into_iter().map(Into::into).collect::<Vec<Value>>())
}

/// Creates an evaluation error with the message of `error`.
pub(super) fn failed(error: impl std::fmt::Display) -> EvalError {
    EvalError::new(error.to_string())
}
