//! Tests of the `truthful` profile: the findings for expressions about a custom kind.

#![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

use super::*;
use crate::runtime_errors::tests::{BOX, PLAIN, cases, policy, validation};

/// Returns the findings for a validation of a `Box`: errors and warnings with their columns, and incomparable types.
fn found(expression: &str) -> Vec<String> {
    let served = &*PLAIN;
    let policy = policy(BOX, &["CREATE", "UPDATE"], &validation(expression));
    assert_eq!(policy.findings(), [], "{expression}");
    let outcome = type_check(&policy, &served.mapper, served, Profile::Truthful);
    let findings = outcome.findings.iter().flat_map(ExpressionFindings::iter);
    let findings = findings.map(|(_, severity, diagnostic)| {
        let column = diagnostic.location.column;
        format!(
            "  {severity:?} {column}: {}",
            diagnostic.without_container()
        )
    });
    let incomparable = outcome.incomparable.iter();
    let incomparable =
        incomparable.map(|it| format!("  Incomparable {}: {}", it.location.column, it.message));
    findings.chain(incomparable).collect()
}

/// Compares the findings with the file `findings.txt`.
#[test]
fn failing_and_incomparable_values_are_found() {
    let mut n_cases = 0;
    for case in cases(include_str!("findings.txt")) {
        assert_eq!(found(case[0]), case[1..], "{}", case[0]);
        n_cases += 1;
    }
    assert!(n_cases > 200, "{n_cases}");
}
