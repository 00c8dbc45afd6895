//! `parity witnesses`: whether each witness of `kubectl vap check` is one for upstream's evaluator too.
//!
//! The check says that an expression may fail, and shows a request for which it does. Upstream's evaluator gets that
//! request, and must come to the same error.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::policy::rule::Rule;

use super::{pair, write_line};
use crate::documents;

/// A comparison.
#[derive(Clone, Debug)]
pub struct Witnesses {
    /// The oracle.
    pub oracle: PathBuf,
    /// Kubernetes' OpenAPI documents.
    pub openapi: Option<PathBuf>,
    /// The CRDs of the policies.
    pub crds: Option<PathBuf>,
    /// A folder to write the requests to.
    pub folder: PathBuf,
    /// The policies.
    pub paths: Vec<PathBuf>,
}

/// The outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WitnessesLine {
    /// How many findings have a witness.
    pub witnesses: usize,
    /// How many witnesses upstream's evaluator does not fail for with the same error.
    pub different: usize,
}

/// Compares, prints what differs and, last, the outcome.
///
/// # Errors
///
/// If a file cannot be read, or the oracle fails.
pub fn run(witnesses: &Witnesses, out: &mut dyn Write) -> Result<WitnessesLine> {
    let options = Options {
        paths: witnesses.paths.clone(),
        crds: witnesses.crds.iter().cloned().collect(),
        ..Options::default()
    };
    let report = check::run(&options, &mut std::io::empty())?;
    let report = serde_json::to_value(&report)?;
    let mut policies: HashMap<(String, String), Value> = HashMap::new();
    for document in documents::load_documents(&witnesses.paths)? {
        let Ok(value) = document.value else { continue };
        if let Some(name) = value.pointer("/metadata/name").and_then(Value::as_str)
            && value.get("kind").and_then(Value::as_str) == Some("ValidatingAdmissionPolicy")
        {
            policies.insert((document.file, name.to_owned()), value.clone());
        }
    }
    let findings = report.get("findings").and_then(Value::as_array);
    let mut expected = Vec::new();
    let mut cases = String::new();
    for finding in findings.into_iter().flatten() {
        let Some(witness) = finding.get("witness") else {
            continue;
        };
        // Requests that fail for their params, before anything is evaluated.
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
        let policy = policies
            .get(&key)
            .with_context(|| format!("no policy {key:?}"))?;
        let case = case(expected.len(), policy, witness);
        let error = witness
            .get("error")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let field_ref = text("fieldRef");
        let place = format!("{}: {}: {field_ref}", key.0, key.1);
        // The error of a messageExpression goes to the API server's log, and its place is taken by another message.
        let error = if field_ref.ends_with(".messageExpression") {
            let path = field_ref.replace("messageExpression", "message");
            let path = path.replace(['.', '['], "/").replace(']', "");
            let message = policy.pointer(&format!("/{path}")).and_then(Value::as_str);
            message.unwrap_or("failed expression: ")
        } else {
            error
        };
        expected.push((place, error.to_owned()));
        cases.push_str(&case.to_string());
        cases.push('\n');
    }
    fs::create_dir_all(&witnesses.folder)?;
    let file = witnesses.folder.join("witnesses.jsonl");
    fs::write(&file, cases)?;
    let mut command = Command::new(&witnesses.oracle);
    command.arg("admit");
    pair::schema_arguments(
        &mut command,
        witnesses.openapi.as_deref(),
        witnesses.crds.as_deref(),
    );
    let stdout = pair::output(command.arg(&file))?;
    let answers = String::from_utf8(stdout)?;
    let answers: Vec<&str> = answers.lines().collect();
    ensure!(
        answers.len() == expected.len(),
        "the oracle has left out cases"
    );
    let mut line = WitnessesLine {
        witnesses: expected.len(),
        ..WitnessesLine::default()
    };
    for ((place, error), answer) in expected.iter().zip(answers) {
        let answer: Value = serde_json::from_str(answer)?;
        if !says(&answer, error) {
            line.different += 1;
            writeln!(out, "{place}: not `{error}` upstream: {answer}")?;
        }
    }
    write_line(out, &line)?;
    Ok(line)
}

/// The witness as a case of the oracle.
fn case(n: usize, policy: &Value, witness: &Value) -> Value {
    let of = |name: &str| {
        witness
            .pointer(&format!("/request/{name}"))
            .cloned()
            .unwrap_or_default()
    };
    let mut case = json!({
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
        // An absent text is no name.
        case.retain(|_, value| !value.is_null());
    }
    case
}

/// Reports whether a text in `answer` has `error` in it.
fn says(answer: &Value, error: &str) -> bool {
    match answer {
        Value::String(text) => text.contains(error),
        Value::Array(items) => items.iter().any(|item| says(item, error)),
        Value::Object(fields) => fields.values().any(|field| says(field, error)),
        _ => false,
    }
}
