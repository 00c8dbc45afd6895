//! `parity witnesses`: verifies the witnesses of `kubectl vap check` with upstream's evaluator.
//!
//! If the check reports that an expression may fail, it shows a witness: a request for which the expression fails. For
//! this request, upstream's evaluator must report the error that the check reports.
//!
//! An alarm is a warning without a confirmed witness, unless the warning follows from the policy and the schemas alone.
//! Alarms about sound policies are counted and listed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::decode;
use vap_status_controller::policy::RequestPolicy;
use vap_status_controller::policy::rule::Rule;

use crate::documents;
use crate::version;
use crate::{pair, write_line};

mod mutating;

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct Witnesses {
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The directory of Kubernetes' OpenAPI documents.
    pub openapi: Option<PathBuf>,
    /// The directory of the CRDs that the policies need.
    pub crds: Option<PathBuf>,
    /// The output directory for the requests.
    pub folder: PathBuf,
    /// The policies.
    pub paths: Vec<PathBuf>,
}

/// The counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WitnessesLine {
    /// The number of findings with a witness.
    pub witnesses: usize,
    /// The number of witnesses for which upstream's evaluator does not report the same error.
    pub different: usize,
    /// The number of warnings about policies that the API server accepts.
    pub warnings: usize,
    /// The number of alarms. An alarm is a warning without a confirmed witness, unless the warning follows from the
    /// policy and the schemas alone.
    pub alarms: usize,
    /// The number of sound policies. The API server accepts a sound policy, and the policy has no proven warning.
    pub sound: usize,
    /// The number of sound policies with an alarm.
    pub alarmed: usize,
}

impl WitnessesLine {
    /// Returns true if less than 1% of the sound policies have an alarm.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.alarmed.saturating_mul(100) < self.sound.max(1)
    }
}

/// Rules that need no confirmed witness. Their findings follow from the policies and bindings, or from schemas and
/// served resources. Findings of lock-outs follow from the request in the finding.
const DECIDED: [Rule; 39] = [
    Rule::ConstantCondition,
    Rule::ContradictingMessage,
    Rule::ContradictorySelector,
    Rule::DisjointRules,
    Rule::DuplicateKey,
    Rule::DuplicateName,
    Rule::DuplicateValue,
    Rule::DuplicateVariable,
    Rule::ExemptResource,
    Rule::FailingCall,
    Rule::IgnoredContainers,
    Rule::IgnoredMessage,
    Rule::IgnoredParams,
    Rule::ImagePrefix,
    Rule::ImpossibleGroup,
    Rule::ImpossibleOperation,
    Rule::ImpossibleValue,
    Rule::IneffectiveSelector,
    Rule::InvalidLiteral,
    Rule::Lockout,
    Rule::NegatedExistsOne,
    Rule::OldVersion,
    Rule::OrValueWithoutOptional,
    Rule::ParamKindNotFound,
    Rule::ParamScope,
    Rule::ParamsNotFound,
    Rule::PartialName,
    Rule::RemovableLabel,
    Rule::RepeatedOperand,
    Rule::SwappedArguments,
    Rule::TemplateResidue,
    Rule::UnanchoredPattern,
    Rule::UnknownPolicy,
    Rule::IncomparableTypes,
    Rule::UnservedResource,
    Rule::UnusedParams,
    Rule::UnusedVariable,
    Rule::UnwatchedSubresource,
    Rule::WrongQuantifier,
];

/// The policies in the files, by file and name. `mutating` contains the mutating policies. `shared` contains the
/// validating policies. For each mutating policy, `shared` also contains a validating policy with the parts that both
/// kinds have.
#[derive(Debug, Default)]
struct Policies {
    shared: BTreeMap<(String, String), Value>,
    mutating: BTreeMap<(String, String), Value>,
}

fn policies(paths: &[PathBuf]) -> Result<Policies> {
    let mut policies = Policies::default();
    for document in documents::load_documents(paths)? {
        let Ok(value) = document.value else { continue };
        let Some(name) = value.pointer("/metadata/name").and_then(Value::as_str) else {
            continue;
        };
        let key = (document.file, name.to_owned());
        match value.get("kind").and_then(Value::as_str) {
            Some("ValidatingAdmissionPolicy") => {
                policies.shared.insert(key, value);
            }
            // A mutating policy evaluates its match conditions like a validating policy.
            Some("MutatingAdmissionPolicy") => {
                if let Ok(policy) = decode::mutating_policy(value.clone()) {
                    let shared = RequestPolicy {
                        name: None,
                        ..RequestPolicy::from(&policy)
                    };
                    let shared = json!({
                        "apiVersion": "admissionregistration.k8s.io/v1",
                        "kind": "ValidatingAdmissionPolicy",
                        "metadata": policy.metadata,
                        "spec": shared,
                    });
                    policies.shared.insert(key.clone(), shared);
                    policies.mutating.insert(key, value);
                }
            }
            _ => {}
        }
    }
    Ok(policies)
}

/// Verifies all witnesses. Prints the differences and the final result.
///
/// # Errors
///
/// Returns an error if a file cannot be read or the oracle fails.
pub fn run(witnesses: &Witnesses, out: &mut dyn Write) -> Result<WitnessesLine> {
    let options = Options {
        paths: witnesses.paths.clone(),
        crds: witnesses.crds.iter().cloned().collect(),
        version: Some(version::get()),
        ..Options::default()
    };
    let report = check::run(&options, &mut std::io::empty())?;
    let report = serde_json::to_value(&report)?;
    let policies = policies(&witnesses.paths)?;
    // A hidden finding has an effect only after other findings are fixed, so its witness does not apply to the policy
    // in the file.
    let findings = report.get("findings").and_then(Value::as_array);
    let findings: Vec<&Value> = findings
        .into_iter()
        .flatten()
        .filter(|finding| finding.get("hidden") != Some(&json!(true)))
        .collect();
    let mut expected = Vec::new();
    // Index of the witness, by index of the finding.
    let mut witnessed = HashMap::new();
    let mut cases = Cases::default();
    let crds: Vec<PathBuf> = witnesses.crds.iter().cloned().collect();
    let definitions = mutating::Definitions::load(&[crds, witnesses.paths.clone()].concat())?;
    for (n, finding) in findings.iter().copied().enumerate() {
        let Some(witness) = finding.get("witness") else {
            continue;
        };
        // A request with a finding of this rule fails because of its params, before any expression is evaluated.
        if finding.get("rule") == Some(&json!(Rule::ParamScope)) {
            continue;
        }
        let text = |name: &str| {
            finding
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let key = (text("file").to_owned(), text("policy").to_owned());
        let missing = || format!("no policy {key:?}");
        let policy = policies.shared.get(&key).with_context(missing)?;
        // The policy in `shared` contains the match conditions of a mutating policy, but not its mutations.
        let is_of_mutation = !text("fieldRef").starts_with("spec.matchConditions");
        if let Some(policy) = policies.mutating.get(&key).filter(|_| is_of_mutation) {
            let case = mutating::case(policy, witness, &definitions)?;
            cases.add(OracleCommand::Mutate, expected.len(), &case);
        } else {
            let case = case(expected.len(), policy, witness);
            cases.add(OracleCommand::Admit, expected.len(), &case);
        }
        let error = witness
            .get("error")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let field_ref = text("fieldRef");
        let place = format!("{}: {}: {field_ref}", key.0, key.1);
        // The API server logs the error of a messageExpression, and uses the constant message instead.
        let error = if field_ref.ends_with(".messageExpression") {
            let path = field_ref.replace("messageExpression", "message");
            let path = path.replace(['.', '['], "/").replace(']', "");
            let message = policy.pointer(&format!("/{path}")).and_then(Value::as_str);
            message.unwrap_or("failed expression: ")
        } else {
            error
        };
        witnessed.insert(n, expected.len());
        expected.push((place, error.to_owned()));
    }
    let answers = cases.answers(witnesses)?;
    let mut line = WitnessesLine {
        witnesses: expected.len(),
        ..WitnessesLine::default()
    };
    let mut confirmed = HashSet::new();
    for (n, (place, error)) in expected.iter().enumerate() {
        let answer = answers
            .get(&n)
            .context("the oracle has no result for a case")?;
        if contains_error(answer, error) {
            confirmed.insert(n);
        } else {
            line.different += 1;
            writeln!(out, "{place}: not `{error}` upstream: {answer}")?;
        }
    }
    let is_proven = |n: usize, finding: &Value| {
        let by_witness = witnessed.get(&n).is_some_and(|n| confirmed.contains(n));
        by_witness || is_decided(finding)
    };
    let findings: Vec<_> = findings.into_iter().enumerate().collect();
    count_alarms(&policies.shared, &findings, &is_proven, &mut line, out)?;
    write_line(out, &line)?;
    Ok(line)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OracleCommand {
    Admit,
    Mutate,
}

/// The oracle's cases by subcommand. Each case is stored with the number of its witness.
#[derive(Debug, Default)]
struct Cases {
    admit: (Vec<usize>, String),
    mutate: (Vec<usize>, String),
}

impl Cases {
    fn add(&mut self, subcommand: OracleCommand, n: usize, case: &Value) {
        let (numbers, text) = match subcommand {
            OracleCommand::Admit => &mut self.admit,
            OracleCommand::Mutate => &mut self.mutate,
        };
        numbers.push(n);
        text.push_str(&case.to_string());
        text.push('\n');
    }

    /// Runs the oracle on all cases. Returns its results by the number of the witness.
    fn answers(&self, witnesses: &Witnesses) -> Result<HashMap<usize, Value>> {
        fs::create_dir_all(&witnesses.folder)?;
        let mut all = HashMap::new();
        let parts = [
            (OracleCommand::Admit, "witnesses.jsonl", &self.admit),
            (
                OracleCommand::Mutate,
                "mutating-witnesses.jsonl",
                &self.mutate,
            ),
        ];
        for (subcommand, name, (numbers, cases)) in parts {
            let file = witnesses.folder.join(name);
            fs::write(&file, cases)?;
            let mut command = Command::new(&witnesses.oracle);
            match subcommand {
                OracleCommand::Admit => command.arg("admit"),
                OracleCommand::Mutate => command.args(["mutate", "admit"]),
            };
            let crds = witnesses.crds.as_deref();
            let crds = crds.filter(|_| subcommand == OracleCommand::Admit);
            pair::schema_arguments(&mut command, witnesses.openapi.as_deref(), crds);
            let stdout = String::from_utf8(pair::output(command.arg(&file))?)?;
            let lines: Vec<&str> = stdout.lines().collect();
            ensure!(
                lines.len() == numbers.len(),
                "the oracle has no results for some cases"
            );
            for (n, line) in numbers.iter().zip(lines) {
                let answer = serde_json::from_str(line)?;
                all.insert(
                    *n,
                    match subcommand {
                        OracleCommand::Admit => answer,
                        OracleCommand::Mutate => mutating::answer(answer),
                    },
                );
            }
        }
        Ok(all)
    }
}

/// Counts and prints the alarms in `all`, which contains the findings with their indices.
fn count_alarms(
    policies: &BTreeMap<(String, String), Value>,
    all: &[(usize, &Value)],
    is_proven: &dyn Fn(usize, &Value) -> bool,
    line: &mut WitnessesLine,
    out: &mut dyn Write,
) -> Result<()> {
    let mut by_policy: BTreeMap<(&str, &str), Vec<(usize, &Value)>> = BTreeMap::new();
    for (file, policy) in policies.keys() {
        by_policy.insert((file, policy), Vec::new());
    }
    for (n, finding) in all.iter().copied() {
        let text = |name: &str| finding.get(name).and_then(Value::as_str);
        if let (Some(file), Some(policy)) = (text("file"), text("policy"))
            && let Some(of_policy) = by_policy.get_mut(&(file, policy))
        {
            of_policy.push((n, finding));
        }
    }
    for ((file, policy), findings) in by_policy {
        let of = |severity: &'static str| {
            let is_of = move |finding: &&(usize, &Value)| {
                finding.1.get("severity").and_then(Value::as_str) == Some(severity)
            };
            findings.iter().filter(is_of)
        };
        if of("error").next().is_some() {
            continue;
        }
        let (proven, alarms): (Vec<_>, Vec<_>) =
            of("warning").partition(|(n, finding)| is_proven(*n, finding));
        line.warnings += proven.len() + alarms.len();
        line.alarms += alarms.len();
        if proven.is_empty() {
            line.sound += 1;
            line.alarmed += usize::from(!alarms.is_empty());
        }
        for (_, finding) in &alarms {
            let text = |name: &str| {
                finding
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (rule, field, message) = (text("rule"), text("fieldRef"), text("message"));
            let sound = if proven.is_empty() { " sound" } else { "" };
            writeln!(
                out,
                "alarm about the{sound} policy {file}: {policy}: {field}: {rule}: {message}"
            )?;
        }
    }
    Ok(())
}

/// Returns true if the finding follows from the policy and the schemas alone. An example is a test for a field that no
/// kind has: its evaluation does not fail, so it has no witness.
fn is_decided(finding: &Value) -> bool {
    let is_of = |rule: &Rule| finding.get("rule") == Some(&json!(rule));
    let is_unproven = finding.get("unproven") == Some(&json!(true));
    let fails = finding.get("consequence").is_some();
    !is_unproven && (DECIDED.iter().any(is_of) || is_of(&Rule::UndefinedField) && !fails)
}

fn case(n: usize, policy: &Value, witness: &Value) -> Value {
    let of = |name: &str| {
        witness
            .pointer(&format!("/request/{name}"))
            .cloned()
            .unwrap_or_default()
    };
    // A witness contains objects as a client sends them. When the API server decodes an object, it sets missing lists
    // to null.
    let mut case = json!({
        "decode": "typed",
        "id": n.to_string(), "policy": policy, "operation": of("operation"), "gvk": of("kind"), "gvr": of("resource"),
        "name": of("name"), "namespace": of("namespace"), "subresource": of("subResource"),
        "userInfo": of("userInfo"),
    });
    let params = witness.get("params").filter(|params| !params.is_null());
    let further = [
        ("object", Some(of("object"))),
        ("oldObject", Some(of("oldObject"))),
        ("params", params.map(|params| json!([params]))),
        ("namespaceObject", witness.get("namespaceObject").cloned()),
    ];
    if let Some(case) = case.as_object_mut() {
        let further = further.into_iter();
        let given = further.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        case.extend(given.filter(|(_, value)| !value.is_null()));
        // In a witness without a name, the name is null, but the case must omit it.
        case.retain(|_, value| !value.is_null());
    }
    case
}

fn contains_error(answer: &Value, error: &str) -> bool {
    match answer {
        Value::String(text) => text.contains(error),
        Value::Array(items) => items.iter().any(|item| contains_error(item, error)),
        Value::Object(fields) => fields.values().any(|field| contains_error(field, error)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_decided_if_it_follows_from_policy_and_schemas() {
        let finding = |rule: Rule| json!({"rule": rule, "consequence": {"id": "denied"}});
        assert!(is_decided(&finding(Rule::IncomparableTypes)));
        assert!(!is_decided(&finding(Rule::AbsentField)));
        assert!(!is_decided(&finding(Rule::UndefinedField)));
        assert!(is_decided(&json!({"rule": Rule::UndefinedField})));
        assert!(!is_decided(
            &json!({"rule": Rule::InvalidLiteral, "unproven": true})
        ));
    }

    #[test]
    fn result_is_quiet_only_if_alarms_are_below_one_percent() {
        let line = |sound, alarmed| WitnessesLine {
            sound,
            alarmed,
            ..WitnessesLine::default()
        };
        assert!(line(0, 0).is_quiet() && line(101, 1).is_quiet());
        assert!(!line(100, 1).is_quiet() && !line(0, 1).is_quiet());
    }
}
