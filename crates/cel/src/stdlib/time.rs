//! Components of timestamps and durations.

use crate::cost::Costs;
use crate::decls::{OverloadRow, Sig, Source};
use crate::value::civil::Civil;
use crate::value::{EvalBudget, EvalError, Value};
use crate::zone;
use Sig::{Duration, Int, String, Timestamp};

const SOURCE: Source = Source::new("cel-go common/stdlib/standard.go, stdFunctions");

/// The `get*` functions.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "getFullYear",
        "timestamp_to_year",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(year),
    OverloadRow::member(
        "getFullYear",
        "timestamp_to_year_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(year),
    OverloadRow::member(
        "getMonth",
        "timestamp_to_month",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(month),
    OverloadRow::member(
        "getMonth",
        "timestamp_to_month_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(month),
    OverloadRow::member(
        "getDayOfYear",
        "timestamp_to_day_of_year",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(day_of_year),
    OverloadRow::member(
        "getDayOfYear",
        "timestamp_to_day_of_year_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(day_of_year),
    OverloadRow::member(
        "getDayOfMonth",
        "timestamp_to_day_of_month",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(day_of_month),
    OverloadRow::member(
        "getDayOfMonth",
        "timestamp_to_day_of_month_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(day_of_month),
    OverloadRow::member(
        "getDate",
        "timestamp_to_day_of_month_1_based",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(date),
    OverloadRow::member(
        "getDate",
        "timestamp_to_day_of_month_1_based_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(date),
    OverloadRow::member(
        "getDayOfWeek",
        "timestamp_to_day_of_week",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(day_of_week),
    OverloadRow::member(
        "getDayOfWeek",
        "timestamp_to_day_of_week_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(day_of_week),
    OverloadRow::member(
        "getHours",
        "timestamp_to_hours",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(hours),
    OverloadRow::member(
        "getHours",
        "timestamp_to_hours_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(hours),
    OverloadRow::member(
        "getHours",
        "duration_to_hours",
        &[Duration],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(duration_hours),
    OverloadRow::member(
        "getMinutes",
        "timestamp_to_minutes",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(minutes),
    OverloadRow::member(
        "getMinutes",
        "timestamp_to_minutes_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(minutes),
    OverloadRow::member(
        "getMinutes",
        "duration_to_minutes",
        &[Duration],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(duration_minutes),
    OverloadRow::member(
        "getSeconds",
        "timestamp_to_seconds",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(seconds),
    OverloadRow::member(
        "getSeconds",
        "timestamp_to_seconds_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(seconds),
    OverloadRow::member(
        "getSeconds",
        "duration_to_seconds",
        &[Duration],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(duration_seconds),
    OverloadRow::member(
        "getMilliseconds",
        "timestamp_to_milliseconds",
        &[Timestamp],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(milliseconds),
    OverloadRow::member(
        "getMilliseconds",
        "timestamp_to_milliseconds_with_tz",
        &[Timestamp, String],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(milliseconds),
    OverloadRow::member(
        "getMilliseconds",
        "duration_to_milliseconds",
        &[Duration],
        Int,
        Costs::ONE,
        SOURCE,
    )
    .evaluated_by(duration_milliseconds),
];

/// Returns a component of a timestamp, in UTC or in the time zone of the second argument.
///
/// Source: cel-go `common/stdlib/standard.go`, `inTimeZone`.
fn part_of(args: &[Value], part: fn(&Civil) -> i64) -> Result<Value, EvalError> {
    let (at, offset) = match args {
        [Value::Timestamp(at)] => (at, 0),
        [Value::Timestamp(at), Value::String(name)] => (at, zone::offset_at(name, at.seconds)?),
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(Value::Int(part(&Civil::new(at.seconds, offset))))
}

fn year(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.year)
}

fn month(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.month - 1)
}

fn day_of_year(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.day_of_year - 1)
}

fn day_of_month(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.day - 1)
}

fn date(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.day)
}

fn day_of_week(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.day_of_week)
}

fn hours(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.hour)
}

fn minutes(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.minute)
}

fn seconds(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    part_of(args, |civil| civil.second)
}

fn milliseconds(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    // The time zone must be valid, although it does not affect the result.
    part_of(args, |_| 0)?;
    match args {
        [Value::Timestamp(at), ..] => Ok(Value::Int(i64::from(at.nanos / 1_000_000))),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Returns a duration in units of `unit` nanoseconds, converted to a double and truncated toward zero. If a long
/// duration is slightly shorter than a whole number of units, the conversion rounds it up to this number.
///
/// Source: Go `time/time.go`, `Duration.Hours`, `Duration.Minutes`, `Duration.Seconds`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "Go rounds in the same way, and the result fits into an i64"
)]
fn truncated_double(args: &[Value], unit: i64) -> Result<Value, EvalError> {
    match args {
        [Value::Duration(nanos)] => {
            let rest = (nanos % unit) as f64 / unit as f64;
            Ok(Value::Int(((nanos / unit) as f64 + rest) as i64))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn duration_hours(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    truncated_double(args, 3_600_000_000_000)
}

fn duration_minutes(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    truncated_double(args, 60_000_000_000)
}

fn duration_seconds(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    truncated_double(args, 1_000_000_000)
}

fn duration_milliseconds(_: &EvalBudget, args: &[Value]) -> Result<Value, EvalError> {
    match args {
        [Value::Duration(nanos)] => Ok(Value::Int(nanos / 1_000_000)),
        _ => Err(EvalError::no_such_overload()),
    }
}
