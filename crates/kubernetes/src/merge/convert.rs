//! Converts OpenAPI schemas to the types of structured-merge-diff.
//!
//! Source: kube-openapi `pkg/schemaconv/openapi.go` (`ToSchemaFromOpenAPI`), `smd.go`; apimachinery
//! `pkg/util/managedfields/internal/typeconverter.go` (`indexModels`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::types::{Atom, Field, ListType, MapType, Relationship, Scalar, Target, TypeRef};
use crate::schema::Gvk;
use crate::schema::extensions::{GROUP_VERSION_KIND, PRESERVE_UNKNOWN_FIELDS};

/// The type for values that have no schema and are replaced as a whole.
const UNTYPED: &str = "__untyped_atomic_";
/// The type for values that have no schema. Maps among these values are merged by entry.
const DEDUCED: &str = "__untyped_deduced_";

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

type Schemas = Map<String, Value>;
type Named = BTreeMap<String, Atom>;
type Kinds = BTreeMap<Gvk, TypeRef>;

/// Converts the schemas of an OpenAPI document.
///
/// # Errors
/// Returns one error for each schema that cannot be converted.
pub(super) fn convert(schemas: &Schemas) -> Result<(Named, Kinds), Vec<String>> {
    let mut named = Named::new();
    let mut kinds = Kinds::new();
    let mut errors = Vec::new();
    for (name, schema) in schemas {
        for gvk in kinds_of(schema) {
            kinds.entry(gvk).or_insert_with(|| TypeRef::named(name));
        }
        if reference(schema).is_some() {
            continue;
        }
        let atom = match name.as_str() {
            QUANTITY => Atom {
                scalar: Some(Scalar::Untyped),
                ..Atom::default()
            },
            RAW_EXTENSION => untyped(UNTYPED, Relationship::Atomic),
            _ => {
                let mut converter = Converter {
                    name: name.clone(),
                    preserves: false,
                    errors: &mut errors,
                };
                converter.atom(schema)
            }
        };
        named.insert(name.clone(), atom);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    named.insert(UNTYPED.to_owned(), untyped(UNTYPED, Relationship::Atomic));
    let deduced = untyped(DEDUCED, Relationship::Separable);
    named.insert(DEDUCED.to_owned(), deduced);
    Ok((named, kinds))
}

/// Returns a type for values without a schema. `entry` is the name of the type of map entries. `relationship`
/// determines how maps are merged.
fn untyped(entry: &str, relationship: Relationship) -> Atom {
    Atom {
        map: Some(Box::new(MapType {
            fields: BTreeMap::new(),
            element: Some(TypeRef::named(entry)),
            relationship,
        })),
        scalar: Some(Scalar::Untyped),
        list: Some(Box::new(ListType {
            element: TypeRef::named(UNTYPED),
            keys: Vec::new(),
            relationship: Relationship::Atomic,
        })),
    }
}

/// Returns the kinds that `schema` describes. Skips entries without a group, version or kind.
fn kinds_of(schema: &Value) -> Vec<Gvk> {
    let kinds = schema.get(GROUP_VERSION_KIND).and_then(Value::as_array);
    let kinds = kinds.into_iter().flatten().filter_map(|kind| {
        let text = |key| kind.get(key).and_then(Value::as_str);
        let gvk = Gvk::new(text("group")?, text("version")?, text("kind")?);
        (!gvk.kind.is_empty()).then_some(gvk)
    });
    kinds.collect()
}

fn reference(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").and_then(Value::as_str)?;
    (!reference.is_empty()).then_some(reference)
}

struct Converter<'a> {
    name: String,
    /// True if this schema or an enclosing schema preserves unknown fields.
    preserves: bool,
    errors: &'a mut Vec<String>,
}

impl Converter<'_> {
    fn error(&mut self, reason: &str) {
        self.errors.push(format!("{}: {reason}", self.name));
    }

    fn atom(&mut self, schema: &Value) -> Atom {
        self.preserves |= schema.get(PRESERVE_UNKNOWN_FIELDS) == Some(&Value::Bool(true));
        let type_ = type_of(schema);
        let scalar = |scalar| Atom {
            scalar: Some(scalar),
            ..Atom::default()
        };
        match type_ {
            "" => {
                let list = Some(Box::new(self.list(schema)));
                Atom {
                    map: Some(Box::new(self.map(schema))),
                    scalar: Some(Scalar::Untyped),
                    list,
                }
            }
            "object" => Atom {
                map: Some(Box::new(self.map(schema))),
                ..Atom::default()
            },
            "array" => Atom {
                list: Some(Box::new(self.list(schema))),
                ..Atom::default()
            },
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" => match schema.get("format").and_then(Value::as_str) {
                None | Some("" | "byte") => scalar(Scalar::Text),
                Some(_) => scalar(Scalar::Untyped),
            },
            other => {
                let reason = format!("unrecognized type: '{other}'");
                self.error(&reason);
                scalar(Scalar::Untyped)
            }
        }
    }

    fn type_ref(&mut self, schema: &Value) -> TypeRef {
        let wrapped = || match schema.get("allOf").and_then(Value::as_array)?.as_slice() {
            [only] => reference(only),
            _ => None,
        };
        let name = reference(schema)
            .or_else(wrapped)
            .and_then(|reference| reference.rsplit('/').next())
            .filter(|name| !name.is_empty());
        if let Some(name) = name {
            let relationship = self.map_relationship(schema);
            return TypeRef {
                target: Target::Named(name.to_owned()),
                relationship,
            };
        }
        let mut inner = Converter {
            name: format!("inlined in {}", self.name),
            preserves: self.preserves,
            errors: self.errors,
        };
        TypeRef {
            target: Target::Inline(inner.atom(schema)),
            relationship: None,
        }
    }

    fn map(&mut self, schema: &Value) -> MapType {
        let properties = schema.get("properties").and_then(Value::as_object);
        let has_properties = properties.is_some_and(|properties| !properties.is_empty());
        let mut fields = BTreeMap::new();
        for (name, property) in properties.into_iter().flatten() {
            let field = Field {
                type_: self.type_ref(property),
                default: property
                    .get("default")
                    .filter(|value| !value.is_null())
                    .cloned(),
            };
            fields.insert(name.clone(), field);
        }
        let element = match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => Some(self.type_ref(values)),
            Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(TypeRef::named(DEDUCED)),
            _ if self.preserves || !has_properties => Some(TypeRef::named(DEDUCED)),
            _ => None,
        };
        MapType {
            fields,
            element,
            relationship: self
                .map_relationship(schema)
                .unwrap_or(Relationship::Separable),
        }
    }

    fn list(&mut self, schema: &Value) -> ListType {
        let (relationship, keys) = self.list_relationship(schema);
        let element = match schema.get("items") {
            Some(items @ Value::Object(_)) => self.type_ref(items),
            Some(Value::Array(_)) => {
                self.error("structural schema arrays must have exactly one member subtype");
                TypeRef::named(DEDUCED)
            }
            _ => {
                if !type_of(schema).is_empty() {
                    self.error("`items` must be specified on arrays");
                }
                TypeRef::named(UNTYPED)
            }
        };
        ListType {
            element,
            keys,
            relationship,
        }
    }

    /// Source: kube-openapi `pkg/schemaconv/smd.go`, `getMapElementRelationship`.
    fn map_relationship(&mut self, schema: &Value) -> Option<Relationship> {
        match schema.get("x-kubernetes-map-type")? {
            Value::String(type_) if type_ == "atomic" => Some(Relationship::Atomic),
            Value::String(type_) if type_ == "granular" => Some(Relationship::Separable),
            other => {
                let reason = format!("unknown map type {}", plain(other));
                self.error(&reason);
                None
            }
        }
    }

    /// Source: kube-openapi `pkg/schemaconv/smd.go`, `getListElementRelationship`.
    fn list_relationship(&mut self, schema: &Value) -> (Relationship, Vec<String>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(type_) = schema.get("x-kubernetes-list-type") {
            return match text(type_).as_str() {
                "atomic" => (Relationship::Atomic, Vec::new()),
                "set" => (Relationship::Associative, Vec::new()),
                "map" => {
                    let keys = match schema.get("x-kubernetes-list-map-keys") {
                        None => {
                            self.error("missing map keys");
                            Vec::new()
                        }
                        Some(Value::Array(keys)) => keys
                            .iter()
                            .filter_map(Value::as_str)
                            .map(str::to_owned)
                            .collect(),
                        Some(other) => {
                            let reason = format!("uninterpreted map keys: {other}");
                            self.error(&reason);
                            Vec::new()
                        }
                    };
                    (Relationship::Associative, keys)
                }
                _ => {
                    let reason = format!("unknown list type {}", plain(type_));
                    self.error(&reason);
                    (Relationship::Atomic, Vec::new())
                }
            };
        }
        let Some(strategy) = schema.get("x-kubernetes-patch-strategy") else {
            return (Relationship::Atomic, Vec::new());
        };
        match text(strategy).as_str() {
            "merge" | "merge,retainKeys" => {
                let keys = match schema.get("x-kubernetes-patch-merge-key") {
                    None => Vec::new(),
                    Some(Value::String(key)) => vec![key.clone()],
                    Some(other) => {
                        let reason = format!("uninterpreted merge key: {other}");
                        self.error(&reason);
                        Vec::new()
                    }
                };
                (Relationship::Associative, keys)
            }
            "retainKeys" => (Relationship::Atomic, Vec::new()),
            _ => {
                let reason = format!("unknown patch strategy {}", plain(strategy));
                self.error(&reason);
                (Relationship::Atomic, Vec::new())
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the first type in `type`, or an empty string. A structural schema has at most one type.
fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(type_)) => type_,
        Some(Value::Array(types)) => types.first().and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    }
}
