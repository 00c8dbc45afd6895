//! Validates names, labels, UUIDs, dates and other strings like apimachinery and strfmt.
//!
//! Most functions return upstream's error messages, or an empty list if the input is valid.
//!
//! Source: k8s.io/apimachinery `pkg/api/validate/content` (`dns.go`, `kube.go`, `errors.go`),
//! `pkg/util/validation/validation.go`, `pkg/api/validation/generic.go`; k8s.io/kube-openapi
//! `pkg/validation/strfmt` (`default.go`, `date.go`, `time.go`).

use cel::temporal::{TimestampError, parse_timestamp};

/// The maximum length of a DNS label, and of the name and value of a Kubernetes label, in bytes.
const MAX_LABEL_LEN: usize = 63;

/// The maximum length of a DNS name, in bytes.
const MAX_SUBDOMAIN_LEN: usize = 253;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// The unit in the messages of older versions. It is incorrect, because the limit is in bytes.
const CHARACTERS: &str = "characters";
const BYTES: &str = "bytes";
/// The subject of the error message for an invalid label key.
const LABEL_KEY: &str = "a valid label key";

/// Converts a message of this module to the wording of versions before 1.35.
///
/// Source: apimachinery 0.34 `pkg/util/validation/validation.go`, `MaxLenError`, `IsQualifiedName`.
#[must_use]
pub fn with_older_wording(message: &str) -> String {
    message
        .replace(BYTES, CHARACTERS)
        .replace(LABEL_KEY, "a qualified name")
}

fn push_if_too_long(messages: &mut Vec<String>, text: &[u8], max: usize, unit: &str) {
    if text.len() > max {
        messages.push(format!("must be no more than {max} {unit}"));
    }
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Returns true if all bytes satisfy `is_inner`, and the first and last byte also satisfy `is_end`.
fn has_form(text: &[u8], is_inner: fn(u8) -> bool, is_end: fn(u8) -> bool) -> bool {
    text.first().is_some_and(|byte| is_end(*byte))
        && text.last().is_some_and(|byte| is_end(*byte))
        && text.iter().all(|byte| is_inner(*byte))
}

fn is_label(text: &[u8]) -> bool {
    let is_inner = |byte| is_lower_alphanumeric(byte) || byte == b'-';
    has_form(text, is_inner, is_lower_alphanumeric)
}

fn is_subdomain(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'.').all(is_label)
}

/// Validates a string as an RFC 1123 label.
#[must_use]
pub fn dns1123_label(text: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    push_if_too_long(&mut messages, text, MAX_LABEL_LEN, CHARACTERS);
    if is_label(text) {
        return messages;
    }
    messages.push(if is_subdomain(text) {
        "must not contain dots".to_owned()
    } else {
        format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
             regex used for validation is '{LABEL_PATTERN}')"
        )
    });
    messages
}

/// Validates a string as an RFC 1123 subdomain: labels separated by dots.
#[must_use]
pub fn dns1123_subdomain(text: &[u8]) -> Vec<String> {
    subdomain(text, CHARACTERS)
}

fn subdomain(text: &[u8], unit: &str) -> Vec<String> {
    let mut messages = Vec::new();
    push_if_too_long(&mut messages, text, MAX_SUBDOMAIN_LEN, unit);
    if !is_subdomain(text) {
        messages.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
             or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
             regex used for validation is '{LABEL_PATTERN}(\\.{LABEL_PATTERN})*')"
        ));
    }
    messages
}

/// Validates a string as an RFC 1035 label.
#[must_use]
pub fn dns1035_label(text: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    push_if_too_long(&mut messages, text, MAX_LABEL_LEN, CHARACTERS);
    let begins_with_letter = text.first().is_some_and(u8::is_ascii_lowercase);
    if !begins_with_letter || !is_label(text) {
        messages.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
             an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
             'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    messages
}

/// Replaces a trailing `-` and the character before it with `a`. The prefix of a generated name is validated after this
/// replacement.
///
/// Source: k8s.io/apimachinery `pkg/api/validation/generic.go`, `maskTrailingDash`.
#[must_use]
pub fn without_trailing_dash(text: &[u8]) -> Vec<u8> {
    match text {
        [kept @ .., _, b'-'] => [kept, b"a"].concat(),
        _ => text.to_vec(),
    }
}

fn is_key_name(text: &[u8]) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    has_form(text, is_inner, |byte| byte.is_ascii_alphanumeric())
}

const KEY_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                        with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
                        regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Validates a string as a label key: a name with an optional domain prefix.
///
/// Source: k8s.io/apimachinery `pkg/api/validate/content/kube.go`, `IsLabelKey`.
#[must_use]
pub fn qualified_name(text: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    let mut parts = text.split(|byte| *byte == b'/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else {
                let of_prefix = subdomain(prefix, BYTES);
                messages.extend(
                    of_prefix
                        .iter()
                        .map(|message| format!("prefix part {message}")),
                );
            }
            name
        }
        (Some(name), None, _) => name,
        _ => {
            return vec![format!(
                "{LABEL_KEY} {KEY_NAME} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    }
    if name.len() > MAX_LABEL_LEN {
        messages.push(format!(
            "name part must be no more than {MAX_LABEL_LEN} bytes"
        ));
    }
    if !is_key_name(name) {
        messages.push(format!("name part {KEY_NAME}"));
    }
    messages
}

/// Validates a string as the value of a label.
///
/// Source: k8s.io/apimachinery `pkg/api/validate/content/kube.go`, `IsLabelValue`.
#[must_use]
pub fn label_value(text: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    push_if_too_long(&mut messages, text, MAX_LABEL_LEN, BYTES);
    if !text.is_empty() && !is_key_name(text) {
        messages.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    messages
}

/// Returns true if the string is a UUID, with or without dashes.
///
/// Source: k8s.io/kube-openapi `pkg/validation/strfmt/default.go`, `UUIDPattern`.
#[must_use]
pub fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (n, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if n > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        match rest.split_at_checked(len) {
            Some((digits, after)) if digits.iter().all(u8::is_ascii_hexdigit) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Returns true if the string is padded base64 and not empty.
///
/// Source: k8s.io/kube-openapi `pkg/internal/third_party/govalidator/patterns.go`, `Base64`.
#[must_use]
pub fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('='));
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    !text.is_empty() && text.len().is_multiple_of(4) && digits.unwrap_or(text).bytes().all(is_digit)
}

/// Returns true if the string is a date such as `2024-02-29`.
///
/// Source: k8s.io/kube-openapi `pkg/validation/strfmt/date.go`, `IsDate`.
#[must_use]
pub fn is_date(text: &str) -> bool {
    // The year 0 is valid in a date, although a CEL timestamp cannot have this year.
    text.len() == "2024-02-29".len()
        && parse_timestamp(&format!("{text}T00:00:00Z")) != Err(TimestampError::Malformed)
}

/// Returns true if the string is a date and a time. Everything after a second `T` is ignored, as in upstream.
///
/// Source: k8s.io/kube-openapi `pkg/validation/strfmt/time.go`, `IsDateTime`.
#[must_use]
pub fn is_date_time(text: &str) -> bool {
    let lower: String = text
        .chars()
        .map(|c| c.to_lowercase().next().unwrap_or(c))
        .collect();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// Source: k8s.io/kube-openapi `pkg/validation/strfmt/time.go`, `DateTimePattern`.
fn is_time(text: &str) -> bool {
    let number = |text: &str| -> Option<u8> {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok())?
    };
    let (Some(clock), Some(rest)) = (text.get(.."00:00:00".len()), text.get("00:00:00".len()..))
    else {
        return false;
    };
    let parts: Option<Vec<u8>> = clock.split(':').map(number).collect();
    if !matches!(parts.as_deref(), Some([0..=23, 0..=59, 0..=59])) {
        return false;
    }
    let is_zone = |zone: &str| {
        let offset = zone.strip_prefix(['+', '-']);
        let offset = offset.and_then(|offset| offset.split_once(':'));
        zone == "z" || offset.is_some_and(|(h, m)| number(h).is_some() && number(m).is_some())
    };
    // The dot in upstream's regular expression is unescaped, so any character may precede the fraction of a second.
    let mut after = rest.chars();
    let fraction = after.next().filter(|c| *c != '\n').map(|_| after.as_str());
    let zone = fraction.map(|fraction| fraction.trim_start_matches(|c: char| c.is_ascii_digit()));
    let has_digits = fraction != zone;
    is_zone(rest) || has_digits && zone.is_some_and(is_zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_labels_and_subdomains_are_validated() {
        let is_valid = |text: &str| dns1123_label(text.as_bytes()).is_empty();
        assert!(is_valid("a") && is_valid("0a-b-9"));
        assert!(!is_valid("-a") && !is_valid("a-") && !is_valid("A") && !is_valid(""));
        assert_eq!(dns1123_label(b"a.b"), ["must not contain dots"]);
        let long = "a".repeat(64);
        assert_eq!(
            dns1123_label(long.as_bytes()),
            ["must be no more than 63 characters"]
        );
        assert_eq!(dns1123_label(format!("{long}_").as_bytes()).len(), 2);
        assert!(dns1035_label(b"a1").is_empty() && !dns1035_label(b"1a").is_empty());
        assert!(dns1123_subdomain(b"a.0.b-c").is_empty());
        assert!(!dns1123_subdomain(b"a..b").is_empty());
    }

    #[test]
    fn name_validation_messages_agree_with_upstream() {
        assert_eq!(
            dns1123_label(b"_"),
            [
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
              must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
              used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            ]
        );
        assert_eq!(
            qualified_name(b"/"),
            [
                "prefix part must be non-empty".to_owned(),
                "name part must be non-empty".to_owned(),
                format!("name part {KEY_NAME}"),
            ]
        );
    }

    #[test]
    fn qualified_name_and_label_value_report_each_error() {
        for key in [
            "a",
            "A.b_c-9",
            "example.com/My_Name.x",
            "kubernetes.io/metadata.name",
        ] {
            assert_eq!(qualified_name(key.as_bytes()), Vec::<String>::new());
        }
        let long = "a".repeat(64);
        let subdomain = "prefix part a lowercase RFC 1123 subdomain must consist of";
        for (key, starts) in [
            ("a/b/c", vec!["a valid label key must consist of"]),
            ("/a", vec!["prefix part must be non-empty"]),
            ("-x/a", vec![subdomain]),
            ("A/b", vec![subdomain]),
            ("a..b/c", vec![subdomain]),
            (
                "a/",
                vec!["name part must be non-empty", "name part must consist of"],
            ),
            (&*long, vec!["name part must be no more than 63 bytes"]),
            ("a\n", vec!["name part must consist of"]),
        ] {
            let errors = qualified_name(key.as_bytes());
            assert_eq!(errors.len(), starts.len(), "{key}: {errors:?}");
            for (error, start) in errors.iter().zip(starts) {
                assert!(error.starts_with(start), "{key}: {error}");
            }
        }
        assert!(label_value(b"").is_empty() && label_value(b"A_b.c-9").is_empty());
        assert_eq!(label_value(b"-a").len(), 1);
        assert_eq!(label_value(b"a b").len(), 1);
        assert_eq!(label_value("-".repeat(64).as_bytes()).len(), 2);
    }

    #[test]
    fn trailing_dash_and_character_before_it_are_replaced() {
        assert_eq!(without_trailing_dash(b"ab-"), b"aa");
        assert_eq!(without_trailing_dash(b"--"), b"a");
        assert_eq!(without_trailing_dash(b"-"), b"-");
        assert_eq!(without_trailing_dash(b"ab"), b"ab");
    }

    #[test]
    fn uuids_base64_and_dates_agree_with_strfmt() {
        assert!(is_uuid("01234567-89ab-CDEF-0123-456789abcdef"));
        assert!(is_uuid("0123456789abcdef0123-456789abcdef"));
        assert!(!is_uuid("01234567-89ab-cdef-0123-456789abcdeg") && !is_uuid("01234567"));
        assert!(is_base64("YQ==") && is_base64("YWI=") && is_base64("YWJj"));
        assert!(!is_base64("") && !is_base64("YQ=") && !is_base64("Y===") && !is_base64("YW=j"));
        assert!(is_date("2024-02-29") && is_date("0000-01-01"));
        assert!(!is_date("2023-02-29") && !is_date("2024-2-29") && !is_date("2024-02-29T"));
        assert!(
            is_date_time("2024-02-29t23:59:59z") && is_date_time("2024-02-29T23:59:59x5+99:99")
        );
        assert!(is_date_time("2024-02-29T00:00:00Zthe rest does not matter"));
        assert!(!is_date_time("2024-02-29T24:00:00Z") && !is_date_time("2024-02-29T00:00:00"));
        assert!(!is_date_time("2024-02-29T00:00:00.Z") && !is_date_time("2024-02-29"));
    }
}
