//! Tests of the list of warnings and its limits.

use super::*;
use crate::policy::finding::Note;
use crate::status::warnings::{MAX_TOTAL_BYTES, Warning, budget_bytes, expression_warnings};

/// A warning of one part.
fn rendered(field_ref: &str, text: &str) -> Warning {
    Warning {
        field_ref: field_ref.into(),
        parts: [text.to_owned()].into(),
        headline: None,
        fails: true,
        consequence: Consequence::Denied,
    }
}

#[test]
fn findings_are_written_as_upstream_writes_them() {
    let mut found = warning("f", "undefined field 'b'");
    let mut pod = found.kinds[0].clone();
    pod.gvk = Gvk::new("", "v1", "Pod");
    std::mem::swap(&mut pod.errors, &mut pod.warnings);
    pod.errors
        .report(Code::Syntax, Location { line: 1, column: 0 }, "x");
    pod.repeats_places = true;
    let carets = "\n | has(é.b)\n | ....\u{ff3e}";
    let deployment =
        format!("apps/v1, Kind=Deployment: ERROR: <input>:1:5: undefined field 'b'{carets}\n");
    let without =
        "/v1, Kind=Pod: ERROR: <input>:1:1: x\nWARNING: <input>:1:5: undefined field 'b'\n";
    found.kinds.push(pod);
    let written = Warning::from(&found);
    assert_eq!(written.text(), format!("{deployment}\n{without}"));
    // Below the last kind stands what is true of several, and its places again.
    found.notes = vec![
        Note::MoreKinds(3),
        Note::NoWildcardKind {
            n_failing: 2,
            n_all: 2,
        },
    ];
    let with = format!(
        "/v1, Kind=Pod: ERROR: <input>:1:1: x\n | has(é.b)\n | ^\nWARNING: <input>:1:5: undefined field \
         'b'{carets}\nwhat is said of 3 more kinds is left out\nnone of the 2 kinds that the wildcards match \
         can be evaluated so\n"
    );
    let written = Warning::from(&found);
    assert_eq!(written.text(), format!("{deployment}\n{with}"));
}

#[test]
fn small_warnings_are_written_in_full() {
    let given = [
        rendered("spec.validations[0].expression", "text\n"),
        rendered("b", ""),
    ];
    let expect: Vec<ExpressionWarning> = given
        .iter()
        .map(|warning| ExpressionWarning {
            field_ref: warning.field_ref.clone(),
            warning: warning.text(),
        })
        .collect();
    assert_eq!(expression_warnings(&given, MAX_TOTAL_BYTES), expect);
    assert_eq!(expression_warnings(&[], MAX_TOTAL_BYTES), []);
}

#[test]
fn a_long_list_ends_with_a_count() {
    let given: Vec<Warning> = (0..1000)
        .map(|n| rendered(&format!("f{n}"), &"x".repeat(1000)))
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
    let long = Warning {
        parts: (0..200).map(part).collect(),
        ..rendered("f", "")
    };
    let kept = expression_warnings(&[long], MAX_TOTAL_BYTES);
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
    let kept = expression_warnings(&[rendered("f", &"é".repeat(1_000_000))], MAX_TOTAL_BYTES);
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
            deployment(),
            "undefined field 'a:b'\nmore",
            " (undefined field 'a:b' on apps/v1 Deployment)",
        ),
        (Gvk::new("", "v1", "Pod"), "x", " (x on v1 Pod)"),
    ];
    for (gvk, message, why) in table {
        let mut found = warning("spec.validations[0].expression", message);
        found.kinds[0].gvk = gvk;
        let facts = Facts::sound().with(|facts| facts.types.findings = vec![found]);
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
