//! Applies the fixes of findings, and checks the result.
//!
//! The new content of a file is checked before the file is written. The file remains unchanged if the check still
//! reports a fixed finding, or reports a new error or warning.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::finding::{Finding, Severity};
use super::fingerprint::without_numbers;
use super::report::CheckReport;
use super::settings::Settings;
use super::{Options, run_with};
use crate::cli::input::SourceText;
use crate::cli::input::edit::{Edit, applied};
use crate::cli::unified;
use crate::cli::write;
use crate::schema::SchemaError;

/// Maximum number of fixes per file and run.
const MAX_EDITS: usize = 200;

/// Maximum number of fixes that are tried one by one, after the fixes of their file failed together.
const MAX_TRIES: usize = 40;

/// The fixes of a file: those that were applied or, with `--diff`, that would be applied.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FixReport {
    /// The name of the file.
    pub file: String,
    /// The number of fixes that were applied or, with `--diff`, that would be applied.
    pub fixed: usize,
    /// The reason why other fixes were not applied; absent if all were applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_fixed: Option<String>,
    /// The fixes as a unified diff; only with `--diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// A file and the fixes to apply to it.
#[derive(Debug)]
struct Candidate {
    source: Arc<SourceText>,
    edits: Vec<Edit>,
    not_fixed: Option<String>,
}

impl Candidate {
    /// Returns the new content of the file. `None` if the edits cannot be applied.
    fn text(&self) -> Option<String> {
        let text = applied(self.source.text(), &self.edits)?;
        Some(with_mark(&self.source, text))
    }
}

/// Prepends the byte order mark if the file has one.
fn with_mark(source: &SourceText, text: String) -> String {
    if source.has_byte_order_mark() {
        format!("\u{feff}{text}")
    } else {
        text
    }
}

/// Applies the fixes of a report's findings, or only computes them if `is_dry`. Returns the new report.
///
/// # Errors
/// Returns an error if the built-in schemas cannot be read, which only happens in a broken build.
pub(in crate::cli) fn fix(
    options: &Options,
    settings: &Settings,
    report: CheckReport,
    is_dry: bool,
) -> Result<CheckReport, SchemaError> {
    let candidates = candidates(&report);
    if candidates.is_empty() {
        return Ok(report);
    }
    let mut fixer = Fixer {
        options,
        settings,
        before: &report.findings,
        tries_left: MAX_TRIES,
    };
    let (candidates, after) = fixer.all(candidates)?;
    let (mut is_written, mut has_failed) = (false, false);
    let mut fixes = Vec::new();
    for mut candidate in candidates {
        let name = candidate.source.name.clone();
        let is_wanted = !candidate.edits.is_empty();
        if !is_dry
            && is_wanted
            && let Err(reason) = save(&candidate)
        {
            candidate.edits.clear();
            candidate.not_fixed = Some(format!("cannot write the file: {reason}"));
            has_failed = true;
        }
        is_written |= !is_dry && !candidate.edits.is_empty();
        let diff = || {
            let old = candidate.source.text();
            let new = applied(old, &candidate.edits).unwrap_or_default();
            unified::from_texts((&name, &name), old, &new)
        };
        fixes.push(FixReport {
            fixed: candidate.edits.len(),
            not_fixed: candidate.not_fixed.clone(),
            diff: (is_dry && is_wanted).then(diff),
            file: name,
        });
    }
    let mut report = match after {
        Some(after) if is_written && !has_failed => after,
        // If a file could not be written, `after` does not describe the files on disk. They are checked again.
        _ if is_written => run_with(options, settings, &mut io::empty())?,
        _ => report,
    };
    report.fixes = fixes;
    Ok(report)
}

/// Returns, for each file, the fixes that change only one value and do not overlap.
fn candidates(report: &CheckReport) -> Vec<Candidate> {
    let mut by_file: BTreeMap<PathBuf, Candidate> = BTreeMap::new();
    for edit in report
        .findings
        .iter()
        .filter_map(|finding| finding.fix.as_ref())
    {
        let path = Path::new(&edit.source.name);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let candidate = by_file.entry(path).or_insert_with(|| Candidate {
            source: Arc::clone(&edit.source),
            edits: Vec::new(),
            not_fixed: None,
        });
        // The same file may be passed twice.
        let is_of_source = candidate.source.name == edit.source.name;
        let is_same_edit = |other: &Edit| is_same(other, edit);
        if !is_of_source || candidate.edits.iter().any(is_same_edit) {
            continue;
        }
        if candidate.edits.len() >= MAX_EDITS {
            candidate.not_fixed = Some(format!("more than {MAX_EDITS} fixes; run --fix again"));
        } else if edit.changes_one_value() {
            candidate.edits.push(edit.clone());
        } else {
            candidate.not_fixed = Some("a fix would change more than one value".to_owned());
        }
    }
    for candidate in by_file.values_mut() {
        candidate
            .edits
            .sort_by_key(|edit| (edit.bytes.start, edit.bytes.end));
        let mut end = None;
        let n = candidate.edits.len();
        candidate.edits.retain(|edit| {
            let is_disjoint = end.is_none_or(|end| edit.bytes.start >= end);
            if is_disjoint {
                end = Some(edit.bytes.end);
            }
            is_disjoint
        });
        if candidate.edits.len() < n {
            candidate.not_fixed = Some("two fixes overlap".to_owned());
        }
    }
    by_file.into_values().collect()
}

/// The identity of a finding, independent of its location in the file.
type Key = (String, &'static str, String, String, String);

fn key(finding: &Finding) -> Key {
    (
        finding.location.file.clone(),
        finding.rule.id(),
        finding.owner.name().unwrap_or_default().to_owned(),
        finding.field_ref.clone().unwrap_or_default(),
        without_numbers(&finding.message),
    )
}

fn is_same(a: &Edit, b: &Edit) -> bool {
    a.bytes == b.bytes && a.text == b.text && a.source.name == b.source.name
}

struct Fixer<'a> {
    options: &'a Options,
    settings: &'a Settings,
    /// The findings before any fix.
    before: &'a [Finding],
    /// The number of fixes that may still be tried individually.
    tries_left: usize,
}

/// A reason not to apply fixes: a fixed finding that remains, or a new finding. `file` is the file of the finding.
#[derive(Debug)]
struct Objection {
    file: String,
    reason: String,
}

/// The report on the fixed files, or the objections to the fixes.
type Attempt = Result<CheckReport, Vec<Objection>>;

impl Fixer<'_> {
    /// Removes the fixes that fail. Returns the files with the remaining fixes, and the report on the fixed files.
    ///
    /// The report is `None` if the fixes of several files conflict, so that no fixes remain.
    fn all(
        &mut self,
        mut files: Vec<Candidate>,
    ) -> Result<(Vec<Candidate>, Option<CheckReport>), SchemaError> {
        // Usually all fixes succeed together. If not, sets aside the fixes of each file with an objection.
        let mut set_aside: Vec<(usize, Vec<Edit>)> = Vec::new();
        let mut after = loop {
            let objections = match self.check(&files)? {
                Ok(after) => break after,
                Err(objections) => objections,
            };
            let mut is_less = false;
            for (n, file) in files.iter_mut().enumerate() {
                let of_file = |objection: &&Objection| objection.file == file.source.name;
                if let Some(objection) = objections.iter().find(of_file)
                    && !file.edits.is_empty()
                {
                    file.not_fixed = Some(objection.reason.clone());
                    set_aside.push((n, std::mem::take(&mut file.edits)));
                    is_less = true;
                }
            }
            if !is_less {
                // The fixes of several files conflict.
                for file in &mut files {
                    file.edits.clear();
                    file.not_fixed = objections.first().map(|objection| objection.reason.clone());
                }
                return Ok((files, None));
            }
        };
        // Tries, one by one, the fixes that were set aside.
        for (n, edits) in set_aside {
            if edits.len() < 2 {
                continue;
            }
            for edit in edits {
                let Some(left) = self.tries_left.checked_sub(1) else {
                    break;
                };
                self.tries_left = left;
                if let Some(file) = files.get_mut(n) {
                    file.edits.push(edit);
                }
                let tried = self.check(&files)?;
                let Some(file) = files.get_mut(n) else {
                    continue;
                };
                match tried {
                    Ok(report) => after = report,
                    Err(objections) => {
                        file.edits.pop();
                        let first = objections.into_iter().next();
                        file.not_fixed = first.map(|objection| objection.reason);
                    }
                }
            }
        }
        Ok((files, Some(after)))
    }

    /// Checks the files with their fixes. Returns an objection for each fixed finding that remains, and for each new
    /// error and warning.
    ///
    /// New notes are accepted, because the check may cover more of an object after it is fixed.
    fn check(&self, files: &[Candidate]) -> Result<Attempt, SchemaError> {
        let mut settings = self.settings.clone();
        for file in files {
            let path = Path::new(&file.source.name).canonicalize();
            if let (Some(text), Ok(path)) = (file.text(), path) {
                settings.replaced_contents.insert(path, text);
            }
        }
        let mut open: HashMap<Key, usize> = HashMap::new();
        let mut fixed: HashSet<Key> = HashSet::new();
        for finding in self.before {
            let is_fixed = finding.fix.as_ref().is_some_and(|fix| {
                let mut edits = files.iter().flat_map(|file| &file.edits);
                edits.any(|edit| is_same(edit, fix))
            });
            if is_fixed {
                fixed.insert(key(finding));
            } else {
                *open.entry(key(finding)).or_default() += 1;
            }
        }
        let report = run_with(self.options, &settings, &mut io::empty())?;
        let mut objections = Vec::new();
        for finding in &report.findings {
            let key = key(finding);
            let reason = match open.get_mut(&key) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    continue;
                }
                _ if fixed.contains(&key) => format!("the fix has no effect: {}", finding.message),
                _ if finding.severity == Severity::Note => continue,
                _ => {
                    let line = finding
                        .location
                        .place
                        .map(|place| format!(":{}", place.line));
                    format!(
                        "the fix would cause {}[{}] in {}{}: {}",
                        finding.severity.as_str(),
                        finding.rule.id(),
                        finding.location.file,
                        line.unwrap_or_default(),
                        finding.message
                    )
                }
            };
            objections.push(Objection {
                file: finding.location.file.clone(),
                reason,
            });
        }
        Ok(if objections.is_empty() {
            Ok(report)
        } else {
            Err(objections)
        })
    }
}

/// Writes the fixed content of a file, unless the file has changed since it was read.
fn save(candidate: &Candidate) -> Result<(), String> {
    let path = Path::new(&candidate.source.name);
    let now = fs::read_to_string(path).map_err(|error| error.to_string())?;
    if now != with_mark(&candidate.source, candidate.source.text().to_owned()) {
        return Err("the file has changed since it was read".to_owned());
    }
    let text = candidate
        .text()
        .ok_or("the fixes cannot be applied to its text")?;
    write::atomically(path, &text)
}
