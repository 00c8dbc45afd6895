//! Resolves plain scalars of YAML 1.1, like go-yaml.
//!
//! Source: `go.yaml.in/yaml/v2` `resolve.go` (`resolve`, `resolveMap`, `yamlStyleFloat`).

use serde_json::{Number, Value};

/// Prefix of YAML's standard tags.
pub(super) const CORE: &str = "tag:yaml.org,2002:";

/// The value of a scalar. Timestamps are strings, as in programs that decode YAML into JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `~`, `null`, or an empty scalar.
    Null,
    /// `yes`, `on`, `true`, and so on.
    Bool(bool),
    /// An integer in any base.
    Int(i64),
    /// An integer greater than `i64::MAX`.
    Uint(u64),
    /// A number with a fraction or exponent, or an integer of more than 64 bits.
    Float(f64),
    /// Any other scalar.
    Text(String),
}

/// Resolves a plain scalar.
#[must_use]
pub fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Scalar::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let plain = match text.as_bytes().first() {
        Some(b'.') if has_misplaced_underscore(text) => text.to_owned(),
        Some(b'.') => text.replace('_', ""),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            if let Some(number) = integer(&plain) {
                return number;
            }
            plain
        }
        _ => return Scalar::Text(text.to_owned()),
    };
    match float(&plain) {
        Some(number) => Scalar::Float(number),
        None => signed_binary(&plain).unwrap_or_else(|| Scalar::Text(text.to_owned())),
    }
}

/// Resolves a scalar that may have a tag.
///
/// # Errors
///
/// Returns an error if the content is not valid for the type of the tag.
pub(super) fn resolve_tagged(tag: Option<&str>, text: String) -> Result<Scalar, String> {
    let Some(tag) = tag else {
        return Ok(resolve(&text));
    };
    match tag.strip_prefix(CORE) {
        Some("binary") => binary(&text).map(Scalar::Text),
        Some("timestamp") if is_timestamp(&text) => Ok(Scalar::Text(text)),
        Some(kind @ ("bool" | "int" | "float" | "null" | "timestamp")) => {
            #[expect(clippy::cast_precision_loss, reason = "as go-yaml converts it")]
            match (resolve(&text), kind) {
                (Scalar::Int(number), "float") => Ok(Scalar::Float(number as f64)),
                (value @ Scalar::Bool(_), "bool")
                | (value @ Scalar::Null, "null")
                | (value @ (Scalar::Int(_) | Scalar::Uint(_)), "int")
                | (value @ Scalar::Float(_), "float") => Ok(value),
                _ => Err(format!("`{text}` is not a valid !!{kind}")),
            }
        }
        _ => Ok(Scalar::Text(text)),
    }
}

/// Decodes base64. Replaces each byte that is not valid UTF-8 with U+FFFD.
///
/// Source: Go `encoding/base64` (`StdEncoding`), `encoding/json` (`appendString`).
fn binary(text: &str) -> Result<String, String> {
    let wrong = || "the value of !!binary is not valid base64".to_owned();
    let written: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let digits = written.trim_end_matches('=');
    let n_padding = written.len() - digits.len();
    if !written.len().is_multiple_of(4) || n_padding > 2 {
        return Err(wrong());
    }
    let mut bytes = Vec::new();
    let (mut bits, mut n_bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(wrong()),
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.extend(u8::try_from((bits >> n_bits) & 0xff));
        }
    }
    let mut decoded = String::new();
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    Ok(decoded)
}

/// Returns true if `text` is a timestamp.
///
/// Source: `go.yaml.in/yaml/v2` `resolve.go` (`parseTimestamp`), Go `time` (`Parse`).
fn is_timestamp(text: &str) -> bool {
    let date_and_time = |text: &str| -> Option<()> {
        let digits = |text: &str, least: usize, most: usize| -> Option<(u32, usize)> {
            let n = text
                .bytes()
                .take(most)
                .take_while(u8::is_ascii_digit)
                .count();
            let number = text.get(..n)?.parse().ok().filter(|_| n >= least)?;
            Some((number, n))
        };
        let rest = |text: &str, prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        let part = |text: &str, range: std::ops::RangeInclusive<u32>| {
            let (number, n) = digits(text, 1, 2).filter(|(number, _)| range.contains(number))?;
            Some((number, text.get(n..)?.to_owned()))
        };
        let (year, n) = digits(text, 4, 4)?;
        let (month, text) = part(&rest(text.get(n..)?, "-")?, 1..=12)?;
        let is_leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let n_days = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let (_, text) = part(&rest(&text, "-")?, 1..=n_days)?;
        if text.is_empty() {
            return Some(());
        }
        let has_zone = text.starts_with(['T', 't']);
        let (_, text) = part(text.strip_prefix(['T', 't', ' '])?, 0..=23)?;
        let (_, text) = part(&rest(&text, ":")?, 0..=59)?;
        let (_, mut text) = part(&rest(&text, ":")?, 0..=59)?;
        if let Some(fraction) = text.strip_prefix(['.', ',']) {
            let fraction = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if fraction.len() + 1 == text.len() {
                return None;
            }
            text = fraction.to_owned();
        }
        if !has_zone {
            return text.is_empty().then_some(());
        }
        if text == "Z" {
            return Some(());
        }
        let zone = text.strip_prefix(['+', '-'])?;
        let (hours, minutes) = zone.split_once(':')?;
        let two = |text: &str, most: u32| {
            let parsed = digits(text, 2, 2).filter(|(number, _)| *number <= most);
            parsed.filter(|_| text.len() == 2).map(|_| ())
        };
        two(hours, 24)?;
        two(minutes, 60)
    };
    date_and_time(text).is_some()
}

/// Formats a float like Go's JSON encoder. Integral values have no fraction: `1e3` becomes `1000`, which can be decoded
/// as an integer. Returns `None` if JSON cannot represent the number.
pub(super) fn json_float(number: f64) -> Option<Value> {
    // The smallest integer that Go writes with an exponent.
    // Source: Go `encoding/json` (`floatEncoder`).
    const WITH_EXPONENT: f64 = 1e21;
    if number.fract() == 0.0 && number.abs() < WITH_EXPONENT {
        // Rust formats a float with the fewest digits that identify the number, followed by zeros.
        if let Ok(integer) = format!("{number}").parse::<i64>() {
            return Some(Value::from(integer));
        }
    }
    Number::from_f64(number).map(Value::Number)
}

/// Formats a float that is used as a key.
///
/// Source: `sigs.k8s.io/yaml` `yaml.go` (`convertToJSONableObject`), Go `strconv` (`FormatFloat` with `'g'`,
/// -1 and 32).
pub(super) fn go_float_key(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "rounds as in upstream")]
    let number = number as f32;
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}.inf");
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..6).contains(&exponent) {
        // In keys, Go writes an exponent if it is below -4 or above 5. In JSON numbers, Go writes it if it is below -6
        // or above 20.
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Parses a binary integer whose sign follows the prefix, such as `0b-101`. Only go-yaml accepts this form.
fn signed_binary(text: &str) -> Option<Scalar> {
    let digits = text.strip_prefix("0b")?;
    let bits = digits.strip_prefix(['+', '-'])?;
    let is_binary = !bits.is_empty() && bits.bytes().all(|bit| matches!(bit, b'0' | b'1'));
    let number = i64::from_str_radix(digits, 2).ok();
    number.filter(|_| is_binary).map(Scalar::Int)
}

/// Returns true if an underscore in `text` is not between two digits.
///
/// Source: Go `strconv` (`underscoreOK`).
fn has_misplaced_underscore(text: &str) -> bool {
    let parts: Vec<_> = text.split('_').collect();
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    parts.windows(2).any(|pair| match pair {
        [before, after] => !is_digit(before.bytes().last()) || !is_digit(after.bytes().next()),
        _ => false,
    })
}

/// Parses an integer with the prefix `0x`, `0o`, `0b` or `0` (octal), or without a prefix.
fn integer(text: &str) -> Option<Scalar> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let signed = text.starts_with(['+', '-']);
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)]
        .into_iter()
        .find_map(|(prefix, base)| {
            let rest = lower.strip_prefix(prefix)?;
            (!rest.is_empty()).then_some((base, rest))
        })
        .unwrap_or((10, &lower));
    // Rust accepts a sign after the prefix, Go does not.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(number) => Some(Scalar::Int(number)),
        Err(_) if signed => None,
        Err(_) => Some(Scalar::Uint(magnitude)),
    }
}

/// Parses a float in YAML's notation, which is a subset of Rust's notation.
fn float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_digits =
        exponent.map_or("0", |text| text.strip_prefix(['+', '-']).unwrap_or(text));
    let well_formed = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && all_digits(exponent_digits)
        && !exponent_digits.is_empty();
    // Like go-yaml, treats a number that exceeds the range of a double as a string.
    well_formed
        .then(|| text.parse::<f64>().ok())?
        .filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalar_has_yaml_1_1_type() {
        for (text, expected) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("yes", Scalar::Bool(true)),
            ("y", Scalar::Bool(true)),
            ("Off", Scalar::Bool(false)),
            ("yEs", Scalar::Text(String::new())),
            ("12", Scalar::Int(12)),
            ("-1_000", Scalar::Int(-1000)),
            ("0777", Scalar::Int(511)),
            ("0o17", Scalar::Int(15)),
            ("0x1F", Scalar::Int(31)),
            ("-0b11", Scalar::Int(-3)),
            ("08", Scalar::Float(8.0)),
            ("0", Scalar::Int(0)),
            ("--1", Scalar::Text(String::new())),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            ("-9223372036854775808", Scalar::Int(i64::MIN)),
            (
                "18446744073709551616",
                Scalar::Float(18_446_744_073_709_551_616.0),
            ),
            ("1.5", Scalar::Float(1.5)),
            (".5", Scalar::Float(0.5)),
            (".5_0", Scalar::Float(0.5)),
            ("._5", Scalar::Text(String::new())),
            ("0b-1", Scalar::Int(-1)),
            ("0b+-1", Scalar::Text(String::new())),
            ("1.", Scalar::Float(1.0)),
            ("1e3", Scalar::Float(1000.0)),
            ("1e999", Scalar::Text(String::new())),
            (".", Scalar::Text(String::new())),
            ("1e", Scalar::Text(String::new())),
            ("1.2.3", Scalar::Text(String::new())),
            ("12:30", Scalar::Text(String::new())),
            ("2001-12-14", Scalar::Text(String::new())),
            ("v1", Scalar::Text(String::new())),
            ("inf", Scalar::Text(String::new())),
        ] {
            let expected = match expected {
                Scalar::Text(_) => Scalar::Text(text.to_owned()),
                other => other,
            };
            assert_eq!(resolve(text), expected, "{text}");
        }
    }

    #[test]
    fn tagged_scalar_has_the_type_of_its_tag() {
        let tagged = |kind: &str, text: &str| {
            resolve_tagged(Some(&format!("{CORE}{kind}")), text.to_owned()).ok()
        };
        let text = |text: &str| Some(Scalar::Text(text.to_owned()));
        assert_eq!(tagged("int", "0x1f"), Some(Scalar::Int(31)));
        assert_eq!(tagged("float", "5"), Some(Scalar::Float(5.0)));
        assert_eq!(tagged("float", "18446744073709551615"), None);
        assert_eq!(tagged("int", "1.0"), None);
        assert_eq!(tagged("str", "1"), text("1"));
        assert_eq!(tagged("null", ""), Some(Scalar::Null));
        assert_eq!(tagged("binary", "aGVs\nbG8="), text("hello"));
        assert_eq!(tagged("binary", "/w=="), text("\u{fffd}"));
        assert_eq!(tagged("binary", "aGVsbG8"), None);
        assert_eq!(tagged("set", "x"), text("x"));
        for (timestamp, is_one) in [
            ("2001-1-1", true),
            ("2000-02-29", true),
            ("2001-02-29", false),
            ("2001-12-14t21:59:43.10-05:00", true),
            ("2001-12-14 21:59:43.1", true),
            ("2001-12-14 21:59:43Z", false),
            ("2001-12-14T24:00:00Z", false),
            ("x", false),
        ] {
            assert_eq!(
                tagged("timestamp", timestamp).is_some(),
                is_one,
                "{timestamp}"
            );
        }
    }

    #[test]
    fn floats_as_keys_and_values_agree_with_go() {
        for (number, key, json) in [
            (0.1, "0.1", "0.1"),
            (1e6, "1e+06", "1000000"),
            (123_456.0, "123456", "123456"),
            (1_234_567.8, "1.2345678e+06", "1234567.8"),
            (0.000_01, "1e-05", "1e-5"),
            (-0.0, "-0", "0"),
            (1e18, "1e+18", "1000000000000000000"),
            (1e19, "1e+19", "1e19"),
            (3.5e39, ".inf", "3.5e39"),
        ] {
            assert_eq!(go_float_key(number), key);
            let written = json_float(number).unwrap();
            assert_eq!(
                written,
                serde_json::from_str::<Value>(json).unwrap(),
                "{key}"
            );
        }
        assert_eq!(json_float(f64::NAN), None);
    }
}
