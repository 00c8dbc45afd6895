//! Objects that are large as JSON, or that need much more memory than their JSON.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// The size of a large object, in bytes of JSON. An API server stores up to 1.5 MB, including managed fields.
pub const LARGE: usize = 1_200_000;

/// The names of the variants of [`content`], by index.
pub const FORMS: [&str; 7] = [
    "small maps",
    "many keys",
    "empty lists",
    "numbers",
    "long string",
    "nested lists",
    "nested maps",
];

/// Returns a value of about `n_bytes` bytes. `form` is an index of [`FORMS`].
#[must_use]
pub fn content(random: &mut Random, form: usize, n_bytes: usize) -> Value {
    match form {
        0 => Value::Array(vec![json!({"b": 0}); n_bytes / 8]),
        1 => {
            let pairs = (0..n_bytes / 13).map(|i| (format!("k{i:06}"), json!(i % 10)));
            Value::Object(pairs.collect())
        }
        2 => Value::Array(vec![json!([]); n_bytes / 3]),
        3 => Value::Array(vec![json!(0); n_bytes / 2]),
        4 => {
            let letter = random.choose(&["a", "é", "\u{202e}", "\""]).copied();
            let letter = letter.unwrap_or("a");
            json!(letter.repeat(n_bytes / letter.len() / 2))
        }
        5 => nested(random, |inner| json!([inner])),
        _ => nested(random, |inner| json!({"a": inner})),
    }
}

/// Returns a nested value. The depth is near a limit of API servers or of JSON parsers.
fn nested(random: &mut Random, wrap: impl Fn(Value) -> Value) -> Value {
    let depth = random.choose(&[90, 120, 500, 1_500]).copied().unwrap_or(90);
    (0..depth).fold(json!(1), |inner, _| wrap(inner))
}

/// Returns a Deployment with `extra` labels.
#[must_use]
pub fn deployment(name: &str, extra: usize) -> Value {
    let labels: Map<String, Value> = (0..extra)
        .map(|i| (format!("label-{i}"), json!("value")))
        .chain([("app".to_owned(), json!("web"))])
        .collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "web", "image": "web:1"}]}},
        },
    })
}

/// Returns a custom resource of the kind in [`crd`].
#[must_use]
pub fn custom_resource(name: &str, content: &Value) -> Value {
    json!({
        "apiVersion": "hostile.example.com/v1", "kind": "Hoard",
        "metadata": {"name": name, "namespace": "default"},
        "content": content,
    })
}

/// Returns the CustomResourceDefinition of the params. The kind is namespaced and allows any content.
#[must_use]
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hoards.hostile.example.com"},
        "spec": {
            "group": "hostile.example.com", "scope": "Namespaced",
            "names": {"plural": "hoards", "singular": "hoard", "kind": "Hoard", "listKind": "HoardList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"content": {"x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    })
}
