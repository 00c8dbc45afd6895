//! `parity yaml`: compares how kubectl and our parser parse YAML streams. The values and the rejected documents must be
//! equal.
//!
//! Source: the oracle's `yaml.go`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};
use vap_status_controller::cli::input::{self, Problem};

use crate::cases::yaml::Source;
use crate::write_line;

/// The number of streams for each run of the oracle.
const BATCH: u64 = 10_000;

/// The number of runs of the oracle for a stream. Different results show that a result is not deterministic.
const TRIES: usize = 24;

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct YamlParity {
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The seed of the streams.
    pub seed: u64,
    /// The number of streams.
    pub cases: u64,
    /// The number of differences to show.
    pub show: usize,
    /// Files, or directories of files, from which streams are generated.
    pub paths: Vec<PathBuf>,
}

/// The counts of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct YamlLine {
    /// The number of streams.
    pub texts: u64,
    /// The number of documents that kubectl reads.
    pub read: u64,
    /// The number of documents that kubectl rejects.
    pub refused: u64,
    /// The number of streams with a known difference, by its reason in ADR 17.
    pub named: BTreeMap<&'static str, u64>,
    /// The number of streams with a difference that has no known reason.
    pub different: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Answer {
    documents: Vec<Theirs>,
    #[serde(default)]
    stopped: bool,
    #[serde(default)]
    error: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Theirs {
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    panic: Option<Value>,
}

/// Deserializes null as `Some`. Only a missing field is `None`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Compares the streams. Prints the differences and the final result.
///
/// # Errors
///
/// Returns an error if the oracle cannot be run or files cannot be read.
pub fn run(parity: &YamlParity, out: &mut dyn Write) -> Result<YamlLine> {
    let mut files = Vec::new();
    for path in &parity.paths {
        read_files(path, &mut files)?;
    }
    let source = Source::new(&files);
    let mut line = YamlLine::default();
    let mut n_shown = 0;
    let mut first = 0;
    while first < parity.cases {
        let next = parity.cases.min(first + BATCH);
        let texts: Vec<_> = (first..next).map(|n| source.text(parity.seed, n)).collect();
        let answers = ask(&parity.oracle, &texts)?;
        for (n, (text, answer)) in (first..).zip(texts.iter().zip(&answers)) {
            line.texts += 1;
            for document in &answer.documents {
                *(if document.value.is_some() {
                    &mut line.read
                } else {
                    &mut line.refused
                }) += 1;
            }
            let ours = input::values(text);
            if is_same(answer, &ours) {
                continue;
            }
            if let Some(reason) = reason(&parity.oracle, text, answer, &ours)? {
                *line.named.entry(reason).or_default() += 1;
                continue;
            }
            line.different += 1;
            if n_shown < parity.show {
                n_shown += 1;
                write_line(out, &difference(n, text, answer, &ours))?;
            }
        }
        first = next;
    }
    write_line(out, &line)?;
    Ok(line)
}

fn read_files(path: &Path, into: &mut Vec<String>) -> Result<()> {
    let context = || format!("cannot read {}", path.display());
    if path.is_dir() {
        let mut paths = std::fs::read_dir(path)
            .with_context(context)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?;
        paths.sort();
        for path in paths {
            let is_manifest = path.extension().is_some_and(|ending| ending == "yaml");
            if path.is_dir() || is_manifest {
                read_files(&path, into)?;
            }
        }
        return Ok(());
    }
    into.push(std::fs::read_to_string(path).with_context(context)?);
    Ok(())
}

/// Runs the oracle on `texts`. Returns one result per stream.
fn ask(oracle: &Path, texts: &[String]) -> Result<Vec<Answer>> {
    let mut child = Command::new(oracle)
        .args(["yaml", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", oracle.display()))?;
    let stdin = child
        .stdin
        .take()
        .context("the oracle has no standard input")?;
    let output = thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<()> {
            let mut stdin = std::io::BufWriter::new(stdin);
            for text in texts {
                write_line(&mut stdin, &json!({ "text": text }))?;
            }
            Ok(stdin.flush()?)
        });
        let output = child.wait_with_output();
        writer
            .join()
            .map_err(|_| anyhow!("cannot write to the oracle"))??;
        Ok::<_, anyhow::Error>(output?)
    })?;
    if !output.status.success() {
        bail!("the oracle failed: {}", output.status);
    }
    let answers = output.stdout.split(|byte| *byte == b'\n');
    let answers = answers
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut deserializer = serde_json::Deserializer::from_slice(line);
            deserializer.disable_recursion_limit();
            let answer = Answer::deserialize(&mut deserializer)?;
            if answer.error.is_empty() {
                Ok(answer)
            } else {
                bail!("the oracle cannot process a stream: {}", answer.error)
            }
        })
        .collect::<Result<Vec<_>>>()?;
    if answers.len() != texts.len() {
        bail!(
            "the oracle has {} results for {} texts",
            texts.len(),
            answers.len()
        );
    }
    Ok(answers)
}

/// Returns true if kubectl and our parser return the same values and reject the same documents.
fn is_same(theirs: &Answer, ours: &[Result<Value, Problem>]) -> bool {
    let n_read = theirs.documents.len();
    let is_as_long = if theirs.stopped {
        ours.len() >= n_read
    } else {
        ours.len() == n_read
    };
    is_as_long
        && theirs.documents.iter().zip(ours).all(|pair| match pair {
            (Theirs { value: None, .. }, Err(_)) => true,
            (
                Theirs {
                    value: Some(theirs),
                    ..
                },
                Ok(ours),
            ) => is_equal(theirs, ours),
            _ => false,
        })
}

/// Returns true if two values are equal. Numbers are first converted to 64-bit integers and floats, as the API server
/// decodes them.
fn is_equal(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Number(theirs), Value::Number(ours)) => is_equal_number(theirs, ours),
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(theirs), Value::Object(ours)) => {
            theirs.len() == ours.len()
                && theirs
                    .iter()
                    .all(|(name, a)| ours.get(name).is_some_and(|b| is_equal(a, b)))
        }
        _ => theirs == ours,
    }
}

fn is_equal_number(theirs: &Number, ours: &Number) -> bool {
    match (sent_integer(theirs), ours.as_i64()) {
        (Some(theirs), Some(ours)) => theirs == ours,
        (None, None) => match (theirs.as_f64(), ours.as_f64()) {
            // Parsing the oracle's number may change its last digit.
            (Some(theirs), Some(ours)) => (theirs - ours).abs() <= theirs.abs() * 1e-15,
            _ => false,
        },
        _ => false,
    }
}

/// Returns the integer that the API server decodes from a number in the oracle's output. Go formats the float `-0.0` as
/// `-0`. The API server decodes this as the integer 0, but `serde_json` decodes it as a float.
///
/// Source: `sigs.k8s.io/json` (`convertNumber`).
fn sent_integer(number: &Number) -> Option<i64> {
    number
        .as_i64()
        .or_else(|| (number.as_f64() == Some(0.0)).then_some(0))
}

/// Returns the reason for an intended difference, from ADR 17. Returns `None` if the difference is not intended.
fn reason(
    oracle: &Path,
    text: &str,
    theirs: &Answer,
    ours: &[Result<Value, Problem>],
) -> Result<Option<&'static str>> {
    if theirs
        .documents
        .iter()
        .any(|document| document.panic.is_some())
    {
        return Ok(Some("kubectl crashes"));
    }
    let is_bounded = |words: &str| {
        let mut problems = ours.iter().filter_map(|read| read.as_ref().err());
        problems.any(|problem| problem.message.contains(words))
    };
    if is_bounded("nest more than") {
        return Ok(Some("depth"));
    }
    if is_bounded("aliases expand to more than") {
        return Ok(Some("aliases"));
    }
    let marks = text.match_indices('\u{feff}');
    if marks.filter(|(at, _)| *at > 0).count() > 0 {
        return Ok(Some("byte order mark within the text"));
    }
    let again = ask(oracle, &vec![text.to_owned(); TRIES])?;
    let values = |answer: &Answer| {
        let values = answer
            .documents
            .iter()
            .map(|document| document.value.clone());
        values.collect::<Vec<_>>()
    };
    let is_by_chance = again.iter().any(|other| values(other) != values(theirs));
    Ok(is_by_chance.then_some("two keys of different types with the same name: a random one wins"))
}

fn difference(n: u64, text: &str, theirs: &Answer, ours: &[Result<Value, Problem>]) -> Value {
    let theirs: Vec<_> = theirs
        .documents
        .iter()
        .map(|document| match &document.value {
            Some(value) => json!({ "value": value }),
            None => json!({ "error": document.error }),
        })
        .collect();
    let ours: Vec<_> = ours
        .iter()
        .map(|read| match read {
            Ok(value) => json!({ "value": value }),
            Err(problem) => {
                json!({ "error": problem.message, "line": problem.place.map(|place| place.line) })
            }
        })
        .collect();
    json!({ "case": n, "text": text, "theirs": theirs, "ours": ours })
}
