use serde_json::json;

use super::*;

/// Asserts both objects after an update from `old` to `new` without constraints.
#[track_caller]
fn check(kind: (&str, &str), given: (Json, Json), expected: &(Json, Json)) {
    let (mut new, mut old) = given;
    let constraints = InputConstraints::default();
    preserve_immutable(kind.0, kind.1, &constraints, &mut new, &mut old);
    assert_eq!((new, old), *expected);
}

fn with_spec(spec: &Json) -> Json {
    json!({"metadata": {"name": "a"}, "spec": spec})
}

/// Asserts that the new spec becomes `expected` and the old spec does not change.
#[track_caller]
fn check_spec(kind: (&str, &str), new: &Json, old: &Json, expected: &Json) {
    let given = (with_spec(new), with_spec(old));
    check(kind, given, &(with_spec(expected), with_spec(old)));
}

#[test]
fn immutable_field_keeps_old_value() {
    let deployment = ("apps", "Deployment");
    check_spec(
        deployment,
        &json!({"selector": {"a": "1"}, "replicas": 2}),
        &json!({"selector": {"a": "2"}, "replicas": 1}),
        &json!({"selector": {"a": "2"}, "replicas": 2}),
    );
    check_spec(deployment, &json!({"selector": 1}), &json!({}), &json!({}));
    check_spec(
        deployment,
        &json!({}),
        &json!({"selector": 1}),
        &json!({"selector": 1}),
    );
    // The rule does not apply to other kinds or groups.
    for kind in [("apps", "Deployments"), ("other", "Deployment")] {
        let new = json!({"selector": 1});
        check_spec(kind, &new, &json!({"selector": 2}), &new);
    }
}

#[test]
fn mutable_fields_of_immutable_specs_may_change() {
    check_spec(
        ("apps", "StatefulSet"),
        &json!({"replicas": 2, "serviceName": "x", "template": {"a": 1}}),
        &json!({"replicas": 1, "serviceName": "y", "template": {"a": 2}}),
        &json!({"replicas": 2, "serviceName": "y", "template": {"a": 1}}),
    );
    check_spec(
        ("", "Pod"),
        &json!({"containers": [{"name": "b", "image": "b"}], "nodeName": "n"}),
        &json!({"containers": [{"name": "a", "image": "a"}]}),
        &json!({"containers": [{"name": "a", "image": "b"}]}),
    );
    // If the lists have different lengths, the whole old list is kept.
    check_spec(
        ("", "Pod"),
        &json!({"containers": [{"image": "b"}, {"image": "c"}]}),
        &json!({"containers": [{"image": "a"}]}),
        &json!({"containers": [{"image": "a"}]}),
    );
    check(
        ("events.k8s.io", "Event"),
        (
            json!({"series": 2, "note": "x"}),
            json!({"series": 1, "note": "y"}),
        ),
        &(
            json!({"series": 2, "note": "y"}),
            json!({"series": 1, "note": "y"}),
        ),
    );
}

#[test]
fn allowed_changes_of_a_field_depend_on_its_presence() {
    let field = |name: &str, value: Option<i32>| match value {
        Some(value) => json!({name: value}),
        None => json!({}),
    };
    for (kind, name, results) in [
        (("", "Node"), "podCIDR", [Some(2), Some(1), Some(1)]),
        (
            ("", "PersistentVolume"),
            "volumeAttributesClassName",
            [Some(2), Some(2), Some(1)],
        ),
        (
            ("", "Pod"),
            "activeDeadlineSeconds",
            [Some(2), Some(2), Some(1)],
        ),
        (("", "Pod"), "schedulingGates", [None, Some(1), None]),
    ] {
        let cases = [(Some(2), None), (Some(2), Some(1)), (None, Some(1))];
        for ((new, old), result) in cases.into_iter().zip(results) {
            let [new, old, result] = [new, old, result].map(|value| field(name, value));
            check_spec(kind, &new, &old, &result);
        }
    }
}

#[test]
fn immutability_may_depend_on_another_field_of_the_object() {
    let map = |value: u32, flag: bool| json!({"data": {"a": value}, "immutable": flag});
    // The flag of the old object is not constrained, so it is set to false.
    check(
        ("", "ConfigMap"),
        (map(2, true), map(1, true)),
        &(map(2, true), map(1, false)),
    );
    check(
        ("", "ConfigMap"),
        (map(2, false), map(1, false)),
        &(map(2, false), map(1, false)),
    );
    let job = |mode: &str, n: u32| json!({"completionMode": mode, "completions": n});
    check_spec(
        ("batch", "Job"),
        &job("NonIndexed", 2),
        &job("NonIndexed", 1),
        &job("NonIndexed", 1),
    );
    check_spec(
        ("batch", "Job"),
        &job("Indexed", 2),
        &job("Indexed", 1),
        &job("Indexed", 2),
    );
}

#[test]
fn old_object_is_changed_so_that_exceptions_apply() {
    let claim = |size: &str, phase: Option<&str>, mode: &str| {
        let mut claim =
            with_spec(&json!({"volumeMode": mode, "resources": {"requests": {"storage": size}}}));
        if let Some(phase) = phase {
            claim["status"] = json!({"phase": phase});
        }
        claim
    };
    check(
        ("", "PersistentVolumeClaim"),
        (
            claim("2Gi", None, "Block"),
            claim("1Gi", None, "Filesystem"),
        ),
        &(
            claim("2Gi", None, "Filesystem"),
            claim("1Gi", Some("Bound"), "Filesystem"),
        ),
    );
    check(
        ("", "PersistentVolumeClaim"),
        (
            claim("1Gi", None, "Block"),
            claim("1Gi", None, "Filesystem"),
        ),
        &(
            claim("1Gi", None, "Filesystem"),
            claim("1Gi", None, "Filesystem"),
        ),
    );
}

#[test]
fn addresses_of_services_are_immutable_unless_external() {
    let service = |type_: &str, ip: &str| json!({"type": type_, "clusterIP": ip});
    let (new, old) = (service("ClusterIP", "2"), service("ClusterIP", "1"));
    check_spec(("", "Service"), &new, &old, &old);
    for (new, old) in [
        (service("ExternalName", "2"), service("ClusterIP", "1")),
        (service("ClusterIP", "2"), service("ExternalName", "1")),
    ] {
        check_spec(("", "Service"), &new, &old, &new);
    }
}

#[test]
fn immutable_fields_cannot_be_updated() {
    let check = |(group, kind): (&str, &str), path: &str, is_whole: bool| {
        let path: Vec<&str> = path.split('.').collect();
        may_update(group, kind, &path, is_whole)
    };
    let (pod, deployment) = (("", "Pod"), ("apps", "Deployment"));
    for (kind, path, is_whole, expected) in [
        (pod, "metadata.labels", true, true),
        (pod, "metadata.name", true, false),
        (pod, "kind", true, false),
        (pod, "spec.hostNetwork", true, false),
        (
            pod,
            "spec.containers.securityContext.privileged",
            true,
            false,
        ),
        (pod, "spec.containers.image", true, true),
        // The image of a container may change, but not the number of containers.
        (pod, "spec.containers", true, true),
        (pod, "spec.containers", false, false),
        (deployment, "spec.replicas", true, true),
        (deployment, "spec.selector.matchLabels", true, false),
        (("", "ConfigMap"), "data", true, true),
        (("example.com", "Widget"), "spec.size", true, true),
    ] {
        assert_eq!(check(kind, path, is_whole), expected, "{kind:?} {path}");
    }
}
