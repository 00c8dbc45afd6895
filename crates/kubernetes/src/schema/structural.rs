//! Checks whether the schema of a CustomResourceDefinition is structural.
//!
//! If a schema is not structural, the API server publishes an object without declared fields. New CRDs must have
//! structural schemas, but old clusters may still contain other schemas.
//!
//! The check operates on JSON. Keywords with a value of the wrong type are ignored, because no API server stores such a
//! schema.
//!
//! Differs: patterns are not checked. The API server checks patterns when a CRD is created.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/convert.go` (`NewStructural`),
//! `pkg/apiserver/schema/validation.go` (`ValidateStructural`), `pkg/apiserver/schema/complete.go`,
//! `pkg/apis/apiextensions/validation/validation.go` (`SchemaHasInvalidTypes`).

use serde_json::{Map, Value};

use super::extensions::{EMBEDDED_RESOURCE, INT_OR_STRING, PRESERVE_UNKNOWN_FIELDS};
use cel::interrupt::checkpoint;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Within,
}

/// Returns true if `schema` is structural. The function is recursive, so the caller must limit the depth.
pub(crate) fn is_structural(schema: &Map<String, Value>) -> bool {
    let node = Node(schema);
    has_no_unsupported(node)
        && has_invariants(node, Level::Root)
        && junctors(node).all(|nested| is_complete(nested, node))
}

#[derive(Clone, Copy)]
struct Node<'a>(&'a Map<String, Value>);

enum Additional<'a> {
    Bool(bool),
    Schema(Node<'a>),
}

impl<'a> Node<'a> {
    fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn type_(self) -> &'a str {
        self.text("type")
    }

    fn is_true(self, key: &str) -> bool {
        self.get(key) == Some(&Value::Bool(true))
    }

    fn child(self, key: &str) -> Option<Node<'a>> {
        self.get(key)?.as_object().map(Node)
    }

    fn items(self) -> Option<Node<'a>> {
        self.child("items")
    }

    fn list(self, key: &str) -> impl Iterator<Item = Node<'a>> {
        let values = self.get(key).and_then(Value::as_array);
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .map(Node)
    }

    fn map(self, key: &str) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        let values = self.get(key).and_then(Value::as_object);
        let values = values.into_iter().flatten();
        values.filter_map(|(name, value)| Some((name.as_str(), Node(value.as_object()?))))
    }

    fn property(self, name: &str) -> Option<Node<'a>> {
        self.child("properties")?.child(name)
    }

    fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(allowed) => Some(Additional::Bool(*allowed)),
            Value::Object(schema) => Some(Additional::Schema(Node(schema))),
            _ => None,
        }
    }

    /// Returns true if all keywords except those in `but` are unset. A keyword with Go's zero value counts as unset,
    /// unless upstream distinguishes it from an unset keyword.
    fn is_blank_but(self, but: &[&str]) -> bool {
        self.0.iter().all(|(key, value)| {
            but.contains(&key.as_str())
                || match key.as_str() {
                    "description" | "title" | "format" | "pattern" | "type" => {
                        value.as_str().is_none_or(str::is_empty)
                    }
                    "nullable" | "uniqueItems" | "exclusiveMaximum" | "exclusiveMinimum"
                    | EMBEDDED_RESOURCE | INT_OR_STRING => *value != Value::Bool(true),
                    "enum" | "allOf" | "anyOf" | "oneOf" => {
                        value.as_array().is_none_or(Vec::is_empty)
                    }
                    "default"
                    | "example"
                    | "externalDocs"
                    | "not"
                    | "items"
                    | "properties"
                    | "additionalProperties"
                    | "maximum"
                    | "minimum"
                    | "maxLength"
                    | "minLength"
                    | "maxItems"
                    | "minItems"
                    | "multipleOf"
                    | "maxProperties"
                    | "minProperties"
                    | "required"
                    | "x-kubernetes-list-map-keys"
                    | "x-kubernetes-list-type"
                    | "x-kubernetes-map-type"
                    | "x-kubernetes-validations"
                    | PRESERVE_UNKNOWN_FIELDS => value.is_null(),
                    _ => true,
                }
        })
    }
}

/// Iterates over the schemas in `not`, `allOf`, `anyOf` and `oneOf`.
fn junctors(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .flat_map(move |key| node.list(key));
    node.child("not").into_iter().chain(lists)
}

/// Iterates over the schemas in `items`, `properties` and `additionalProperties`.
fn parts(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let additional = match node.additional() {
        Some(Additional::Schema(schema)) => Some(schema),
        _ => None,
    };
    let properties = node.map("properties").map(|(_, schema)| schema);
    node.items().into_iter().chain(properties).chain(additional)
}

/// Returns true if a schema and all nested schemas use only supported keywords and types.
fn has_no_unsupported(node: Node<'_>) -> bool {
    const TYPES: [&str; 7] = [
        "", "array", "boolean", "integer", "number", "object", "string",
    ];
    checkpoint();
    let is_supported = |(key, value): (&String, &Value)| match key.as_str() {
        "id" | "$schema" | "$ref" => value.as_str().is_none_or(str::is_empty),
        "patternProperties" | "dependencies" | "definitions" => {
            value.as_object().is_none_or(Map::is_empty)
        }
        "additionalItems" => value.is_null(),
        PRESERVE_UNKNOWN_FIELDS => *value != Value::Bool(false),
        "items" => value.as_array().is_none_or(Vec::is_empty),
        "type" => TYPES.contains(&value.as_str().unwrap_or_default()),
        _ => true,
    };
    node.0.iter().all(is_supported)
        && junctors(node).all(has_no_unsupported)
        && parts(node).all(has_no_unsupported)
}

/// Source: apiextensions-apiserver `pkg/apiserver/schema/validation.go`,
/// `validateStructuralInvariants`.
fn has_invariants(node: Node<'_>, level: Level) -> bool {
    checkpoint();
    let type_ = node.type_();
    let embedded = node.is_true(EMBEDDED_RESOURCE);
    let int_or_string = node.is_true(INT_OR_STRING);
    let preserves = node.is_true(PRESERVE_UNKNOWN_FIELDS);
    let has_properties = node.map("properties").next().is_some();
    let additional = node.additional();

    let of_type = match (embedded, level) {
        (true, _) => type_ == "object",
        (false, Level::Root) => {
            type_ == "object" || (type_.is_empty() && (int_or_string || preserves))
        }
        (false, Level::Within) => !type_.is_empty() || int_or_string || preserves,
    };
    of_type
        && (type_ != "array" || node.items().is_some())
        && (additional.is_none() || (level == Level::Within && !embedded))
        && !(int_or_string && (preserves || embedded))
        && (!embedded || preserves || has_properties)
        && has_metadata_invariants(node, level, embedded)
        && has_nested_invariants(node, skipped(node))
        && parts(node).all(|part| has_invariants(part, Level::Within))
}

/// Returns true if the API server supports the restrictions that the schema of a resource places on `kind`,
/// `apiVersion` and `metadata`.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/validation.go`,
/// `validateStructuralMetadataInvariants`.
fn has_metadata_invariants(node: Node<'_>, level: Level, embedded: bool) -> bool {
    if level != Level::Root && !embedded {
        return true;
    }
    let is_string = |name| {
        node.property(name)
            .is_none_or(|property| property.type_() == "string")
    };
    let metadata = node.property("metadata").is_none_or(|metadata| {
        metadata.type_() == "object"
            && (level != Level::Root
                || (metadata.is_blank_but(&["type", "default", "properties"])
                    && metadata
                        .map("properties")
                        .all(|(name, _)| matches!(name, "name" | "generateName"))))
    });
    is_string("kind") && is_string("apiVersion") && metadata
}

/// The `anyOf` lists of a schema that have the form `[{type: integer}, {type: string}]`. Unlike other lists, they may
/// declare types, because `x-kubernetes-int-or-string` requires this.
#[derive(Clone, Copy, Default)]
struct Skipped {
    any_of: bool,
    any_of_in_first_all_of: bool,
}

fn skipped(node: Node<'_>) -> Skipped {
    Skipped {
        any_of: is_int_or_string_any_of(node),
        any_of_in_first_all_of: node
            .list("allOf")
            .next()
            .is_some_and(is_int_or_string_any_of),
    }
}

fn is_int_or_string_any_of(node: Node<'_>) -> bool {
    let is = |node: Option<Node<'_>>, type_| {
        node.is_some_and(|node| {
            // `additionalProperties: false` is allowed here, because it has no effect.
            let no_more = matches!(node.additional(), Some(Additional::Bool(false)));
            let but: &[&str] = if no_more {
                &["type", "additionalProperties"]
            } else {
                &["type"]
            };
            node.type_() == type_ && node.is_blank_but(but)
        })
    };
    let mut any_of = node.list("anyOf");
    is(any_of.next(), "integer") && is(any_of.next(), "string") && any_of.next().is_none()
}

/// Source: apiextensions-apiserver `pkg/apiserver/schema/validation.go`, `validateValueValidation`.
fn has_nested_invariants(node: Node<'_>, skipped: Skipped) -> bool {
    let plain = |nested| is_restriction(nested, Skipped::default());
    let mut all_of = node.list("allOf");
    let first = all_of.next().is_none_or(|first| {
        let any_of = skipped.any_of_in_first_all_of;
        is_restriction(
            first,
            Skipped {
                any_of,
                any_of_in_first_all_of: false,
            },
        )
    });
    first
        && all_of.all(plain)
        && (skipped.any_of || node.list("anyOf").all(plain))
        && node.list("oneOf").all(plain)
        && node.child("not").is_none_or(plain)
}

/// Returns true if a schema in `not`, `allOf`, `anyOf` or `oneOf` declares no fields or types.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/validation.go`,
/// `validateNestedValueValidation`.
fn is_restriction(node: Node<'_>, skipped: Skipped) -> bool {
    checkpoint();
    let plain = |nested| is_restriction(nested, Skipped::default());
    let is_empty_list = |key: &str| {
        node.get(key)
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
    };
    ["type", "title", "description"]
        .iter()
        .all(|key| node.text(key).is_empty())
        && node.get("default").is_none()
        && [
            "nullable",
            EMBEDDED_RESOURCE,
            INT_OR_STRING,
            PRESERVE_UNKNOWN_FIELDS,
        ]
        .iter()
        .all(|key| !node.is_true(key))
        && ["x-kubernetes-list-type", "x-kubernetes-map-type"]
            .iter()
            .all(|key| node.get(key).is_none())
        && is_empty_list("x-kubernetes-list-map-keys")
        && is_empty_list("x-kubernetes-validations")
        && !matches!(
            node.additional(),
            Some(Additional::Schema(_) | Additional::Bool(true))
        )
        && node.property("metadata").is_none()
        && has_nested_invariants(node, skipped)
        && node.items().is_none_or(plain)
        && node.map("properties").all(|(_, nested)| plain(nested))
}

/// Returns true if `schema` declares every field that `restriction` mentions.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/complete.go`,
/// `validateNestedValueValidationCompleteness`.
fn is_complete(restriction: Node<'_>, schema: Node<'_>) -> bool {
    checkpoint();
    junctors(restriction).all(|nested| is_complete(nested, schema))
        && restriction.items().is_none_or(|nested| {
            schema
                .items()
                .is_some_and(|schema| is_complete(nested, schema))
        })
        && restriction.map("properties").all(|(name, nested)| {
            schema
                .property(name)
                .is_some_and(|schema| is_complete(nested, schema))
        })
}
