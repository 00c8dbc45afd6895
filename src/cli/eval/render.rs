//! Renders the decisions of policies for a request as text.

use std::fmt::Write as _;

use super::ad_hoc::ExpressionReport;
use super::report::{
    EvalReport, EvaluationReport, MutationReport, PolicyEval, RequestReport, Verdict,
};
use crate::cli::check::finding::Severity;
use crate::cli::check::render::{
    BOLD, RED, YELLOW, painted, policies, write_finding, write_location, write_wrapped,
};
use crate::cli::terminal::Terminal;
use crate::cli::test::render::{GREEN, diff, render_trace};
use crate::cli::text::{clean, wrap};
use crate::policy::rule::Rule;

/// The indentation of the details of a policy.
const INDENT: &str = "           ";

/// Renders the problems, the request, the policies that match, and the summary. `is_verbose` adds policies that do not
/// match, and the values of all subexpressions.
#[must_use]
pub fn text(report: &EvalReport, terminal: Terminal, is_verbose: bool) -> String {
    let mut out = String::new();
    for found in &report.findings {
        let is_hint = found.severity == Severity::Warning || found.rule == Rule::ClusterReadFailed;
        if found.severity == Severity::Error || is_hint || is_verbose {
            write_finding(&mut out, found, terminal);
            out.push('\n');
        }
    }
    if let Some(request) = &report.request {
        render_request(&mut out, request, terminal);
    }
    for policy in &report.policies {
        if is_verbose || !matches!(policy.verdict, Verdict::NotMatched) {
            render_policy(&mut out, policy, terminal, is_verbose);
        }
    }
    let has_validating = report.policies.iter().any(|policy| policy.kind.is_none());
    if let Some(why) = &report.not_mutated {
        let _ = writeln!(
            out,
            "{}: {}\n",
            painted("the mutated object is unknown", YELLOW, terminal),
            clean(why)
        );
    } else if report.mutated.is_some() && has_validating {
        let _ = writeln!(
            out,
            "validating policies were evaluated for the mutated object\n"
        );
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

fn render_request(out: &mut String, request: &RequestReport, terminal: Terminal) {
    let name = [request.namespace.as_str(), request.name.as_str()];
    let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
    let line = format!(
        "{} {} {} {} by {}",
        request.operation,
        request.api_version,
        request.resource,
        name.join("/"),
        request.user
    );
    let _ = writeln!(out, "{}\n", painted(&clean(&line), BOLD, terminal));
}

/// Renders the problems, the request, and each expression with its value or error. `is_verbose` adds the values of the
/// subexpressions.
#[must_use]
pub fn expressions(report: &ExpressionReport, terminal: Terminal, is_verbose: bool) -> String {
    let mut out = String::new();
    for found in &report.findings {
        if found.severity == Severity::Error || found.rule == Rule::ClusterReadFailed {
            write_finding(&mut out, found, terminal);
            out.push('\n');
        }
    }
    render_request(&mut out, &report.request, terminal);
    let max = terminal.width.unwrap_or(usize::MAX);
    for (n, eval) in report.expressions.iter().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let expression: Vec<String> = eval.expression.lines().map(clean).collect();
        let _ = writeln!(out, "{}", painted(&expression.join("\n"), BOLD, terminal));
        for found in &eval.findings {
            write_finding(&mut out, found, terminal);
        }
        for value in &eval.values {
            write_wrapped(&mut out, &format!("= {value}"), "  ", terminal);
        }
        if let Some(error) = &eval.error {
            let head = painted("error", RED, terminal);
            let message = wrap(
                &clean(&error.message),
                max.saturating_sub(7),
                usize::MAX,
                "  ",
            );
            let _ = writeln!(out, "{head}: {}", message.join("\n"));
            write_location(&mut out, &error.location, (true, RED), "", terminal);
        }
        if let Some(why) = &eval.not_evaluated {
            write_wrapped(&mut out, &format!("not evaluated: {why}"), "  ", terminal);
        }
        if is_verbose && let Some(trace) = &eval.trace {
            render_trace(&mut out, trace, "  ", max.saturating_sub(2).max(20));
        }
    }
    out
}

fn render_policy(out: &mut String, policy: &PolicyEval, terminal: Terminal, is_verbose: bool) {
    let (word, color) = match policy.verdict {
        Verdict::Mutated => ("mutates", GREEN),
        Verdict::Unchanged => ("unchanged", GREEN),
        Verdict::Denied => ("DENIED", RED),
        Verdict::Allowed => ("allowed", GREEN),
        Verdict::Excluded | Verdict::NotMatched | Verdict::NotBound => ("skipped", BOLD),
        Verdict::Unknown => ("UNKNOWN", YELLOW),
        Verdict::Rejected => ("REJECTED", YELLOW),
    };
    let padding = " ".repeat(INDENT.len().saturating_sub(word.len()));
    let word = painted(word, color, terminal);
    let (name, file) = (clean(&policy.name), clean(&policy.file));
    let _ = writeln!(out, "{word}{padding}{name} ({file}:{})", policy.line);
    let max = terminal.width.unwrap_or(usize::MAX);
    let room = max.saturating_sub(INDENT.len()).max(20);
    let mut lines = vec![policy.why.clone()];
    if policy.verdict == Verdict::Denied {
        let reason = policy.reason.as_deref().unwrap_or_default();
        lines.push(format!(
            "reason: {reason} ({})",
            policy.code.unwrap_or_default()
        ));
    }
    let is_asked = matches!(
        policy.verdict,
        Verdict::Denied
            | Verdict::Allowed
            | Verdict::Excluded
            | Verdict::Mutated
            | Verdict::Unchanged
    );
    let is_mutating = policy.kind.is_some();
    if policy.is_binding_implied && is_asked {
        let action = if is_mutating {
            ""
        } else {
            " with the action Deny"
        };
        lines.push(format!(
            "no binding is known: evaluated as if bound to all resources{action}"
        ));
    }
    for binding in &policy.bindings {
        let does = match (&binding.error, binding.matches) {
            (Some(error), _) => format!("error: {error}"),
            (None, true) if is_mutating => "matches".to_owned(),
            (None, true) => binding.validation_actions.join(", "),
            (None, false) => "does not match".to_owned(),
        };
        if !policy.is_binding_implied {
            lines.push(format!("binding {}: {does}", binding.name));
        }
    }
    for evaluation in &policy.evaluations {
        lines.extend(evaluation_lines(evaluation, policy.evaluations.len() > 1));
    }
    lines.extend(policy.mutations.iter().map(mutation_line));
    // Error messages that are already part of a line are not repeated.
    let is_shown = |error: &&String| {
        lines
            .iter()
            .any(|line: &String| line.contains(error.as_str()))
    };
    let errors: Vec<_> = policy
        .errors
        .iter()
        .filter(|error| !is_shown(error))
        .collect();
    lines.extend(errors.into_iter().map(|error| format!("error: {error}")));
    lines.extend(
        policy
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}")),
    );
    let annotations = policy.audit_annotations.iter();
    lines.extend(annotations.map(|(key, value)| format!("audit: {key}: {value}")));
    if is_asked {
        lines.push(format!("cost: {}", policy.cost_used));
    }
    for text in lines {
        for line in wrap(&clean(&text), room, usize::MAX, "  ") {
            let _ = writeln!(out, "{INDENT}{line}");
        }
    }
    if let Some(mutated) = &policy.mutated {
        diff(out, &mutated.change, INDENT, terminal);
    }
    for trace in &policy.trace {
        if trace.decides || is_verbose {
            render_trace(out, trace, INDENT, room);
        }
    }
    out.push('\n');
}

fn mutation_line(mutation: &MutationReport) -> String {
    let params = mutation.params.as_deref();
    let params = params.map(|params| format!(", params {params}"));
    let again = if mutation.is_reinvocation {
        ", reinvoked"
    } else {
        ""
    };
    let message = match mutation.message.as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!(
        "{} (binding {}{}{again}): {}{message}",
        mutation.field_ref,
        mutation.binding,
        params.unwrap_or_default(),
        mutation.result
    )
}

/// Renders the expressions of an evaluation, one per line.
fn evaluation_lines(evaluation: &EvaluationReport, is_one_of_many: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_one_of_many || evaluation.params.is_some() {
        let params = evaluation
            .params
            .as_deref()
            .map(|params| format!(", params {params}"));
        lines.push(format!(
            "under binding {}{}:",
            evaluation.binding,
            params.unwrap_or_default()
        ));
    }
    for expression in evaluation
        .match_conditions
        .iter()
        .chain(&evaluation.validations)
    {
        let name = expression.name.as_deref().map(|name| format!(" `{name}`"));
        let message = match expression.message.as_str() {
            "" => String::new(),
            message => format!(": {message}"),
        };
        lines.push(format!(
            "{}{}: {}{message}",
            expression.field_ref.trim_end_matches(".expression"),
            name.unwrap_or_default(),
            expression.result
        ));
    }
    lines
}

/// Renders the last line: the decision, and the number of policies by result.
fn summary(report: &EvalReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    let (word, color) = match report.decision {
        "Deny" => ("denied", RED),
        "Allow" => ("allowed", GREEN),
        _ => ("unknown", YELLOW),
    };
    if summary.passed_over > 0 && summary.passed_over == summary.policies {
        return format!(
            "{}: no policy applies to the request for Kubernetes {} ({} skipped)",
            painted(word, color, terminal),
            report.kubernetes,
            summary.passed_over
        );
    }
    let parts = [
        (summary.mutated, "mutated by"),
        (summary.denied, "denied by"),
        (summary.allowed, "allowed by"),
        (summary.passed_over, "skipped by"),
        (summary.unknown, "not evaluated by"),
    ];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, what)| format!("{what} {n}")).collect();
    let counts = match parts.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    };
    format!(
        "{}: {} evaluated for Kubernetes {}{counts}",
        painted(word, color, terminal),
        policies(summary.policies),
        report.kubernetes
    )
}
