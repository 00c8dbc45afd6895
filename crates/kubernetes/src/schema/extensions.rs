//! The vendor extensions of OpenAPI schemas that affect types.
//!
//! Source: apiserver `pkg/cel/openapi/extensions.go`, `pkg/cel/openapi/resolver/discovery.go`.

use serde_json::Value;

use super::Gvk;

/// `x-kubernetes-int-or-string`: the value is an integer or a string, regardless of `type`.
pub const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// `x-kubernetes-embedded-resource`: the value is an object with its own kind and metadata.
pub const EMBEDDED_RESOURCE: &str = "x-kubernetes-embedded-resource";
/// `x-kubernetes-preserve-unknown-fields`: the value may have undeclared fields.
pub const PRESERVE_UNKNOWN_FIELDS: &str = "x-kubernetes-preserve-unknown-fields";
/// `x-kubernetes-group-version-kind`: the kinds that a schema describes, or the kind of the objects in an operation's
/// requests.
pub const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
/// The `format` of a field whose value is an integer or a string, in the schemas of built-in kinds.
pub const INT_OR_STRING_FORMAT: &str = "int-or-string";

/// Returns the kinds in a schema's [`GROUP_VERSION_KIND`]. Skips invalid entries.
#[must_use]
pub fn kinds(extension: &Value) -> Vec<Gvk> {
    extension
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(kind)
        .collect()
}

/// Returns the kind in an operation's [`GROUP_VERSION_KIND`]. Returns `None` if the value is invalid.
#[must_use]
pub fn kind(extension: &Value) -> Option<Gvk> {
    let text = |key: &str| match extension.get(key) {
        None | Some(Value::Null) => Some(""),
        Some(value) => value.as_str(),
    };
    Some(Gvk::new(
        text("group")?,
        text("version")?,
        text("kind").filter(|kind| !kind.is_empty())?,
    ))
}
