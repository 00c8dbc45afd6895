//! Reading the arguments of a call.
//!
//! The evaluator holds arguments against the signature before it calls, so that what is not found here is
//! only what upstream, too, finds out late.

use cel::value::{EvalError, Opaque, Value};

/// What each implementation gives.
pub(super) type Result = std::result::Result<Value, EvalError>;

/// The argument at `n` as the type `T`.
pub(super) fn opaque<T: Opaque>(args: &[Value], n: usize) -> std::result::Result<&T, EvalError> {
    args.get(n)
        .and_then(Value::downcast)
        .ok_or(EvalError::no_such_overload())
}

/// The argument at `n` as a text.
pub(super) fn text(args: &[Value], n: usize) -> std::result::Result<&str, EvalError> {
    args.get(n)
        .and_then(Value::as_str)
        .ok_or(EvalError::no_such_overload())
}

/// A list of strings.
pub(super) fn strings<T: Into<Value>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::list(texts.into_iter().map(Into::into).collect::<Vec<Value>>())
}

/// The error of `error`'s text.
pub(super) fn failed(error: impl std::fmt::Display) -> EvalError {
    EvalError::new(error.to_string())
}
