//! Decodes `metadata` into Go's `ObjectMeta`. Unknown fields are pruned. A field of the wrong type is an error.
//!
//! Differs: for an invalid time, upstream's error also quotes the part of the time that cannot be parsed.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/{algorithm,coerce}.go`
//! (`GetObjectMetaWithOptions`); apimachinery `pkg/apis/meta/v1/types.go` (`ObjectMeta`); `sigs.k8s.io/json`.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use crate::go_json;
use crate::validation_rules::path::Path;
use crate::validation_rules::{FieldError, FieldErrorKind, shown};
use cel::temporal::parse_timestamp;
use cel::value::go_quote;

/// The Go type of a metadata field.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// A string type with this name in Go, such as `types.UID`.
    Text(&'static str),
    /// `int64`.
    Int,
    /// `bool`.
    Bool,
    /// `metav1.Time`.
    Time,
    /// A map of strings.
    Texts,
    /// A list of strings.
    List,
    /// A list of structs, with the name of the Go struct and its fields.
    Structs(&'static str, &'static [Field]),
    /// Any JSON value, which is not changed.
    Raw,
}

/// The name and type of a struct field.
pub type Field = (&'static str, Type);

const STRING: Type = Type::Text("string");
const UID: Type = Type::Text("types.UID");

const OWNER: &[Field] = &[
    ("apiVersion", STRING),
    ("blockOwnerDeletion", Type::Bool),
    ("controller", Type::Bool),
    ("kind", STRING),
    ("name", STRING),
    ("uid", UID),
];

const MANAGED: &[Field] = &[
    ("apiVersion", STRING),
    ("fieldsType", STRING),
    ("fieldsV1", Type::Raw),
    ("manager", STRING),
    ("operation", Type::Text("v1.ManagedFieldsOperationType")),
    ("subresource", STRING),
    ("time", Type::Time),
];

/// The fields of Go's `ObjectMeta`.
pub const METADATA: &[Field] = &[
    ("annotations", Type::Texts),
    ("creationTimestamp", Type::Time),
    ("deletionGracePeriodSeconds", Type::Int),
    ("deletionTimestamp", Type::Time),
    ("finalizers", Type::List),
    ("generateName", STRING),
    ("generation", Type::Int),
    ("labels", Type::Texts),
    (
        "managedFields",
        Type::Structs("ManagedFieldsEntry", MANAGED),
    ),
    ("name", STRING),
    ("namespace", STRING),
    ("ownerReferences", Type::Structs("OwnerReference", OWNER)),
    ("resourceVersion", STRING),
    ("selfLink", STRING),
    ("uid", UID),
];

/// Decodes `metadata` into Go's `ObjectMeta`.
///
/// # Errors
/// Returns Go's error message if a field has the wrong type.
fn read(metadata: &Json) -> Result<Json, String> {
    let fields = match metadata {
        Json::Null => return Ok(Json::Object(Map::new())),
        Json::Object(fields) => fields,
        other => {
            let actual = kind(other);
            return Err(format!(
                "json: cannot unmarshal {actual} into Go value of type v1.ObjectMeta"
            ));
        }
    };
    let read = read_struct(fields, METADATA, "ObjectMeta", None)?;
    Ok(Json::Object(read))
}

/// Decodes the metadata of `object`. If `schema` is set, also decodes the metadata of embedded resources.
///
/// Unknown fields and empty fields are pruned.
///
/// # Errors
/// Returns the API server's error message if the metadata cannot be decoded.
pub fn coerce_metadata(object: &mut Json, schema: Option<&Json>) -> Result<(), String> {
    if let Some(metadata) = object.get_mut("metadata") {
        *metadata = read(metadata)?;
    }
    match schema {
        Some(schema) => coerce(object, schema, &Path::ROOT).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Decodes the metadata of all resources embedded in `value`.
fn coerce(value: &mut Json, schema: &Json, path: &Path<'_>) -> Result<(), FieldError> {
    match value {
        Json::Object(fields) => {
            let is_resource =
                schema.get("x-kubernetes-embedded-resource") == Some(&Json::Bool(true));
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
        "metadata" => match read(field) {
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

/// A field path in an error message, such as `ownerReferences.uid`.
struct Place<'a> {
    around: Option<&'a Place<'a>>,
    name: &'static str,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(around) = self.around {
            write!(f, "{around}.")?;
        }
        f.write_str(self.name)
    }
}

/// Returns the name that Go's error messages use for the JSON type of a value.
fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn read_struct(
    given: &Map<String, Json>,
    declared: &'static [Field],
    type_name: &str,
    path: Option<&Place<'_>>,
) -> Result<Map<String, Json>, String> {
    let mut read = Map::new();
    for (name, type_) in declared {
        let Some(value) = given.get(*name).filter(|value| !value.is_null()) else {
            continue;
        };
        let field = read_value(value, *type_, type_name, &Place { around: path, name })?;
        let is_empty = match &field {
            Json::String(text) => text.is_empty(),
            Json::Array(items) => items.is_empty(),
            Json::Object(fields) => fields.is_empty() && !matches!(type_, Type::Raw),
            Json::Number(number) => number.as_i64() == Some(0) && *name == "generation",
            _ => false,
        };
        if !is_empty {
            read.insert((*name).to_owned(), field);
        }
    }
    Ok(read)
}

fn read_value(
    value: &Json,
    type_: Type,
    type_name: &str,
    path: &Place<'_>,
) -> Result<Json, String> {
    let wrong = |value: &Json, expected: &str| {
        let actual = kind(value);
        let place = format!("Go struct field {type_name}.{path} of type {expected}");
        Err(format!("json: cannot unmarshal {actual} into {place}"))
    };
    let text = |value: &Json, expected: &str| match value {
        Json::Null => Ok(Json::String(String::new())),
        Json::String(_) => Ok(value.clone()),
        other => wrong(other, expected),
    };
    match (type_, value) {
        (Type::Raw, _) | (Type::Bool, Json::Bool(_)) => Ok(value.clone()),
        (Type::Text(expected), _) => text(value, expected),
        (Type::Bool, _) => wrong(value, "bool"),
        (Type::Int, Json::Number(number)) if number.is_i64() => Ok(value.clone()),
        (Type::Int, Json::Number(number)) => {
            let written = go_json::number_text(number);
            // Go encodes the double `3.0` as `3`, and can decode this as an integer.
            match written.parse::<i64>() {
                Ok(whole) => Ok(whole.into()),
                Err(_) => Err(format!(
                    "json: cannot unmarshal number {written} into Go struct field {type_name}.{path} of type int64"
                )),
            }
        }
        (Type::Int, _) => wrong(value, "int64"),
        (Type::Time, Json::String(time)) => match parse_timestamp(time) {
            // Go encodes times in UTC, without fractions of a second.
            Ok(time) => Ok(Timestamp::from_second(time.seconds)
                .map_or_else(|_| value.clone(), |time| time.to_string().into())),
            Err(_) => Err(format!(
                "parsing time {} as \"2006-01-02T15:04:05Z07:00\"",
                go_quote(time)
            )),
        },
        (Type::Time, _) => wrong(value, "string"),
        (Type::Texts, Json::Object(fields)) => {
            let read = fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), text(value, "string")?)));
            Ok(Json::Object(read.collect::<Result<_, String>>()?))
        }
        (Type::Texts, _) => wrong(value, "map[string]string"),
        (Type::List, Json::Array(items)) => {
            let read = items.iter().map(|item| text(item, "string"));
            Ok(Json::Array(read.collect::<Result<_, String>>()?))
        }
        (Type::List, _) => wrong(value, "[]string"),
        (Type::Structs(name, declared), Json::Array(items)) => {
            let read = items.iter().map(|item| match item {
                Json::Null => Ok(Json::Object(Map::new())),
                Json::Object(fields) => Ok(Json::Object(read_struct(
                    fields,
                    declared,
                    name,
                    Some(path),
                )?)),
                other => wrong(other, &format!("v1.{name}")),
            });
            Ok(Json::Array(read.collect::<Result<_, String>>()?))
        }
        (Type::Structs(name, _), _) => wrong(value, &format!("[]v1.{name}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(metadata: &Json) -> Result<Json, String> {
        let mut object = json!({"metadata": metadata, "spec": {}});
        coerce_metadata(&mut object, None).map(|()| object["metadata"].clone())
    }

    #[test]
    fn metadata_of_right_type_is_pruned() {
        for (given, expected) in [
            (json!(null), json!({})),
            (json!({}), json!({})),
            (json!({"name": "a", "x": 1}), json!({"name": "a"})),
            (
                json!({"name": null, "uid": "", "labels": {}, "finalizers": []}),
                json!({}),
            ),
            (json!({"generation": 0}), json!({})),
            (json!({"generation": 5.0}), json!({"generation": 5})),
            (
                json!({"deletionGracePeriodSeconds": 0}),
                json!({"deletionGracePeriodSeconds": 0}),
            ),
            (
                json!({"labels": {"a": "b", "c": null}}),
                json!({"labels": {"a": "b", "c": ""}}),
            ),
            (
                json!({"finalizers": ["a", null]}),
                json!({"finalizers": ["a", ""]}),
            ),
            (
                json!({"creationTimestamp": "2001-01-01T01:00:00.5+01:00"}),
                json!({"creationTimestamp": "2001-01-01T00:00:00Z"}),
            ),
            (
                json!({"ownerReferences": [{"controller": true, "x": 1, "uid": "u"}, null]}),
                json!({"ownerReferences": [{"controller": true, "uid": "u"}, {}]}),
            ),
            (
                json!({"managedFields": [{"fieldsV1": {}, "operation": "Apply"}]}),
                json!({"managedFields": [{"fieldsV1": {}, "operation": "Apply"}]}),
            ),
        ] {
            assert_eq!(coerced(&given), Ok(expected), "{given}");
        }
        let mut object = json!({"spec": {}});
        assert_eq!(coerce_metadata(&mut object, None), Ok(()));
        assert_eq!(object, json!({"spec": {}}));
    }

    #[test]
    fn metadata_of_wrong_type_is_an_error() {
        let value = "json: cannot unmarshal";
        assert_eq!(
            coerced(&json!([])),
            Err(format!("{value} array into Go value of type v1.ObjectMeta"))
        );
        for (given, actual, field, type_) in [
            (json!({"name": 1}), "number", "ObjectMeta.name", "string"),
            (json!({"uid": true}), "bool", "ObjectMeta.uid", "types.UID"),
            (
                json!({"labels": []}),
                "array",
                "ObjectMeta.labels",
                "map[string]string",
            ),
            (
                json!({"labels": {"a": 1}}),
                "number",
                "ObjectMeta.labels",
                "string",
            ),
            (
                json!({"finalizers": "a"}),
                "string",
                "ObjectMeta.finalizers",
                "[]string",
            ),
            (
                json!({"finalizers": [{}]}),
                "object",
                "ObjectMeta.finalizers",
                "string",
            ),
            (
                json!({"generation": "1"}),
                "string",
                "ObjectMeta.generation",
                "int64",
            ),
            (
                json!({"generation": 1.5}),
                "number 1.5",
                "ObjectMeta.generation",
                "int64",
            ),
            (
                json!({"creationTimestamp": 5}),
                "number",
                "ObjectMeta.creationTimestamp",
                "string",
            ),
            (
                json!({"ownerReferences": {}}),
                "object",
                "ObjectMeta.ownerReferences",
                "[]v1.OwnerReference",
            ),
            (
                json!({"ownerReferences": [1]}),
                "number",
                "ObjectMeta.ownerReferences",
                "v1.OwnerReference",
            ),
            (
                json!({"ownerReferences": [{"controller": "yes"}]}),
                "string",
                "OwnerReference.ownerReferences.controller",
                "bool",
            ),
            (
                json!({"managedFields": [{"operation": 1}]}),
                "number",
                "ManagedFieldsEntry.managedFields.operation",
                "v1.ManagedFieldsOperationType",
            ),
        ] {
            let expected = format!("{value} {actual} into Go struct field {field} of type {type_}");
            assert_eq!(coerced(&given), Err(expected), "{given}");
        }
        assert_eq!(
            coerced(&json!({"deletionTimestamp": "today"})),
            Err("parsing time \"today\" as \"2006-01-02T15:04:05Z07:00\"".to_owned())
        );
    }

    #[test]
    fn metadata_of_embedded_resources_is_coerced() {
        let resource = json!({"type": "object", "x-kubernetes-embedded-resource": true});
        let schema = json!({"properties": {
            "one": resource, "plain": {"type": "object"},
            "many": {"items": resource}, "map": {"additionalProperties": resource},
        }});
        let coerced = |object: Json| {
            let mut object = object;
            coerce_metadata(&mut object, Some(&schema)).map(|()| object)
        };
        let given = json!({"metadata": {"x": 1}});
        let pruned = json!({"metadata": {}});
        assert_eq!(
            coerced(json!({"one": given, "plain": given, "many": [given], "map": {"a": given}})),
            Ok(json!({"one": pruned, "plain": given, "many": [pruned], "map": {"a": pruned}}))
        );
        for (object, expected) in [
            (
                json!({"one": {"kind": 1}}),
                "one.kind: Invalid value: 1: must be a string",
            ),
            (
                json!({"many": [{}, {"apiVersion": true}]}),
                "many[1].apiVersion: Invalid value: true: must be a string",
            ),
            (
                json!({"map": {"a": {"metadata": "m"}}}),
                "map[a].metadata: Invalid value: \"m\": json: cannot unmarshal string into Go value of type \
                 v1.ObjectMeta",
            ),
        ] {
            assert_eq!(coerced(object), Err(expected.to_owned()));
        }
        assert!(coerced(json!({"plain": {"kind": 1}, "one": {"kind": "A", "x": 1}})).is_ok());
    }
}
