//! Tests the traces and locations in the output of `kubectl vap test` for failing cases.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::path::PathBuf;

use crate::golden::{self, PLAIN};
use vap_status_controller::cli::test::report::{CaseReport, TestReport};
use vap_status_controller::cli::test::{self, Options};

fn report() -> TestReport {
    let options = Options {
        paths: vec![PathBuf::from("tests/cli_test/traces.yaml")],
        ..Options::default()
    };
    test::run(&options, &mut std::io::empty()).unwrap()
}

#[track_caller]
fn case<'a>(report: &'a TestReport, name: &str) -> &'a CaseReport {
    let mut cases = report.probes.iter().flat_map(|probe| &probe.cases);
    cases.find(|case| case.name.ends_with(name)).unwrap()
}

#[test]
fn failing_cases_show_deciding_expression() {
    let report = report();
    let text = test::render::text(&report, PLAIN, false);
    golden::compare("tests/cli_test/traces.txt", &text);
    let annotations = test::github::annotations(&report);
    golden::compare("tests/cli_test/traces.github.txt", &annotations);
    assert_eq!((report.summary.passed, report.summary.failed), (1, 9));
    assert!(text.contains("two  spaces   stay"), "{text}");
}

#[test]
fn trace_shows_element_of_each_level() {
    let report = report();
    let trace = &case(&report, "elements of each level").trace[0];
    let elements: Vec<&str> = trace
        .subexpressions
        .iter()
        .filter_map(|part| part.element.as_deref())
        .collect();
    assert_eq!(
        elements,
        ["object.spec.template.spec.containers[1]", "c.env[1]"]
    );
}

#[test]
fn omitted_alternatives_and_subexpressions_are_counted() {
    let report = report();
    let trace = &case(&report, "more alternatives than are shown").trace[0];
    let changes = trace.changes.as_ref().unwrap();
    assert_eq!((changes.alternatives.len(), changes.more), (3, 2));
    let trace = &case(&report, "more subexpressions than are shown").trace[0];
    assert_eq!(trace.subexpressions.len(), 24);
    assert!(trace.more_subexpressions > 0);
    let last = trace.subexpressions.last().unwrap();
    assert_eq!(
        (last.text.as_str(), last.values[0].as_str()),
        ("object.spec.replicas", "6")
    );
    let trace = &case(&report, "object that is not null").trace[0];
    assert_eq!(
        trace.changes.as_ref().unwrap().alternatives,
        [["object.spec.replicas <= 7 (object.spec.replicas is 8)"]]
    );
}

#[test]
fn table_rows_have_locations() {
    let report = report();
    let text = std::fs::read_to_string("tests/cli_test/traces.yaml").unwrap();
    let at = |line: usize, column: usize| {
        let line = text.lines().nth(line - 1).unwrap();
        line.chars().skip(column - 1).collect::<String>()
    };
    let ways = case(&report, "more alternatives than are shown");
    assert!(at(ways.line, ways.column).starts_with("more alternatives"));
    let fault = &case(&report, "unknown field").invalid[0];
    assert_eq!(at(fault.line, fault.column), "6");
    assert!(at(fault.line, 1).contains("replicaz"));
    assert_eq!(fault.field, "spec.cases[0].rows[4].patch.spec.replicaz");
}

#[test]
fn failing_audit_annotations_are_shown() {
    let report = report();
    for (name, field) in [
        ("another value", "spec.auditAnnotations[0].valueExpression"),
        (
            "annotation fails",
            "spec.auditAnnotations[1].valueExpression",
        ),
    ] {
        let traces = &case(&report, name).trace;
        let fields: Vec<&str> = traces
            .iter()
            .map(|trace| trace.field_ref.as_str())
            .collect();
        assert_eq!(fields, [field], "{name}");
        assert!(traces[0].decides && !traces[0].subexpressions.is_empty());
    }
}

#[test]
fn reason_for_unmatched_request_is_shown() {
    let report = report();
    for (name, part) in [
        (
            "another operation",
            "no rule for the resource has the operation",
        ),
        (
            "another version",
            "no rule for the resource has the version",
        ),
    ] {
        let difference = case(&report, name).difference.as_ref().unwrap();
        assert!(difference.contains(part), "{name}: {difference}");
    }
}
