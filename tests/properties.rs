//! Tests properties that hold for every expression. The tested expressions are generated randomly.
//!
//! `VAP_PROPERTY_CASES` is the number of expressions. `VAP_PROPERTY_SEED` is the seed.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests fail by panicking, and this test prints its counts"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

#[path = "support/properties/mod.rs"]
mod properties;

use properties::choices::Choices;
use properties::generator::Generator;
use properties::unparse::unparse;
use properties::{Fixture, Outcome};
use vap_status_controller::cel::syntax::parse;

/// Expressions for which a fuzzer has detected a violation.
#[test]
fn properties_hold_for_recorded_cases() {
    let fixture = Fixture::new();
    for text in [
        // For one of the inputs, the selector is an error. The estimate assumes a size of one code point for an error.
        "authorizer.group('').resource('pods').fieldSelector('a-b').fieldSelector((self.on ? '' : ''))",
        "authorizer.group('').resource('pods').labelSelector((self.on ? '' : ''))",
        // Upstream's checker accepts this expression, but the evaluator has no such overload.
        "null == null && null < null",
    ] {
        if let Err(why) = fixture.check(text) {
            panic!("{text}\n{why}");
        }
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn properties_hold_for_generated_expressions() {
    let n_cases = number("VAP_PROPERTY_CASES", 3_000);
    let first_seed = number("VAP_PROPERTY_SEED", 1);
    let fixture = Fixture::new();
    let mut failures = String::new();
    let mut n_failures = 0;
    let (mut n_rejected, mut n_evaluated, mut n_values, mut n_typed, mut n_bounded) =
        (0, 0, 0, 0, 0);
    let mut rejections: BTreeMap<String, u32> = BTreeMap::new();
    let mut missing: BTreeSet<&str> = fixture.material.overload_ids().collect();
    for n in 0..n_cases {
        let choices = Choices::Seeded(first_seed.wrapping_mul(1 << 32).wrapping_add(n));
        let mut generator = Generator::new(&fixture.material, choices, n % 3 == 0);
        // Half of the expressions call a specific overload, so that each overload is called several times. The other
        // expressions have random types.
        let depth = 1 + u32::try_from(n % 3).unwrap();
        let text = match n % 2 {
            0 => generator.call_of(usize::try_from(n / 2).unwrap(), depth),
            _ => generator.any(depth + 1),
        };
        match fixture.check(&text) {
            Err(why) => {
                n_failures += 1;
                if n_failures <= 20 {
                    let _ = writeln!(failures, "{text}\n    {why}");
                }
            }
            Ok(Outcome::Rejected(why)) => {
                n_rejected += 1;
                let line = why.lines().next().unwrap_or_default();
                let message = line.splitn(4, ':').last().unwrap_or_default();
                *rejections
                    .entry(message.chars().take(50).collect())
                    .or_default() += 1;
            }
            Ok(Outcome::NotPlanned(_)) => n_evaluated += 1,
            Ok(Outcome::Evaluated {
                n_values: n,
                is_dyn,
                is_bounded,
                overloads,
            }) => {
                n_evaluated += 1;
                n_values += u32::from(n > 0);
                n_typed += u32::from(!is_dyn);
                n_bounded += u32::from(is_bounded);
                for id in overloads {
                    missing.remove(id);
                }
            }
        }
    }
    println!(
        "{n_cases} cases: {n_rejected} refused, {n_evaluated} evaluated, of these {n_values} with a value, \
         {n_typed} without dyn, {n_bounded} with a bound on their cost; {} overloads not reached",
        missing.len()
    );
    if std::env::var_os("VAP_PROPERTY_REFUSED").is_some() {
        println!("{rejections:#?}\n{missing:#?}");
    }
    assert!(failures.is_empty(), "{n_failures} failures\n{failures}");
    // Most expressions must be evaluated. An expression that is rejected does not test the properties.
    assert!(
        n_evaluated * 10 > n_cases * 7,
        "{n_rejected} of {n_cases} are rejected"
    );
    assert!(
        u64::from(n_values) * 2 > n_evaluated,
        "only {n_values} values"
    );
    assert!(
        n_cases < 3_000 || missing.is_empty(),
        "never called: {missing:?}"
    );
}

#[test]
fn unparsed_tree_parses_to_same_tree() {
    let (ast, _) = parse("(a+(b*c)).all(x,has(x.y))");
    let ast = ast.unwrap();
    assert_eq!(unparse(&ast, ast.root()), "(a + b * c).all(x, has(x.y))");
}
