//! Generates policies, CustomResourceDefinitions, expressions and admission requests from a seed. Comparisons with
//! upstream use them, so they need no external inputs.
//!
//! Overloads are read from the declarations of the environment. New overloads are therefore covered without a change of
//! this module. `parity/oracle/README.md` documents the formats. The same seed gives the same bytes.
//!
//! Some inputs are excluded, because upstream crashes on them or has no deterministic result. The excluded inputs are
//! iterations over maps with several entries, very long lists, and quantities with very large exponents.

pub mod admit;
pub mod crds;
pub mod custom_resources;
pub mod eval;
pub(crate) mod expressions;
#[expect(
    clippy::indexing_slicing,
    reason = "indexing a JSON value with a missing key returns null"
)]
pub mod merges;
mod mistakes;
mod mutate;
pub mod mutations;
mod objects;
mod pieces;
pub mod policies;
mod policy_changes;
pub(crate) mod rule_objects;
pub mod rules;
mod schemas;

#[path = "../../../tests/support/properties/choices.rs"]
#[expect(dead_code, reason = "only fuzzers take their choices from bytes")]
mod choices;
#[path = "../../../tests/support/properties/generator.rs"]
#[allow(
    dead_code,
    clippy::format_push_string,
    clippy::indexing_slicing,
    reason = "the property tests of the engine use the rest of this module"
)]
mod generator;
#[path = "../../../tests/support/properties/texts.rs"]
mod texts;
pub mod yaml;
mod yaml_pieces;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::random::Random;
use choices::Choices;

/// The number of inputs of each type.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// The number of CustomResourceDefinitions.
    pub crds: u64,
    /// The number of generated and mutated policies, in addition to the hand-written policies.
    pub policies: u64,
    /// The number of mutating policies.
    pub mutating: u64,
    /// The number of expressions with values of their variables.
    pub eval: u64,
    /// The number of admission requests.
    pub admit: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            crds: 60,
            policies: 1500,
            mutating: 600,
            eval: 4000,
            admit: 1500,
        }
    }
}

/// Returns the random choices for the `n`th item of the type `key`. The choices do not depend on other items.
fn choices(seed: u64, key: &str, n: u64) -> Choices<'static> {
    Choices::Seeded(Random::for_event(seed, key, n).number())
}

/// Returns `expression` with a typical mistake. The same seed gives the same mistake.
#[must_use]
pub fn changed_expression(seed: u64, expression: &str) -> String {
    mutate::change(&mut Choices::Seeded(seed), expression)
}

/// Writes `crds/`, `policies/`, `mutating/`, `eval.jsonl` and `admit.jsonl` into `directory`.
///
/// # Errors
/// Returns an error if a file cannot be written or the built-in schemas cannot be read.
pub fn write(directory: &Path, seed: u64, counts: Counts) -> Result<()> {
    let mut crds = policies::crds_written_by_hand()?;
    crds.extend(crds::crds(seed, counts.crds));
    let policies = policies::policies(seed, counts.policies, &crds)?;
    write_documents(&directory.join("crds"), &crds)?;
    write_documents(&directory.join("policies"), &policies)?;
    let mutating = mutations::policies(seed, counts.mutating, &crds)?;
    write_documents(&directory.join("mutating"), &mutating)?;
    write_lines(
        &directory.join("eval.jsonl"),
        &eval::cases(seed, counts.eval)?,
    )?;
    write_lines(
        &directory.join("admit.jsonl"),
        &admit::cases(seed, counts.admit)?,
    )
}

/// Writes the documents to the file `generated.yaml` in a directory. Creates the directory if necessary.
fn write_documents(directory: &Path, documents: &[Value]) -> Result<()> {
    let context = || directory.display().to_string();
    fs::create_dir_all(directory).with_context(context)?;
    let file = fs::File::create(directory.join("generated.yaml")).with_context(context)?;
    let mut out = BufWriter::new(file);
    for document in documents {
        // JSON is a subset of YAML.
        writeln!(out, "---\n{document}")?;
    }
    Ok(out.flush()?)
}

fn write_lines(path: &Path, values: &[Value]) -> Result<()> {
    let file = fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut out = BufWriter::new(file);
    for value in values {
        writeln!(out, "{value}")?;
    }
    Ok(out.flush()?)
}

/// Picks one of `items`. `items` must not be empty.
fn pick<'t, T>(choices: &mut Choices<'_>, items: &'t [T]) -> Result<&'t T> {
    items
        .get(choices.below(items.len().max(1)))
        .context("nothing to choose from")
}
