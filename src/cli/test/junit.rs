//! Renders results in the JUnit format, which CI systems read.
//!
//! Source: the schema of Jenkins' xUnit plugin, `junit-10.xsd`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::report::{CaseReport, ProbeReport, TestReport};
use crate::cli::check::finding::{Finding, Owner, Severity};
use crate::cli::check::report::{CheckReport, PolicyReport};
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
            let name = position(found);
            finding(&mut out, found, (INPUT, &name), "error");
        }
        out.push_str("  </testsuite>\n");
    }
    for probe in &report.probes {
        suite(&mut out, probe);
    }
    out.push_str("</testsuites>\n");
    out
}

/// The test cases of a file: its findings, and its policies without findings.
#[derive(Default)]
struct FileCases<'a> {
    failed: Vec<&'a Finding>,
    passed: Vec<&'a PolicyReport>,
}

/// Renders the results of a check: a suite for each file. Each error or warning is a failed case of its object, and each
/// policy without them is a passed case. Notes are not failures.
///
/// CI systems compare the names of cases between runs. The names therefore contain no line numbers.
#[must_use]
pub fn check_xml(report: &CheckReport) -> String {
    let counted = |finding: &&Finding| finding.severity < Severity::Note;
    let mut by_file: BTreeMap<&str, FileCases<'_>> = BTreeMap::new();
    let mut with_findings = BTreeSet::new();
    for found in report.findings.iter().filter(counted) {
        let file = &*found.location.file;
        by_file.entry(file).or_default().failed.push(found);
        if let Owner::Policy(name) = &found.owner {
            with_findings.insert((file, name.as_str()));
        }
    }
    for policy in &report.policies {
        if !with_findings.contains(&(&*policy.file, &*policy.name)) {
            let cases = by_file.entry(&policy.file).or_default();
            cases.passed.push(policy);
        }
    }
    let n_failed = report.findings.iter().filter(counted).count();
    let n_passed: usize = by_file.values().map(|cases| cases.passed.len()).sum();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"kubectl vap check\" tests=\"{}\" failures=\"{n_failed}\" errors=\"0\">",
        n_failed + n_passed
    );
    for (file, FileCases { failed, passed }) in by_file {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">",
            escaped(file),
            failed.len() + passed.len(),
            failed.len()
        );
        let mut n_of_name: BTreeMap<(String, String), usize> = BTreeMap::new();
        for found in failed {
            let class = class_name(&found.owner);
            let mut name = found.rule.id().to_owned();
            if let Some(field_ref) = &found.field_ref {
                let _ = write!(name, ": {field_ref}");
            }
            let n = n_of_name.entry((class.clone(), name.clone())).or_default();
            *n += 1;
            if *n > 1 {
                let _ = write!(name, " ({n})");
            }
            finding(&mut out, found, (&class, &name), "failure");
        }
        for policy in passed {
            let class = class_name(&Owner::Policy(policy.name.clone()));
            let _ = writeln!(
                out,
                "    <testcase classname=\"{}\" name=\"no errors or warnings\" file=\"{}\" line=\"{}\"/>",
                escaped(&class),
                escaped(&policy.file),
                policy.line
            );
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Returns the class of an object's cases, such as `policy.replica-limit`.
fn class_name(owner: &Owner) -> String {
    match owner.names().next() {
        Some((noun, name)) => format!("{noun}.{name}"),
        None => INPUT.to_owned(),
    }
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

fn position(found: &Finding) -> String {
    let location = &found.location;
    let place = location.place;
    let position = place.map(|place| format!(":{}:{}", place.line, place.column));
    format!("{}{}", location.file, position.unwrap_or_default())
}

/// Renders a finding as a case with this class and name.
fn finding(out: &mut String, found: &Finding, (class, name): (&str, &str), element: &str) {
    let location = &found.location;
    let line = location
        .place
        .map(|place| format!(" line=\"{}\"", place.line));
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\"{}",
        escaped(class),
        escaped(name),
        escaped(&location.file),
        line.unwrap_or_default()
    );
    let severity = found.severity.as_str();
    let mut text = format!("{severity}: {}\n{}", found.message, position(found));
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
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(
            escaped("a<b> & \"c\" 'd' ]]>\u{0}\u{1b}[m\n\u{ffff}"),
            "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos; ]]&gt;␀␛[m \u{fffd}"
        );
    }
}
