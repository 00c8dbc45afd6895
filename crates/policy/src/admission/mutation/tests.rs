//! Tests of the errors of mutating policies: their effect on the request, and limits.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/dispatcher.go`, `policy_dispatcher.go` of
//! `pkg/admission/plugin/policy/generic`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::sync::LazyLock;

use kubernetes::schema::Builtin;
use kubernetes::version::KubernetesVersion;
use serde_json::json;

use super::super::{AuthorizerList, Namespace, ParamList};
use super::*;

static KINDS: LazyLock<KnownKinds> = LazyLock::new(|| {
    KnownKinds::new(
        Builtin::load(KubernetesVersion::DEFAULT).unwrap(),
        Vec::new(),
    )
});

fn object() -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}})
}

/// Mutates [`object`] with one policy `p` and one binding `b`. `spec` and `binding` are the other fields of their
/// specs.
fn mutated(
    spec: &Json,
    binding: &Json,
    params: Result<&dyn ParamSource, String>,
) -> MutationOutcome {
    let mut policy = json!({"metadata": {"name": "p"}, "spec": {
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
        ]},
        "mutations": [patch("[JSONPatch{op: 'add', path: '/data/y', value: '2'}]")],
    }});
    for (name, value) in spec.as_object().unwrap() {
        policy["spec"][name] = value.clone();
    }
    let policy = MutatingAdmission::new(
        &serde_json::from_value(policy).unwrap(),
        KubernetesVersion::DEFAULT,
    );
    let mut of_binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    for (name, value) in binding.as_object().unwrap() {
        of_binding["spec"][name] = value.clone();
    }
    let of_binding = serde_json::from_value(of_binding).unwrap();
    let bindings = [Binding::new(&crate::mutations::shared_part_of_binding(
        &of_binding,
    ))];
    let bound = BoundPolicy {
        policy: &policy,
        bindings: &bindings,
        params,
    };
    let object = object();
    let request = AdmissionRequest::create(Gvr::new("", "v1", "configmaps"), Object::new(&object));
    let namespace = Some(Namespace::new(&json!({"metadata": {"name": "default"}})));
    let context = MutationContext::new(&*KINDS, &namespace, Arc::new(AuthorizerList::default()));
    mutate(&request, Some(&object), &[bound], &context)
}

fn patch(expression: &str) -> Json {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Checks the denial by a policy with `spec` and a binding with `binding`. With failurePolicy `Ignore`, the same error
/// must occur without a denial.
#[track_caller]
fn check_denial(
    spec: &Json,
    binding: &Json,
    params: &Result<(), String>,
    expect: (&str, &str, &str),
) {
    let list = ParamList::default();
    let (reason, message, error) = expect;
    for failure_policy in ["Fail", "Ignore"] {
        let mut spec = spec.clone();
        spec["failurePolicy"] = json!(failure_policy);
        let source: Result<&dyn ParamSource, String> = match params {
            Ok(()) => Ok(&list),
            Err(error) => Err(error.clone()),
        };
        let outcome = mutated(&spec, binding, source);
        assert_eq!(outcome.errors, [error], "{spec}");
        let denial = outcome.denial.as_ref();
        let denial = denial.map(|it| (it.code, &*it.reason, &*it.message, &*it.cause));
        let expected = (failure_policy == "Fail").then_some((403, reason, message, error));
        assert_eq!(denial, expected, "{spec}");
        assert_eq!(outcome.exceeded, None);
        assert_eq!(outcome.object, Some(object()));
    }
}

#[test]
fn policy_without_errors_changes_object() {
    let outcome = mutated(&json!({}), &json!({}), Ok(&ParamList::default()));
    assert_eq!(outcome.denial, None);
    assert_eq!(outcome.errors, [""; 0]);
    assert_eq!(outcome.object.unwrap()["data"], json!({"x": "1", "y": "2"}));
    let steps: Vec<_> = outcome
        .steps
        .iter()
        .map(|it| (&*it.binding, it.mutation, it.is_again))
        .collect();
    assert_eq!(steps, [("b", 0, false)]);
    assert_eq!(outcome.reviews.len(), 1);
    assert!(outcome.reviews[0].bindings[0].matches);
}

#[test]
fn configuration_error_denies_request_unless_ignored() {
    let wrong =
        json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]}});
    let text = "Internal error occurred: \"Bad\" is not a valid label selector operator";
    let mut constraints = wrong.clone();
    constraints["resourceRules"] = json!([
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
    ]);
    let error = format!("failed to configure policy: {text}");
    let message = format!("policy \"p\" denied request: {error}");
    check_denial(
        &json!({"matchConstraints": constraints}),
        &json!({}),
        &Ok(()),
        ("Forbidden", &message, &error),
    );
    let error = format!("failed to configure binding: {text}");
    let message = format!("policy 'p' with binding 'b' denied request: {error}");
    check_denial(
        &json!({}),
        &json!({"matchResources": wrong}),
        &Ok(()),
        ("Forbidden", &message, &error),
    );
    let kind = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let error = "failed to configure policy: unknown kind";
    check_denial(
        &kind,
        &json!({}),
        &Err("unknown kind".to_owned()),
        (
            "Forbidden",
            "policy \"p\" denied request: failed to configure policy: unknown kind",
            error,
        ),
    );
}

#[test]
fn selector_error_is_in_the_review_of_the_policy() {
    let spec = json!({"matchConstraints": {
        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Bad"}]},
        "resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
        ],
    }});
    let outcome = mutated(&spec, &json!({}), Ok(&ParamList::default()));
    let [review] = &outcome.reviews[..] else {
        panic!("one review");
    };
    assert!(review.definition.error.is_some());
    assert_eq!(review.definition.matched, None);
    assert_eq!(review.bindings, []);
}

#[test]
fn failed_match_condition_denies_request_unless_ignored() {
    let spec = json!({"matchConditions": [{"name": "m", "expression": "object.data.z == 'a'"}]});
    let outcome = mutated(&spec, &json!({}), Ok(&ParamList::default()));
    let denial = outcome.denial.unwrap();
    assert_eq!((denial.code, &*denial.reason), (403, "Invalid"));
    assert!(
        denial
            .message
            .starts_with("policy 'p' with binding 'b' denied request: "),
        "{}",
        denial.message
    );
    assert!(denial.cause.contains("no such key: z"), "{}", denial.cause);
    assert_eq!(outcome.steps, []);
    let spec = json!({"matchConditions": [{"name": "m", "expression": "object.data.x == 'a'"}]});
    let outcome = mutated(&spec, &json!({}), Ok(&ParamList::default()));
    assert_eq!(outcome.denial, None);
    assert_eq!(outcome.object, Some(object()));
}

#[test]
fn mutation_that_exceeds_memory_has_no_outcome() {
    let grown = format!("['aaaa']{}", ".map(x, dyn(x) + dyn(x))".repeat(31));
    let mutations = json!([
        patch("[JSONPatch{op: 'add', path: '/data/y', value: '2'}]"),
        patch(&format!(
            "[JSONPatch{{op: 'add', path: '/data/z', value: {grown}}}]"
        )),
        patch("[JSONPatch{op: 'add', path: '/data/w', value: '3'}]"),
    ]);
    let outcome = mutated(
        &json!({"mutations": mutations}),
        &json!({}),
        Ok(&ParamList::default()),
    );
    assert_eq!(outcome.exceeded, Some(Exceeded::Memory(32 << 20)));
    assert_eq!(outcome.denial, None);
    assert_eq!(outcome.errors, [""; 0]);
    assert_eq!(outcome.object, Some(object()));
    assert_eq!(outcome.steps, []);
    assert_eq!(outcome.reviews[0].exceeded, outcome.exceeded);
}

#[test]
fn failed_test_operation_leaves_object_unchanged() {
    let mutations = json!([
        patch(
            "[JSONPatch{op: 'add', path: '/data/y', value: '2'}, JSONPatch{op: 'test', path: '/data/x', value: '7'}]"
        ),
        patch(
            "[JSONPatch{op: 'test', path: '/data/x', value: '1'}, JSONPatch{op: 'add', path: '/data/w', value: '3'}]"
        ),
    ]);
    let outcome = mutated(
        &json!({"mutations": mutations}),
        &json!({}),
        Ok(&ParamList::default()),
    );
    assert_eq!(outcome.denial, None);
    assert_eq!(outcome.object.unwrap()["data"], json!({"x": "1", "w": "3"}));
    let changes: Vec<_> = outcome.steps.into_iter().map(|it| it.changes).collect();
    assert_eq!(changes, [Ok(false), Ok(true)]);
}
