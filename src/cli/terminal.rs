//! Capabilities of the terminal, file or pipe that the output goes to.
//!
//! The only file of the plugin that looks at the environment and at the terminal.

use std::env;
use std::io::{self, IsTerminal};

/// The narrowest width that the layout is made for, in columns.
const MIN_WIDTH: usize = 40;

/// Width and colour of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// In columns; `None` where nothing limits it, as in a pipe or a file.
    pub width: Option<usize>,
    /// True if escape sequences for colour may be written.
    pub color: bool,
}

impl Terminal {
    /// Detects the capabilities of standard output.
    ///
    /// `COLUMNS` wins over the terminal's own size, also where the output is no terminal. Colour
    /// is for terminals only, and for none where `NO_COLOR` is set and not empty or `TERM` is
    /// `dumb`.
    ///
    /// Source: <https://no-color.org>.
    #[must_use]
    pub fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = || is_terminal.then(columns).flatten();
        Self {
            width: width(env::var("COLUMNS").ok().as_deref(), size),
            color: color(
                is_terminal,
                env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
                env::var("TERM").ok().as_deref(),
            ),
        }
    }
}

/// Reports whether standard error is a terminal, on which a line may be written over.
#[must_use]
pub fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal() && env::var("TERM").ok().as_deref() != Some("dumb")
}

/// The columns of the terminal that standard output is, where it tells. Some tell no rows.
#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The columns of the terminal that standard output is.
#[cfg(not(unix))]
fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// The width: of `COLUMNS` where it is a number above 0, or else of the terminal.
fn width(columns: Option<&str>, size: impl FnOnce() -> Option<usize>) -> Option<usize> {
    columns
        .and_then(|columns| columns.trim().parse().ok())
        .filter(|columns| *columns > 0)
        .or_else(size)
        .map(|width: usize| width.max(MIN_WIDTH))
}

/// Reports whether to use colour.
fn color(is_terminal: bool, no_color: bool, term: Option<&str>) -> bool {
    is_terminal && !no_color && term != Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_wins_over_the_terminal() {
        assert_eq!(width(Some("200"), || Some(80)), Some(200));
        assert_eq!(width(Some("wide"), || Some(80)), Some(80));
        assert_eq!(width(Some("0"), || None), None);
        assert_eq!(width(None, || None), None);
        assert_eq!(width(Some("3"), || None), Some(MIN_WIDTH));
    }

    #[test]
    fn color_is_for_terminals_that_want_it() {
        assert!(color(true, false, Some("xterm")));
        assert!(!color(false, false, Some("xterm")));
        assert!(!color(true, true, Some("xterm")));
        assert!(!color(true, false, Some("dumb")));
    }
}
