//! Renders cases that did not pass as annotations of GitHub Actions.
//!
//! Source: GitHub's documentation, "Workflow commands for GitHub Actions", `error` and `warning`.

use std::fmt::Write as _;

use super::report::{CaseReport, ProbeReport, TestReport};
use crate::cli::check::annotations::MAX_ANNOTATIONS;
use crate::cli::check::finding::Severity;
use crate::cli::text::clean;
use crate::probe::api::CaseOutcome;

/// Renders the counts, and an annotation for each error of the input and for each case that did not pass.
///
/// GitHub shows a limited number of annotations per step. If there are more, the last annotation contains the number of
/// omitted annotations, which are written to the log.
#[must_use]
pub fn annotations(report: &TestReport) -> String {
    let mut all = Vec::new();
    for found in &report.findings {
        if found.severity != Severity::Error {
            continue;
        }
        let place = found.location.place;
        let mut text = found.message.clone();
        if let Some(help) = &found.help {
            let _ = write!(text, "\n{help}");
        }
        all.push(Annotation {
            file: &found.location.file,
            place: place.map(|place| (place.line, place.column)),
            title: found.rule.id().to_owned(),
            text,
        });
    }
    for probe in &report.probes {
        let failed = probe
            .cases
            .iter()
            .filter(|case| case.outcome != CaseOutcome::Passed);
        all.extend(failed.map(|case| case_annotation(probe, case)));
    }
    let n_shown = if all.len() > MAX_ANNOTATIONS {
        MAX_ANNOTATIONS - 1
    } else {
        all.len()
    };
    let (shown, left_out) = all.split_at_checked(n_shown).unwrap_or((&all, &[]));
    let mut out = String::new();
    for annotation in shown {
        annotation.command(&mut out);
    }
    if !left_out.is_empty() {
        let n = left_out.len();
        let _ = writeln!(
            out,
            "::error title=kubectl vap::{n} more errors, which GitHub does not show; see the log"
        );
    }
    for annotation in left_out {
        annotation.line(&mut out);
    }
    let summary = &report.summary;
    let _ = writeln!(
        out,
        "{} cases: {} passed, {} failed, {} could not be evaluated, {} errors",
        summary.cases, summary.passed, summary.failed, summary.pending, summary.errors
    );
    out
}

/// An annotation for an error of the input, or for a case that did not pass.
struct Annotation<'a> {
    file: &'a str,
    place: Option<(usize, usize)>,
    title: String,
    text: String,
}

fn case_annotation<'a>(probe: &'a ProbeReport, case: &CaseReport) -> Annotation<'a> {
    let mut text = case.difference.clone().unwrap_or_default();
    if let Some(diff) = &case.diff {
        let _ = write!(text, "\n{}", diff.trim_end());
    }
    text.push_str(&case.decisive_traces());
    let invalid = case.invalid.first();
    let place = invalid.map_or((case.line, case.column), |invalid| {
        (invalid.line, invalid.column)
    });
    Annotation {
        file: &probe.file,
        place: Some(place),
        title: format!("{}: {}", probe.name, case.name),
        text,
    }
}

impl Annotation<'_> {
    fn command(&self, out: &mut String) {
        let place = self
            .place
            .map(|(line, column)| format!(",line={line},col={column}"));
        let lines: Vec<String> = self.text.lines().map(|line| data(&clean(line))).collect();
        let _ = writeln!(
            out,
            "::error file={}{},title={}::{}",
            property(self.file),
            place.unwrap_or_default(),
            property(&self.title),
            lines.join("%0A")
        );
    }

    /// Writes the annotation as a line of the log. The indentation prevents GitHub from interpreting the line as a
    /// command.
    fn line(&self, out: &mut String) {
        let place = self.place.map(|(line, column)| format!(":{line}:{column}"));
        let first = self.text.lines().next().unwrap_or_default();
        let line = format!(
            "{}{}: {}: {first}",
            self.file,
            place.unwrap_or_default(),
            self.title
        );
        let _ = writeln!(out, "  {}", clean(&line));
    }
}

/// Escapes the message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(&clean(text)).replace(':', "%3A").replace(',', "%2C")
}
