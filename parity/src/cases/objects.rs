//! Generates objects of admission requests, and changes to these objects. Each map in an object has a single entry,
//! because Go iterates over maps in random order.

use serde_json::{Value, json};

use super::choices::Choices;

pub(crate) const RESOURCES: [(&str, &str, &str); 6] = [
    ("apps", "v1", "deployments"),
    ("", "v1", "pods"),
    ("", "v1", "configmaps"),
    ("", "v1", "services"),
    ("", "v1", "namespaces"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles"),
];

pub(crate) fn object(resource: &str) -> Value {
    match resource {
        "deployments" => json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}, "generation": 2},
            "spec": {
                "replicas": 3,
                "paused": false,
                "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [
                        {"name": "main", "image": "registry.example/web:1.2", "resources": {"limits": {"cpu": "500m"}}},
                        {"name": "side", "image": "side:latest", "ports": [{"containerPort": 8080}]},
                    ]},
                },
            },
        }),
        "pods" => json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "worker", "namespace": "default", "annotations": {"note": "x"}},
            "spec": {
                "hostNetwork": true,
                "containers": [{"name": "c", "image": "busybox", "securityContext": {"privileged": true},
                    "env": [{"name": "A", "value": "1"}]}],
                "tolerations": [{"key": "k", "operator": "Exists"}],
            },
        }),
        "configmaps" => json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "team-a"},
            "data": {"limit": "5"}, "binaryData": {"b": "aGVsbG8="}, "immutable": true,
        }),
        "services" => json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"generateName": "front-", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"type": "NodePort", "selector": {"app": "web"},
                "ports": [{"port": 80, "targetPort": "http", "nodePort": 30080}]},
        }),
        "namespaces" => json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "team-a", "labels": {"env": "prod"}},
        }),
        _ => json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        }),
    }
}

/// Collects JSON pointers to all values below `value` that may be changed. The type and name of an object must not be
/// changed.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut add = |key: &str, inner: &Value| {
        let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        let stays = ["/apiVersion", "/kind", "/metadata"];
        if !stays.iter().any(|kept| place.starts_with(kept)) {
            found.push(place.clone());
            places(inner, &place, found);
        }
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| add(key, inner)),
        Value::Array(items) => {
            for (n, inner) in items.iter().enumerate() {
                add(&n.to_string(), inner);
            }
        }
        _ => {}
    }
}

pub(crate) fn change(choices: &mut Choices<'_>, object: &mut Value) {
    let mut candidates = Vec::new();
    places(object, "", &mut candidates);
    let Some(place) = candidates.get(choices.below(candidates.len().max(1))) else {
        return;
    };
    let (parent, key) = place.rsplit_once('/').unwrap_or_default();
    let key = key.replace("~1", "/").replace("~0", "~");
    if choices.chance(30) {
        match object.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.remove(&key)),
            Some(Value::Array(items)) => drop(items.pop()),
            _ => {}
        }
        return;
    }
    let Some(value) = object.pointer_mut(place) else {
        return;
    };
    *value = match &*value {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            let other = [
                json!(number + 1),
                json!(0),
                json!(-number),
                json!(number.to_string()),
                json!(1_i64 << 40),
            ];
            other[choices.below(other.len())].clone()
        }
        Value::String(text) => {
            let other = [
                json!(format!("{text}-x")),
                json!(""),
                json!(text.to_uppercase()),
                json!(7),
            ];
            other[choices.below(other.len())].clone()
        }
        Value::Bool(value) => json!(!value),
        Value::Array(items) => items.iter().chain(items.first()).cloned().collect(),
        _ => {
            let other = [Value::Null, json!([]), json!({}), json!("text"), json!(1.5)];
            other[choices.below(other.len())].clone()
        }
    };
}
