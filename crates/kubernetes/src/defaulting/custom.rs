//! Sets defaults and prunes unknown fields in custom resources, based on structural schemas.
//!
//! Source: `k8s.io/apiextensions-apiserver` `pkg/apiserver/schema/defaulting/{algorithm,prunenulls}.go`,
//! `pkg/apiserver/schema/pruning/algorithm.go`.

use serde_json::{Map, Value};

/// The maximum depth of schemas and objects. Deeper values are not changed.
const MAX_DEPTH: usize = 128;

const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The fields of every resource. Pruning does not remove them.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes unknown fields and disallowed nulls, and sets defaults, as the API server does when it decodes a request.
pub fn complete(object: &mut Value, schema: &Value) {
    prune_nulls(object, Some(schema), 0);
    default(object, Some(schema), 0);
    prune(object, Some(schema), true, 0);
}

/// Prunes unknown fields and disallowed nulls, as the API server does before it sets defaults.
pub(crate) fn prune_unknown(object: &mut Value, schema: &Value) {
    prune(object, Some(schema), true, 0);
    if has_null(object) {
        prune_nulls(object, Some(schema), 0);
    }
}

/// Sets defaults, as the API server does after mutating admission.
pub fn complete_defaults(object: &mut Value, schema: &Value) {
    default(object, Some(schema), 0);
}

fn is_true(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// The schemas of an object's fields, looked up once per object.
#[derive(Clone, Copy)]
struct Fields<'a> {
    properties: Option<&'a Map<String, Value>>,
    /// `None` if additional properties are forbidden. `Some(None)` if they are allowed without a schema.
    #[expect(
        clippy::option_option,
        reason = "additional properties are forbidden, unrestricted, or restricted by a schema"
    )]
    additional: Option<Option<&'a Value>>,
}

impl<'a> Fields<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            properties: schema.get("properties").and_then(Value::as_object),
            additional: additional(schema),
        }
    }

    fn property(self, name: &str) -> Option<&'a Value> {
        self.properties?.get(name)
    }

    /// Returns the schema of the field `name`: its schema in `properties` or, if there is none, the schema in
    /// `additionalProperties`.
    fn schema(self, name: &str) -> Option<&'a Value> {
        self.property(name).or_else(|| self.additional.flatten())
    }
}

/// Returns the default of `schema`. A null default counts as missing.
fn default_of(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|value| !value.is_null())
}

/// Decodes `additionalProperties` into the form of [`Fields::additional`].
#[expect(
    clippy::option_option,
    reason = "additional properties are forbidden, unrestricted, or restricted by a schema"
)]
fn additional(schema: &Value) -> Option<Option<&Value>> {
    match schema.get("additionalProperties")? {
        Value::Bool(_) => Some(None),
        inner @ Value::Object(_) => Some(Some(inner)),
        _ => None,
    }
}

fn is_nested(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Array(_))
}

fn is_forbidden_null(value: &Value, schema: Option<&Value>) -> bool {
    value.is_null() && schema.is_some_and(|schema| !is_true(schema, "nullable"))
}

/// Returns true if `value` contains a null at any depth. The function is recursive, so the caller must limit the depth.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Removes fields whose value is a disallowed null, unless the field has a default.
fn prune_nulls(value: &mut Value, schema: Option<&Value>, depth: usize) {
    let Some(schema) = schema.filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    let depth = depth.saturating_add(1);
    match value {
        Value::Object(fields) => {
            let declared = Fields::new(schema);
            if fields.values().any(Value::is_null) {
                fields.retain(|name, value| {
                    let schema = declared.schema(name);
                    !is_forbidden_null(value, schema) || schema.and_then(default_of).is_some()
                });
            }
            for (name, value) in fields.iter_mut() {
                if is_nested(value) {
                    prune_nulls(value, declared.schema(name), depth);
                }
            }
        }
        Value::Array(items) => {
            let inner = schema.get("items");
            for item in items {
                prune_nulls(item, inner, depth);
            }
        }
        _ => {}
    }
}

fn default(value: &mut Value, schema: Option<&Value>, depth: usize) {
    let Some(schema) = schema.filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    let depth = depth.saturating_add(1);
    match value {
        Value::Object(fields) => {
            let declared = Fields::new(schema);
            set_defaults(fields, declared);
            for (name, value) in fields.iter_mut() {
                if !is_nested(value) && !value.is_null() {
                    continue;
                }
                if let Some(inner) = declared.property(name) {
                    default(value, Some(inner), depth);
                } else if let Some(Some(inner)) = declared.additional {
                    if is_forbidden_null(value, Some(inner)) {
                        *value = default_of(inner).cloned().unwrap_or_default();
                    }
                    default(value, Some(inner), depth);
                }
            }
        }
        Value::Array(items) => {
            let inner = schema.get("items");
            for item in items {
                if is_forbidden_null(item, inner) {
                    *item = inner.and_then(default_of).cloned().unwrap_or_default();
                }
                default(item, inner, depth);
            }
        }
        _ => {}
    }
}

fn set_defaults(fields: &mut Map<String, Value>, declared: Fields<'_>) {
    for (name, property) in declared.properties.into_iter().flatten() {
        let Some(default) = default_of(property) else {
            continue;
        };
        let is_missing = fields
            .get(name)
            .is_none_or(|value| is_forbidden_null(value, Some(property)));
        if is_missing {
            fields.insert(name.clone(), default.clone());
        }
    }
}

/// Returns true if pruning would change `value`. If `is_resource` is true, `apiVersion`, `kind` and `metadata` are
/// known fields.
pub(crate) fn has_unknown(value: &Value, schema: &Value, is_resource: bool) -> bool {
    let mut pruned = value.clone();
    prune(&mut pruned, Some(schema), is_resource, 0);
    pruned != *value
}

fn prune(value: &mut Value, schema: Option<&Value>, is_resource: bool, depth: usize) {
    if depth >= MAX_DEPTH {
        return;
    }
    let depth = depth.saturating_add(1);
    let preserves = schema.is_some_and(|schema| is_true(schema, PRESERVE));
    let is_resource = is_resource || schema.is_some_and(|schema| is_true(schema, EMBEDDED));
    match value {
        Value::Object(fields) => {
            let Some(schema) = schema else {
                fields.clear();
                return;
            };
            let declared = Fields::new(schema);
            fields.retain(|name, value| {
                if is_resource && META.contains(&name.as_str()) {
                    return true;
                }
                if let Some(inner) = declared.property(name) {
                    if is_nested(value) {
                        prune(value, Some(inner), false, depth);
                    }
                    return true;
                }
                match declared.additional {
                    // If `additionalProperties` is a boolean instead of a schema, upstream removes all fields of the
                    // value.
                    Some(inner) => {
                        prune(value, inner, false, depth);
                        true
                    }
                    None => preserves,
                }
            });
        }
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.get("items"));
            for item in items {
                if preserves {
                    skip(item, inner, depth);
                } else {
                    prune(item, inner, false, depth);
                }
            }
        }
        _ => {}
    }
}

/// Prunes the values nested in `value`, but keeps the unknown fields of `value` itself. Nested values without a schema
/// are not pruned.
fn skip(value: &mut Value, schema: Option<&Value>, depth: usize) {
    let Some(schema) = schema.filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    let depth = depth.saturating_add(1);
    let is_resource = is_true(schema, EMBEDDED);
    match value {
        Value::Object(fields) => {
            let declared = Fields::new(schema);
            for (name, value) in fields.iter_mut() {
                if is_resource && META.contains(&name.as_str()) {
                    continue;
                }
                if let Some(inner) = declared.property(name) {
                    prune(value, Some(inner), false, depth);
                } else if let Some(inner) = declared.additional {
                    prune(value, inner, false, depth);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                skip(item, schema.get("items"), depth);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::complete;
    use serde_json::json;

    #[test]
    fn custom_resource_gets_defaults_and_unknown_fields_are_pruned() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
            "size": {"type": "integer", "default": 3},
            "name": {"type": "string", "nullable": true, "default": "a"},
            "plain": {"type": "string"},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "closed": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                "b": {"type": "boolean", "default": true}}}},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {}},
        }}}});
        let cases = [
            (json!({}), json!({"spec": {"size": 3, "name": "a"}})),
            (
                json!({"spec": {"size": null, "name": null, "plain": null, "other": 1}}),
                json!({"spec": {"size": 3, "name": null}}),
            ),
            (
                json!({"spec": {"size": 1, "name": "", "open": {"x": {"y": 1}, "closed": {"a": "b", "c": 1}},
                    "map": {"k": {}, "l": {"b": false, "z": 1}, "m": null}, "pod": {"kind": "Pod", "spec": {}, "metadata": {"name": "a"}}}}),
                json!({"spec": {"size": 1, "name": "", "open": {"x": {"y": 1}, "closed": {"a": "b"}},
                    "map": {"k": {"b": true}, "l": {"b": false}}, "pod": {"kind": "Pod", "metadata": {"name": "a"}}}}),
            ),
        ];
        for (mut given, expected) in cases {
            complete(&mut given, &schema);
            assert_eq!(given, expected);
        }
    }
}
