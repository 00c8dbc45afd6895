//! Output of the command.

use std::fmt;
use std::io::Write;

/// Prints a line. A closed pipe ends the output, not the command.
pub(super) fn print_line(out: &mut dyn Write, text: fmt::Arguments<'_>) {
    drop(writeln!(out, "{text}"));
}
