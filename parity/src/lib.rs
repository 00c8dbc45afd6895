//! Compares our engine with upstream's code.
//!
//! The oracle is a Go program that calls upstream's code (`parity/oracle/README.md`). The binary `parity` runs our
//! engine with the subcommands and file formats of the oracle, and compares the results of both.
//!
//! [`cases`] and [`rejections`] generate inputs from a seed. [`documents`] and [`corpus`] read inputs from files.
//! [`conformance`] runs the conformance tests of the CEL specification.

pub mod admit;
pub mod bench;
pub mod builtin;
#[expect(
    clippy::indexing_slicing,
    reason = "generators index lists of known lengths and objects that they have created"
)]
pub mod cases;
pub mod compile;
pub mod conformance;
pub mod corpus;
#[expect(
    clippy::indexing_slicing,
    reason = "indexing a JSON value with a missing key returns null"
)]
pub mod coverage;
pub mod custom_resources;
pub mod decided;
pub mod decl;
pub mod defaults;
pub mod documents;
pub mod eval;
pub mod five_kinds;
pub mod guard;
pub mod mutate;
pub mod mutate_requests;
pub mod pair;
pub mod random;
pub mod recorded;
pub mod rejections;
pub mod rules;
pub mod schemas;
pub mod share;
pub mod typecheck;
pub mod version;
pub mod witnesses;
pub mod yaml;

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

/// Prints `line` as a line of JSON.
///
/// # Errors
///
/// Returns an error if writing to `out` fails.
pub fn write_line(out: &mut dyn Write, line: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")?;
    Ok(())
}
