//! Tests findings of `kubectl vap check --static` for a directory of manifests. An API server loads such a directory
//! when it starts.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::cli_commands::{directory, vap};

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: \
                      a.static.k8s.io}\nspec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: \
                      [v1], operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: \
                      object.metadata.name != 'a'\n";
const BINDING: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: \
                       b.static.k8s.io}\nspec:\n  policyName: a.static.k8s.io\n  validationActions: [Deny]\n";

/// Returns the message and severity of each finding of the rule, for a directory with `files`.
fn findings(dir: &Path, files: &[(&str, &str)]) -> Vec<(String, String)> {
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
        .args(["check", "-o", "json", "--no-config", "--static"])
        .arg(dir)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let actual = report["findings"].as_array().unwrap().iter();
    actual
        .filter(|finding| finding["rule"] == "static-manifest")
        .map(|finding| (text(&finding["message"]), text(&finding["severity"])))
        .collect()
}

#[track_caller]
fn check(files: &[(&str, &str)], parts: &[&str]) {
    static N: AtomicUsize = AtomicUsize::new(0);
    let n = N.fetch_add(1, Ordering::Relaxed);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("static-manifests-{n}"));
    let _ = fs::remove_dir_all(&dir);
    let findings = findings(&dir, files);
    assert_eq!(findings.len(), parts.len(), "{findings:#?}");
    for part in parts {
        assert!(
            findings.iter().any(|(message, _)| message.contains(part)),
            "{part}: {findings:#?}"
        );
    }
}

#[test]
fn complete_set_of_static_manifests_has_no_findings() {
    check(&[("a.yaml", POLICY), ("b.yaml", BINDING)], &[]);
}

#[test]
fn invalid_sets_of_static_manifests_are_reported() {
    let plain = POLICY.replace("a.static.k8s.io", "a");
    check(&[("a.yaml", &plain)], &["end in `.static.k8s.io`"]);
    check(
        &[("b.yaml", BINDING)],
        &["the policy `a.static.k8s.io` is not in the directory"],
    );
    let params = POLICY.replace(
        "  matchConstraints",
        "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  matchConstraints",
    );
    check(&[("a.yaml", &params)], &["must not have a paramKind"]);
    let reference = format!("{BINDING}  paramRef: {{name: a, parameterNotFoundAction: Deny}}\n");
    check(
        &[("a.yaml", POLICY), ("b.yaml", &reference)],
        &["must not have a paramRef"],
    );
    let other = BINDING.replace("policyName: a.static.k8s.io", "policyName: a");
    check(
        &[("a.yaml", POLICY), ("b.yaml", &other)],
        &["must bind a static policy"],
    );
    check(
        &[("a.yaml", POLICY), ("c.yaml", POLICY)],
        &["is also used in"],
    );
    let old = POLICY.replace("k8s.io/v1\n", "k8s.io/v1beta1\n");
    check(
        &[("a.yaml", &old)],
        &["must be admissionregistration.k8s.io/v1"],
    );
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    check(
        &[("a.yaml", POLICY), ("c.yaml", config)],
        &["v1 ConfigMap is neither a policy"],
    );
    check(
        &[("a.yaml", POLICY), ("sub/b.yaml", BINDING)],
        &["does not load"],
    );
}

/// Static policies also apply to requests for policies, which are exempt from all other policies.
#[test]
fn static_policies_can_deny_policies() {
    let policy = POLICY
        .replace("[apps]", "[admissionregistration.k8s.io]")
        .replace("[deployments]", "[validatingadmissionpolicies]");
    let object = POLICY.replace("a.static.k8s.io", "a");
    let folder = directory(
        "static-eval",
        &[("policy.yaml", &policy), ("object.yaml", &object)],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (policy, object) = (path("policy.yaml"), path("object.yaml"));
    for (version, status) in [("1.37", 1), ("1.36", 1), ("1.35", 0)] {
        let args = [
            "eval",
            &policy,
            "--object",
            &object,
            "--kubernetes-version",
            version,
        ];
        let result = vap(&args, "");
        assert_eq!(result.status, status, "{version}: {}", result.out);
    }
}
