//! Sets the fields that admission plugins set. Includes only the plugins that are enabled by default and need no
//! cluster data.
//!
//! Source: `k8s.io/kubernetes` `plugin/pkg/admission/defaulttolerationseconds/admission.go`,
//! `plugin/pkg/admission/priority/admission.go` (without the cluster's own priority classes),
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

/// Sets the fields that plugins set when an object is created. The object is in compact form.
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

/// Sets the fields that plugins set in an update of `old` to `object`. Both objects are in compact form.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: (&str, &str), object: &Value, expected: &Value) {
        let mut object = object.clone();
        admit(&Gvk::new(kind.0, "v1", kind.1), &mut object);
        assert_eq!(object, *expected);
    }

    fn toleration(taint: &str) -> Value {
        json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300})
    }

    #[test]
    fn created_pod_gets_tolerations_and_priority() {
        let both = json!([toleration("not-ready"), toleration("unreachable")]);
        let pod = |spec: Value| json!({"spec": spec});
        let defaults = |spec: Value| {
            let mut spec = spec;
            for (name, value) in [
                ("tolerations", both.clone()),
                ("priority", json!(0)),
                ("preemptionPolicy", json!("PreemptLowerPriority")),
            ] {
                if spec.get(name).is_none() {
                    spec[name] = value;
                }
            }
            pod(spec)
        };
        check(("", "Pod"), &pod(json!({})), &defaults(json!({})));
        check(("", "Pod"), &json!({}), &json!({}));
        check(("example.com", "Pod"), &pod(json!({})), &pod(json!({})));
        check(("", "Pods"), &pod(json!({})), &pod(json!({})));
        for (class, priority) in [
            ("system-cluster-critical", 2_000_000_000_i64),
            ("system-node-critical", 2_000_001_000),
        ] {
            let given = json!({"priorityClassName": class});
            let expected = json!({"priorityClassName": class, "priority": priority});
            check(("", "Pod"), &pod(given), &defaults(expected));
        }
        let other = json!({"priorityClassName": "mine"});
        let unchanged = json!({"priorityClassName": "mine", "tolerations": both});
        check(("", "Pod"), &pod(other), &pod(unchanged));
        let given = json!({"priority": 5, "preemptionPolicy": "Never"});
        check(("", "Pod"), &pod(given.clone()), &defaults(given));
    }

    #[test]
    fn toleration_of_a_taint_is_not_added_twice() {
        let check = |given: Value, added: &[&str]| {
            let mut object = json!({"spec": {"tolerations": [given]}});
            admit(&Gvk::new("", "v1", "Pod"), &mut object);
            let mut expected = vec![given];
            expected.extend(added.iter().map(|taint| toleration(taint)));
            assert_eq!(object["spec"]["tolerations"], json!(expected));
        };
        let not_ready = "node.kubernetes.io/not-ready";
        check(
            json!({"key": not_ready, "effect": "NoExecute"}),
            &["unreachable"],
        );
        check(json!({"key": not_ready}), &["unreachable"]);
        check(json!({"operator": "Exists"}), &[]);
        check(json!({"effect": "NoExecute"}), &[]);
        check(
            json!({"effect": "NoSchedule"}),
            &["not-ready", "unreachable"],
        );
        check(
            json!({"key": not_ready, "effect": "NoSchedule"}),
            &["not-ready", "unreachable"],
        );
        check(json!({"key": "other"}), &["not-ready", "unreachable"]);
    }

    #[test]
    fn created_node_gets_taint_and_volumes_get_finalizers() {
        let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
        check(
            ("", "Node"),
            &json!({}),
            &json!({"spec": {"taints": [taint]}}),
        );
        let tainted = json!({"spec": {"taints": [taint]}});
        check(("", "Node"), &tainted, &tainted);
        let other = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"});
        check(
            ("", "Node"),
            &json!({"spec": {"taints": [other]}}),
            &json!({"spec": {"taints": [other, taint]}}),
        );
        for (kind, finalizer) in [
            ("PersistentVolumeClaim", "kubernetes.io/pvc-protection"),
            ("PersistentVolume", "kubernetes.io/pv-protection"),
        ] {
            let object = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
            check(
                ("", kind),
                &json!({"metadata": {}}),
                &object(json!([finalizer])),
            );
            check(
                ("", kind),
                &object(json!(["a"])),
                &object(json!(["a", finalizer])),
            );
            check(
                ("", kind),
                &object(json!([finalizer])),
                &object(json!([finalizer])),
            );
            check(("", kind), &json!({}), &json!({}));
        }
    }

    #[test]
    fn updated_pod_keeps_priority() {
        let updated = |kind: (&str, &str), new: Value| {
            let mut object = json!({"spec": new});
            let old = json!({"spec": {"priority": 7, "preemptionPolicy": "Never"}});
            update(&Gvk::new(kind.0, "v1", kind.1), &mut object, &old);
            object["spec"].clone()
        };
        let both = json!([toleration("not-ready"), toleration("unreachable")]);
        assert_eq!(
            updated(("", "Pod"), json!({})),
            json!({"tolerations": both, "priority": 7, "preemptionPolicy": "Never"})
        );
        assert_eq!(
            updated(("", "Pod"), json!({"priority": 1})),
            json!({"tolerations": both, "priority": 1, "preemptionPolicy": "Never"})
        );
        assert_eq!(updated(("", "Node"), json!({})), json!({}));
        assert_eq!(updated(("a", "Pod"), json!({})), json!({}));
    }
}
