//! Renders results in the JUnit format, which CI systems read.
//!
//! Source: the schema of Jenkins' xUnit plugin, `junit-10.xsd`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::report::{CaseReport, ProbeReport, TestReport};
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::check::report::CheckReport;
use crate::cli::text::clean;
use crate::probe::api::CaseOutcome;

/// The name of the suite with the problems of the input.
const INPUT: &str = "input";

/// Renders a suite for each probe, and one for the problems of the input.
///
/// A case that could not be evaluated is an error. If durations were not measured, the output depends only on the input.
#[must_use]
pub fn xml(report: &TestReport) -> String {
    let summary = &report.summary;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"kubectl vap test\" tests=\"{}\" failures=\"{}\" errors=\"{}\"{}>",
        summary.cases + summary.errors,
        summary.failed,
        summary.pending + summary.errors,
        time(
            report
                .probes
                .iter()
                .filter_map(|probe| probe.seconds)
                .reduce(|a, b| a + b)
        )
    );
    if summary.errors > 0 {
        let n = summary.errors;
        let _ = writeln!(
            out,
            "  <testsuite name=\"{INPUT}\" tests=\"{n}\" failures=\"0\" errors=\"{n}\">"
        );
        let errors = report.findings.iter();
        for found in errors.filter(|found| found.severity == Severity::Error) {
            finding(&mut out, found, "error");
        }
        out.push_str("  </testsuite>\n");
    }
    for probe in &report.probes {
        suite(&mut out, probe);
    }
    out.push_str("</testsuites>\n");
    out
}

/// Renders the findings of a check: a suite for each file with findings. Notes are not failures.
#[must_use]
pub fn check_xml(report: &CheckReport) -> String {
    let counted = |finding: &&Finding| finding.severity < Severity::Note;
    let mut by_file: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for found in report.findings.iter().filter(counted) {
        by_file.entry(&found.location.file).or_default().push(found);
    }
    let n_policies = report.policies.len();
    let n = report.findings.iter().filter(counted).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"kubectl vap check\" tests=\"{}\" failures=\"{n}\" errors=\"0\">",
        n + n_policies
    );
    for (file, findings) in by_file {
        let n = findings.len();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{n}\" failures=\"{n}\" errors=\"0\">",
            escaped(file)
        );
        for found in findings {
            finding(&mut out, found, "failure");
        }
        out.push_str("  </testsuite>\n");
    }
    // A report without test cases counts as an error in some CI systems.
    let _ = writeln!(
        out,
        "  <testsuite name=\"policies\" tests=\"{n_policies}\" failures=\"0\" errors=\"0\">"
    );
    for policy in &report.policies {
        let _ = writeln!(
            out,
            "    <testcase classname=\"policies\" name=\"{} is checked\" file=\"{}\" line=\"{}\"/>",
            escaped(&policy.name),
            escaped(&policy.file),
            policy.line
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn suite(out: &mut String, probe: &ProbeReport) {
    let n = |outcome| {
        let cases = probe.cases.iter();
        cases.filter(|case| case.outcome == outcome).count()
    };
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" file=\"{}\"{}>",
        escaped(&probe.name),
        probe.cases.len(),
        n(CaseOutcome::Failed),
        n(CaseOutcome::Pending),
        escaped(&probe.file),
        time(probe.seconds)
    );
    for one in &probe.cases {
        case(out, probe, one);
    }
    out.push_str("  </testsuite>\n");
}

fn case(out: &mut String, probe: &ProbeReport, case: &CaseReport) {
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\"{}",
        escaped(&format!("{}.{}", probe.id, probe.name)),
        escaped(&case.name),
        escaped(&probe.file),
        case.line,
        time(case.seconds)
    );
    let element = match case.outcome {
        CaseOutcome::Passed => {
            out.push_str("/>\n");
            return;
        }
        CaseOutcome::Failed => "failure",
        CaseOutcome::Pending => "error",
    };
    let difference = case.difference.as_deref().unwrap_or_default();
    problem(out, element, case.outcome.as_str(), difference, &{
        let mut text = difference.to_owned();
        if let Some(diff) = &case.diff {
            let _ = write!(text, "\n{}", diff.trim_end());
        }
        if let (Some(decision), Some(why)) = (case.decision, &case.explanation) {
            let _ = write!(text, "\ndecided: {decision}: {why}");
        }
        if let Some(cost) = case.cost_used {
            let _ = write!(text, "\ncost: {cost}");
        }
        text.push_str(&case.decisive_traces());
        let _ = write!(text, "\n{}:{}", probe.file, case.line);
        text
    });
}

/// Returns the attribute `time`, in seconds. Empty if the duration was not measured.
fn time(seconds: Option<f64>) -> String {
    let text = seconds.map(|seconds| format!(" time=\"{seconds:.6}\""));
    text.unwrap_or_default()
}

fn finding(out: &mut String, found: &Finding, element: &str) {
    let location = &found.location;
    let place = location.place;
    let line = place.map(|place| format!(" line=\"{}\"", place.line));
    let position = place.map(|place| format!(":{}:{}", place.line, place.column));
    let name = format!("{}{}", location.file, position.unwrap_or_default());
    let _ = write!(
        out,
        "    <testcase classname=\"{INPUT}\" name=\"{}\" file=\"{}\"{}",
        escaped(&name),
        escaped(&location.file),
        line.unwrap_or_default()
    );
    let severity = found.severity.as_str();
    let mut text = format!("{severity}: {}\n{name}", found.message);
    if let Some(help) = &found.help {
        let _ = write!(text, "\nhelp: {help}");
    }
    let message = format!("{severity}: {}", found.message);
    problem(out, element, found.rule.id(), &message, &text);
}

fn problem(out: &mut String, element: &str, type_: &str, message: &str, text: &str) {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    let _ = writeln!(
        out,
        ">\n      <{element} type=\"{}\" message=\"{}\">{}</{element}>\n    </testcase>",
        escaped(type_),
        escaped(message),
        lines.join("\n")
    );
}

/// Returns the string as one line. Characters that XML interprets or forbids are escaped or replaced.
///
/// Source: W3C, "Extensible Markup Language (XML) 1.0", productions `Char`, `AttValue`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in clean(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_replaces_markup_and_control_characters() {
        assert_eq!(
            escaped("a<b> & \"c\" 'd' ]]>\u{0}\u{1b}[m\n\u{ffff}"),
            "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos; ]]&gt;␀␛[m \u{fffd}"
        );
    }
}
