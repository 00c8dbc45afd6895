//! Faults of the keys and values of labels, in apimachinery's words.
//!
//! Source: apimachinery `pkg/api/validate/content/kube.go`, `dns.go`, `errors.go`.

const LABEL_KEY_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                                 with an alphanumeric character";
const LABEL_VALUE_FORMAT: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const LABEL_VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', \
                                   '_' or '.', and must start and end with an alphanumeric character";
const SUBDOMAIN_FORMAT: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                                 '-' or '.', and must start and end with an alphanumeric character";

/// The most bytes of the name in a label's key, and of its value.
///
/// Source: `labelKeyMaxLength`, `LabelValueMaxLength`.
const MAX_LENGTH: usize = 63;

/// The most bytes of a subdomain.
///
/// Source: `DNS1123SubdomainMaxLength`.
const SUBDOMAIN_MAX_LENGTH: usize = 253;

/// The faults of the key of a label; empty where it has none.
pub(super) fn label_key_errors(key: &str) -> Vec<String> {
    let format_error = || {
        let examples = ["MyName", "my.name", "123-abc"];
        regex_error(LABEL_KEY_MESSAGE, LABEL_KEY_FORMAT, &examples)
    };
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            let found = format_error();
            let hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {found} {hint}")];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let found = subdomain_errors(prefix);
            errors.extend(
                found
                    .into_iter()
                    .map(|error| format!("prefix part {error}")),
            );
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LENGTH {
        errors.push(format!("name part {}", max_length_error(MAX_LENGTH)));
    }
    if !is_name(name) {
        errors.push(format!("name part {}", format_error()));
    }
    errors
}

/// The faults of the value of a label; empty where it has none.
pub(super) fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > MAX_LENGTH {
        errors.push(max_length_error(MAX_LENGTH));
    }
    if !value.is_empty() && !is_name(value) {
        let examples = ["MyValue", "my_value", "12345"];
        errors.push(regex_error(
            LABEL_VALUE_MESSAGE,
            LABEL_VALUE_FORMAT,
            &examples,
        ));
    }
    errors
}

fn subdomain_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_MAX_LENGTH {
        errors.push(max_length_error(SUBDOMAIN_MAX_LENGTH));
    }
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| is_framed(label, is_inner, |byte| is_inner(byte) || byte == b'-');
    if !value.split('.').all(is_label) {
        errors.push(regex_error(
            SUBDOMAIN_MESSAGE,
            SUBDOMAIN_FORMAT,
            &["example.com"],
        ));
    }
    errors
}

/// Reports whether `text` has the form of the name in a label's key.
fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    is_framed(text, |byte| byte.is_ascii_alphanumeric(), is_inner)
}

/// Reports whether the first and last byte are `outer`, and all between them `inner`.
fn is_framed(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|first| outer(*first))
        && bytes.last().is_some_and(|last| outer(*last))
        && bytes.iter().all(|byte| inner(*byte) || outer(*byte))
}

fn max_length_error(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

fn regex_error(message: &str, format: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|e| format!("'{e}', ")).collect();
    let examples = examples.join(" or ");
    format!("{message} (e.g. {examples}regex used for validation is '{format}')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_have_a_subdomain_before_the_name() {
        for key in [
            "a",
            "A.b_c-9",
            "example.com/x",
            "kubernetes.io/metadata.name",
        ] {
            assert_eq!(label_key_errors(key), Vec::<String>::new(), "{key}");
        }
        let long = "a".repeat(64);
        for (key, starts) in [
            ("a/b/c", vec!["a valid label key must consist of"]),
            ("/a", vec!["prefix part must be non-empty"]),
            (
                "-x/a",
                vec!["prefix part a lowercase RFC 1123 subdomain must consist of"],
            ),
            (
                "a..b/c",
                vec!["prefix part a lowercase RFC 1123 subdomain must consist of"],
            ),
            (
                "a/",
                vec!["name part must be non-empty", "name part must consist of"],
            ),
            (&*long, vec!["name part must be no more than 63 bytes"]),
            ("a\n", vec!["name part must consist of"]),
        ] {
            let errors = label_key_errors(key);
            assert_eq!(errors.len(), starts.len(), "{key}: {errors:?}");
            for (error, start) in errors.iter().zip(starts) {
                assert!(error.starts_with(start), "{key}: {error}");
            }
        }
    }

    #[test]
    fn values_may_be_empty() {
        assert!(label_value_errors("").is_empty());
        assert!(label_value_errors("a.b").is_empty());
        assert_eq!(label_value_errors("a b").len(), 1);
        assert_eq!(label_value_errors(&"-".repeat(64)).len(), 2);
    }
}
