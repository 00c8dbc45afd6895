//! Recorded results of upstream for all supported versions, and the comparison of our engine with them.
//!
//! The tables are in `tests/versions`. Each case is followed by its results. A line applies to a range of versions:
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

/// The placeholder for the reason of an unexplained difference. If a table contains the placeholder, the comparison
/// fails.
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
    /// The patch releases of upstream, at least one for each minor version, oldest first.
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

/// A text that applies to a range of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranged {
    /// The first version. Without a patch release, it means the oldest one of the minor version.
    first: KubernetesVersion,
    /// The last version. Without a patch release, it means the newest one of the minor version.
    last: KubernetesVersion,
    text: String,
}

impl Ranged {
    fn contains(&self, version: KubernetesVersion) -> bool {
        let newest = version.patch.unwrap_or(u16::MAX);
        version.has_patch(self.first.minor, self.first.patch.unwrap_or(0))
            && self.last.has_patch(version.minor, newest)
    }
}

impl Case {
    /// Returns true if upstream's results in two versions differ.
    #[must_use]
    pub fn differs_between(&self, old: KubernetesVersion, new: KubernetesVersion) -> bool {
        text_in(&self.results, old) != text_in(&self.results, new)
    }
}

impl fmt::Display for Ranged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last != self.first {
            write!(f, " to {}", self.last)?;
        }
        write!(f, ": {}", self.text)
    }
}

impl FromStr for Ranged {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (range, text) = text.split_once(": ").context("missing colon")?;
        let (first, last) = range.split_once(" to ").unwrap_or((range, range));
        Ok(Self {
            first: first.parse()?,
            last: last.parse()?,
            text: text.to_owned(),
        })
    }
}

/// Returns ranges for the texts of releases. Each text comes with the index of its release, in ascending order.
/// Adjacent releases with equal texts share a range.
fn folded(
    releases: &[KubernetesVersion],
    texts: impl IntoIterator<Item = (usize, String)>,
) -> Vec<Ranged> {
    let mut ranges: Vec<(usize, usize, String)> = Vec::new();
    for (at, text) in texts {
        match ranges.last_mut() {
            Some((_, last, range_text)) if *range_text == text && *last + 1 == at => *last = at,
            _ => ranges.push((at, at, text)),
        }
    }
    let ranges = ranges.into_iter();
    let ranges = ranges.filter_map(|(first, last, text)| {
        let (first, last) = range_ends(releases, first, last)?;
        Some(Ranged { first, last, text })
    });
    ranges.collect()
}

/// Returns the first and last version of a range of releases, for [`Ranged`]. A version has no patch release if the range
/// contains all releases of its minor version.
fn range_ends(
    releases: &[KubernetesVersion],
    first: usize,
    last: usize,
) -> Option<(KubernetesVersion, KubernetesVersion)> {
    let range = releases.get(first..=last)?;
    let end = |version: &KubernetesVersion| {
        let has_minor = |other: &&KubernetesVersion| other.minor == version.minor;
        let n_contained = range.iter().filter(has_minor).count();
        if n_contained == releases.iter().filter(has_minor).count() {
            KubernetesVersion::new(version.minor)
        } else {
            *version
        }
    };
    Some((end(range.first()?), end(range.last()?)))
}

fn text_in(ranges: &[Ranged], version: KubernetesVersion) -> Option<&str> {
    let range = ranges.iter().find(|range| range.contains(version));
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
    let mut minors: Vec<u16> = table.releases.iter().map(|release| release.minor).collect();
    minors.dedup();
    let supported = KubernetesVersion::supported().filter(|version| kind.includes(*version));
    if !supported.map(|version| version.minor).eq(minors) {
        bail!("the table does not have the releases of each supported version");
    }
    let texts: Vec<&str> = table.cases.iter().map(|case| case.text.as_str()).collect();
    let mut differences = Vec::new();
    for release in &table.releases {
        let lines = version::with(*release, || own::lines(kind, &texts))?;
        for (case, line) in table.cases.iter().zip(&lines) {
            let ours = text::render(kind, line);
            let theirs = text_in(&case.results, *release);
            let theirs =
                theirs.with_context(|| format!("no result in {release}: {}", case.text))?;
            let results = || format!("upstream {theirs}\n  ours     {ours}");
            let problem = match text_in(&case.gaps, *release) {
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
