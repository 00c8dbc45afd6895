//! Tests of reviews: matching, params, errors, and the limits of evaluations.
//!
//! The expected results are those of upstream's dispatcher.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

mod evaluation;
mod go_values;
mod params;
mod rules;
mod values;

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value as Json, json};

use super::*;
use kubernetes::version::KubernetesVersion;

/// Compiles a policy `p` with `spec` and the API server's defaults.
fn admission(spec: &Json) -> Admission {
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    Admission::new(
        serde_json::from_value::<ValidatingAdmissionPolicy>(policy).unwrap(),
        KubernetesVersion::DEFAULT,
    )
}

/// Returns a binding `b` with `spec`.
fn binding(spec: &Json) -> Binding {
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    });
    for (name, value) in spec.as_object().unwrap() {
        binding["spec"][name] = value.clone();
    }
    Binding::new(&serde_json::from_value(binding).unwrap())
}

/// Returns a request that creates the Deployment `web` in `default`. Its label is `app: web`.
fn deployment() -> AdmissionRequest {
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
    });
    let gvr = Gvr::new("apps", "v1", "deployments");
    AdmissionRequest::create(gvr, Object::new(&object))
}

/// Returns the namespace `default` with the label `env: prod`.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the form that a source of one namespace has"
)]
fn default_namespace() -> Option<Namespace> {
    let namespace = json!({"metadata": {"name": "default", "labels": {"env": "prod"}}});
    Some(Namespace::new(&namespace))
}

/// Returns match constraints that match [`deployment`].
fn constraints() -> Json {
    json!({"resourceRules": [{
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["deployments"],
    }]})
}

fn review(
    spec: &Json,
    request: &AdmissionRequest,
    bindings: &[Binding],
    params: &ParamList,
) -> ReviewOutcome {
    let namespaces = default_namespace();
    let authorizer = Arc::new(AuthorizerList::default());
    let context = ReviewContext::new(params, &namespaces, authorizer);
    admission(spec).review(request, bindings, &context)
}

/// Compares the code, reason and message of a denial. If `expect` is `None`, the request must be allowed.
#[track_caller]
fn check_denial(outcome: &ReviewOutcome, expect: Option<(u16, &str, &str)>) {
    let denial = outcome.denial.as_ref();
    let denial = denial.map(|d| (d.code, &*d.reason, &*d.message));
    assert_eq!(denial, expect);
}
