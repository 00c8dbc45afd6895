//! Formatting of doubles by `format`, with the separators, signs and exponents of American English.
//!
//! Source: golang.org/x/text `message/print.go`, `internal/number/format.go`, as cel-go `ext/formatting.go`
//! uses them.

/// Largest number that upstream parses as a precision or width.
const MAX_PARAMETER: u64 = 10_000_009;

/// Upstream's output for an invalid precision or width.
const NO_VERB: &str = "%!(NOVERB)";

/// Maximum number of fractional digits of a double.
const MAX_DIGITS: usize = 1_100;

/// Formats NaN or an infinity. `None` for finite numbers.
fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("\u{221e}")
    } else if value == f64::NEG_INFINITY {
        Some("-\u{221e}")
    } else {
        None
    }
}

/// Formats `value` with `precision` fractional digits: `1,234.50`.
///
/// Upstream stores the maximum number of digits in 16 bits. If it overflows to a negative number, upstream writes the
/// shortest digits that round-trip. Upstream stores the minimum number of digits in eight bits, so it writes at most
/// 255 trailing zeros.
#[must_use]
pub fn fixed(value: f64, precision: u64) -> String {
    if precision > MAX_PARAMETER {
        return NO_VERB.to_owned();
    }
    if let Some(name) = special(value) {
        return name.to_owned();
    }
    // Zero has no sign, but a number that rounds to zero keeps its sign.
    let value = if value == 0.0 { 0.0 } else { value };
    let text = match usize::try_from(precision % 65_536) {
        Ok(n) if n < 32_768 => format!("{value:.*}", n.min(MAX_DIGITS)),
        _ => format!("{value}"),
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let n_least = usize::try_from(precision % 256).unwrap_or_default();
    let whole = grouped(whole);
    if fraction.is_empty() && n_least == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{fraction:0<n_least$}")
}

/// Inserts a comma before each group of three digits.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats `value` in scientific notation with six fractional digits, `1.052033×10⁰³`, padded with spaces to
/// `width` characters.
///
/// Upstream uses the precision of the clause as the width, and stores the width in 16 bits.
#[must_use]
pub fn scientific(value: f64, width: u64) -> String {
    if width > MAX_PARAMETER {
        return NO_VERB.to_owned();
    }
    let width = usize::try_from(width % 65_536).unwrap_or_default();
    let text = match special(value) {
        Some(name) => name.to_owned(),
        None => {
            let value = if value == 0.0 { 0.0 } else { value };
            let text = format!("{value:.6e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let sign = if exponent < 0 { "\u{207b}" } else { "" };
            let exponent = format!("{:02}", exponent.unsigned_abs());
            let exponent: String = exponent.chars().map(superscript).collect();
            format!("{digits}\u{d7}10{sign}{exponent}")
        }
    };
    format!("{text:>width$}")
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '\u{b9}',
        '2' => '\u{b2}',
        '3' => '\u{b3}',
        '4' => '\u{2074}',
        '5' => '\u{2075}',
        '6' => '\u{2076}',
        '7' => '\u{2077}',
        '8' => '\u{2078}',
        '9' => '\u{2079}',
        _ => '\u{2070}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_format_rounds_and_groups_digits() {
        assert_eq!(fixed(1_234_567.891, 6), "1,234,567.891000");
        assert_eq!(fixed(123.0, 0), "123");
        assert_eq!(fixed(-1234.5, 1), "-1,234.5");
        assert_eq!(fixed(-0.0, 2), "0.00");
        assert_eq!(fixed(-0.001, 2), "-0.00");
        assert_eq!(fixed(2.5, 0), "2");
        assert_eq!(fixed(999.9999, 2), "1,000.00");
        assert_eq!(fixed(1e22, 1), "10,000,000,000,000,000,000,000.0");
        assert_eq!(fixed(f64::NAN, 2), "NaN");
        assert_eq!(fixed(f64::NEG_INFINITY, 2), "-\u{221e}");
    }

    #[test]
    fn large_precision_of_fixed_point_format_wraps_as_in_upstream() {
        assert_eq!(fixed(1.5, 255).len(), 257);
        assert_eq!(fixed(1.5, 256), "1.5");
        assert_eq!(fixed(1.5, 2_000_000).len(), 130);
        assert_eq!(
            fixed(44.676, 284),
            "44.6760000000000019326762412674725055694580078125"
        );
        assert_eq!(fixed(-4.25, 261), "-4.25000");
        assert_eq!(fixed(1.5, 99_999_999), "%!(NOVERB)");
        assert_eq!(fixed(123_456.789, 32_768), "123,456.789");
        assert_eq!(fixed(1.55, 65_537), "1.6");
        assert_eq!(fixed(0.1, 99_999), format!("0.1{}", "0".repeat(158)));
    }

    #[test]
    fn scientific_format_pads_to_width() {
        assert_eq!(
            scientific(1_052.032_911_275, 6),
            "1.052033\u{d7}10\u{2070}\u{b3}"
        );
        assert_eq!(
            scientific(-1e300, 0),
            "-1.000000\u{d7}10\u{b3}\u{2070}\u{2070}"
        );
        assert_eq!(
            scientific(1e-7, 0),
            "1.000000\u{d7}10\u{207b}\u{2070}\u{2077}"
        );
        assert_eq!(scientific(0.0, 15), "  0.000000\u{d7}10\u{2070}\u{2070}");
        assert_eq!(scientific(-0.0, 0), "0.000000\u{d7}10\u{2070}\u{2070}");
        assert_eq!(scientific(f64::NAN, 6), "   NaN");
        assert_eq!(scientific(f64::INFINITY, 3), "  \u{221e}");
        assert_eq!(scientific(1.5, 999_999).chars().count(), 16_959);
    }
    #[test]
    fn exponent_of_scientific_format_has_superscript_digits() {
        for (value, exponent) in [
            (1e123, "\u{b9}\u{b2}\u{b3}"),
            (1e-45, "\u{207b}\u{2074}\u{2075}"),
            (1e67, "\u{2076}\u{2077}"),
            (1e89, "\u{2078}\u{2079}"),
            (1e-10, "\u{207b}\u{b9}\u{2070}"),
        ] {
            assert_eq!(scientific(value, 0), format!("1.000000\u{d7}10{exponent}"));
        }
    }

    #[test]
    fn precision_or_width_above_limit_is_invalid() {
        for (parameter, is_valid) in [(10_000_009, true), (10_000_010, false), (u64::MAX, false)] {
            assert_eq!(fixed(f64::NAN, parameter) == "NaN", is_valid);
            assert_eq!(fixed(1.0, parameter) != NO_VERB, is_valid);
            assert_eq!(scientific(1.0, parameter) != NO_VERB, is_valid);
        }
        assert_eq!(scientific(1.0, 65_536), "1.000000\u{d7}10\u{2070}\u{2070}");
    }
}
