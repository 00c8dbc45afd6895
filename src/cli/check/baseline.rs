//! Reads, applies and writes baselines: files of recorded findings that later checks do not report.
//!
//! File names are relative to the directory of the baseline, so that they do not depend on the working directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file_names::Names;
use super::finding::{Finding, Location, Severity};
use super::levels::is_unsuppressible;
use super::report::{CheckReport, Suppressed, SuppressedBy};
use crate::cli::error::CliError;
use crate::cli::write;
use crate::policy::rule::Rule;

const API_VERSION: &str = "cli.vap-status.dev/v1alpha1";

const KIND: &str = "CheckBaseline";

/// Maximum size of a baseline, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A baseline read from a file.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The path as the user gave it.
    path: PathBuf,
    entries: BTreeSet<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Contents {
    api_version: String,
    kind: String,
    findings: Vec<Entry>,
}

/// A recorded finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    file: String,
    rule: String,
    fingerprint: String,
    /// The message, for human readers. It is not part of the [`Key`].
    message: String,
}

/// The identity of a finding: its file, rule and fingerprint.
type Key<'a> = (&'a str, &'a str, &'a str);

impl Entry {
    fn key(&self) -> Key<'_> {
        (&self.file, &self.rule, &self.fingerprint)
    }
}

impl Baseline {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = path.display();
        let failure = |reason: String| {
            CliError::Baseline(format!("cannot read the baseline {name}: {reason}"))
        };
        let length = fs::metadata(path).map_err(|error| failure(error.to_string()))?;
        if length.len() > MAX_BYTES {
            return Err(failure(format!("larger than {MAX_BYTES} bytes")));
        }
        let text = fs::read(path).map_err(|error| failure(error.to_string()))?;
        let contents: Contents =
            serde_json::from_slice(&text).map_err(|error| failure(error.to_string()))?;
        if (contents.api_version.as_str(), contents.kind.as_str()) != (API_VERSION, KIND) {
            let message =
                format!("not a {KIND} of {API_VERSION}; create one with --write-baseline");
            return Err(failure(message));
        }
        Ok(Self {
            path: path.to_owned(),
            entries: contents.findings.into_iter().collect(),
        })
    }

    /// Suppresses the findings that the baseline records.
    ///
    /// Adds a finding for each entry that matches no current finding, if the file of the entry was checked or does not
    /// exist. `files` are the checked files.
    pub(super) fn apply(&self, report: &mut CheckReport, files: &[String]) {
        let mut names = Names::for_file(&self.path);
        let recorded: BTreeSet<Key<'_>> = self.entries.iter().map(Entry::key).collect();
        let mut seen: BTreeSet<(String, &str, String)> = BTreeSet::new();
        // Findings that a comment suppresses still match their entries, so these entries are not stale.
        for finding in report.suppressed.iter().map(|of| &of.finding) {
            let file = names.relative(&finding.location.file);
            seen.insert((file, finding.rule.id(), finding.fingerprint.clone()));
        }
        let mut reported = Vec::new();
        for finding in std::mem::take(&mut report.findings) {
            let file = names.relative(&finding.location.file);
            let key = (file.as_str(), finding.rule.id(), &*finding.fingerprint);
            let is_recorded = recorded.contains(&key) && !is_unsuppressible(&finding);
            seen.insert((file, finding.rule.id(), finding.fingerprint.clone()));
            if is_recorded {
                report.suppressed.push(Suppressed {
                    by: SuppressedBy::Baseline,
                    reason: None,
                    finding,
                });
            } else {
                reported.push(finding);
            }
        }
        let seen: BTreeSet<Key<'_>> = seen
            .iter()
            .map(|(file, rule, fingerprint)| (file.as_str(), *rule, fingerprint.as_str()))
            .collect();
        let files: BTreeSet<String> = files.iter().map(|file| names.relative(file)).collect();
        for entry in &self.entries {
            let is_read = files.contains(&entry.file);
            if !seen.contains(&entry.key()) && (is_read || names.is_missing(&entry.file)) {
                reported.push(self.stale(entry));
            }
        }
        report.findings = reported;
    }

    fn stale(&self, entry: &Entry) -> Finding {
        let message = format!(
            "`{}` is no longer reported for {}: {}",
            entry.rule, entry.file, entry.message
        );
        let location = Location::from_file(self.path.display().to_string());
        Finding {
            help: Some("update the baseline with --write-baseline".to_owned()),
            fingerprint: entry.fingerprint.clone(),
            ..Finding::new(Severity::Note, Rule::StaleBaseline, message, location)
        }
    }
}

/// Returns true for a finding that a baseline does not record. The note about skipped objects is not recorded because
/// its message changes with each added object.
fn is_not_recorded(finding: &Finding) -> bool {
    is_unsuppressible(finding) || finding.rule == Rule::SkippedObject
}

/// Writes the findings of a report to a baseline, and suppresses them in the report. Returns the number of entries.
///
/// Findings that cannot be suppressed remain in the report.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(in crate::cli) fn write_baseline(
    path: &Path,
    report: &mut CheckReport,
) -> Result<usize, CliError> {
    let mut names = Names::for_file(path);
    let findings = std::mem::take(&mut report.findings).into_iter();
    let (reported, recorded): (Vec<_>, Vec<_>) = findings.partition(is_not_recorded);
    report.findings = reported;
    let mut entries: BTreeSet<Entry> = BTreeSet::new();
    for finding in &recorded {
        let others = finding.also.iter().map(|other| &other.fingerprint);
        for fingerprint in std::iter::once(&finding.fingerprint).chain(others) {
            entries.insert(Entry {
                file: names.relative(&finding.location.file),
                rule: finding.rule.id().to_owned(),
                fingerprint: fingerprint.clone(),
                message: finding.message.clone(),
            });
        }
    }
    let n_entries = entries.len();
    let contents = Contents {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        findings: entries.into_iter().collect(),
    };
    let failure = |reason: String| {
        let name = path.display();
        CliError::Baseline(format!("cannot write the baseline {name}: {reason}"))
    };
    let text =
        serde_json::to_string_pretty(&contents).map_err(|error| failure(error.to_string()))?;
    write::atomically(path, &(text + "\n")).map_err(failure)?;
    let suppressed = recorded.into_iter().map(|finding| Suppressed {
        by: SuppressedBy::Baseline,
        reason: None,
        finding,
    });
    report.suppressed.extend(suppressed);
    report.count();
    Ok(n_entries)
}
