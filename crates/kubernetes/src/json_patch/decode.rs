//! Decodes a patched custom resource like the API server.
//!
//! Source: apimachinery `pkg/runtime/serializer/json/json.go` (`Serializer.Decode`), `meta.go`
//! (`SimpleMetaFactory.Interpret`), `pkg/runtime/error.go` (`missingKindErr`).

use serde_json::Value;

use crate::go_json;

/// Returns `document` if the API server can decode it as a custom resource.
///
/// # Errors
/// Returns the API server's error message if `document` cannot be decoded. The API server then responds with an
/// internal error.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patched_object_needs_kind_and_valid_version() {
        let valid = json!({"apiVersion": "a/v1", "kind": "Box", "x": 1});
        assert_eq!(decoded(valid.clone()), Ok(valid));
        let without_version = json!({"kind": "Box", "apiVersion": null});
        assert_eq!(decoded(without_version.clone()), Ok(without_version));
        let unread = "couldn't get version/kind; json parse error: json: cannot unmarshal";
        for (document, expected) in [
            (
                json!([]),
                format!(
                    "{unread} array into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                     Kind string \"json:\\\"kind,omitempty\\\"\" }}"
                ),
            ),
            (
                json!({"kind": 1}),
                format!("{unread} number into Go struct field .kind of type string"),
            ),
            (
                json!({"kind": true}),
                format!("{unread} bool into Go struct field .kind of type string"),
            ),
            (
                json!({"kind": "Box", "apiVersion": []}),
                format!("{unread} array into Go struct field .apiVersion of type string"),
            ),
            (
                json!({"kind": "Box", "apiVersion": {}}),
                format!("{unread} object into Go struct field .apiVersion of type string"),
            ),
            (
                json!({"kind": "Box", "apiVersion": "a/b/c"}),
                "unexpected GroupVersion string: a/b/c".to_owned(),
            ),
            (
                json!({"kind": ""}),
                "Object 'Kind' is missing in '{\"kind\":\"\"}'".to_owned(),
            ),
            (json!(null), "Object 'Kind' is missing in 'null'".to_owned()),
        ] {
            assert_eq!(decoded(document.clone()), Err(expected), "{document}");
        }
    }
}
