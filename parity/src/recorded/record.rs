//! `parity record-versions`: writes the tables with the results of the oracles of all versions.
//!
//! The cases are the expressions in the existing table, all hand-written cases, and generated cases. Generated cases
//! whose results change in the same versions are similar. So a table contains only the shortest of these cases, up to
//! the size limit of the table. It also contains some cases whose results do not change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::Value;
use vap_status_controller::version::KubernetesVersion;

use super::table_kind::{is_expression, oracle_input};
use super::{Case, Ranged, Table, TableKind, UNEXPLAINED, folded, hand, own, text, text_in};
use crate::bench::Stage;
use crate::rules::ask;
use crate::share::{self, Share};
use crate::{cases, version};

/// An oracle and its version, written as `VERSION=PATH`.
#[derive(Clone, Debug)]
pub struct Oracle {
    version: KubernetesVersion,
    path: PathBuf,
}

impl FromStr for Oracle {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (version, path) = text.split_once('=').context("expected VERSION=PATH")?;
        Ok(Self {
            version: version.parse()?,
            path: PathBuf::from(path),
        })
    }
}

/// The settings of a recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The oracles, oldest first.
    pub oracles: Vec<Oracle>,
    /// The tables to write. All tables if it is empty.
    pub tables: Vec<TableKind>,
    /// The directory of OpenAPI documents.
    pub openapi: PathBuf,
    /// The seed of generated cases.
    pub seed: u64,
}

/// Returns the number of cases to generate, and the approximate maximum size of the table in bytes.
const fn limits(stage: Stage) -> (usize, usize) {
    match stage {
        Stage::Eval => (1200, 120_000),
        Stage::Admit => (320, 130_000),
        Stage::Compile | Stage::Typecheck => (280, 65_000),
    }
}

/// The maximum size of a generated case in the table, in bytes.
const MAX_CASE: usize = 4_500;

/// The maximum cost of each stage of an admission in the table. A test would take too long for cases with higher costs.
const MAX_COST: u64 = 400_000;

/// The percentage of a table that consists of cases whose result is the same in all versions.
const UNCHANGED_PERCENT: usize = 15;

/// A case with the results of all oracles.
struct Answered {
    text: String,
    results: Vec<Ranged>,
    /// The differences between the results of versions, and the function that an expression calls first. Cases with
    /// equal `changes` are similar.
    changes: BTreeSet<String>,
    is_written_by_hand: bool,
    is_cheap: bool,
}

impl Answered {
    /// Returns the approximate size of the case in the table.
    fn size(&self) -> usize {
        let results = self.results.iter().map(|result| result.text.len() + 16);
        self.text.len() + results.sum::<usize>()
    }

    fn is_unchanged(&self) -> bool {
        self.results.len() == 1
    }
}

impl Recording {
    /// Writes the tables.
    ///
    /// # Errors
    /// Returns an error if an oracle fails or a table cannot be read or written.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let is_selected = |kind: &TableKind| self.tables.is_empty() || self.tables.contains(kind);
        for kind in TableKind::ALL.into_iter().filter(is_selected) {
            let name = kind.name();
            let path = super::path(name);
            let previous = if path.exists() {
                kind.load()?
            } else {
                Table::default()
            };
            let table = self.table(kind, &previous, out)?;
            let gaps = table.cases.iter().flat_map(|case| &case.gaps);
            let n_unexplained = gaps.filter(|gap| gap.text == UNEXPLAINED).count();
            writeln!(
                out,
                "{name}: {} cases, {n_unexplained} differences without a reason",
                table.cases.len()
            )?;
            fs::write(&path, table.to_string()).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Returns the oracles that support the command for a table.
    fn oracles(&self, kind: TableKind) -> impl Iterator<Item = &Oracle> {
        let oracles = self.oracles.iter();
        oracles.filter(move |oracle| kind.includes(oracle.version))
    }

    fn table(&self, kind: TableKind, previous: &Table, out: &mut dyn Write) -> Result<Table> {
        let mut texts: Vec<String> = previous
            .cases
            .iter()
            .map(|case| case.text.clone())
            .filter(|case| kind == TableKind::Expressions && is_expression(case))
            .collect();
        texts.extend(hand::cases(kind)?);
        let mut seen = BTreeSet::new();
        texts.retain(|text| seen.insert(text.clone()));
        let n_by_hand = texts.len();
        if let Some(stage) = kind.stage() {
            let mut generated = generated(stage, self.seed)?;
            generated.retain(|text| seen.insert(text.clone()));
            texts.extend(generated);
        }
        let answered = self.answered(kind, texts, n_by_hand)?;
        let mut cases = selected(kind, answered);
        self.mark_gaps(kind, previous, &mut cases, out)?;
        Ok(Table {
            releases: self.oracles(kind).map(|oracle| oracle.version).collect(),
            cases,
        })
    }

    /// Runs all oracles.
    fn answered(
        &self,
        kind: TableKind,
        texts: Vec<String>,
        n_by_hand: usize,
    ) -> Result<Vec<Answered>> {
        let mut lines = Vec::new();
        for oracle in self.oracles(kind) {
            let of_version = self.oracle_lines(kind, oracle, &texts)?;
            lines.push((oracle.version, of_version));
        }
        let releases: Vec<_> = lines.iter().map(|(version, _)| *version).collect();
        let answered = texts.into_iter().enumerate().map(|(at, case)| {
            let own = || {
                lines
                    .iter()
                    .filter_map(|(version, lines)| Some((*version, lines.get(at)?)))
            };
            let mut changes: BTreeSet<String> = own()
                .zip(own().skip(1))
                .flat_map(|((_, old), (version, new))| {
                    let stage = kind.stage();
                    let facets = stage.map(|stage| share::changed_facets(stage, old, new));
                    let facets = facets.into_iter().flatten();
                    facets.map(move |facet| format!("{version} {facet}"))
                })
                .collect();
            if kind == TableKind::Expressions {
                changes.extend(first_function(&case));
            }
            Answered {
                is_cheap: own().all(|(_, line)| is_cheap(line)),
                results: folded(
                    &releases,
                    own().map(|(_, line)| text::render(kind, line)).enumerate(),
                ),
                changes,
                is_written_by_hand: at < n_by_hand,
                text: case,
            }
        });
        Ok(answered.collect())
    }

    fn oracle_lines(
        &self,
        kind: TableKind,
        oracle: &Oracle,
        texts: &[String],
    ) -> Result<Vec<Value>> {
        let lines = match kind.stage() {
            Some(stage) => self.lines_of_stage(kind, stage, oracle, texts)?,
            None => {
                let openapi = self.openapi.display().to_string();
                let command: &[&str] = match kind {
                    TableKind::Definitions => &["crd", "compile", "-"],
                    TableKind::CustomResources => &["crd", "validate", "-"],
                    _ => &["mutate", "admit", "--openapi", &openapi, "-"],
                };
                let cases = texts.iter().map(|text| serde_json::from_str(text));
                let cases: Vec<Value> = cases.collect::<Result<_, _>>()?;
                ask(&oracle.path, command, cases.into_iter())?
            }
        };
        ensure!(
            lines.len() == texts.len(),
            "{}: {} results for {} cases",
            oracle.version,
            lines.len(),
            texts.len()
        );
        Ok(lines)
    }

    fn lines_of_stage(
        &self,
        kind: TableKind,
        stage: Stage,
        oracle: &Oracle,
        texts: &[String],
    ) -> Result<Vec<Value>> {
        let separator = match stage {
            Stage::Eval | Stage::Admit => "",
            Stage::Compile | Stage::Typecheck => "---\n",
        };
        let input = texts
            .iter()
            .map(|text| format!("{separator}{}\n", oracle_input(kind, text)));
        let path =
            std::env::temp_dir().join(format!("{}-{}.yaml", stage.name(), std::process::id()));
        fs::write(&path, input.collect::<String>())?;
        let share = Share {
            stage,
            oracle: oracle.path.clone(),
            openapi: (stage == Stage::Typecheck).then(|| self.openapi.clone()),
            crds: (stage == Stage::Typecheck).then(hand::crds),
            show: 0,
            paths: vec![path.clone()],
        };
        let lines = share.oracle_lines();
        fs::remove_file(path)?;
        lines
    }

    /// Marks the ranges in which our results differ. Keeps the reasons of the previous table, and prints the differences
    /// without a reason.
    fn mark_gaps(
        &self,
        kind: TableKind,
        previous: &Table,
        cases: &mut [Case],
        out: &mut dyn Write,
    ) -> Result<()> {
        let reasons: HashMap<&str, &[Ranged]> = previous
            .cases
            .iter()
            .map(|case| (case.text.as_str(), case.gaps.as_slice()))
            .collect();
        let mut gaps = vec![Vec::new(); cases.len()];
        let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
        let releases: Vec<_> = self.oracles(kind).map(|oracle| oracle.version).collect();
        for (release, oracle) in self.oracles(kind).enumerate() {
            let lines = version::with(oracle.version, || own::lines(kind, &texts))?;
            for ((case, line), gaps) in cases.iter().zip(&lines).zip(&mut gaps) {
                let theirs = text_in(&case.results, oracle.version).unwrap_or_default();
                let ours = text::render(kind, line);
                if theirs == text::PANIC || theirs == ours {
                    continue;
                }
                let previous = reasons.get(case.text.as_str());
                let reason = previous.and_then(|gaps| text_in(gaps, oracle.version));
                let reason = reason.filter(|reason| *reason != UNEXPLAINED);
                if reason.is_none() {
                    let (version, case) = (oracle.version, &case.text);
                    writeln!(
                        out,
                        "{version}: {case}\n  upstream {theirs}\n  ours     {ours}"
                    )?;
                }
                gaps.push((release, reason.unwrap_or(UNEXPLAINED).to_owned()));
            }
        }
        for (case, gaps) in cases.iter_mut().zip(gaps) {
            case.gaps = folded(&releases, gaps);
        }
        Ok(())
    }
}

/// Returns true if no part of a result has a high cost, and no stage has failed with an unknown cost.
fn is_cheap(line: &Value) -> bool {
    match line {
        Value::Array(items) => items.iter().all(is_cheap),
        Value::Object(fields) if fields.contains_key("budget") => {
            let used = fields.get("used").and_then(Value::as_u64);
            used.is_some_and(|used| used <= MAX_COST)
        }
        Value::Object(fields) => fields.values().all(is_cheap),
        _ => true,
    }
}

fn first_function(case: &str) -> Option<String> {
    let parsed: Value = serde_json::from_str(case).ok()?;
    let (before, _) = parsed.get("expr")?.as_str()?.split_once('(')?;
    let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    Some(name.to_owned())
}

/// Generates cases. The generator of expressions returns several calls of every overload, and only every n-th of its
/// cases is used.
fn generated(stage: Stage, seed: u64) -> Result<Vec<String>> {
    let (n, _) = limits(stage);
    let mut cases = match stage {
        Stage::Eval => {
            let cases = cases::eval::cases(seed, 0)?;
            let step = cases.len().div_ceil(n);
            cases.into_iter().step_by(step.max(1)).collect()
        }
        Stage::Admit => {
            let by_hand = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/hand.jsonl");
            let by_hand = fs::read_to_string(by_hand)?;
            let by_hand = by_hand.lines().map(serde_json::from_str);
            let mut cases = by_hand.collect::<Result<Vec<Value>, _>>()?;
            cases.extend(cases::admit::cases(seed, n as u64)?);
            cases
        }
        Stage::Compile | Stage::Typecheck => cases::policies::policies(seed, n as u64, &[])?,
    };
    for case in &mut cases {
        if let Some(fields) = case.as_object_mut() {
            fields.remove("id");
        }
        match stage {
            Stage::Eval => {
                // Our results are for stored expressions. The default of `env` is `stored`.
                if let Some(fields) = case.as_object_mut() {
                    fields.remove("env");
                }
                remove_unread(case)?;
            }
            Stage::Admit => {}
            Stage::Compile | Stage::Typecheck => {
                if let Some(metadata) = case["metadata"].as_object_mut() {
                    metadata.retain(|name, _| name == "name");
                }
            }
        }
    }
    Ok(cases.iter().map(ToString::to_string).collect())
}

/// Removes the variables and settings of a case that its expression does not use.
fn remove_unread(case: &mut Value) -> Result<()> {
    let case = case.as_object_mut().context("a case is an object")?;
    let expression = case.get("expr").and_then(Value::as_str);
    let expression = expression.ok_or_else(|| anyhow!("a case without an expression"))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<String> = expression
        .split(|c| !is_name(c))
        .map(ToOwned::to_owned)
        .collect();
    for name in ["vars", "schema"] {
        let Some(variables) = case.get_mut(name).and_then(Value::as_object_mut) else {
            continue;
        };
        variables.retain(|name, _| words.contains(name));
        if variables.is_empty() {
            case.remove(name);
        }
    }
    if let Some(names) = case.get_mut("declare").and_then(Value::as_array_mut) {
        names.retain(|name| name.as_str().is_some_and(|name| words.contains(name)));
        if names.is_empty() {
            case.remove("declare");
        }
    }
    if !words.contains("authorizer") {
        case.remove("authorizer");
        case.remove("userInfo");
    }
    if !case.contains_key("schema") || case.get("typedValues") == Some(&Value::Bool(false)) {
        case.remove("typedValues");
    }
    Ok(())
}

/// Selects the cases of a table: the hand-written cases, and the shortest cases for each combination of changes.
fn selected(kind: TableKind, answered: Vec<Answered>) -> Vec<Case> {
    let (_, size) = kind.stage().map_or((0, 0), limits);
    let mut groups: BTreeMap<(bool, BTreeSet<String>), Vec<usize>> = BTreeMap::new();
    let mut selected_indices: BTreeSet<usize> = BTreeSet::new();
    let size_of = |at: usize| answered.get(at).map_or(0, Answered::size);
    for (at, case) in answered.iter().enumerate() {
        if case.is_written_by_hand {
            selected_indices.insert(at);
        } else if case.is_cheap && case.size() <= MAX_CASE {
            let key = (case.is_unchanged(), case.changes.clone());
            groups.entry(key).or_default().push(at);
        }
    }
    for unchanged in [false, true] {
        let percent = if unchanged {
            UNCHANGED_PERCENT
        } else {
            100 - UNCHANGED_PERCENT
        };
        let mut left = size * percent / 100;
        let mut groups: Vec<Vec<usize>> = groups
            .iter()
            .filter(|((is_unchanged, _), _)| *is_unchanged == unchanged)
            .map(|(_, group)| group.clone())
            .collect();
        for group in &mut groups {
            group.sort_by_key(|at| size_of(*at));
        }
        let most = groups.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..most {
            for at in groups.iter().filter_map(|group| group.get(round)) {
                let needed = size_of(*at);
                if needed <= left {
                    left -= needed;
                    selected_indices.insert(*at);
                }
            }
        }
    }
    let cases = answered.into_iter().enumerate();
    cases
        .filter(|(at, _)| selected_indices.contains(at))
        .map(|(_, case)| Case {
            text: case.text,
            results: case.results,
            gaps: Vec::new(),
        })
        .collect()
}
