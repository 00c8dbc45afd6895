//! Decodes a custom resource in a request like the API server. Checks the types of metadata fields, prunes unknown
//! fields and disallowed nulls, and sets defaults.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (`unstructuredSchemaCoercer.apply`),
//! `pkg/apiserver/schema/objectmeta/algorithm.go`.

use serde_json::Value as Json;

use super::outcome::shown;
use super::value::sorted;
use crate::defaulting;
use crate::object_meta::coerce_metadata;

/// Decodes `object`. `has_embedded` is true if the schema contains embedded resources.
///
/// # Errors
/// Returns the API server's error message if the object cannot be decoded.
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
        coerce_metadata(&mut read, Some(schema))?;
    }
    defaulting::complete_defaults(&mut read, schema);
    Ok(read)
}

/// Formats a value with its Go type, for messages such as `.kind accessor error: 1 is of the type int64`.
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

/// Formats a value like Go's `%v` verb.
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
