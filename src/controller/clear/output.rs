//! Output of the command.

use std::fmt;
use std::io::Write;

/// A reader that goes away ends the output, not the work.
pub(super) fn say(out: &mut dyn Write, text: fmt::Arguments<'_>) {
    drop(writeln!(out, "{text}"));
}
