//! A report for people: the table of all policies, and one policy in full.
//!
//! Takes plain structs, the present moment and the terminal, gives text. What others wrote (names,
//! reasons, messages, warnings) is made harmless and cut to fit; nothing is printed from here.

mod cells;
mod columns;
mod details;
mod notes;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;

use self::cells::{Cell, GAP, line};
use self::columns::columns;
use self::notes::{count, notes};
use super::report::{Judge, PolicyReport, StatusReport, Summary};
use super::terminal::Terminal;
use super::text::{clean, width, wrap};

pub use self::details::details;

/// Lines that one condition may take below its policy in the table; `status NAME` shows all.
const MAX_MESSAGE_LINES: usize = 3;
/// A name shorter than this is never moved to a line of its own.
const MIN_NAME: usize = 16;

/// The table of all policies, with a line below a policy for each condition that is not True.
///
/// Condition columns are there if they fit; with `is_wide` every column is, fitting or not.
#[must_use]
pub fn table(report: &StatusReport, now: Timestamp, terminal: Terminal, is_wide: bool) -> String {
    parts(report, now, terminal, is_wide, &Parts::All)
}

/// The [`table`], or parts of it.
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
    // A script reads a row as one line.
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
        let _ = write!(out, "\n{}\n", summary(&report.summary));
        if let Some(text) = judged_note(&report.summary) {
            let max = terminal.width.unwrap_or(usize::MAX);
            out.push_str(&wrap(&text, max, usize::MAX, "").join("\n"));
            out.push('\n');
        }
    }
    out
}

/// The parts of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// Headings, rows, notes, and the summary.
    All,
    /// The rows of these policies with their notes: changes below a table, in its columns.
    Changes(&'a BTreeSet<String>),
    /// Rows alone, for scripts.
    Rows,
    /// The rows alone of these policies.
    ChangedRows(&'a BTreeSet<String>),
}

impl Parts<'_> {
    /// Reports whether the policy has a row.
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All | Self::Rows => true,
            Self::Changes(names) | Self::ChangedRows(names) => names.contains(name),
        }
    }
}

/// Who has judged, where the plugin has.
fn judged_note(summary: &Summary) -> Option<String> {
    let n = summary.judged_by_plugin;
    (n > 0).then(|| {
        format!(
            "{} judged by kubectl vap, against the schemas of the cluster: vap-status-controller has written no status \
             of {} as {}",
            count(n, "policy was", "policies were"),
            if n == 1 { "it" } else { "them" },
            if n == 1 { "it is" } else { "they are" },
        )
    })
}

/// A paragraph above all else where the statuses may be old, or no Lease tells; that the Lease may not be read is
/// said in the wide form only, as that is so for many people.
#[must_use]
pub fn controller(report: &StatusReport, terminal: Terminal, is_wide: bool) -> String {
    let controller = report.controller.as_ref();
    // Where the plugin has judged all, no status is old.
    let by_plugin = |policy: &PolicyReport| policy.judged_by == Some(Judge::Plugin);
    let needs_lease = report.policies.is_empty() || !report.policies.iter().all(by_plugin);
    let told = controller.filter(|controller| {
        controller.current == Some(false) || !controller.is_lease_there && needs_lease || is_wide
    });
    let Some(note) = told.and_then(|controller| controller.note.as_ref()) else {
        return String::new();
    };
    let max = terminal.width.unwrap_or(usize::MAX);
    wrap(&clean(note), max, usize::MAX, "  ").join("\n") + "\n\n"
}

/// A line for each policy that was deleted, below a table whose changes are watched.
#[must_use]
pub fn deleted(names: &[String]) -> String {
    let lines = names
        .iter()
        .map(|name| format!("{}  Deleted\n", clean(name)));
    lines.collect()
}

/// The last line of the table.
fn summary(summary: &Summary) -> String {
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
    format!(
        "{}: {}",
        count(summary.total, "policy", "policies"),
        parts.join(", ")
    )
}
