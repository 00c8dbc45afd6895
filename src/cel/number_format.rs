//! Doubles as Go writes them.
//!
//! Source: Go `strconv/ftoa.go`, `FormatFloat`.

/// The name of a double that is no number, or no finite one.
fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("+Inf")
    } else if value == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

/// The shortest text that reads as `value`: `1`, `0.1`, `1e+06`, `NaN`, `+Inf`.
///
/// It is in scientific notation below a ten-thousandth, and from a million on.
///
/// Source: Go `strconv/ftoa.go`, `FormatFloat` with the format `g` and the precision -1.
#[must_use]
pub fn shortest(value: f64) -> String {
    if let Some(name) = special(value) {
        return name.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        plain(value)
    } else {
        with_exponent(digits, exponent)
    }
}

/// The shortest text that reads as `value`, without an exponent.
///
/// Source: Go `strconv/ftoa.go`, `FormatFloat` with the format `f` and the precision -1.
#[must_use]
pub fn plain(value: f64) -> String {
    special(value).map_or_else(|| format!("{value}"), ToOwned::to_owned)
}

/// `value` with `precision` digits behind the point: Go's `%.Nf`.
///
/// Source: Go `strconv/ftoa.go`, `FormatFloat` with the format `f`.
#[must_use]
pub fn fixed(value: f64, precision: u16) -> String {
    special(value).map_or_else(
        || format!("{value:.*}", usize::from(precision)),
        ToOwned::to_owned,
    )
}

/// `value` in scientific notation with `precision` digits behind the point: Go's `%.Ne`.
///
/// Source: Go `strconv/ftoa.go`, `FormatFloat` with the format `e`.
#[must_use]
pub fn scientific(value: f64, precision: u16) -> String {
    if let Some(name) = special(value) {
        return name.to_owned();
    }
    let text = format!("{value:.*e}", usize::from(precision));
    match text.split_once('e') {
        Some((digits, exponent)) => with_exponent(digits, exponent.parse().unwrap_or_default()),
        None => text,
    }
}

/// An exponent has a sign and at least two digits.
fn with_exponent(digits: &str, exponent: i32) -> String {
    format!("{digits}e{exponent:+03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, in_short: &str, in_full: &str, to_a_thousandth: &str, with_power: &str) {
        assert_eq!(shortest(value), in_short);
        assert_eq!(plain(value), in_full);
        assert_eq!(fixed(value, 3), to_a_thousandth);
        assert_eq!(scientific(value, 3), with_power);
    }

    #[test]
    fn as_go_does() {
        check(0.0, "0", "0", "0.000", "0.000e+00");
        check(-0.0, "-0", "-0", "-0.000", "-0.000e+00");
        check(0.1, "0.1", "0.1", "0.100", "1.000e-01");
        check(123_456.0, "123456", "123456", "123456.000", "1.235e+05");
        check(1e6, "1e+06", "1000000", "1000000.000", "1.000e+06");
        check(
            1_234_567.5,
            "1.2345675e+06",
            "1234567.5",
            "1234567.500",
            "1.235e+06",
        );
        check(1e-4, "0.0001", "0.0001", "0.000", "1.000e-04");
        check(1e-5, "1e-05", "0.00001", "0.000", "1.000e-05");
        check(f64::NAN, "NaN", "NaN", "NaN", "NaN");
        check(f64::INFINITY, "+Inf", "+Inf", "+Inf", "+Inf");
        check(f64::NEG_INFINITY, "-Inf", "-Inf", "-Inf", "-Inf");
        assert_eq!(shortest(f64::MAX), "1.7976931348623157e+308");
        assert_eq!(shortest(5e-324), "5e-324");
        assert_eq!(
            shortest(123_456_789_012_345_680_000.0),
            "1.2345678901234568e+20"
        );
    }

    #[test]
    fn ties_go_to_even() {
        assert_eq!(fixed(0.5, 0), "0");
        assert_eq!(fixed(1.5, 0), "2");
        assert_eq!(fixed(0.25, 1), "0.2");
        assert_eq!(scientific(1.125, 2), "1.12e+00");
        assert_eq!(
            fixed(0.1, 60),
            "0.100000000000000005551115123125782702118158340454101562500000"
        );
    }
}
