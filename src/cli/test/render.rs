//! Renders the results of cases as text.

use std::fmt::Write as _;

use super::coverage;
use super::mutants;
use super::report::{CaseReport, ProbeReport, TestReport};
use super::trace::{Trace, not_shown_line};
use crate::cli::check::finding::Severity;
use crate::cli::check::render::{BLUE, BOLD, RED, YELLOW, count, painted, write_finding};
use crate::cli::terminal::Terminal;
use crate::cli::text::{clean, wrap};
use crate::policy::rule::Rule;
use crate::probe::api::CaseOutcome;
use crate::probe::run::invalid_message;

pub(in crate::cli) const GREEN: &str = "1;32";

/// The indentation of the names of cases, and of their details.
const INDENT: &str = "           ";

/// Renders the problems with the input, the cases by probe, and the summary. `is_verbose` adds the decision and the
/// cost of each case.
#[must_use]
pub fn text(report: &TestReport, terminal: Terminal, is_verbose: bool) -> String {
    let mut out = String::new();
    for found in &report.findings {
        if found.severity == Severity::Error || found.rule == Rule::NoCrds || is_verbose {
            write_finding(&mut out, found, terminal);
            out.push('\n');
        }
    }
    for probe in &report.probes {
        head(&mut out, probe, terminal);
        for case in &probe.cases {
            render(&mut out, probe, case, terminal, is_verbose);
        }
        out.push('\n');
    }
    for target in &report.not_measured {
        let _ = writeln!(
            out,
            "not measured: {}, because it is not a validating policy",
            clean(target)
        );
    }
    let has_policies = |n: usize| n > 0 || report.not_measured.is_empty();
    if let Some(coverage) = report.coverage.as_ref().filter(|it| has_policies(it.len())) {
        out.push_str(&coverage::text(coverage));
        out.push('\n');
    }
    let n_changed = |it: &mutants::MutantReport| it.total + it.equivalent + it.skipped.len();
    let mutants = report.mutants.as_ref();
    if let Some(mutants) = mutants.filter(|it| has_policies(n_changed(it))) {
        out.push_str(&mutants::text(mutants));
        out.push('\n');
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

fn head(out: &mut String, probe: &ProbeReport, terminal: Terminal) {
    let name = painted(&clean(&probe.name), BOLD, terminal);
    let file = clean(&probe.file);
    let subject = match &probe.target {
        None => format!("policy {}", clean(&probe.policy)),
        Some(target) => clean(&target.to_string()),
    };
    let duration = duration(probe.seconds);
    let _ = writeln!(out, "{name} ({subject}, {file}:{}){duration}", probe.line);
    if let Some(why) = &probe.rejection {
        let kind = probe
            .target
            .as_ref()
            .map_or("policy", |target| &target.kind);
        let text = format!("the API server rejects the {kind}: {why}");
        let room = terminal
            .width
            .unwrap_or(usize::MAX)
            .saturating_sub(2)
            .max(20);
        for line in wrap(&clean(&text), room, usize::MAX, "  ") {
            let _ = writeln!(out, "  {line}");
        }
    }
}

fn render(
    out: &mut String,
    probe: &ProbeReport,
    case: &CaseReport,
    terminal: Terminal,
    is_verbose: bool,
) {
    let (word, color) = match case.outcome {
        CaseOutcome::Passed => ("ok", GREEN),
        CaseOutcome::Failed => ("FAILED", RED),
        CaseOutcome::Pending => ("PENDING", YELLOW),
    };
    let padding = " ".repeat(INDENT.len().saturating_sub(word.len() + 2));
    let word = painted(word, color, terminal);
    let duration = duration(case.seconds);
    let _ = writeln!(out, "  {word}{padding}{}{duration}", clean(&case.name));
    let mut lines: Vec<String> = Vec::new();
    if case.outcome != CaseOutcome::Passed {
        if probe.rejection.is_some() {
            // The rejection is printed once for the whole probe, not for each case.
        } else if case.invalid.is_empty() {
            let difference = case.difference.iter();
            lines.extend(difference.flat_map(|it| it.lines()).map(str::to_owned));
        } else {
            let fields = case.invalid.iter().map(|invalid| &*invalid.field);
            lines.push(invalid_message(fields).to_owned());
        }
    }
    if is_verbose {
        match (case.decision, &case.explanation) {
            (Some(decision), Some(why)) => lines.push(format!("decided: {decision}: {why}")),
            (None, Some(why)) => lines.push(why.clone()),
            (_, None) => {}
        }
        lines.extend(case.reason.iter().map(|reason| format!("reason: {reason}")));
        let errors = case.errors.iter();
        let errors = errors.filter(|error| case.explanation.as_ref() != Some(error));
        lines.extend(errors.map(|error| format!("error: {error}")));
        let warnings = case.warnings.iter();
        lines.extend(warnings.map(|warning| format!("warning: {warning}")));
        let annotations = case.audit_annotations.iter();
        lines.extend(annotations.map(|(key, value)| format!("audit: {key}: {value}")));
        lines.extend(case.cost_used.map(|cost| format!("cost: {cost}")));
    }
    let max = terminal.width.unwrap_or(usize::MAX);
    let room = max.saturating_sub(INDENT.len()).max(20);
    for text in lines {
        for line in wrap(&clean(&text), room, usize::MAX, "  ") {
            let _ = writeln!(out, "{INDENT}{line}");
        }
    }
    for invalid in &case.invalid {
        let text = format!("{}: {}", invalid.field, invalid.message);
        for line in wrap(&clean(&text), room, usize::MAX, "  ") {
            let _ = writeln!(out, "{INDENT}{line}");
        }
        let arrow = painted("-->", BLUE, terminal);
        let file = clean(&probe.file);
        let _ = writeln!(
            out,
            "{INDENT}{arrow} {file}:{}:{}",
            invalid.line, invalid.column
        );
    }
    let shown = case.diff.as_ref();
    let shown = shown.or(case.change.as_ref().filter(|_| is_verbose));
    if let Some(shown) = shown {
        diff(out, shown, INDENT, terminal);
    }
    if is_verbose || case.outcome == CaseOutcome::Failed {
        for trace in &case.trace {
            render_trace(out, trace, INDENT, room);
        }
        for line in not_shown_line(&case.not_traced)
            .iter()
            .flat_map(|more| wrap(more, room, usize::MAX, "  "))
        {
            let _ = writeln!(out, "{INDENT}{line}");
        }
    }
    if case.outcome != CaseOutcome::Passed && case.invalid.is_empty() {
        let arrow = painted("-->", BLUE, terminal);
        let file = clean(&probe.file);
        let _ = writeln!(out, "{INDENT}{arrow} {file}:{}:{}", case.line, case.column);
    }
}

/// Renders a duration in milliseconds, with a space before it. Empty if the duration was not measured.
fn duration(seconds: Option<f64>) -> String {
    let text = seconds.map(|seconds| format!(" ({:.1} ms)", seconds * 1000.0));
    text.unwrap_or_default()
}

/// Renders a unified diff with colors.
pub(in crate::cli) fn diff(out: &mut String, diff: &str, indent: &str, terminal: Terminal) {
    for line in diff.lines() {
        let line = clean(line);
        let line = match line.chars().next() {
            Some('-') => painted(&line, RED, terminal),
            Some('+') => painted(&line, GREEN, terminal),
            _ => line,
        };
        let _ = writeln!(out, "{indent}{line}");
    }
}

/// Renders an expression and its subexpressions, with their values.
pub(in crate::cli) fn render_trace(out: &mut String, trace: &Trace, margin: &str, room: usize) {
    for line in wrap(&clean(&trace.head()), room, usize::MAX, "  ") {
        let _ = writeln!(out, "{margin}{line}");
    }
    for part in &trace.shown_parts() {
        let indent = "  ".repeat(part.depth.min(8) + 1);
        let text = format!(
            "{} = {} (cost {})",
            clean(&part.text),
            clean(&part.shown()),
            part.cost
        );
        let room = room.saturating_sub(indent.len()).max(20);
        for line in wrap(&text, room, usize::MAX, "  ") {
            let _ = writeln!(out, "{margin}{indent}{line}");
        }
    }
    for line in trace
        .more()
        .iter()
        .flat_map(|more| wrap(more, room, usize::MAX, "  "))
    {
        let _ = writeln!(out, "{margin}  {line}");
    }
    if let Some(changes) = &trace.changes {
        for line in wrap(&clean(&changes.shown()), room, usize::MAX, "  ") {
            let _ = writeln!(out, "{margin}{line}");
        }
    }
}

/// Renders the last line: the number of cases, and the results.
fn summary(report: &TestReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    let counts: Vec<String> = [
        (summary.failed, format!("{} failed", summary.failed), RED),
        (
            summary.pending,
            format!("{} could not be evaluated", summary.pending),
            YELLOW,
        ),
        (summary.passed, format!("{} passed", summary.passed), GREEN),
        (summary.errors, count(summary.errors, "error"), RED),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(_, text, color)| painted(&text, color, terminal))
    .collect();
    let result = if counts.is_empty() {
        "nothing tested".to_owned()
    } else {
        counts.join(", ")
    };
    let cases = match summary.not_selected {
        0 => count(summary.cases, "case"),
        n => format!("{} of {}", summary.cases, count(summary.cases + n, "case")),
    };
    format!(
        "{cases} of {} in {} tested for Kubernetes {}: {result}",
        count(summary.probes, "probe"),
        count(summary.files, "file"),
        report.kubernetes
    )
}
