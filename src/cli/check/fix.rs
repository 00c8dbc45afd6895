//! Mends: the edits of findings that have one mend each, tried out on the check itself.
//!
//! A file is written only where the check of the new text has none of the findings that were to be mended, and no
//! error or warning that was not there before.

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

/// The most mends of one file in one run: each is tried out on its document.
const MAX_EDITS: usize = 200;

/// The most mends that are tried one by one, where those of a file are not good together.
const MAX_TRIES: usize = 40;

/// The outcome for a file with findings that can be mended.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FixReport {
    /// The name of the file.
    pub file: String,
    /// How many mends were made, or would be.
    pub fixed: usize,
    /// Why others were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// The mends as a unified diff, where they are only shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The mends of a file.
#[derive(Debug)]
struct Candidate {
    source: Arc<SourceText>,
    edits: Vec<Edit>,
    left: Option<String>,
}

impl Candidate {
    /// The file with the mends, as it is written.
    fn text(&self) -> Option<String> {
        let text = applied(self.source.text(), &self.edits)?;
        Some(with_mark(&self.source, text))
    }
}

/// `text` with the byte order mark that the file has, if it has one.
fn with_mark(source: &SourceText, text: String) -> String {
    if source.has_byte_order_mark() {
        format!("\u{feff}{text}")
    } else {
        text
    }
}

/// Makes the mends of a report's findings, or shows them if `is_dry`; returns the report afterwards.
///
/// # Errors
/// If the built-in schemas cannot be read, which is an error of the build.
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
    let mut fixing = Fixing {
        options,
        settings,
        before: &report.findings,
        tries_left: MAX_TRIES,
    };
    let (candidates, after) = fixing.all(candidates)?;
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
            candidate.left = Some(format!("cannot write it: {reason}"));
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
            left: candidate.left.clone(),
            diff: (is_dry && is_wanted).then(diff),
            file: name,
        });
    }
    let mut report = match after {
        Some(after) if is_written && !has_failed => after,
        // What is in the files now, whatever was meant to be.
        _ if is_written => run_with(options, settings, &mut io::empty())?,
        _ => report,
    };
    report.fixes = fixes;
    Ok(report)
}

/// The mends of each file: those that change one value and no other, and are apart from each other.
fn candidates(report: &CheckReport) -> Vec<Candidate> {
    let mut by_file: BTreeMap<PathBuf, Candidate> = BTreeMap::new();
    for edit in report
        .findings
        .iter()
        .filter_map(|found| found.fix.as_ref())
    {
        let path = Path::new(&edit.source.name);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let candidate = by_file.entry(path).or_insert_with(|| Candidate {
            source: Arc::clone(&edit.source),
            edits: Vec::new(),
            left: None,
        });
        // A file may be given twice.
        let is_of_source = candidate.source.name == edit.source.name;
        let is_known = |known: &Edit| is_same(known, edit);
        if !is_of_source || candidate.edits.iter().any(is_known) {
            continue;
        }
        if candidate.edits.len() >= MAX_EDITS {
            candidate.left = Some(format!("more than {MAX_EDITS} mends; run it again"));
        } else if edit.changes_one_value() {
            candidate.edits.push(edit.clone());
        } else {
            candidate.left =
                Some("a mend would change more than the value at its place".to_owned());
        }
    }
    for candidate in by_file.values_mut() {
        candidate
            .edits
            .sort_by_key(|edit| (edit.bytes.start, edit.bytes.end));
        let mut end = None;
        let n = candidate.edits.len();
        candidate.edits.retain(|edit| {
            let is_apart = end.is_none_or(|end| edit.bytes.start >= end);
            if is_apart {
                end = Some(edit.bytes.end);
            }
            is_apart
        });
        if candidate.edits.len() < n {
            candidate.left = Some("two mends are about the same place".to_owned());
        }
    }
    by_file.into_values().collect()
}

/// The parts that tell a finding from others, whatever its place is.
type Key = (String, &'static str, String, String, String);

fn key(found: &Finding) -> Key {
    (
        found.location.file.clone(),
        found.rule.id(),
        found.owner.name().unwrap_or_default().to_owned(),
        found.field_ref.clone().unwrap_or_default(),
        without_numbers(&found.message),
    )
}

/// Reports whether two edits are one.
fn is_same(a: &Edit, b: &Edit) -> bool {
    a.bytes == b.bytes && a.text == b.text && a.source.name == b.source.name
}

struct Fixing<'a> {
    options: &'a Options,
    settings: &'a Settings,
    /// The findings before anything is mended.
    before: &'a [Finding],
    /// How many more checks may be made.
    tries_left: usize,
}

/// The reason for which mends are not good, with the file of the finding that tells.
#[derive(Debug)]
struct Objection {
    file: String,
    reason: String,
}

/// The report with mends, or what is wrong with them.
type Tried = Result<CheckReport, Vec<Objection>>;

impl Fixing<'_> {
    /// The files with those of their mends that are good, and the report with them.
    fn all(
        &mut self,
        mut files: Vec<Candidate>,
    ) -> Result<(Vec<Candidate>, Option<CheckReport>), SchemaError> {
        // Mostly all is well at once; else without the files in which it is not.
        let mut aside: Vec<(usize, Vec<Edit>)> = Vec::new();
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
                    file.left = Some(objection.reason.clone());
                    aside.push((n, std::mem::take(&mut file.edits)));
                    is_less = true;
                }
            }
            if !is_less {
                // Mends of several files that do not go together.
                for file in &mut files {
                    file.edits.clear();
                    file.left = objections.first().map(|objection| objection.reason.clone());
                }
                return Ok((files, None));
            }
        };
        // One mend of a file may be good where another is not.
        for (n, edits) in aside {
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
                        file.left = first.map(|objection| objection.reason);
                    }
                }
            }
        }
        Ok((files, Some(after)))
    }

    /// Checks with the mends of files. They are not good if a finding stays that was to be mended, or if an error or a
    /// warning comes; a note may, since the check sees more of what is mended.
    fn check(&self, files: &[Candidate]) -> Result<Tried, SchemaError> {
        let mut settings = self.settings.clone();
        for file in files {
            let path = Path::new(&file.source.name).canonicalize();
            if let (Some(text), Ok(path)) = (file.text(), path) {
                settings.texts.insert(path, text);
            }
        }
        let mut open: HashMap<Key, usize> = HashMap::new();
        let mut mended: HashSet<Key> = HashSet::new();
        for found in self.before {
            let is_mended = found.fix.as_ref().is_some_and(|fix| {
                let mut edits = files.iter().flat_map(|file| &file.edits);
                edits.any(|edit| is_same(edit, fix))
            });
            if is_mended {
                mended.insert(key(found));
            } else {
                *open.entry(key(found)).or_default() += 1;
            }
        }
        let report = run_with(self.options, &settings, &mut io::empty())?;
        let mut objections = Vec::new();
        for found in &report.findings {
            let key = key(found);
            let reason = match open.get_mut(&key) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    continue;
                }
                _ if mended.contains(&key) => format!("it does not help: {}", found.message),
                _ if found.severity == Severity::Note => continue,
                _ => {
                    let line = found.location.place.map(|place| format!(":{}", place.line));
                    format!(
                        "there would be {}[{}] in {}{}: {}",
                        found.severity.as_str(),
                        found.rule.id(),
                        found.location.file,
                        line.unwrap_or_default(),
                        found.message
                    )
                }
            };
            objections.push(Objection {
                file: found.location.file.clone(),
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

/// Writes a file, unless it is another one than was read.
fn save(candidate: &Candidate) -> Result<(), String> {
    let path = Path::new(&candidate.source.name);
    let now = fs::read_to_string(path).map_err(|error| error.to_string())?;
    if now != with_mark(&candidate.source, candidate.source.text().to_owned()) {
        return Err("it has changed meanwhile".to_owned());
    }
    let text = candidate.text().ok_or("its text is not there any more")?;
    write::atomically(path, &text)
}
