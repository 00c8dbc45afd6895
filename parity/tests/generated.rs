//! Compares `kubectl vap check` with the type checker, on policies and CustomResourceDefinitions from a seed.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "a test fails by a panic, and shares modules with others"
)]

#[path = "../../tests/support/checks.rs"]
mod checks;
#[path = "../../tests/support/mod.rs"]
mod support;

use parity::cases::{self, Counts};

#[test]
fn warnings_of_check_equal_those_of_the_type_checker() {
    let directory = tempfile::tempdir().unwrap();
    let counts = Counts {
        policies: 300,
        mutating: 0,
        eval: 0,
        admit: 0,
        ..Counts::default()
    };
    cases::write(directory.path(), 11, counts).unwrap();
    let (policies, crds) = (
        directory.path().join("policies"),
        directory.path().join("crds"),
    );
    checks::warnings_match_the_type_checker(&[policies], &[crds], 300);
}
