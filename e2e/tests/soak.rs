//! Runs the soak test for about two minutes. Every fault occurs in a round of its own. `./dev soak` runs longer soaks.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its seed"
)]

use e2e::fault_proxy::Fault;
use e2e::soak::{Aggregation, Settings, one_by_one, run};

/// `VAP_SOAK_SEED` sets the seed.
fn settings(rounds: Vec<Vec<Fault>>) -> Settings {
    let seed = parity::random::from_environment("VAP_SOAK_SEED", 1).unwrap();
    println!("VAP_SOAK_SEED={seed}");
    Settings::new(seed, rounds)
}

/// A lock, so that only one soak runs at a time. Concurrent soaks would overload a machine with two cores, and
/// conditions would be late.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn conditions_match_the_model_without_faults() {
    let _turn = TURN.lock().await;
    let report = run(&settings(vec![Vec::new(); 5])).await.unwrap();
    println!("{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_match_the_model_under_each_fault() {
    let _turn = TURN.lock().await;
    let report = run(&settings(one_by_one(Fault::ALL))).await.unwrap();
    println!("{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_match_the_model_without_probes_and_with_dead_api() {
    let _turn = TURN.lock().await;
    let mut settings = settings(vec![Vec::new(), Fault::ALL.to_vec()]);
    settings.has_probes = false;
    settings.watches_mutating = false;
    settings.aggregation = Aggregation::Dead;
    let report = run(&settings).await.unwrap();
    println!("{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_match_the_model_without_aggregation() {
    let _turn = TURN.lock().await;
    let mut settings = settings(vec![Vec::new(), Fault::ALL.to_vec()]);
    settings.aggregation = Aggregation::Missing;
    let report = run(&settings).await.unwrap();
    println!("{report}");
}
