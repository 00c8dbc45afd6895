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
use vap_status_controller::cli::check::finding::Owner;
use vap_status_controller::cli::check::report::CheckReport;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::exit::Exit;
use vap_status_controller::cli::{explain, field_reference, run};
use vap_status_controller::policy::rule::{Example, Rule, RuleObject};
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
fn docs_api_page_is_up_to_date() {
    golden::compare(
        "docs/api.md",
        &vap_status_controller::cli::field_reference::markdown(),
    );
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

#[test]
fn rules_that_match_search_words_are_listed() {
    let (out, err, exit) = vap(&["absent"]);
    assert_eq!((err.as_str(), exit), ("", Exit::Clean));
    golden::compare("tests/cli_explain/absent.txt", &out);
    let (out, _, _) = vap(&["variable", "same", "-o", "json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    let ids = list["items"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["duplicate-variable"]);
    // A search with one result explains the rule.
    let (out, _, _) = vap(&["variable", "same"]);
    assert!(
        out.starts_with("duplicate-variable\n\nTwo variables"),
        "{out}"
    );
}

/// If a word occurs in no id and no summary, the examples and remedies are searched.
#[test]
fn search_covers_examples_and_remedies() {
    for (word, rule) in [("quantity", "string-order"), ("semver", "string-order")] {
        let (out, err, exit) = vap(&[word, "-o", "json"]);
        assert_eq!((err.as_str(), exit), ("", Exit::Clean));
        assert!(
            out.contains(&format!("\"id\": \"{rule}\"")),
            "{word}: {out}"
        );
    }
}

#[test]
fn fields_of_probes_are_explained() {
    let (out, err, exit) = vap(&["policyprobe.spec.cases"]);
    assert_eq!((err.as_str(), exit), ("", Exit::Clean));
    golden::compare("tests/cli_explain/policyprobe.spec.cases.txt", &out);
    let (out, _, _) = vap(&["PolicyProbes.spec.cases[0].request.operation", "-o", "json"]);
    let field: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(field["kind"], "FieldReference");
    assert_eq!(field["path"], "spec.cases.request.operation");
    assert_eq!(field["type"], "string");
    let (_, err, exit) = vap(&["policyprobe.spec.case"]);
    assert_eq!(exit, Exit::Failed);
    assert_eq!(
        err,
        "error: `PolicyProbe.spec` has no field `case`; did you mean `cases`?\n"
    );
}

/// Every field of every kind has a type and, except for the standard fields of objects, a description.
#[test]
fn all_fields_are_described() {
    let kinds = field_reference::kind_names();
    let names: Vec<&str> = kinds.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "PolicyProbe",
            "MutatingAdmissionPolicyStatus",
            "ValidatingWebhookConfigurationStatus",
            "MutatingWebhookConfigurationStatus",
            "CustomResourceDefinitionStatus"
        ]
    );
    let mut n_fields = 0;
    let mut open: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    while let Some(path) = open.pop() {
        let (out, err, exit) = vap(&[&path, "-o", "json"]);
        assert_eq!(exit, Exit::Clean, "{path}: {err}");
        let reference: Value = serde_json::from_str(&out).unwrap();
        for field in reference["fields"].as_array().unwrap() {
            n_fields += 1;
            assert_ne!(field["type"], "any", "{path}: {field}");
            open.push(format!("{path}.{}", field["name"].as_str().unwrap()));
        }
    }
    assert!(n_fields > 80, "{n_fields}");
}

/// Returns the findings that contradict the table of scopes.
fn disagreements(report: &CheckReport) -> Vec<String> {
    let mut wrong = Vec::new();
    for found in &report.findings {
        let (scope, id) = (found.rule.scope(), found.rule.id());
        let level = found.severity.as_str();
        if !scope.levels.iter().any(|it| it.name() == level) {
            wrong.push(format!("{id}: {level}"));
        }
        if found.fix.is_some() && !scope.is_fixable {
            wrong.push(format!("{id}: fixable"));
        }
        let object = match found.owner {
            Owner::Policy(_) => RuleObject::Policy,
            Owner::Binding(_) => RuleObject::Binding,
            Owner::Webhook { .. } => RuleObject::Webhook,
            Owner::Crd(_) => RuleObject::Definition,
            Owner::None => continue,
        };
        if !scope.objects.contains(&object) {
            wrong.push(format!("{id}: {}", object.name()));
        }
    }
    wrong
}

/// The table of scopes agrees with the findings of the rules' examples, and with those of other tests.
#[test]
fn scopes_of_rules_match_findings() {
    let mut wrong = Vec::new();
    for (rule, text, version) in examples() {
        let report = report(&text, version);
        wrong.extend(disagreements(&report));
        let mut of_rule = report.findings.iter().filter(|found| found.rule == rule);
        let usual = rule.scope().levels.first().unwrap().name();
        if !of_rule.any(|found| found.severity.as_str() == usual) {
            wrong.push(format!("{}: not {usual}", rule.id()));
        }
    }
    let mut n_files = 0;
    for directory in ["tests/cli_check", "tests/first_drafts"] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                n_files += 1;
                let text = std::fs::read_to_string(path).unwrap();
                wrong.extend(disagreements(&report(&text, KubernetesVersion::new(36))));
            }
        }
    }
    assert!(n_files > 30, "{n_files}");
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the wrong example of each rule as a file, with the version of Kubernetes for the check. Omits examples that
/// are described in words.
fn examples() -> Vec<(Rule, String, KubernetesVersion)> {
    let examples = Rule::ALL.iter().filter_map(|rule| {
        let file = match rule.entry().example {
            Example::Expression { wrong, .. } => policy(&format!(
                "validations:\n- expression: {}",
                Value::from(wrong)
            )),
            Example::Spec { wrong, .. } => policy(wrong),
            Example::File { wrong, .. } => wrong.to_owned(),
            Example::Words(_) => return None,
        };
        let version = match rule {
            Rule::NotAType => KubernetesVersion::new(36),
            _ => KubernetesVersion::NEWEST,
        };
        Some((*rule, file, version))
    });
    examples.collect()
}

fn rules_of(file: &str, version: KubernetesVersion) -> BTreeSet<Rule> {
    let report = report(file, version);
    report.findings.iter().map(|found| found.rule).collect()
}

fn report(file: &str, version: KubernetesVersion) -> CheckReport {
    let options = Options {
        paths: vec!["-".into()],
        version: Some(version),
        ..Options::default()
    };
    check::run(&options, &mut file.as_bytes()).unwrap()
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
        // In the newest version, the name in this example is undeclared.
        let version = match rule {
            Rule::NotAType => KubernetesVersion::new(36),
            _ => KubernetesVersion::NEWEST,
        };
        let (found, mut left) = (rules_of(&wrong, version), rules_of(&right, version));
        // The rules that `policy` adds match only CREATE.
        if *rule != Rule::UnwatchedOperation {
            left.remove(&Rule::UnwatchedOperation);
        }
        let is_code = !matches!(rule.entry().example, Example::File { .. });
        if !found.contains(rule) || left.contains(rule) || is_code && !left.is_empty() {
            wrong_examples.push(format!("{}: {found:?}, {left:?}", rule.id()));
        }
    }
    assert!(wrong_examples.is_empty(), "{wrong_examples:#?}");
}
