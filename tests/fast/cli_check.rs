//! Tests the output of `kubectl vap check` for small policies, in all formats.
//!
//! The expected output is in `tests/cli_check`, next to the policies. `VAP_UPDATE=1 cargo test --test all cli_check`
//! regenerates it. Review the difference before you commit it.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::golden::{self, PLAIN};
use serde_json::Value;
use vap_status_controller::cli::check::finding::{Finding, Severity};
use vap_status_controller::cli::check::report::CheckReport;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::render;
use vap_status_controller::cli::terminal::Terminal;
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::consequence::Consequence;
use vap_status_controller::policy::rule::Rule;
use vap_status_controller::version::KubernetesVersion;

fn report(path: &str, profile: Profile) -> CheckReport {
    let options = Options {
        paths: vec![PathBuf::from(path)],
        crds: Vec::new(),
        profile,
        version: None,
        ..Options::default()
    };
    check::run(&options, &mut std::io::empty()).unwrap()
}

/// Compares the output for a policy file with the expected output in the same directory.
#[track_caller]
fn check(name: &str, profile: Profile, exit: Exit) {
    let report = report(&format!("tests/cli_check/{name}.yaml"), profile);
    let ending = match profile {
        Profile::Truthful => "txt",
        Profile::Upstream => "upstream.txt",
    };
    compare(
        &format!("{name}.{ending}"),
        &check::render::text(&report, PLAIN),
    );
    assert_eq!(report.exit(false), exit);
}

#[track_caller]
fn compare(file: &str, found: &str) {
    golden::compare(&format!("tests/cli_check/{file}"), found);
}

#[test]
fn help_of_findings_proposes_corrections() {
    check("helps", Profile::Truthful, Exit::Findings);
}

#[test]
fn schema_errors_have_locations() {
    check("crd_schemas", Profile::Truthful, Exit::Findings);
    let report = report("tests/cli_check/crd_schemas.yaml", Profile::Truthful);
    assert!(report.findings.iter().all(|found| found.rejected));
}

#[test]
fn crd_rule_errors_have_locations() {
    check("crd", Profile::Truthful, Exit::Findings);
    let report = report("tests/cli_check/crd.yaml", Profile::Truthful);
    assert!(report.findings.iter().all(|finding| finding.rejected));
}

#[test]
fn expressions_have_locations_in_each_style() {
    check("styles", Profile::Truthful, Exit::Findings);
    check("styles", Profile::Upstream, Exit::Findings);
}

#[test]
fn rejected_policies_are_errors() {
    check("compile", Profile::Truthful, Exit::Findings);
}

#[test]
fn mutating_policies_are_checked() {
    check("mutating", Profile::Truthful, Exit::Findings);
    let report = report("tests/cli_check/mutating.yaml", Profile::Truthful);
    let kinds: Vec<_> = report.policies.iter().map(|policy| policy.kind).collect();
    assert_eq!(kinds, [Some("MutatingAdmissionPolicy"); 3]);
}

/// The policy consists of 29 lines. Six of its expressions read an unguarded field, and it matches a kind without a
/// spec.
#[test]
fn repeated_causes_have_one_finding() {
    check("noise", Profile::Truthful, Exit::Findings);
    let report = report("tests/cli_check/noise.yaml", Profile::Truthful);
    // Lines are wrapped only on a terminal.
    for (width, max_lines) in [(None, 45), (Some(80), 60)] {
        let terminal = Terminal {
            width,
            color: false,
        };
        let text = check::render::text(&report, terminal);
        let n_lines = text.lines().count();
        assert!(
            n_lines <= max_lines,
            "{n_lines} lines at {width:?}:\n{text}"
        );
        // The effect of the default failurePolicy is shown once.
        assert_eq!(text.matches("failurePolicy Fail").count(), 1, "{text}");
    }
}

#[test]
fn structure_errors_have_locations() {
    check("structure", Profile::Truthful, Exit::Findings);
}

#[test]
fn unserved_resources_and_param_kinds_are_reported() {
    check("resources", Profile::Truthful, Exit::Findings);
}

#[test]
fn rules_of_bindings_are_checked() {
    check("binding_rules", Profile::Truthful, Exit::Findings);
}

#[test]
fn exempt_resources_are_reported() {
    check("exempt", Profile::Truthful, Exit::Findings);
}

#[test]
fn costs_near_limit_are_reported() {
    check("costs", Profile::Truthful, Exit::Findings);
    let report = report("tests/cli_check/costs.yaml", Profile::Truthful);
    let costs: Vec<_> = report.policies.iter().map(|policy| &policy.costs).collect();
    compare(
        "costs.json",
        &format!("{}\n", serde_json::to_string_pretty(&costs).unwrap()),
    );
    compare("costs.table.txt", &render::costs(&report, PLAIN));
}

/// Every finding about an expression that can fail must state the effect on requests, both in its JSON and in its help.
#[test]
fn findings_have_consequence() {
    let mut ids = BTreeSet::new();
    for file in ["styles", "costs", "consequences"] {
        let report = report(&format!("tests/cli_check/{file}.yaml"), Profile::Truthful);
        let json = serde_json::to_value(&report).unwrap();
        for found in json["findings"].as_array().unwrap() {
            let is_about_evaluation = found["severity"] == "warning"
                && found["fieldRef"].is_string()
                && found["rule"] != "ignored-containers";
            let Some(id) = found["consequence"]["id"].as_str() else {
                assert!(found.get("consequence").is_none(), "{found:#}");
                assert!(!is_about_evaluation, "{found:#}");
                continue;
            };
            let message = found["consequence"]["message"].as_str().unwrap();
            assert!(
                found["help"].as_str().unwrap().contains(message),
                "{found:#}"
            );
            ids.insert(id.to_owned());
        }
    }
    // `Unread` is omitted, because unused variables are never evaluated.
    let all = Consequence::ALL
        .iter()
        .filter(|known| **known != Consequence::Unread);
    let all: BTreeSet<_> = all.map(|known| known.id().to_owned()).collect();
    assert_eq!(ids, all);
}

#[test]
fn bindings_and_old_versions_are_checked() {
    check("bindings", Profile::Truthful, Exit::Findings);
}

#[test]
fn skipped_input_is_listed() {
    check("passed_over", Profile::Truthful, Exit::Findings);
}

#[test]
fn mistake_gives_only_one_finding() {
    check("cascades", Profile::Truthful, Exit::Findings);
}

#[test]
fn mistake_with_several_effects_gives_only_one_finding() {
    check("one_cause", Profile::Truthful, Exit::Findings);
}

#[test]
fn broken_documents_do_not_affect_others() {
    check("broken", Profile::Truthful, Exit::Failed);
}

#[test]
fn invalid_yaml_does_not_hide_other_findings() {
    check("repairs", Profile::Truthful, Exit::Failed);
}

/// Each marker must be below the mistake: below the selection of `replica`, or below the first letter of a misspelled
/// name.
#[test]
fn markers_are_below_the_mistake() {
    let report = report("tests/cli_check/styles.yaml", Profile::Truthful);
    let mut n_marks = 0;
    for found in report
        .findings
        .iter()
        .filter(|found| found.rule == Rule::UndefinedField)
    {
        let place = found.location.place.unwrap();
        let line = found.location.source.as_ref().unwrap().line(place.line);
        let marked: String = line
            .chars()
            .skip(place.column - 1)
            .take(found.location.length)
            .collect();
        assert!(
            [".replica", ".replicass", ".initContainer"].contains(&marked.as_str()),
            "{marked:?} in {line:?}"
        );
        n_marks += 1 + found.also.len();
    }
    assert_eq!(n_marks, 12);
}

#[test]
fn samples_have_expected_findings() {
    let report = report("config/samples", Profile::Truthful);
    let ready: Vec<_> = report
        .policies
        .iter()
        .map(|policy| {
            let ready = &policy.conditions[0];
            (
                policy.name.as_str(),
                ready.status.as_str(),
                ready.reason.as_str(),
            )
        })
        .collect();
    assert_eq!(
        ready,
        [
            // The demo lacks this CRD. This test finds it in the directory `late`.
            ("sample-missing-param-kind", "True", "Ready"),
            ("sample-misspelt-field", "False", "ExpressionWarnings"),
            ("sample-no-such-resource", "False", "NoServedResources"),
            ("sample-sound", "True", "Ready"),
            ("sample-sound-params", "True", "Ready"),
            ("sample-wildcard", "True", "Ready"),
            ("sample-wrong-type", "False", "ExpressionWarnings"),
        ]
    );
}

#[test]
fn json_output_is_as_expected() {
    let report = report("tests/cli_check/bindings.yaml", Profile::Truthful);
    let mut json = serde_json::to_string_pretty(&report).unwrap();
    json.push('\n');
    compare("bindings.json", &json);
}

#[test]
fn github_and_sarif_output_have_all_findings() {
    let report = report("tests/cli_check/broken.yaml", Profile::Truthful);
    compare("broken.github.txt", &check::annotations::github(&report));
    let sarif = check::annotations::sarif(&report);
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), report.findings.len());
    let rules: Vec<&Value> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["id"])
        .collect();
    for result in results {
        assert!(rules.contains(&&result["ruleId"]), "{result}");
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(
            location["artifactLocation"]["uri"],
            "tests/cli_check/broken.yaml"
        );
        assert!(location["region"]["startLine"].as_u64().unwrap() > 0);
    }
}

/// A fix in SARIF contains a byte range, and a range of lines and columns. Both must result in the file that `--fix`
/// writes.
#[test]
fn sarif_fixes_have_the_result_of_the_fix_flag() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mends-of-sarif.yaml");
    let policy = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: mends} # é
spec:
  failurePolicy: \"fail\"
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps/v1, apps], apiVersions: [v1], operations: [create], resources: [deployments]}
  validations:
  - {message: \"é\", expression: object.spec.replica <= 50}
";
    for text in [
        policy.to_owned(),
        format!("\u{feff}{policy}"),
        policy.replace('\n', "\r\n"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let options = Options {
            paths: vec![path.clone()],
            ..Options::default()
        };
        let report = check::run(&options, &mut std::io::empty()).unwrap();
        let sarif = check::annotations::sarif(&report);
        let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
        let mut changed = Vec::new();
        for fix in results
            .filter_map(|result| result["fixes"].as_array())
            .flatten()
        {
            assert!(fix["description"]["text"].is_string());
            let [change] = &fix["artifactChanges"].as_array().unwrap()[..] else {
                panic!("{fix}")
            };
            assert!(
                change["artifactLocation"]["uri"]
                    .as_str()
                    .unwrap()
                    .ends_with("/mends-of-sarif.yaml")
            );
            for replacement in change["replacements"].as_array().unwrap() {
                let region = &replacement["deletedRegion"];
                let number = |name: &str| usize::try_from(region[name].as_u64().unwrap()).unwrap();
                let (start, length) = (number("byteOffset"), number("byteLength"));
                let deleted = text.get(start..start + length).unwrap();
                assert_eq!(number("startLine"), number("endLine"));
                let line = text
                    .trim_start_matches('\u{feff}')
                    .split('\n')
                    .nth(number("startLine") - 1);
                let n = number("endColumn") - number("startColumn");
                let by_column = line
                    .unwrap()
                    .chars()
                    .skip(number("startColumn") - 1)
                    .take(n);
                assert_eq!(by_column.collect::<String>(), deleted);
                let inserted = replacement["insertedContent"]["text"].as_str().unwrap();
                changed.push(format!("{deleted} -> {inserted}"));
            }
        }
        changed.sort();
        assert_eq!(
            changed,
            ["apps/v1 -> apps", "create -> CREATE", "fail -> Fail"]
        );
    }
}

#[test]
fn color_adds_only_escape_sequences() {
    let report = report("tests/cli_check/styles.yaml", Profile::Truthful);
    let terminal = Terminal {
        color: true,
        ..PLAIN
    };
    let mut colored = check::render::text(&report, terminal);
    assert!(colored.contains("\u{1b}[1;33mwarning[undefined-field]"));
    for code in ["1", "1;31", "1;33", "1;34", "1;36", "0"] {
        colored = colored.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(colored, check::render::text(&report, PLAIN));
}

/// Checks randomly damaged input from a fixed seed. The check must not panic, and each finding must have a location in
/// its file.
#[test]
fn damaged_input_does_not_panic() {
    let mut seed: u64 = 0x2545_f491_4f6c_dd1d;
    let mut random = |below: usize| {
        // Source: G. Marsaglia, "Xorshift RNGs".
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % u64::try_from(below.max(1)).unwrap()).unwrap()
    };
    let pieces: Vec<&[u8]> = vec![
        b"",
        b"'",
        b"\"",
        b"\\",
        b"\n",
        b"\t",
        b"{",
        b"[",
        b"- ",
        b": ",
        b"|",
        b">-",
        b"&a ",
        b"*a ",
        b"<<: ",
        b"---\n",
        b"\xff",
        b"\xc3\xa9",
        b"\r\n",
        b"!!binary ",
        b"\0",
        b"?",
        b"#",
        b"%",
    ];
    for name in [
        "styles",
        "compile",
        "structure",
        "resources",
        "bindings",
        "broken",
    ] {
        let original = fs::read(format!("tests/cli_check/{name}.yaml")).unwrap();
        for _ in 0..25 {
            let mut bytes = original.clone();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                let end = (at + random(12)).min(bytes.len());
                let piece = pieces[random(pieces.len())];
                bytes.splice(at..end, piece.iter().copied());
            }
            let options = Options {
                paths: vec![PathBuf::from("-")],
                ..Options::default()
            };
            let report = check::run(&options, &mut bytes.as_slice()).unwrap();
            for found in &report.findings {
                assert_ne!(found.rule, Rule::CheckFailed);
                if let (Some(place), Some(source)) = (found.location.place, &found.location.source)
                {
                    let n_columns = source.line(place.line).chars().count();
                    assert!(place.column <= n_columns + 2, "{found:?}");
                }
            }
            let _ = check::render::text(&report, PLAIN);
        }
    }
}

/// Source: kubernetes `pkg/apis/admissionregistration/validation/static_suffix.go`.
#[test]
fn names_reserved_for_static_manifests_are_rejected_since_1_37() {
    let api_version = "apiVersion: admissionregistration.k8s.io/v1";
    let documents = [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ]
    .map(|kind| format!("{api_version}\nkind: {kind}\nmetadata: {{name: a.static.k8s.io}}\n"));
    for document in &documents {
        for (minor, expected) in [
            (35, None),
            (36, Some((Severity::Warning, false))),
            (37, Some((Severity::Error, true))),
        ] {
            let options = Options {
                paths: vec![PathBuf::from("-")],
                crds: Vec::new(),
                profile: Profile::Truthful,
                version: Some(KubernetesVersion::new(minor)),
                ..Options::default()
            };
            let report = check::run(&options, &mut document.as_bytes()).unwrap();
            let reserved = |finding: &&Finding| finding.message.contains("reserved for static");
            let finding = report.findings.iter().find(reserved);
            let actual = finding.map(|finding| (finding.severity, finding.rejected));
            assert_eq!(actual, expected, "1.{minor}: {document}");
        }
    }
}
