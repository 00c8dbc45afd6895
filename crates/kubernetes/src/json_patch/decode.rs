//! Decodes the result of a JSON patch to a custom resource, like the API server.
//!
//! Source: apimachinery `pkg/runtime/serializer/json/json.go` (`Serializer.Decode`), `meta.go`
//! (`SimpleMetaFactory.Interpret`), `pkg/runtime/error.go` (`missingKindErr`).

use serde_json::Value;

use crate::go_json;

/// Checks that the API server can decode `document` as a custom resource, and returns it.
///
/// # Errors
/// Returns the API server's error message. A request with such a document fails with an internal error.
pub fn decoded(document: Value) -> Result<Value, String> {
    let unread = |value: &str, into: &str| {
        Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {value} into Go {into}"
        ))
    };
    let fields = match &document {
        Value::Object(fields) => Some(fields),
        Value::Null => None,
        _ => {
            return unread(
                "array",
                "value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                 \"json:\\\"kind,omitempty\\\"\" }",
            );
        }
    };
    let field = |name: &str| fields.and_then(|fields| fields.get(name));
    for name in ["apiVersion", "kind"] {
        let type_ = match field(name) {
            None | Some(Value::Null | Value::String(_)) => continue,
            Some(Value::Bool(_)) => "bool",
            Some(Value::Number(_)) => "number",
            Some(Value::Array(_)) => "array",
            Some(Value::Object(_)) => "object",
        };
        return unread(type_, &format!("struct field .{name} of type string"));
    }
    let text = |name| field(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    if text("kind").is_empty() {
        let data = go_json::to_text(&document);
        return Err(format!("Object 'Kind' is missing in '{data}'"));
    }
    Ok(document)
}
