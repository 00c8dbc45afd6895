//! The soak: random changes under faults, beside a model that foretells every condition; `./dev soak`.
//!
//! Ends with an error at the first disagreement, and prints what reproduces it.

#![allow(clippy::print_stdout, reason = "the report is the output")]

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use e2e::fault_proxy::{Fault, parse_faults};
use e2e::soak::{Aggregation, Settings, in_pairs, one_by_one, run};

/// Random changes under faults, beside a model that foretells every condition
#[derive(Debug, Parser)]
struct Arguments {
    /// How long to go on; each set of faults has its turn in any case
    #[arg(long, default_value_t = 2)]
    minutes: u64,

    /// Seed of the changes and the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The faults: `all` at once, `none`, `each` alone, in `pairs`, or names at once, separated by commas
    #[arg(long, default_value = "each", value_parser = rounds)]
    faults: Rounds,

    /// How many sets of faults to leave out at the beginning: `pairs` are 78
    #[arg(long, default_value_t = 0)]
    skip: usize,

    /// How many changes a round has
    #[arg(long, default_value_t = 40)]
    changes: usize,

    /// Leave the kind of probes out
    #[arg(long)]
    without_probes: bool,

    /// Leave MutatingAdmissionPolicies out
    #[arg(long)]
    without_mutating: bool,

    /// Which APIs are aggregated
    #[arg(long, value_enum, default_value_t)]
    aggregation: Aggregation,

    /// Let black holes stay as they are, so that only the controller itself can notice
    #[arg(long)]
    black_holes_stay: bool,
}

/// The faults of each round.
#[derive(Clone, Debug)]
struct Rounds(Vec<Vec<Fault>>);

fn rounds(text: &str) -> Result<Rounds> {
    Ok(Rounds(match text {
        "each" => one_by_one(Fault::ALL),
        "pairs" => in_pairs(Fault::ALL),
        _ => vec![parse_faults(text)?],
    }))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let rounds = arguments.faults.0.into_iter().skip(arguments.skip);
    let rounds: Vec<Vec<Fault>> = rounds.collect();
    ensure!(!rounds.is_empty(), "--skip leaves no faults");
    let mut settings = Settings::new(arguments.seed, rounds);
    settings.time = Duration::from_secs(60 * arguments.minutes);
    settings.n_changes = arguments.changes;
    settings.has_probes = !arguments.without_probes;
    settings.follows = !arguments.without_mutating;
    settings.aggregation = arguments.aggregation;
    settings.black_holes_stay = arguments.black_holes_stay;
    let report = run(&settings).await?;
    println!("seed                         {}", arguments.seed);
    println!("{report}");
    Ok(())
}
