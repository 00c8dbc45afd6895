//! Parsing of durations and timestamps, as in Go.
//!
//! Source: cel-go `common/types/string.go` (`String.ConvertToType`), `common/types/int.go`
//! (`Int.ConvertToType`), `common/types/timestamp.go`; Go `time/format.go` (`ParseDuration`, `Parse`).

use jiff::civil::Date;

/// The first second of the year 1, as a Unix timestamp.
///
/// Source: cel-go `common/types/timestamp.go`, `minUnixTime`.
pub const MIN_UNIX_SECONDS: i64 = -62_135_596_800;

/// The last second of the year 9999, as a Unix timestamp.
///
/// Source: cel-go `common/types/timestamp.go`, `maxUnixTime`.
pub const MAX_UNIX_SECONDS: i64 = 253_402_300_799;

/// A parsed timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampText {
    /// Seconds since 1970-01-01 UTC, from [`MIN_UNIX_SECONDS`] to [`MAX_UNIX_SECONDS`].
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
    /// Offset of the zone in the string, in seconds ahead of UTC.
    pub offset_seconds: i32,
}

/// The reason why a string is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// The string has the wrong format, or the date or time does not exist.
    #[error("not an RFC 3339 timestamp")]
    Malformed,
    /// The time is before the year 1 or after the year 9999.
    #[error("the timestamp is not within the years 1 to 9999")]
    OutOfRange,
}

/// Returns true if a Unix timestamp is within the range of timestamps.
#[must_use]
pub fn is_unix_seconds(seconds: i64) -> bool {
    (MIN_UNIX_SECONDS..=MAX_UNIX_SECONDS).contains(&seconds)
}

/// The unparsed remainder of the string.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn eat(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_while(&mut self, accept: impl Fn(&u8) -> bool) -> &'a [u8] {
        let n = self
            .0
            .iter()
            .position(|byte| !accept(byte))
            .unwrap_or(self.0.len());
        self.take(n).unwrap_or_default()
    }

    fn take_digits(&mut self) -> &'a [u8] {
        self.take_while(u8::is_ascii_digit)
    }

    /// Parses a number of exactly `n` digits.
    fn number(&mut self, n: usize) -> Option<i64> {
        let digits = self.take(n)?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| value_of(digits))
    }
}

/// Returns the value of a short sequence of digits.
fn value_of(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
}

/// Parses a duration such as `1h30m` into nanoseconds. `None` if it is invalid.
///
/// Source: Go `time/format.go`, `ParseDuration`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i64> {
    let mut bytes = Bytes(text.as_bytes());
    let negative = bytes.eat(b'-').is_some();
    if !negative {
        // A plus sign has no effect.
        let _ = bytes.eat(b'+');
    }
    if bytes.0 == b"0" {
        return Some(0);
    }
    if bytes.0.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !bytes.0.is_empty() {
        // As in Go, 2^63 + 2^63 wraps around to zero.
        total = total.wrapping_add(parse_duration_part(&mut bytes)?);
        if total > LIMIT {
            return None;
        }
    }
    match i64::try_from(total) {
        Ok(nanos) if negative => Some(-nanos),
        Ok(nanos) => Some(nanos),
        Err(_) => negative.then_some(i64::MIN),
    }
}

/// Magnitude of the minimum duration, in nanoseconds.
const LIMIT: u64 = 1 << 63;

/// Parses a number with a unit into nanoseconds.
fn parse_duration_part(bytes: &mut Bytes<'_>) -> Option<u64> {
    let whole = bytes.take_digits();
    let mut value = 0_u64;
    for digit in whole {
        value = value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))?;
        if value > LIMIT {
            return None;
        }
    }
    let fraction = bytes.eat(b'.').map_or(&[][..], |()| bytes.take_digits());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit = nanos_of_unit(bytes.take_while(|byte| *byte != b'.' && !byte.is_ascii_digit()))?;
    if value > LIMIT / unit {
        return None;
    }
    value = value * unit + fraction_of(fraction, unit);
    (value <= LIMIT).then_some(value)
}

fn nanos_of_unit(unit: &[u8]) -> Option<u64> {
    Some(match std::str::from_utf8(unit).ok()? {
        "ns" => 1,
        // The micro sign and the Greek letter mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Returns the fraction of `unit` given by the digits after the decimal point. Excess digits are ignored.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go computes in float64 and truncates; the result is less than the unit"
)]
fn fraction_of(digits: &[u8], unit: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for digit in digits {
        let next = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(digit - b'0')));
        match next {
            Some(next) if value <= (LIMIT - 1) / 10 && next <= LIMIT => value = next,
            _ => break,
        }
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Parses an RFC 3339 timestamp with Go's rules.
///
/// Go also accepts hours of one digit, a comma before the fraction, and zones up to `+24:60`. It does not
/// accept lower-case letters or leap seconds.
///
/// # Errors
///
/// Returns an error if the format is invalid, or if the time is not within the years 1 to 9999.
///
/// Source: Go `time/format.go`, `parse` with the layout `RFC3339`.
pub fn parse_timestamp(text: &str) -> Result<TimestampText, TimestampError> {
    let timestamp = parse_rfc3339(text).ok_or(TimestampError::Malformed)?;
    if is_unix_seconds(timestamp.seconds) {
        Ok(timestamp)
    } else {
        Err(TimestampError::OutOfRange)
    }
}

fn parse_rfc3339(text: &str) -> Option<TimestampText> {
    let mut bytes = Bytes(text.as_bytes());
    let within = |value: i64, max: i64| (value <= max).then_some(value);
    let year = bytes.number(4)?;
    bytes.eat(b'-')?;
    let month = bytes.number(2)?;
    bytes.eat(b'-')?;
    let date = date(year, month, bytes.number(2)?)?;
    bytes.eat(b'T')?;
    let n_hour_digits = if bytes.0.get(1).is_some_and(u8::is_ascii_digit) {
        2
    } else {
        1
    };
    let hour = within(bytes.number(n_hour_digits)?, 23)?;
    bytes.eat(b':')?;
    let minute = within(bytes.number(2)?, 59)?;
    bytes.eat(b':')?;
    let second = within(bytes.number(2)?, 59)?;
    let nanos = parse_nanos(&mut bytes);
    let offset = parse_zone(&mut bytes)?;
    if !bytes.0.is_empty() {
        return None;
    }
    let time = hour * 3600 + minute * 60 + second;
    let seconds = EPOCH.duration_until(date).as_secs() + time - i64::from(offset);
    Some(TimestampText {
        seconds,
        nanos,
        offset_seconds: offset,
    })
}

/// Parses a fraction of a second into nanoseconds. Returns 0 if there is none.
fn parse_nanos(bytes: &mut Bytes<'_>) -> u32 {
    let (Some(b'.' | b','), Some(b'0'..=b'9')) = (bytes.0.first(), bytes.0.get(1)) else {
        return 0;
    };
    let _ = bytes.take(1);
    let digits = bytes
        .take_digits()
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'));
    digits
        .take(9)
        .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'))
}

/// Parses a time zone and returns its offset in seconds ahead of UTC.
fn parse_zone(bytes: &mut Bytes<'_>) -> Option<i32> {
    if bytes.eat(b'Z').is_some() {
        return Some(0);
    }
    let sign = match bytes.take(1)? {
        b"+" => 1,
        b"-" => -1,
        _ => return None,
    };
    let hours = bytes.number(2)?;
    bytes.eat(b':')?;
    let minutes = bytes.number(2)?;
    if hours > 24 || minutes > 60 {
        return None;
    }
    i32::try_from(sign * (hours * 3600 + minutes * 60)).ok()
}

const EPOCH: Date = jiff::civil::date(1970, 1, 1);

/// Returns the date. `None` if it does not exist, or if the year has more than four digits.
fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Date::new(i16::try_from(year).ok()?, month, day).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_duration(text: &str, nanos: Option<i64>) {
        assert_eq!(parse_duration(text), nanos, "{text}");
    }

    #[test]
    fn durations_are_parsed_in_go_syntax() {
        check_duration("0", Some(0));
        check_duration("-0", Some(0));
        check_duration("1h30m.5s", Some(5_400_500_000_000));
        check_duration("-1.5\u{b5}s", Some(-1_500));
        check_duration("1.\u{3bc}s", Some(1_000));
        check_duration("0.33333333333333333333h", Some(1_200_000_000_000));
        check_duration("9223372036854775807ns", Some(i64::MAX));
        check_duration("-9223372036854775808ns", Some(i64::MIN));
        check_duration("9223372036854775808ns", None);
        check_duration("2562047h47m16.854775808s", None);
        check_duration("1d", None);
        check_duration("1", None);
        check_duration("", None);
        check_duration("+", None);
        check_duration(".s", None);
        check_duration("1 s", None);
        check_duration("--1s", None);
        check_duration("+-1s", None);
    }

    #[track_caller]
    fn check_timestamp(text: &str, seconds: i64, nanos: u32, offset_seconds: i32) {
        let expected = TimestampText {
            seconds,
            nanos,
            offset_seconds,
        };
        assert_eq!(parse_timestamp(text), Ok(expected), "{text}");
    }

    #[track_caller]
    fn check_no_timestamp(text: &str, error: TimestampError) {
        assert_eq!(parse_timestamp(text), Err(error), "{text}");
    }

    #[test]
    fn timestamps_are_parsed_in_go_syntax() {
        check_timestamp("1970-01-01T00:00:00Z", 0, 0, 0);
        check_timestamp(
            "2024-02-29T12:30:00.5+02:00",
            1_709_202_600,
            500_000_000,
            7_200,
        );
        check_timestamp(
            "2024-01-01T00:00:00,123456789123Z",
            1_704_067_200,
            123_456_789,
            0,
        );
        check_timestamp("2024-01-01T1:00:00Z", 1_704_070_800, 0, 0);
        check_timestamp("2000-02-29T00:00:00Z", 951_782_400, 0, 0);
        check_timestamp("1899-12-31T00:00:00Z", -2_209_075_200, 0, 0);
        check_timestamp("1970-01-01T00:00:00-24:60", 90_000, 0, -90_000);
        check_timestamp("0001-01-01T00:00:00Z", MIN_UNIX_SECONDS, 0, 0);
        check_timestamp("0000-12-31T23:00:00-01:00", MIN_UNIX_SECONDS, 0, -3_600);
        check_timestamp("9999-12-31T23:59:59.9Z", MAX_UNIX_SECONDS, 900_000_000, 0);
    }

    #[test]
    fn malformed_or_out_of_range_timestamps_are_rejected() {
        let malformed = |text| check_no_timestamp(text, TimestampError::Malformed);
        malformed("2024-01-01t00:00:00Z");
        malformed("2024-01-01T00:00:00z");
        malformed("2024-01-01 00:00:00Z");
        malformed("2024-01-01T00:00:00");
        malformed("2024-01-01T00:00:00.Z");
        malformed("2024-01-01T00:00:60Z");
        malformed("2024-01-01T24:00:00Z");
        malformed("2024-01-01T00:00:00+25:00");
        malformed("2024-01-01T00:00:00+0100");
        malformed("2024-01-01T00:00:00Z ");
        malformed("2023-02-29T00:00:00Z");
        malformed("1900-02-29T00:00:00Z");
        malformed("2024-04-31T00:00:00Z");
        malformed("2024-13-01T00:00:00Z");
        malformed("2024-00-01T00:00:00Z");
        malformed("2024-01-00T00:00:00Z");
        malformed("024-01-01T00:00:00Z");
        check_no_timestamp("0000-01-01T00:00:00Z", TimestampError::OutOfRange);
        check_no_timestamp("9999-12-31T23:59:59-00:01", TimestampError::OutOfRange);
    }
    const DURATIONS: &[(&str, Option<i64>)] = &[
        ("1h", Some(3_600_000_000_000)),
        ("+1h", Some(3_600_000_000_000)),
        ("-1h", Some(-3_600_000_000_000)),
        ("0", Some(0)),
        ("+0", Some(0)),
        ("-0", Some(0)),
        ("", None),
        ("+", None),
        ("-", None),
        ("1", None),
        ("1.", None),
        ("1.h", Some(3_600_000_000_000)),
        (".1h", Some(360_000_000_000)),
        (".h", None),
        ("1.5h", Some(5_400_000_000_000)),
        ("1h1", None),
        ("1h 1m", None),
        ("1d", None),
        ("1\u{b5}s", Some(1_000)),
        ("1\u{3bc}s", Some(1_000)),
        ("1us", Some(1_000)),
        ("1ns", Some(1)),
        ("1ms", Some(1_000_000)),
        ("1.0000000000000000000000000001s", Some(1_000_000_000)),
        ("0.0000000001s", Some(0)),
        ("0.9999999999ns", Some(0)),
        ("9223372036854775807ns", Some(9_223_372_036_854_775_807)),
        ("9223372036854775808ns", None),
        ("-9223372036854775808ns", Some(-9_223_372_036_854_775_808)),
        ("-9223372036854775809ns", None),
        ("9223372036854775.807us", Some(9_223_372_036_854_775_807)),
        ("9223372036854775.808us", None),
        ("9223372036854ms775807ns", Some(9_223_372_036_854_775_807)),
        ("18446744073709551616ns", None),
        ("99999999999999999999h", None),
        ("2562047h47m16.854775807s", Some(9_223_372_036_854_775_807)),
        ("2562047h47m16.854775808s", None),
        (
            "-2562047h47m16.854775808s",
            Some(-9_223_372_036_854_775_808),
        ),
        ("1.9223372036854775808h", Some(6_920_413_933_267)),
        ("0.333333333333333333333h", Some(1_200_000_000_000)),
        ("1h1h", Some(7_200_000_000_000)),
        ("1e3s", None),
        ("1..5s", None),
        ("1hh", None),
        ("0.1.2s", None),
        ("100000000000000000000.5s", None),
        ("9223372036s9223372036s", None),
        ("9223372036854775808ns1ns", None),
        ("9223372036854775808ns9223372036854775808ns", Some(0)),
        ("3000000h", None),
    ];

    #[test]
    fn parsed_durations_match_go() {
        for (text, nanos) in DURATIONS {
            check_duration(text, *nanos);
        }
    }

    /// The seconds, nanoseconds and offset that Go's `time.Parse` returns.
    type Parsed = Option<(i64, u32, i32)>;

    const TIMESTAMPS: &[(&str, Parsed)] = &[
        ("2024-02-29T12:34:56Z", Some((1_709_210_096, 0, 0))),
        (
            "2024-02-29T12:34:56.5Z",
            Some((1_709_210_096, 500_000_000, 0)),
        ),
        (
            "2024-02-29T12:34:56,5Z",
            Some((1_709_210_096, 500_000_000, 0)),
        ),
        (
            "2024-02-29T12:34:56.123456789123Z",
            Some((1_709_210_096, 123_456_789, 0)),
        ),
        ("2024-02-29T12:34:56+01:00", Some((1_709_206_496, 0, 3_600))),
        (
            "2024-02-29T12:34:56-23:59",
            Some((1_709_296_436, 0, -86_340)),
        ),
        (
            "2024-02-29T12:34:56+24:00",
            Some((1_709_123_696, 0, 86_400)),
        ),
        (
            "2024-02-29T12:34:56+23:60",
            Some((1_709_123_696, 0, 86_400)),
        ),
        ("2024-02-29T12:34:56+0100", None),
        ("2024-02-29T12:34:56", None),
        ("2024-02-29 12:34:56Z", None),
        ("2024-02-29t12:34:56z", None),
        ("2023-02-29T00:00:00Z", None),
        ("2024-02-30T00:00:00Z", None),
        ("2024-04-31T00:00:00Z", None),
        ("2024-13-01T00:00:00Z", None),
        ("2024-00-01T00:00:00Z", None),
        ("2024-01-00T00:00:00Z", None),
        ("2024-01-32T00:00:00Z", None),
        ("2024-01-01T24:00:00Z", None),
        ("2024-01-01T23:60:00Z", None),
        ("2024-01-01T23:59:60Z", None),
        ("2024-01-01T1:02:03Z", Some((1_704_070_923, 0, 0))),
        ("2024-1-01T01:02:03Z", None),
        ("24-01-01T01:02:03Z", None),
        ("2024-01-01T01:02:03.Z", None),
        ("2024-01-01T01:02:03.Zx", None),
        ("2024-01-01T01:02Z", None),
        ("0001-01-01T00:00:00Z", Some((-62_135_596_800, 0, 0))),
        (
            "9999-12-31T23:59:59.999999999Z",
            Some((253_402_300_799, 999_999_999, 0)),
        ),
        ("1900-02-29T00:00:00Z", None),
        ("2000-02-29T00:00:00Z", Some((951_782_400, 0, 0))),
        ("2024-01-01T01:02:03Z ", None),
        ("2024-01-01T01:02:03+1:00", None),
        ("2024-01-01T01:02:03+01:0", None),
        ("2024-01-01T01:02:03+00:00", Some((1_704_070_923, 0, 0))),
        ("2024-01-01T01:02:03-00:00", Some((1_704_070_923, 0, 0))),
        ("", None),
    ];

    #[test]
    fn parsed_timestamps_match_go() {
        for (text, expected) in TIMESTAMPS {
            match *expected {
                Some((seconds, nanos, offset)) => check_timestamp(text, seconds, nanos, offset),
                None => check_no_timestamp(text, TimestampError::Malformed),
            }
        }
    }
}
