//! Formats status reports as text: the table of all policies, and one policy in full.
//!
//! Untrusted content (names, reasons, messages, warnings) is sanitized and shortened to fit.

mod cells;
mod columns;
mod costs;
mod details;
mod notes;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;

use self::cells::{Cell, GAP, line};
use self::columns::columns;
use self::notes::{count, notes};
use super::report::{PolicyReport, StatusReport, StatusSource, Summary};
use super::terminal::Terminal;
use super::text::{clean, width, wrap};

pub use self::costs::costs;
pub use self::details::details;

/// Maximum number of lines per condition in the table. `status NAME` shows the whole message.
const MAX_MESSAGE_LINES: usize = 3;
/// Minimum width of a name that is moved to its own line.
const MIN_NAME: usize = 16;

/// Formats the table of all policies, with a line below a policy for each condition that is not True.
///
/// Condition columns are only shown if they fit. With `is_wide`, all columns are shown.
#[must_use]
pub fn table(report: &StatusReport, now: Timestamp, terminal: Terminal, is_wide: bool) -> String {
    parts(report, now, terminal, is_wide, &Parts::All)
}

/// Formats the [`table`], or only some parts of it.
#[must_use]
pub fn parts(
    report: &StatusReport,
    now: Timestamp,
    terminal: Terminal,
    is_wide: bool,
    parts: &Parts<'_>,
) -> String {
    let columns = columns(report, now, terminal, is_wide);
    let mut out = String::new();
    let names: Vec<_> = report
        .policies
        .iter()
        .map(|policy| clean(&policy.shown_name()))
        .collect();
    let others: usize = columns.iter().map(|column| column.width + GAP).sum();
    // Scripts expect one line per policy, without notes.
    let has_notes = !matches!(parts, Parts::Rows | Parts::ChangedRows(_));
    let limit = terminal.width.filter(|_| has_notes);
    let budget = limit.map_or(usize::MAX, |max| max.saturating_sub(others).max(MIN_NAME));
    let name_width = names
        .iter()
        .map(|name| width(name))
        .filter(|width| *width <= budget)
        .max();
    let name_width = name_width.unwrap_or(0).max(width("NAME"));

    let headings = columns
        .iter()
        .map(|column| (Cell::plain(&column.heading), column.width));
    if *parts == Parts::All {
        line(&mut out, "NAME", name_width, headings, terminal);
    }
    for (row, (policy, name)) in report.policies.iter().zip(&names).enumerate() {
        if !parts.has(&policy.shown_name()) {
            continue;
        }
        let cells = columns.iter().map(|column| {
            let cell = column.cells.get(row).cloned().unwrap_or_default();
            (cell, column.width)
        });
        if width(name) <= name_width {
            line(&mut out, name, name_width, cells, terminal);
        } else {
            let _ = writeln!(out, "{name}");
            line(&mut out, "", name_width, cells, terminal);
        }
        let notes = if has_notes { notes(policy) } else { Vec::new() };
        for note in notes {
            let max = terminal.width.unwrap_or(usize::MAX).saturating_sub(2);
            let max_lines = terminal.width.map_or(usize::MAX, |_| MAX_MESSAGE_LINES);
            for text in wrap(&note, max, max_lines, "  ") {
                let _ = writeln!(out, "  {text}");
            }
        }
    }
    if *parts == Parts::All {
        let _ = write!(out, "\n{}\n", summary(report));
        if let Some(text) = plugin_note(&report.summary) {
            let max = terminal.width.unwrap_or(usize::MAX);
            out.push_str(&wrap(&text, max, usize::MAX, "").join("\n"));
            out.push('\n');
        }
    }
    out
}

/// The parts of a table that are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// Headings, rows, notes, and the summary.
    All,
    /// Only the rows of these policies, with their notes. The rows are printed below a table, in the same columns.
    Changes(&'a BTreeSet<String>),
    /// Only rows, for scripts.
    Rows,
    /// Only the rows of these policies, without notes, for scripts.
    ChangedRows(&'a BTreeSet<String>),
}

impl Parts<'_> {
    /// Returns true if the policy has a row.
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All | Self::Rows => true,
            Self::Changes(names) | Self::ChangedRows(names) => names.contains(name),
        }
    }
}

/// Returns a note if the plugin has evaluated policies itself, because their statuses were missing or outdated.
fn plugin_note(summary: &Summary) -> Option<String> {
    let n = summary.checked_by_plugin;
    (n > 0).then(|| {
        format!(
            "{} evaluated by kubectl vap, with the schemas of the cluster: vap-status-controller has not written a \
             current status for {}",
            count(n, "policy was", "policies were"),
            if n == 1 { "it" } else { "them" },
        )
    })
}

/// Formats a paragraph about the controller if statuses may be outdated, or if there is no Lease. Missing permissions
/// for the Lease, which are common, are only reported in the wide format.
#[must_use]
pub fn controller(report: &StatusReport, terminal: Terminal, is_wide: bool) -> String {
    let controller = report.controller.as_ref();
    // If the plugin has evaluated all policies, no status is outdated.
    let by_plugin = |policy: &PolicyReport| policy.checked_by == Some(StatusSource::Plugin);
    let needs_lease = report.policies.is_empty() || !report.policies.iter().all(by_plugin);
    let shown = controller.filter(|controller| {
        controller.current == Some(false) || !controller.is_lease_there && needs_lease || is_wide
    });
    let Some(note) = shown.and_then(|controller| controller.note.as_ref()) else {
        return String::new();
    };
    let max = terminal.width.unwrap_or(usize::MAX);
    wrap(&clean(note), max, usize::MAX, "  ").join("\n") + "\n\n"
}

/// Formats a line for each policy that was deleted while a table is watched. The lines are printed below the table.
#[must_use]
pub fn deleted(names: &[String]) -> String {
    let lines = names
        .iter()
        .map(|name| format!("{}  Deleted\n", clean(name)));
    lines.collect()
}

fn summary(report: &StatusReport) -> String {
    let summary = &report.summary;
    let parts = [
        (summary.ready, "Ready"),
        (summary.not_ready, "not Ready"),
        (summary.unknown, "unknown"),
        (summary.stale, "stale"),
        (summary.no_status, "without a status"),
        (summary.excluded, "excluded"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(n_policies, _)| *n_policies > 0)
        .map(|(n_policies, state)| format!("{n_policies} {state}"))
        .collect();
    let version = report.kubernetes_version.as_deref().map(clean);
    let version = version.map(|version| {
        let number = version.strip_prefix('v').unwrap_or(&version);
        format!(" on Kubernetes {number}")
    });
    format!(
        "{}{}: {}",
        count(summary.total, "policy", "policies"),
        version.unwrap_or_default(),
        parts.join(", ")
    )
}
