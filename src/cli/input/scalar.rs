//! Resolution of plain YAML scalars after go-yaml, which keeps to YAML 1.1.
//!
//! Source: `go.yaml.in/yaml/v2` `resolve.go` (`resolve`, `resolveMap`, `yamlStyleFloat`).

/// A plain scalar. Timestamps count as text, which they are to whoever reads into JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `~`, `null`, or nothing.
    Null,
    /// `yes`, `on`, `true`, and so on.
    Bool(bool),
    /// An integer of any base.
    Int(i64),
    /// An integer that is too great for an `i64`.
    Uint(u64),
    /// A number with a fraction or an exponent, or of 65 bits and more.
    Float(f64),
    /// Anything else.
    Text,
}

/// Tells what the plain scalar `text` is.
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
        Some(b'.') => text.to_owned(),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            if let Some(number) = integer(&plain) {
                return number;
            }
            plain
        }
        _ => return Scalar::Text,
    };
    float(&plain).map_or(Scalar::Text, Scalar::Float)
}

/// An integer in Go's notation: `0x`, `0o`, `0b`, and a mere `0` for octal.
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
    // Rust takes a sign here, and Go does not.
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

/// A float in YAML's notation, which Rust's is a superset of.
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
    // What is out of range is text to go-yaml.
    well_formed
        .then(|| text.parse::<f64>().ok())?
        .filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_resolve_as_in_yaml_1_1() {
        for (text, wanted) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("yes", Scalar::Bool(true)),
            ("y", Scalar::Bool(true)),
            ("Off", Scalar::Bool(false)),
            ("yEs", Scalar::Text),
            ("12", Scalar::Int(12)),
            ("-1_000", Scalar::Int(-1000)),
            ("0777", Scalar::Int(511)),
            ("0o17", Scalar::Int(15)),
            ("0x1F", Scalar::Int(31)),
            ("-0b11", Scalar::Int(-3)),
            ("08", Scalar::Float(8.0)),
            ("0", Scalar::Int(0)),
            ("--1", Scalar::Text),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            ("-9223372036854775808", Scalar::Int(i64::MIN)),
            (
                "18446744073709551616",
                Scalar::Float(18_446_744_073_709_551_616.0),
            ),
            ("1.5", Scalar::Float(1.5)),
            (".5", Scalar::Float(0.5)),
            ("1.", Scalar::Float(1.0)),
            ("1e3", Scalar::Float(1000.0)),
            ("1e999", Scalar::Text),
            (".", Scalar::Text),
            ("1e", Scalar::Text),
            ("1.2.3", Scalar::Text),
            ("12:30", Scalar::Text),
            ("2001-12-14", Scalar::Text),
            ("v1", Scalar::Text),
            ("inf", Scalar::Text),
        ] {
            assert_eq!(resolve(text), wanted, "{text}");
        }
    }
}
