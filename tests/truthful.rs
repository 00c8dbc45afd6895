//! The `truthful` profile: one pair of cases for each of its rules, what upstream warns of without cause and
//! what is trouble all the same.
//!
//! That the API server evaluates the expressions of the first kind without error was seen with
//! `e2e/oracle admit`.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and gives its values away"
)]

use serde_json::{Value, json};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::policy::rules::rules;
use vap_status_controller::policy::typecheck::{Profile, type_check};
use vap_status_controller::schema::offline::Offline;

fn kind(kind: &str, spec: Value) -> Value {
    json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": kind}],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {
                "name": {"type": "string"},
                "generateName": {"type": "string"},
                "creationTimestamp": {"type": "string", "format": "date-time"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
            "spec": spec,
        },
    })
}

fn document() -> Vec<u8> {
    let container = json!({"type": "object", "properties": {
        "image": {"type": "string"},
        "resources": {"type": "object", "properties": {
            "limits": {"type": "object", "additionalProperties": {"description": "Quantity"}},
        }},
    }});
    let pod_spec = json!({"type": "object", "properties": {
        "containers": {"type": "array", "items": container},
        "initContainers": {"type": "array", "items": container},
        "hostNetwork": {"type": "boolean"},
        "replicas": {"type": "integer"},
    }});
    let template = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "template": {"type": "object", "properties": {"spec": pod_spec}},
    }});
    let path = |kind: &str| {
        json!({"get": {"x-kubernetes-group-version-kind":
        {"group": "apps", "version": "v1", "kind": kind}}})
    };
    let document = json!({
        "paths": {"/apis/apps/v1/pods": path("Pod"), "/apis/apps/v1/deployments": path("Deployment")},
        "components": {"schemas": {
            "Pod": kind("Pod", pod_spec), "Deployment": kind("Deployment", template),
        }},
    });
    document.to_string().into_bytes()
}

/// The warnings of a policy on pods and deployments: in the upstream profile, and in ours.
fn n_warnings(spec: &Value) -> (usize, usize) {
    let mut spec = spec.clone();
    spec["matchConstraints"] = json!({"resourceRules": [{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods", "deployments"],
    }]});
    let policy = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
    let compiled = CompiledPolicy::new(&policy);
    assert_eq!(compiled.findings(), []);
    let mut offline = Offline::default();
    offline.add_document(None, &document()).unwrap();
    let (schemas, mapper) = offline.finish();
    let check = |profile| {
        type_check(&compiled, &mapper, &schemas, profile)
            .warnings
            .len()
    };
    (check(Profile::Upstream), check(Profile::Truthful))
}

#[track_caller]
fn check_false(expression: &str) {
    let counts = n_warnings(&json!({"validations": [{"expression": expression}]}));
    assert_eq!(counts, (1, 0), "{expression}");
}

#[track_caller]
fn check_true(expression: &str) {
    let (_, truthful) = n_warnings(&json!({"validations": [{"expression": expression}]}));
    assert_eq!(truthful, 1, "{expression}");
}

#[test]
fn every_rule_has_a_name_and_a_reason() {
    let names: Vec<_> = rules().map(|(name, _)| name).collect();
    assert!(names.len() >= 10);
    assert!(rules().all(|(name, reason)| !name.is_empty() && reason.len() > 20));
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn guards_on_the_kind() {
    check_false(
        "object.kind == 'Pod' ? object.spec.hostNetwork == true : object.spec.template.spec.hostNetwork == true",
    );
    check_false("object.kind != 'Pod' || object.spec.hostNetwork");
    check_false("object.spec.hostNetwork || object.kind != 'Pod'");
    check_false("!(object.kind in ['Pod']) || object.spec.hostNetwork");
    check_false(
        "['Pod', 'Job'].exists(k, k == object.kind) ? object.spec.hostNetwork == true : true",
    );
    check_false("request.resource.resource != 'pods' || object.spec.hostNetwork");
    check_false("request.kind.kind != 'Pod' || object.spec.hostNetwork");
    check_true("object.kind == 'Pod' || object.spec.hostNetwork");
    check_true("object.kind != 'Pod' ? object.spec.hostNetwork == true : true");
    check_true("object.kind in ['Pod', 'Deployment'] && object.spec.hostNetwork");
}

#[test]
fn guards_in_variables_and_match_conditions() {
    let in_variable = json!({
        "variables": [
            {"name": "isPod", "expression": "object.kind == 'Pod'"},
            {"name": "spec", "expression": "variables.isPod ? object.spec : object.spec.template.spec"},
            {"name": "pod", "expression": "object.spec.hostNetwork"},
        ],
        "validations": [{"expression": "variables.spec.hostNetwork && (!variables.isPod || variables.pod)"}],
    });
    assert_eq!(n_warnings(&in_variable).1, 0);
    let in_condition = json!({
        "matchConditions": [{"name": "pods", "expression": "object.kind == 'Pod'"}],
        "validations": [{"expression": "object.spec.hostNetwork == true"}],
    });
    assert_eq!(n_warnings(&in_condition), (1, 0));
    let unguarded = json!({
        "variables": [{"name": "pod", "expression": "object.spec.hostNetwork"}],
        "validations": [{"expression": "variables.pod == true"}],
    });
    assert_eq!(n_warnings(&unguarded).1, 1);
    let condition_itself = json!({
        "matchConditions": [{"name": "m", "expression": "object.spec.replicsa > 1"}],
        "validations": [{"expression": "true"}],
    });
    assert_eq!(n_warnings(&condition_itself), (0, 1));
}

#[test]
fn guards_by_presence() {
    check_false("has(object.spec.template)");
    check_false("!has(object.spec.template) || object.spec.template.spec.hostNetwork");
    check_false("object.spec.?template.hasValue()");
    check_true("has(object.spec.template.spec) && object.spec.template.spec.hostNetwork");
}

#[test]
fn values_of_unlike_types() {
    check_false("object.spec.replicas == null");
    check_false("object.spec.replicas != 'one'");
    check_false("object.metadata.name in [1, 2]");
    check_true("object.spec.replicas > 'one'");
    check_true("object.spec.replicas in object.metadata.name");
}

#[test]
fn lists_of_unlike_elements() {
    check_false(
        "object.kind != 'Pod' || size(object.spec.containers + object.spec.initContainers) > 0",
    );
    check_true("object.metadata.labels + object.metadata.labels == {}");
}

#[test]
fn fields_without_a_type() {
    check_false(
        "object.kind != 'Pod' || object.spec.containers.all(c, c.resources.limits.cpu != null)",
    );
    check_true(
        "object.kind != 'Pod' || object.spec.containers.all(c, c.resources.limit.cpu != null)",
    );
}

#[test]
fn objects_are_maps() {
    check_false("'replicas' in object.spec");
    check_false("object.spec['replicas'] == 1");
    check_false("object.spec.all(field, field != 'paused')");
    check_true("object.spec.replicas.all(r, r > 1)");
}

#[test]
fn timestamps_are_strings() {
    check_false("object.metadata.creationTimestamp.startsWith('2')");
    check_true("object.metadata.creationTimestamp > timestamp('2024-01-01T00:00:00Z')");
}

#[test]
fn the_resource_of_the_request_can_be_authorized() {
    check_false("authorizer.requestResource.check('get').allowed()");
}
