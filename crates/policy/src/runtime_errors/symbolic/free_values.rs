//! Free values: values of a request that users can choose at will, or within a known format.
//!
//! A string field of a built-in kind that is not listed here may have an unknown format. The search generates no values
//! for it.

use serde_json::{Value as Json, json};

use super::SymbolicEvaluator;
use crate::runtime_errors::input_types::InputType;
use kubernetes::validity::{FieldPath, Root, Segment};

/// The required format of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringFormat {
    /// Any string.
    Any,
    /// A label value.
    Label,
    /// An object name.
    Name,
    /// A quantity of a resource, such as `500m`.
    Quantity,
}

/// A quantity that is not an integer. It is valid for all resources except huge pages.
pub(crate) const FRACTIONAL_QUANTITY: &str = "500m";

/// Fields of built-in kinds whose values are arbitrary strings, or lists of arbitrary strings.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`validateContainers`, `ValidateEnv`; neither
/// commands nor arguments have a format).
const FREE_FIELDS: [&str; 4] = ["image", "command", "args", "value"];

/// String fields of built-in kinds whose values must be object names.
const NAME_FIELDS: [&str; 5] = [
    "serviceAccountName",
    "priorityClassName",
    "claimName",
    "secretName",
    "host",
];

/// Fields of built-in kinds whose values must be maps of labels.
const LABEL_FIELDS: [&str; 2] = ["nodeSelector", "matchLabels"];

/// Numeric fields of built-in kinds whose values may be 0.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/apps/validation/validation.go`, `pkg/apis/batch/validation/validation.go`
/// (`ValidateNonnegativeField`).
const ZERO_FIELDS: [&str; 6] = [
    "replicas",
    "parallelism",
    "completions",
    "backoffLimit",
    "revisionHistoryLimit",
    "minReadySeconds",
];

impl SymbolicEvaluator<'_> {
    /// Returns true if the value at `path` may be 0, or an empty list or map.
    pub(crate) fn may_be_zero(&self, path: &FieldPath) -> bool {
        let Some(input_type) = self.input_type(path) else {
            return false;
        };
        if !matches!(path.root, Root::Object | Root::OldObject) || self.has_crd_rules(path) {
            return false;
        }
        if input_type.is_list() || input_type.is_map() {
            return true;
        }
        let name = match path.segments.last() {
            Some(Segment::Field(name)) => &**name,
            _ => return false,
        };
        input_type.is_number() && (!input_type.is_builtin() || ZERO_FIELDS.contains(&name))
    }

    /// Returns true if users can set the value at `path` either to an integer or to a string.
    pub(crate) fn is_int_or_string(&self, path: &FieldPath) -> bool {
        let input_type = self.input_type(path);
        matches!(path.root, Root::Object | Root::OldObject)
            && input_type.is_some_and(|input_type| input_type.is_int_or_string())
            && !self.has_crd_rules(path)
    }

    /// Returns true if `value` is a string and the value at `path` is a number, or the reverse.
    pub(crate) fn has_other_type(&self, path: &FieldPath, value: &Json) -> bool {
        let Some(input_type) = self.input_type(path) else {
            return false;
        };
        value.is_string() && input_type.is_number()
            || value.is_number() && (input_type.is_string() || input_type.is_quantity())
    }

    pub(crate) fn may_be_null(&self, path: &FieldPath) -> bool {
        let is_null = |input_type: InputType<'_>| input_type.may_be_null(path);
        self.input_type(path).is_some_and(is_null) && !self.has_crd_rules(path)
    }

    /// Returns true if the value at `path` is a number that may be an `int` or a `double` in CEL.
    pub(crate) fn may_be_int_or_double(&self, path: &FieldPath) -> bool {
        let is_number =
            |input_type: InputType<'_>| input_type.is_double() && !input_type.is_builtin();
        let is_of_object = matches!(path.root, Root::Object | Root::OldObject);
        is_of_object && self.input_type(path).is_some_and(is_number) && !self.has_crd_rules(path)
    }

    /// Returns true if users can choose the string at `path`, at will or within a known format.
    pub(crate) fn is_free_string(&self, path: &FieldPath) -> bool {
        self.string_format(path).is_some()
    }

    /// Returns true if `text` is valid at `path`. False if users cannot choose the string at `path`.
    pub(crate) fn accepts(&self, path: &FieldPath, text: &str) -> bool {
        self.string_format(path).is_some_and(|format| match format {
            StringFormat::Any => true,
            StringFormat::Label => {
                text.is_empty() || text.len() <= 63 && is_label_or_name(text, true)
            }
            StringFormat::Quantity => text == FRACTIONAL_QUANTITY,
            StringFormat::Name => {
                text.len() <= 63 && text.split('.').all(|part| is_label_or_name(part, false))
            }
        })
    }

    fn string_format(&self, path: &FieldPath) -> Option<StringFormat> {
        let input_type = self.input_type(path)?;
        let fields = path.names();
        match (path.root, &*fields) {
            (Root::Request, ["userInfo", "username" | "groups" | "extra", ..]) => {
                return Some(StringFormat::Any);
            }
            (Root::Request, ["name"]) => return Some(StringFormat::Name),
            (Root::Params | Root::Request | Root::Authorizer, _) => return None,
            (_, [.., "metadata", "annotations", _]) => return Some(StringFormat::Any),
            (_, [.., "metadata", "labels", _]) => return Some(StringFormat::Label),
            (_, ["metadata", "name"]) => return Some(StringFormat::Name),
            (Root::Namespace, _) | (_, ["metadata" | "status", ..]) => return None,
            (Root::Object | Root::OldObject, _) => {}
        }
        if let [.., "requests" | "limits", resource] = &*fields
            && input_type.is_quantity()
            && !resource.starts_with("hugepages-")
        {
            return Some(StringFormat::Quantity);
        }
        if !input_type.is_unrestricted_string() {
            return None;
        }
        if !input_type.is_builtin() {
            return (!self.has_crd_rules(path)).then_some(StringFormat::Any);
        }
        let is_map_of_texts = self.is_in_config_map(path);
        match &*fields {
            ["data", _] if is_map_of_texts => Some(StringFormat::Any),
            [.., field] if FREE_FIELDS.contains(field) => Some(StringFormat::Any),
            [.., field] if NAME_FIELDS.contains(field) => Some(StringFormat::Name),
            [.., field, _] if LABEL_FIELDS.contains(field) => Some(StringFormat::Label),
            _ => None,
        }
    }

    fn is_in_config_map(&self, path: &FieldPath) -> bool {
        let root = self.input_type(&FieldPath::new(path.root));
        root.is_some_and(|root| root.builtin_kind() == Some("ConfigMap"))
    }

    /// Returns true if a CRD has validation rules for the value at `path` or for one of its ancestors.
    fn has_crd_rules(&self, path: &FieldPath) -> bool {
        let mut next = Some(path.clone());
        while let Some(path) = next {
            let has_rules = |path| {
                self.input_type(path)
                    .is_some_and(|input_type| input_type.has_rules())
            };
            if has_rules(&path) {
                return true;
            }
            next = path.parent();
        }
        false
    }
}

/// Returns a string and an integer that are valid at `path`. For a port, these are a name and a number. Otherwise,
/// these are a percentage and 1.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/apps/validation/validation.go` (`ValidatePositiveIntOrPercent`),
/// `pkg/apis/core/validation/validation.go` (`ValidatePortNumOrName`).
pub(crate) fn sample_int_and_string(path: &FieldPath) -> [Json; 2] {
    if matches!(path.names().last(), Some(&("port" | "targetPort"))) {
        [json!("http"), json!(80)]
    } else {
        [json!("25%"), json!(1)]
    }
}

/// Returns true if `text` consists of characters that are valid in a label value if `is_label`, and in a DNS label
/// otherwise.
fn is_label_or_name(text: &str, is_label: bool) -> bool {
    let is_end = |c: char| {
        c.is_ascii_digit() || c.is_ascii_lowercase() || is_label && c.is_ascii_uppercase()
    };
    let is_inner = |c: char| is_end(c) || c == '-' || is_label && matches!(c, '_' | '.');
    text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_or_name_with_wrong_characters_is_rejected() {
        for (text, is_label, is_name) in [
            ("example", true, true),
            ("a-b", true, true),
            ("a_B", true, false),
            ("a-", false, false),
            ("", false, false),
            ("a b", false, false),
        ] {
            assert_eq!(is_label_or_name(text, true), is_label, "{text}");
            assert_eq!(is_label_or_name(text, false), is_name, "{text}");
        }
    }
}
