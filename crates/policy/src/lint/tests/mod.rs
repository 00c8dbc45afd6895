//! Tests of the lints of expressions.

#![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]

mod denials;

use serde_json::json;

use super::*;
use crate::analysis::{Profile, type_check};
use crate::matching;
use crate::runtime_errors::tests::{BOX, PLAIN, cases, policy, validation};

/// Returns the lints of a policy for a `Box` with the validation or, after `condition: `, the match condition
/// `expression`: rule, column, message and fix.
fn found(expression: &str) -> Vec<String> {
    let mut spec = match expression.strip_prefix("condition: ") {
        Some(condition) => {
            let mut spec = validation("object.metadata.name != 'a'");
            spec["matchConditions"] = json!([{"name": "a", "expression": condition}]);
            spec
        }
        None => validation(expression),
    };
    if expression.contains("params.") {
        spec["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Box"});
    }
    let policy = policy(BOX, &["CREATE", "UPDATE"], &spec);
    let matches = matching::resolve(policy.policy(), &PLAIN.mapper);
    let typed = type_check(&policy, &PLAIN.mapper, &*PLAIN, Profile::Truthful);
    let mut lints = find(&policy, &matches.resources, (&PLAIN.mapper, &*PLAIN));
    lints.extend(missing_optionals(&policy, &typed.non_optional));
    let lints = lints.into_iter();
    let lines = lints.flat_map(|lint| {
        let column = lint.location.map(|location| location.column);
        let at = column.map_or_else(String::new, |column| format!(" {column}"));
        let kind = if lint.is_harmless { " (harmless)" } else { "" };
        let message = format!("  {}{at}{kind}: {}", lint.rule.id(), lint.message);
        std::iter::once(message).chain(lint.fix.map(|fix| format!("    {fix}")))
    });
    lines.collect()
}

/// Compares the lints with the file `lints.txt`.
#[test]
fn lints_of_expressions_have_message_and_fix() {
    let mut n_cases = 0;
    let mut problems = Vec::new();
    for case in cases(include_str!("lints.txt")) {
        let lints = found(case[0]);
        if lints != case[1..] {
            problems.push(format!("{}\n{}", case[0], lints.join("\n")));
        }
        n_cases += 1;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    assert!(n_cases > 60, "{n_cases}");
}
