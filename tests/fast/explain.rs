//! Tests `kubectl vap explain`, and the examples in the rule table.
//!
//! `VAP_UPDATE=1 cargo test --test all explain` regenerates `docs/rules.md`, `docs/vap.schema.json` and the expected
//! output in `tests/cli_explain`.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;

use crate::golden::{self, PLAIN};
use clap::Parser as _;
use serde_json::Value;
use vap_status_controller::cli::args::Args;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::{explain, run};
use vap_status_controller::policy::rule::{Example, Rule};
use vap_status_controller::version::KubernetesVersion;

/// Runs `kubectl vap explain`. Returns standard output, standard error and the exit status.
fn vap(args: &[&str]) -> (String, String, Exit) {
    let args = Args::parse_from([&["kubectl-vap", "explain"], args].concat());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(&args, PLAIN, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(out), text(err), exit)
}

#[test]
fn docs_rules_page_is_up_to_date() {
    golden::compare("docs/rules.md", &explain::markdown());
}

#[test]
fn schema_of_configuration_file_is_up_to_date() {
    let schema = vap_status_controller::cli::check::config_schema::schema();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    golden::compare("docs/vap.schema.json", &text);
}

#[test]
fn explain_text_output_is_as_expected() {
    let (out, err, exit) = vap(&["undefined-field"]);
    golden::compare("tests/cli_explain/undefined-field.txt", &out);
    assert_eq!((err.as_str(), exit), ("", Exit::Clean));
    let (out, _, _) = vap(&[]);
    golden::compare("tests/cli_explain/all.txt", &out);
    assert_eq!(
        out.lines().filter(|line| !line.starts_with(' ')).count(),
        Rule::ALL.len()
    );
}

#[test]
fn explain_json_output_has_requested_rules() {
    let (out, _, _) = vap(&["-o", "json"]);
    let all: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(all["kind"], "RuleList");
    assert_eq!(all["items"].as_array().unwrap().len(), Rule::ALL.len());
    let (out, _, _) = vap(&["undefined-field", "-o", "json"]);
    let one: Value = serde_json::from_str(&out).unwrap();
    let [only] = &one["items"].as_array().unwrap()[..] else {
        panic!("{out}")
    };
    assert_eq!(only["id"], "undefined-field");
    assert_eq!(only["example"]["of"], "expression");
    assert_eq!(only["example"]["right"], "object.spec.replicas <= 50");
}

#[test]
fn unknown_rule_is_usage_error() {
    let (out, err, exit) = vap(&["undefined-feild"]);
    assert_eq!((out.as_str(), exit), ("", Exit::Failed));
    assert_eq!(
        err,
        "error: no rule `undefined-feild`; did you mean `undefined-field`? `kubectl vap explain` lists all rules\n"
    );
    let (_, err, _) = vap(&["zzz"]);
    assert_eq!(
        err,
        "error: no rule `zzz`; `kubectl vap explain` lists all rules\n"
    );
}

fn rules_of(file: &str, version: KubernetesVersion) -> BTreeSet<Rule> {
    let options = Options {
        paths: vec!["-".into()],
        version: Some(version),
        ..Options::default()
    };
    let report = check::run(&options, &mut file.as_bytes()).unwrap();
    report.findings.iter().map(|found| found.rule).collect()
}

/// Returns a policy for Deployments with the required fields and the fields `spec`.
fn policy(spec: &str) -> String {
    let mut fields = spec.to_owned();
    let constraints = "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
                       operations: [CREATE]\n    resources: [deployments]";
    let validations = "validations:\n- expression: 'true'";
    for (name, field) in [
        ("matchConstraints:", constraints),
        ("validations:", validations),
    ] {
        if !spec.contains(name) {
            fields = format!("{fields}\n{field}");
        }
    }
    let fields: Vec<String> = fields.lines().map(|line| format!("  {line}\n")).collect();
    let fields = fields.concat();
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n\
         {fields}"
    )
}

#[test]
fn rule_examples_have_finding_of_their_rule() {
    let mut wrong_examples = Vec::new();
    for rule in Rule::ALL {
        let of_expression = |text: &str| {
            policy(&format!(
                "validations:\n- expression: {}",
                Value::from(text)
            ))
        };
        let (wrong, right) = match rule.entry().example {
            Example::Expression { wrong, right } => (of_expression(wrong), of_expression(right)),
            Example::Spec { wrong, right } => (policy(wrong), policy(right)),
            Example::File { wrong, right } => (wrong.to_owned(), right.to_owned()),
            Example::Words(_) => continue,
        };
        // In the newest version, the name is undeclared.
        let version = match rule {
            Rule::NotAType => KubernetesVersion::new(36),
            _ => KubernetesVersion::NEWEST,
        };
        let (found, left) = (rules_of(&wrong, version), rules_of(&right, version));
        let is_code = !matches!(rule.entry().example, Example::File { .. });
        if !found.contains(rule) || left.contains(rule) || is_code && !left.is_empty() {
            wrong_examples.push(format!("{}: {found:?}, {left:?}", rule.id()));
        }
    }
    assert!(wrong_examples.is_empty(), "{wrong_examples:#?}");
}
