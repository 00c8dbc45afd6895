//! Tests lints of excluded resources, contradictory validations, options and namespace selectors.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::json;
use vap_status_controller::policy::rule::Rule;

use crate::suspicious::{check_all, found, found_of, spec};

#[test]
fn impossible_groups_of_excluded_resources_are_reported() {
    let mut spec = spec(
        &["apps"],
        &["deployments"],
        &["CREATE"],
        "object.metadata.name != ''",
    );
    let mut rule = spec["matchConstraints"]["resourceRules"][0].clone();
    rule["apiGroups"] = json!(["apps/v1"]);
    spec["matchConstraints"]["excludeResourceRules"] = json!([rule]);
    let expected = ["warning impossible-group at \"apps/v1\""];
    assert_eq!(found(&spec), expected);
}

#[test]
fn validations_that_contradict_each_other_are_reported() {
    let lockout: &[&str] = &["warning lockout at <"];
    let cases: &[(&str, &[&str])] = &[
        ("object.spec.replicas < 3", lockout),
        (
            "object.spec.paused == true && object.spec.replicas <= 5",
            &["warning lockout at <="],
        ),
        ("object.spec.replicas < 7", &[]),
        (
            "object.spec.replicas < 3 || object.spec.paused == true",
            &[],
        ),
        // This contradiction is a finding of the rule `constant-condition`.
        (
            "object.spec.replicas < 3 && object.spec.replicas > 4",
            &["warning constant-condition at >"],
        ),
    ];
    check_all(cases, |text| {
        let mut spec = spec(
            &["apps"],
            &["deployments"],
            &["CREATE"],
            "object.spec.replicas > 5",
        );
        let validations = spec["validations"].as_array_mut().unwrap();
        validations.push(json!({"expression": text}));
        spec
    });
}

#[test]
fn metadata_read_from_connect_options_is_reported() {
    let undefined = |resource: &str, operation: &str, text: &str| {
        found_of(
            &spec(&[""], &[resource], &[operation], text),
            &[Rule::UndefinedField],
        )
    };
    let name = "object.metadata.name != 'a'";
    let expected = ["warning undefined-field at .metadata"];
    assert_eq!(undefined("pods/exec", "CONNECT", name), expected);
    assert_eq!(undefined("services/proxy", "*", name), expected);
    for (resource, text) in [
        ("pods", name),
        ("pods/*", name),
        (
            "pods/exec",
            "!has(object.metadata) || object.metadata.name != 'a'",
        ),
        ("pods/exec", "request.name != 'a'"),
    ] {
        assert_eq!(undefined(resource, "*", text), [""; 0], "{resource} {text}");
    }
}

#[test]
fn namespace_selector_for_label_name_has_a_note() {
    let selected = |labels: serde_json::Value| {
        let mut spec = spec(
            &["apps"],
            &["deployments"],
            &["CREATE"],
            "object.metadata.name != ''",
        );
        spec["matchConstraints"]["namespaceSelector"] = labels;
        found_of(&spec, &[Rule::IneffectiveSelector]).len()
    };
    assert_eq!(selected(json!({"matchLabels": {"name": "a"}})), 1);
    let requirement = json!({"key": "name", "operator": "NotIn", "values": ["a"]});
    assert_eq!(selected(json!({"matchExpressions": [requirement]})), 1);
    assert_eq!(
        selected(json!({"matchLabels": {"kubernetes.io/metadata.name": "a"}})),
        0
    );
}

#[test]
fn namespace_selector_for_mixed_scopes_has_a_note_about_cluster_scoped_resources() {
    let selected = |resources: &[&str]| {
        let mut spec = spec(
            &["rbac.authorization.k8s.io"],
            resources,
            &["CREATE"],
            "object.metadata.name != ''",
        );
        spec["matchConstraints"]["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
        found_of(&spec, &[Rule::IneffectiveSelector])
            .into_iter()
            .map(|finding| finding.split(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(selected(&["roles"]), [""; 0]);
    assert_eq!(selected(&["roles", "clusterroles"]), ["note"]);
    assert_eq!(selected(&["clusterroles"]), ["warning"]);
    assert_eq!(selected(&["*"]), [""; 0]);
}

#[test]
fn validation_that_requires_one_scope_of_several_is_reported_unless_intended() {
    let n_lints = |resources: &[&str], expression: &str, message: &str, condition: Option<&str>| {
        let mut spec = spec(&["", "apps"], resources, &["CREATE", "UPDATE"], expression);
        spec["validations"][0]["message"] = json!(message);
        if let Some(condition) = condition {
            spec["matchConditions"] = json!([{"name": "a", "expression": condition}]);
        }
        found_of(&spec, &[Rule::ConstantCondition]).len()
    };
    let create = "request.operation == 'CREATE' && object.metadata.name != 'a'";
    let pod = "object.kind == 'Pod' && object.metadata.name != 'a'";
    let kinds: [&str; 2] = ["pods", "deployments"];
    assert_eq!(n_lints(&["pods"], create, "a is reserved", None), 1);
    assert_eq!(n_lints(&kinds, pod, "a is reserved", None), 1);
    for path in [
        "request.kind.kind == 'Pod'",
        "request.resource.resource in ['pods']",
    ] {
        let expression = pod.replace("object.kind == 'Pod'", path);
        assert_eq!(
            n_lints(&kinds, &expression, "a is reserved", None),
            1,
            "{path}"
        );
    }
    // The rules match nothing else, or the test is not required.
    assert_eq!(n_lints(&["pods"], pod, "a is reserved", None), 0);
    let optional = "object.kind != 'Pod' || object.metadata.name != 'a'";
    assert_eq!(n_lints(&kinds, optional, "a is reserved", None), 0);
    // The message says that the others are denied.
    for message in [
        "Pods are immutable",
        "only creation is allowed",
        "no updates",
    ] {
        assert_eq!(n_lints(&["pods"], create, message, None), 0, "{message}");
    }
    // A match condition may exclude the others.
    for condition in [
        "request.operation != 'UPDATE'",
        "request.?operation.orValue('') != 'UPDATE'",
        "oldObject == null",
        "has(object.spec.containers)",
    ] {
        let n = n_lints(&["pods"], create, "a is reserved", Some(condition));
        assert_eq!(n, 0, "{condition}");
    }
    let of_user = Some("request.userInfo.username != 'admin'");
    assert_eq!(n_lints(&["pods"], create, "a is reserved", of_user), 1);
}
