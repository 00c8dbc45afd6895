//! Corrupts objects so that they cannot be decoded.
//!
//! In a deletion event, the name and the resource version stay intact. Without the name, a client cannot know which
//! object was deleted.

use serde_json::{Map, Value, json};

use parity::random::Random;

/// An object that the proxy has corrupted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CorruptedObject {
    /// The URL path of the object.
    pub path: String,
}

impl CorruptedObject {
    /// Identifies an object in a list or watch of `collection`, the URL path of all objects of its kind. Returns `None`
    /// for an item that is not an object, such as a group in the response of `/apis`.
    pub(super) fn new(collection: &str, object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let name = metadata.get("name")?.as_str()?;
        let (of_group, plural) = collection.rsplit_once('/')?;
        if of_group.is_empty() {
            return None;
        }
        let path = match metadata.get("namespace").and_then(Value::as_str) {
            Some(namespace) if !of_group.contains("/namespaces/") => {
                format!("{of_group}/namespaces/{namespace}/{plural}/{name}")
            }
            _ => format!("{collection}/{name}"),
        };
        Some(Self { path })
    }
}

/// Corrupts `object`. Afterwards, no client can decode it, or only a tolerant client can. If `keeps_name` is true, the
/// name and the resource version stay intact.
pub(super) fn corrupt(object: &mut Value, keeps_name: bool, random: &mut Random) {
    let n_ways = if keeps_name { 4 } else { 5 };
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    match random.below(n_ways) {
        0 => {
            // In the status of a CRD, the API server itself writes null for an empty list.
            for part in ["spec", "status"] {
                if let Some(part) = fields.get_mut(part) {
                    null_lists(part);
                }
            }
        }
        1 => replace(fields, "spec", json!("a text")),
        2 => replace(fields, "spec", json!([[], 1, null])),
        3 => {
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("labels".to_owned(), json!(["not", "a", "map"]));
            }
        }
        _ => *object = json!({"surprise": {"of": ["an", "unknown", "shape"]}}),
    }
}

/// Replaces the field `name` of an object. If there is no such field, replaces the annotations.
fn replace(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if fields.contains_key(name) {
        fields.insert(name.to_owned(), value);
    } else if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("annotations".to_owned(), value);
    }
}

fn null_lists(value: &mut Value) {
    match value {
        Value::Array(_) => *value = Value::Null,
        Value::Object(fields) => fields.values_mut().for_each(null_lists),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"},
            "spec": {"list": [1], "deep": {"list": []}},
        })
    }

    #[test]
    fn corruption_changes_object_and_keeps_name_if_requested() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let mut corrupted = object();
            corrupt(&mut corrupted, true, &mut Random::new(seed));
            assert_ne!(corrupted, object());
            assert_eq!(corrupted["metadata"]["name"], "a");
            assert_eq!(corrupted["metadata"]["resourceVersion"], "7");
            seen.insert(corrupted.to_string());
            let mut corrupted = object();
            corrupt(&mut corrupted, false, &mut Random::new(seed));
            assert_ne!(corrupted, object());
            seen.insert(corrupted.to_string());
        }
        assert_eq!(seen.len(), 5);
    }

    #[test]
    fn path_of_corrupted_object_is_found() {
        let path = |collection| CorruptedObject::new(collection, &object()).unwrap().path;
        assert_eq!(
            path("/api/v1/configmaps"),
            "/api/v1/namespaces/n/configmaps/a"
        );
        assert_eq!(
            path("/api/v1/namespaces/n/configmaps"),
            "/api/v1/namespaces/n/configmaps/a"
        );
        assert_eq!(CorruptedObject::new("/api/v1/configmaps", &json!({})), None);
        // A group in the API discovery response is not an object.
        assert_eq!(CorruptedObject::new("/apis", &object()), None);
    }
}
