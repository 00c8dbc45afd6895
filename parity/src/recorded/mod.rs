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
//! A line such as ` not reproduced in 1.30: REASON` marks a range in which the result of our engine differs. The reason
//! is the beginning of a list item in `docs/versions.md`.
//!
//! A panic of upstream has the result `panic`. Our result for it is not compared.

pub mod hand;
mod own;
pub mod record;
mod table_kind;
mod text;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use vap_status_controller::version::KubernetesVersion;

use crate::version;
pub use table_kind::TableKind;

impl TableKind {
    /// Reads the table.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or parsed.
    pub fn load(self) -> Result<Table> {
        let path = path(self.name());
        let context = || path.display().to_string();
        let text = fs::read_to_string(&path).with_context(context)?;
        text.parse().with_context(context)
    }
}

/// The placeholder for the reason of a difference that has no explanation yet. The comparison fails if a table contains
/// it.
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
    /// The reasons why results of our engine differ.
    pub gaps: Vec<Ranged>,
}

/// A text that applies to a range of minor versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranged {
    first: u16,
    last: u16,
    text: String,
}

impl Case {
    /// Returns true if upstream's result in a minor version differs from that in the previous one.
    #[must_use]
    pub fn changes_in(&self, minor: u16) -> bool {
        let before = minor.checked_sub(1);
        let before = before.and_then(|before| text_in(&self.results, before));
        before.is_some_and(|before| text_in(&self.results, minor) != Some(before))
    }
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

/// Compares our results with the recorded ones, in all versions. Returns the differences.
///
/// # Errors
/// Returns an error if the table lacks a version or a result.
pub fn differences(kind: TableKind, table: &Table, documented: &str) -> Result<Vec<String>> {
    let minors = |version: &KubernetesVersion| version.minor;
    let supported: Vec<_> = KubernetesVersion::supported()
        .filter(|version| kind.includes(*version))
        .map(|version| version.minor)
        .collect();
    if table.releases.iter().map(minors).ne(supported) {
        bail!("the table does not have one release for each supported version");
    }
    let texts: Vec<&str> = table.cases.iter().map(|case| case.text.as_str()).collect();
    let mut differences = Vec::new();
    for release in &table.releases {
        let lines = version::with(*release, || own::lines(kind, &texts))?;
        for (case, line) in table.cases.iter().zip(&lines) {
            let ours = text::render(kind, line);
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
