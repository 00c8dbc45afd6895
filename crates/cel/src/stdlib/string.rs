//! Strings: substrings and regular expressions.

use crate::decls::{Context, OverloadRow, Sig};
use crate::value::{EvalError, Traits, Value};
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
    .evaluated_by(contains)
    .without_guards(),
    OverloadRow::member(
        "endsWith",
        "ends_with_string",
        &[String, String],
        Bool,
        SOURCE,
    )
    .evaluated_by(ends_with)
    .without_guards(),
    OverloadRow::member(
        "startsWith",
        "starts_with_string",
        &[String, String],
        Bool,
        SOURCE,
    )
    .evaluated_by(starts_with)
    .without_guards(),
    OverloadRow::global("matches", "matches", &[String, String], Bool, SOURCE)
        .evaluated_as_singleton(matches, Traits::MATCHER),
    OverloadRow::member("matches", "matches_string", &[String, String], Bool, SOURCE)
        .evaluated_as_singleton(matches, Traits::MATCHER),
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

/// Source: cel-go `common/types/string.go`, `String.Match`.
fn matches(_: &Context, args: &[Value]) -> Result<Value, EvalError> {
    let (text, pattern) = two_texts(args)?;
    let program = regexp::compiled(pattern).map_err(|error| EvalError::new(error.to_string()))?;
    Ok(program.is_match(text).into())
}
