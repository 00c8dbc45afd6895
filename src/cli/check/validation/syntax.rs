//! Formats of names, keys and values in Kubernetes.
//!
//! Lengths are counted in bytes.
//!
//! Source: `k8s.io/apimachinery` `pkg/api/validate/content` (`dns.go`, `kube.go`, `path.go`),
//! `pkg/util/validation/validation.go`.

use crate::library::format::validation as format;
use crate::schema::escape;

/// A format of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A name of an object: a DNS subdomain.
    ///
    /// Source: `NameIsDNSSubdomain`, `IsDNS1123Subdomain`.
    Subdomain,
    /// A DNS subdomain of at least three parts.
    ///
    /// Source: `IsFullyQualifiedName`.
    Domain,
    /// A DNS label that begins with a letter.
    ///
    /// Source: `IsDNS1035Label`.
    Label,
    /// An `apiVersion`.
    ///
    /// Source: `validation.go`, `validateParamKind`, `parseGroupVersion`.
    GroupVersion,
    /// A `kind`.
    ///
    /// Source: `validation.go`, `validateParamKind`; `IsDNS1035Label`.
    Kind,
    /// A key of a label: a name with an optional prefix of a DNS subdomain and a slash.
    ///
    /// Source: `IsLabelKey`.
    LabelKey,
    /// A key of an annotation: a key of a label, but case-insensitive.
    ///
    /// Source: `objectmeta.go`, `ValidateAnnotations`.
    AnnotationKey,
    /// The part of a label key after the slash.
    ///
    /// Source: `validation.go`, `validateAuditAnnotation`; `IsLabelKey`.
    KeyName,
    /// A value of a label.
    ///
    /// Source: `IsLabelValue`.
    LabelValue,
    /// A path segment. The name of an object of any kind must have this format.
    ///
    /// Source: `IsPathSegmentName`.
    PathSegment,
    /// A CEL identifier.
    ///
    /// Source: `validation.go`, `isCELIdentifier`.
    Identifier,
}

const MAX_SUBDOMAIN: usize = 253;
const MAX_LABEL: usize = 63;

const SUBDOMAIN: &str = "lower-case letters, digits, `-` and `.`, with a letter or digit at both ends of each part \
                         between dots";
const NAME: &str = "letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";

impl Form {
    /// Returns the requirement that the value violates, as a phrase that follows "must". `None` if the value has the
    /// format.
    pub(super) fn violated(self, text: &str) -> Option<String> {
        match self {
            Self::Subdomain => subdomain(text),
            Self::Domain => subdomain(text).or_else(|| {
                let n_parts = text.split('.').count();
                (n_parts < 3).then(|| "have at least three parts separated by dots".to_owned())
            }),
            Self::Label => (!is_dns_1035_label(text)).then(|| {
                let form = "lower-case letters, digits and `-`, starting with a letter and not ending in `-`";
                format!("consist of {form}, and have at most {MAX_LABEL} bytes")
            }),
            Self::GroupVersion => group_version(text),
            Self::Kind => kind(text),
            Self::LabelKey => label_key(text),
            Self::AnnotationKey => label_key(&lower(text)),
            Self::KeyName => key_name(text),
            Self::LabelValue => label_value(text),
            Self::PathSegment => match text {
                "." | ".." => Some("be neither `.` nor `..`".to_owned()),
                _ if text.contains(['/', '%']) => Some("have no `/` and no `%`".to_owned()),
                _ => None,
            },
            Self::Identifier => (!is_identifier(text)).then(|| {
                "be a CEL identifier: letters, digits and `_`, not starting with a digit, and not a reserved word".to_owned()
            }),
        }
    }

    /// Returns a string that is similar to the value and has the format. `None` if the value cannot be corrected, or is a
    /// placeholder.
    pub(super) fn meant(self, text: &str) -> Option<String> {
        if is_placeholder(text) || is_template(text) {
            return None;
        }
        let (is_allowed, filler, max): (fn(char) -> bool, char, usize) = match self {
            Self::Subdomain | Self::Domain => (
                |c| c.is_ascii_alphanumeric() || c == '.',
                '-',
                MAX_SUBDOMAIN,
            ),
            Self::Kind | Self::Label => (|c| c.is_ascii_alphanumeric(), '-', MAX_LABEL),
            Self::KeyName | Self::LabelValue | Self::LabelKey | Self::AnnotationKey => (
                |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'),
                '-',
                MAX_LABEL,
            ),
            Self::Identifier => (|c| c.is_ascii_alphanumeric(), '_', MAX_SUBDOMAIN),
            Self::GroupVersion | Self::PathSegment => return None,
        };
        if text.len() > max || !text.chars().any(|c| c.is_ascii_alphabetic()) {
            return None;
        }
        let is_lower = matches!(self, Self::Subdomain | Self::Domain | Self::Label);
        let written = |c: char| {
            let c = if is_lower { c.to_ascii_lowercase() } else { c };
            if is_allowed(c) { c } else { filler }
        };
        let keeps_slash = matches!(self, Self::LabelKey | Self::AnnotationKey);
        let parts: Vec<&str> = if keeps_slash {
            text.split('/').collect()
        } else {
            vec![text]
        };
        let meant = parts.iter().map(|part| {
            let written: String = part.chars().map(written).collect();
            written.trim_matches(['-', '_', '.']).to_owned()
        });
        let meant = meant.collect::<Vec<_>>().join("/");
        (meant != text && self.violated(&meant).is_none()).then_some(meant)
    }
}

/// Returns true if `text` contains a placeholder, such as `<NAME>`, `${NAME}` or `$(NAME)`.
pub(super) fn is_placeholder(text: &str) -> bool {
    const MARKS: [(&str, char); 3] = [("<", '>'), ("${", '}'), ("$(", ')')];
    MARKS.iter().any(|(open, close)| {
        let rest = text.split_once(open).map(|(_, rest)| rest);
        let name = rest.and_then(|rest| rest.split_once(*close));
        name.is_some_and(|(name, _)| name.contains(char::is_alphabetic))
    })
}

/// Returns true if `text` contains an expression of a template, such as `{{ .Release.Name }}`.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Converts a string to lower case character by character, as Go does.
///
/// Source: Go's `strings.ToLower`.
fn lower(text: &str) -> String {
    let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
    text.chars().map(lower).collect()
}

fn too_long(text: &str, max: usize) -> Option<String> {
    let n = text.len();
    (n > max).then(|| format!("have at most {max} bytes, but has {n}"))
}

fn subdomain(text: &str) -> Option<String> {
    let is_right = format::dns1123_subdomain(text.as_bytes()).is_empty();
    (!is_right).then(|| match too_long(text, MAX_SUBDOMAIN) {
        Some(requirement) if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) => requirement,
        _ => format!("consist of {SUBDOMAIN}, and have at most {MAX_SUBDOMAIN} bytes"),
    })
}

/// Splits an `apiVersion` into group and version. `None` if there are more parts.
///
/// Source: `validation.go`, `parseGroupVersion`.
pub(super) fn split_group_version(text: &str) -> Option<(&str, &str)> {
    match text.split_once('/') {
        None => Some(("", text)),
        Some(("", "")) => Some(("", "")),
        Some((_, version)) if version.contains('/') => None,
        Some(parts) => Some(parts),
    }
}

fn group_version(text: &str) -> Option<String> {
    let Some((group, version)) = split_group_version(text) else {
        return Some("be a version, or a group, a `/` and a version".to_owned());
    };
    if !group.is_empty()
        && let Some(requirement) = subdomain(group)
    {
        return Some(format!("have a valid group: it must {requirement}"));
    }
    if version.is_empty() {
        return Some("have a version after the `/`".to_owned());
    }
    (!is_dns_1035_label(version)).then(|| {
        "end in a version such as v1: lower-case letters, digits and `-`, starting with a letter"
            .to_owned()
    })
}

/// Source: `IsDNS1035Label`.
fn is_dns_1035_label(text: &str) -> bool {
    format::dns1035_label(text.as_bytes()).is_empty()
}

fn kind(text: &str) -> Option<String> {
    let requirement = || {
        let form = "letters, digits and `-`, starting with a letter and not ending in `-`";
        format!("consist of {form}, and have at most {MAX_LABEL} bytes")
    };
    (!is_dns_1035_label(&lower(text))).then(requirement)
}

fn key_name(text: &str) -> Option<String> {
    let is_right = !text.contains('/') && format::qualified_name(text.as_bytes()).is_empty();
    (!is_right).then(|| match too_long(text, MAX_LABEL) {
        Some(requirement) if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) => requirement,
        _ => format!("consist of {NAME}, and have at most {MAX_LABEL} bytes"),
    })
}

fn label_key(text: &str) -> Option<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, name)) if name.contains('/') => return Some("have at most one `/`".to_owned()),
        Some((prefix, name)) => (Some(prefix), name),
    };
    if let Some(requirement) = prefix.and_then(subdomain) {
        return Some(format!(
            "have a valid prefix before the `/`: it must {requirement}"
        ));
    }
    let requirement = key_name(name)?;
    Some(match prefix {
        Some(_) => format!("have a valid name after the `/`: it must {requirement}"),
        None => requirement,
    })
}

fn label_value(text: &str) -> Option<String> {
    let is_right = format::label_value(text.as_bytes()).is_empty();
    (!is_right).then(|| key_name(text)).flatten()
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    chars.next().is_some_and(is_first)
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !escape::is_reserved(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the strings in `right` have the format, and those in `wrong` do not.
    #[track_caller]
    fn check(form: Form, right: &[&str], wrong: &[&str]) {
        for text in right {
            assert_eq!(form.violated(text), None, "{form:?} {text:?}");
        }
        for text in wrong {
            assert!(form.violated(text).is_some(), "{form:?} {text:?}");
        }
    }

    #[test]
    fn violations_of_string_forms_agree_with_upstream() {
        let (n63, n64) = ("a".repeat(63), "a".repeat(64));
        let (n253, n254) = ("a".repeat(253), "a".repeat(254));
        check(
            Form::Subdomain,
            &["a", "0", "a-b", "a--b", "1.2", "a.b-c.d", &n64, &n253],
            &[
                "", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a.-b", "a/b", "é", "a\n", &n254,
            ],
        );
        check(
            Form::LabelKey,
            &[
                "a",
                "A_b.c-d",
                "example.com/Name",
                "0/0",
                &n63,
                &format!("{n253}/{n63}"),
            ],
            &[
                "",
                "/a",
                "a/",
                "a/b/c",
                "-a",
                "a_",
                "Example.com/a",
                "a b",
                &n64,
                &format!("{n254}/a"),
            ],
        );
        check(
            Form::AnnotationKey,
            &["Example.com/a", "ABC"],
            &["", "a_b/c", "a/b/c"],
        );
        check(Form::KeyName, &["a", "A.b"], &["", "a/b", "a!", &n64]);
        check(
            Form::LabelValue,
            &["", "a", "1", "A_b.c", &n63],
            &[" ", "a/b", "-a", &n64],
        );
        check(
            Form::PathSegment,
            &["", "...", "a b", "É", "*", &n254],
            &[".", "..", "a/b", "50%"],
        );
        check(
            Form::GroupVersion,
            &["v1", "apps/v1", "/v1", "a.b/v1beta1", "v"],
            &[
                "",
                "/",
                "apps/",
                "a/b/c",
                "Apps/v1",
                "apps/V1",
                "1",
                "apps/1",
                "example.com",
            ],
        );
        check(
            Form::Kind,
            &["ConfigMap", "a-b", "\u{212a}ind", &n63],
            &["", "1a", "Config Map", "a-", "a.b", "É", &n64],
        );
        check(
            Form::Identifier,
            &["a", "_", "A1_"],
            &["", "1a", "a-b", "in", "namespace", "é"],
        );
    }

    #[test]
    fn valid_string_similar_to_invalid_string_is_suggested() {
        for (form, text, meant) in [
            (Form::Subdomain, "My_Policy", Some("my-policy")),
            (Form::Subdomain, "{{ .Release.Name }}-x", None),
            (Form::LabelValue, "<NAME>", None),
            (Form::LabelValue, "<->", None),
            (Form::LabelValue, "$(NAME)-x", None),
            (Form::LabelValue, "$NAME", Some("NAME")),
            (Form::Subdomain, "é", None),
            (Form::LabelKey, "has space", Some("has-space")),
            (Form::LabelKey, "a/b/c", None),
            (Form::LabelValue, "bad!", Some("bad")),
            (Form::Identifier, "my-var", Some("my_var")),
            (Form::Identifier, "in", None),
            (Form::Kind, "Config Map", Some("Config-Map")),
        ] {
            assert_eq!(form.meant(text).as_deref(), meant, "{text}");
        }
    }
}
