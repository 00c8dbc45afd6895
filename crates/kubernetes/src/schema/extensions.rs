//! The vendor extensions of schemas that decide about types, and how they are read.
//!
//! Source: apiserver `pkg/cel/openapi/extensions.go`, `pkg/cel/openapi/resolver/discovery.go`.

use serde_json::Value;

use super::Gvk;

/// `x-kubernetes-int-or-string`: the value is an integer or a string, whatever `type` says.
pub const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
/// `x-kubernetes-embedded-resource`: the value is an object of some kind, with its own metadata.
pub const EMBEDDED_RESOURCE: &str = "x-kubernetes-embedded-resource";
/// `x-kubernetes-preserve-unknown-fields`: the value may hold what the schema does not declare.
pub const PRESERVE_UNKNOWN_FIELDS: &str = "x-kubernetes-preserve-unknown-fields";
/// `x-kubernetes-group-version-kind`: the kinds that a schema of a document is the schema of, or the
/// kind of the objects in the requests of an operation.
pub const GROUP_VERSION_KIND: &str = "x-kubernetes-group-version-kind";
/// The format by which built-in types mark an integer or string.
pub const INT_OR_STRING_FORMAT: &str = "int-or-string";

/// The kinds that [`GROUP_VERSION_KIND`] lists; what is not a group, version and kind is left out.
#[must_use]
pub fn kinds(extension: &Value) -> Vec<Gvk> {
    extension
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(kind)
        .collect()
}

/// The kind that [`GROUP_VERSION_KIND`] of an operation names.
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
