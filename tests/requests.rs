//! Requests as an API server makes them before it asks policies: made names, allocated addresses, what params have.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::PathBuf;

use serde_json::{Value, json};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;

/// The outcome of a case about `request`, which a policy with the validation `expression` must allow, and the difference.
fn outcome(resources: &[&str], expression: &str, request: &Value) -> (CaseOutcome, String) {
    with(
        resources,
        &json!([{"expression": expression}]),
        request,
        &[],
    )
}

fn with(
    resources: &[&str],
    validations: &Value,
    request: &Value,
    others: &[Value],
) -> (CaseOutcome, String) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources,
            }]},
            "validations": validations,
        },
    });
    let probe = json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "p"},
        "spec": {
            "policyName": "p", "bindings": "Implied",
            "cases": [{"name": "a", "request": request, "expect": {"decision": "Allow"}}],
        },
    });
    let documents = [policy, probe].into_iter().chain(others.iter().cloned());
    let documents: Vec<String> = documents.map(|document| document.to_string()).collect();
    let options = Options {
        paths: vec![PathBuf::from("-")],
        ..Options::default()
    };
    let report = test::run(&options, &mut documents.join("\n---\n").as_bytes()).unwrap();
    let case = report.probes.first().and_then(|probe| probe.cases.first());
    let case = case.unwrap();
    (case.outcome, case.difference.clone().unwrap_or_default())
}

#[track_caller]
fn allowed(resources: &[&str], expression: &str, request: &Value) {
    let found = outcome(resources, expression, request);
    assert_eq!(found.0, CaseOutcome::Passed, "{expression}: {}", found.1);
}

#[track_caller]
fn denied(resources: &[&str], expression: &str, request: &Value) {
    let found = outcome(resources, expression, request);
    assert_eq!(found.0, CaseOutcome::Failed, "{expression}: {}", found.1);
}

#[track_caller]
fn unknown(resources: &[&str], expression: &str, request: &Value, why: &str) {
    let (outcome, difference) = outcome(resources, expression, request);
    assert_eq!(outcome, CaseOutcome::Pending, "{expression}: {difference}");
    assert!(difference.contains(why), "{expression}: {difference}");
}

fn pod(metadata: &Value) -> Value {
    json!({"object": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "a", "image": "b:1"}]}}})
}

#[test]
fn a_made_name_is_there_when_validating_policies_are_asked() {
    let made = pod(&json!({"generateName": "x-", "namespace": "default"}));
    let pods = &["pods"];
    allowed(
        pods,
        "request.name.startsWith('x-') && request.name.size() == 7",
        &made,
    );
    allowed(pods, "request.name == object.metadata.name", &made);
    allowed(pods, "object.metadata.generateName == 'x-'", &made);
    denied(pods, "!has(request.name)", &made);
    allowed(
        pods,
        "request.name == 'y'",
        &pod(&json!({"name": "y", "generateName": "x-"})),
    );
    allowed(
        pods,
        "request.name.matches('^x-[bcdfghjklmnpqrstvwxz2456789]{5}$')",
        &made,
    );
    // A name by chance is as good as none.
    denied(pods, "request.name == 'x-abcde'", &made);
    // The request has no namespace then, as its handler takes it from the name that is written.
    let namespace = json!({"object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "x-"}}});
    allowed(
        &["namespaces"],
        "request.name.startsWith('x-') && !has(request.namespace)",
        &namespace,
    );
}

#[test]
fn what_depends_on_the_end_of_a_made_name_is_not_decided() {
    let made = pod(&json!({"generateName": "x-"}));
    let why = "the end of the name that the API server makes";
    for expression in [
        "request.name.matches('^x-[a-z]+$')",
        "object.metadata.name.matches('[0-9]$')",
        "!object.metadata.name.endsWith('x')",
    ] {
        unknown(&["pods"], expression, &made, why);
    }
}

#[test]
fn what_a_cluster_allocates_for_a_service_is_not_decided_on() {
    let service = |spec: Value| json!({"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}});
    let plain = service(json!({"ports": [{"port": 80}]}));
    let services = &["services"];
    let why = "are allocated in the cluster";
    unknown(services, "object.spec.clusterIP == 'None'", &plain, why);
    unknown(services, "has(object.spec.ipFamilies)", &plain, why);
    unknown(services, "'clusterIP' in object.spec", &plain, why);
    unknown(services, "object.spec == oldObject", &plain, why);
    allowed(
        services,
        "object.spec.type == 'ClusterIP' && object.spec.ports[0].targetPort == 80",
        &plain,
    );
    denied(
        services,
        "object.spec.ports.all(p, has(p.nodePort))",
        &plain,
    );
    let headless = service(json!({"clusterIP": "None", "ports": [{"port": 80}]}));
    allowed(services, "object.spec.clusterIP == 'None'", &headless);
    let outside = service(json!({"type": "NodePort", "ports": [{"port": 80}]}));
    unknown(
        services,
        "object.spec.ports.all(p, p.nodePort > 30000)",
        &outside,
        why,
    );
    allowed(services, "object.spec.ports.size() == 1", &outside);
    let named = service(json!({"type": "ExternalName", "externalName": "example.com"}));
    denied(services, "has(object.spec.clusterIP)", &named);
}
