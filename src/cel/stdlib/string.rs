//! Strings: substrings and regular expressions.

use crate::cel::decls::{Context, OverloadRow, Sig};
use crate::cel::value::{EvalError, Value};
use Sig::{Bool, String};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

/// `contains`, `endsWith`, `startsWith` and `matches`.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "contains",
        "contains_string",
        &[String, String],
        Bool,
        SOURCE,
    )
    .evaluated_by(contains),
    OverloadRow::member(
        "endsWith",
        "ends_with_string",
        &[String, String],
        Bool,
        SOURCE,
    )
    .evaluated_by(ends_with),
    OverloadRow::member(
        "startsWith",
        "starts_with_string",
        &[String, String],
        Bool,
        SOURCE,
    )
    .evaluated_by(starts_with),
    OverloadRow::global("matches", "matches", &[String, String], Bool, SOURCE),
    OverloadRow::member("matches", "matches_string", &[String, String], Bool, SOURCE),
];

/// The texts of two strings.
fn two_texts(args: &[Value]) -> Result<(&str, &str), EvalError> {
    match args {
        [Value::String(text), Value::String(part)] => Ok((text, part)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn contains(_: &Context, args: &[Value]) -> Result<Value, EvalError> {
    two_texts(args).map(|(text, part)| text.contains(part).into())
}

fn ends_with(_: &Context, args: &[Value]) -> Result<Value, EvalError> {
    two_texts(args).map(|(text, part)| text.ends_with(part).into())
}

fn starts_with(_: &Context, args: &[Value]) -> Result<Value, EvalError> {
    two_texts(args).map(|(text, part)| text.starts_with(part).into())
}
