//! Builds the OpenAPI document that the API server publishes for a version of a CRD. Contains only the keywords that
//! affect merges.
//!
//! Source: apiextensions-apiserver `pkg/controller/openapi/builder/builder.go` (`generateBuilder`, `buildKubeNative`,
//! `addEmbeddedProperties`); `pkg/apiserver/schema/kubeopenapi.go` (`ToKubeOpenAPI`).

use serde_json::{Map, Value, json};

use crate::schema::crd::{Crd, CrdVersion, MAX_JSON_DEPTH, META, OBJECT_META, is_shallower};
use crate::schema::extensions::{EMBEDDED_RESOURCE, GROUP_VERSION_KIND};
use crate::schema::{SchemaError, refs, structural};

/// The keywords that affect merges and whose values contain no schemas.
const KEPT: [&str; 9] = [
    "type",
    "format",
    "default",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-int-or-string",
    EMBEDDED_RESOURCE,
];

pub(super) fn document(crd: &Crd, version: &CrdVersion) -> Result<Value, SchemaError> {
    let mut schemas: Map<String, Value> = serde_json::from_str(META)
        .map_err(|error| SchemaError::Document(error.to_string().into()))?;
    let mut root = match version.schema.as_deref() {
        Some(written) if !is_shallower(written, MAX_JSON_DEPTH) => {
            return Err(SchemaError::Schema {
                name: format!("{}.{}", crd.plural, crd.group).into(),
                reason: format!("it nests deeper than {MAX_JSON_DEPTH} levels").into(),
            });
        }
        Some(Value::Object(written)) if structural::is_structural(written) => {
            let mut schema = published(written);
            add_type_and_object_meta(&mut schema);
            schema
        }
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    let kind = json!([{"group": crd.group, "version": version.name, "kind": crd.kind}]);
    root.insert(GROUP_VERSION_KIND.to_owned(), kind);
    schemas.insert("#".to_owned(), Value::Object(root));
    Ok(json!({"components": {"schemas": schemas}}))
}

/// Converts a schema in the CRD to the schema that the API server publishes.
fn published(written: &Map<String, Value>) -> Map<String, Value> {
    let part = |schema: &Value| match schema {
        Value::Object(schema) => Value::Object(published(schema)),
        other => other.clone(),
    };
    let mut schema = Map::new();
    for (keyword, value) in written {
        let value = match (keyword.as_str(), value) {
            (_, Value::Null) => continue,
            // The API server does not publish an empty list of keys.
            ("x-kubernetes-list-map-keys", Value::Array(keys)) if keys.is_empty() => continue,
            (kept, value) if KEPT.contains(&kept) => value.clone(),
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, property)| (name.clone(), part(property)))
                .collect(),
            ("items" | "additionalProperties", value) => part(value),
            _ => continue,
        };
        schema.insert(keyword.clone(), value);
    }
    if schema.get(EMBEDDED_RESOURCE) == Some(&Value::Bool(true)) {
        add_type_and_object_meta(&mut schema);
    }
    schema
}

fn add_type_and_object_meta(schema: &mut Map<String, Value>) {
    let properties = schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        let meta = json!({"$ref": format!("{}{OBJECT_META}", refs::PREFIX)});
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), meta);
    }
}
