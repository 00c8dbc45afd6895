//! Sets the fields that admission plugins set. Only plugins that are enabled by default and need no data from the
//! cluster are included.
//!
//! Source: `k8s.io/kubernetes` `plugin/pkg/admission/defaulttolerationseconds/admission.go`,
//! `plugin/pkg/admission/priority/admission.go` (without priority classes of the cluster),
//! `plugin/pkg/admission/nodetaint/admission.go`,
//! `plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go`.

use serde_json::{Map, Value, json};

use crate::schema::Gvk;

/// The taints that every Pod tolerates for [`TOLERATED`] seconds by default.
const TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// The default toleration time, in seconds.
const TOLERATED: i64 = 300;

/// The priority classes that exist in every cluster.
const CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Sets the fields that plugins set on creation of an object in compact form.
pub(super) fn admit(gvk: &Gvk, object: &mut Value) {
    if !gvk.group.is_empty() {
        return;
    }
    match gvk.kind.as_ref() {
        "Pod" => {
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                tolerate(spec);
                prioritize(spec);
            }
        }
        "Node" => taint(object),
        "PersistentVolumeClaim" => protect(object, "kubernetes.io/pvc-protection"),
        "PersistentVolume" => protect(object, "kubernetes.io/pv-protection"),
        _ => {}
    }
}

/// Sets the fields that plugins set on an update from `old` to `object`, both in compact form.
pub(super) fn update(gvk: &Gvk, object: &mut Value, old: &Value) {
    if !gvk.group.is_empty() || gvk.kind != "Pod" {
        return;
    }
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    tolerate(spec);
    for field in ["priority", "preemptionPolicy"] {
        let before = old.get("spec").and_then(|spec| spec.get(field));
        if let Some(before) = before.filter(|_| !spec.contains_key(field)) {
            spec.insert(field.to_owned(), before.clone());
        }
    }
}

fn tolerate(spec: &mut Map<String, Value>) {
    let text = |toleration: &Value, field: &str| {
        let text = toleration.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let slot = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = slot.as_array_mut() else {
        return;
    };
    let tolerates = |taint: &str| {
        tolerations.iter().any(|toleration| {
            let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (key == taint || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        })
    };
    let missing: Vec<&str> = TAINTS
        .into_iter()
        .filter(|taint| !tolerates(taint))
        .collect();
    tolerations.extend(missing.into_iter().map(|taint| {
        json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED})
    }));
}

/// Adds the taint `node.kubernetes.io/not-ready` to a Node.
fn taint(node: &mut Value) {
    let Some(fields) = node.as_object_mut() else {
        return;
    };
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    let slot = spec.entry("taints").or_insert_with(|| json!([]));
    let [not_ready, _] = TAINTS;
    if let Some(taints) = slot.as_array_mut() {
        let is_there = |taint: &Value| {
            taint.get("key").is_some_and(|key| key == not_ready)
                && taint
                    .get("effect")
                    .is_some_and(|effect| effect == "NoSchedule")
        };
        if !taints.iter().any(is_there) {
            taints.push(json!({"key": not_ready, "effect": "NoSchedule"}));
        }
    }
}

fn prioritize(spec: &mut Map<String, Value>) {
    let class = spec.get("priorityClassName").and_then(Value::as_str);
    let priority = match class {
        None => Some(0),
        Some(name) => CLASSES
            .iter()
            .find_map(|(class, priority)| (*class == name).then_some(*priority)),
    };
    let Some(priority) = priority else {
        return;
    };
    spec.entry("priority").or_insert_with(|| priority.into());
    spec.entry("preemptionPolicy")
        .or_insert_with(|| "PreemptLowerPriority".into());
}

fn protect(object: &mut Value, finalizer: &str) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else {
        return;
    };
    let slot = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = slot.as_array_mut()
        && !finalizers.iter().any(|own| own == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}
