//! `parity rules`: compares our handling of CustomResourceDefinitions' validation rules with upstream's.
//!
//! Two steps are compared: the validation of the rules on creation of the definition, and the validation of objects by
//! the rules. Errors must be equal byte for byte, and costs must be equal.
//!
//! Source: the oracle's `crd.go`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vap_status_controller::library::limits::RUNTIME_CEL_COST_BUDGET;
use vap_status_controller::validation_rules::{FieldError, Validator, validate_rules};
use vap_status_controller::version::CompileMode;

use crate::cases::{rule_objects, rules};
use crate::documents::load_documents;
use crate::guard::guard;
use crate::{version, write_line};

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct RuleParity {
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The seed of the generated inputs.
    pub seed: u64,
    /// The number of generated definitions, in addition to those in `paths`.
    pub made: u64,
    /// The number of mutated copies of all definitions.
    pub mutants: u64,
    /// The number of objects.
    pub objects: u64,
    /// The number of validations per object to measure the time. 0 disables the measurement.
    pub repeat: u32,
    /// The minimum ratio of upstream's time to ours for the validation of objects.
    pub at_least: Option<f64>,
    /// A file of validations that were recorded from upstream's tests, with upstream's results.
    pub recorded: Option<PathBuf>,
    /// The number of differences to show.
    pub show: usize,
    /// Files of CustomResourceDefinitions, or directories of them.
    pub paths: Vec<PathBuf>,
}

/// The counts of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RuleLine {
    /// The number of validated definitions.
    pub definitions: usize,
    /// The number of expressions that upstream compiles. Their cost estimates are compared.
    pub expressions: usize,
    /// The number of definitions that upstream rejects because of their rules.
    pub refused: usize,
    /// The number of errors about rules in the rejected definitions.
    pub errors: usize,
    /// The number of definitions that are not compared because a default does not match its schema. Upstream checks
    /// defaults before rules.
    pub unfit_defaults: usize,
    /// The number of definitions for which our result, errors and costs equal upstream's.
    pub same_definitions: usize,
    /// The number of objects that were validated by rules.
    pub objects: usize,
    /// The number of updates among these validations.
    pub updates: usize,
    /// The number of objects for which upstream's result depends on Go's map order. Our result must equal one of
    /// upstream's results.
    pub varying_objects: usize,
    /// The number of objects with an error.
    pub refused_objects: usize,
    /// The number of errors and warnings about objects.
    pub object_errors: usize,
    /// The number of objects for which our errors, warnings and costs equal upstream's.
    pub same_objects: usize,
    /// The number of validations that were recorded from upstream's tests.
    pub recorded: usize,
    /// The number of recorded validations for which our errors and costs equal upstream's.
    pub same_recorded: usize,
    /// Upstream's time per object, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub their_nanos: Option<f64>,
    /// Our time per object, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub our_nanos: Option<f64>,
}

/// A validation that was recorded from upstream's tests.
///
/// Source: `parity/oracle/record`.
#[derive(Clone, Debug, Deserialize)]
struct Recorded {
    schema: Value,
    path: String,
    object: Value,
    old: Option<Value>,
    ratchets: bool,
    errors: Vec<String>,
    remaining: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct DefinitionAnswer {
    errors: Vec<String>,
    #[serde(default)]
    others: Vec<String>,
    costs: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    panic: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ObjectsAnswer {
    outcomes: Vec<Vec<ObjectAnswer>>,
    #[serde(default)]
    nanos: f64,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    panic: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct ObjectAnswer {
    errors: Vec<String>,
    warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    panic: Option<Value>,
}

impl RuleParity {
    /// Compares definitions and objects, and prints the differences. Returns true if there are no differences.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or the oracle fails.
    pub fn run(&self, out: &mut dyn Write) -> Result<bool> {
        let mut definitions: Vec<Value> = load_documents(&self.paths)?
            .into_iter()
            .filter_map(|document| document.value.ok())
            .filter(|value| value["kind"] == "CustomResourceDefinition")
            .collect();
        definitions.extend(rules::definitions(self.seed, self.made));
        let mut judged = definitions.clone();
        judged.extend(rules::mutants(&definitions, self.seed, self.mutants));
        let mut line = RuleLine::default();
        let mut left = self.show;
        self.definitions(&judged, &mut line, &mut left, out)?;
        self.objects(&definitions, &mut line, &mut left, out)?;
        if let Some(recorded) = &self.recorded {
            Self::recorded(recorded, &mut line, &mut left, out)?;
        }
        write_line(out, &line)?;
        let ratio = line
            .their_nanos
            .zip(line.our_nanos)
            .map(|(theirs, ours)| theirs / ours);
        if let Some((least, ratio)) = self.at_least.zip(ratio)
            && ratio < least
        {
            writeln!(
                out,
                "our validation is {ratio:.1} times as fast as upstream's, but must be at least {least} times as fast"
            )?;
            return Ok(false);
        }
        Ok(line.recorded == line.same_recorded
            && line.definitions == line.same_definitions
            && line.objects == line.same_objects)
    }

    fn definitions(
        &self,
        definitions: &[Value],
        line: &mut RuleLine,
        left: &mut usize,
        out: &mut dyn Write,
    ) -> Result<()> {
        let input = definitions.iter().cloned();
        let answers: Vec<DefinitionAnswer> = ask(&self.oracle, &["crd", "compile", "-"], input)?;
        if answers.len() != definitions.len() {
            bail!(
                "the oracle has {} results for {} definitions",
                answers.len(),
                definitions.len()
            );
        }
        for (definition, theirs) in definitions.iter().zip(answers) {
            // Upstream rejected the definition as malformed, before its rules were validated.
            if theirs.error.is_some() {
                continue;
            }
            let is_of_default = |text: &String| {
                text.split_once(": ")
                    .is_some_and(|(field, _)| field.contains(".default"))
            };
            if theirs.others.iter().any(is_of_default) {
                line.unfit_defaults += 1;
                continue;
            }
            line.definitions += 1;
            line.expressions += theirs.costs.len();
            line.errors += theirs.errors.len();
            line.refused += usize::from(!theirs.errors.is_empty());
            let (mut ours, is_partial) = our_definition_result(definition);
            // If several expressions have the same cost, upstream chooses at random which of them it reports.
            name_by_cost(&mut ours.errors, &theirs.costs);
            // The oracle estimates the costs of all expressions. The API server stops after some errors, so the later
            // costs are not compared.
            let mut theirs = theirs;
            let costs = theirs.costs.clone();
            name_by_cost(&mut theirs.errors, &costs);
            if is_partial {
                theirs
                    .costs
                    .retain(|field, _| ours.costs.contains_key(field));
            }
            theirs.others.clear();
            if ours == theirs {
                line.same_definitions += 1;
            } else if *left > 0 {
                *left -= 1;
                write_line(out, &difference(&json!(theirs), &json!(ours), definition))?;
            }
        }
        Ok(())
    }

    fn objects(
        &self,
        definitions: &[Value],
        line: &mut RuleLine,
        left: &mut usize,
        out: &mut dyn Write,
    ) -> Result<()> {
        let groups = self.groups(definitions);
        let repeat = self.repeat.to_string();
        let args = ["crd", "validate", "--repeat", &repeat, "-"];
        let answers: Vec<ObjectsAnswer> = ask(&self.oracle, &args, groups.iter().cloned())?;
        if answers.len() != groups.len() {
            bail!(
                "the oracle has {} results for {} schemas",
                answers.len(),
                groups.len()
            );
        }
        let (mut their_nanos, mut ours) = (0.0, Duration::ZERO);
        for (group, theirs) in groups.iter().zip(answers) {
            if theirs.error.is_some() || theirs.panic.is_some() {
                continue;
            }
            let Ok(validator) = Validator::new(&group["schema"], version::get()) else {
                bail!("a schema uses keywords that our parser does not support");
            };
            let objects = group["objects"].as_array().map_or(&[][..], Vec::as_slice);
            for (object, theirs) in objects.iter().zip(&theirs.outcomes) {
                line.objects += 1;
                line.updates += usize::from(object.get("old").is_some());
                line.varying_objects += usize::from(theirs.len() > 1);
                let first = theirs
                    .first()
                    .context("the oracle has no result for an object")?;
                line.refused_objects += usize::from(!first.errors.is_empty());
                line.object_errors += first.errors.len() + first.warnings.len();
                let ours = own_object(&validator, object);
                if theirs.contains(&ours) {
                    line.same_objects += 1;
                } else if *left > 0 {
                    *left -= 1;
                    let case = json!({"schema": group["schema"], "object": object});
                    write_line(out, &difference(&json!(first), &json!(ours), &case))?;
                }
            }
            their_nanos += theirs.nanos * count(objects.len());
            if self.repeat > 0 {
                ours += measured(&validator, objects, self.repeat);
            }
        }
        if self.repeat > 0 {
            line.their_nanos = Some(their_nanos / count(line.objects));
            let ours = ours.as_secs_f64() * 1e9 / f64::from(self.repeat);
            line.our_nanos = Some(ours / count(line.objects));
        }
        Ok(())
    }

    fn recorded(
        file: &Path,
        line: &mut RuleLine,
        left: &mut usize,
        out: &mut dyn Write,
    ) -> Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        for text in text.lines() {
            let record: Recorded = serde_json::from_str(text)?;
            let validator = Validator::new(&record.schema, version::get())?;
            let outcome = validator.validate(&record.object, record.old.as_ref());
            let unchanged = if record.ratchets {
                &[][..]
            } else {
                &outcome.warnings
            };
            let all_errors = outcome.errors.iter().chain(unchanged);
            let mut errors: Vec<_> = all_errors.map(|error| below(&record.path, error)).collect();
            errors.sort();
            let left_over = i64::try_from(RUNTIME_CEL_COST_BUDGET.saturating_sub(outcome.cost))?;
            let remaining = if outcome.is_complete { left_over } else { -1 };
            line.recorded += 1;
            if errors == record.errors && remaining == record.remaining {
                line.same_recorded += 1;
            } else if *left > 0 {
                *left -= 1;
                let theirs = json!({"errors": record.errors, "cost": record.remaining});
                let ours = json!({"errors": errors, "cost": remaining});
                let case: Value = serde_json::from_str(text)?;
                write_line(out, &difference(&theirs, &ours, &case))?;
            }
        }
        Ok(())
    }

    /// Returns the schemas with rules, and objects to validate for each schema.
    fn groups(&self, definitions: &[Value]) -> Vec<Value> {
        let versions = definitions
            .iter()
            .filter_map(|definition| definition.pointer("/spec/versions")?.as_array());
        let schemas: Vec<&Value> = versions
            .flatten()
            .filter_map(|version| version.pointer("/schema/openAPIV3Schema"))
            .filter(|schema| schema.to_string().contains("x-kubernetes-validations"))
            .collect();
        let n_schemas = u64::try_from(schemas.len()).unwrap_or(1).max(1);
        let of_each = self.objects.div_ceil(n_schemas);
        let mut at = 0;
        let mut groups = Vec::new();
        for schema in schemas {
            let mut objects = Vec::new();
            for _ in 0..of_each {
                let mut choices = rule_objects::choices_of(self.seed, at);
                at += 1;
                let object = rule_objects::object(&mut choices, schema);
                if choices.chance(60) {
                    let mut old = object.clone();
                    let percent = [0, 5, 15, 40].get(choices.below(4)).copied().unwrap_or(0);
                    rule_objects::change(&mut choices, &mut old, percent);
                    objects.push(json!({"object": object, "old": old}));
                } else {
                    objects.push(json!({"object": object}));
                }
            }
            groups.push(json!({"schema": schema, "objects": objects}));
        }
        groups
    }
}

/// Formats an error about the object at `path`.
fn below(path: &str, error: &FieldError) -> String {
    let field = match error.field.as_str() {
        "<nil>" => path.to_owned(),
        field if path == "<nil>" => field.to_owned(),
        field if field.starts_with('[') => format!("{path}{field}"),
        field => format!("{path}.{field}"),
    };
    format!("{field}: {}", error.body())
}

/// In errors about the most expensive expressions, replaces the field path with the cost of the expression.
fn name_by_cost(errors: &mut [String], costs: &BTreeMap<String, u64>) {
    for error in errors.iter_mut() {
        if let Some((field, rest)) = error.split_once(": Forbidden: contributed") {
            *error = format!("{:?}: Forbidden: contributed{rest}", costs.get(field));
        }
    }
    errors.sort();
}

#[expect(clippy::cast_precision_loss, reason = "an average")]
fn count(n: usize) -> f64 {
    n.max(1) as f64
}

fn difference(theirs: &Value, ours: &Value, case: &Value) -> Value {
    let only = |a: &Value, b: &Value, key: &str| {
        let others = b[key].as_array().cloned().unwrap_or_default();
        let all = a[key].as_array().into_iter().flatten();
        let only: Vec<_> = all.filter(|text| !others.contains(text)).cloned().collect();
        only
    };
    json!({
        "theirs": {"errors": only(theirs, ours, "errors"), "warnings": only(theirs, ours, "warnings"),
            "cost": theirs["cost"], "panic": theirs["panic"]},
        "ours": {"errors": only(ours, theirs, "errors"), "warnings": only(ours, theirs, "warnings"),
            "cost": ours["cost"], "panic": ours["panic"]},
        "costs": costs(&theirs["costs"], &ours["costs"]),
        "case": case,
    })
}

fn costs(theirs: &Value, ours: &Value) -> Value {
    let (Some(theirs), Some(ours)) = (theirs.as_object(), ours.as_object()) else {
        return Value::Null;
    };
    let names = theirs.keys().chain(ours.keys());
    let unlike = names.filter(|name| theirs.get(*name) != ours.get(*name));
    unlike
        .map(|name| (name.clone(), json!([theirs.get(name), ours.get(name)])))
        .collect()
}

/// Validates the rules of a definition. The boolean is true if some rules were not compiled.
fn our_definition_result(definition: &Value) -> (DefinitionAnswer, bool) {
    match guard(|| validate_rules(definition, version::get(), CompileMode::New)) {
        Ok(verdict) => {
            let errors = verdict.errors.iter();
            let mut errors: Vec<_> = errors.map(|found| found.error.to_string()).collect();
            errors.sort();
            let costs = verdict.costs.into_iter();
            let answer = DefinitionAnswer {
                errors,
                costs: costs
                    .filter(|cost| cost.is_compiled)
                    .map(|cost| (cost.field, cost.max_cost))
                    .collect(),
                ..DefinitionAnswer::default()
            };
            (answer, verdict.is_partial)
        }
        Err(panic) => {
            let answer = DefinitionAnswer {
                panic: Some(json!(panic)),
                ..DefinitionAnswer::default()
            };
            (answer, false)
        }
    }
}

fn own_object(validator: &Validator, case: &Value) -> ObjectAnswer {
    match guard(|| validator.validate(&case["object"], case.get("old"))) {
        Ok(outcome) => {
            let texts = |errors: &[_]| {
                let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                texts.sort();
                texts
            };
            ObjectAnswer {
                errors: texts(&outcome.errors),
                warnings: texts(&outcome.warnings),
                cost: outcome.is_complete.then_some(outcome.cost),
                panic: None,
            }
        }
        Err(panic) => ObjectAnswer {
            panic: Some(json!(panic)),
            ..ObjectAnswer::default()
        },
    }
}

/// Returns our result for a new definition, in the oracle's format.
pub(crate) fn definition_line(definition: &Value) -> Value {
    json!(our_definition_result(definition).0)
}

/// Returns our results for a case with a `schema` and `objects`, in the oracle's format.
///
/// # Errors
/// Returns an error if the schema uses keywords that our parser does not support.
pub(crate) fn objects_line(case: &Value) -> Result<Value> {
    let validator = Validator::new(&case["schema"], version::get())?;
    let objects = case["objects"].as_array().map_or(&[][..], Vec::as_slice);
    let outcomes = objects
        .iter()
        .map(|object| [own_object(&validator, object)]);
    Ok(json!({"outcomes": outcomes.collect::<Vec<_>>()}))
}

fn measured(validator: &Validator, cases: &[Value], repeat: u32) -> Duration {
    let begin = Instant::now();
    for case in cases {
        for _ in 0..repeat {
            std::hint::black_box(validator.validate(&case["object"], case.get("old")));
        }
    }
    begin.elapsed()
}

/// Runs the oracle on `inputs`. Returns one result per input.
pub(super) fn ask<T: for<'de> Deserialize<'de>>(
    oracle: &Path,
    args: &[&str],
    inputs: impl Iterator<Item = Value>,
) -> Result<Vec<T>> {
    let mut child = Command::new(oracle)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| oracle.display().to_string())?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let lines: Vec<String> = inputs.map(|input| input.to_string()).collect();
    let writer = thread::spawn(move || -> std::io::Result<()> {
        for line in lines {
            writeln!(stdin, "{line}")?;
        }
        Ok(())
    });
    let output = child.wait_with_output()?;
    let written = writer.join();
    if !output.status.success() {
        bail!("the oracle failed: {}", output.status);
    }
    if !matches!(written, Ok(Ok(()))) {
        bail!("the oracle did not read all input");
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect()
}
