//! Tests of the `truthful` profile: the findings for expressions about a custom kind.

#![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

use super::*;
use crate::runtime_errors::tests::{BOX, PLAIN, cases, policy, validation};
use kubernetes::version::KubernetesVersion;

/// Returns the findings for a validation of a `Box`: errors and warnings with their columns, and incomparable types.
fn found(expression: &str) -> Vec<String> {
    found_in(KubernetesVersion::DEFAULT, expression)
}

fn found_in(version: KubernetesVersion, expression: &str) -> Vec<String> {
    let served = &*PLAIN;
    let policy = policy(BOX, &["CREATE", "UPDATE"], &validation(expression));
    let policy = CompiledPolicy::from_parts(policy.policy().clone(), None, version);
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
fn failing_and_incomparable_expressions_are_found() {
    let mut n_cases = 0;
    for case in cases(include_str!("findings.txt")) {
        assert_eq!(found(case[0]), case[1..], "{}", case[0]);
        n_cases += 1;
    }
    assert!(n_cases > 200, "{n_cases}");
}

/// In Kubernetes 1.37, the left operand may be a Go value. Comparing it with a value of a different type fails.
#[test]
fn comparison_of_go_value_with_other_type_is_never_true() {
    let version = |text: &str| text.parse().unwrap();
    for (expression, before, since) in [
        (
            "object.spec == 'x'",
            Some("this is always false"),
            Some("this is never true"),
        ),
        (
            "object.spec != 'x'",
            Some("this is always true"),
            Some("this is always true"),
        ),
        (
            "'x' == object.spec",
            Some("this is always false"),
            Some("this is always false"),
        ),
        ("object.spec == {}", None, None),
    ] {
        for (release, expected) in [("1.36", before), ("1.37", since)] {
            let findings = found_in(version(release), expression);
            let [only] = &findings[..] else {
                assert_eq!(
                    (findings.len(), expected),
                    (0, None),
                    "{expression}: {findings:?}"
                );
                continue;
            };
            assert!(
                only.ends_with(expected.unwrap()),
                "{release} {expression}: {only}"
            );
        }
    }
}

/// Source: cel-go 0.27 `checker/env.go`, `Env.resolveQualifiedIdent`.
#[test]
fn name_with_leading_dot_does_not_refer_to_macro_variable() {
    let expression = "[1].all(object, .object.kind == 'Box')";
    assert_eq!(found_in("1.37".parse().unwrap(), expression), [""; 0]);
}
