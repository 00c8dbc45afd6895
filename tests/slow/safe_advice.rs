//! Tests that the advice of `check` does not weaken a policy: applies each fix and each suggestion, and evaluates a
//! request that the policy must deny.
//!
//! The cases are in `tests/safe_advice/*.txt`. Each line of a case is a key and its value:
//!
//! - `case`: the name
//! - `rule`: the API group, the version, the resources and the operations of a rule
//! - `exclude`: the same parts of an excludeResourceRule; `exclude-binding`: those of a rule of the binding
//! - `failure`: the failurePolicy (by default `Fail`)
//! - `params`: the API version and the kind of the paramKind
//! - `match`, `variable`, `validate`: an expression; `message`: the messageExpression of the validation before it
//! - `object`, `old`, `operation`: the request
//! - `allowed`: an object that the fixed policy allows
//! - `fixed`: a line of the fixed policy
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli_commands::{directory, vap};

const FOLDER: &str = "tests/safe_advice";

struct Case {
    name: String,
    lines: Vec<(String, String)>,
}

impl Case {
    fn all<'c>(&'c self, key: &str) -> impl Iterator<Item = &'c str> {
        let lines = self.lines.iter();
        lines
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    fn policy(&self) -> String {
        let mut text = String::from(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata:\n  name: policy\n\
             spec:\n",
        );
        let failure = self.first("failure").unwrap_or("Fail");
        writeln!(text, "  failurePolicy: {failure}").unwrap();
        if let Some((version, kind)) = self.first("params").and_then(|it| it.split_once(' ')) {
            writeln!(
                text,
                "  paramKind:\n    apiVersion: {version}\n    kind: {kind}"
            )
            .unwrap();
        }
        text.push_str("  matchConstraints:\n    resourceRules:\n");
        text.push_str(&self.rules("rule"));
        if self.first("exclude").is_some() {
            text.push_str("    excludeResourceRules:\n");
            text.push_str(&self.rules("exclude"));
        }
        let mut section = "";
        for (key, value) in &self.lines {
            let (name, entry, expression) = match key.as_str() {
                "match" => (
                    "matchConditions",
                    "  - name: condition\n    expression".to_owned(),
                    value.as_str(),
                ),
                "variable" => {
                    let (name, expression) = value.split_once(" = ").unwrap();
                    (
                        "variables",
                        format!("  - name: {name}\n    expression"),
                        expression,
                    )
                }
                "validate" => ("validations", "  - expression".to_owned(), value.as_str()),
                "message" => (
                    "validations",
                    "    messageExpression".to_owned(),
                    value.as_str(),
                ),
                _ => continue,
            };
            if name != section {
                section = name;
                writeln!(text, "  {name}:").unwrap();
            }
            writeln!(text, "{entry}: |-\n      {expression}").unwrap();
        }
        if self.first("exclude-binding").is_some() {
            text.push_str(
                "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
                 metadata:\n  name: binding\nspec:\n  policyName: policy\n  validationActions: [Deny]\n  \
                 matchResources:\n    excludeResourceRules:\n",
            );
            text.push_str(&self.rules("exclude-binding"));
        }
        text
    }

    /// Returns the rules with the key `key`, as items of a YAML list.
    fn rules(&self, key: &str) -> String {
        let mut text = String::new();
        for rule in self.all(key) {
            let parts: Vec<&str> = rule.split(' ').collect();
            let [group, version, resources, operations] = &*parts else {
                panic!("{}: {rule}", self.name);
            };
            writeln!(
                text,
                "    - apiGroups: [{group}]\n      apiVersions: [{version}]\n      resources: [{resources}]\n      \
                 operations: [{operations}]"
            )
            .unwrap();
        }
        text
    }

    /// Returns the decision for the request of the case, with `object` in place of its object.
    fn decision(&self, folder: &Path, policy: &str, object: Option<&str>) -> String {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let policy = file("policy.yaml", policy);
        let definitions = format!("{FOLDER}/definitions.yaml");
        let mut arguments = vec![
            "eval".to_owned(),
            policy,
            "--crds".to_owned(),
            definitions,
            "-o".to_owned(),
            "json".to_owned(),
        ];
        let is_delete = self.first("operation") == Some("DELETE");
        if let Some(object) = object.or(self.first("object")).filter(|_| !is_delete) {
            arguments.extend(["--object".to_owned(), file("object.yaml", object)]);
        }
        if let Some(old) = self.first("old") {
            arguments.extend(["--old-object".to_owned(), file("old.yaml", old)]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let decision = &vap(&arguments, "").json()["decision"];
        decision.as_str().unwrap().to_owned()
    }
}

fn cases(file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let text = fs::read_to_string(format!("{FOLDER}/{file}.txt")).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (key, value) = line.split_once(": ").unwrap();
        if key == "case" {
            cases.push(Case {
                name: value.to_owned(),
                lines: Vec::new(),
            });
        } else {
            let lines = &mut cases.last_mut().unwrap().lines;
            lines.push((key.to_owned(), value.to_owned()));
        }
    }
    cases
}

/// Applies the edits of a suggestion to `text`. Each edit is within one line.
fn edited(text: &str, edits: &[Value]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // The edits are applied from last to first, so that the columns of the remaining edits stay valid.
    for edit in edits.iter().rev() {
        let number = |key: &str| usize::try_from(edit[key].as_u64().unwrap()).unwrap();
        assert_eq!(edit["line"], edit["endLine"]);
        let line = &mut lines[number("line") - 1];
        let before = line.chars().take(number("column") - 1);
        let after = line.chars().skip(number("endColumn") - 1);
        let new = before
            .chain(edit["text"].as_str().unwrap().chars())
            .chain(after);
        *line = new.collect();
    }
    lines.join("\n") + "\n"
}

/// Returns the violations of a case, each as one line.
fn violations(case: &Case, folder: &Path) -> Vec<String> {
    let policy = case.policy();
    let file = folder.join("checked.yaml");
    let path = file.to_str().unwrap();
    let definitions = format!("{FOLDER}/definitions.yaml");
    fs::write(&file, &policy).unwrap();
    let report = vap(&["check", path, "--crds", &definitions, "-o", "json"], "").json();
    let mut violations = Vec::new();
    let before = case.decision(folder, &policy, None);
    if before != "Deny" && case.first("failure").is_none() {
        violations.push(format!("the policy does not deny the request: {before}"));
    }
    let empty = Vec::new();
    let mut n_advised = 0;
    for finding in report["findings"].as_array().unwrap() {
        let help = finding["help"].as_str().unwrap_or_default();
        n_advised += usize::from(!help.is_empty());
        let suggestions = finding["suggestions"].as_array().unwrap_or(&empty);
        let is_lenient = |it: &Value| {
            let effect = it["effect"]["id"].as_str().unwrap();
            matches!(effect, "passed" | "not-matched")
        };
        let strict = suggestions.iter().filter(|it| !is_lenient(it));
        let n_strict = strict.count();
        for suggestion in suggestions {
            let edits = suggestion["edits"].as_array().unwrap();
            let text = suggestion["text"].as_str().unwrap();
            let is_choice = suggestion["default"].is_null();
            let states_effect = ["allow", "skip"].iter().any(|word| help.contains(word));
            if is_lenient(suggestion) && !states_effect {
                violations.push(format!(
                    "{text}: the help does not state the effect: {help}"
                ));
            }
            if is_lenient(suggestion) && is_choice && n_strict == 0 {
                violations.push(format!("{text}: the only suggestion allows requests"));
            }
            let is_hidden = finding["hidden"] == true;
            if edits.is_empty() != is_hidden {
                violations.push(format!("{text}: {} edits", edits.len()));
            }
            let decision = case.decision(folder, &edited(&policy, edits), None);
            if decision != "Deny" && !(is_choice && is_lenient(suggestion) && n_strict > 0) {
                violations.push(format!("{text}: {decision}"));
            }
        }
    }
    if n_advised == 0 {
        violations.push("no advice".to_owned());
    }
    fs::write(&file, &policy).unwrap();
    vap(&["check", path, "--crds", &definitions, "--fix"], "");
    let fixed = fs::read_to_string(&file).unwrap();
    if fixed != policy {
        let decision = case.decision(folder, &fixed, None);
        if decision != "Deny" {
            violations.push(format!("--fix: {decision}: {fixed}"));
        }
    }
    for object in case.all("allowed") {
        let decision = case.decision(folder, &fixed, Some(object));
        if decision != "Allow" {
            violations.push(format!("allowed: {decision}: {fixed}"));
        }
    }
    for line in case.all("fixed") {
        if !fixed.lines().any(|it| it.trim() == line) {
            violations.push(format!("no line {line:?} in: {fixed}"));
        }
    }
    violations
}

/// Tests the cases of a file, of which there are at least `n_min`.
#[track_caller]
fn test_cases(file: &str, n_min: usize) {
    let cases = cases(file);
    assert!(cases.len() >= n_min, "{}", cases.len());
    let mut all = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        let folder = directory(&format!("safe_advice_{file}_{n}"), &[]);
        let violations = violations(case, &folder);
        all.extend(violations.iter().map(|it| format!("{}: {it}", case.name)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn advice_for_pods_does_not_allow_denied_requests() {
    test_cases("pods", 30);
}

#[test]
fn advice_for_networks_and_permissions_does_not_allow_denied_requests() {
    test_cases("network", 20);
}

#[test]
fn advice_for_other_requests_does_not_allow_denied_requests() {
    test_cases("requests", 30);
}
