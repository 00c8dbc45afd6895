//! Output of the command `clear`.

use std::fmt;
use std::io::Write;

/// Prints a line. Ignores errors, so that the command continues even if its output is a closed pipe.
pub(super) fn print_line(out: &mut dyn Write, text: fmt::Arguments<'_>) {
    drop(writeln!(out, "{text}"));
}
