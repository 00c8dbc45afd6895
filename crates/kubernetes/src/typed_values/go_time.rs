//! Parses dates, times and durations like Go, with Go's error messages.
//!
//! Source: Go `time/format.go`, `parse`; kube-openapi `pkg/validation/strfmt/time.go` (`ParseDateTime`),
//! `duration.go` (`ParseDuration`).

use std::fmt::Write as _;

use cel::temporal;
use cel::value::{Timestamp, go_quote};

/// An element of a Go time layout, such as `2006` for the year.
#[derive(Clone, Copy)]
enum Element {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Literal(&'static str),
}

impl Element {
    fn text(self) -> &'static str {
        match self {
            Self::Year => "2006",
            Self::Month => "01",
            Self::Day => "02",
            Self::Hour => "15",
            Self::Minute => "04",
            Self::Second => "05",
            Self::Literal(text) => text,
        }
    }

    /// Returns the element's name in error messages, and its allowed values. Returns `None` if Go does not check the
    /// values.
    fn range(self) -> Option<(&'static str, std::ops::RangeInclusive<u32>)> {
        match self {
            Self::Month => Some(("month", 1..=12)),
            Self::Hour => Some(("hour", 0..=23)),
            Self::Minute => Some(("minute", 0..=59)),
            Self::Second => Some(("second", 0..=59)),
            Self::Year | Self::Day | Self::Literal(_) => None,
        }
    }
}

const DATE: &[Element] = &[
    Element::Year,
    Element::Literal("-"),
    Element::Month,
    Element::Literal("-"),
    Element::Day,
];

const DATE_TIME: &[Element] = &[
    Element::Year,
    Element::Literal("-"),
    Element::Month,
    Element::Literal("-"),
    Element::Day,
    Element::Literal("T"),
    Element::Hour,
    Element::Literal(":"),
    Element::Minute,
    Element::Literal(":"),
    Element::Second,
];

/// Quotes a string like Go's `time` package, which escapes non-ASCII bytes.
///
/// Source: Go `time/format.go`, `quote`.
fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'\x7f' => quoted.push(char::from(byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns Go's error message for a string that does not have the layout `layout`.
fn parse_error(text: &str, layout: &[Element]) -> String {
    let layout_text: String = layout.iter().map(|element| element.text()).collect();
    let parsing = format!("parsing time {}", quote(text));
    let mut rest = text;
    for element in layout {
        let cannot = || {
            format!(
                "{parsing} as {}: cannot parse {} as {}",
                quote(&layout_text),
                quote(rest),
                quote(element.text())
            )
        };
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let n_taken = match element {
            Element::Literal(literal) => match rest.strip_prefix(literal) {
                Some(_) => literal.len(),
                None => return cannot(),
            },
            Element::Year if n_digits >= 4 => 4,
            // Go accepts one-digit hours.
            Element::Hour if n_digits == 1 => 1,
            Element::Month | Element::Day | Element::Hour | Element::Minute | Element::Second
                if n_digits >= 2 =>
            {
                2
            }
            _ => return cannot(),
        };
        let (taken, after) = rest.split_at_checked(n_taken).unwrap_or((rest, ""));
        if let Some((name, range)) = element.range()
            && !taken.parse().is_ok_and(|number| range.contains(&number))
        {
            return format!("{parsing}: {name} out of range");
        }
        rest = after;
        if matches!(element, Element::Second) {
            rest = without_fraction(rest);
        }
    }
    if rest.is_empty() {
        format!("{parsing}: day out of range")
    } else {
        format!("{parsing}: extra text: {}", quote(rest))
    }
}

/// Removes a fraction of a second from the start of the string.
fn without_fraction(text: &str) -> &str {
    match text.strip_prefix(['.', ',']) {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            digits.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => text,
    }
}

fn timestamp(text: &str) -> Option<Timestamp> {
    let read = temporal::parse_timestamp(text).ok()?;
    Some(Timestamp {
        seconds: read.seconds,
        nanos: read.nanos,
        offset_seconds: read.offset_seconds,
    })
}

/// Parses a date. Returns the start of the day in UTC.
///
/// # Errors
///
/// Returns Go's error message if the string is not a date.
pub(super) fn date(text: &str) -> Result<Timestamp, String> {
    timestamp(&format!("{text}T00:00:00Z"))
        .filter(|_| text.len() == "2006-01-02".len())
        .ok_or_else(|| parse_error(text, DATE))
}

/// Parses a date and time. The default time zone is UTC. An empty string is the Unix epoch.
///
/// # Errors
///
/// Returns Go's error message for the last layout that upstream tries.
pub(super) fn date_time(text: &str) -> Result<Timestamp, String> {
    const EPOCH: Timestamp = Timestamp {
        seconds: 0,
        nanos: 0,
        offset_seconds: 0,
    };
    if text.is_empty() {
        return Ok(EPOCH);
    }
    timestamp(text)
        .or_else(|| timestamp(&format!("{text}Z")))
        .ok_or_else(|| parse_error(text, DATE_TIME))
}

/// The names of each unit, and its length in nanoseconds. Go has no units for days and weeks. A word is also accepted
/// if it starts with the last name of a unit, such as `hours` for `hour`.
const UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "\u{b5}s", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// Parses a duration: in Go's format (`1h30m`), or numbers with unit names (`2 days`). Returns nanoseconds.
///
/// # Errors
///
/// Returns an error if the string has neither format.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    if let Some(nanos) = temporal::parse_duration(text) {
        return Ok(nanos);
    }
    let mut total = None;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits_on = rest.get(at..).unwrap_or_default();
        let unit_on = digits_on.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = digits_on.strip_suffix(unit_on).unwrap_or_default();
        let word_on = unit_on.trim_start_matches([' ', '\t', '\n', '\u{c}', '\r']);
        rest = word_on.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '\u{b5}');
        let unit = word_on
            .strip_suffix(rest)
            .unwrap_or_default()
            .to_lowercase();
        if unit.is_empty() {
            continue;
        }
        let factor: i64 = digits.parse().map_err(|_| {
            format!(
                "strconv.Atoi: parsing {}: value out of range",
                go_quote(digits)
            )
        })?;
        for (names, multiplier) in UNITS {
            let (last, others) = names.split_last().unwrap_or((&"", &[]));
            if unit.starts_with(last) || others.iter().any(|name| *name == unit) {
                let added = factor.wrapping_mul(*multiplier);
                total = Some(total.unwrap_or(0_i64).wrapping_add(added));
            }
        }
    }
    total.ok_or_else(|| format!("unable to parse {text} as duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_date(text: &str, error: &str) {
        assert_eq!(date(text).unwrap_err(), error);
    }

    #[test]
    fn invalid_dates_have_go_errors() {
        check_date(
            "2001-01-01T00:00:00Z",
            "parsing time \"2001-01-01T00:00:00Z\": extra text: \"T00:00:00Z\"",
        );
        check_date(
            "bad",
            "parsing time \"bad\" as \"2006-01-02\": cannot parse \"bad\" as \"2006\"",
        );
        check_date(
            "2001/01",
            "parsing time \"2001/01\" as \"2006-01-02\": cannot parse \"/01\" as \"-\"",
        );
        check_date(
            "2001-13-01",
            "parsing time \"2001-13-01\": month out of range",
        );
        check_date(
            "2001-02-29",
            "parsing time \"2001-02-29\": day out of range",
        );
    }

    #[test]
    fn date_time_without_zone_is_utc() {
        assert_eq!(date_time("1970-01-01T00:00:01").unwrap().seconds, 1);
        assert_eq!(
            date_time("1970-01-01").unwrap_err(),
            "parsing time \"1970-01-01\" as \"2006-01-02T15:04:05\": cannot parse \"\" as \"T\""
        );
    }

    #[test]
    fn invalid_date_times_have_go_errors() {
        for (text, error) in [
            ("2001-13-01T00:00:00", "month out of range"),
            ("2001-00-01T00:00:00", "month out of range"),
            ("2001-01-01T24:00:00", "hour out of range"),
            ("2001-01-01T00:60:00", "minute out of range"),
            ("2001-01-01T00:00:60", "second out of range"),
            ("2001-02-30T23:59:59", "day out of range"),
            ("2001-01-01T00:00:00x", "extra text: \"x\""),
            ("2001-01-01T00:00:00.5x", "extra text: \"x\""),
            ("2001-01-01T00:00:00.x", "extra text: \".x\""),
        ] {
            let expected = format!("parsing time \"{text}\": {error}");
            assert_eq!(date_time(text).unwrap_err(), expected);
        }
        for (text, rest, element) in [
            ("2001-1-01T00:00:00", "1-01T00:00:00", "01"),
            ("2001-01-1T00:00:00", "1T00:00:00", "02"),
            ("2001-01-01 00:00:00", " 00:00:00", "T"),
            ("2001-01-01Tx", "x", "15"),
            ("2001-01-01T1", "", ":"),
            ("2001-01-01T01:1", "1", "04"),
            ("2001-01-01T01:01:1", "1", "05"),
            ("201-01-01", "201-01-01", "2006"),
        ] {
            let expected = format!(
                "parsing time \"{text}\" as \"2006-01-02T15:04:05\": cannot parse \"{rest}\" as \"{element}\""
            );
            assert_eq!(date_time(text).unwrap_err(), expected);
        }
        assert_eq!(
            date_time("\u{e9}\"\\").unwrap_err(),
            "parsing time \"\\xc3\\xa9\\\"\\\\\" as \"2006-01-02T15:04:05\": cannot parse \
             \"\\xc3\\xa9\\\"\\\\\" as \"2006\""
        );
        assert_eq!(date_time("").unwrap().seconds, 0);
        let zoned = date_time("1970-01-01T01:00:00.25+01:00").unwrap();
        assert_eq!((zoned.seconds, zoned.nanos), (0, 250_000_000));
        assert_eq!(date("1970-01-02").unwrap().seconds, 86_400);
    }

    #[test]
    fn durations_may_have_go_format_or_unit_names() {
        assert_eq!(duration("1h"), Ok(3_600_000_000_000));
        assert_eq!(duration("2 days"), Ok(172_800_000_000_000));
        assert_eq!(duration("1 w 1d"), Ok(691_200_000_000_000));
        for (text, seconds) in [
            ("1 week", 604_800),
            ("2 wk", 1_209_600),
            ("3hr", 10_800),
            ("2 hours", 7_200),
            ("5 minutes 1 sec", 301),
            ("1m 2s", 62),
            ("90secs", 90),
            ("1 D", 86_400),
            ("x1 day, 1 h", 90_000),
        ] {
            assert_eq!(duration(text), Ok(seconds * 1_000_000_000), "{text}");
        }
        for (text, nanos) in [
            ("7 ns", 7),
            ("2 us", 2_000),
            ("3 \u{b5}s", 3_000),
            ("4 ms", 4_000_000),
        ] {
            assert_eq!(duration(text), Ok(nanos), "{text}");
        }
        for (text, nanos) in [
            ("1 nanosecond", 1),
            ("1 microsecond", 1_000),
            ("1 millisecond", 1_000_000),
        ] {
            assert_eq!(duration(text), Ok(nanos), "{text}");
        }
        for text in ["", "5", "1 fortnight", "days", "5 5"] {
            let error = format!("unable to parse {text} as duration");
            assert_eq!(duration(text), Err(error));
        }
        assert_eq!(
            duration("99999999999999999999 days").unwrap_err(),
            "strconv.Atoi: parsing \"99999999999999999999\": value out of range"
        );
        assert_eq!(
            duration("bad").unwrap_err(),
            "unable to parse bad as duration"
        );
    }
}
