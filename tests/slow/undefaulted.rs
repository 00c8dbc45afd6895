//! Tests objects whose kind has unknown defaults. `eval`, `test`, `audit` and `diff` evaluate a policy only if it reads
//! no field that a default may set. All other cases are counted as not evaluated.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::cli_commands::{directory, vap};

/// Returns a policy for CustomResourceDefinitions with one validation. It is similar to a policy of Gateway API.
fn policy(name: &str, validation: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["*"]}]},
            "validations": [{"expression": validation}],
        },
    })
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "gateways.gateway.networking.k8s.io",
            "annotations": {"gateway.networking.k8s.io/bundle-version": "v1.2.0"},
        },
        "spec": {
            "group": "gateway.networking.k8s.io",
            "names": {"kind": "Gateway", "plural": "gateways"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

/// A validation that reads no fields with defaults.
const OF_VERSIONS: &str = "object.spec.group != 'gateway.networking.k8s.io' || \
    (has(object.metadata.annotations) && \
     !object.metadata.annotations['gateway.networking.k8s.io/bundle-version'].matches('v1.[0-4].\\\\d+') && \
     oldObject == null)";

/// A validation that reads a field with a default.
const OF_CONVERSION: &str =
    "has(object.spec.conversion) && object.spec.conversion.strategy == 'None'";

const WHY: &str = "the policy reads `object.spec.conversion`, which the API server may set: the defaults of \
                   apiextensions.k8s.io/v1 CustomResourceDefinition are unknown";

#[test]
fn policy_that_reads_no_defaults_is_evaluated() {
    let text = policy("versions", OF_VERSIONS).to_string();
    let folder = directory("undefaulted", &[("policy.yaml", &text)]);
    let policy = folder.join("policy.yaml");
    let policy = policy.to_str().unwrap();
    let object = definition().to_string();
    let ran = vap(&["eval", policy, "--object", "-", "-o", "json"], &object);
    assert_eq!((ran.status, &ran.json()["decision"]), (1, &json!("Deny")));
    let ran = vap(&["audit", policy, "-f", "-", "-o", "json"], &object);
    let summary = &ran.json()["summary"];
    assert_eq!(ran.status, 1);
    assert_eq!(
        [&summary["audited"], &summary["denied"], &summary["unread"]],
        [1, 1, 0]
    );
    // With this pattern, the validation is true for the version in the object.
    let other = text.replace("v1.[0-4]", "v0.[0-4]");
    let folder = directory("undefaulted-other", &[("policy.yaml", &other)]);
    let other = folder.join("policy.yaml");
    let other = other.to_str().unwrap();
    let ran = vap(&["diff", policy, other, "-f", "-", "-o", "json"], &object);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert_eq!(ran.json()["summary"]["allowed"], 1);
    let ran = vap(&["eval", other, "--object", "-"], &object);
    assert_eq!(ran.status, 0, "{}", ran.out);
}

#[test]
fn case_that_depends_on_unknown_defaults_is_pending() {
    let text = [
        policy("conversion", OF_CONVERSION).to_string(),
        policy("versions", OF_VERSIONS).to_string(),
    ];
    let folder = directory("undecided", &[("policies.yaml", &text.join("\n---\n"))]);
    let policies = folder.join("policies.yaml");
    let policies = policies.to_str().unwrap();
    let object = definition().to_string();
    let ran = vap(&["eval", policies, "--object", "-", "-o", "json"], &object);
    assert_eq!(ran.status, 2);
    let report = ran.json();
    assert_eq!(report["policies"][0]["verdict"], "Unknown");
    assert_eq!(report["policies"][0]["why"], WHY);
    assert_eq!(report["policies"][1]["verdict"], "Denied");

    let ran = vap(&["audit", policies, "-f", "-", "-o", "json"], &object);
    assert_eq!(ran.status, 2);
    let report = ran.json();
    let summary = &report["summary"];
    let counts = [
        "objects",
        "audited",
        "unread",
        "matched",
        "evaluations",
        "denied",
    ];
    assert_eq!(
        counts.map(|name| summary[name].as_u64().unwrap()),
        [1, 0, 1, 1, 1, 1]
    );
    let of_policy = &report["policies"][0];
    assert_eq!(
        (&of_policy["undecided"], &of_policy["matched"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(
        report["unread"][0]["reason"],
        format!("not evaluated by conversion: {WHY}")
    );
    let ran = vap(&["audit", policies, "-f", "-"], &object);
    assert!(
        ran.out.contains("0 of 1 object audited by 2 policies"),
        "{}",
        ran.out
    );

    let ran = vap(
        &["diff", policies, policies, "-f", "-", "-o", "json"],
        &object,
    );
    assert_eq!(
        (ran.status, &ran.json()["summary"]["unread"]),
        (2, &json!(1))
    );

    // The object contains the field, so the policy is evaluated.
    let mut given = definition();
    given["spec"]["conversion"] = json!({"strategy": "None"});
    let ran = vap(
        &["audit", policies, "-f", "-", "-o", "json"],
        &given.to_string(),
    );
    assert_eq!(
        (ran.status, &ran.json()["summary"]["audited"]),
        (1, &json!(1))
    );
}

#[test]
fn pending_case_shows_field() {
    let probe = |policy: &str, expect: Value| {
        json!({"apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": policy},
            "spec": {"policyName": policy, "bindings": "Implied", "cases": [
                {"name": "a", "request": {"object": definition()}, "expect": expect}]}})
    };
    let text = [
        policy("conversion", OF_CONVERSION).to_string(),
        policy("versions", OF_VERSIONS).to_string(),
        probe("conversion", json!({"decision": "Allow"})).to_string(),
        probe("versions", json!({"decision": "Deny"})).to_string(),
    ];
    let ran = vap(&["test", "-", "-o", "json"], &text.join("\n---\n"));
    let report = ran.json();
    let case = |n: usize| &report["probes"][n]["cases"][0];
    assert_eq!(
        (&case(0)["outcome"], &case(0)["difference"]),
        (&json!("Pending"), &json!(WHY))
    );
    assert_eq!(case(1)["outcome"], "Passed", "{}", case(1));
}
