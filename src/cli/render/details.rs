//! Formats one policy in full: its fields, conditions and warnings.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::cells::{Cell, Column, age, ages, condition_cell, line, reasons, state_cell, word};
use super::notes::state_note;
use crate::cli::report::{ConditionReport, PolicyReport, State, StatusSource, WarningReport};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, point, width, wrap};

/// Formats one policy in full.
#[must_use]
pub fn details(policy: &PolicyReport, now: Timestamp, terminal: Terminal) -> String {
    let mut out = String::new();
    let observed = match policy.observed_generation {
        Some(observed) if observed == policy.generation => String::new(),
        Some(observed) => format!(" (the status is for generation {observed})"),
        None => " (no status)".to_owned(),
    };
    let mut state = state_cell(policy).painted(terminal);
    if let Some(ready) = policy.ready() {
        let _ = write!(state, ", {}", word(&ready.reason));
    }
    let param_kind = policy
        .param_kind
        .as_deref()
        .map_or_else(|| "-".to_owned(), clean);
    let checked_by = match policy.checked_by {
        Some(StatusSource::Plugin) => "kubectl vap, with the schemas of the cluster".to_owned(),
        Some(StatusSource::Controller) | None => String::new(),
    };
    let fields = [
        ("Name", clean(&policy.shown_name())),
        ("Ready", state),
        ("Evaluated by", checked_by),
        ("Age", age(policy.created, now)),
        ("Generation", format!("{}{observed}", policy.generation)),
        ("Failure policy", clean(&policy.failure_policy)),
        ("Param kind", param_kind),
    ];
    for (label, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "{:<16}{value}", format!("{label}:"));
    }

    let max = terminal.width.unwrap_or(usize::MAX);
    if let Some(note) = state_note(policy) {
        out.push('\n');
        for text in wrap(&note, max, usize::MAX, "") {
            let _ = writeln!(out, "{text}");
        }
    }
    if !policy.conditions.is_empty() {
        out.push('\n');
        conditions(&mut out, policy, now, terminal);
    }
    if !policy.expression_warnings.is_empty() {
        let _ = write!(
            out,
            "\nExpression warnings ({}):\n",
            policy.expression_warnings.len()
        );
        for warning in &policy.expression_warnings {
            expression_warning(&mut out, warning, max);
        }
    }
    out
}

/// Writes the conditions of one policy, each with its message below.
fn conditions(out: &mut String, policy: &PolicyReport, now: Timestamp, terminal: Terminal) {
    let types: Vec<_> = policy.conditions.iter().map(|it| word(&it.type_)).collect();
    let types_width = types
        .iter()
        .map(|type_| width(type_))
        .max()
        .unwrap_or(0)
        .max(width("CONDITION"));
    let columns = [
        Column::new(
            "STATUS",
            policy.conditions.iter().map(condition_cell).collect(),
        ),
        Column::new("REASON", reasons(policy.conditions.iter().map(Some))),
        Column::new("SINCE", ages(policy.conditions.iter().map(Some), now)),
    ];
    let headings = columns
        .iter()
        .map(|column| (Cell::plain(&column.heading), column.width));
    line(out, "CONDITION", types_width, headings, terminal);
    for (row, (condition, type_)) in policy.conditions.iter().zip(&types).enumerate() {
        let cells = columns.iter().map(|column| {
            (
                column.cells.get(row).cloned().unwrap_or_default(),
                column.width,
            )
        });
        line(out, type_, types_width, cells, terminal);
        let max = terminal.width.unwrap_or(usize::MAX).saturating_sub(2);
        // `Ready` and `Stalled` usually repeat the message of another condition. The message is only shown once.
        let is_summary = |it: &ConditionReport| it.is_ready() || it.is_stalled();
        let is_repeated = is_summary(condition)
            && policy
                .conditions
                .iter()
                .any(|other| !is_summary(other) && other.message == condition.message);
        let mut message = if is_repeated {
            String::new()
        } else {
            clean(&condition.message)
        };
        if condition
            .observed_generation
            .is_some_and(|observed| observed < policy.generation)
            && policy.state != State::Stale
        {
            message.push_str(" (of an earlier generation)");
        }
        for text in wrap(&message, max, usize::MAX, "") {
            let _ = writeln!(out, "  {text}");
        }
    }
}

/// Writes one warning: the field, then the upstream message. A source line and its caret line are truncated together.
fn expression_warning(out: &mut String, warning: &WarningReport, max: usize) {
    let _ = writeln!(out, "  {}", clean(&warning.field_ref));
    let max = max.saturating_sub(4);
    let mut lines = warning.warning.lines().peekable();
    while let Some(text) = lines.next() {
        let source = text.strip_prefix(" | ");
        let column = lines.peek().and_then(|next| caret_column(next));
        if let (Some(source), Some(column)) = (source, column) {
            let (source, caret) = point(source, column, max.saturating_sub(3));
            let _ = write!(out, "     | {source}\n     | {caret}\n");
            lines.next();
        } else if !text.trim().is_empty() {
            for text in wrap(&clean(text), max, usize::MAX, "  ") {
                let _ = writeln!(out, "    {text}");
            }
        }
    }
}

/// Returns the index of the code point to which a line of dots and a caret points. `None` for other lines.
///
/// Source: cel-go `common/error.go`, `ToDisplayString`: full-width forms below wide characters.
fn caret_column(line: &str) -> Option<usize> {
    let dots = line.strip_prefix(" | ")?.strip_suffix(['^', '＾'])?;
    dots.chars()
        .all(|it| matches!(it, '.' | '．'))
        .then(|| dots.chars().count())
}
