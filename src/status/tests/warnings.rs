use super::*;
use crate::policy::finding::Note;
use crate::status::warnings::{MAX_TOTAL_BYTES, Warning, budget_bytes, expression_warnings};

/// Returns a warning with one part.
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
fn warning_text_equals_upstream_format() {
    let mut finding = warning("f", "undefined field 'b'");
    let mut pod = finding.kinds[0].clone();
    pod.gvk = Gvk::new("", "v1", "Pod");
    std::mem::swap(&mut pod.errors, &mut pod.warnings);
    pod.errors
        .report(Code::Syntax, Location { line: 1, column: 0 }, "x");
    pod.repeats_locations = true;
    let carets = "\n | has(é.b)\n | ....\u{ff3e}";
    let deployment =
        format!("apps/v1, Kind=Deployment: ERROR: <input>:1:5: undefined field 'b'{carets}\n");
    let without =
        "/v1, Kind=Pod: ERROR: <input>:1:1: x\nWARNING: <input>:1:5: undefined field 'b'\n";
    finding.kinds.push(pod);
    let written = Warning::from(&finding);
    assert_eq!(written.text(), format!("{deployment}\n{without}"));
    // With notes, the message about the last kind ends with source excerpts. The notes follow.
    finding.notes = vec![
        Note::MoreKinds(3),
        Note::NoWildcardKind {
            n_failing: 2,
            n_all: 2,
        },
    ];
    let with = format!(
        "/v1, Kind=Pod: ERROR: <input>:1:1: x\n | has(é.b)\n | ^\nWARNING: <input>:1:5: undefined field \
         'b'{carets}\nfindings for 3 more kinds are omitted\nthe evaluation fails for all 2 kinds that the \
         wildcards match\n"
    );
    let written = Warning::from(&finding);
    assert_eq!(written.text(), format!("{deployment}\n{with}"));
}

#[test]
fn expression_warnings_below_limit_are_complete() {
    let input = [
        rendered("spec.validations[0].expression", "text\n"),
        rendered("b", ""),
    ];
    let expect: Vec<ExpressionWarning> = input
        .iter()
        .map(|warning| ExpressionWarning {
            field_ref: warning.field_ref.clone(),
            warning: warning.text(),
        })
        .collect();
    assert_eq!(expression_warnings(&input, MAX_TOTAL_BYTES), expect);
    assert_eq!(expression_warnings(&[], MAX_TOTAL_BYTES), []);
}

#[test]
fn long_list_of_expression_warnings_ends_with_count() {
    let input: Vec<Warning> = (0..1000)
        .map(|n| rendered(&format!("f{n}"), &"x".repeat(1000)))
        .collect();
    let included = expression_warnings(&input, MAX_TOTAL_BYTES);
    let (last, shown) = included.split_last().unwrap();
    assert_eq!(
        last.warning,
        format!(
            "{} more expression warnings omitted (status size limit)",
            1000 - shown.len()
        )
    );
    assert!(shown.len() > 200);
    let bytes: usize = included
        .iter()
        .map(|w| w.field_ref.len() + w.warning.len())
        .sum();
    assert!(bytes <= MAX_TOTAL_BYTES);
}

#[test]
fn long_expression_warning_omits_whole_kinds() {
    let part = |n: usize| format!("apps/v1, Kind=Kind{n:03}: ERROR: {}\n", "x".repeat(1000));
    let long = Warning {
        parts: (0..200).map(part).collect(),
        ..rendered("f", "")
    };
    let included = expression_warnings(&[long], MAX_TOTAL_BYTES);
    let [only] = included.as_slice() else {
        panic!("one warning")
    };
    let n_shown = only.warning.matches("Kind=").count();
    assert!((40..200).contains(&n_shown), "{n_shown}");
    assert!(only.warning.starts_with(&part(0)));
    let end = format!(
        "\n{} more kinds omitted (status size limit)\n",
        200 - n_shown
    );
    assert!(only.warning.ends_with(&end), "{}", only.warning);
    assert!(only.warning.len() <= 64 * 1024);
}

#[test]
fn huge_part_of_expression_warning_is_truncated() {
    let included = expression_warnings(&[rendered("f", &"é".repeat(1_000_000))], MAX_TOTAL_BYTES);
    let [only] = included.as_slice() else {
        panic!("one warning")
    };
    assert!(only.warning.len() <= 64 * 1024);
    assert!(
        only.warning
            .ends_with("…\n\nthe rest of this warning is omitted (status size limit)\n")
    );
}

#[test]
fn warning_budget_shrinks_with_size_of_policy() {
    let with_bytes = |n: usize| {
        let mut facts = Facts::sound();
        facts.policy.validations = vec![Validation {
            expression: "x".repeat(n),
            ..Validation::default()
        }];
        budget_bytes(Some(&facts.policy))
    };
    assert_eq!(with_bytes(1000), MAX_TOTAL_BYTES);
    assert_eq!(with_bytes(600 * 1024), 80 * 1024);
    assert_eq!(with_bytes(1400 * 1024), 4 * 1024);
}

#[test]
fn type_checked_message_has_first_finding() {
    let table = [
        (
            deployment(),
            "undefined field 'a:b'\nmore",
            " (undefined field 'a:b' on apps/v1 Deployment)",
        ),
        (Gvk::new("", "v1", "Pod"), "x", " (x on v1 Pod)"),
    ];
    for (gvk, message, why) in table {
        let mut findings = warning("spec.validations[0].expression", message);
        findings.kinds[0].gvk = gvk;
        let facts = Facts::sound().with(|facts| facts.types.findings = vec![findings]);
        let expect = format!(
            "spec.validations[0].expression may fail when evaluated{why}; with failurePolicy Fail, a request that \
             reaches the expression is denied; 1 kind checked"
        );
        check(
            &facts,
            ConditionType::TypeChecked,
            "False ExpressionWarnings",
            &expect,
        );
    }
}
