//! Generates CustomResourceDefinitions with every schema feature that affects types.

use serde_json::{Value, json};

use super::choices;
use super::choices::Choices;
use super::schemas;

/// The API group of all generated definitions.
pub(crate) const GROUP: &str = "made.example.com";

/// Generates `n` CustomResourceDefinitions. The first ones have odd schemas.
#[must_use]
pub fn crds(seed: u64, n: u64) -> Vec<Value> {
    (0..n)
        .map(|at| {
            let mut choices = choices(seed, "crd", at);
            let schema = odd(at).unwrap_or_else(|| root(&mut choices));
            definition(&mut choices, at, &schema)
        })
        .collect()
}

fn root(choices: &mut Choices<'_>) -> Value {
    let spec = schemas::object(choices, 4).schema;
    let mut properties = json!({"spec": spec});
    if choices.chance(50) {
        properties["status"] = schemas::object(choices, 2).schema;
    }
    if choices.chance(20) {
        let name = choices.pick(&["top", "data", "with-dash"]);
        properties[name] = schemas::any(choices, 2).schema;
    }
    if choices.chance(15) {
        properties["metadata"] = json!({"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 20}}});
    }
    json!({"type": "object", "properties": properties})
}

/// Returns the `n`th odd schema: a schema that is not structural, or is nearly empty. Returns `None` if there are fewer
/// odd schemas.
fn odd(n: u64) -> Option<Value> {
    let of_spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
    Some(match n {
        0 => json!({"type": "object"}),
        1 => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        2 => of_spec(json!({})),
        3 => of_spec(json!({"properties": {"a": {"type": "string"}}})),
        4 => of_spec(json!({"type": "array"})),
        5 => of_spec(json!({"type": "array", "items": [{"type": "string"}]})),
        6 => of_spec(json!({"type": "object", "additionalProperties": false})),
        7 => of_spec(
            json!({"type": "object", "additionalProperties": {"type": "string"},
            "properties": {"a": {"type": "integer"}}}),
        ),
        8 => of_spec(json!({"type": "integer", "x-kubernetes-int-or-string": true})),
        9 => of_spec(json!({"type": "object", "allOf": [{"required": ["a"]}],
            "properties": {"a": {"type": "string"}}})),
        10 => of_spec(json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "object", "properties": {
                "c": {"type": "array", "items": {"type": "array", "items": {"type": "array",
                    "items": {"type": "object", "additionalProperties": {"type": "array",
                        "items": {"type": "string", "maxLength": 3}}}}}}}}}}}})),
        _ => return None,
    })
}

fn definition(choices: &mut Choices<'_>, n: u64, schema: &Value) -> Value {
    let kind = format!("Made{}{n}", choices.pick(&["Thing", "Widget", "Rule"]));
    let plural = kind.to_lowercase() + "s";
    let mut version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    if choices.chance(40) {
        version["subresources"] = json!({"status": {}});
    }
    if choices.chance(15) {
        version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas"});
    }
    let mut versions = vec![version.clone()];
    if choices.chance(20) {
        let mut older = version;
        older["name"] = json!("v1beta1");
        older["storage"] = json!(false);
        older["served"] = json!(choices.chance(70));
        older["schema"] = json!({"openAPIV3Schema": root(choices)});
        versions.push(older);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": choices.pick(&["Namespaced", "Cluster"]),
            "names": {"plural": plural, "kind": kind},
            "versions": versions,
        },
    })
}
