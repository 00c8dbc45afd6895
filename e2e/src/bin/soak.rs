//! The soak test, `./dev soak`: random changes under faults, compared with a model that predicts every condition.
//!
//! Stops with an error at the first difference. The error contains the seed that reproduces the run.

#![allow(clippy::print_stdout, reason = "the report is the output")]

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use e2e::fault_proxy::{Fault, parse_faults};
use e2e::soak::{Aggregation, Settings, in_pairs, one_by_one, run};

/// Random changes under faults, compared with a model that predicts every condition
#[derive(Debug, Parser)]
struct Arguments {
    /// Minutes to run; each set of faults is used at least once
    #[arg(long, default_value_t = 2)]
    minutes: u64,

    /// Seed of the changes and the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Faults: `all` together, `none`, `each` alone, in `pairs`, or a comma-separated list to use together
    #[arg(long, default_value = "each", value_parser = rounds)]
    faults: Rounds,

    /// Number of sets of faults to skip at the beginning; `pairs` has 78 sets
    #[arg(long, default_value_t = 0)]
    skip: usize,

    /// Number of changes per round
    #[arg(long, default_value_t = 40)]
    changes: usize,

    /// Do not install the CRD of probes
    #[arg(long)]
    without_probes: bool,

    /// Do not watch MutatingAdmissionPolicies
    #[arg(long)]
    without_mutating: bool,

    /// Aggregated APIs of the cluster
    #[arg(long, value_enum, default_value_t)]
    aggregation: Aggregation,

    /// Keep black holes open, so that only the controller itself can detect them
    #[arg(long)]
    black_holes_stay: bool,
}

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
    settings.watches_mutating = !arguments.without_mutating;
    settings.aggregation = arguments.aggregation;
    settings.black_holes_stay = arguments.black_holes_stay;
    let report = run(&settings).await?;
    println!("seed                         {}", arguments.seed);
    println!("{report}");
    Ok(())
}
