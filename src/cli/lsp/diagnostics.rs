//! Converts the findings of `check` to diagnostics.

use std::fmt::Write as _;
use std::ops::Range as Bytes;

use gen_lsp_types::{
    Code, CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity,
    DiagnosticTag, Location, Message, Uri,
};
use serde_json::json;

use super::positions::{self, Encoding};
use super::workspace::{File, Workspace};
use crate::cli::check::Cancellation;
use crate::cli::check::annotations::help_uri;
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::check::report::CheckReport;
use crate::cli::input::{Place, SourceText};
use crate::policy::rule::Rule;

/// The name of the tool that clients show next to a diagnostic.
const SOURCE: &str = "kubectl vap";

/// Maximum number of related places of a diagnostic.
const MAX_RELATED: usize = 10;

/// Maximum number of diagnostics of a file.
const MAX_DIAGNOSTICS: usize = 1_000;

/// Checks a file of a workspace. `None` if the built-in schemas cannot be read.
pub(super) fn check(
    workspace: &Workspace,
    file: &File,
    cancellation: Cancellation,
) -> Option<CheckReport> {
    if workspace.is_excluded(&file.path) {
        return None;
    }
    workspace.check(file, cancellation)
}

/// Returns the diagnostics of a file: one for each place of each finding.
pub(super) fn diagnostics(
    report: &CheckReport,
    file: &File,
    encoding: Encoding,
) -> Vec<Diagnostic> {
    let of_file = report
        .findings
        .iter()
        .filter(|finding| is_shown(finding, file));
    of_file
        .flat_map(|finding| finding_diagnostics(finding, file, encoding))
        .take(MAX_DIAGNOSTICS)
        .collect()
}

/// Returns true if a finding is reported as a diagnostic of the file. Files of a workspace may be unrelated to
/// policies, so notes about skipped objects and invalid YAML are not reported.
pub(super) fn is_shown(finding: &Finding, file: &File) -> bool {
    let is_unrelated = finding.rule == Rule::SkippedObject
        || finding.rule == Rule::InvalidYaml && finding.severity == Severity::Note;
    finding.location.file == file.source.name && !is_unrelated
}

/// Returns the bytes of each place of a finding.
pub(super) fn places(finding: &Finding, source: &SourceText) -> Vec<Bytes<usize>> {
    let first = finding.location.place.unwrap_or(Place::START);
    let others = finding.also.iter().map(|other| Place {
        line: other.line,
        column: other.column,
    });
    let bytes = |place: Place| {
        let end = Place {
            column: place.column.saturating_add(finding.location.length),
            ..place
        };
        let start = source.byte_at(place);
        let line = source.line(place.line);
        let line_start = source.byte_at(Place { column: 1, ..place });
        start..source.byte_at(end).min(line_start + line.len()).max(start)
    };
    std::iter::once(first).chain(others).map(bytes).collect()
}

fn finding_diagnostics(finding: &Finding, file: &File, encoding: Encoding) -> Vec<Diagnostic> {
    let ranges: Vec<_> = places(finding, &file.source)
        .iter()
        .map(|bytes| positions::range(&file.source, bytes, encoding))
        .collect();
    let severity = match finding.severity {
        Severity::Error => DiagnosticSeverity::Error,
        Severity::Warning => DiagnosticSeverity::Warning,
        Severity::Note => DiagnosticSeverity::Information,
    };
    let diagnostic = |(n, range): (usize, &gen_lsp_types::Range)| {
        let others = ranges.iter().enumerate().filter(|(other, _)| *other != n);
        let related: Vec<_> = others
            .take(MAX_RELATED)
            .map(|(_, range)| DiagnosticRelatedInformation {
                location: Location {
                    uri: file.uri.clone(),
                    range: *range,
                },
                message: "the same finding".to_owned(),
            })
            .collect();
        Diagnostic {
            range: *range,
            severity: Some(severity),
            code: Some(Code::String(finding.rule.id().to_owned())),
            code_description: Some(CodeDescription {
                href: Uri(help_uri(finding.rule)),
            }),
            source: Some(SOURCE.to_owned()),
            message: Message::String(message(finding, n)),
            tags: tags(finding.rule),
            related_information: (!related.is_empty()).then_some(related),
            data: Some(json!({"fingerprint": finding.fingerprint})),
        }
    };
    ranges.iter().enumerate().map(diagnostic).collect()
}

fn tags(rule: Rule) -> Option<Vec<DiagnosticTag>> {
    match rule {
        Rule::UnusedVariable => Some(vec![DiagnosticTag::Unnecessary]),
        Rule::OldVersion => Some(vec![DiagnosticTag::Deprecated]),
        _ => None,
    }
}

/// Returns the message with the kinds. The help for the place with the index `n` follows on its own line.
fn message(finding: &Finding, n: usize) -> String {
    let mut text = finding.message.clone();
    if !finding.kinds.is_empty() {
        let _ = write!(text, " on {}", finding.kinds.join(", "));
    }
    let other = n.checked_sub(1).and_then(|n| finding.also.get(n));
    let help = other.and_then(|other| other.help.as_ref());
    if let Some(help) = help.or(finding.help.as_ref()) {
        let _ = write!(text, "\n{help}");
    }
    text
}
