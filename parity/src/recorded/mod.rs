//! Recorded results of upstream for all supported versions, and the comparison of our engine with them.
//!
//! The tables are in `tests/versions`. Each case is followed by its results, which are the same in a range of minor
//! versions:
//!
//! ```text
//! [1].first()
//!   1.30 to 1.32: error at 1:10: undeclared reference to 'first' (in container '')
//!   1.33 to 1.37: optional(1), optional_type(int), cost 1, estimated 11
//! ```
//!
//! A line such as `  not reproduced in 1.30: REASON` marks a range with another result of our engine. The reason is the
//! beginning of a list item in `docs/versions.md`.

pub mod record;
mod text;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::compile::CompileMode;
use vap_status_controller::version::KubernetesVersion;

use crate::bench::Stage;
use crate::documents::{self, PolicyDoc};
use crate::schemas::Schemas;
use crate::{admit, compile, eval, typecheck, version};

/// The stages, with the names of their tables.
pub const TABLES: [(Stage, &str); 4] = [
    (Stage::Eval, "expressions"),
    (Stage::Admit, "admissions"),
    (Stage::Compile, "compilations"),
    (Stage::Typecheck, "type_checks"),
];

/// The reason of a difference without an explanation. The comparison fails for it.
const UNEXPLAINED: &str = "?";

const RELEASES: &str = "# Releases: ";

/// Returns the path of a table.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/versions");
    directory.join(name).with_extension("txt")
}

/// Recorded cases and their results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The patch releases of upstream, one for each minor version, oldest first.
    pub releases: Vec<KubernetesVersion>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A case and its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// An expression without variables, or JSON in the oracle's format: a case of `eval` or `admit`, or a policy.
    pub text: String,
    /// The results of upstream.
    pub results: Vec<Ranged>,
    /// The reasons for other results of our engine.
    pub gaps: Vec<Ranged>,
}

/// A text that applies to a range of minor versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranged {
    first: u16,
    last: u16,
    text: String,
}

impl fmt::Display for Ranged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.first)?;
        if self.last > self.first {
            write!(f, " to 1.{}", self.last)?;
        }
        write!(f, ": {}", self.text)
    }
}

impl FromStr for Ranged {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (range, text) = text.split_once(": ").context("missing colon")?;
        let (first, last) = range.split_once(" to ").unwrap_or((range, range));
        let minor = |version: &str| -> Result<u16> {
            let minor = version.strip_prefix("1.").context("not a version")?;
            Ok(minor.parse()?)
        };
        Ok(Self {
            first: minor(first)?,
            last: minor(last)?,
            text: text.to_owned(),
        })
    }
}

/// Returns ranges for the texts of minor versions, in ascending order. Adjacent versions with equal texts share a range.
fn folded(texts: impl IntoIterator<Item = (u16, String)>) -> Vec<Ranged> {
    let mut ranges: Vec<Ranged> = Vec::new();
    for (minor, text) in texts {
        match ranges.last_mut() {
            Some(range) if range.text == text && range.last + 1 == minor => range.last = minor,
            _ => ranges.push(Ranged {
                first: minor,
                last: minor,
                text,
            }),
        }
    }
    ranges
}

/// Returns the text that applies to a minor version.
fn text_in(ranges: &[Ranged], minor: u16) -> Option<&str> {
    let range = ranges
        .iter()
        .find(|range| (range.first..=range.last).contains(&minor));
    range.map(|range| range.text.as_str())
}

const GAP: &str = "not reproduced in ";

impl FromStr for Table {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut table = Self::default();
        for line in text.lines() {
            if let Some(releases) = line.strip_prefix(RELEASES) {
                let releases = releases.split(' ').map(|release| {
                    let version = release.parse::<KubernetesVersion>();
                    version.with_context(|| release.to_owned())
                });
                table.releases = releases.collect::<Result<_>>()?;
            } else if let Some(result) = line.strip_prefix("  ") {
                let case = table.cases.last_mut().context("a result without a case")?;
                match result.strip_prefix(GAP) {
                    Some(gap) => case.gaps.push(gap.parse()?),
                    None => case.results.push(result.parse()?),
                }
            } else if !line.is_empty() && !line.starts_with('#') {
                table.cases.push(Case {
                    text: line.to_owned(),
                    ..Case::default()
                });
            }
        }
        Ok(table)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "# Results of upstream's code in each Kubernetes version. `./dev record-versions` writes this file, and\n\
             # `parity/src/recorded/mod.rs` describes it.\n",
        )?;
        let releases: Vec<_> = self.releases.iter().map(ToString::to_string).collect();
        writeln!(f, "{RELEASES}{}", releases.join(" "))?;
        for case in &self.cases {
            writeln!(f, "\n{}", case.text)?;
            for result in &case.results {
                writeln!(f, "  {result}")?;
            }
            for gap in &case.gaps {
                writeln!(f, "  {GAP}{gap}")?;
            }
        }
        Ok(())
    }
}

/// Returns our results for cases in the current version, in the oracle's format.
///
/// # Errors
/// Returns an error if a case is not valid.
fn own_lines(stage: Stage, cases: &[&str]) -> Result<Vec<Value>> {
    let schemas = match stage {
        // All versions have the same schemas, like in `./dev parity`.
        Stage::Typecheck => Schemas::builtin(KubernetesVersion::DEFAULT)?,
        _ => Schemas::load(None, None)?,
    };
    let line = |case: &&str| -> Result<Value> {
        Ok(match stage {
            Stage::Eval => serde_json::to_value(eval::line(1, &oracle_input(stage, case)))?,
            Stage::Admit => serde_json::to_value(admit::answer(&schemas, 1, case))?,
            Stage::Compile => {
                let doc = policy(case)?.to_any();
                serde_json::to_value(compile::line(&doc, CompileMode::New))?
            }
            Stage::Typecheck => {
                let line = typecheck::line(&policy(case)?, &schemas, Profile::Upstream);
                serde_json::to_value(line)?
            }
        })
    };
    cases.iter().map(line).collect()
}

fn policy(case: &str) -> Result<PolicyDoc> {
    let policy = documents::parse_policy(serde_json::from_str(case)?)?;
    Ok(PolicyDoc {
        file: String::new(),
        index: 0,
        policy: policy.ok_or_else(|| anyhow!("not a ValidatingAdmissionPolicy: {case}")),
    })
}

/// Returns the case in the oracle's format.
fn oracle_input(stage: Stage, case: &str) -> String {
    if stage == Stage::Eval && is_expression(case) {
        serde_json::json!({ "expr": case }).to_string()
    } else {
        case.to_owned()
    }
}

/// Returns true if the case is an expression without variables, and not JSON.
fn is_expression(case: &str) -> bool {
    let parsed: Result<Value, _> = serde_json::from_str(case);
    !parsed.is_ok_and(|case| case.is_object())
}

/// Compares our results with the recorded ones, in all versions. Returns the differences.
///
/// # Errors
/// Returns an error if the table lacks a version or a result.
pub fn differences(stage: Stage, table: &Table, documented: &str) -> Result<Vec<String>> {
    let minors = |version: &KubernetesVersion| version.minor;
    let supported: Vec<_> = KubernetesVersion::supported().map(|it| it.minor).collect();
    if table.releases.iter().map(minors).ne(supported) {
        bail!("the table does not have one release for each supported version");
    }
    let texts: Vec<&str> = table.cases.iter().map(|case| case.text.as_str()).collect();
    let mut differences = Vec::new();
    for release in &table.releases {
        let lines = version::with(*release, || own_lines(stage, &texts))?;
        for (case, line) in table.cases.iter().zip(&lines) {
            let ours = text::render(stage, line);
            let theirs = text_in(&case.results, release.minor);
            let theirs =
                theirs.with_context(|| format!("no result in {release}: {}", case.text))?;
            let results = || format!("upstream {theirs}\n  ours     {ours}");
            let problem = match text_in(&case.gaps, release.minor) {
                None if ours == theirs || theirs == text::PANIC => continue,
                None => results(),
                Some(_) if ours == theirs => "the marked difference no longer exists".to_owned(),
                Some(reason) if documented.contains(&format!("\n- {reason}")) => continue,
                Some(reason) => {
                    format!(
                        "docs/versions.md has no list item `{reason}`\n  {}",
                        results()
                    )
                }
            };
            differences.push(format!("{release}: {}\n  {problem}", case.text));
        }
    }
    Ok(differences)
}
