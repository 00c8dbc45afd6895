//! Tests requests that the API server completes before it evaluates policies: generated names, allocated addresses, and
//! params with defaults.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::PathBuf;

use serde_json::{Value, json};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;

/// Runs a case of a policy that has the validation `expression`. The case expects that `request` is allowed. Returns
/// the outcome and the difference.
fn outcome(resources: &[&str], expression: &str, request: &Value) -> (CaseOutcome, String) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources,
            }]},
            "validations": [{"expression": expression}],
        },
    });
    let probe = json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "p"},
        "spec": {
            "policyName": "p", "bindings": "Implied",
            "cases": [{"name": "a", "request": request, "expect": {"decision": "Allow"}}],
        },
    });
    first(&[policy, probe])
}

/// Runs the probe in `documents`. Returns the outcome and the difference of its first case.
fn first(documents: &[Value]) -> (CaseOutcome, String) {
    let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
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
    let findings = outcome(resources, expression, request);
    assert_eq!(
        findings.0,
        CaseOutcome::Passed,
        "{expression}: {}",
        findings.1
    );
}

#[track_caller]
fn denied(resources: &[&str], expression: &str, request: &Value) {
    let findings = outcome(resources, expression, request);
    assert_eq!(
        findings.0,
        CaseOutcome::Failed,
        "{expression}: {}",
        findings.1
    );
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
fn generated_name_is_set_for_validation() {
    let generated = pod(&json!({"generateName": "x-", "namespace": "default"}));
    let pods = &["pods"];
    allowed(
        pods,
        "request.name.startsWith('x-') && request.name.size() == 7",
        &generated,
    );
    allowed(pods, "request.name == object.metadata.name", &generated);
    allowed(pods, "object.metadata.generateName == 'x-'", &generated);
    denied(pods, "!has(request.name)", &generated);
    allowed(
        pods,
        "request.name == 'y'",
        &pod(&json!({"name": "y", "generateName": "x-"})),
    );
    allowed(
        pods,
        "request.name.matches('^x-[bcdfghjklmnpqrstvwxz2456789]{5}$')",
        &generated,
    );
    // The suffix is random, so an expression cannot predict the name.
    denied(pods, "request.name == 'x-abcde'", &generated);
    // For a Namespace, the API server takes `request.namespace` from the name in the object before it generates the
    // name. It therefore stays empty here.
    let namespace = json!({"object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "x-"}}});
    allowed(
        &["namespaces"],
        "request.name.startsWith('x-') && !has(request.namespace)",
        &namespace,
    );
}

#[test]
fn case_that_depends_on_generated_suffix_is_pending() {
    let generated = pod(&json!({"generateName": "x-"}));
    let why = "the suffix that the API server generates";
    for expression in [
        "request.name.matches('^x-[a-z]+$')",
        "object.metadata.name.matches('[0-9]$')",
        "!object.metadata.name.endsWith('x')",
    ] {
        unknown(&["pods"], expression, &generated, why);
    }
}

#[test]
fn case_that_depends_on_allocated_service_fields_is_pending() {
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

#[test]
fn params_have_metadata_of_stored_objects() {
    let params = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": "default"},
        "data": {"max": "3"}});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}]},
            "validations": [{"expression": "has(params.metadata.uid) && has(params.metadata.resourceVersion) && \
                                            has(params.metadata.creationTimestamp) && params.data.max == '3'"}],
        },
    });
    for source in ["FromCluster", "Inline"] {
        let inline = json!([params]);
        let is_inline = source == "Inline";
        let probe = json!({
            "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "p"},
            "spec": {
                "policyName": "p", "bindings": "Implied", "params": source,
                "inlineParams": if is_inline { inline } else { json!([]) },
                "cases": [{"name": "a", "request": pod(&json!({"name": "a"})), "expect": {"decision": "Allow"}}],
            },
        });
        let (outcome, why) = first(&[policy.clone(), probe, params.clone()]);
        assert_eq!(outcome, CaseOutcome::Passed, "{source}: {why}");
    }
}

#[test]
fn selector_of_scale_is_used_if_given() {
    let scale = |status: Value| {
        let scale = |replicas: i64| {
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
                "spec": {"replicas": replicas}, "status": status})
        };
        json!({"operation": "UPDATE", "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "subResource": "scale", "object": scale(2), "oldObject": scale(1)})
    };
    let scales = &["deployments/scale"];
    let expression = "object.status.selector == 'app=a'";
    allowed(
        scales,
        expression,
        &scale(json!({"replicas": 1, "selector": "app=a"})),
    );
    unknown(
        scales,
        expression,
        &scale(json!({"replicas": 1})),
        "a Scale is created from the status of the scaled object",
    );
    allowed(
        scales,
        "object.spec.replicas == 2",
        &scale(json!({"replicas": 1})),
    );
}

#[test]
fn mutation_of_namespace_is_rejected() {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
                "expression": "Object{metadata: Object.metadata{namespace: object.metadata.name}}"}}],
        },
    });
    let probe = |name: &str| {
        json!({
            "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "p"},
            "spec": {
                "target": {"kind": "MutatingAdmissionPolicy", "name": "p"}, "bindings": "Implied",
                "cases": [{"name": "a", "request": pod(&json!({"name": name, "namespace": "shop"})),
                    "expect": {"applies": true}}],
            },
        })
    };
    let (outcome, why) = first(&[policy.clone(), probe("shop")]);
    assert_eq!(outcome, CaseOutcome::Passed, "{why}");
    let (outcome, why) = first(&[policy, probe("other")]);
    assert_eq!(outcome, CaseOutcome::Failed, "{why}");
    assert!(
        why.contains("does not match the namespace sent on the request"),
        "{why}"
    );
}

/// Applies the JSON patch `patch` to a custom resource. Returns true if the API server rejects the result with the
/// error `why`.
fn is_rejected(spec: &Value, patch: &str, why: &str) -> bool {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["widgets"]}]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[JSONPatch{{{patch}}}]")}}],
        },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "name": {"type": "string"}, "date": {"type": "string", "format": "date-time"},
                    "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
                        "x-kubernetes-preserve-unknown-fields": true},
                }}}}}}],
        },
    });
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "shop"}, "spec": spec});
    let expect = if why.is_empty() {
        json!({"applies": true})
    } else {
        json!({"error": {"contains": why}})
    };
    let probe = json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": "p"},
        "spec": {
            "target": {"kind": "MutatingAdmissionPolicy", "name": "p"}, "bindings": "Implied",
            "cases": [{"name": "a", "request": {"object": widget}, "expect": expect}],
        },
    });
    let (outcome, difference) = first(&[policy, definition, probe]);
    assert_eq!(outcome, CaseOutcome::Passed, "{patch}: {difference}");
    !why.is_empty()
}

#[test]
fn mutated_custom_resource_is_validated() {
    let pod = json!({"pod": {"apiVersion": "v1", "kind": "Pod"}});
    for (patch, why) in [
        (
            "op: 'add', path: '/spec/name', value: null",
            "spec.name: Invalid value: \"null\": spec.name in body must be of type string: \"null\"",
        ),
        (
            "op: 'remove', path: '/spec/pod/kind'",
            "spec.pod.kind: Required value",
        ),
        (
            "op: 'remove', path: '/metadata/name'",
            "metadata.name: Required value: name or generateName is required",
        ),
        (
            "op: 'add', path: '/apiVersion', value: 'example.com/v2'",
            "request to convert CR from an invalid group/version: example.com/v2",
        ),
    ] {
        assert!(is_rejected(&pod, patch, why));
    }
    // The schema requires a string with a format. The API server also accepts a list.
    assert!(!is_rejected(
        &pod,
        "op: 'add', path: '/spec/date', value: []",
        ""
    ));
}
