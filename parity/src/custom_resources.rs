//! `parity custom-resources`: compares requests for custom resources with upstream's strategy for custom resources. For
//! a rejected request, the field, reason and message of each cause and the order of the causes are compared. For an
//! accepted request, the stored object is compared.
//!
//! Source: the oracle's `crd_admit.go`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vap_status_controller::custom_resource::{Error, FieldError, Validator};
use vap_status_controller::go_json;

use crate::cases::custom_resources;
use crate::documents::load_documents;
use crate::guard::guard;
use crate::rules::ask;
use crate::{version, write_line};

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct CustomResourceParity {
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The seed of the generated inputs.
    pub seed: u64,
    /// The number of generated definitions, in addition to those in `paths`.
    pub made: u64,
    /// The number of requests.
    pub objects: u64,
    /// The number of runs per request to measure the time. 0 disables the measurement.
    pub repeat: u32,
    /// The number of differences to show.
    pub show: usize,
    /// The file to which the requests are written, with upstream's results.
    pub record: Option<PathBuf>,
    /// Files of CustomResourceDefinitions, or directories of them.
    pub paths: Vec<PathBuf>,
}

/// The counts of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CustomResourceLine {
    /// The number of versions of definitions for which there are requests.
    pub versions: usize,
    /// The number of compared requests.
    pub objects: usize,
    /// The number of updates among the compared requests.
    pub updates: usize,
    /// The number of requests whose object cannot be decoded by upstream.
    pub unread: usize,
    /// The number of rejected requests.
    pub refused: usize,
    /// The number of causes of rejections.
    pub causes: usize,
    /// The number of causes by reason.
    pub reasons: BTreeMap<String, usize>,
    /// The number of rejections whose causes upstream reports in random order. The order is not compared.
    pub unordered: usize,
    /// The number of rejections whose causes we report in a different order than upstream. All runs of upstream had the
    /// same order, but the order may still be random for an object with many fields.
    pub reordered: usize,
    /// The number of requests for which our result equals upstream's.
    pub same: usize,
    /// Upstream's time per decoded object, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub their_nanos: Option<f64>,
    /// Our time per decoded object, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub our_nanos: Option<f64>,
}

/// The minimum ratio of all rejections to the rejections whose causes we report in a different order.
const MIN_REFUSED_BY_REORDERED: usize = 200;

#[derive(Clone, Debug, Default, Deserialize)]
struct Answer {
    objects: Vec<ObjectAnswer>,
    #[serde(default)]
    nanos: f64,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    panic: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct ObjectAnswer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unread: Option<String>,
    outcomes: Vec<Vec<Cause>>,
    #[serde(default)]
    result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    panic: Option<Value>,
}

/// A cause of a rejection, as in the details of a `Status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Cause {
    /// The path of the field.
    #[serde(default)]
    pub field: String,
    /// The reason.
    #[serde(default)]
    pub reason: String,
    /// The message.
    #[serde(default)]
    pub message: String,
}

impl Cause {
    /// Converts an error to a cause.
    #[must_use]
    pub fn from_error(error: &FieldError) -> Self {
        Self {
            field: error.field.clone(),
            reason: error.kind.name().to_owned(),
            message: error.body(),
        }
    }
}

impl CustomResourceParity {
    /// Compares the requests and prints the differences. Returns true if there are no differences.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or the oracle fails.
    pub fn run(&self, out: &mut dyn Write) -> Result<bool> {
        let mut definitions: Vec<Value> = load_documents(&self.paths)?
            .into_iter()
            .filter_map(|document| document.value.ok())
            .filter(|value| value["kind"] == "CustomResourceDefinition")
            .collect();
        definitions.extend(custom_resources::definitions(self.seed, self.made));
        let groups = self.groups(&definitions);
        let repeat = self.repeat.to_string();
        let args = ["crd", "admit", "--repeat", &repeat, "-"];
        let answers: Vec<Answer> = ask(&self.oracle, &args, groups.iter().cloned())?;
        if answers.len() != groups.len() {
            bail!(
                "the oracle has {} results for {} versions",
                answers.len(),
                groups.len()
            );
        }
        if let Some(file) = &self.record {
            record(file, &groups, &answers)?;
        }
        let mut line = CustomResourceLine::default();
        let mut left = self.show;
        let (mut their_nanos, mut ours) = (0.0, Duration::ZERO);
        for (group, theirs) in groups.iter().zip(answers) {
            // Upstream may panic on an object that no API server would store.
            if theirs.error.is_some() || theirs.panic.is_some() {
                continue;
            }
            let served = group["version"].as_str().unwrap_or_default();
            let validator = match Validator::new(&group["crd"], served, version::get()) {
                Ok(validator) => validator,
                Err(error) => bail!("{:?}: {error}", group.pointer("/crd/metadata/name")),
            };
            line.versions += 1;
            let requests = group["objects"].as_array().map_or(&[][..], Vec::as_slice);
            for (request, theirs) in requests.iter().zip(&theirs.objects) {
                let difference = compare(&validator, request, theirs, &mut line);
                let Some(ours) = difference else {
                    line.same += 1;
                    continue;
                };
                if left > 0 {
                    left -= 1;
                    let mut theirs = theirs.clone();
                    theirs.outcomes.truncate(2);
                    let definition = if theirs.outcomes.is_empty() {
                        &Value::Null
                    } else {
                        &group["crd"]
                    };
                    let shown = json!({"theirs": theirs, "ours": ours, "request": request, "crd": definition,
                        "version": served});
                    write_line(out, &shown)?;
                }
            }
            their_nanos += theirs.nanos * count(requests.len());
            if self.repeat > 0 {
                ours += measured(&validator, requests, self.repeat);
            }
        }
        if self.repeat > 0 {
            line.their_nanos = Some(their_nanos / count(line.objects));
            line.our_nanos =
                Some(ours.as_secs_f64() * 1e9 / count(line.objects) / f64::from(self.repeat));
        }
        write_line(out, &line)?;
        Ok(line.objects == line.same && line.reordered * MIN_REFUSED_BY_REORDERED <= line.refused)
    }

    /// Returns the versions of the definitions with requests for each version.
    fn groups(&self, definitions: &[Value]) -> Vec<Value> {
        let versions: Vec<(&Value, &Value)> = definitions
            .iter()
            .flat_map(|definition| {
                let versions = definition
                    .pointer("/spec/versions")
                    .and_then(Value::as_array);
                versions
                    .into_iter()
                    .flatten()
                    .map(move |version| (definition, version))
            })
            .filter(|(_, version)| version.pointer("/schema/openAPIV3Schema").is_some())
            .collect();
        let n_versions = u64::try_from(versions.len()).unwrap_or(1).max(1);
        let of_each = self.objects.div_ceil(n_versions);
        let mut at = 0;
        versions
            .into_iter()
            .map(|(definition, version)| {
                let requests: Vec<Value> = (0..of_each)
                    .map(|_| {
                        at += 1;
                        custom_resources::request(self.seed, at, definition, version)
                    })
                    .collect();
                json!({"crd": definition, "version": version["name"], "objects": requests})
            })
            .collect()
    }
}

/// Writes the requests to a file, one line per version. Requests without a deterministic result are omitted.
fn record(file: &Path, groups: &[Value], answers: &[Answer]) -> Result<()> {
    let mut lines = String::new();
    for (group, answer) in groups.iter().zip(answers) {
        if answer.error.is_some() || answer.panic.is_some() {
            continue;
        }
        let mut group = group.clone();
        let Some(requests) = group.get_mut("objects").and_then(Value::as_array_mut) else {
            continue;
        };
        for (request, answer) in requests.iter_mut().zip(&answer.objects) {
            match (&answer.unread, answer.outcomes.as_slice()) {
                (Some(why), _) if !why.contains("parsing time ") => request["unread"] = json!(why),
                (None, [causes]) => request["causes"] = json!(causes),
                _ => *request = Value::Null,
            }
        }
        requests.retain(|request| !request.is_null());
        lines += &group.to_string();
        lines.push('\n');
    }
    Ok(std::fs::write(file, lines)?)
}

/// Compares our result of a request with upstream's. Returns our result if it differs.
fn compare(
    validator: &Validator,
    request: &Value,
    theirs: &ObjectAnswer,
    line: &mut CustomResourceLine,
) -> Option<Value> {
    line.objects += 1;
    line.updates += usize::from(request.get("old").is_some());
    line.unread += usize::from(theirs.unread.is_some());
    let namespace = request["namespace"].as_str().unwrap_or_default();
    let ours = guard(|| validator.validate(&request["object"], request.get("old"), namespace));
    let ours = match ours {
        Ok(ours) => ours,
        Err(panic) => return Some(json!({"panic": panic})),
    };
    let ours = match (&theirs.unread, ours) {
        (Some(theirs), Err(Error::Undecodable(ours))) => {
            // Upstream decodes the old object first, and prefixes an error of the old object with `old: `.
            let is_same = theirs == &ours || theirs.strip_prefix("old: ") == Some(&*ours);
            return (!is_same && !theirs.contains("parsing time "))
                .then(|| json!({"unread": ours}));
        }
        (None, Ok(ours)) if theirs.panic.is_none() => ours,
        (_, Ok(ours)) => {
            return Some(json!(
                ours.errors
                    .iter()
                    .map(Cause::from_error)
                    .collect::<Vec<_>>()
            ));
        }
        (_, Err(error)) => return Some(json!({"error": error.to_string()})),
    };
    let mut causes: Vec<Cause> = ours.errors.iter().map(Cause::from_error).collect();
    let first = theirs.outcomes.first().cloned().unwrap_or_default();
    line.refused += usize::from(!first.is_empty());
    line.causes += first.len();
    for cause in &first {
        *line.reasons.entry(cause.reason.clone()).or_default() += 1;
    }
    let is_ordered = theirs.outcomes.contains(&causes);
    causes.sort();
    let is_same = theirs.outcomes.iter().any(|outcome| {
        let mut outcome = outcome.clone();
        outcome.sort();
        outcome == causes
    });
    if theirs.outcomes.len() > 1 {
        line.unordered += 1;
    } else if is_same && !is_ordered {
        line.reordered += 1;
    }
    if is_same && first.is_empty() {
        let (theirs, ours) = (stored(&theirs.result), stored(&ours.object));
        return (theirs != ours).then(|| json!({"stored": ours}));
    }
    (!is_same).then(|| json!(causes))
}

/// Removes the fields whose values are generated for each object. Restores the number notation of the request.
fn stored(object: &Value) -> Value {
    let mut object = written(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !matches!(&**name, "uid" | "creationTimestamp"));
    }
    object
}

fn written(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(go_json::reread_number(number)),
        Value::Array(items) => items.iter().map(written).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, field)| (name.clone(), written(field)))
                .collect()
        }
        other => other.clone(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an average")]
fn count(n: usize) -> f64 {
    n.max(1) as f64
}

fn measured(validator: &Validator, requests: &[Value], repeat: u32) -> Duration {
    let begin = Instant::now();
    for request in requests {
        let namespace = request["namespace"].as_str().unwrap_or_default();
        for _ in 0..repeat {
            let _ = std::hint::black_box(validator.validate(
                &request["object"],
                request.get("old"),
                namespace,
            ));
        }
    }
    begin.elapsed()
}
