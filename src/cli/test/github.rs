//! Results of cases as annotations of GitHub Actions: what did not pass, at its place.
//!
//! Source: GitHub's documentation, "Workflow commands for GitHub Actions", `error` and `warning`.

use std::fmt::Write as _;

use super::report::{CaseReport, ProbeReport, TestReport};
use crate::cli::check::finding::Severity;
use crate::cli::text::clean;
use crate::probe::api::CaseOutcome;

/// An annotation for each error of the input and each case that did not pass, and the counts.
#[must_use]
pub fn annotations(report: &TestReport) -> String {
    let mut out = String::new();
    for found in &report.findings {
        if found.severity != Severity::Error {
            continue;
        }
        let place = found.location.place;
        let place = place.map(|place| (place.line, place.column));
        let mut text = found.message.clone();
        if let Some(help) = &found.help {
            let _ = write!(text, "\n{help}");
        }
        command(
            &mut out,
            (&found.location.file, place),
            found.rule.id(),
            &text,
        );
    }
    for probe in &report.probes {
        for case in &probe.cases {
            if case.outcome != CaseOutcome::Passed {
                of_case(&mut out, probe, case);
            }
        }
    }
    let summary = &report.summary;
    let _ = writeln!(
        out,
        "{} cases: {} passed, {} failed, {} could not be evaluated, {} errors",
        summary.cases, summary.passed, summary.failed, summary.pending, summary.errors
    );
    out
}

fn of_case(out: &mut String, probe: &ProbeReport, case: &CaseReport) {
    let mut text = case.difference.clone().unwrap_or_default();
    for trace in case.trace.iter().filter(|trace| trace.decides) {
        let _ = write!(
            text,
            "\ndecided by {} ({}:{}:{})",
            trace.field_ref, trace.file, trace.line, trace.column
        );
        for part in &trace.parts {
            let indent = "  ".repeat(part.depth + 1);
            let _ = write!(text, "\n{indent}{} = {}", part.text, part.shown());
        }
    }
    let title = format!("{}: {}", probe.name, case.name);
    let invalid = case.invalid.first();
    let place = invalid.map_or((case.line, 1), |invalid| (invalid.line, invalid.column));
    command(out, (&probe.file, Some(place)), &title, &text);
}

fn command(
    out: &mut String,
    (file, place): (&str, Option<(usize, usize)>),
    title: &str,
    text: &str,
) {
    let at = place.map(|(line, column)| format!(",line={line},col={column}"));
    let lines: Vec<String> = text.lines().map(|line| data(&clean(line))).collect();
    let _ = writeln!(
        out,
        "::error file={}{},title={}::{}",
        property(file),
        at.unwrap_or_default(),
        property(title),
        lines.join("%0A")
    );
}

/// A message, with what ends it escaped.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property, with what ends it escaped.
fn property(text: &str) -> String {
    data(&clean(text)).replace(':', "%3A").replace(',', "%2C")
}
