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
fn policy_of_with_does_not_replace_versions() {
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
fn probes_of_with_are_used_with_objects_of_files() {
    let ran = diff("with-objects", &["-f", "OBJECTS", "-o", "json"]);
    let report = ran.json();
    assert_eq!(
        (&report["summary"]["cases"], &report["summary"]["objects"]),
        (&4.into(), &1.into())
    );
}

#[test]
fn binding_of_new_version_replaces_binding_of_with() {
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
