//! Continues the check as if the unambiguous fixes of findings were applied, so that a misspelled name or an unquoted
//! value does not hide other findings. Some findings without a fix have an assumption instead, such as that a match
//! condition with an error is true.
//!
//! Each round applies the fixes and assumptions of all findings to the text of their files, parses the new text, and
//! checks the objects. New errors and warnings are added with their location in the original file. The next round also
//! applies their fixes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::finding::{Finding, Location, Owner, Severity};
use super::fingerprint::without_numbers;
use super::missing_params;
use super::names;
use super::report::CheckReport;
use super::skipped_values;
use crate::cli::input::edit::{Edit, applied, sort_disjoint};
use crate::cli::input::files::ReadFile;
use crate::cli::input::skipped::{ByKind, SkippedKind};
use crate::cli::input::{Input, KindFilter, Object, Place, SourceText};
use crate::cli::live::FileCounts;
use crate::cli::text::is_word;
use crate::policy::RequestPolicy;
use crate::policy::rule::Rule;
use crate::policy::suggestion::Effect;

/// Maximum number of rounds. Each round uncovers findings that the findings of the previous round hide.
const MAX_ROUNDS: usize = 5;

/// Maximum number of applied fixes per file and round.
const MAX_EDITS: usize = 200;

/// Checks the objects of an input. In each list, the objects from files come first. [`FileCounts`] contains their
/// numbers.
type Check<'c> = dyn FnMut(&Input, FileCounts) -> Vec<Finding> + 'c;

/// A file with applied fixes.
struct CorrectedFile {
    /// The original file.
    written: Arc<SourceText>,
    text: String,
    /// The edits of each round. Their byte offsets refer to the text before the round.
    rounds: Vec<Vec<Edit>>,
}

impl CorrectedFile {
    /// Converts a byte offset in the corrected text to one in the original file. An offset within a replacement becomes
    /// an offset within the replaced part.
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
                    at = edit.byte_before(byte - start);
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

    /// Sets the location of a finding to its location in the original file.
    fn restore(&self, location: &mut Location) {
        if let (Some(place), Some(source)) = (location.place, location.source.take()) {
            let byte = source.byte_at(place);
            let place = self.written.place(self.written_byte(byte));
            location.place = Some(place);
            // A correction may be longer than the text that it replaces, so the marked length may exceed the original
            // line.
            let n_columns = self.written.line(place.line).chars().count();
            let n_left = n_columns.saturating_sub(place.column).saturating_add(1);
            location.length = location.length.min(n_left.max(1));
        }
        location.source = Some(Arc::clone(&self.written));
    }
}

/// The identity of a finding. It contains the location only for syntax errors: each round reports only the first syntax
/// error of an expression, so the location distinguishes the errors of several rounds.
type Key = (&'static str, String, String, String, Option<Place>);

fn key(finding: &Finding) -> Key {
    // The key omits the messages of these rules. They depend on the whole policy, so a fix elsewhere changes them.
    let is_of_whole = matches!(
        finding.rule,
        Rule::Lockout
            | Rule::CostNearLimit
            | Rule::CostLimit
            | Rule::NotChecked
            | Rule::ParamKindNotFound
    );
    // The message of this rule contains the error of the request only if the policy's expressions compile.
    let is_of_mutation = finding.rule == Rule::FailingMutation;
    let message = match finding.message.split_once(": ") {
        _ if is_of_whole => String::new(),
        // A corrected policy may fail for another request than the original policy, so the part of the message about
        // the request is omitted.
        Some((problem, _)) if finding.witness.is_some() || is_of_mutation => {
            without_numbers(problem)
        }
        _ => without_numbers(&finding.message),
    };
    (
        finding.rule.id(),
        finding.location.file.clone(),
        finding.field_ref.clone().unwrap_or_default(),
        message,
        finding
            .location
            .place
            .filter(|_| finding.rule == Rule::Syntax),
    )
}

/// Adds the findings that other findings hide. `check` checks the objects of an input.
pub(super) fn add_hidden(report: &mut CheckReport, input: &mut Input, check: &mut Check<'_>) {
    let mut files: BTreeMap<String, CorrectedFile> = BTreeMap::new();
    let mut reported: HashSet<Key> = report.findings.iter().map(key).collect();
    let mut edits = edits_by_file(&report.findings);
    let mut conditions = AssumedConditions::default();
    conditions.add(&report.findings);
    let mut replaced: Vec<ReplacedPart> = replaced_parts(&report.findings, &files).collect();
    let deletions: HashSet<_> = report.findings.iter().filter_map(deletion_place).collect();
    let mut hidden = Vec::new();
    let mut n_written: BTreeMap<String, usize> = BTreeMap::new();
    count_policies(input, &mut n_written);
    // The numbers of policies in each corrected file after its last round.
    let mut n_policies: BTreeMap<String, usize> = BTreeMap::new();
    // The findings about each corrected file after its last round.
    let mut remaining: BTreeMap<String, Remaining> = BTreeMap::new();
    // The findings that have a fix in one of the rounds. If such a finding disappears, its own fix may be the reason,
    // so the finding is not treated as a consequence of another finding.
    let mut fixed: HashSet<Key> = HashSet::new();
    let readable: HashSet<String> = policies(input)
        .filter_map(|policy| policy.name().map(str::to_owned))
        .collect();
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
        skipped_values::remove_invalid_requirements(&mut corrected);
        count_policies(&corrected, &mut n_policies);
        names::copy_other_files(input, &mut corrected);
        let is_corrected = |source: &SourceText| files.contains_key(&source.name);
        let mut findings = with_other_objects(&mut corrected, input, is_corrected, check);
        conditions.add(&findings);
        replaced.extend(replaced_parts(&findings, &files));
        // The next round applies the fixes of all findings, including those that an earlier round has already reported.
        edits = edits_by_file(&findings);
        for finding in &mut findings {
            if let Some(file) = files.get(&finding.location.file) {
                file.restore(&mut finding.location);
            }
        }
        let with_fix = findings
            .iter()
            .filter(|finding| correction(finding).is_some());
        fixed.extend(with_fix.map(key));
        for source in &corrected.files {
            remaining.insert(source.clone(), Remaining::new());
        }
        for finding in &findings {
            if let Some(keys) = remaining.get_mut(&finding.location.file) {
                keys.insert(key(finding), finding.help.clone());
            }
        }
        let new = findings
            .into_iter()
            .filter(|finding| is_shown(finding, &readable) && !conditions.may_exclude(finding))
            .filter(|finding| replaced.iter().all(|part| !part.may_exclude(finding)))
            .filter(|finding| {
                finding.rule != Rule::AbsentObject || !deletions.contains(&place_of(finding))
            })
            .filter(|finding| reported.insert(key(finding)));
        hidden.extend(new.map(|mut finding| {
            finding.is_hidden = true;
            finding.fix = None;
            finding.assumption = None;
            for suggestion in &mut finding.suggestions {
                suggestion.edits.clear();
            }
            finding
        }));
    }
    for (file, n) in n_policies {
        let n_before = n_written.get(&file).copied().unwrap_or_default();
        report.n_corrected_policies += n.saturating_sub(n_before);
    }
    name_assumptions(&mut report.findings, &hidden);
    remove_consequences(&mut report.findings, &mut remaining, |finding| {
        conditions.has_cause_of(finding) || fixed.contains(&key(finding))
    });
    remove_consequences(&mut hidden, &mut remaining, |finding| {
        let has_witness = finding.witness.is_some();
        has_witness || conditions.has_cause_of(finding) || fixed.contains(&key(finding))
    });
    remove_unsafe_renames(&mut report.findings, &hidden);
    report.findings.extend(hidden);
}

/// The findings about a corrected file, each with its help.
type Remaining = HashMap<Key, Option<String>>;

/// Removes the findings that are consequences of others: they disappear when the others are fixed. `remaining` contains
/// the findings about each corrected file after its last round.
fn remove_consequences(
    findings: &mut Vec<Finding>,
    remaining: &mut BTreeMap<String, Remaining>,
    is_of_other_round: impl Fn(&Finding) -> bool,
) {
    let replaced = replaced_code(findings);
    findings.retain(|finding| {
        // Only the newest version is checked again. Findings that occur only in some versions may be missing from that
        // check, so these findings are kept.
        let is_of_some_versions = !finding.versions.is_empty();
        // The finding about a missing `?` is kept even if the fix of another finding adds the `?`, because it also
        // concerns present values.
        let is_of_present = finding.rule == Rule::OrValueWithoutOptional;
        let has_own_cause = correction(finding).is_some() && !is_replaced(finding, &replaced)
            || is_of_some_versions
            || is_of_present
            || is_of_other_round(finding)
            || !is_of_content(finding);
        let keys = remaining.get(&finding.location.file);
        has_own_cause || keys.is_none_or(|keys| keys.contains_key(&key(finding)))
    });
    for finding in findings {
        let keys = remaining.get_mut(&finding.location.file);
        // The fix of a type error replaces the code of this finding. The help must refer to the new code.
        if is_replaced(finding, &replaced)
            && let Some(help) = keys.and_then(|keys| keys.remove(&key(finding)))
        {
            finding.help = help;
            finding.suggestions.clear();
            finding.fix = None;
        }
    }
}

/// Returns the edits that fix type errors.
fn replaced_code(findings: &[Finding]) -> Vec<Edit> {
    let of_types = findings.iter().filter(|finding| {
        let is_type = matches!(
            finding.rule,
            Rule::NoMatchingOverload | Rule::NoFieldSelection | Rule::IncomparableTypes
        );
        is_type && finding.severity != Severity::Note
    });
    of_types.filter_map(|finding| finding.fix.clone()).collect()
}

/// Returns true if the finding is about an absent value in code that the fix of a type error replaces.
fn is_replaced(finding: &Finding, replaced: &[Edit]) -> bool {
    let is_absent = matches!(
        finding.rule,
        Rule::AbsentField | Rule::AbsentKey | Rule::FailingConversion
    );
    let (Some(source), Some(place)) = (&finding.location.source, finding.location.place) else {
        return false;
    };
    let byte = source.byte_at(place);
    let is_of_source = |edit: &&Edit| edit.source.name == source.name;
    let mut replaced = replaced.iter().filter(is_of_source);
    is_absent && replaced.any(|edit| edit.bytes.contains(&byte))
}

/// Removes a fix that replaces an always-null variable if the fixed expression contains a comparison with a constant
/// result. Without the fix, the expression always fails. With the fix, the policy might allow all requests.
fn remove_unsafe_renames(findings: &mut [Finding], hidden: &[Finding]) {
    for finding in findings {
        let is_of_expression = |other: &Finding| {
            other.rule == Rule::IncomparableTypes
                && other.location.file == finding.location.file
                && other.owner == finding.owner
                && other.field_ref == finding.field_ref
        };
        if finding.rule == Rule::NoFieldSelection && hidden.iter().any(is_of_expression) {
            finding.fix = None;
        }
    }
}

fn count_policies(input: &Input, n_policies: &mut BTreeMap<String, usize>) {
    let sources = policies(input).map(|it| &it.source);
    for file in &input.files {
        n_policies.insert(file.clone(), 0);
    }
    for source in sources {
        *n_policies.entry(source.name.clone()).or_default() += 1;
    }
}

/// Returns true if a hidden finding is reported. A finding about a duplicate is not reported, because the correction of
/// a name may have caused the duplicate. A note is reported only in two cases: it contains a request for which an
/// expression fails, or it is about an unknown resource and `readable` does not contain its policy.
fn is_shown(finding: &Finding, readable: &HashSet<String>) -> bool {
    if matches!(finding.rule, Rule::DuplicateKey | Rule::DuplicateValue) {
        return false;
    }
    let is_unread = matches!(&finding.owner, Owner::Policy(name) if !readable.contains(name));
    let is_of_unread = finding.rule == Rule::UnknownResource && is_unread;
    finding.severity != Severity::Note || finding.witness.is_some() || is_of_unread
}

/// Returns the file and the field of a finding.
fn place_of(finding: &Finding) -> (String, Option<String>) {
    (finding.location.file.clone(), finding.field_ref.clone())
}

/// Returns the file and the field of a finding whose assumption replaces `object` with `oldObject`. `None` for other
/// findings. In a creation, `oldObject` is null.
fn deletion_place(finding: &Finding) -> Option<(String, Option<String>)> {
    let is_assumed = finding.rule == Rule::AbsentObject && finding.assumption.is_some();
    is_assumed.then(|| place_of(finding))
}

/// Returns the policies of an input. For a mutating policy, this is the part that it shares with validating policies.
fn policies(input: &Input) -> impl Iterator<Item = &Object<RequestPolicy>> {
    let mutating = input.mutating_policies.iter().map(|it| &it.shared);
    input.policies.iter().chain(mutating)
}

/// Adds the assumed correction to the help of each finding with a fix, if the check found hidden findings in the same
/// file.
fn name_assumptions(findings: &mut [Finding], hidden: &[Finding]) {
    let has_hidden = |file: &str| hidden.iter().any(|finding| finding.location.file == file);
    for finding in findings {
        let Some(fix) = correction(finding).filter(|fix| has_hidden(&fix.source.name)) else {
            continue;
        };
        let as_if = finding.assumption.as_ref().and_then(|it| it.as_if);
        if let Some(as_if) = as_if.filter(|_| finding.fix.is_none()) {
            finding.add_help(&format!("continuing as if {as_if}"));
        } else if (finding.suggestions.is_empty() || is_false_condition(finding))
            && finding.rule != Rule::OldVersion
        {
            // The edit of a quoted value does not contain the quotes, so an empty value is shown with quotes.
            let shown = match fix.shown() {
                shown if shown.is_empty() => "\"\"".into(),
                shown => shown,
            };
            let assumed = if fix.is_removal() {
                "continuing without it".to_owned()
            } else if !fix.is_repair() && !shown.contains('\n') && is_of_whole_words(fix) {
                format!("continuing as if `{shown}`")
            } else {
                "continuing with this correction".to_owned()
            };
            finding.add_help(&assumed);
        }
    }
}

/// Returns true if `edit` begins and ends between words. An edit that covers several changes in an expression may begin
/// within the first changed word.
fn is_of_whole_words(edit: &Edit) -> bool {
    let text = edit.source.text();
    let before = text.get(..edit.bytes.start).unwrap_or_default();
    let after = text.get(edit.bytes.end..).unwrap_or_default();
    let starts_within = before.ends_with(is_word) && edit.text.starts_with(is_word);
    let ends_within = after.starts_with(is_word) && edit.text.ends_with(is_word);
    !starts_within && !ends_within
}

/// Returns true if the check of a single object produces the finding.
fn is_of_content(finding: &Finding) -> bool {
    let is_between_objects = matches!(
        finding.rule,
        Rule::UnknownPolicy
            // Probes are not checked again.
            | Rule::InvalidProbe
            | Rule::UnboundPolicy
            | Rule::IgnoredParams
            | Rule::ParamsNotFound
            | Rule::DuplicateName
            | Rule::StaticManifest
            // These findings remain, because the API server reports them for the original object.
            | Rule::TooLarge
            | Rule::InvalidValue
            | Rule::InvalidName
            // A denial of cluster components is reported even if a fix removes its cause.
            | Rule::Lockout
    );
    finding.field_ref.is_some() && !is_between_objects
}

/// Returns the edit with which the check continues after a finding.
fn correction(finding: &Finding) -> Option<&Edit> {
    let assumption = finding.assumption.as_ref();
    finding.fix.as_ref().or(assumption.map(|it| &it.edit))
}

/// A part of an expression that contains a syntax error, and that the check replaces with a placeholder.
struct ReplacedPart {
    file: String,
    owner: Owner,
    field_ref: Option<String>,
    /// The byte range of the part in the original file.
    bytes: Range<usize>,
    words: HashSet<String>,
    /// True if the part may be a condition for the rest of the expression.
    has_condition: bool,
}

impl ReplacedPart {
    /// Returns true if the finding is about the placeholder, or if the replaced part may exclude the finding's request.
    fn may_exclude(&self, finding: &Finding) -> bool {
        if self.owner != finding.owner || self.file != finding.location.file {
            return false;
        }
        if finding.rule == Rule::Lockout {
            return true;
        }
        let is_own = self.field_ref == finding.field_ref;
        if is_own {
            let location = &finding.location;
            let place = location.source.as_ref().zip(location.place);
            let byte = place.map(|(source, place)| source.byte_at(place));
            if byte.is_none_or(|byte| self.bytes.contains(&byte)) {
                return true;
            }
        }
        let (_, after) = finding.message.split_once('`').unwrap_or_default();
        let path = after.split('`').next().unwrap_or_default();
        let mut fields = path.split(|c| !is_word(c)).filter(|it| it.len() > 1);
        let reads = |field: &str| !ROOTS.contains(&field) && self.words.contains(field);
        let field_ref = finding.field_ref.as_deref().unwrap_or_default();
        let is_affected = is_own || field_ref.starts_with("spec.variables[");
        is_affected && finding.witness.is_some() && (self.has_condition || fields.any(reads))
    }
}

/// Names that most expressions contain. If two expressions share only these names, they do not necessarily read the
/// same field.
const ROOTS: [&str; 5] = ["object", "oldObject", "request", "metadata", "spec"];

/// The match conditions of each owner that are assumed to be true.
#[derive(Default)]
struct AssumedConditions(Vec<AssumedCondition>);

struct AssumedCondition {
    owner: Owner,
    field_ref: Option<String>,
    words: HashSet<String>,
    /// True if the condition contains a macro, which reads list elements through its variable instead of the path of
    /// the list.
    has_macro: bool,
}

impl AssumedConditions {
    fn add(&mut self, findings: &[Finding]) {
        for finding in findings {
            let assumption = finding.assumption.as_ref();
            if let Some(condition) = assumption.and_then(|it| it.condition.as_ref()) {
                self.0.push(AssumedCondition {
                    owner: finding.owner.clone(),
                    field_ref: finding.field_ref.clone(),
                    words: words(condition),
                    has_macro: ["all(", "exists", "filter(", "map("]
                        .iter()
                        .any(|name| condition.contains(name)),
                });
            }
        }
    }

    /// Returns true if the finding is about a condition that is assumed to be true.
    fn has_cause_of(&self, finding: &Finding) -> bool {
        self.0
            .iter()
            .any(|it| it.owner == finding.owner && it.field_ref == finding.field_ref)
    }

    /// Returns true if a condition that is assumed to be true may exclude the finding's request, because the condition
    /// reads the field of the finding, a variable, the operation or the resource.
    fn may_exclude(&self, finding: &Finding) -> bool {
        let mut conditions = self.0.iter().filter(|it| it.owner == finding.owner);
        conditions.any(|condition| {
            let is_of_request = |word: &str| condition.words.contains(word);
            let (_, after) = finding.message.split_once('`').unwrap_or_default();
            let path = after.split('`').next().unwrap_or_default();
            let field = path.rsplit(|c| !is_word(c)).find(|it| !it.is_empty());
            let root = path.split(|c| !is_word(c)).next().unwrap_or_default();
            let is_guarded = field.is_some_and(is_of_request)
                && (condition.has_macro || is_of_request(root))
                || [
                    "variables",
                    "operation",
                    "kind",
                    "resource",
                    "subResource",
                    "dryRun",
                ]
                .into_iter()
                .any(is_of_request);
            finding.rule == Rule::Lockout || finding.witness.is_some() && is_guarded
        })
    }
}

/// Returns the parts of expressions that the assumptions of `findings` replace. `files` are the corrected files before
/// these assumptions are applied.
fn replaced_parts<'f>(
    findings: &'f [Finding],
    files: &'f BTreeMap<String, CorrectedFile>,
) -> impl Iterator<Item = ReplacedPart> {
    findings.iter().filter_map(|finding| {
        let assumption = finding.assumption.as_ref()?;
        let replaced = assumption.replaced.as_ref()?;
        let name = &finding.location.file;
        let file = files.get(name);
        let written_byte = |byte| file.map_or(byte, |file| file.written_byte(byte));
        let bytes = &assumption.edit.bytes;
        // If the whole expression is replaced, its conditions no longer guard the variables that it reads.
        let is_whole = assumption.edit.text.contains("variables.");
        let is_condition = |text: &&str| replaced.contains(*text);
        Some(ReplacedPart {
            file: name.clone(),
            owner: finding.owner.clone(),
            field_ref: finding.field_ref.clone(),
            bytes: written_byte(bytes.start)..written_byte(bytes.end),
            words: words(replaced),
            has_condition: is_whole && CONDITIONS.iter().any(is_condition),
        })
    })
}

/// Operators and functions that occur in conditions. A replaced part with one of them may be a condition.
const CONDITIONS: [&str; 7] = ["&&", "||", "?", "has(", " in ", " and ", " or "];

/// Returns the identifiers, keywords and numbers of an expression, including those in its strings.
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c| !is_word(c));
    words.map(str::to_owned).collect()
}

/// Returns the edits of the fixes by file, sorted and without overlaps. Only errors and warnings hide other findings.
fn edits_by_file(findings: &[Finding]) -> BTreeMap<String, Vec<Edit>> {
    let mut by_file: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    let fixes = findings.iter().filter(|finding| {
        // Fixes for expressions that may fail, and fixes for old API versions, uncover no other findings.
        finding.severity != Severity::Note
            && (finding.suggestions.is_empty() || is_false_condition(finding))
            && finding.rule != Rule::OldVersion
            && !is_short_name(finding)
    });
    let fixes = fixes.filter_map(correction);
    for edit in fixes.filter(|edit| edit.changes_one_value()) {
        let edits = by_file.entry(edit.source.name.clone()).or_default();
        edits.push(edit.clone());
    }
    for edits in by_file.values_mut() {
        sort_disjoint(edits);
        edits.truncate(MAX_EDITS);
    }
    by_file
}

/// Returns true for a finding about a match condition that compares an absent value with null. A condition with `==` is
/// then never true, so it hides the findings about all other expressions.
fn is_false_condition(finding: &Finding) -> bool {
    let field_ref = finding.field_ref.as_deref().unwrap_or_default();
    let mut suggestions = finding.suggestions.iter();
    field_ref.starts_with("spec.matchConditions[")
        && suggestions.any(|it| it.effect.id == Effect::Tested.id())
}

/// Returns true if the fix renames a field or variable to a name of one or two characters. Such a short name is similar
/// to many others.
fn is_short_name(finding: &Finding) -> bool {
    let is_name = matches!(
        finding.rule,
        Rule::UndefinedField | Rule::UndeclaredReference
    );
    is_name && finding.fix.as_ref().is_some_and(|fix| fix.text.len() < 3)
}

/// Copies objects from `all` to `own` if their files are not corrected.
fn add_objects_of_others(
    own: &mut ByKind,
    all: &ByKind,
    is_corrected: impl Fn(&SourceText) -> bool,
) {
    for (kind, of_kind) in all {
        let others = of_kind.objects.iter();
        let others = others.filter(|object| !is_corrected(&object.source));
        let others: Vec<_> = others.cloned().collect();
        if !others.is_empty() {
            let entry = own.entry(kind.clone());
            let own = entry.or_insert_with(|| SkippedKind {
                objects: Vec::new(),
                ..of_kind.clone()
            });
            own.objects.extend(others);
        }
    }
}

/// Calls `check` with three groups of objects: the corrected objects; the bindings and params of all other files; and
/// the policies of other files whose binding is corrected.
fn with_other_objects(
    corrected: &mut Input,
    input: &mut Input,
    is_corrected: impl Fn(&SourceText) -> bool,
    check: &mut Check<'_>,
) -> Vec<Finding> {
    let file_counts = FileCounts::new(corrected);
    move_policies(corrected, input, &is_corrected);
    let mut lists = [
        (&mut corrected.bindings, &mut input.bindings),
        (
            &mut corrected.mutating_bindings,
            &mut input.mutating_bindings,
        ),
    ];
    let is_other = |binding: &mut Object<_>| !is_corrected(&binding.source);
    for (own, all) in &mut lists {
        own.extend(all.extract_if(.., is_other));
    }
    add_objects_of_others(&mut corrected.dropped, &input.dropped, &is_corrected);
    let mut findings = check(corrected, file_counts);
    findings.extend(missing_params::check_in(corrected, &input.dropped));
    let policies = corrected.policies.drain(file_counts.policies..);
    input.policies.extend(policies);
    let mutating = &mut corrected.mutating_policies;
    let mutating = mutating.drain(file_counts.mutating_policies..);
    input.mutating_policies.extend(mutating);
    let bindings = corrected.bindings.drain(file_counts.bindings..);
    input.bindings.extend(bindings);
    let mutating = &mut corrected.mutating_bindings;
    let mutating = mutating.drain(file_counts.mutating_bindings..);
    input.mutating_bindings.extend(mutating);
    findings
}

/// Moves policies of other files to the corrected objects if one of their bindings is corrected.
fn move_policies(
    corrected: &mut Input,
    input: &mut Input,
    is_corrected: impl Fn(&SourceText) -> bool,
) {
    fn names(bindings: &[Object<ValidatingAdmissionPolicyBinding>]) -> HashSet<String> {
        let names = bindings.iter();
        names.map(|it| it.value.spec.policy_name.clone()).collect()
    }
    let is_bound = |names: &HashSet<String>, policy: &Object<RequestPolicy>| {
        let name = policy.value.name.as_ref();
        !is_corrected(&policy.source) && name.is_some_and(|name| names.contains(name))
    };
    let of_bindings = names(&corrected.bindings);
    let policies = &mut input.policies;
    let policies = policies.extract_if(.., |policy| is_bound(&of_bindings, policy));
    corrected.policies.extend(policies);
    let of_bindings = names(&corrected.mutating_bindings);
    let policies = &mut input.mutating_policies;
    let policies = policies.extract_if(.., |policy| is_bound(&of_bindings, &policy.shared));
    corrected.mutating_policies.extend(policies);
}

#[cfg(test)]
mod tests;
