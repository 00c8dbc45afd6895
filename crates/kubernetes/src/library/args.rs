//! Accessors for the arguments of a CEL function call.
//!
//! The evaluator checks argument types before the call. If an argument still has the wrong type, these functions return
//! upstream's error.

use cel::value::{EvalError, Opaque, Value};

pub(super) type Result = std::result::Result<Value, EvalError>;

pub(super) fn opaque<T: Opaque>(args: &[Value], n: usize) -> std::result::Result<&T, EvalError> {
    args.get(n)
        .and_then(Value::downcast)
        .ok_or(EvalError::no_such_overload())
}

pub(super) fn text(args: &[Value], n: usize) -> std::result::Result<&str, EvalError> {
    args.get(n)
        .and_then(Value::as_str)
        .ok_or(EvalError::no_such_overload())
}

pub(super) fn strings<T: Into<Value>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::list(texts.into_iter().map(Into::into).collect::<Vec<Value>>())
}

/// Converts `error` to an evaluation error with the same message.
pub(super) fn failed(error: impl std::fmt::Display) -> EvalError {
    EvalError::new(error.to_string())
}
