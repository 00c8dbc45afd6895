//! Resolves time zones, given by name or as an offset.
//!
//! Source: cel-go `common/stdlib/standard.go`, `inTimeZone`; Go `time/zoneinfo.go`, `LoadLocation`.

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use super::value::EvalError;

const SECONDS_OF_400_YEARS: i64 = 146_097 * 86_400;

/// Returns the offset in seconds of the zone `name` from UTC at a Unix timestamp.
///
/// # Errors
///
/// Returns Go's error for an unknown zone.
pub(super) fn offset_at(name: &str, seconds: i64) -> Result<i64, EvalError> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let (hours, minutes) = (atoi(hours)?, atoi(minutes)?);
        // Sums wrap around, like Go's `int` and durations.
        let minutes = if name.starts_with('-') {
            hours.wrapping_mul(60).wrapping_sub(minutes)
        } else {
            hours.wrapping_mul(60).wrapping_add(minutes)
        };
        return Ok(minutes.wrapping_mul(60_000_000_000) / 1_000_000_000);
    }
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if name.split(['/', '\\']).any(|part| part == "..") || name.starts_with(['/', '\\']) {
        return Err(EvalError::fixed("time: invalid location name"));
    }
    if name.contains('\0') {
        return Err(EvalError::fixed("invalid argument"));
    }
    let unknown = || match not_a_file(name) {
        Some(reason) => EvalError::fixed(reason),
        None => EvalError::new(format!("unknown time zone {name}")),
    };
    let zone = TimeZoneDatabase::bundled()
        .get(name)
        .map_err(|_| unknown())?;
    // Zone names are file names in Go and therefore case-sensitive.
    if zone.iana_name() != Some(name) {
        return Err(unknown());
    }
    // The calendar repeats after 400 years, and so do the rules of a zone.
    let timestamp = Timestamp::from_second(seconds)
        .or_else(|_| Timestamp::from_second(seconds - SECONDS_OF_400_YEARS))
        .map_err(|_| unknown())?;
    Ok(zone.to_offset(timestamp).seconds().into())
}

/// Returns the error of the operating system for the path `name`. Go looks up zones as files in directories. `None`
/// if the path is valid.
fn not_a_file(name: &str) -> Option<&'static str> {
    if name.split('/').any(|part| part.len() > 255) {
        return Some("file name too long");
    }
    let zones = TimeZoneDatabase::bundled();
    let below = |above: &str, name: &str| {
        name.strip_prefix(above)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    zones.available().find_map(|zone| {
        if below(zone.as_str(), name) {
            Some("not a directory")
        } else if below(name.trim_end_matches('/'), zone.as_str()) {
            Some("is a directory")
        } else {
            None
        }
    })
}

/// Source: Go `strconv/atoi.go`, `Atoi`.
fn atoi(text: &str) -> Result<i64, EvalError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let reason = if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        "invalid syntax"
    } else {
        match text.parse() {
            Ok(value) => return Ok(value),
            Err(_) => "value out of range",
        }
    };
    Err(EvalError::new(format!(
        "strconv.Atoi: parsing {}: {reason}",
        super::value::go_quote(text)
    )))
}
