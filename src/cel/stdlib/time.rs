//! Parts of timestamps and durations.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Duration, Int, String, Timestamp};

const SOURCE: &str = "cel-go common/stdlib/standard.go, stdFunctions";

/// The `get` functions.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member("getFullYear", "timestamp_to_year", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getFullYear",
        "timestamp_to_year_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getMonth", "timestamp_to_month", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getMonth",
        "timestamp_to_month_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getDayOfYear", "timestamp_to_day_of_year", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getDayOfYear",
        "timestamp_to_day_of_year_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getDayOfMonth", "timestamp_to_day_of_month", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getDayOfMonth",
        "timestamp_to_day_of_month_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getDate", "timestamp_to_day_of_month_1_based", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getDate",
        "timestamp_to_day_of_month_1_based_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getDayOfWeek", "timestamp_to_day_of_week", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getDayOfWeek",
        "timestamp_to_day_of_week_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getHours", "timestamp_to_hours", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getHours",
        "timestamp_to_hours_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getHours", "duration_to_hours", &[Duration], Int, SOURCE),
    OverloadRow::member("getMinutes", "timestamp_to_minutes", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getMinutes",
        "timestamp_to_minutes_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getMinutes", "duration_to_minutes", &[Duration], Int, SOURCE),
    OverloadRow::member("getSeconds", "timestamp_to_seconds", &[Timestamp], Int, SOURCE),
    OverloadRow::member("getSeconds", "timestamp_to_seconds_tz", &[Timestamp, String], Int, SOURCE),
    OverloadRow::member("getSeconds", "duration_to_seconds", &[Duration], Int, SOURCE),
    OverloadRow::member("getMilliseconds", "timestamp_to_milliseconds", &[Timestamp], Int, SOURCE),
    OverloadRow::member(
        "getMilliseconds",
        "timestamp_to_milliseconds_with_tz",
        &[Timestamp, String],
        Int,
        SOURCE,
    ),
    OverloadRow::member("getMilliseconds", "duration_to_milliseconds", &[Duration], Int, SOURCE),
];
