//! A baseline: findings that were there when it was written, and are not reported until they are gone.
//!
//! Files are named from the directory of the baseline, so that it does not matter where a check is started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::real;
use super::finding::{Finding, Location, Severity};
use super::levels::is_fixed;
use super::report::{CheckReport, Suppressed, SuppressedBy};
use crate::cli::error::CliError;
use crate::cli::input::files::STDIN;
use crate::cli::write;
use crate::policy::rule::Rule;

/// The version of the file's form.
const API_VERSION: &str = "cli.vap-status.dev/v1alpha1";

/// The kind of the file.
const KIND: &str = "CheckBaseline";

/// The most bytes of a baseline.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A baseline that was read.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The file, as it was named.
    path: PathBuf,
    entries: BTreeSet<Entry>,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Contents {
    api_version: String,
    kind: String,
    findings: Vec<Entry>,
}

/// A finding of the baseline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    file: String,
    rule: String,
    fingerprint: String,
    /// For those who read the file.
    message: String,
}

/// The parts that tell findings apart.
type Key<'a> = (&'a str, &'a str, &'a str);

impl Entry {
    fn key(&self) -> Key<'_> {
        (&self.file, &self.rule, &self.fingerprint)
    }
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let name = path.display();
        let fault = |reason: String| {
            CliError::Baseline(format!("cannot read the baseline {name}: {reason}"))
        };
        let length = fs::metadata(path).map_err(|error| fault(error.to_string()))?;
        if length.len() > MAX_BYTES {
            return Err(fault(format!("larger than {MAX_BYTES} bytes")));
        }
        let text = fs::read(path).map_err(|error| fault(error.to_string()))?;
        let contents: Contents =
            serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))?;
        if (contents.api_version.as_str(), contents.kind.as_str()) != (API_VERSION, KIND) {
            let message = format!("it is no {API_VERSION} {KIND}; --write-baseline writes one");
            return Err(fault(message));
        }
        Ok(Self {
            path: path.to_owned(),
            entries: contents.findings.into_iter().collect(),
        })
    }

    /// Takes the findings of the baseline out; adds a finding for each of its own that there is no more in `files`.
    pub(super) fn apply(&self, report: &mut CheckReport, files: &[String]) {
        let mut names = Names::new(&self.path);
        let known: BTreeSet<Key<'_>> = self.entries.iter().map(Entry::key).collect();
        let mut seen: BTreeSet<(String, &str, String)> = BTreeSet::new();
        // What a comment or a level suppresses is still there.
        for found in report.suppressed.iter().map(|of| &of.finding) {
            let file = names.of(&found.location.file);
            seen.insert((file, found.rule.id(), found.fingerprint.clone()));
        }
        let mut told = Vec::new();
        for finding in std::mem::take(&mut report.findings) {
            let file = names.of(&finding.location.file);
            let key = (file.as_str(), finding.rule.id(), &*finding.fingerprint);
            let is_known = known.contains(&key) && !is_fixed(&finding);
            seen.insert((file, finding.rule.id(), finding.fingerprint.clone()));
            if is_known {
                report.suppressed.push(Suppressed {
                    by: SuppressedBy::Baseline,
                    reason: None,
                    finding,
                });
            } else {
                told.push(finding);
            }
        }
        let seen: BTreeSet<Key<'_>> = seen
            .iter()
            .map(|(file, rule, fingerprint)| (file.as_str(), *rule, fingerprint.as_str()))
            .collect();
        let files: BTreeSet<String> = files.iter().map(|file| names.of(file)).collect();
        for entry in &self.entries {
            let is_read = files.contains(&entry.file);
            if !seen.contains(&entry.key()) && (is_read || names.is_gone(&entry.file)) {
                told.push(self.stale(entry));
            }
        }
        report.findings = told;
    }

    fn stale(&self, entry: &Entry) -> Finding {
        let message = format!(
            "`{}` is not found any more in {}: {}",
            entry.rule, entry.file, entry.message
        );
        let location = Location::of_file(self.path.display().to_string());
        Finding {
            help: Some("write the baseline again, with --write-baseline".to_owned()),
            fingerprint: entry.fingerprint.clone(),
            ..Finding::new(Severity::Note, Rule::StaleBaseline, message, location)
        }
    }
}

/// Writes what is reported to a baseline, and takes it out of the report; returns how many findings that were.
///
/// # Errors
/// The file cannot be written.
pub(in crate::cli) fn write_baseline(
    path: &Path,
    report: &mut CheckReport,
) -> Result<usize, CliError> {
    let mut names = Names::new(path);
    let findings = std::mem::take(&mut report.findings).into_iter();
    let (told, known): (Vec<_>, Vec<_>) = findings.partition(is_fixed);
    report.findings = told;
    let entry = |found: &Finding| Entry {
        file: names.of(&found.location.file),
        rule: found.rule.id().to_owned(),
        fingerprint: found.fingerprint.clone(),
        message: found.message.clone(),
    };
    let entries: BTreeSet<Entry> = known.iter().map(entry).collect();
    let n_entries = entries.len();
    let contents = Contents {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        findings: entries.into_iter().collect(),
    };
    let fault = |reason: String| {
        let name = path.display();
        CliError::Baseline(format!("cannot write the baseline {name}: {reason}"))
    };
    let text = serde_json::to_string_pretty(&contents).map_err(|error| fault(error.to_string()))?;
    write::atomically(path, &(text + "\n")).map_err(fault)?;
    let suppressed = known.into_iter().map(|finding| Suppressed {
        by: SuppressedBy::Baseline,
        reason: None,
        finding,
    });
    report.suppressed.extend(suppressed);
    report.count();
    Ok(n_entries)
}

/// The names of files in a baseline.
struct Names {
    directory: PathBuf,
    known: BTreeMap<String, String>,
}

impl Names {
    fn new(baseline: &Path) -> Self {
        let path = real(baseline).unwrap_or_else(|| baseline.to_owned());
        Self {
            directory: path.parent().unwrap_or(Path::new("")).to_owned(),
            known: BTreeMap::new(),
        }
    }

    /// The name of a file that a check names `file`.
    fn of(&mut self, file: &str) -> String {
        if file == STDIN {
            return file.to_owned();
        }
        if let Some(name) = self.known.get(file) {
            return name.clone();
        }
        let path = real(Path::new(file)).unwrap_or_else(|| PathBuf::from(file));
        let name = match path.strip_prefix(&self.directory) {
            Ok(below) => {
                let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
                names.join("/")
            }
            Err(_) => path.display().to_string(),
        };
        self.known.insert(file.to_owned(), name.clone());
        name
    }

    /// Reports whether there is no file of this name in a baseline any more.
    fn is_gone(&self, name: &str) -> bool {
        name != STDIN && !self.directory.join(name).exists()
    }
}
