//! Tests of the list of warnings and its limits.

use super::*;
use crate::status::warnings::{MAX_TOTAL_BYTES, budget_bytes, expression_warnings};

#[test]
fn small_warnings_are_written_to_the_byte() {
    let text = "apps/v1, Kind=Deployment: ERROR: <input>:1:1: x\n | é\n | ．\n\n/v1, Kind=Pod: …\n";
    let given = [
        warning("spec.validations[0].expression", text),
        warning("b", ""),
    ];
    let expect: Vec<ExpressionWarning> = given
        .iter()
        .map(|warning| ExpressionWarning {
            field_ref: warning.field_ref.clone(),
            warning: warning.warning.clone(),
        })
        .collect();
    assert_eq!(expression_warnings(&given, MAX_TOTAL_BYTES), expect);
    assert_eq!(expression_warnings(&[], MAX_TOTAL_BYTES), []);
}

#[test]
fn a_long_list_ends_with_a_count() {
    let given: Vec<Warning> = (0..1000)
        .map(|n| warning(&format!("f{n}"), &"x".repeat(1000)))
        .collect();
    let kept = expression_warnings(&given, MAX_TOTAL_BYTES);
    let (last, shown) = kept.split_last().unwrap();
    assert_eq!(
        last.warning,
        format!(
            "{} more expression warnings left out to keep the status small",
            1000 - shown.len()
        )
    );
    assert!(shown.len() > 200);
    let bytes: usize = kept
        .iter()
        .map(|w| w.field_ref.len() + w.warning.len())
        .sum();
    assert!(bytes <= MAX_TOTAL_BYTES);
}

#[test]
fn a_long_warning_leaves_out_whole_kinds() {
    let part = |n: usize| format!("apps/v1, Kind=Kind{n:03}: ERROR: {}\n", "x".repeat(1000));
    let text: Vec<String> = (0..200).map(part).collect();
    let kept = expression_warnings(&[warning("f", &text.join("\n"))], MAX_TOTAL_BYTES);
    let [only] = kept.as_slice() else {
        panic!("one warning")
    };
    let n_shown = only.warning.matches("Kind=").count();
    assert!((40..200).contains(&n_shown), "{n_shown}");
    assert!(only.warning.starts_with(&part(0)));
    let end = format!(
        "\n{} more kinds left out to keep the status small\n",
        200 - n_shown
    );
    assert!(only.warning.ends_with(&end), "{}", only.warning);
    assert!(only.warning.len() <= 64 * 1024);
}

#[test]
fn one_endless_warning_is_cut() {
    let kept = expression_warnings(&[warning("f", &"é".repeat(1_000_000))], MAX_TOTAL_BYTES);
    let [only] = kept.as_slice() else {
        panic!("one warning")
    };
    assert!(only.warning.len() <= 64 * 1024);
    assert!(
        only.warning
            .ends_with("…\n\nthe rest of this warning is left out to keep the status small\n")
    );
}

#[test]
fn a_large_policy_leaves_less_room() {
    let with_bytes = |n: usize| {
        let mut facts = Facts::sound();
        facts.policy.spec.as_mut().unwrap().validations = Some(vec![Validation {
            expression: "x".repeat(n),
            ..Validation::default()
        }]);
        budget_bytes(&facts.policy)
    };
    assert_eq!(with_bytes(1000), MAX_TOTAL_BYTES);
    assert_eq!(with_bytes(600 * 1024), 80 * 1024);
    assert_eq!(with_bytes(1400 * 1024), 4 * 1024);
}

#[test]
fn the_message_has_the_first_trouble() {
    let table = [
        (
            "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'a:b'\n | x\n",
            " (undefined field 'a:b' on apps/v1 Deployment)",
        ),
        ("/v1, Kind=Pod: ERROR: <input>:3:1: x\n", " (x on v1 Pod)"),
        ("/v1, Kind=Pod: ERROR: <input>:3\n", ""),
        ("something else", ""),
        ("", ""),
    ];
    for (text, why) in table {
        let facts = Facts::sound().with(|facts| {
            facts.types.warnings = vec![warning("spec.validations[0].expression", text)];
        });
        let expect = format!(
            "spec.validations[0].expression may fail when evaluated{why}, with failurePolicy Fail a \
             request that reaches it is denied; 1 kind checked"
        );
        check(
            &facts,
            ConditionType::TypeChecked,
            "False ExpressionWarnings",
            &expect,
        );
    }
}
