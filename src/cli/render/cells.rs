//! Cells, columns and lines of tables of policies and conditions.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::cli::age;
use crate::cli::report::{ConditionReport, PolicyReport, State};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, cut, width};

/// Width of the gap between two cells.
pub(super) const GAP: usize = 2;
/// Maximum width, in columns, of a reason, or of a condition type that another controller writes.
const MAX_WORD: usize = 40;

/// A column of a table. The first column, with the names, is not included.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) cells: Vec<Cell>,
    pub(super) width: usize,
}

impl Column {
    /// Returns a column that is as wide as its widest cell.
    pub(super) fn new(heading: &str, cells: Vec<Cell>) -> Self {
        let widest = cells
            .iter()
            .map(|cell| width(&cell.text))
            .max()
            .unwrap_or(0);
        Self {
            heading: heading.to_owned(),
            cells,
            width: widest.max(width(heading)),
        }
    }
}

/// A cell of a table, with sanitized content.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    paint: Paint,
}

/// The meaning of a cell, which determines its color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Paint {
    #[default]
    Plain,
    Good,
    Bad,
    Doubtful,
}

impl Cell {
    pub(super) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            paint: Paint::Plain,
        }
    }

    /// Returns a cell that is red if `is_bad` is true.
    pub(super) fn graded(text: &str, is_bad: bool) -> Self {
        Self {
            text: text.to_owned(),
            paint: if is_bad { Paint::Bad } else { Paint::Plain },
        }
    }

    /// Returns the content, colored if the terminal supports it.
    pub(super) fn painted(&self, terminal: Terminal) -> String {
        let code = match self.paint {
            Paint::Plain => None,
            Paint::Good => Some("32"),
            Paint::Bad => Some("31"),
            Paint::Doubtful => Some("33"),
        };
        match code {
            Some(code) if terminal.color => format!("\u{1b}[{code}m{}\u{1b}[0m", self.text),
            _ => self.text.clone(),
        }
    }
}

/// Writes one line of the table, without trailing white space.
pub(super) fn line(
    out: &mut String,
    name: &str,
    name_width: usize,
    cells: impl Iterator<Item = (Cell, usize)>,
    terminal: Terminal,
) {
    let mut pending = name_width.saturating_sub(width(name));
    out.push_str(name);
    for (cell, column_width) in cells {
        pending += GAP;
        if !cell.text.is_empty() {
            let _ = write!(out, "{:pending$}{}", "", cell.painted(terminal));
            pending = 0;
        }
        pending += column_width.saturating_sub(width(&cell.text));
    }
    out.push('\n');
}

/// Returns the cell of the column READY: the status of the condition `Ready`, or `Stale` or `-` if there is no current
/// status.
pub(super) fn state_cell(policy: &PolicyReport) -> Cell {
    match (policy.state, policy.ready()) {
        (State::Stale, _) => Cell {
            text: "Stale".to_owned(),
            paint: Paint::Doubtful,
        },
        (_, Some(ready)) => condition_cell(ready),
        (_, None) => Cell {
            text: "-".to_owned(),
            paint: Paint::Doubtful,
        },
    }
}

/// Returns a cell with the status of a condition. `True` is healthy, except for `Stalled`.
pub(super) fn condition_cell(condition: &ConditionReport) -> Cell {
    let paint = match condition.status.as_str() {
        "True" if condition.is_stalled() => Paint::Bad,
        "True" => Paint::Good,
        "False" => Paint::Bad,
        _ => Paint::Doubtful,
    };
    Cell {
        text: word(&condition.status),
        paint,
    }
}

pub(super) fn reasons<'a>(
    conditions: impl Iterator<Item = Option<&'a ConditionReport>>,
) -> Vec<Cell> {
    let reason =
        |it: Option<&ConditionReport>| it.map_or_else(|| "-".into(), |it| word(&it.reason));
    conditions
        .map(|condition| Cell::plain(&reason(condition)))
        .collect()
}

/// Returns the cells of a column with the times since the last transitions of conditions.
pub(super) fn ages<'a>(
    conditions: impl Iterator<Item = Option<&'a ConditionReport>>,
    now: Timestamp,
) -> Vec<Cell> {
    conditions
        .map(|condition| Cell::plain(&age(condition.and_then(|it| it.last_transition_time), now)))
        .collect()
}

/// Formats the time since `then`, or `-` if it is unknown.
pub(super) fn age(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(|| "-".to_owned(), |then| age::since(then, now))
}

/// Sanitizes and shortens the string, which should be a single word.
pub(super) fn word(text: &str) -> String {
    let text = cut(&clean(text), MAX_WORD);
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_true_is_healthy_except_for_condition_stalled() {
        let paint = |type_: &str, status: &str| {
            let condition = ConditionReport {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: String::new(),
                message: String::new(),
                last_transition_time: None,
                observed_generation: None,
            };
            condition_cell(&condition).paint
        };
        assert_eq!(paint("Ready", "True"), Paint::Good);
        assert_eq!(paint("Stalled", "True"), Paint::Bad);
        assert_eq!(paint("Ready", "False"), Paint::Bad);
        assert_eq!(paint("Ready", "Unknown"), Paint::Doubtful);
    }
}
