//! `parity decided`: evaluates real policies and objects whose decisions are documented.
//!
//! The corpus lists the cases in `cases/*.jsonl`: the file of a policy, an object to create, params, and the expected
//! decision. An expression that cannot be evaluated does not deny the request. The authors of the policies intended
//! this.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use vap_status_controller::policy::admission::{Evaluation, EvaluationResult};

use crate::admit::{ReadyCase, each_case};
use crate::documents;
use crate::schemas::Schemas;
use crate::write_line;

#[derive(Debug, Deserialize)]
struct DecidedCase {
    policy: String,
    name: String,
    expected: String,
    object: Value,
    params: Option<Value>,
}

/// The numbers of cases in a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of cases with the expected decision.
    pub expected: usize,
    /// The number of all cases.
    pub of: usize,
}

/// Evaluates all cases of the corpus. Prints the cases with an unexpected decision.
///
/// # Errors
///
/// Returns an error if the corpus cannot be read.
pub fn run(corpus: &Path, out: &mut dyn Write) -> Result<Tally> {
    let schemas = Schemas::load(None, None)?;
    let mut tally = Tally::default();
    each_decided(corpus, |case, ready| {
        let ready = ReadyCase::parse(&schemas, &ready.to_string())?;
        let denies = ready.evaluate().iter().any(denies);
        tally.of += 1;
        if denies == (case.expected != "pass") {
            tally.expected += 1;
        } else {
            let decision = if denies { "denied" } else { "passed" };
            writeln!(out, "{decision}, expected {}: {}", case.expected, case.name)?;
        }
        Ok(())
    })?;
    writeln!(
        out,
        "{} of {} cases are decided as expected",
        tally.expected, tally.of
    )?;
    Ok(tally)
}

/// Prints the cases of the corpus in the format of `admit` and `bench admit`, which the oracle also reads.
///
/// # Errors
///
/// Returns an error if the corpus cannot be read.
pub fn print_cases(corpus: &Path, out: &mut dyn Write) -> Result<()> {
    each_decided(corpus, |case, mut ready| {
        if let Value::Object(fields) = &mut ready {
            fields.insert("id".into(), case.name.clone().into());
        }
        write_line(out, &ready)
    })
}

/// Calls `f` with each case of the corpus, in two formats: the format of the corpus, and the format of `admit`.
fn each_decided(corpus: &Path, mut f: impl FnMut(&DecidedCase, Value) -> Result<()>) -> Result<()> {
    let mut files: Vec<_> = std::fs::read_dir(corpus.join("cases"))
        .with_context(|| corpus.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    files.sort();
    let mut policies: HashMap<String, Value> = HashMap::new();
    for file in files {
        each_case(&file, |_, text| {
            let case: DecidedCase = serde_json::from_str(text)?;
            if !policies.contains_key(&case.policy) {
                let policy = read_policy(&corpus.join(&case.policy))?;
                policies.insert(case.policy.clone(), policy);
            }
            let policy = policies.get(&case.policy).cloned();
            let params: Vec<_> = case.params.iter().collect();
            let ready = json!({"policy": policy, "object": case.object, "params": params});
            f(&case, ready)
        })?;
    }
    Ok(())
}

fn denies(evaluation: &Evaluation) -> bool {
    let mut decisions = evaluation.decisions.iter();
    decisions.any(|decision| decision.evaluation == EvaluationResult::Deny)
}

/// Returns the only policy in a file, without defaults.
fn read_policy(path: &Path) -> Result<Value> {
    let documents = documents::load_documents(&[path.to_owned()])?;
    let is_policy = |value: &Value| {
        value.get("kind").and_then(Value::as_str) == Some("ValidatingAdmissionPolicy")
    };
    let mut policies: Vec<_> = documents
        .into_iter()
        .filter_map(|document| document.value.ok())
        .filter(is_policy)
        .collect();
    ensure!(
        policies.len() == 1,
        "{} must have exactly one policy",
        path.display()
    );
    policies.pop().context("no policy")
}
