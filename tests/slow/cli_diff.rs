//! Tests the objects of `kubectl vap diff --with`: those that OLD or NEW defines, and probes.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fs;

use crate::cli_commands::{Ran, deployment, directory, vap};

const POLICY: &str = "config/samples/sound.yaml";
const PROBE: &str = "config/samples/sound_probe.yaml";

/// Runs `diff`. OLD allows 60 replicas, NEW and the directory of `--with` allow 50.
fn diff(name: &str, extra: &[&str]) -> Ran {
    let policy = fs::read_to_string(POLICY).unwrap();
    let probe = fs::read_to_string(PROBE).unwrap();
    let old = policy.replace("<= 50", "<= 60");
    let folder = directory(
        name,
        &[
            ("old.yaml", &old),
            ("new.yaml", &policy),
            ("objects.yaml", &deployment("web", 70).to_string()),
        ],
    );
    let with = directory(
        &format!("{name}-with"),
        &[("policy.yaml", &policy), ("probe.yaml", &probe)],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (old, new, objects) = (path("old.yaml"), path("new.yaml"), path("objects.yaml"));
    let mut arguments = vec!["diff", &old, &new, "--with", with.to_str().unwrap()];
    for word in extra {
        arguments.push(if *word == "OBJECTS" { &objects } else { word });
    }
    vap(&arguments, "")
}

#[test]
fn policy_of_with_flag_does_not_replace_versions() {
    let ran = diff("with-policy", &[]);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("an object of --with is ignored, because OLD or NEW defines it: ValidatingAdmissionPolicy"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("spec.validations[0]: true -> false"),
        "{}",
        ran.out
    );
    let ran = diff("with-policy-json", &["-o", "json"]);
    let report = ran.json();
    assert_eq!(report["summary"]["denied"], 1);
    assert_eq!(report["summary"]["cases"], 4);
    let [note] = &report["findings"].as_array().unwrap()[..] else {
        panic!("{report:#}")
    };
    assert_eq!(
        (&note["severity"], &note["rule"]),
        (&"note".into(), &"duplicate-name".into())
    );
}

#[test]
fn probes_of_with_flag_are_used_with_objects_of_files() {
    let ran = diff("with-objects", &["-f", "OBJECTS", "-o", "json"]);
    let report = ran.json();
    assert_eq!(
        (&report["summary"]["cases"], &report["summary"]["objects"]),
        (&4.into(), &1.into())
    );
}

/// Runs `diff` for two versions of a policy about config maps, and an object with the annotation `keep`.
fn diff_operations(name: &str, old: [&str; 2], new: [&str; 2], kind: &str) -> Ran {
    let policy = |[operations, expression]: [&str; 2]| {
        serde_json::json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "keep"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"],
                    "operations": operations.split(' ').collect::<Vec<_>>(),
                    "resources": ["configmaps"],
                }]},
                "validations": [{"expression": expression}],
            },
        })
        .to_string()
    };
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": "a", "namespace": "b", "annotations": {"keep": "true"}},
    });
    let folder = directory(
        name,
        &[
            ("old.yaml", &policy(old)),
            ("new.yaml", &policy(new)),
            ("object.yaml", &object.to_string()),
        ],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (old, new, object) = (path("old.yaml"), path("new.yaml"), path("object.yaml"));
    vap(&["diff", &old, &new, "-f", &object], "")
}

#[test]
fn diff_evaluates_each_matched_operation() {
    const KEPT: &str = "!('keep' in oldObject.metadata.annotations)";
    const FALSE: &str = "object == null";
    /// A name, the operations and the expression of both versions, the exit status, and two parts of the output.
    type DiffCase = (
        &'static str,
        [&'static str; 2],
        [&'static str; 2],
        i32,
        [&'static str; 2],
    );
    let cases: [DiffCase; 5] = [
        (
            "delete",
            ["DELETE", "true"],
            ["DELETE", KEPT],
            1,
            ["- DELETE of ConfigMap b/a", "1 denied now"],
        ),
        (
            "equal",
            ["DELETE", KEPT],
            ["DELETE", KEPT],
            0,
            ["no difference", "0 cases and 1 object"],
        ),
        (
            "fewer",
            ["CREATE UPDATE", FALSE],
            ["CREATE", FALSE],
            1,
            ["+ UPDATE of ConfigMap b/a", "match constraints"],
        ),
        (
            "both",
            ["CREATE UPDATE", "true"],
            ["CREATE UPDATE", FALSE],
            1,
            ["- ConfigMap b/a", ": 1 denied now"],
        ),
        (
            "more",
            ["CREATE", FALSE],
            ["CREATE DELETE", "false"],
            1,
            ["- DELETE of ConfigMap b/a", "1 denied now"],
        ),
    ];
    for (name, old, new, status, lines) in cases {
        let ran = diff_operations(&format!("operations-{name}"), old, new, "ConfigMap");
        assert_eq!(ran.status, status, "{name}: {}{}", ran.out, ran.err);
        for line in lines {
            assert!(ran.out.contains(line), "{name}: {line}: {}", ran.out);
        }
    }
}

#[test]
fn diff_without_matched_request_is_not_clean() {
    let policy = ["CREATE", "true"];
    let ran = diff_operations("operations-none", policy, policy, "Secret");
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("0 requests matched"), "{}", ran.out);
}

#[test]
fn binding_of_new_version_replaces_binding_of_with_flag() {
    let policy = "docs/examples/replica-limit.yaml";
    let text = fs::read_to_string(policy).unwrap();
    let audited = text.replace("[Deny, Audit]", "[Audit]");
    let folder = directory("with-binding", &[("new.yaml", &audited)]);
    let new = folder.join("new.yaml");
    let objects = "docs/examples/manifests.yaml";
    let arguments = [
        "diff",
        policy,
        new.to_str().unwrap(),
        "-f",
        objects,
        "--with",
        policy,
        "-o",
        "json",
    ];
    let report = vap(&arguments, "").json();
    assert_eq!(report["summary"]["allowed"], 2, "{report:#}");
    assert_eq!(report["groups"][0]["cause"]["kind"], "Actions");
    // The documents of --with are those of OLD.
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
}
