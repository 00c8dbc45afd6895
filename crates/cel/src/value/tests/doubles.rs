//! Doubles: parsing and formatting. The bits are those that Go's `strconv.ParseFloat` returns.

use crate::value::{format_double, parse_double};

#[track_caller]
fn check(rows: &[(&str, Option<u64>)]) {
    for (text, expected) in rows {
        let actual = parse_double(text).map(f64::to_bits);
        assert_eq!(actual, *expected, "{text}");
    }
}

#[test]
fn underscores_separate_digits_of_doubles() {
    check(&[
        ("1_23.50_0_0e+1_2", Some(0x42dc_14a5_684e_0000)),
        ("-1_2.5", Some(0xc029_0000_0000_0000)),
        ("1_000", Some(0x408f_4000_0000_0000)),
        ("0x_1p0", Some(0x3ff0_0000_0000_0000)),
        ("0x1_fp0", Some(0x403f_0000_0000_0000)),
        ("0x_1_2.3_4_5p+1_2", Some(0x40f2_3450_0000_0000)),
        ("_1", None),
        ("1__2", None),
        ("1_", None),
        ("1_.5", None),
        ("1._5", None),
        ("1_e5", None),
        ("1e_5", None),
        ("1_a", None),
        ("0x__1p0", None),
        ("0x1_p0", None),
        ("0x1p_1", None),
        ("0_x1p0", None),
        ("0x1p0_", None),
    ]);
}

#[test]
fn hexadecimal_double_needs_digits_and_exponent() {
    check(&[
        ("0x1p0", Some(0x3ff0_0000_0000_0000)),
        ("0X1P+3", Some(0x4020_0000_0000_0000)),
        ("-0x1.8p1", Some(0xc008_0000_0000_0000)),
        ("+0xap0", Some(0x4024_0000_0000_0000)),
        ("0x.8p0", Some(0x3fe0_0000_0000_0000)),
        ("0x1.p0", Some(0x3ff0_0000_0000_0000)),
        ("0x0p5", Some(0)),
        ("-0x0p0", Some(0x8000_0000_0000_0000)),
        ("0x.p0", None),
        ("0xp0", None),
        ("0x1", None),
        ("0x1p", None),
        ("0x1p+", None),
        ("0x1p-", None),
        ("0x1p1x", None),
        ("0x1.g", None),
        ("0xgp0", None),
        ("0x", None),
        ("0b1", None),
    ]);
}

#[test]
fn hexadecimal_double_is_rounded_to_nearest_even() {
    check(&[
        ("0x1.00000000000008p0", Some(0x3ff0_0000_0000_0000)),
        (
            "0x1.000000000000080000000001p0",
            Some(0x3ff0_0000_0000_0001),
        ),
        ("0x1.00000000000018p0", Some(0x3ff0_0000_0000_0002)),
        ("0x1.00000000000007ffp0", Some(0x3ff0_0000_0000_0000)),
        ("0x123456789abcdef0123p0", Some(0x4472_3456_789a_bcdf)),
        ("0x10000000000000800p0", Some(0x43f0_0000_0000_0000)),
        ("0x10000000000000801p0", Some(0x43f0_0000_0000_0001)),
        (
            "0x10000000000000000000000001p0",
            Some(0x4630_0000_0000_0000),
        ),
        ("0x800000000000040001p-4", Some(0x4420_0000_0000_0001)),
        ("0x0.0000000000000000001p76", Some(0x3ff0_0000_0000_0000)),
        ("0x1ffffffffffffffffp0", Some(0x4400_0000_0000_0000)),
    ]);
}

#[test]
fn hexadecimal_doubles_at_limits_of_range_are_parsed_correctly() {
    check(&[
        ("0x1.fffffffffffffp1023", Some(0x7fef_ffff_ffff_ffff)),
        ("0x1.fffffffffffff7fp1023", Some(0x7fef_ffff_ffff_ffff)),
        ("0x1.fffffffffffff8p1023", None),
        ("0x1p1024", None),
        ("0x1p99999999999999999999", None),
        ("0x1p-1022", Some(0x0010_0000_0000_0000)),
        ("0x1.fffffffffffffp-1023", Some(0x0010_0000_0000_0000)),
        ("0x1.fffffffffffff8p-1023", Some(0x0010_0000_0000_0000)),
        ("0x0.fffffffffffffp-1022", Some(0x000f_ffff_ffff_ffff)),
        ("0x1p-1074", Some(1)),
        ("0x1p-1075", Some(0)),
        ("0x1.0000001p-1075", Some(1)),
        ("0x1.8p-1075", Some(1)),
        ("0x3p-1075", Some(2)),
        ("0x5p-1075", Some(2)),
        ("0x7p-1075", Some(4)),
        ("0x1p-1076", Some(0)),
        ("0x1p-99999999999999999999", Some(0)),
    ]);
}

#[test]
fn decimal_doubles_are_parsed_as_in_go() {
    check(&[
        ("1e5", Some(0x40f8_6a00_0000_0000)),
        (".5", Some(0x3fe0_0000_0000_0000)),
        ("5.", Some(0x4014_0000_0000_0000)),
        ("1e-400", Some(0)),
        ("1e400", None),
        ("", None),
        ("+", None),
        (".", None),
        ("e5", None),
        ("1e", None),
        (" 1", None),
        ("1 ", None),
        ("--1", None),
        ("+-1", None),
        ("é1", None),
    ]);
}

#[test]
fn names_of_special_doubles_are_parsed() {
    check(&[
        ("inf", Some(0x7ff0_0000_0000_0000)),
        ("+Inf", Some(0x7ff0_0000_0000_0000)),
        ("-INFINITY", Some(0xfff0_0000_0000_0000)),
        ("infinit", None),
        ("infinityx", None),
        ("+nan", None),
        ("-nan", None),
    ]);
    for text in ["nan", "NaN"] {
        assert!(parse_double(text).is_some_and(f64::is_nan), "{text}");
    }
}

#[test]
fn formatted_double_matches_go() {
    for (value, expected) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (0.0, "0"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (100_000.0, "100000"),
        (999_999.5, "999999.5"),
        (1e6, "1e+06"),
        (1_234_567.5, "1.2345675e+06"),
        (-1_234_567.0, "-1.234567e+06"),
        (0.0001, "0.0001"),
        (0.000_123_45, "0.00012345"),
        (-1e-5, "-1e-05"),
        (1e100, "1e+100"),
        (5e-324, "5e-324"),
    ] {
        assert_eq!(format_double(value), expected);
    }
}
