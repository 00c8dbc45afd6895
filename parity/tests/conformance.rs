//! Runs the conformance tests of the CEL specification. `parity::conformance` describes the set of tests.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and this one prints its counts"
)]

use std::fmt::{self, Write as _};
use std::ops::AddAssign;

use parity::conformance::files::test_files;
use parity::conformance::run::run;
use parity::conformance::skip::SkipList;
use parity::conformance::suite::Suite;

/// The number of conformance tests. For a new version, review the new tests before raising this number.
const N_TESTS: usize = 2344;

/// The maximum number of skipped tests. Lower it when the skip list becomes shorter.
const MOST_SKIPPED: usize = 268;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    tests: usize,
    messages: usize,
    skipped: usize,
    failed: usize,
    passed: usize,
    checked: usize,
    deduced: usize,
    evaluated: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.tests += other.tests;
        self.messages += other.messages;
        self.skipped += other.skipped;
        self.failed += other.failed;
        self.passed += other.passed;
        self.checked += other.checked;
        self.deduced += other.deduced;
        self.evaluated += other.evaluated;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tests,
            messages,
            skipped,
            failed,
            passed,
            checked,
            deduced,
            evaluated,
        } = self;
        write!(
            f,
            "{tests:>6} {messages:>9} {skipped:>8} {failed:>7} {passed:>7} {checked:>8} {deduced:>8} {evaluated:>10}"
        )
    }
}

const HEAD: &str = " tests  messages  skipped  failed  passed  checked  deduced  evaluated";

#[test]
fn conformance_tests_pass_or_are_skipped() {
    let skips = SkipList::read().unwrap();
    let (version, files) = test_files().unwrap();
    let suites: Vec<Suite> = files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            Suite::read(&text).unwrap_or_else(|error| panic!("{}: {error:#}", file.display()))
        })
        .collect();
    let mut complaints = String::new();
    let mut total = Counts::default();
    println!("cel.dev/expr {version:<6} {HEAD}");
    for suite in &suites {
        let counts = run_suite(suite, &skips, &mut complaints);
        println!("{:<19} {counts}", suite.name);
        total += counts;
    }
    println!("{:<19} {total}\n", "all");

    let tests = suites.iter().flat_map(|suite| &suite.tests);
    let paths: Vec<&str> = tests
        .filter(|test| !test.needs_messages)
        .map(|test| test.path.as_str())
        .collect();
    for (reason, n) in skips.counts(&paths) {
        println!("{n:>4} skipped: {reason}");
    }
    for idle in skips.idle(&paths) {
        let _ = writeln!(
            complaints,
            "{idle} is in the skip list, but matches no test"
        );
    }
    assert!(complaints.is_empty(), "\n{complaints}");
    assert_eq!(total.tests, N_TESTS);
    assert!(total.skipped <= MOST_SKIPPED, "{} skipped", total.skipped);
}

fn run_suite(suite: &Suite, skips: &SkipList, complaints: &mut String) -> Counts {
    let mut counts = Counts {
        tests: suite.tests.len(),
        ..Counts::default()
    };
    for test in &suite.tests {
        if test.needs_messages {
            counts.messages += 1;
            continue;
        }
        let path = &test.path;
        match (run(test), skips.reason(path)) {
            (Ok(passed), None) => {
                counts.passed += 1;
                counts.checked += usize::from(passed.checked);
                counts.deduced += usize::from(passed.deduced);
                counts.evaluated += usize::from(passed.evaluated);
            }
            (Err(_), Some(_)) => counts.skipped += 1,
            (Ok(_), Some(_)) => {
                counts.failed += 1;
                let _ = writeln!(complaints, "{path} passes: remove it from the skip list");
            }
            (Err(failure), None) => {
                counts.failed += 1;
                let _ = writeln!(complaints, "{path}: {failure}\n    {}", test.expr);
            }
        }
    }
    counts
}
