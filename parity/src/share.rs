//! `parity share`: computes the percentage of policies or cases for which our engine's output equals upstream's.
//!
//! If a message contains a syntax error, only the part before it is compared. The rest lists the expected tokens, which
//! depend on the parser generator. The line and column of the first syntax error are compared separately: the
//! percentage is printed, but differences do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize as _;
use serde_json::Value;
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::compile::CompileMode;

use crate::bench::Stage;
use crate::documents;
use crate::schemas::Schemas;
use crate::{admit, compile, eval, pair, typecheck};

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct Share {
    /// The subcommand whose output is compared.
    pub stage: Stage,
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The directory of OpenAPI documents.
    pub openapi: Option<PathBuf>,
    /// The directory of CustomResourceDefinitions.
    pub crds: Option<PathBuf>,
    /// The number of differences to print.
    pub show: usize,
    /// The files of policies or cases.
    pub paths: Vec<PathBuf>,
}

/// The numbers of equal items and of compared items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of equal items.
    pub same: usize,
    /// The number of compared items.
    pub of: usize,
}

impl Count {
    fn add(&mut self, same: bool) {
        self.of += 1;
        self.same += usize::from(same);
    }

    /// Returns the share in percent. Returns 0 if there are no items.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    pub fn percent(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            100.0 * self.same as f64 / self.of as f64
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Policies with the same result. The result is the list of fields with warnings, or the list of fields with
    /// compile errors.
    pub verdict: Count,
    /// Policies with the same result. Only policies for which our engine or upstream reports a finding are counted.
    pub verdict_with_findings: Count,
    /// Policies whose whole output is identical.
    pub identical: Count,
    /// The counts by facet. A facet is a part of the output that is compared separately.
    pub facets: BTreeMap<&'static str, Count>,
    /// The number of policies that are not compared because upstream panicked.
    pub upstream_panics: usize,
    /// The number of policies for which our engine panicked.
    pub own_panics: usize,
}

/// Facets whose differences do not count.
const UNCOUNTED: [&str; 1] = ["syntax at"];

/// Runs the oracle and our engine on the same policies. Prints the first differences and the shares.
///
/// # Errors
///
/// Returns an error if the oracle cannot be run, if a file cannot be read, or if the two programs read different
/// policies.
pub fn run(share: &Share, out: &mut dyn Write) -> Result<Shares> {
    let theirs = share.oracle_lines()?;
    let ours = share.own_lines()?;
    if theirs.len() != ours.len() {
        bail!(
            "the oracle has results for {} policies, our engine for {}",
            theirs.len(),
            ours.len()
        );
    }
    let (shares, differences) = compare(share.stage, &theirs, &ours);
    for difference in differences.iter().take(share.show) {
        writeln!(out, "{difference}")?;
    }
    report(share.stage, &shares, out)?;
    Ok(shares)
}

impl Share {
    pub(crate) fn oracle_lines(&self) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.oracle);
        command.arg(self.stage.name());
        if matches!(self.stage, Stage::Typecheck | Stage::Admit) {
            pair::schema_arguments(&mut command, self.openapi.as_deref(), self.crds.as_deref());
        }
        let stdout = pair::output(command.args(&self.paths))?;
        answers(&stdout).context("cannot read the oracle's output")
    }

    fn own_lines(&self) -> Result<Vec<Value>> {
        let load = || Schemas::load(self.openapi.as_deref(), self.crds.as_deref());
        if self.stage == Stage::Admit {
            let lines = admit::lines(&self.paths, &load()?)?;
            let lines: Result<_, _> = lines.iter().map(serde_json::to_value).collect();
            return Ok(lines?);
        }
        if self.stage == Stage::Eval {
            let mut lines = Vec::new();
            eval::run(&self.paths, &mut lines)?;
            return answers(&lines);
        }
        let policies = || documents::load_policies(&self.paths);
        let lines: Result<Vec<Value>, _> = match self.stage {
            Stage::Admit | Stage::Eval => Ok(Vec::new()),
            Stage::Typecheck => {
                let schemas = load()?;
                let line = |doc| typecheck::line(doc, &schemas, Profile::Upstream);
                policies()?
                    .iter()
                    .map(|doc| serde_json::to_value(line(doc)))
                    .collect()
            }
            Stage::Compile => documents::load_any_policies(&self.paths)?
                .iter()
                .map(|doc| serde_json::to_value(compile::line(doc, CompileMode::New)))
                .collect(),
        };
        Ok(lines?)
    }
}

/// Parses output with one JSON value per line.
fn answers(text: &[u8]) -> Result<Vec<Value>> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            // Disables the recursion limit, because values are deeply nested. They come from trusted programs.
            let mut deserializer = serde_json::Deserializer::from_slice(line);
            deserializer.disable_recursion_limit();
            Ok(Value::deserialize(&mut deserializer)?)
        })
        .collect()
}

/// A part of the output that is compared separately: the name of the facet, the field of the policy, and the value.
type Facet = (&'static str, String, Value);

/// Compares the output of upstream and of our engine line by line. Also describes the differences.
#[must_use]
pub fn compare(stage: Stage, theirs: &[Value], ours: &[Value]) -> (Shares, Vec<String>) {
    let mut shares = Shares::default();
    let mut differences = Vec::new();
    for (theirs, ours) in theirs.iter().zip(ours) {
        if theirs.get("panic").is_some() {
            shares.upstream_panics += 1;
            continue;
        }
        shares.own_panics += usize::from(ours.get("panic").is_some());
        let (left, right) = (facets(stage, theirs), facets(stage, ours));
        let mut wrong = Vec::new();
        let mut same_verdict = true;
        let mut keys: Vec<_> = left.keys().chain(right.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let same = left.get(key) == right.get(key);
            shares.facets.entry(key.0).or_default().add(same);
            if !same && !UNCOUNTED.contains(&key.0) {
                let (left, right) = (left.get(key), right.get(key));
                wrong.push(difference(key, left, right, ours.get("panic")));
                same_verdict &= key.0 != "verdict" && key.0 != "readable";
            }
        }
        shares.verdict.add(same_verdict);
        if has_findings(theirs) || has_findings(ours) {
            shares.verdict_with_findings.add(same_verdict);
        }
        shares.identical.add(wrong.is_empty());
        if !wrong.is_empty() {
            let text = |field| {
                theirs
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let names = ["name", "file", "id", "expr"].map(text);
            let head = format!("-- {}", names.join(" "));
            differences.push(format!("{head}\n{}", wrong.join("\n")));
        }
    }
    (shares, differences)
}

type Key = (&'static str, String);

/// Returns the names of the facets that differ between two lines of output.
pub(crate) fn changed_facets(stage: Stage, old: &Value, new: &Value) -> BTreeSet<&'static str> {
    let (old, new) = (facets(stage, old), facets(stage, new));
    let keys = old.keys().chain(new.keys());
    keys.filter(|key| old.get(key) != new.get(key) && !UNCOUNTED.contains(&key.0))
        .map(|key| key.0)
        .collect()
}

fn facets(stage: Stage, line: &Value) -> BTreeMap<Key, Value> {
    let facets = match stage {
        Stage::Typecheck => typecheck_facets(line),
        Stage::Compile => compile_facets(line),
        Stage::Admit => admit_facets(line),
        Stage::Eval => eval_facets(line),
    };
    facets
        .into_iter()
        .map(|(name, field, value)| ((name, field), value))
        .collect()
}

fn difference(
    (name, field): &Key,
    theirs: Option<&Value>,
    ours: Option<&Value>,
    panic: Option<&Value>,
) -> String {
    let text = |value: Option<&Value>| -> String {
        value.map_or("nothing".to_owned(), |v| {
            v.to_string().chars().take(600).collect()
        })
    };
    let panic = panic
        .map(|panic| format!("\n     panic    {panic}"))
        .unwrap_or_default();
    let (theirs, ours) = (text(theirs), text(ours));
    format!("   {name} {field}\n     upstream {theirs}\n     ours     {ours}{panic}")
}

fn has_findings(line: &Value) -> bool {
    let warned = line
        .get("warnings")
        .and_then(Value::as_array)
        .is_some_and(|w| !w.is_empty());
    warned || line.get("ok") == Some(&Value::Bool(false)) || line.get("error").is_some()
}

/// Truncates each string at its first syntax error and appends a marker. The same applies to strings within strings,
/// which occur in audit annotations.
pub(super) fn cut_syntax_errors(value: &mut Value) {
    match value {
        Value::String(text) => {
            let starts = ["ERROR: <input>:", "ERROR: \\u003cinput\\u003e:"];
            let at = starts.iter().flat_map(|start| text.match_indices(start));
            let is_syntax_error = |at: usize| {
                let rest = text.get(at..).unwrap_or_default();
                let place = rest.split_once(": Syntax error: ");
                // Only the line and the column are between the start of the error and `: Syntax error: `.
                place.is_some_and(|(place, _)| place.len() < 60)
            };
            let first = at.map(|(at, _)| at).filter(|at| is_syntax_error(*at)).min();
            if let Some(at) = first {
                text.truncate(at);
                text.push_str("syntax error");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_syntax_errors),
        Value::Object(fields) => fields.values_mut().for_each(cut_syntax_errors),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the facets of an admission result. Its verdict is the decision. For a denial, the verdict includes the code
/// and the reason.
fn admit_facets(line: &Value) -> Vec<Facet> {
    let verdict = |field| line.pointer(field).cloned().unwrap_or_default();
    let verdict = ["/allowed", "/status/code", "/status/reason"].map(verdict);
    let names = [
        "definition",
        "bindings",
        "evaluations",
        "status",
        "warnings",
        "auditAnnotations",
    ];
    let facets = names.map(|name| {
        let mut value = line.get(name).cloned().unwrap_or_default();
        cut_syntax_errors(&mut value);
        (name, String::new(), value)
    });
    facets
        .into_iter()
        .chain([
            ("verdict", String::new(), Value::from(verdict.to_vec())),
            (
                "readable",
                String::new(),
                line.get("error").is_none().into(),
            ),
        ])
        .collect()
}

/// Returns the facets of an evaluation. Its verdict is the value or the kind of error.
fn eval_facets(line: &Value) -> Vec<Facet> {
    let kinds = ["value", "runtimeError", "checkError", "error", "panic"];
    let verdict = kinds.iter().find(|kind| line.get(**kind).is_some());
    let names = [
        "outputType",
        "cost",
        "value",
        "runtimeError",
        "actualCost",
        "checkError",
        "error",
    ];
    let facets = names.map(|name| {
        let mut value = line.get(name).cloned().unwrap_or_default();
        if name == "checkError" {
            cut_syntax_errors(&mut value);
        }
        (name, String::new(), value)
    });
    let verdict = ("verdict", String::new(), verdict.copied().into());
    facets.into_iter().chain([verdict]).collect()
}

fn items<'a>(line: &'a Value, field: &str) -> &'a [Value] {
    line.get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn readable(line: &Value) -> Facet {
    (
        "readable",
        String::new(),
        Value::Bool(line.get("error").is_none()),
    )
}

fn typecheck_facets(line: &Value) -> Vec<Facet> {
    let warnings = items(line, "warnings");
    let fields = warnings
        .iter()
        .map(|warning| field(warning, "fieldRef"))
        .collect::<Vec<_>>();
    let typed = line.get("params").cloned().unwrap_or_default();
    let mut facets = vec![
        readable(line),
        ("types", String::new(), items(line, "types").to_vec().into()),
        ("params", String::new(), typed),
        ("verdict", String::new(), fields.into()),
    ];
    for warning in warnings {
        let (of, text) = (
            field(warning, "fieldRef"),
            field(warning, "warningNormalized"),
        );
        facets.extend(text_facets(of, text));
    }
    facets
}

fn compile_facets(line: &Value) -> Vec<Facet> {
    let mut facets = vec![readable(line)];
    for expression in items(line, "expressions") {
        let of = field(expression, "fieldRef");
        let value = |name| expression.get(name).cloned().unwrap_or_default();
        facets.push(("verdict", of.to_owned(), value("ok")));
        facets.push(("error type", of.to_owned(), value("errorType")));
        facets.push(("result type", of.to_owned(), value("outputType")));
        facets.extend(text_facets(of, field(expression, "error")));
    }
    facets
}

/// Returns the facets of a finding: its message, and the location of the first syntax error.
fn text_facets(of: &str, text: &str) -> Vec<Facet> {
    if text.is_empty() {
        return Vec::new();
    }
    match split_syntax_error(text) {
        Some((before, place)) => vec![
            (
                "text",
                of.to_owned(),
                format!("{before}syntax error").into(),
            ),
            ("syntax at", of.to_owned(), place.into()),
        ],
        None => vec![("text", of.to_owned(), text.into())],
    }
}

/// Splits a message at its first syntax error. Returns the preceding part, and the line and column of the error.
/// Returns `None` if there is no syntax error.
fn split_syntax_error(text: &str) -> Option<(&str, &str)> {
    const START: &str = "ERROR: <input>:";
    text.match_indices(START).find_map(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let (place, _) = rest.strip_prefix(START)?.split_once(": Syntax error: ")?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let (line, column) = place.split_once(':')?;
        (digits(line) && digits(column)).then_some((before, place))
    })
}

fn report(stage: Stage, shares: &Shares, out: &mut dyn Write) -> Result<()> {
    let mut row = |name: &str, count: Count| {
        let Count { same, of } = count;
        writeln!(
            out,
            "{name:24} {same:7} of {of:7}  {:6.2}%",
            count.percent()
        )
    };
    for (name, count) in &shares.facets {
        row(&format!("facet: {name}"), *count)?;
    }
    row("policies: same verdict", shares.verdict)?;
    row("  of those with findings", shares.verdict_with_findings)?;
    row("policies: identical", shares.identical)?;
    writeln!(
        out,
        "{}: verdict {:.2}%, identical {:.2}%, upstream panics {}, own panics {}",
        stage.name(),
        shares.verdict.percent(),
        shares.identical.percent(),
        shares.upstream_panics,
        shares.own_panics,
    )?;
    Ok(())
}
