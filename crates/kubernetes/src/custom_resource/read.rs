//! A custom resource as the API server reads it from a request: metadata of its type, without unknown fields and nulls
//! that are not allowed, with defaults.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (`unstructuredSchemaCoercer.apply`),
//! `pkg/apiserver/schema/objectmeta/algorithm.go`.

use serde_json::Value as Json;

use super::embedded::is_embedded;
use super::object_meta;
use super::outcome::shown;
use super::value::sorted;
use crate::defaulting;
use crate::validation_rules::path::Path;
use crate::validation_rules::{FieldError, FieldErrorKind};

/// Reads `object`, whose schema is `schema`, in which there are resources if `has_embedded`.
///
/// # Errors
/// Why it cannot be read, in the API server's words.
pub(super) fn read(object: &Json, schema: &Json, has_embedded: bool) -> Result<Json, String> {
    let mut read = object.clone();
    for name in ["kind", "apiVersion"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
            return Err(format!(
                ".{name} accessor error: {}, expected string",
                type_text(value)
            ));
        }
    }
    coerce_metadata(&mut read, None)?;
    defaulting::prune_unknown(&mut read, schema);
    if has_embedded {
        coerce(&mut read, schema, &Path::ROOT).map_err(|error| error.to_string())?;
    }
    defaulting::complete_defaults(&mut read, schema);
    Ok(read)
}

/// Reads the metadata of an object by their Go type, and those of the resources in it, if its schema is given: empty
/// fields and unknown ones go.
///
/// # Errors
/// Why they cannot be read, in the API server's words.
pub fn coerce_metadata(object: &mut Json, schema: Option<&Json>) -> Result<(), String> {
    if let Some(metadata) = object.get_mut("metadata") {
        *metadata = object_meta::read(metadata)?;
    }
    match schema {
        Some(schema) => coerce(object, schema, &Path::ROOT).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// A value and its Go type, as errors of accessors tell them.
pub(super) fn type_text(value: &Json) -> String {
    let (text, type_) = match value {
        Json::Null => ("<nil>".to_owned(), "<nil>"),
        Json::Bool(value) => (value.to_string(), "bool"),
        Json::Number(number) if number.is_i64() => (shown(value), "int64"),
        Json::Number(_) => (shown(value), "float64"),
        Json::String(text) => (text.clone(), "string"),
        Json::Array(_) => (plain(value), "[]interface {}"),
        Json::Object(_) => (plain(value), "map[string]interface {}"),
    };
    format!("{text} is of the type {type_}")
}

/// A value as Go's `%v` writes it.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => "<nil>".to_owned(),
        Json::String(text) => text.clone(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Json::Object(fields) => {
            let fields = sorted(fields).into_iter();
            let fields: Vec<String> = fields
                .map(|(name, field)| format!("{name}:{}", plain(field)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => shown(scalar),
    }
}

/// Reads the metadata of embedded resources.
fn coerce(value: &mut Json, schema: &Json, path: &Path<'_>) -> Result<(), FieldError> {
    match value {
        Json::Object(fields) => {
            let is_resource = is_embedded(schema);
            let mut names: Vec<String> = fields.keys().cloned().collect();
            names.sort_unstable();
            let properties = schema.get("properties").and_then(Json::as_object);
            let values = schema
                .get("additionalProperties")
                .filter(|values| values.is_object());
            for name in &names {
                let Some(field) = fields.get_mut(name) else {
                    continue;
                };
                if is_resource {
                    coerce_field(name, field, &path.field(name))?;
                }
                let property = properties.and_then(|properties| properties.get(name));
                if let Some(property) = property {
                    coerce(field, property, &path.field(name))?;
                } else if let Some(values) = values {
                    coerce(field, values, &path.key(name))?;
                }
            }
        }
        Json::Array(items) => {
            if let Some(inner) = schema.get("items").filter(|items| items.is_object()) {
                for (n, item) in items.iter_mut().enumerate() {
                    coerce(item, inner, &path.index(n))?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_field(name: &str, field: &mut Json, path: &Path<'_>) -> Result<(), FieldError> {
    let detail = match name {
        "apiVersion" | "kind" if !field.is_string() => "must be a string".to_owned(),
        "metadata" => match object_meta::read(field) {
            Ok(read) => {
                *field = read;
                return Ok(());
            }
            Err(detail) => detail,
        },
        _ => return Ok(()),
    };
    Err(FieldError {
        kind: FieldErrorKind::Invalid,
        field: path.text(),
        value: Some(shown(field)),
        detail,
    })
}
