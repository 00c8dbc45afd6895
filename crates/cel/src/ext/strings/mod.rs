//! The strings extension, up to version 2. Version 2 adds no overloads, but changes the evaluation
//! of `join`.

pub mod format;
mod text;

use crate::cost::Costs;
use crate::decls::{OverloadRow, Sig, Source};
use crate::stdlib::costs::{FORMATTED, QUOTED};
use crate::value::{EvalBudget, EvalError, Value, count_code_points};
use crate::version::CelGo;
use Sig::{Dyn, Int, List, String};

const SOURCE: Source = Source::new("cel-go ext/strings.go, stringLib.CompileOptions");

/// Maximum length of the receiver in bytes. If the receiver is longer, the cost is compared with the limit before the
/// call.
const LONG_TEXT: &[usize] = &[100_000];

/// `string.charAt(index)`.
pub const CHAR_AT: OverloadRow = OverloadRow::member(
    "charAt",
    "string_char_at_int",
    &[String, Int],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(char_at);

/// `string.indexOf(part)`.
pub const INDEX_OF: OverloadRow = OverloadRow::member(
    "indexOf",
    "string_index_of_string",
    &[String, String],
    Int,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(index_of)
.since_cel_go(CelGo::V0_22);

/// `string.indexOf(part)`, which fails if the string is empty.
pub const INDEX_OF_IN_RANGE: OverloadRow = in_range(INDEX_OF, index_of_in_range);

/// `string.indexOf(part, from)`, which fails if `from` is not an index of the string.
pub const INDEX_OF_FROM_IN_RANGE: OverloadRow = in_range(INDEX_OF_FROM, index_of_in_range);

/// `string.lastIndexOf(part)`, which fails if the string is empty.
pub const LAST_INDEX_OF_IN_RANGE: OverloadRow = OverloadRow {
    source: SOURCE,
    ..LAST_INDEX_OF
}
.evaluated_by(last_index_of_in_range)
.before_cel_go(CelGo::V0_26);

/// `string.lastIndexOf(part, from)`, which fails if `from` is not an index of the string.
pub const LAST_INDEX_OF_FROM_IN_RANGE: OverloadRow =
    in_range(LAST_INDEX_OF_FROM, last_index_of_in_range);

/// Returns `row` with the implementation `function`, for releases before cel-go 0.22.
const fn in_range(row: OverloadRow, function: fn(&EvalBudget, &[Value]) -> Result) -> OverloadRow {
    OverloadRow {
        source: SOURCE,
        ..row
    }
    .evaluated_by(function)
    .before_cel_go(CelGo::V0_22)
}

/// `string.indexOf(part, from)`.
pub const INDEX_OF_FROM: OverloadRow = OverloadRow::member(
    "indexOf",
    "string_index_of_string_int",
    &[String, String, Int],
    Int,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(index_of)
.since_cel_go(CelGo::V0_22)
.before_cel_go(CelGo::V0_29);

/// `string.indexOf(part, from)`, which checks `from` even if `part` is empty.
pub const INDEX_OF_FROM_WITHIN: OverloadRow = OverloadRow {
    source: SOURCE,
    ..INDEX_OF_FROM
}
.evaluated_by(index_of_within)
.since_cel_go(CelGo::V0_29);

/// `string.lastIndexOf(part)`.
pub const LAST_INDEX_OF: OverloadRow = OverloadRow::member(
    "lastIndexOf",
    "string_last_index_of_string",
    &[String, String],
    Int,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(last_index_of)
.since_cel_go(CelGo::V0_26);

/// `string.lastIndexOf(part, from)`.
pub const LAST_INDEX_OF_FROM: OverloadRow = OverloadRow::member(
    "lastIndexOf",
    "string_last_index_of_string_int",
    &[String, String, Int],
    Int,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(last_index_of)
.since_cel_go(CelGo::V0_22)
.before_cel_go(CelGo::V0_29);

/// `string.lastIndexOf(part, from)`, which checks `from` even if `part` is empty.
pub const LAST_INDEX_OF_FROM_WITHIN: OverloadRow = OverloadRow {
    source: SOURCE,
    ..LAST_INDEX_OF_FROM
}
.evaluated_by(last_index_of_within)
.since_cel_go(CelGo::V0_29);

/// `string.lowerAscii()`.
pub const LOWER_ASCII: OverloadRow = OverloadRow::member(
    "lowerAscii",
    "string_lower_ascii",
    &[String],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(lower_ascii);

/// `string.replace(old, new)`.
pub const REPLACE: OverloadRow = OverloadRow::member(
    "replace",
    "string_replace_string_string",
    &[String, String, String],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(replace)
.precharge_lengths(LONG_TEXT);

/// `string.replace(old, new, n)`.
pub const REPLACE_N: OverloadRow = OverloadRow::member(
    "replace",
    "string_replace_string_string_int",
    &[String, String, String, Int],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(replace)
.precharge_lengths(LONG_TEXT);

/// `string.split(separator)`.
pub const SPLIT: OverloadRow = OverloadRow::member(
    "split",
    "string_split_string",
    &[String, String],
    List(&String),
    Costs::ONE,
    SOURCE,
)
.evaluated_by(split)
.precharge_lengths(LONG_TEXT);

/// `string.split(separator, n)`.
pub const SPLIT_N: OverloadRow = OverloadRow::member(
    "split",
    "string_split_string_int",
    &[String, String, Int],
    List(&String),
    Costs::ONE,
    SOURCE,
)
.evaluated_by(split)
.precharge_lengths(LONG_TEXT);

/// `string.substring(start)`.
pub const SUBSTRING_FROM: OverloadRow = OverloadRow::member(
    "substring",
    "string_substring_int",
    &[String, Int],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(substring);

/// `string.substring(start, end)`.
pub const SUBSTRING: OverloadRow = OverloadRow::member(
    "substring",
    "string_substring_int_int",
    &[String, Int, Int],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(substring);

/// `string.trim()`.
pub const TRIM: OverloadRow =
    OverloadRow::member("trim", "string_trim", &[String], String, Costs::ONE, SOURCE)
        .evaluated_by(trim);

/// `string.upperAscii()`.
pub const UPPER_ASCII: OverloadRow = OverloadRow::member(
    "upperAscii",
    "string_upper_ascii",
    &[String],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(upper_ascii);

/// `list.join()`.
pub const JOIN: OverloadRow = OverloadRow::member(
    "join",
    "list_join",
    &[List(&String)],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(join);

/// `list.join(separator)`.
pub const JOIN_WITH: OverloadRow = OverloadRow::member(
    "join",
    "list_join_string",
    &[List(&String), String],
    String,
    Costs::ONE,
    SOURCE,
)
.evaluated_by(join);

/// `string.format(args)`, since version 1.
pub const FORMAT: OverloadRow = OverloadRow::member(
    "format",
    "string_format",
    &[String, List(&Dyn)],
    String,
    FORMATTED,
    SOURCE,
)
.evaluated_by(format)
.evaluated_in_order();

/// `strings.quote(string)`, since version 1.
pub const QUOTE: OverloadRow = OverloadRow::global(
    "strings.quote",
    "strings_quote",
    &[String],
    String,
    QUOTED,
    SOURCE,
)
.evaluated_by(quote);

type Result<T = Value> = std::result::Result<T, EvalError>;

/// Memory overhead of a short string in bytes: the counters and the header of an allocation.
const TEXT_OVERHEAD: usize = 32;

/// Memory per part while a string is split, in bytes. It consists of the list element and of the borrowed string, for
/// which a vector may reserve twice its length.
const SPLIT_PART: usize = size_of::<Value>() + 2 * size_of::<&str>();

/// Maximum length in bytes of a string that is split without first counting its parts.
const LONG_SPLIT: usize = 64 << 10;

fn text_arg(args: &[Value], n: usize) -> Result<&str> {
    args.get(n)
        .and_then(Value::as_str)
        .ok_or(EvalError::no_such_overload())
}

/// Returns the argument at `n` as an integer. `None` if it is absent or not an `int`.
fn int_arg(args: &[Value], n: usize) -> Option<i64> {
    args.get(n).and_then(Value::as_int)
}

fn strings<'a>(parts: impl Iterator<Item = &'a str>) -> Value {
    Value::list(parts.map(Value::from).collect::<Vec<_>>())
}

fn char_at(_: &EvalBudget, args: &[Value]) -> Result {
    let index = int_arg(args, 1).ok_or(EvalError::no_such_overload())?;
    text::char_at(text_arg(args, 0)?, index).map(Value::from)
}

fn index_of(_: &EvalBudget, args: &[Value]) -> Result {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    text::index_of(text, part, int_arg(args, 2).unwrap_or(0)).map(Value::Int)
}

fn last_index_of(_: &EvalBudget, args: &[Value]) -> Result {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    text::last_index_of(text, part, int_arg(args, 2)).map(Value::Int)
}

/// Source: cel-go 0.20 `ext/strings.go`, `indexOf`, `indexOfOffset`.
fn index_of_in_range(budget: &EvalBudget, args: &[Value]) -> Result {
    check_offset(args, |_| 0)?;
    index_of(budget, args)
}

/// Source: cel-go 0.20 `ext/strings.go`, `lastIndexOf`, `lastIndexOfOffset`.
fn last_index_of_in_range(budget: &EvalBudget, args: &[Value]) -> Result {
    check_offset(args, |n_chars| n_chars.saturating_sub(1))?;
    last_index_of(budget, args)
}

/// Returns an error if the offset is not an index of the string, unless the part is empty. If there is no offset
/// argument, `default` computes the offset from the length of the string.
fn check_offset(args: &[Value], default: fn(i64) -> i64) -> std::result::Result<(), EvalError> {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    let n_chars = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let offset = int_arg(args, 2).unwrap_or_else(|| default(n_chars));
    if part.is_empty() || (0..n_chars).contains(&offset) {
        Ok(())
    } else {
        Err(text::out_of_range(offset))
    }
}

/// Source: cel-go 0.29 `ext/strings.go`, `indexOfOffset`.
fn index_of_within(budget: &EvalBudget, args: &[Value]) -> Result {
    match empty_part_index(args)? {
        Some(index) => Ok(Value::Int(index)),
        None => index_of(budget, args),
    }
}

/// Source: cel-go 0.29 `ext/strings.go`, `lastIndexOfOffset`.
fn last_index_of_within(budget: &EvalBudget, args: &[Value]) -> Result {
    match empty_part_index(args)? {
        Some(index) => Ok(Value::Int(index)),
        None => last_index_of(budget, args),
    }
}

/// Returns the index at which an empty part is found: the offset, or the length of the string if the offset is greater.
/// `None` for a part that is not empty.
fn empty_part_index(args: &[Value]) -> std::result::Result<Option<i64>, EvalError> {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    let offset = int_arg(args, 2).unwrap_or(0);
    if !part.is_empty() {
        return Ok(None);
    }
    if offset < 0 {
        return Err(text::out_of_range(offset));
    }
    let n_code_points = i64::try_from(count_code_points(text)).unwrap_or(i64::MAX);
    Ok(Some(offset.min(n_code_points)))
}

fn lower_ascii(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(text_arg(args, 0)?.to_ascii_lowercase().into())
}

fn upper_ascii(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(text_arg(args, 0)?.to_ascii_uppercase().into())
}

fn replace(budget: &EvalBudget, args: &[Value]) -> Result {
    let (text, old, new) = (text_arg(args, 0)?, text_arg(args, 1)?, text_arg(args, 2)?);
    let limit = int_arg(args, 3).unwrap_or(-1);
    text::replace(text, old, new, limit, budget).map(Value::from)
}

fn split(budget: &EvalBudget, args: &[Value]) -> Result {
    let (text, separator) = (text_arg(args, 0)?, text_arg(args, 1)?);
    let limit = int_arg(args, 2).unwrap_or(-1);
    let n_parts = if separator.is_empty() {
        count_code_points(text)
    } else if text.len() > LONG_SPLIT {
        text.matches(separator).count().saturating_add(1)
    } else {
        text.len().div_ceil(separator.len()).saturating_add(1)
    };
    let n_parts = n_parts.min(usize::try_from(limit).unwrap_or(usize::MAX));
    // The size of the list does not include the strings.
    let n_bytes = n_parts
        .saturating_mul(TEXT_OVERHEAD)
        .saturating_add(text.len());
    budget.reserve(n_parts.saturating_mul(SPLIT_PART).saturating_add(n_bytes))?;
    let parts = text::split(text, separator, limit);
    let n_bytes = parts
        .len()
        .saturating_mul(TEXT_OVERHEAD)
        .saturating_add(text.len());
    budget.allocate(n_bytes)?;
    Ok(strings(parts.into_iter()))
}

fn substring(_: &EvalBudget, args: &[Value]) -> Result {
    let start = int_arg(args, 1).ok_or(EvalError::no_such_overload())?;
    text::substring(text_arg(args, 0)?, start, int_arg(args, 2)).map(Value::from)
}

fn trim(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(text_arg(args, 0)?.trim().into())
}

fn join(budget: &EvalBudget, args: &[Value]) -> Result {
    let Some(Value::List(list)) = args.first() else {
        return Err(EvalError::no_such_overload());
    };
    let separator = args.get(1).and_then(Value::as_str).unwrap_or_default();
    text::join(list, separator, budget).map(Value::from)
}

fn quote(_: &EvalBudget, args: &[Value]) -> Result {
    Ok(text::quoted(text_arg(args, 0)?).into())
}

fn format(budget: &EvalBudget, args: &[Value]) -> Result {
    let Some(Value::List(list)) = args.get(1) else {
        return Err(EvalError::no_such_overload());
    };
    format::format(text_arg(args, 0)?, list, budget).map(Value::from)
}
