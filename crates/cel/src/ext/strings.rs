//! The strings extension, up to version 2.

pub mod format;
mod text;

use crate::decls::{Context, OverloadRow, Sig};
use crate::value::{EvalError, Value};
use Sig::{Dyn, Int, List, String};

const SOURCE: &str = "cel-go ext/strings.go, stringLib.CompileOptions";

/// What every version has.
pub static VERSION_0: &[OverloadRow] = &[
    OverloadRow::member(
        "charAt",
        "string_char_at_int",
        &[String, Int],
        String,
        SOURCE,
    )
    .evaluated_by(char_at),
    OverloadRow::member(
        "indexOf",
        "string_index_of_string",
        &[String, String],
        Int,
        SOURCE,
    )
    .evaluated_by(index_of),
    OverloadRow::member(
        "indexOf",
        "string_index_of_string_int",
        &[String, String, Int],
        Int,
        SOURCE,
    )
    .evaluated_by(index_of),
    OverloadRow::member(
        "lastIndexOf",
        "string_last_index_of_string",
        &[String, String],
        Int,
        SOURCE,
    )
    .evaluated_by(last_index_of),
    OverloadRow::member(
        "lastIndexOf",
        "string_last_index_of_string_int",
        &[String, String, Int],
        Int,
        SOURCE,
    )
    .evaluated_by(last_index_of),
    OverloadRow::member(
        "lowerAscii",
        "string_lower_ascii",
        &[String],
        String,
        SOURCE,
    )
    .evaluated_by(lower_ascii),
    OverloadRow::member(
        "replace",
        "string_replace_string_string",
        &[String, String, String],
        String,
        SOURCE,
    )
    .evaluated_by(replace),
    OverloadRow::member(
        "replace",
        "string_replace_string_string_int",
        &[String, String, String, Int],
        String,
        SOURCE,
    )
    .evaluated_by(replace),
    OverloadRow::member(
        "split",
        "string_split_string",
        &[String, String],
        List(&String),
        SOURCE,
    )
    .evaluated_by(split),
    OverloadRow::member(
        "split",
        "string_split_string_int",
        &[String, String, Int],
        List(&String),
        SOURCE,
    )
    .evaluated_by(split),
    OverloadRow::member(
        "substring",
        "string_substring_int",
        &[String, Int],
        String,
        SOURCE,
    )
    .evaluated_by(substring),
    OverloadRow::member(
        "substring",
        "string_substring_int_int",
        &[String, Int, Int],
        String,
        SOURCE,
    )
    .evaluated_by(substring),
    OverloadRow::member("trim", "string_trim", &[String], String, SOURCE).evaluated_by(trim),
    OverloadRow::member(
        "upperAscii",
        "string_upper_ascii",
        &[String],
        String,
        SOURCE,
    )
    .evaluated_by(upper_ascii),
    OverloadRow::member("join", "list_join", &[List(&String)], String, SOURCE).evaluated_by(join),
    OverloadRow::member(
        "join",
        "list_join_string",
        &[List(&String), String],
        String,
        SOURCE,
    )
    .evaluated_by(join),
];

/// What version 1 adds.
pub static VERSION_1: &[OverloadRow] = &[
    OverloadRow::member(
        "format",
        "string_format",
        &[String, List(&Dyn)],
        String,
        SOURCE,
    )
    .evaluated_by(format)
    .evaluated_in_order(),
    OverloadRow::global("strings.quote", "strings_quote", &[String], String, SOURCE)
        .evaluated_by(quote),
];

type Result<T = Value> = std::result::Result<T, EvalError>;

/// The argument at `n` as a text.
fn text_arg(args: &[Value], n: usize) -> Result<&str> {
    args.get(n)
        .and_then(Value::as_str)
        .ok_or(EvalError::no_such_overload())
}

/// The argument at `n` as an integer, if there is one.
fn int_arg(args: &[Value], n: usize) -> Option<i64> {
    args.get(n).and_then(Value::as_int)
}

fn strings<'a>(parts: impl Iterator<Item = &'a str>) -> Value {
    Value::list(parts.map(Value::from).collect::<Vec<_>>())
}

fn char_at(_: &Context, args: &[Value]) -> Result {
    let index = int_arg(args, 1).ok_or(EvalError::no_such_overload())?;
    text::char_at(text_arg(args, 0)?, index).map(Value::from)
}

fn index_of(_: &Context, args: &[Value]) -> Result {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    text::index_of(text, part, int_arg(args, 2).unwrap_or(0)).map(Value::Int)
}

fn last_index_of(_: &Context, args: &[Value]) -> Result {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    text::last_index_of(text, part, int_arg(args, 2)).map(Value::Int)
}

fn lower_ascii(_: &Context, args: &[Value]) -> Result {
    Ok(text_arg(args, 0)?.to_ascii_lowercase().into())
}

fn upper_ascii(_: &Context, args: &[Value]) -> Result {
    Ok(text_arg(args, 0)?.to_ascii_uppercase().into())
}

fn replace(_: &Context, args: &[Value]) -> Result {
    let (text, old, new) = (text_arg(args, 0)?, text_arg(args, 1)?, text_arg(args, 2)?);
    text::replace(text, old, new, int_arg(args, 3).unwrap_or(-1)).map(Value::from)
}

fn split(_: &Context, args: &[Value]) -> Result {
    let (text, separator) = (text_arg(args, 0)?, text_arg(args, 1)?);
    let limit = int_arg(args, 2).unwrap_or(-1);
    Ok(strings(text::split(text, separator, limit).into_iter()))
}

fn substring(_: &Context, args: &[Value]) -> Result {
    let start = int_arg(args, 1).ok_or(EvalError::no_such_overload())?;
    text::substring(text_arg(args, 0)?, start, int_arg(args, 2)).map(Value::from)
}

fn trim(_: &Context, args: &[Value]) -> Result {
    Ok(text_arg(args, 0)?.trim().into())
}

fn join(_: &Context, args: &[Value]) -> Result {
    let Some(Value::List(list)) = args.first() else {
        return Err(EvalError::no_such_overload());
    };
    let separator = args.get(1).and_then(Value::as_str).unwrap_or_default();
    text::join(list, separator).map(Value::from)
}

fn quote(_: &Context, args: &[Value]) -> Result {
    Ok(text::quoted(text_arg(args, 0)?).into())
}

fn format(_: &Context, args: &[Value]) -> Result {
    let Some(Value::List(list)) = args.get(1) else {
        return Err(EvalError::no_such_overload());
    };
    format::format(text_arg(args, 0)?, list).map(Value::from)
}
