//! The oracle's twin: our engine behind the oracle's subcommands and file formats, and the
//! comparison of the two.
//!
//! What upstream's Go code answers is what `e2e/oracle` prints; its README has the formats.

pub mod admit;
pub mod bench;
pub mod compile;
#[expect(
    clippy::indexing_slicing,
    reason = "parts of JSON values, which are null where there are none"
)]
pub mod coverage;
pub mod custom_resources;
pub mod decided;
pub mod decl;
pub mod eval;
pub mod five_kinds;
pub mod guard;
pub mod mutate;
pub mod mutate_requests;
pub mod pair;
pub mod rules;
pub mod schemas;
pub mod share;
pub mod typecheck;
pub mod witnesses;
pub mod yaml;

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// Prints `line` as one line of JSON.
///
/// # Errors
///
/// If `out` cannot be written to.
pub fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")?;
    Ok(())
}
