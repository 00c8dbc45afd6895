//! Validates embedded resources (`x-kubernetes-embedded-resource`).
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/validation.go`.

use serde_json::{Map, Value as Json};

use super::metadata::{Errors, Metadata, path_segment};
use super::outcome::shown;
use super::value::sorted;
use crate::library::format::validation;
use crate::schema::GroupVersion;
use crate::validation_rules::path::Path;
use crate::validation_rules::{FieldError, FieldErrorKind};
use crate::version::Behavior;

pub(super) fn is_embedded(schema: &Json) -> bool {
    schema.get("x-kubernetes-embedded-resource") == Some(&Json::Bool(true))
}

pub(super) fn validate(
    schema: &Json,
    data: &Json,
    path: &Path<'_>,
    behavior: Behavior,
    errors: &mut Vec<FieldError>,
) {
    match data {
        Json::Object(fields) => {
            if is_embedded(schema) {
                resource(fields, path, behavior, errors);
            }
            let properties = schema.get("properties").and_then(Json::as_object);
            let values = schema
                .get("additionalProperties")
                .filter(|values| values.is_object());
            for (name, field) in sorted(fields) {
                let property = properties.and_then(|properties| properties.get(name));
                if let Some(property) = property {
                    validate(property, field, &path.field(name), behavior, errors);
                } else if let Some(values) = values {
                    validate(values, field, &path.key(name), behavior, errors);
                }
            }
        }
        Json::Array(items) => {
            if let Some(inner) = schema.get("items").filter(|items| items.is_object()) {
                for (n, item) in items.iter().enumerate() {
                    validate(inner, item, &path.index(n), behavior, errors);
                }
            }
        }
        _ => {}
    }
}

fn resource(
    fields: &Map<String, Json>,
    path: &Path<'_>,
    behavior: Behavior,
    errors: &mut Vec<FieldError>,
) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError {
                kind: FieldErrorKind::Required,
                field: path.field(name).text(),
                value: None,
                detail: String::new(),
            });
        }
    }
    let mut invalid = |name: &str, value: &Json, detail: String| {
        errors.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.field(name).text(),
            value: Some(shown(value)),
            detail,
        });
    };
    if let Some(value) = fields.get("apiVersion") {
        match value.as_str() {
            None => invalid("apiVersion", value, "must be a string".into()),
            Some("") => invalid("apiVersion", value, "must not be empty".into()),
            Some(text) if GroupVersion::split_valid(text).is_none() => {
                invalid(
                    "apiVersion",
                    value,
                    format!("unexpected GroupVersion string: {text}"),
                );
            }
            Some(_) => {}
        }
    }
    if let Some(value) = fields.get("kind") {
        match value.as_str() {
            None => invalid("kind", value, "must be a string".into()),
            Some("") => invalid("kind", value, "must not be empty".into()),
            Some(text) => {
                let lower: String = text
                    .chars()
                    .map(|c| c.to_lowercase().next().unwrap_or(c))
                    .collect();
                let messages = validation::dns1035_label(lower.as_bytes());
                if !messages.is_empty() {
                    let messages = messages.join(",");
                    let detail =
                        format!("may have mixed case, but should otherwise match: {messages}");
                    invalid("kind", value, detail);
                }
            }
        }
    }
    if let Some(Json::Object(metadata)) = fields.get("metadata") {
        let mut metadata = metadata.clone();
        if Metadata(Some(&metadata)).text("name").is_empty() {
            metadata.insert("name".to_owned(), "fakename".into());
        }
        let metadata = Metadata(Some(&metadata));
        let is_namespaced = !metadata.text("namespace").is_empty();
        let path = path.field("metadata");
        let mut errors = Errors::new(behavior, errors);
        errors.validate_object(metadata, is_namespaced, path_segment, &path);
    }
}
