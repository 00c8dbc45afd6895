//! Tests the differences that `kubectl vap diff` reports, and the objects of `--with`: probes, and objects that OLD or
//! NEW also defines.
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

/// Runs `diff`. OLD allows 60 replicas. NEW and the directory of `--with` allow 50.
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
fn additional_policy_does_not_replace_old_or_new_policy() {
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
fn additional_probes_are_used_along_with_objects() {
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
    vap(&["diff", &old, &new, "-f", &object, "--no-generated"], "")
}

#[test]
fn diff_evaluates_each_matched_operation() {
    const KEPT: &str = "!('keep' in oldObject.metadata.annotations)";
    const FALSE: &str = "object == null";
    /// The name of the case; the operations and the expression of the old version, and those of the new version; the
    /// exit status; and two parts of the output.
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
            ["no difference", "compared for 1 object"],
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
fn diff_without_matched_request_exits_2() {
    let policy = ["CREATE", "true"];
    let ran = diff_operations("operations-none", policy, policy, "Secret");
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("0 requests matched"), "{}", ran.out);
}

#[test]
fn binding_of_new_version_replaces_additional_binding() {
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
    // The objects of --with are equal to those of OLD, so no note reports that they are ignored.
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
}

/// A policy about config maps with a binding.
const CONFIG_MAPS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  validations:
  - {expression: object.data.a == 'b', message: a must be b, reason: Forbidden}
  auditAnnotations:
  - {key: size, valueExpression: string(object.data.size())}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: keep, validationActions: [Deny]}
";

/// A mutating policy about config maps with a binding.
const LABELS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: label}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{labels: {\"team\": \"none\"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: label}
";

/// Runs `diff` for two versions of a policy and a config map with the data `a: VALUE`. NEW is `policy` with
/// replacements.
fn diff_versions(name: &str, policy: &str, replaced: &[[&str; 2]], value: &str) -> Ran {
    let mut new = policy.to_owned();
    for [text, by] in replaced {
        assert!(new.contains(text), "{name}: {text}");
        new = new.replace(text, by);
    }
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "b"},
        "data": {value: "b"},
    });
    let folder = directory(
        &format!("versions-{name}"),
        &[
            ("old.yaml", policy),
            ("new.yaml", &new),
            ("object.yaml", &object.to_string()),
        ],
    );
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (old, new, object) = (path("old.yaml"), path("new.yaml"), path("object.yaml"));
    vap(&["diff", &old, &new, "-f", &object, "--no-generated"], "")
}

/// A name, the replacements, the key of the object's data, the exit status, and parts of the output.
type VersionCase = (
    &'static str,
    &'static [[&'static str; 2]],
    &'static str,
    i32,
    &'static [&'static str],
);

#[track_caller]
fn check_versions(cases: &[VersionCase]) {
    for (name, replaced, value, status, lines) in cases {
        let ran = diff_versions(name, CONFIG_MAPS, replaced, value);
        assert_eq!(ran.status, *status, "{name}: {}{}", ran.out, ran.err);
        for line in *lines {
            assert!(ran.out.contains(line), "{name}: {line}: {}", ran.out);
        }
    }
}

#[test]
fn diff_shows_changed_settings() {
    check_versions(&[
        (
            "failure-policy",
            &[["failurePolicy: Fail", "failurePolicy: Ignore"]],
            "a",
            1,
            &[
                "the failurePolicy changed: Fail -> Ignore; no expression fails for a compared request",
                "1 setting changed",
            ],
        ),
        (
            "failure-policy-error",
            &[["failurePolicy: Fail", "failurePolicy: Ignore"]],
            "c",
            1,
            &[
                "failurePolicy: Fail -> Ignore",
                "1 allowed now, denied before",
                "  the failurePolicy changed: Fail -> Ignore\n",
            ],
        ),
        (
            "actions",
            &[["[Deny]", "[Warn]"]],
            "a",
            1,
            &[
                "the validationActions of the binding `everywhere` changed: Deny -> Warn; no compared request violates the policy",
            ],
        ),
        (
            "constraints",
            &[["[CREATE, UPDATE]", "[CREATE]"]],
            "a",
            1,
            &["the matchConstraints changed", "    -  - UPDATE"],
        ),
        (
            "equal-constraints",
            &[
                ["[CREATE, UPDATE]", "[UPDATE, CREATE]"],
                ["[configmaps]", "[configmaps], scope: '*'"],
                [
                    "  validations",
                    "    matchPolicy: Equivalent\n    objectSelector: {}\n  validations",
                ],
                ["failurePolicy: Fail", "variables: []"],
            ],
            "a",
            0,
            &["no difference"],
        ),
        (
            "binding",
            &[["name: everywhere", "name: here"]],
            "a",
            1,
            &[
                "the binding `everywhere` was removed; the decision is the same for every compared request",
                "the binding `here` was added; the decision is the same for every compared request",
            ],
        ),
    ]);
}

#[test]
fn diff_shows_changed_annotations() {
    check_versions(&[
        (
            "reason-error",
            &[["Forbidden", "Invalid"]],
            "a",
            0,
            &["no difference"],
        ),
        (
            "reason-denied",
            &[["== 'b'", "== 'c'"], ["Forbidden", "Invalid"]],
            "a",
            1,
            &["spec.validations[0]: true -> false"],
        ),
        (
            "annotation",
            &[[
                "string(object.data.size())",
                "string(object.data.size() + 1)",
            ]],
            "a",
            1,
            &[
                "spec.auditAnnotations[size]: 1 -> 2",
                "1 with the same decision, another audit annotation",
            ],
        ),
        (
            "removed-annotation",
            &[["key: size", "key: length"]],
            "a",
            1,
            &[
                "spec.auditAnnotations[length]: none -> 1",
                "spec.auditAnnotations[size]: 1 -> none",
            ],
        ),
    ]);
}

#[test]
fn diff_shows_part_that_differs_for_denied_request() {
    let policy = CONFIG_MAPS.replace("== 'b'", "== 'c'");
    let warned = policy.replace("[Deny]", "[Warn]");
    let same = "1 with the same decision, another";
    for (name, policy, replaced, lines) in [
        (
            "denied-reason",
            &policy,
            ["Forbidden", "Invalid"],
            [
                "spec.validations[0], reason: Forbidden (403) -> Invalid (422)".to_owned(),
                format!("{same} reason"),
            ],
        ),
        (
            "denied-default-reason",
            &policy.replace("Forbidden", "Invalid"),
            [", reason: Invalid", ""],
            ["no difference".to_owned(), String::new()],
        ),
        (
            "denied-message",
            &policy,
            ["a must be b", "a must be c"],
            [
                "spec.validations[0], message: a must be b -> a must be c".to_owned(),
                format!("{same} message"),
            ],
        ),
        (
            "warning",
            &warned,
            ["a must be b", "a must be c"],
            [
                "spec.validations[0], message: a must be b -> a must be c".to_owned(),
                format!("{same} warning"),
            ],
        ),
        (
            "warning-reason",
            &warned,
            ["Forbidden", "Invalid"],
            ["no difference".to_owned(), String::new()],
        ),
        (
            "audit",
            &warned,
            ["[Warn]", "[Audit]"],
            [
                "actions of bindings: Warn -> Audit".to_owned(),
                format!("{same} warning"),
            ],
        ),
        (
            "audited",
            &policy,
            ["[Deny]", "[Deny, Audit]"],
            [
                "actions of bindings: Deny -> Audit, Deny".to_owned(),
                format!("{same} audit annotation"),
            ],
        ),
    ] {
        let ran = diff_versions(name, policy, &[replaced], "a");
        let is_equal = lines[0] == "no difference";
        assert_eq!(ran.status, i32::from(!is_equal), "{name}: {}", ran.out);
        for line in &lines {
            assert!(ran.out.contains(line), "{name}: {line}: {}", ran.out);
        }
    }
}

#[test]
fn diff_shows_changed_lines_of_mutated_objects() {
    let ran = diff_versions("mutation", LABELS, &[["none", "unknown"]], "a");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    for line in [
        "  the mutated object\n",
        "    -    team: none\n    +    team: unknown\n",
        "1 with the same decision, another mutation",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    // If a version does not change the object, the mutated object is the object of the request.
    let unchanged = [[
        "Object{metadata: Object.metadata{labels: {\"team\": \"none\"}}}",
        "Object{}",
    ]];
    let ran = diff_versions("no-mutation", LABELS, &unchanged, "a");
    assert!(
        ran.out.contains("    -  labels:\n    -    team: none\n"),
        "{}",
        ran.out
    );
}

/// A probe of config maps for the policy `name`.
fn probe_of(name: &str) -> String {
    serde_json::json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
        "metadata": {"name": format!("probe-of-{name}")},
        "spec": {"policyName": name, "cases": [{
            "name": "b",
            "request": {"operation": "CREATE", "object": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"},
                "data": {"a": "b"},
            }},
            "expect": {"decision": "Allow"},
        }]},
    })
    .to_string()
}

#[test]
fn probes_of_other_policies_are_skipped() {
    /// A name, the policies of the probes, the exit status, and parts of the output.
    type DiffCase = (
        &'static str,
        &'static [&'static str],
        i32,
        &'static [&'static str],
    );
    let new = CONFIG_MAPS.replace("== 'b'", "== 'c'");
    let cases: [DiffCase; 4] = [
        (
            "other",
            &["keep", "database", "registry"],
            1,
            &[
                "note[unknown-policy]: 2 probes of other policies are skipped",
                "1 denied now",
            ],
        ),
        (
            "misspelled",
            &["keep", "kepe"],
            1,
            &[
                "warning[unknown-policy]: the policy `kepe` is not in the input",
                "did you mean `keep`?",
            ],
        ),
        (
            "none",
            &["database"],
            2,
            &[
                "1 probe of another policy is skipped",
                "no requests to evaluate",
            ],
        ),
        ("only-misspelled", &["kepe"], 2, &["did you mean `keep`?"]),
    ];
    for (name, policies, status, lines) in cases {
        let with: String = policies.iter().map(|it| probe_of(it) + "\n---\n").collect();
        let folder = directory(
            &format!("skipped-{name}"),
            &[
                ("old.yaml", CONFIG_MAPS),
                ("new.yaml", &new),
                ("with.yaml", &with),
            ],
        );
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (old, new, with) = (path("old.yaml"), path("new.yaml"), path("with.yaml"));
        let ran = vap(&["diff", &old, &new, "--with", &with, "--no-generated"], "");
        assert_eq!(ran.status, status, "{name}: {}{}", ran.out, ran.err);
        for line in lines {
            assert!(ran.out.contains(line), "{name}: {line}: {}", ran.out);
        }
        // A probe in the files of OLD or NEW tests the policies of these files.
        let ran = vap(&["diff", &old, &with], "");
        assert_eq!(ran.status, 2, "{name}: {}", ran.out);
        assert!(
            ran.out.contains("error[unknown-policy]"),
            "{name}: {}",
            ran.out
        );
    }
}

#[test]
fn crd_in_one_policy_version_is_used_for_both_versions() {
    const WIDGET: &str =
        "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\n";
    let crd = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.acme.io"},
        "spec": {
            "group": "acme.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let old = CONFIG_MAPS
        .replace("['']", "[acme.io]")
        .replace("configmaps", "widgets")
        .replace("object.data.a == 'b'", "object.metadata.name == 'a'")
        .replace("string(object.data.size())", "string(object.metadata.name)");
    let new = old.replace("name == 'a'", "name == 'b'");
    let with_crd = format!("{new}---\n{crd}\n");
    for (name, old, new, status, line) in [
        (
            "new",
            &old,
            &with_crd,
            1,
            "a CustomResourceDefinition is only in NEW, but also used for OLD: `widgets.acme.io`",
        ),
        (
            "old",
            &with_crd,
            &old,
            1,
            "a CustomResourceDefinition is only in OLD, but also used for NEW: `widgets.acme.io`",
        ),
        (
            "neither",
            &old,
            &new,
            2,
            "(object.yaml:1): acme.io/v1 Widget is unknown: its CustomResourceDefinition is missing",
        ),
    ] {
        let files = [
            ("old.yaml", &**old),
            ("new.yaml", &**new),
            ("object.yaml", WIDGET),
        ];
        let folder = directory(&format!("definition-{name}"), &files);
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (old, new, object) = (path("old.yaml"), path("new.yaml"), path("object.yaml"));
        let ran = vap(&["diff", &old, &new, "-f", &object], "");
        assert_eq!(ran.status, status, "{name}: {}{}", ran.out, ran.err);
        let out = ran.out.replace(&format!("{}/", folder.display()), "");
        assert!(out.contains(line), "{name}: {line}: {out}");
    }
}
