//! Finds formats that the API server ignores in CRD schemas.

use serde_json::Value as Json;

use super::format::{is_supported, supported};
use crate::validation_rules::{PathStep, each_schema_of};

/// Maximum number of reported formats.
const MAX_IGNORED: usize = 50;

/// A format that the API server ignores in a CRD schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredFormat {
    /// The path to the format in the CRD document.
    pub place: Vec<PathStep>,
    /// The same path, in the notation of the API server's messages.
    pub field: String,
    /// The name of the format.
    pub name: String,
    /// The formats of the same type that the API server supports.
    pub supported: Vec<&'static str>,
}

/// Returns the ignored formats in the schemas of a CRD. The API server warns about them when the CRD is created.
///
/// Source: apiextensions-apiserver `pkg/apiserver/validation/formats.go`, `GetUnrecognizedFormats`.
#[must_use]
pub fn ignored_formats(definition: &Json) -> Vec<IgnoredFormat> {
    let mut ignored = Vec::new();
    each_schema_of(definition, &mut |schema, path| {
        let text = |key: &str| schema.get(key).and_then(Json::as_str);
        let name = text("format").unwrap_or_default();
        let type_ = text("type").unwrap_or_default();
        if !name.is_empty() && !is_supported(type_, name) {
            let path = path.field("format");
            ignored.push(IgnoredFormat {
                place: path.steps(),
                field: path.text(),
                name: name.to_owned(),
                supported: supported(type_),
            });
        }
        ignored.len() < MAX_IGNORED
    });
    ignored
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_formats_and_formats_of_unsuitable_types_are_ignored() {
        let properties = json!({
            "a": {"type": "string", "format": "duraton"},
            "b": {"type": "string", "format": "date-time"},
            "c": {"type": "integer", "format": "int32"},
            "d": {"type": "array", "items": {"type": "integer", "format": "date"}},
            "e": {"type": "number", "format": "double"},
            "f": {"type": "object", "format": "uri"},
        });
        let schema = json!({"type": "object", "properties": properties});
        let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
        let ignored = ignored_formats(&json!({"spec": {"versions": [version]}}));
        let names: Vec<&str> = ignored.iter().map(|format| &*format.name).collect();
        assert_eq!(names, ["duraton", "date", "uri"]);
    }
}
