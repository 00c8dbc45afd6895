//! Tests `kubectl vap upgrade-check`: one policy for each class of changes, undecided policies, and errors.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cli_commands::{directory, vap};
use crate::golden;
use crate::json_schema::errors;
use vap_status_controller::cli::report_schema;
use vap_status_controller::policy::version_changes;

/// The arguments for each file in `tests/cli_upgrade`, and the expected exit status.
const FILES: [(&str, &str, i32); 12] = [
    ("denies", "--from 1.36 --to 1.37", 1),
    ("admits", "--from 1.36 --to 1.37", 1),
    ("errors", "--from 1.36 --to 1.37", 1),
    ("refused", "--from 1.36 --to 1.37", 1),
    ("mutates", "--from 1.36 --to 1.37", 1),
    ("costs", "--from 1.36 --to 1.37", 1),
    ("taken", "--from 1.36 --to 1.37", 0),
    ("audit", "--from 1.36 --to 1.37", 0),
    ("text", "--from 1.34 --to 1.35 --text", 0),
    ("unchanged", "--from 1.36 --to 1.37", 0),
    ("undecided", "--from 1.36 --to 1.37", 0),
    ("nothing", "--from 1.36 --to 1.37", 2),
];

/// More commands, in the format of [`FILES`]: rejected, undecided and unserved policies, and causes of changes.
const CASES: [(&str, &str, i32); 22] = [
    ("unreached-mutation", "--from 1.36", 1),
    ("unreached-mutation", "--from 1.33 --to 1.37", 0),
    ("unchanged", "--from 1.36 -f missing.yaml", 2),
    ("static-name", "--from 1.36", 1),
    ("static-name", "--from 1.36.3 --to 1.37.2", 1),
    ("defaults-and-reviews", "--from 1.36.3 --to 1.37.2", 1),
    ("removed-rule", "--from 1.34 --to 1.37", 1),
    ("beta-version", "--from 1.33", 1),
    ("creation-time", "--from 1.33", 1),
    ("removed-resource", "--from 1.31 --to 1.32", 1),
    ("old-resource", "--from 1.36", 2),
    ("two-validations", "--from 1.36", 1),
    ("match-condition", "--from 1.36", 1),
    ("newer-function", "--from 1.33", 0),
    ("nested-patch", "--from 1.34 --to 1.35", 1),
    ("definition", "--from 1.36", 1),
    ("authorizer-cost", "--from 1.31 --to 1.32", 1),
    ("other-changes", "--from 1.36", 1),
    ("other-changes", "--from 1.32 --to 1.33", 0),
    ("other-changes", "--from 1.32.3 --to 1.32.4", 1),
    ("other-changes", "--from 1.31 --to 1.32", 1),
    ("estimates", "--from 1.32 --to 1.33", 0),
];

/// The changes that `upgrade-check` cannot report. They only affect objects that both versions reject.
const ONLY_IN_REJECTIONS: [&str; 2] = ["lists-in-messages", "result-types-in-messages"];

/// Returns the words of a command for a file in `tests/cli_upgrade`.
fn command(name: &str, arguments: &str) -> Vec<String> {
    let path = format!("tests/cli_upgrade/{name}.yaml");
    let words = arguments.split(' ').map(str::to_owned);
    ["upgrade-check".to_owned(), path]
        .into_iter()
        .chain(words)
        .collect()
}

fn run(words: &[String]) -> crate::cli_commands::Ran {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    vap(&words, "")
}

#[test]
fn each_change_between_versions_has_a_case() {
    let outputs = [
        include_str!("../cli_upgrade/output.txt"),
        include_str!("../cli_upgrade/cases.txt"),
    ]
    .concat();
    let ids = version_changes::ALL.iter().map(|change| change.id);
    let missing: Vec<&str> = ids
        .filter(|id| !outputs.contains(&format!("[{id}]")))
        .collect();
    assert_eq!(missing, ONLY_IN_REJECTIONS);
}

#[test]
fn each_class_of_change_has_a_case() {
    compare_output(&FILES, "output.txt");
}

#[test]
fn policies_that_are_not_compared_are_listed() {
    compare_output(&CASES, "cases.txt");
}

/// Compares the output of each command with a golden file in `tests/cli_upgrade`.
fn compare_output(commands: &[(&str, &str, i32)], file: &str) {
    let mut text = String::new();
    for (name, arguments, exit) in commands.iter().copied() {
        let words = command(name, arguments);
        let ran = run(&words);
        assert_eq!(ran.status, exit, "{name}: {}{}", ran.out, ran.err);
        let _ = write!(
            text,
            "$ kubectl vap {}\n{}{}\n",
            words.join(" "),
            ran.out,
            ran.err
        );
    }
    golden::compare(&format!("tests/cli_upgrade/{file}"), &text);
}

#[test]
fn json_output_is_valid_and_has_the_class_of_each_change() {
    let schema = report_schema::upgrade_schema();
    for (name, arguments, _) in FILES {
        let report = run(&command(name, &format!("{arguments} -o json"))).json();
        let findings = errors(&schema, &report, true);
        assert!(findings.is_empty(), "{name}: {findings:#?}");
        let classes: Vec<&str> = report["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| change["class"].as_str().unwrap())
            .collect();
        let expected = match name {
            "unchanged" | "undecided" | "nothing" => "",
            name => &*name.to_uppercase(),
        };
        assert!(
            expected.is_empty() == classes.is_empty(),
            "{name}: {classes:?}"
        );
        assert!(
            expected.is_empty() || classes.contains(&expected),
            "{name}: {classes:?}"
        );
    }
    let report = run(&command("denies", "--from 1.36 --to 1.37 -o json")).json();
    let text = serde_json::to_string_pretty(&report).unwrap();
    golden::compare("tests/cli_upgrade/denies.json", &(text + "\n"));
}

/// The generated request of each change is a probe that passes in the old version, and fails in the new one.
#[test]
fn written_probes_pass_only_in_the_old_version() {
    let folder = directory("upgrade-probes", &[]);
    for name in ["denies", "admits", "errors", "refused", "mutating-probe"] {
        let probes = folder.join(format!("{name}.yaml"));
        let probes = probes.to_str().unwrap();
        let ran = run(&command(
            name,
            &format!("--from 1.36 --write-probes {probes}"),
        ));
        assert_eq!(ran.status, 1, "{name}: {}", ran.err);
        let policy = format!("tests/cli_upgrade/{name}.yaml");
        let test = |version| {
            let words = ["test", &*policy, probes, "--kubernetes-version", version];
            vap(&words, "")
        };
        let old = test("1.36");
        assert_eq!(old.status, 0, "{name}: {}", old.out);
        let new = test("1.37");
        assert_ne!(new.status, 0, "{name}: {}", new.out);
    }
}

/// After `check --fix`, the versions have the same result for the policy.
#[test]
fn fixed_policy_has_no_changes() {
    let text = std::fs::read_to_string("tests/cli_upgrade/denies.yaml").unwrap();
    let folder = directory("upgrade-fix", &[("p.yaml", &text)]);
    let path = folder.join("p.yaml");
    let path = path.to_str().unwrap();
    let changed = vap(&["upgrade-check", path, "--from", "1.36", "-o", "json"], "").json();
    assert_eq!(changed["changes"][0]["fixable"], true);
    vap(&["check", path, "--fix", "--exit-zero"], "");
    let fixed = vap(&["upgrade-check", path, "--from", "1.36"], "");
    assert_eq!(fixed.status, 0, "{}", fixed.out);
}

#[test]
fn objects_and_probes_are_compared() {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec":
        {"containers": [{"name": "a", "image": "a", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
         "volumes": [{"name": "v", "emptyDir": {}}]}}"#;
    let words = "upgrade-check tests/cli_upgrade/denies.yaml --from 1.36 -f - -o json";
    let report = vap(&words.split(' ').collect::<Vec<_>>(), pod).json();
    let change = &report["changes"][0];
    assert_eq!(change["class"], "DENIES", "{report:#}");
    assert_eq!(change["requests"], 1);
    assert_eq!(change["subjects"][0]["name"], "Pod default/a");
    assert_eq!(report["summary"]["objects"], 1);
    let probe = "apiVersion: vap-status.dev/v1alpha1\nkind: PolicyProbe\nmetadata: {name: mounts}\nspec:\n  policyName: no-host-mounts\n  cases:\n  - name: a mount\n    request:\n      object: POD\n    expect: {decision: Allow}\n";
    let probe = probe.replace("POD", &pod.replace('\n', " "));
    let folder = directory("upgrade-probe", &[("probe.yaml", &probe)]);
    let folder = folder.to_str().unwrap();
    let words = [
        "upgrade-check",
        "tests/cli_upgrade/denies.yaml",
        folder,
        "--from",
        "1.36",
        "-o",
        "json",
    ];
    let report = vap(&words, "").json();
    let subjects = report["changes"][0]["subjects"].as_array().unwrap();
    let names: Vec<&Value> = subjects.iter().map(|subject| &subject["name"]).collect();
    assert_eq!(names, ["probe mounts, case a mount"]);
}

/// Names that end with `.static.k8s.io` are allowed only in the directory of static manifests.
#[test]
fn static_manifests_can_have_reserved_names() {
    let text = std::fs::read_to_string("tests/cli_upgrade/static-name.yaml").unwrap();
    let folder = directory("upgrade-static", &[("p.yaml", &text)]);
    let folder = folder.to_str().unwrap();
    let run = |words: &[&str]| {
        let words = [&["upgrade-check", "--from", "1.36"], words].concat();
        vap(&words, "")
    };
    let rejected = run(&[folder]);
    assert_eq!(rejected.status, 1, "{}", rejected.out);
    let accepted = run(&["--static", folder]);
    assert_eq!(accepted.status, 0, "{}{}", accepted.out, accepted.err);
    assert!(
        accepted.out.contains("1 does not change"),
        "{}",
        accepted.out
    );
}

#[test]
fn policies_are_read_from_standard_input() {
    let text = std::fs::read_to_string("tests/cli_upgrade/denies.yaml").unwrap();
    let words = ["upgrade-check", "-", "--from", "1.36", "-o", "json"];
    let report = vap(&words, &text).json();
    assert_eq!(report["changes"][0]["class"], "DENIES", "{report:#}");
    assert_eq!(report["changes"][0]["place"], "<stdin>:11");
    let twice = vap(&["upgrade-check", "-", "-f", "-", "--from", "1.36"], &text);
    assert_eq!(twice.status, 2);
    assert!(twice.err.contains("can only be used once"), "{}", twice.err);
}

/// The objects of policies are also read from standard input.
#[test]
fn objects_in_standard_input_are_compared() {
    let policy = std::fs::read_to_string("tests/cli_upgrade/text.yaml").unwrap();
    let words = "upgrade-check - --from 1.34 --to 1.35 --text -o json";
    let report = vap(&words.split(' ').collect::<Vec<_>>(), &policy).json();
    assert_eq!(report["summary"]["objects"], 1, "{report:#}");
}

/// The generator finds no value with four parts. So the comparison is undecided, unless a given object has such a
/// value.
#[test]
fn given_objects_reach_expressions_that_generated_requests_miss() {
    let policy = r#"apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: parts}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - expression: "!has(object.data) || !('k' in object.data) || object.data.k.split('-').size() != 4 || object.data.k.indexOf('A', 0) == 0"
"#;
    let folder = directory("upgrade-reached", &[("p.yaml", policy)]);
    let folder = folder.to_str().unwrap();
    let compare = |words: &[&str], stdin: &str| {
        let words = [
            &["upgrade-check", folder, "--from", "1.36", "-o", "json"],
            words,
        ]
        .concat();
        vap(&words, stdin).json()["summary"]["undecided"].clone()
    };
    assert_eq!(compare(&[], ""), 1);
    let object = |value: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a", "namespace": "default"}}, "data": {{"k": "{value}"}}}}"#
        )
    };
    assert_eq!(compare(&["-f", "-"], &object("A")), 1);
    assert_eq!(compare(&["-f", "-"], &object("A-b-c-d")), 0);
}

#[test]
fn invalid_pairs_of_versions_are_usage_errors() {
    let message = |arguments: &str| {
        let ran = run(&command("denies", arguments));
        assert_eq!(ran.status, 2, "{}", ran.out);
        ran.err
    };
    for (arguments, expected) in [
        ("--to 1.37", "pass --from VERSION, or use a cluster"),
        ("--from 1.37", "1.37 is the newest supported version"),
        ("--from 1.36 --to 1.36", "both versions are 1.36"),
        (
            "--from 1.36 --to 1.34",
            "--to 1.34 is older than --from 1.36",
        ),
    ] {
        let error = message(arguments);
        assert!(error.contains(expected), "{arguments}: {error}");
    }
    let report = run(&command("denies", "--from 1.35 -o json")).json();
    assert_eq!(report["to"], "1.36");
    assert_eq!(report["changes"].as_array().unwrap().len(), 0);
}

#[test]
fn undecided_policies_fail_with_strict_flag() {
    let words = command("undecided", "--from 1.36 --strict");
    assert_eq!(run(&words).status, 2);
    let words = command("unchanged", "--from 1.36 --strict");
    assert_eq!(run(&words).status, 0);
}

/// A generated update contains null in the old object and an empty list in the new one.
#[test]
fn null_list_is_compared_with_empty_list() {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "unchanged"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["roles"],
            }]},
            "validations": [{"expression": "object == oldObject"}],
        },
    });
    let words = ["upgrade-check", "-", "--from", "1.36", "-o", "json"];
    let report = vap(&words, &policy.to_string()).json();
    assert_eq!(report["changes"][0]["class"], "ADMITS", "{report:#}");
}
