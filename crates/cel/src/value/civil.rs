//! Timestamps as civil dates and times, and Go's text formats of timestamps and durations.
//!
//! Source: Go `time/time.go` (`Date`, `Clock`, `YearDay`, `Weekday`, `Duration.String`), `time/format.go`
//! (`Time.Format`, `Time.String`).

use std::fmt::Write as _;

use jiff::ToSpan;
use jiff::civil::Date;

use super::Timestamp;

const SECONDS_PER_DAY: i64 = 86_400;

/// Days in 400 years, the period of the calendar.
const DAYS_PER_CYCLE: i64 = 146_097;

const EPOCH: Date = jiff::civil::date(1970, 1, 1);

/// A civil date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year. Zone offsets may produce the years 0 and 10000.
    pub year: i64,
    /// The month, from 1.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// The day of the year, from 1.
    pub day_of_year: i64,
    /// The day of the week, from 0, which is Sunday.
    pub day_of_week: i64,
    /// The hour, from 0.
    pub hour: i64,
    /// The minute, from 0.
    pub minute: i64,
    /// The second, from 0.
    pub second: i64,
}

impl Civil {
    /// Returns the civil date and time of a Unix timestamp in seconds, in a zone `offset_seconds` ahead of
    /// UTC.
    #[must_use]
    pub fn new(seconds: i64, offset_seconds: i64) -> Self {
        let local = seconds.saturating_add(offset_seconds);
        let (days, time) = (
            local.div_euclid(SECONDS_PER_DAY),
            local.rem_euclid(SECONDS_PER_DAY),
        );
        // The calendar library ends with the year 9999, but the calendar repeats every 400 years.
        let cycles = days.div_euclid(DAYS_PER_CYCLE);
        let date = EPOCH.saturating_add(days.rem_euclid(DAYS_PER_CYCLE).days());
        Self {
            year: i64::from(date.year()) + 400 * cycles,
            month: date.month().into(),
            day: date.day().into(),
            day_of_year: date.day_of_year().into(),
            day_of_week: date.weekday().to_sunday_zero_offset().into(),
            hour: time / 3600,
            minute: time / 60 % 60,
            second: time % 60,
        }
    }
}

/// Formats the fraction of a second without trailing zeros, as in `:30.5`.
fn fraction(nanos: u32) -> String {
    if nanos == 0 {
        return String::new();
    }
    format!(".{nanos:09}").trim_end_matches('0').to_owned()
}

fn offset(seconds: i32, separator: &str) -> String {
    // Go omits the seconds of an offset.
    let minutes = seconds / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    format!("{sign}{:02}{separator}{:02}", minutes / 60, minutes % 60)
}

fn date(civil: &Civil) -> String {
    format!("{:04}-{:02}-{:02}", civil.year, civil.month, civil.day)
}

fn time_of_day(civil: &Civil, nanos: u32) -> String {
    format!(
        "{:02}:{:02}:{:02}{}",
        civil.hour,
        civil.minute,
        civil.second,
        fraction(nanos)
    )
}

/// Formats a timestamp per RFC 3339 in its own zone, with the fewest fractional digits.
///
/// Source: Go `time.RFC3339Nano`.
#[must_use]
pub fn format_rfc3339(at: Timestamp) -> String {
    let civil = Civil::new(at.seconds, at.offset_seconds.into());
    let zone = if at.offset_seconds == 0 {
        "Z".to_owned()
    } else {
        offset(at.offset_seconds, ":")
    };
    format!("{}T{}{zone}", date(&civil), time_of_day(&civil, at.nanos))
}

/// Formats a timestamp as Go prints it: `2006-01-02 15:04:05.9 -0700 MST`.
///
/// Source: Go `time/format.go`, `Time.String`.
#[must_use]
pub fn format_go_time(at: Timestamp) -> String {
    let civil = Civil::new(at.seconds, at.offset_seconds.into());
    let zone = offset(at.offset_seconds, "");
    let name = if at.offset_seconds == 0 { "UTC" } else { &zone };
    format!(
        "{} {} {zone} {name}",
        date(&civil),
        time_of_day(&civil, at.nanos)
    )
}

/// Formats a duration as Go prints it: `1h0m0.5s`.
///
/// Source: Go `time/time.go`, `Duration.String`.
#[must_use]
pub fn format_go_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    let scaled = |unit: u64, name: &str| {
        let (whole, rest) = (magnitude / unit, magnitude % unit);
        let digits = unit.ilog10() as usize;
        let decimals = if rest == 0 {
            String::new()
        } else {
            format!(".{rest:0digits$}").trim_end_matches('0').to_owned()
        };
        format!("{sign}{whole}{decimals}{name}")
    };
    match magnitude {
        0 => "0s".into(),
        1..1_000 => format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => scaled(1_000, "\u{b5}s"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "ms"),
        _ => {
            let seconds = magnitude / 1_000_000_000;
            let nanos = u32::try_from(magnitude % 1_000_000_000).unwrap_or(0);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let mut text = sign.to_owned();
            // Writing to a `String` cannot fail.
            if hours > 0 {
                let _ = write!(text, "{hours}h");
            }
            if hours > 0 || minutes > 0 {
                let _ = write!(text, "{minutes}m");
            }
            let _ = write!(text, "{}{}s", seconds % 60, fraction(nanos));
            text
        }
    }
}

/// Formats a duration like its conversion to a string: seconds as a double, without an exponent.
///
/// Source: cel-go `common/types/duration.go`, `Duration.ConvertToType`; Go `Duration.Seconds`.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "as in Go, the seconds are computed as a double"
)]
pub fn format_seconds(nanos: i64) -> String {
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares year, month, day, day of year, day of week and time with those of Go's `time.Time`.
    #[track_caller]
    fn check(seconds: i64, offset_seconds: i64, expected: [i64; 8]) {
        let civil = Civil::new(seconds, offset_seconds);
        let actual = [
            civil.year,
            civil.month,
            civil.day,
            civil.day_of_year,
            civil.day_of_week,
            civil.hour,
            civil.minute,
            civil.second,
        ];
        assert_eq!(actual, expected, "{seconds} {offset_seconds}");
    }

    #[test]
    fn calendar_fields_of_timestamp_agree_with_go() {
        check(0, 0, [1970, 1, 1, 1, 4, 0, 0, 0]);
        check(-1, 0, [1969, 12, 31, 365, 3, 23, 59, 59]);
        check(951_782_400, 0, [2000, 2, 29, 60, 2, 0, 0, 0]);
        check(1_735_603_199, 0, [2024, 12, 30, 365, 1, 23, 59, 59]);
        check(1_709_251_200, -3_600, [2024, 2, 29, 60, 4, 23, 0, 0]);
    }

    #[test]
    fn zone_offset_may_move_year_out_of_supported_range() {
        let (first, last) = (-62_135_596_800, 253_402_300_799);
        check(first, 0, [1, 1, 1, 1, 1, 0, 0, 0]);
        check(first, -60, [0, 12, 31, 366, 0, 23, 59, 0]);
        check(last, 0, [9999, 12, 31, 365, 5, 23, 59, 59]);
        check(last, 1, [10_000, 1, 1, 1, 6, 0, 0, 0]);
        check(last, 14 * 3600, [10_000, 1, 1, 1, 6, 13, 59, 59]);
    }
}
