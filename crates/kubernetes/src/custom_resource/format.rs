//! String formats that the API server enforces.
//!
//! Dashes in format names have no effect: `credit-card` is the same format as `creditcard`.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/validation/formats.go` (`supportedVersionedFormats`); kube-openapi
//! `pkg/validation/strfmt` (`default.go`, `kubernetes-extensions.go`, `bson.go`, `date.go`, `time.go`, `duration.go`),
//! `pkg/internal/third_party/govalidator`.

use regexp::MemoryLimit;

use super::mail;
use crate::library::format::validation;
use crate::library::{net, url};
use crate::typed_values::is_duration;

#[derive(Clone, Copy)]
pub(super) struct Format {
    is_valid: Check,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Format").finish_non_exhaustive()
    }
}

/// A function that returns true if a string has the format.
type Check = fn(&str) -> bool;

const FORMATS: &[(&str, Check)] = &[
    ("bsonobjectid", is_object_id),
    ("uri", |text| url::parse_request_uri(text).is_ok()),
    ("email", mail::is_address),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && is_sloppy_address(text)),
    ("ipv6", |text| text.contains(':') && is_address(text)),
    ("cidr", is_sloppy_network),
    ("mac", is_mac),
    ("uuid", validation::is_uuid),
    ("uuid3", |text| {
        validation::is_uuid(text) && uuid_digits(text).get(12) == Some(&b'3')
    }),
    ("uuid4", |text| is_uuid_of(text, b'4')),
    ("uuid5", |text| is_uuid_of(text, b'5')),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("creditcard", is_credit_card),
    ("ssn", is_ssn),
    ("hexcolor", is_hex_color),
    ("rgbcolor", is_rgb_color),
    ("byte", validation::is_base64),
    ("password", |_| true),
    ("date", validation::is_date),
    ("duration", is_duration),
    ("datetime", |text| {
        text.len() >= 4 && validation::is_date_time(text)
    }),
    ("k8sshortname", is_short_name),
    ("k8slongname", is_long_name),
];

impl Format {
    /// Returns the format called `name`. Returns `None` if the API server ignores the format.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.replace('-', "");
        let (_, is_valid) = FORMATS.iter().find(|(known, _)| *known == name)?;
        Some(Self {
            is_valid: *is_valid,
        })
    }

    pub(super) fn is_valid(self, text: &str) -> bool {
        (self.is_valid)(text)
    }
}

/// Returns the formats that the API server supports for the schema type `type_`. Their names have no dashes.
pub(super) fn supported(type_: &str) -> Vec<&'static str> {
    match type_ {
        "" | "string" => FORMATS.iter().map(|(name, _)| *name).collect(),
        "integer" => vec!["int32", "int64"],
        "number" => vec!["float", "double"],
        _ => Vec::new(),
    }
}

/// Returns true if the API server supports the format `name` for the schema type `type_`.
pub(super) fn is_supported(type_: &str, name: &str) -> bool {
    match type_ {
        "" | "string" => Format::named(name).is_some(),
        _ => supported(type_).contains(&name),
    }
}

/// Returns true if the string matches `pattern`, a constant in this module.
fn matches(pattern: &str, text: &str) -> bool {
    let program = regexp::Program::cached(pattern).ok();
    program.is_some_and(|program| program.is_match(text, &MemoryLimit) == Ok(true))
}

/// Source: kube-openapi `pkg/validation/strfmt/bson/objectid.go`, `ObjectIDFromHex`.
fn is_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Source: kube-openapi `pkg/validation/strfmt/default.go`, `IsHostname`.
fn is_hostname(text: &str) -> bool {
    const START: &str = r"[a-zA-Z0-9\p{S}\p{L}]";
    let pattern = format!(
        r"^({START}((-?{START}{{0,62}})?)|({START}(([a-zA-Z0-9-\p{{S}}\p{{L}}]{{0,61}}{START})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    );
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && matches(&pattern, text)
}

/// Source: Go `net/ip.go`, `ParseIP`.
fn is_address(text: &str) -> bool {
    net::parse_address(text.as_bytes()).is_ok_and(|address| !address.has_zone)
}

/// Returns true if the string is an IP address. Accepts leading zeros in numbers, which Go's current parser rejects.
///
/// Source: `k8s.io/utils` `internal/third_party/forked/golang/net/ip.go`, `ParseIP`, `parseIPv4`, `parseIPv6`.
fn is_sloppy_address(text: &str) -> bool {
    match text.find(['.', ':']).and_then(|at| text.get(at..)) {
        Some(rest) if rest.starts_with('.') => is_sloppy_ipv4(text),
        Some(_) => match text.rsplit_once(':') {
            // An IPv6 address may end in an IPv4 address.
            Some((before, last)) if last.contains('.') => {
                is_sloppy_ipv4(last) && is_address(&without_zeros(&format!("{before}:1.2.3.4")))
            }
            _ => is_address(&without_zeros(text)),
        },
        None => false,
    }
}

/// Removes leading zeros from IPv6 groups with more than four digits, because Go's current parser rejects such groups.
fn without_zeros(text: &str) -> String {
    let shortened = |group: &str| {
        let digits = group.trim_start_matches('0');
        match group.len() {
            0..=4 => group.to_owned(),
            _ if digits.is_empty() => "0".to_owned(),
            _ => digits.to_owned(),
        }
    };
    let groups: Vec<String> = text.split(':').map(shortened).collect();
    groups.join(":")
}

fn is_sloppy_ipv4(text: &str) -> bool {
    let is_number = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && digits.len() <= 3
            && digits.parse::<u16>().unwrap_or_default() <= 255
    };
    text.split('.').count() == 4 && text.split('.').all(is_number)
}

/// Source: `k8s.io/utils` `internal/third_party/forked/golang/net/ip.go`, `ParseCIDR`.
fn is_sloppy_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let is_v4 = is_sloppy_ipv4(address);
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let digits = bits.trim_start_matches('0');
    let max = if is_v4 { 32 } else { 128 };
    (is_v4 || address.contains(':') && is_sloppy_address(address))
        && is_number
        && digits.len() <= 3
        && digits.parse::<u16>().unwrap_or_default() <= max
}

/// Source: Go `net/mac.go`, `ParseMAC`.
fn is_mac(text: &str) -> bool {
    let group = |separator: char, width: usize| {
        let n_bytes = text.split(separator).count().saturating_mul(width) / 2;
        [6, 8, 20].contains(&n_bytes)
            && text.split(separator).all(|part| {
                part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    };
    group(':', 2) || group('-', 2) || group('.', 4)
}

fn uuid_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| *byte != b'-').collect()
}

/// Source: kube-openapi `pkg/validation/strfmt/default.go`, `UUID4Pattern`, `UUID5Pattern`.
fn is_uuid_of(text: &str, version: u8) -> bool {
    let digits = uuid_digits(text);
    let variant = digits.get(16).map(u8::to_ascii_lowercase);
    validation::is_uuid(text)
        && digits.get(12) == Some(&version)
        && variant.is_some_and(|variant| b"89ab".contains(&variant))
}

fn without_spaces_and_dashes(text: &str) -> String {
    let is_kept = |c: &char| !matches!(c, ' ' | '\t' | '\n' | '\u{c}' | '\r' | '-');
    text.chars().filter(is_kept).collect()
}

fn digit(byte: u8) -> u32 {
    u32::from(byte.saturating_sub(b'0'))
}

fn is_isbn10(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let [digits @ .., last] = text.as_bytes() else {
        return false;
    };
    if digits.len() != 9
        || !digits.iter().all(u8::is_ascii_digit)
        || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let last = if *last == b'X' { 10 } else { digit(*last) };
    let weighted = digits.iter().zip(1_u32..);
    let sum: u32 = weighted
        .map(|(byte, weight)| digit(*byte).saturating_mul(weight))
        .sum();
    sum.saturating_add(last.saturating_mul(10))
        .is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let [digits @ .., last] = text.as_bytes() else {
        return false;
    };
    if digits.len() != 12 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let weighted = digits.iter().zip([1_u32, 3].into_iter().cycle());
    let sum: u32 = weighted
        .map(|(byte, weight)| digit(*byte).saturating_mul(weight))
        .sum();
    sum.saturating_add(digit(*last)).is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    const PATTERN: &str = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$";
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !matches(PATTERN, &digits) {
        return false;
    }
    let doubled = [false, true].into_iter().cycle();
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip(doubled)
        .map(|(byte, is_doubled)| match digit(byte) {
            digit if !is_doubled => digit,
            digit if digit < 5 => digit.saturating_mul(2),
            digit => digit.saturating_mul(2).saturating_sub(9),
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_ssn(text: &str) -> bool {
    text.len() == 11 && matches(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$", text)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    [3, 6].contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_rgb_color(text: &str) -> bool {
    const NUMBER: &str = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
    matches(&format!(r"^rgb\({NUMBER},{NUMBER},{NUMBER}\)$"), text)
}

fn is_short_name(text: &str) -> bool {
    // A DNS subdomain that has no dots and at most 63 bytes is a DNS label.
    text.len() <= 63 && !text.contains('.') && is_long_name(text)
}

fn is_long_name(text: &str) -> bool {
    validation::dns1123_subdomain(text.as_bytes()).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, valid: &[&str], invalid: &[&str]) {
        let format = Format::named(format).unwrap();
        for text in valid {
            assert!(format.is_valid(text), "{text}");
        }
        for text in invalid {
            assert!(!format.is_valid(text), "{text}");
        }
    }

    #[test]
    fn formats_accept_valid_and_reject_invalid_strings() {
        check(
            "ipv4",
            &["1.2.3.4", "01.2.3.004", "::1.2.3.4"],
            &["1.2.3", "1.2.3.256", "", "::1", "a.b.c.d"],
        );
        check(
            "ipv6",
            &["::1", "::ffff:1.2.3.4"],
            &["1.2.3.4", "fe80::1%eth0", "::01.2.3.4"],
        );
        check(
            "cidr",
            &["10.0.0.0/8", "010.0.0.0/008", "::/0"],
            &["10.0.0.0", "10.0.0.0/33", "::/129", "x/1", "::/"],
        );
        check(
            "mac",
            &["00:00:5e:00:53:01", "0000.5e00.5301", "00-00-5e-00-53-01"],
            &["00:00:5e:00:53", "00:00:5e:00:53:0g", ""],
        );
        check(
            "isbn",
            &["3836221195", "978-3-8362-2119-1", "3 401 01319 X"],
            &["3836221196", "foo", ""],
        );
        check(
            "credit-card",
            &["4220-8554-2622-2389"],
            &["4220855426213389", ""],
        );
        check("ssn", &["111-22-3333"], &["111223333", "111-22-333a"]);
        check(
            "rgbcolor",
            &["rgb(0,  31, 255)"],
            &["rgb(1,349,275)", "rgba(0,31,255)"],
        );
        check(
            "hostname",
            &["example.com", "a", "a-", "a.bc"],
            &["host-1", "-a", "a..b", "a_b", ""],
        );
        check(
            "uuid4",
            &["f47ac10b-58cc-4372-a567-0e02b2c3d479"],
            &["f47ac10b-58cc-3372-a567-0e02b2c3d479"],
        );
        check("k8s-short-name", &["a-b"], &["a.b", "A", ""]);
        assert!(Format::named("int32").is_none());
    }

    #[test]
    fn formats_of_identifiers_follow_upstream() {
        check(
            "bsonobjectid",
            &["507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"],
            &[
                "507f1f77bcf86cd79943901",
                "507f1f77bcf86cd7994390111",
                "507f1f77bcf86cd79943901g",
            ],
        );
        check("uri", &["http://a/b?c=d", "/a"], &["a", "", "http://[::1"]);
        check("email", &["a@example.com"], &["a", "@example.com"]);
        let uuid = |version: char, variant: char| {
            format!("f47ac10b-58cc-{version}372-{variant}567-0e02b2c3d479")
        };
        check(
            "uuid",
            &[&uuid('4', 'a'), &uuid('0', '0')],
            &["f47ac10b", "", "g47ac10b-58cc-4372-a567-0e02b2c3d479"],
        );
        check(
            "uuid3",
            &[&uuid('3', 'a'), &uuid('3', 'f')],
            &[&uuid('4', 'a'), "3"],
        );
        check(
            "uuid4",
            &[&uuid('4', '8'), &uuid('4', 'B')],
            &[&uuid('5', '8'), &uuid('4', '7'), &uuid('4', 'c')],
        );
        check(
            "uuid5",
            &[&uuid('5', '9'), &uuid('5', 'A')],
            &[&uuid('4', '9'), &uuid('5', '1')],
        );
        check(
            "isbn10",
            &["3836221195", "340101319X"],
            &[
                "383622119X",
                "383622119",
                "38362211955",
                "X836221195",
                "978-3-8362-2119-1",
            ],
        );
        check(
            "isbn13",
            &["9783836221191", "978 3836221191"],
            &[
                "9783836221190",
                "978383622119",
                "97838362211911",
                "978383622119X",
                "3836221195",
            ],
        );
        check(
            "creditcard",
            &[
                "4111111111111111",
                "5500000000000004",
                "340000000000009",
                "30000000000004",
                "6011000000000004",
            ],
            &[
                "4111111111111112",
                "5500000000000005",
                "411111111111111",
                "x",
            ],
        );
    }

    #[test]
    fn formats_of_numbers_colors_and_addresses_follow_upstream() {
        check(
            "ssn",
            &["111 22 3333", "111-22 3333"],
            &["111-22-33333", "a11-22-3333"],
        );
        check(
            "hexcolor",
            &["#fff", "#FFFFFF", "fff", "012def"],
            &["#ff", "#ffff", "#ggg", "##fff", ""],
        );
        check(
            "rgbcolor",
            &["rgb(255,249,0)", "rgb( 1 , 99 , 199 )"],
            &["rgb(256,0,0)", "rgb(01,0,0)", "rgb(1,2)"],
        );
        check("byte", &["aGk=", "aGkh"], &["aGk", "a*==", "a"]);
        check("password", &["", "x y"], &[]);
        check(
            "date",
            &["2001-12-31", "2000-02-29"],
            &["2001-02-29", "2001-1-1", ""],
        );
        check("duration", &["1h", "3 days", "5ms"], &["x", "1"]);
        check(
            "date-time",
            &["2001-12-14T21:59:43Z", "2001-12-14T21:59:43.1+01:00"],
            &["2001-12-14", "", "x"],
        );
        check("k8s-long-name", &["a-b", "a.b"], &["A", "a..b", "", "a_b"]);
        let label = "a".repeat(63);
        check("k8s-short-name", &[&label], &[&format!("{label}a"), "-a"]);
        check(
            "mac",
            &["00:00:5e:00:53:01:02:03"],
            &[
                "00:00:5e:00:53:01:02",
                "0000.5e00.530",
                "000:00:5e:00:53:01",
            ],
        );
        check(
            "cidr",
            &["1.2.3.4/32", "::/128", "::/0128"],
            &["1.2.3.4/-1", "1.2.3.4/1a", "1.2.3/8", "::1.2.3.4.5/8"],
        );
        check(
            "ipv4",
            &["255.255.255.255", "0.0.0.0"],
            &["1.2.3.4.5", "1.2..4", "1.2.3.1000", "1.2.3.a"],
        );
        check(
            "ipv6",
            &["1:2:3:4:5:6:7:8"],
            &["1:2:3:4:5:6:7", "12345::", ""],
        );
        let label = "a".repeat(62);
        check(
            "hostname",
            &["a.example.com", &label],
            &["a.", ".a", &format!("{label}aa"), "a.b"],
        );
    }
}
