//! Timestamps as dates and times of day, and timestamps and durations as texts, as Go writes them.
//!
//! Source: Go `time/time.go` (`Date`, `Clock`, `YearDay`, `Weekday`, `Duration.String`), `time/format.go`
//! (`Time.Format`, `Time.String`).

use std::fmt::Write as _;

use super::Timestamp;

const SECONDS_PER_DAY: i64 = 86_400;

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The year; zone offsets may lead to the years 0 and 10000.
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
    /// The date and time of the seconds since 1970, in the zone that is `offset_seconds` ahead of UTC.
    #[must_use]
    pub fn new(seconds: i64, offset_seconds: i64) -> Self {
        let local = seconds.saturating_add(offset_seconds);
        let (days, time) = (
            local.div_euclid(SECONDS_PER_DAY),
            local.rem_euclid(SECONDS_PER_DAY),
        );
        let (year, month, day) = date_of(days);
        Self {
            year,
            month,
            day,
            day_of_year: days - days_since_1970(year) + 1,
            // The first of 1970 was a Thursday.
            day_of_week: (days + 4).rem_euclid(7),
            hour: time / 3600,
            minute: time / 60 % 60,
            second: time % 60,
        }
    }
}

/// The year, month and day that are `days` after the first of 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years, which begin on the first of March of a leap year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The days from the first of 1970 to the first of `year`.
fn days_since_1970(year: i64) -> i64 {
    let before = year - 1;
    before * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_162
}

/// `:30.5`: the fraction without its trailing zeros.
fn fraction(nanos: u32) -> String {
    if nanos == 0 {
        return String::new();
    }
    format!(".{nanos:09}").trim_end_matches('0').to_owned()
}

fn offset(seconds: i32, separator: &str) -> String {
    // As in Go, seconds of an offset are not shown.
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

/// A timestamp in RFC 3339, with as many digits of the second as needed, in its own zone.
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

/// A timestamp as Go prints it: `2006-01-02 15:04:05.9 -0700 MST`.
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

/// A duration as Go prints it: `1h0m0.5s`.
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
            // Writing to a string cannot fail.
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

/// A duration as the conversion to a string writes it: its seconds, as a double, without an exponent.
///
/// Source: cel-go `common/types/duration.go`, `Duration.ConvertToType`; Go `Duration.Seconds`.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "as Go, the seconds are computed as a double"
)]
pub fn format_seconds(nanos: i64) -> String {
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}
