//! Compares results of validation rules and policies with recorded results. The results of a case differ between
//! Kubernetes versions. `parity/tests/recorded.rs` compares expressions.

use std::fmt::Write as _;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value as Json, json};
use vap_status_controller::cli::check::finding::Severity;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::policy::compile::{CompileFindingKind, CompiledPolicy};
use vap_status_controller::policy::rule::Rule;
use vap_status_controller::schema::GroupVersion;
use vap_status_controller::validation_rules::{Validator, validate_rules};
use vap_status_controller::version::{CompileMode, KubernetesVersion};

use crate::golden;

/// Returns the results of a case, one line per range of versions.
fn results(text: &str, result: impl Fn(&str, KubernetesVersion) -> String) -> String {
    let mut ranges: Vec<(u16, u16, String)> = Vec::new();
    for version in KubernetesVersion::supported() {
        let actual = result(text, version);
        match ranges.last_mut() {
            Some((_, last, previous)) if *previous == actual => *last = version.minor,
            _ => ranges.push((version.minor, version.minor, actual)),
        }
    }
    let mut lines = String::new();
    for (first, last, actual) in ranges {
        let range = if first == last {
            format!("1.{first}")
        } else {
            format!("1.{first} to 1.{last}")
        };
        let _ = writeln!(lines, "  {range}: {actual}");
    }
    lines
}

/// Compares the results of all cases of a file with the recorded results. Returns the number of cases.
fn compare(path: &str, result: impl Fn(&str, KubernetesVersion) -> String) -> usize {
    let recorded = std::fs::read_to_string(path).unwrap();
    let mut actual = String::new();
    let mut n_cases = 0;
    for line in recorded.lines() {
        if line.starts_with("  ") {
            continue;
        }
        actual.push_str(line);
        actual.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            n_cases += 1;
            actual.push_str(&results(line, &result));
        }
    }
    golden::compare(path, &actual);
    n_cases
}

fn findings(manifest: &str, rule: Rule, version: KubernetesVersion) -> String {
    let options = Options {
        paths: vec!["-".into()],
        version: Some(version),
        ..Options::default()
    };
    let report = check::run(&options, &mut manifest.as_bytes()).unwrap();
    assert_eq!(report.kubernetes, version.to_string());
    let findings = report
        .findings
        .iter()
        .filter(|finding| finding.rule == rule);
    let shown: Vec<String> = findings
        .map(|finding| {
            let help = finding.help.as_deref().unwrap_or_default();
            let shown = format!("{} ({help})", finding.message);
            shown.replace(&format!("Kubernetes {version} "), "this version ")
        })
        .collect();
    if shown.is_empty() {
        "no findings".to_owned()
    } else {
        shown.join("; ")
    }
}

#[test]
fn undefined_fields_of_each_version_are_reported() {
    let n_cases = compare("tests/versions/fields.txt", |case, version| {
        let (resource, expression) = case.split_once(": ").unwrap();
        let (group_version, resource) = resource.rsplit_once('/').unwrap();
        let (group, api_version) = GroupVersion::split(group_version);
        let manifest = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "a"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [group],
                    "apiVersions": [api_version],
                    "operations": ["CREATE"],
                    "resources": [resource],
                }]},
                "validations": [{"expression": expression}],
            },
        });
        findings(&manifest.to_string(), Rule::UndefinedField, version)
    });
    assert_eq!(n_cases, 13);
}

#[test]
fn unserved_api_versions_of_each_version_are_reported() {
    let n_cases = compare("tests/versions/api_versions.txt", |case, version| {
        let (kind, api_version) = case.split_once(' ').unwrap();
        let mut manifest = json!({
            "apiVersion": format!("admissionregistration.k8s.io/{api_version}"),
            "kind": kind,
            "metadata": {"name": "a"},
            "spec": {"policyName": "a"},
        });
        if !kind.ends_with("Binding") {
            manifest["spec"] = json!({"matchConstraints": {"resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }]}});
        }
        findings(&manifest.to_string(), Rule::OldVersion, version)
    });
    assert_eq!(n_cases, 8);
}

/// An API server that is too new may have the function, so the error is not certain.
#[test]
fn expression_with_compile_error_is_unsupported_if_version_is_too_new() {
    let kind_in = |minor| {
        let policy = json!({"spec": {"validations": [{"expression": "object.nextYear()"}]}});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let version = KubernetesVersion::new(minor);
        let compiled = CompiledPolicy::from_parts((&policy).into(), None, version);
        compiled.findings().first().map(|finding| finding.kind)
    };
    let newest = KubernetesVersion::NEWEST.minor;
    assert_eq!(kind_in(newest), Some(CompileFindingKind::Failed));
    assert_eq!(kind_in(newest + 1), Some(CompileFindingKind::Unsupported));
}

/// Returns the estimated costs or the errors of the rules in a schema. If the case has an object, also returns the cost
/// and the errors of its validation. `case` is JSON with the `schema` of the definition, and possibly an `object` and
/// the `old` object of an update.
fn rule_result(case: &str, version: KubernetesVersion) -> String {
    let case: Json = serde_json::from_str(case).unwrap();
    let schema = case.get("schema").unwrap();
    let definition =
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
    let verdict = validate_rules(&definition, version, CompileMode::New);
    let mut texts: Vec<String> = (verdict.costs.iter())
        .filter(|cost| cost.is_compiled)
        .map(|cost| format!("at most {}", cost.max_cost))
        .collect();
    let details = verdict.errors.iter().map(|error| &error.error.detail);
    texts.extend(details.map(|detail| {
        let line = detail.lines().next().unwrap_or_default();
        format!("rejected: {line}")
    }));
    if let Some(object) = case.get("object") {
        let validator = Validator::new(schema, version).unwrap();
        let outcome = validator.validate(object, case.get("old"));
        texts.push(format!("cost {}", outcome.cost));
        let errors = outcome.errors.iter();
        texts.extend(errors.map(|error| {
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        }));
    }
    texts.join("; ")
}

#[test]
fn results_of_validation_rules_are_those_of_upstream() {
    let n_cases = compare("tests/versions/rules.txt", rule_result);
    assert!(n_cases > 15, "{n_cases}");
}

/// A policy with findings that are reported only for some versions.
const RANGED_POLICY: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: object.spec.nosuch == 1
  - expression: object.spec.containers.all(c, c.volumeMounts.orValue([]).size() < 5)
  - expression: object.spec.containers.map(c, c.name).sort().size() > 0
";

#[test]
fn findings_for_some_versions_show_these_versions() {
    let options = Options {
        paths: vec!["-".into()],
        version: Some(KubernetesVersion::new(37)),
        other_versions: (33..37).rev().map(KubernetesVersion::new).collect(),
        ..Options::default()
    };
    let report = check::run(&options, &mut RANGED_POLICY.as_bytes()).unwrap();
    let shown: Vec<_> = (report.findings.iter())
        .map(|it| (it.rule.id(), it.severity, it.versions.join(" ")))
        .collect();
    let expected = [
        ("undefined-field", Severity::Warning, ""),
        ("or-value-without-optional", Severity::Error, ""),
        ("newer-function", Severity::Error, "1.33 1.34"),
    ];
    for (rule, severity, versions) in expected {
        let row = (rule, severity, versions.to_owned());
        assert!(shown.contains(&row), "{rule}: {shown:?}");
    }
    assert_eq!(report.other_versions, ["1.36", "1.35", "1.34", "1.33"]);
    let newer = report
        .findings
        .iter()
        .find(|it| it.rule.id() == "newer-function");
    let help = newer.and_then(|it| it.help.as_deref()).unwrap_or_default();
    assert!(help.starts_with("only in Kubernetes 1.33, 1.34"), "{help}");
}
