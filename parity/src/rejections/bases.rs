//! Valid policies, bindings and webhook configurations. Mutants are generated from these.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vap_status_controller::cli::input::{Input, KindFilter};

/// Returns the valid objects: an object of each kind with all fields set, and the objects in `parity/policies`.
///
/// # Errors
/// Returns an error if `parity/policies` cannot be read.
pub fn bases() -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let input = Input::load(&[folder], KindFilter::Policies, &mut std::io::empty());
    ensure!(
        input.problems.is_empty() && input.invalid.is_empty(),
        "{:?}",
        input.problems
    );
    let policies = input.policies.iter().map(|policy| &policy.document);
    let bindings = input.bindings.iter().map(|binding| &binding.document);
    let mutating = input.mutating_policies.iter();
    let mutating = mutating.map(|policy| &policy.shared.document);
    let documents = policies.chain(bindings).chain(mutating);
    let own = [
        policy(),
        binding(),
        mutating_policy(),
        mutating_binding(),
        webhooks("ValidatingWebhookConfiguration"),
        webhooks("MutatingWebhookConfiguration"),
    ];
    let own = own.into_iter();
    // The objects with all fields set contain more values that can be changed. Therefore they are repeated until they
    // make up half of the result.
    let n_own = documents.clone().count() / 2 + 1;
    let own = own.cycle().take(2 * n_own);
    Ok(own
        .chain(documents.map(|document| document.node.to_json()))
        .collect())
}

fn selector() -> Value {
    json!({
        "matchLabels": {"example.com/team": "A_b"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["b", "c"]},
            {"key": "b", "operator": "DoesNotExist"},
        ],
    })
}

fn match_resources() -> Value {
    json!({
        "resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments", "deployments/scale"], "resourceNames": ["a", "b"], "scope": "Namespaced",
        }],
        "excludeResourceRules": [{
            "apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["pods/*"],
        }],
        "matchPolicy": "Exact",
        "namespaceSelector": selector(),
        "objectSelector": selector(),
    })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"a": "b", "example.com/a": ""},
        "annotations": {"a": "b c"},
        "finalizers": ["example.com/a"],
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u", "controller": true,
            "blockOwnerDeletion": false,
        }],
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata("policy"),
        "spec": {
            "failurePolicy": "Ignore",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": match_resources(),
            "matchConditions": [{"name": "a", "expression": "true"}, {"name": "example.com/b", "expression": "params != null"}],
            "variables": [{"name": "a", "expression": "object.spec.replicas"}, {"name": "b", "expression": "variables.a"}],
            "validations": [
                {"expression": "variables.b > 1", "message": "too few", "messageExpression": "'too few'", "reason": "Invalid"},
                {"expression": "true"},
            ],
            "auditAnnotations": [{"key": "a", "valueExpression": "'a'"}, {"key": "B_c", "valueExpression": "null"}],
        },
    })
}

fn mutating_policy() -> Value {
    let apply = "Object{spec: Object.spec{replicas: variables.b > 1 ? 3 : 1}}";
    let patch = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: params.data.a}]";
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata("mutating-policy"),
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "IfNeeded",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": match_resources(),
            "matchConditions": [{"name": "a", "expression": "true"}, {"name": "example.com/b", "expression": "params != null"}],
            "variables": [{"name": "a", "expression": "object.spec.replicas"}, {"name": "b", "expression": "variables.a"}],
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": apply}},
                {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
            ],
        },
    })
}

fn mutating_binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata("mutating-binding"),
        "spec": {
            "policyName": "no-such-policy",
            "paramRef": {"name": "a", "namespace": "b", "parameterNotFoundAction": "Deny"},
            "matchResources": match_resources(),
        },
    })
}

fn webhooks(kind: &str) -> Value {
    let webhook = |name: &str, config: Value| {
        let mut webhook = json!({
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "matchPolicy": "Exact",
            "timeoutSeconds": 5,
            "clientConfig": config,
            "namespaceSelector": selector(),
            "objectSelector": selector(),
            "rules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments", "deployments/scale"], "scope": "Namespaced",
            }],
            "matchConditions": [
                {"name": "a", "expression": "object.spec.replicas > 1"},
                {"name": "example.com/b", "expression": "request.userInfo.username != 'a'"},
            ],
        });
        if kind == "MutatingWebhookConfiguration"
            && let Some(fields) = webhook.as_object_mut()
        {
            fields.insert("reinvocationPolicy".to_owned(), "IfNeeded".into());
        }
        webhook
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata("webhooks"),
        "webhooks": [
            webhook("a.example.com", json!({
                "service": {"namespace": "a", "name": "b", "path": "/c/d", "port": 8443}, "caBundle": "YQ==",
            })),
            webhook("b.example.com", json!({"url": "https://example.com:8443/a"})),
        ],
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata("binding"),
        "spec": {
            "policyName": "no-such-policy",
            "paramRef": {"name": "a", "namespace": "b", "parameterNotFoundAction": "Deny"},
            "matchResources": match_resources(),
            "validationActions": ["Deny", "Audit"],
        },
    })
}
