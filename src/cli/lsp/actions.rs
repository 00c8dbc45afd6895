//! Code actions: the fixes and suggestions of findings, comments that allow a finding, and all fixes of a file.

use std::collections::HashMap;
use std::sync::Arc;

use gen_lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, Diagnostic, Range, TextEdit, WorkspaceEdit,
};

use super::context::Context;
use super::cursor;
use super::diagnostics;
use super::positions;
use super::workspace::File;
use crate::cli::check::changes::SuggestionReport;
use crate::cli::check::finding::Finding;
use crate::cli::check::levels::is_unsuppressible;
use crate::cli::check::report::CheckReport;
use crate::cli::input::edit::{Edit, sort_disjoint};
use crate::cli::input::{Place, SourceText, comments};
use crate::cli::text::cut;

/// Maximum width of code in a title, in columns.
const MAX_TITLE: usize = 100;

/// The reason in a new comment, which the author replaces.
const REASON: &str = "reason";

/// Returns the actions for the findings in a range of a document.
pub(super) fn actions(context: &Context<'_>, params: &CodeActionParams) -> Vec<CodeAction> {
    let Some(file) = context.file(&params.text_document.uri) else {
        return Vec::new();
    };
    let Some(report) = context.report(file) else {
        return Vec::new();
    };
    let only = params.context.only.as_deref();
    let is_wanted = |kind: &CodeActionKind| {
        let name = kind_name(kind);
        only.is_none_or(|only| {
            only.iter().any(|wanted| {
                let wanted = kind_name(wanted);
                let rest = name.strip_prefix(&wanted);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        })
    };
    let mut actions = Vec::new();
    if is_wanted(&CodeActionKind::QuickFix) {
        let of_file = report.findings.iter();
        for finding in of_file.filter(|finding| diagnostics::is_shown(finding, file)) {
            finding_actions(context, file, params, finding, &mut actions);
        }
    }
    // Clients apply actions of this kind only on request.
    if only.is_some() && is_wanted(&CodeActionKind::SourceFixAll) {
        actions.extend(fix_all(context, file, &report));
    }
    actions
}

fn kind_name(kind: &CodeActionKind) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// Adds the actions for each place of a finding within the range.
fn finding_actions(
    context: &Context<'_>,
    file: &Arc<File>,
    params: &CodeActionParams,
    finding: &Finding,
    actions: &mut Vec<CodeAction>,
) {
    let places = diagnostics::places(finding, &file.source);
    for (n, bytes) in places.iter().enumerate() {
        let range = positions::range(&file.source, bytes, context.encoding);
        if range.end < params.range.start || params.range.end < range.start {
            continue;
        }
        let other = n.checked_sub(1).map(|n| finding.also.get(n));
        let (fix, suggestions) = match other {
            None => (finding.fix.as_ref(), &finding.suggestions),
            Some(Some(other)) => (other.fix.as_ref(), &other.suggestions),
            Some(None) => continue,
        };
        let of_place = |diagnostic: &&Diagnostic| {
            let code = serde_json::to_value(&diagnostic.code).unwrap_or_default();
            diagnostic.range == range && code == finding.rule.id()
        };
        let diagnostics = params.context.diagnostics.iter().find(of_place).cloned();
        let action = |title: String, edits: Vec<TextEdit>, is_preferred: bool| CodeAction {
            title,
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: diagnostics.clone().map(|diagnostic| vec![diagnostic]),
            is_preferred: Some(is_preferred),
            edit: Some(workspace_edit(file, edits)),
            ..CodeAction::default()
        };
        let edits = |edits: &[Edit]| text_edits(context, file, edits);
        if let Some(fix) = fix.filter(|_| suggestions.is_empty()) {
            actions.push(action(title(fix), edits(std::slice::from_ref(fix)), true));
        }
        for suggestion in suggestions.iter().filter(|it| !it.edits.is_empty()) {
            let is_preferred = suggestion.default.is_some();
            let title = suggestion_title(suggestion);
            actions.push(action(title, edits(&suggestion.edits), is_preferred));
        }
        if !is_unsuppressible(finding)
            && let Some((at, comment)) = allow_comment(file, finding, bytes.start)
        {
            let at = positions::position(&file.source, at, context.encoding);
            let edit = TextEdit {
                range: Range { start: at, end: at },
                new_text: comment,
            };
            let title = format!("allow `{}` here with a comment", finding.rule.id());
            actions.push(action(title, vec![edit], false));
        }
    }
}

fn title(fix: &Edit) -> String {
    let old = fix.source.text().get(fix.bytes.clone()).unwrap_or_default();
    let (old, new) = (cut(old, MAX_TITLE), cut(&fix.shown(), MAX_TITLE));
    match (old.is_empty(), new.is_empty()) {
        (false, true) => format!("remove `{old}`"),
        (true, false) => format!("insert `{new}`"),
        _ => format!("replace `{old}` with `{new}`"),
    }
}

fn suggestion_title(suggestion: &SuggestionReport) -> String {
    let text = cut(&suggestion.text, MAX_TITLE);
    format!("`{text}`: {}", suggestion.effect.message)
}

fn text_edits(context: &Context<'_>, file: &File, edits: &[Edit]) -> Vec<TextEdit> {
    let edits = edits.iter().map(|edit| TextEdit {
        range: positions::range(&file.source, &edit.bytes, context.encoding),
        new_text: edit.text.clone(),
    });
    edits.collect()
}

pub(super) fn workspace_edit(file: &File, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit {
        changes: Some(HashMap::from([(file.uri.clone(), edits)])),
        ..WorkspaceEdit::default()
    }
}

/// Returns the action that applies all fixes.
fn fix_all(context: &Context<'_>, file: &Arc<File>, report: &CheckReport) -> Option<CodeAction> {
    let of_file = report.findings.iter();
    let of_file = of_file.filter(|finding| diagnostics::is_shown(finding, file));
    let mut edits: Vec<Edit> = of_file.flat_map(Finding::fixes).cloned().collect();
    edits.retain(Edit::changes_one_value);
    sort_disjoint(&mut edits);
    (!edits.is_empty()).then(|| CodeAction {
        title: "apply all fixes of kubectl vap check".to_owned(),
        kind: Some(CodeActionKind::SourceFixAll),
        edit: Some(workspace_edit(file, text_edits(context, file, &edits))),
        ..CodeAction::default()
    })
}

/// Returns a comment that allows the finding at the byte `at`, and the byte offset at which to insert it. The
/// comment is inserted above the innermost field or item for which it suppresses the finding.
fn allow_comment(file: &Arc<File>, finding: &Finding, at: usize) -> Option<(usize, String)> {
    let source = &file.source;
    let item = cursor::item_at(file, at)?;
    let field = cursor::field_at(source, &item, at);
    let line = source.place(at).line;
    // The lines of the fields that contain the finding, the innermost first.
    let mut lines = vec![line];
    let mut steps = field.steps;
    while steps.pop().is_some() {
        let node = item.document.node.nearest(&cursor::field_ref(&steps));
        lines.push(item.document.place(source, node).line);
    }
    lines.dedup();
    let mut comments = lines.into_iter().map(|above| {
        let text = source.line(above);
        let indent: String = text.chars().take_while(|c| *c == ' ').collect();
        let start = source.byte_at(Place {
            line: above,
            column: 1,
        });
        let ending = if source.text().contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let comment = format!(
            "{indent}# vap: allow {}, {REASON}{ending}",
            finding.rule.id()
        );
        (start, comment)
    });
    comments.find(|(start, comment)| applies(source, *start, comment, line))
}

/// Returns true if a comment that is inserted at the byte `start` applies to the line `line` of the original source.
fn applies(source: &SourceText, start: usize, comment: &str, line: usize) -> bool {
    let Some((before, after)) = source.text().split_at_checked(start) else {
        return false;
    };
    let text = format!("{before}{comment}{after}");
    let commented = Arc::new(SourceText::new(source.name.clone(), text));
    let own_line = source.place(start).line;
    let mut all = comments::comments(&commented).into_iter();
    all.any(|found| found.place.line == own_line && found.lines.contains(&(line + 1)))
}
