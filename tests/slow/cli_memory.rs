//! Tests commands with a policy whose evaluation exceeds the memory budget. There must be no decision. The command must
//! print the reason, and exit with a status other than 0.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli_commands::{deployment, directory, vap};

const OUT_OF_MEMORY: &str = "the evaluation needs more than 32 MiB of memory";

fn policy(failure_policy: &str, expression: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "growth"},
        "spec": {
            "failurePolicy": failure_policy,
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["deployments"]}]},
            "variables": [{"name": "limit", "expression": "object.spec.replicas > 5"}],
            "validations": [{"expression": expression}],
        },
    })
}

/// Returns an expression that doubles the length of a string 31 times.
fn doubling() -> String {
    let steps = ".map(x, x + x)".repeat(31);
    format!("[dyn(object.metadata.name)]{steps}.all(x, x.size() > 0)")
}

/// Returns a probe with a case for each decision, and a case that expects an error.
fn probe() -> Value {
    let case = |name: &str, expect: Value| {
        json!({
            "name": name,
            "request": {"object": deployment("web", 1)},
            "expect": expect,
        })
    };
    json!({
        "apiVersion": "vap-status.dev/v1alpha1",
        "kind": "PolicyProbe",
        "metadata": {"name": "growth"},
        "spec": {
            "policyName": "growth",
            "bindings": "Implied",
            "cases": [
                case("allow", json!({"decision": "Allow"})),
                case("deny", json!({"decision": "Deny"})),
                case("error", json!({"decision": "Deny", "message": OUT_OF_MEMORY})),
            ],
        },
    })
}

fn files(name: &str, files: &[(&str, &Value)]) -> PathBuf {
    let texts: Vec<(&str, String)> = files
        .iter()
        .map(|(name, value)| (*name, value.to_string()))
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (*name, &**text)).collect();
    directory(name, &texts)
}

#[test]
fn cases_are_pending_if_memory_is_exceeded() {
    for failure_policy in ["Fail", "Ignore"] {
        let policy = policy(failure_policy, &doubling());
        let folder = files(
            "memory_test",
            &[("policy.json", &policy), ("probe.json", &probe())],
        );
        let ran = vap(&["test", folder.to_str().unwrap()], "");
        assert!([1, 2].contains(&ran.status), "{}{}", ran.out, ran.err);
        assert_eq!(
            ran.out.matches("PENDING").count(),
            3,
            "{}{}",
            ran.out,
            ran.err
        );
        assert!(ran.out.contains(OUT_OF_MEMORY), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn commands_make_no_decision_if_memory_is_exceeded() {
    let policy = policy("Ignore", &doubling());
    let other = {
        let mut other = policy.clone();
        other["spec"]["failurePolicy"] = json!("Fail");
        other
    };
    let object = deployment("web", 1);
    let folder = files(
        "memory_commands",
        &[
            ("policy.json", &policy),
            ("other.json", &other),
            ("object.json", &object),
        ],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (policy, other, object) = (path("policy.json"), path("other.json"), path("object.json"));
    for arguments in [
        vec!["eval", &policy, "--object", &object],
        vec!["audit", &policy, "-f", &object],
        vec!["diff", &policy, &other, "-f", &object],
    ] {
        let ran = vap(&arguments, "");
        let shown = format!("{arguments:?}: {}{}", ran.out, ran.err);
        assert!([1, 2].contains(&ran.status), "{} {shown}", ran.status);
        assert!(shown.contains(OUT_OF_MEMORY), "{shown}");
        assert!(
            !ran.out.contains("DENIED  ") && !ran.out.contains("allowed    "),
            "{shown}"
        );
    }
}

#[test]
fn eval_of_all_variables_as_map_terminates() {
    let policy = policy("Fail", "dyn(variables).limit == false");
    let folder = files(
        "memory_variables",
        &[
            ("policy.json", &policy),
            ("object.json", &deployment("web", 1)),
        ],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let ran = vap(
        &[
            "eval",
            &path("policy.json"),
            "--object",
            &path("object.json"),
        ],
        "",
    );
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("allowed    growth"),
        "{}{}",
        ran.out,
        ran.err
    );
}
