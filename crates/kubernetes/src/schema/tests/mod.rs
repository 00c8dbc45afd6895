//! Tests of schema conversion with synthetic schemas. `tests/schema_*.rs` use real documents.

#![expect(
    clippy::needless_pass_by_value,
    reason = "callers pass schema literals"
)]

mod convert;
mod crd;
mod documents;
mod evaluated;
mod hostile;
mod resolver;
mod rest_mapper;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{DeclField, DeclKind, DeclType, Gvk, Interner, OpenApiDocument, SchemaError};
use cel::types::{FieldTypes, Type};

/// Returns the type of the kind `Test` in a document that contains its schema `schema` and the schemas `others`.
fn decl_type(schema: Value, others: &[(&str, Value)]) -> Result<Arc<DeclType>, SchemaError> {
    let gvk = Gvk::new("example.com", "v1", "Test");
    document(schema, others).decl_type(&gvk)
}

/// Creates a document that contains `schema` as the schema of the kind `Test`, and the schemas `others`.
fn document(mut schema: Value, others: &[(&str, Value)]) -> OpenApiDocument {
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": "example.com", "version": "v1", "kind": "Test"}]);
    let mut schemas = json!({"test": schema});
    for (name, other) in others {
        schemas[name] = other.clone();
    }
    let document = json!({"openapi": "3.0.0", "components": {"schemas": schemas}});
    OpenApiDocument::parse(document.to_string().as_bytes()).unwrap()
}

/// Returns the CEL type at `path` in objects of `type_`. The path is a list of field names separated by dots. `[]`
/// denotes an element of a list or map.
fn select(type_: &Arc<DeclType>, path: &str) -> Option<Type> {
    select_from(type_.cel_type("Test#"), path)
}

/// Returns the CEL type at `path` in values of the type `selected`.
fn select_from(mut selected: Type, path: &str) -> Option<Type> {
    for step in path.split('.').filter(|step| !step.is_empty()) {
        selected = match (selected, step) {
            (Type::List(elem), "[]") => (*elem).clone(),
            (Type::Map(entry), "[]") => entry.1.clone(),
            (Type::Struct(object), field) => object
                .fields
                .as_ref()
                .unwrap()
                .field_type(&object.name, field)?,
            (other, step) => panic!("type {other} has no element {step}"),
        };
    }
    Some(selected)
}

/// Asserts the name of the CEL type at `path`, or `undefined` if there is no such field.
#[track_caller]
fn check(type_: &Arc<DeclType>, path: &str, expected: &str) {
    let type_ = select(type_, path).map_or_else(|| "undefined".into(), |type_| type_.to_string());
    assert_eq!(type_, expected, "{path}");
}
