//! Detects the capabilities of the terminal, file or pipe that receives the output.
//!
//! Only this module of the plugin reads the environment and the terminal settings.

use std::env;
use std::io::{self, IsTerminal};

use clap::ValueEnum;

/// The minimum width of the layout, in columns.
const MIN_WIDTH: usize = 40;

/// Clears the screen and moves the cursor to the first line.
pub const CLEAR: &str = "\x1b[2J\x1b[H";

/// The width and color support of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The width in columns; `None` if it is unlimited, as for a pipe or file.
    pub width: Option<usize>,
    /// True if escape sequences for colors may be written.
    pub color: bool,
}

/// The value of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// Colors for a terminal, unless the environment disables them.
    #[default]
    Auto,
    /// Colors for each output, including pipes and files.
    Always,
    /// No colors.
    Never,
}

impl Terminal {
    /// Detects the capabilities of standard output.
    ///
    /// `COLUMNS` takes precedence over the size of the terminal, and also applies to other outputs. With
    /// [`ColorChoice::Auto`], colors are disabled if `NO_COLOR` is set and not empty. Otherwise they require a terminal
    /// whose `TERM` is not `dumb`, unless `FORCE_COLOR` is set and not empty.
    ///
    /// Sources: <https://no-color.org>, <https://force-color.org>.
    #[must_use]
    pub fn from_stdout(choice: ColorChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = || is_terminal.then(columns).flatten();
        Self {
            width: width(env::var("COLUMNS").ok().as_deref(), size),
            color: match choice {
                ColorChoice::Always => true,
                ColorChoice::Never => false,
                ColorChoice::Auto => color(
                    is_terminal,
                    [is_set("NO_COLOR"), is_set("FORCE_COLOR")],
                    env::var("TERM").ok().as_deref(),
                ),
            },
        }
    }
}

/// Returns true if standard error is a terminal on which a line can be overwritten.
#[must_use]
pub fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal() && env::var("TERM").ok().as_deref() != Some("dumb")
}

/// Returns the number of columns of the terminal, or `None` if it is unknown. Supports terminals that report 0 rows.
#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(target_family = "wasm")]
fn columns() -> Option<usize> {
    None
}

#[cfg(windows)]
fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// Returns the width: `COLUMNS` if it is a number above 0, otherwise the width of the terminal.
fn width(columns: Option<&str>, size: impl FnOnce() -> Option<usize>) -> Option<usize> {
    columns
        .and_then(|columns| columns.trim().parse().ok())
        .filter(|columns| *columns > 0)
        .or_else(size)
        .map(|width: usize| width.max(MIN_WIDTH))
}

/// Returns true if an environment variable is set and not empty.
fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn color(is_terminal: bool, [is_disabled, is_forced]: [bool; 2], term: Option<&str>) -> bool {
    !is_disabled && (is_forced || is_terminal && term != Some("dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_columns_variable_overrides_width_of_terminal() {
        assert_eq!(width(Some("200"), || Some(80)), Some(200));
        assert_eq!(width(Some("wide"), || Some(80)), Some(80));
        assert_eq!(width(Some("0"), || None), None);
        assert_eq!(width(None, || None), None);
        assert_eq!(width(Some("3"), || None), Some(MIN_WIDTH));
    }

    #[test]
    fn color_requires_capable_terminal() {
        assert!(color(true, [false, false], Some("xterm")));
        assert!(!color(false, [false, false], Some("xterm")));
        assert!(!color(true, [true, false], Some("xterm")));
        assert!(!color(true, [false, false], Some("dumb")));
    }

    #[test]
    fn color_can_be_forced() {
        assert!(color(false, [false, true], Some("dumb")));
        assert!(!color(false, [true, true], Some("xterm")));
    }
}
