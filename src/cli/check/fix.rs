//! Applies the fixes of findings, and checks the result.
//!
//! Fixes are applied in rounds until no finding has a fix, because a fix may uncover other findings. After each round,
//! the new content of the files is checked. A fix is dropped if the check still reports its finding, or if the fix
//! makes a valid expression invalid. The files are written after the last round.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::finding::{Finding, rule_schema};
use super::fingerprint::without_numbers;
use super::report::CheckReport;
use super::settings::Settings;
use super::{Options, run_with};
use crate::cli::input::edit::{Edit, applied, sort_disjoint};
use crate::cli::input::{Place, SourceText};
use crate::cli::unified;
use crate::cli::write;
use crate::policy::rule::Rule;
use crate::schema::SchemaError;

/// Maximum number of fixes per file and run.
const MAX_EDITS: usize = 200;

/// Maximum number of rounds. Each round applies the fixes of the findings that remain after the previous one.
const MAX_ROUNDS: usize = 10;

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
    /// These fixes, in the order of rounds and locations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<AppliedFix>,
    /// The reason why other fixes were not applied; absent if all were applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_fixed: Option<String>,
    /// The fixes as a unified diff; only with `--diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// A fix that was applied or, with `--diff`, that would be applied.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedFix {
    /// The id of the fixed finding's rule.
    #[schemars(schema_with = "rule_schema")]
    pub rule: Rule,
    /// The line of the fix in the file, with the fixes of earlier rounds.
    pub line: usize,
    /// The column, in code points from 1.
    pub column: usize,
    /// The words that the fix changes.
    pub before: String,
    /// The words after the fix.
    pub after: String,
    /// The number of the round, from 1. The fixes of round 1 are those of the report without `--fix`. The fixes of later
    /// rounds are of findings that earlier fixes uncovered.
    pub round: usize,
}

impl AppliedFix {
    /// Describes an edit. `findings` are the findings of the round.
    fn new(edit: &Edit, findings: &[Finding], round: usize) -> Self {
        let text = edit.source.text();
        let (words, place) = (
            words(text, &edit.bytes),
            edit.source.place(edit.bytes.start),
        );
        let part = |bytes: Range<usize>| text.get(bytes).unwrap_or_default();
        let is_of_edit = |finding: &&Finding| finding.fixes().any(|fix| is_same(fix, edit));
        let finding = findings.iter().find(is_of_edit);
        let before = part(words.start..edit.bytes.start);
        let after = part(edit.bytes.end..words.end);
        Self {
            rule: finding.map_or(Rule::Syntax, |finding| finding.rule),
            line: place.line,
            column: place.column,
            before: part(words).to_owned(),
            after: format!("{before}{}{after}", edit.text),
            round,
        }
    }
}

/// Extends the range of an edit to whole names and selections, or to the quotes of an empty string.
fn words(text: &str, bytes: &Range<usize>) -> Range<usize> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '?' | '-' | '/');
    let before = text.get(..bytes.start).unwrap_or_default();
    let after = text.get(bytes.end..).unwrap_or_default();
    let start = before.trim_end_matches(is_of_word).len();
    let end = text.len() - after.trim_start_matches(is_of_word).len();
    let quote = before
        .chars()
        .next_back()
        .filter(|c| matches!(c, '"' | '\''));
    match quote {
        Some(quote) if start == bytes.start && after.starts_with(quote) => start - 1..end + 1,
        _ => start..end,
    }
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

/// A file with the fixes of all rounds.
struct FixedFile {
    /// The original file.
    written: Arc<SourceText>,
    /// The new content. `None` if nothing changed.
    text: Option<String>,
    applied: Vec<AppliedFix>,
    not_fixed: Option<String>,
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
    original: &Settings,
    report: CheckReport,
    is_dry: bool,
) -> Result<CheckReport, SchemaError> {
    let mut settings = original.clone();
    let mut files: BTreeMap<PathBuf, FixedFile> = BTreeMap::new();
    let mut tries_left = MAX_TRIES;
    let mut current = None;
    for round in 1..=MAX_ROUNDS {
        let before = current.as_ref().unwrap_or(&report);
        let mut fixer = Fixer {
            options,
            settings: &settings,
            before: &before.findings,
            tries_left,
        };
        let (candidates, after) = fixer.all(candidates(before))?;
        tries_left = fixer.tries_left;
        let mut n_fixed = 0;
        for (path, candidate) in candidates {
            let file = files.entry(path.clone()).or_insert_with(|| FixedFile {
                written: Arc::clone(&candidate.source),
                text: None,
                applied: Vec::new(),
                not_fixed: None,
            });
            file.not_fixed.clone_from(&candidate.not_fixed);
            let text = candidate.text().filter(|_| !candidate.edits.is_empty());
            if let Some(text) = text {
                n_fixed += candidate.edits.len();
                let edits = candidate.edits.iter();
                file.applied
                    .extend(edits.map(|edit| AppliedFix::new(edit, &before.findings, round)));
                file.text = Some(text.clone());
                settings.replaced_contents.insert(path, text);
            }
        }
        match after {
            Some(after) if n_fixed > 0 => current = Some(after),
            _ => break,
        }
    }
    let (mut is_written, mut has_failed) = (false, false);
    let mut fixes = Vec::new();
    for mut file in files.into_values() {
        let name = file.written.name.clone();
        if !is_dry
            && let Some(text) = &file.text
            && let Err(reason) = save(&file.written, text)
        {
            file.text = None;
            file.applied.clear();
            file.not_fixed = Some(format!("cannot write the file: {reason}"));
            has_failed = true;
        }
        is_written |= !is_dry && file.text.is_some();
        let text = file.text.as_deref().filter(|_| is_dry);
        let diff = text.map(|text| {
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            unified::from_texts((&name, &name), file.written.text(), text)
        });
        fixes.push(FixReport {
            fixed: file.applied.len(),
            applied: file.applied,
            not_fixed: file.not_fixed,
            diff,
            file: name,
        });
    }
    let mut report = match current {
        Some(after) if is_written && !has_failed => after,
        // If a file could not be written, `after` does not describe the files on disk. They are checked again.
        _ if is_written => run_with(options, original, &mut io::empty())?,
        _ => report,
    };
    report.fixes = fixes;
    Ok(report)
}

/// The files with fixes, by canonical path.
type Candidates = Vec<(PathBuf, Candidate)>;

/// Returns, for each file, the fixes that change only one value and do not overlap.
fn candidates(report: &CheckReport) -> Candidates {
    let mut by_file: BTreeMap<PathBuf, Candidate> = BTreeMap::new();
    for edit in report.findings.iter().flat_map(Finding::fixes) {
        let path = Path::new(&edit.source.name);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let candidate = by_file.entry(path).or_insert_with(|| Candidate {
            source: Arc::clone(&edit.source),
            edits: Vec::new(),
            not_fixed: None,
        });
        // The same file may be passed twice. Only the edits under its first name are kept.
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
        let n = candidate.edits.len();
        sort_disjoint(&mut candidate.edits);
        if candidate.edits.len() < n {
            candidate.not_fixed = Some("two fixes overlap".to_owned());
        }
    }
    by_file.into_iter().collect()
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

/// A reason not to apply fixes: a finding in `file` that remains despite its fix, or a new finding.
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
    /// The report is `None` if the fixes of several files conflict, so no fixes remain.
    fn all(
        &mut self,
        mut files: Candidates,
    ) -> Result<(Candidates, Option<CheckReport>), SchemaError> {
        if files.is_empty() {
            return Ok((files, None));
        }
        // Usually all fixes succeed together. If not, sets aside the fixes of each file with an objection.
        let mut set_aside: Vec<(usize, Vec<Edit>)> = Vec::new();
        let mut after = loop {
            let objections = match self.check(&files)? {
                Ok(after) => break after,
                Err(objections) => objections,
            };
            let mut is_less = false;
            for (n, (_, file)) in files.iter_mut().enumerate() {
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
                // No file with an objection has fixes left, so fixes in other files cause the objections. No fix is
                // applied.
                for (_, file) in &mut files {
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
                if let Some((_, file)) = files.get_mut(n) {
                    file.edits.push(edit);
                }
                let tried = self.check(&files)?;
                let Some((_, file)) = files.get_mut(n) else {
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

    /// Checks the files with their fixes. Returns an objection for each finding that remains despite its fix, and for
    /// each valid expression that a fix makes invalid.
    ///
    /// Other new findings are accepted, because the check may cover more of an object after it is fixed.
    fn check(&self, files: &[(PathBuf, Candidate)]) -> Result<Attempt, SchemaError> {
        let mut settings = self.settings.clone();
        for (path, file) in files {
            if let Some(text) = file.text() {
                settings.replaced_contents.insert(path.clone(), text);
            }
        }
        let edits = || files.iter().flat_map(|(_, file)| &file.edits);
        let mut open: HashMap<Key, usize> = HashMap::new();
        let mut fixed: HashSet<Key> = HashSet::new();
        // The fields of valid expressions that a fix changes.
        let mut changed_fields: HashSet<(&str, &str)> = HashSet::new();
        // The position at which the correction of each syntax error ends, by file and field.
        let mut syntax_ends: HashMap<(&str, &str), Place> = HashMap::new();
        for finding in self.before {
            let is_fixed = finding
                .fix
                .as_ref()
                .is_some_and(|fix| edits().any(|edit| is_same(edit, fix)));
            if is_fixed {
                fixed.insert(key(finding));
                if let (Rule::Syntax, Some(fix), Some(field_ref)) =
                    (finding.rule, &finding.fix, &finding.field_ref)
                {
                    let mut end = fix.source.place(fix.bytes.start);
                    end.column += fix.text.chars().count();
                    syntax_ends.insert((&finding.location.file, field_ref), end);
                }
                if let Some(field_ref) = finding.field_ref.as_deref().filter(|_| !finding.rejected)
                {
                    changed_fields.insert((&finding.location.file, field_ref));
                }
            } else if !(finding.is_hidden && is_duplicate(finding)) {
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
                _ if fixed.contains(&key) || is_before(finding, &syntax_ends) => {
                    format!("the finding remains after the fix: {}", finding.message)
                }
                // A fix may uncover hidden findings, but must not make a valid expression invalid.
                _ if !finding.rejected
                    || !is_duplicate(finding)
                        && !changed_fields.contains(&(
                            &*finding.location.file,
                            finding.field_ref.as_deref().unwrap_or_default(),
                        )) =>
                {
                    continue;
                }
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

/// Returns true for a syntax error before the end of the correction in the same expression. Such an error means that
/// the correction has no effect.
fn is_before(finding: &Finding, ends: &HashMap<(&str, &str), Place>) -> bool {
    let field_ref = finding.field_ref.as_deref().unwrap_or_default();
    let end = ends.get(&(&*finding.location.file, field_ref));
    let is_before = |(end, place): (&Place, Place)| {
        place.line < end.line || place.line == end.line && place.column < end.column
    };
    finding.rule == Rule::Syntax && end.zip(finding.location.place).is_some_and(is_before)
}

/// Returns true if the finding is about a repeated key or value. A fix that renames a key or value can cause such a
/// finding.
fn is_duplicate(finding: &Finding) -> bool {
    matches!(finding.rule, Rule::DuplicateKey | Rule::DuplicateValue)
}

/// Writes the fixed content of a file, unless the file has changed since it was read.
fn save(written: &SourceText, text: &str) -> Result<(), String> {
    let path = Path::new(&written.name);
    let now = fs::read_to_string(path).map_err(|error| error.to_string())?;
    if now != with_mark(written, written.text().to_owned()) {
        return Err("the file has changed since it was read".to_owned());
    }
    write::atomically(path, text)
}
