//! Continues the check as if the unambiguous fixes of findings were applied, so that a misspelled name or an unquoted
//! value does not hide the findings behind it.
//!
//! Each round applies the fixes of all findings to the text of their files, reads these files again, and checks their
//! objects. Findings that the files as written lack are added with their location in the file as written. The fixes of
//! the added findings are applied in the next round.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::finding::{Finding, Location, Severity};
use super::fingerprint::without_numbers;
use super::report::CheckReport;
use crate::cli::input::edit::{Edit, applied};
use crate::cli::input::files::ReadFile;
use crate::cli::input::{Input, KindFilter, Object, SourceText};
use crate::cli::live::FileCounts;
use crate::policy::rule::Rule;

/// Maximum number of rounds. Each round uncovers what the findings of the previous one hide.
const MAX_ROUNDS: usize = 5;

/// Maximum number of applied fixes per file and round.
const MAX_EDITS: usize = 200;

/// Checks the objects of an input. The first objects of each list are from files.
type Check<'c> = dyn FnMut(&Input, FileCounts) -> Vec<Finding> + 'c;

/// A file with applied fixes.
struct CorrectedFile {
    /// The file as written.
    written: Arc<SourceText>,
    text: String,
    /// The edits of each round, in the coordinates of the text before the round.
    rounds: Vec<Vec<Edit>>,
}

impl CorrectedFile {
    /// Converts a byte offset of the corrected text to one of the file as written. An offset in a replacement becomes the
    /// start of the replaced part.
    fn written_byte(&self, byte: usize) -> usize {
        let mut byte = byte;
        for edits in self.rounds.iter().rev() {
            let (mut at, mut shift) = (byte, 0_isize);
            for edit in edits {
                let start = edit.bytes.start.saturating_add_signed(shift);
                if byte < start {
                    break;
                }
                if byte < start + edit.text.len() {
                    // A part of the replacement may equal the replaced part.
                    let within = (byte - start).min(edit.bytes.len().saturating_sub(1));
                    at = edit.bytes.start + within;
                    break;
                }
                let length = |n: usize| isize::try_from(n).unwrap_or_default();
                shift += length(edit.text.len()) - length(edit.bytes.len());
                at = byte.saturating_add_signed(-shift);
            }
            byte = at;
        }
        byte
    }

    /// Sets the location of a finding to its location in the file as written.
    fn restore(&self, location: &mut Location) {
        if let (Some(place), Some(source)) = (location.place, location.source.take()) {
            let byte = source.byte_at(place);
            location.place = Some(self.written.place(self.written_byte(byte)));
        }
        location.source = Some(Arc::clone(&self.written));
    }
}

/// The identity of a finding, independent of its location.
type Key = (&'static str, String, String, String);

fn key(finding: &Finding) -> Key {
    // The messages of these rules contain results of the whole policy.
    let is_of_whole = matches!(
        finding.rule,
        Rule::Lockout | Rule::CostNearLimit | Rule::CostLimit | Rule::NotChecked
    );
    let message = if is_of_whole {
        String::new()
    } else {
        without_numbers(&finding.message)
    };
    (
        finding.rule.id(),
        finding.location.file.clone(),
        finding.field_ref.clone().unwrap_or_default(),
        message,
    )
}

/// Adds the findings that other findings hide. `check` checks the objects of an input.
pub(super) fn add_hidden(report: &mut CheckReport, input: &mut Input, check: &mut Check<'_>) {
    let mut files: BTreeMap<String, CorrectedFile> = BTreeMap::new();
    let mut reported: HashSet<Key> = report.findings.iter().map(key).collect();
    let mut edits = edits_by_file(&report.findings);
    let mut hidden = Vec::new();
    // The findings about each corrected file after its last round.
    let mut remaining: BTreeMap<String, HashSet<Key>> = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let mut corrected = Input::default();
        for (name, edits) in std::mem::take(&mut edits) {
            let Some(source) = edits.first().map(|edit| Arc::clone(&edit.source)) else {
                continue;
            };
            let file = files.entry(name.clone()).or_insert_with(|| CorrectedFile {
                text: source.text().to_owned(),
                written: source,
                rounds: Vec::new(),
            });
            let Some(text) = applied(&file.text, &edits) else {
                continue;
            };
            file.text.clone_from(&text);
            file.rounds.push(edits);
            let file = ReadFile {
                name,
                is_given: false,
                text: Ok(text),
            };
            corrected.add_live(file, KindFilter::Policies);
        }
        if corrected.n_objects == 0 {
            break;
        }
        let is_corrected = |source: &SourceText| files.contains_key(&source.name);
        let findings = with_other_bindings(&mut corrected, input, is_corrected, check);
        for source in &corrected.files {
            remaining.insert(source.clone(), HashSet::new());
        }
        for finding in &findings {
            if let Some(keys) = remaining.get_mut(&finding.location.file) {
                keys.insert(key(finding));
            }
        }
        let new = findings
            .into_iter()
            .filter(|finding| reported.insert(key(finding)));
        let new: Vec<Finding> = new.collect();
        edits = edits_by_file(&new);
        hidden.extend(new.into_iter().map(|mut finding| {
            if let Some(file) = files.get(&finding.location.file) {
                file.restore(&mut finding.location);
            }
            finding.is_hidden = true;
            finding.fix = None;
            for suggestion in &mut finding.suggestions {
                suggestion.edits.clear();
            }
            finding
        }));
    }
    let has_hidden = |file: &str| {
        hidden
            .iter()
            .any(|finding: &Finding| finding.location.file == file)
    };
    for finding in &mut report.findings {
        let Some(fix) = finding
            .fix
            .as_ref()
            .filter(|fix| has_hidden(&fix.source.name))
        else {
            continue;
        };
        if finding.suggestions.is_empty() && finding.rule != Rule::OldVersion {
            let assumed = format!("continuing as if `{}`", fix.text);
            finding.help = Some(match finding.help.take() {
                Some(help) => format!("{help}; {assumed}"),
                None => assumed,
            });
        }
    }
    // A finding that the fixes of other findings remove is a consequence of them.
    report.findings.retain(|finding| {
        // Only the newest version is checked again.
        let is_of_some_versions = !finding.versions.is_empty();
        // The fix of an absent value adds the `?`, but this finding also concerns present values.
        let is_of_present = finding.rule == Rule::OrValueWithoutOptional;
        let has_own_cause = finding.fix.is_some()
            || is_of_some_versions
            || is_of_present
            || !is_of_content(finding);
        let keys = remaining.get(&finding.location.file);
        has_own_cause || keys.is_none_or(|keys| keys.contains(&key(finding)))
    });
    report.findings.extend(hidden);
}

/// Returns true if the check of a single object produces the finding.
fn is_of_content(finding: &Finding) -> bool {
    let is_between_objects = matches!(
        finding.rule,
        Rule::UnknownPolicy | Rule::UnboundPolicy | Rule::IgnoredParams | Rule::DuplicateName
    );
    finding.field_ref.is_some() && !is_between_objects
}

/// Returns the disjoint edits of the fixes, by file and sorted. Only errors and warnings hide other findings.
fn edits_by_file(findings: &[Finding]) -> BTreeMap<String, Vec<Edit>> {
    let mut by_file: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    let fixes = findings.iter().filter(|finding| {
        // The fixes of failing expressions and of versions hide nothing.
        finding.severity != Severity::Note
            && finding.suggestions.is_empty()
            && finding.rule != Rule::OldVersion
            && !is_short_name(finding)
    });
    for edit in fixes.filter_map(|finding| finding.fix.as_ref()) {
        let edits = by_file.entry(edit.source.name.clone()).or_default();
        edits.push(edit.clone());
    }
    for edits in by_file.values_mut() {
        edits.sort_by_key(|edit| (edit.bytes.start, edit.bytes.end));
        let mut end = None;
        edits.retain(|edit| {
            let is_disjoint = end.is_none_or(|end| edit.bytes.start >= end);
            if is_disjoint {
                end = Some(edit.bytes.end);
            }
            is_disjoint
        });
        edits.truncate(MAX_EDITS);
    }
    by_file
}

/// Returns true for the fix of a variable's name that is too short to be a likely misspelling.
fn is_short_name(finding: &Finding) -> bool {
    let is_name = matches!(
        finding.rule,
        Rule::UndefinedField | Rule::UndeclaredReference
    );
    is_name && finding.fix.as_ref().is_some_and(|fix| fix.text.len() < 3)
}

/// Calls `check` with the corrected objects and the bindings of all other files.
fn with_other_bindings(
    corrected: &mut Input,
    input: &mut Input,
    is_corrected: impl Fn(&SourceText) -> bool,
    check: &mut Check<'_>,
) -> Vec<Finding> {
    let file_counts = FileCounts::new(corrected);
    let mut lists = [
        (&mut corrected.bindings, &mut input.bindings),
        (
            &mut corrected.mutating_bindings,
            &mut input.mutating_bindings,
        ),
    ];
    let n_own = lists.each_ref().map(|(own, _)| own.len());
    let is_other = |binding: &mut Object<_>| !is_corrected(&binding.source);
    for (own, all) in &mut lists {
        own.extend(all.extract_if(.., is_other));
    }
    let findings = check(corrected, file_counts);
    let mut lists = [
        (&mut corrected.bindings, &mut input.bindings),
        (
            &mut corrected.mutating_bindings,
            &mut input.mutating_bindings,
        ),
    ];
    for ((own, all), n) in lists.iter_mut().zip(n_own) {
        all.extend(own.drain(n..));
    }
    findings
}
