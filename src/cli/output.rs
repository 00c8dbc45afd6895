//! Writes the output of a command.

use std::io::{self, Write};

use super::error::CliError;
use super::text;

/// Serializes `value` as JSON with a trailing newline. Characters that a terminal would interpret are escaped.
pub(super) fn json(value: &impl serde::Serialize) -> Result<String, CliError> {
    serde_json::to_string_pretty(value)
        .map(|text| text::with_escapes(text) + "\n")
        .map_err(|error| CliError::Format {
            format: "json",
            reason: error.to_string(),
        })
}

/// Writes the string. A closed pipe is not an error.
pub(super) fn write(out: &mut dyn Write, text: &str) -> Result<(), CliError> {
    write_open(out, text).map(|_| ())
}

/// Writes the string. Returns false if the pipe is closed.
pub(super) fn write_open(out: &mut dyn Write, text: &str) -> Result<bool, CliError> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Write(error)),
        outcome => Ok(outcome.is_ok()),
    }
}
