//! Compares our table of defaults with upstream's functions, on random objects of all covered kinds.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use parity::defaults::{Upstream, compare};

/// The number of objects per kind, if `VAP_DEFAULTS` is not set.
const COUNT: usize = 60;

/// The maximum percentage of objects with unknown defaults.
const MOST_UNKNOWN: usize = 8;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap())
}

#[test]
fn defaults_equal_those_of_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::build(folder.path()).unwrap();
    let count = number("VAP_DEFAULTS").map_or(COUNT, |count| usize::try_from(count).unwrap());
    let seed = number("VAP_DEFAULTS_SEED").unwrap_or(42);
    let report = compare(&upstream.cases(seed, count).unwrap()).unwrap();
    let equal: usize = report.equal.values().sum();
    let unknown: usize = report.unknown.values().sum();
    println!(
        "{equal} objects of {} kinds are equal, {unknown} have unknown fields, {} differ",
        report.equal.len(),
        report.differences.len()
    );
    for (why, n) in &report.unknown {
        println!("  {n} {why}");
    }
    assert!(
        report.differences.is_empty(),
        "{}",
        report.differences.join("\n")
    );
    assert!(report.equal.len() > 50, "{:?}", report.equal);
    assert!(unknown * 100 <= equal * MOST_UNKNOWN);
}
