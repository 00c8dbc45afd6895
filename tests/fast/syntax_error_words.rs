//! Tests the wording of syntax errors. Results that are compared with those of the API server, or sent to it, use its
//! wording. All other results use our wording.
//!
//! `tests/cases/check/syntax_errors.md` contains the API server's messages for many expressions.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::json;
use vap_status_controller::cel::cost::UnknownSizes;
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::{CompileMode, CompiledPolicy};
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::status::warnings::{Warning, warnings};

const OURS: &str = "expected an operator or the end of the expression, found `'x'`";
const UPSTREAM: &str = "extraneous input ''x'' expecting <EOF>";

fn policy() -> CompiledPolicy {
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
        "operations": ["CREATE"]});
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.kind == 'a' 'x'"}],
    });
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
    CompiledPolicy::new(policy)
}

fn offline() -> Offline {
    let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let document = json!({
        "paths": {"/apis/apps/v1/namespaces/{namespace}/deployments":
            {"get": {"x-kubernetes-group-version-kind": kind}}},
        "components": {"schemas": {"Deployment": {
            "type": "object",
            "x-kubernetes-group-version-kind": [kind],
            "properties": {"kind": {"type": "string"}},
        }}},
    });
    let mut offline = Offline::default();
    offline
        .add_document(None, document.to_string().as_bytes())
        .unwrap();
    offline
}

#[test]
fn findings_and_truthful_profile_have_own_messages() {
    let policy = policy();
    let finding = &policy.findings()[0];
    assert!(finding.cause.message().contains(OURS), "{finding:?}");
    let (schemas, mapper) = offline().finish();
    let checked = type_check(&policy, &mapper, &schemas, Profile::Truthful);
    let text = format!("{:?}", checked.findings);
    assert!(!text.contains("extraneous"), "{text}");
}

#[test]
fn upstream_profile_has_upstream_messages() {
    let policy = policy();
    let (schemas, mapper) = offline().finish();
    let checked = type_check(&policy, &mapper, &schemas, Profile::Upstream);
    let warnings = warnings(&checked.findings);
    let warnings: Vec<_> = warnings.iter().map(Warning::text).collect();
    assert_eq!(
        warnings,
        [format!(
            "apps/v1, Kind=Deployment: ERROR: <input>:1:20: Syntax error: {UPSTREAM}\n \
             | object.kind == 'a' 'x'\n | ...................^\n"
        )]
    );
}

#[test]
fn compiling_through_library_api_keeps_upstream_messages() {
    let compiled = policy().compile_with_costs(CompileMode::New, &UnknownSizes);
    let error = compiled[0].0.outcome.as_ref().unwrap_err();
    assert!(error.message().contains(UPSTREAM), "{error:?}");
}
