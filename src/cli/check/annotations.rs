//! Formats findings for code hosts: GitHub workflow commands, GitLab code quality reports and SARIF.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::file_names::Names;
use super::finding::{Finding, Severity};
use super::render::{MAX_REMEDIES, line_list};
use super::report::{CheckReport, Suppressed, SuppressedBy};
use crate::cli::explain;
use crate::cli::input::edit::Edit;
use crate::cli::terminal::Terminal;
use crate::cli::text::clean;
use crate::policy::rule::Rule;

/// Maximum number of annotations of each level that GitHub shows per step.
///
/// Source: GitHub documentation, "Workflow commands for GitHub Actions"; `actions/toolkit`, `docs/problem-matchers.md`,
/// "Limitations".
pub(in crate::cli) const MAX_ANNOTATIONS: usize = 10;

/// Maximum number of results that GitHub stores per file. GitHub rejects a file with more than five times as many.
///
/// Source: GitHub documentation, "SARIF results exceed one or more limits".
pub(in crate::cli) const MAX_RESULTS: usize = 5_000;

/// Formats findings as workflow commands, one per line, which GitHub shows as annotations of a pull request.
///
/// GitHub shows a limited number of annotations of each level. If there are more findings, the last annotation shows
/// the number of omitted findings, which are printed to the log.
///
/// Source: GitHub documentation, "Workflow commands for GitHub Actions", "Setting an error message".
#[must_use]
pub fn github(report: &CheckReport) -> String {
    let mut out = String::new();
    let mut left_out: Vec<&Finding> = Vec::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Note] {
        let of_level = || {
            report
                .findings
                .iter()
                .filter(|finding| finding.severity == severity)
        };
        let n = of_level().count();
        let n_shown = if n > MAX_ANNOTATIONS {
            MAX_ANNOTATIONS - 1
        } else {
            n
        };
        for finding in of_level().take(n_shown) {
            annotation(&mut out, finding);
        }
        if n > n_shown {
            let command = command(severity);
            let (n_more, noun) = (n - n_shown, severity.as_str());
            let _ = writeln!(
                out,
                "::{command} title=kubectl vap::{n_more} more {noun}s than GitHub shows per step; see the log"
            );
            left_out.extend(of_level().skip(n_shown));
        }
    }
    for finding in left_out {
        let location = &finding.location;
        let place = location
            .place
            .map(|place| format!(":{}:{}", place.line, place.column));
        let line = format!(
            "{}{}: {}[{}]: {}",
            location.file,
            place.unwrap_or_default(),
            finding.severity.as_str(),
            finding.rule.id(),
            full_message(finding)
        );
        // The indentation prevents GitHub from interpreting a line that begins with `::` as a command.
        let _ = writeln!(out, "  {}", clean(&line));
    }
    out
}

fn command(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    }
}

fn annotation(out: &mut String, finding: &Finding) {
    let location = &finding.location;
    let command = command(finding.severity);
    let file = location.file.strip_prefix("./").unwrap_or(&location.file);
    let _ = write!(out, "::{command} file={}", property(file));
    if let Some(place) = location.place {
        let end = place.column + location.length;
        let (line, column) = (place.line, place.column);
        let _ = write!(
            out,
            ",line={line},endLine={line},col={column},endColumn={end}"
        );
    }
    let title = format!(
        "{} ({})",
        finding.rule.id(),
        finding.owner.name().unwrap_or("kubectl vap")
    );
    let _ = writeln!(
        out,
        ",title={}::{}",
        property(&title),
        data(&full_message(finding))
    );
}

/// Returns the message of a finding, followed by its kinds and its help.
fn full_message(finding: &Finding) -> String {
    let mut text = finding.message.clone();
    if !finding.kinds.is_empty() {
        let _ = write!(text, " on {}", finding.kinds.join(", "));
    }
    if let Some(help) = &finding.help {
        let _ = write!(text, "; {help}");
    }
    if !finding.also.is_empty() {
        let lines = finding.also.iter().map(|other| other.line.to_string());
        let lines: Vec<String> = lines.collect();
        let _ = write!(text, " (also in lines {})", lines.join(", "));
    }
    for (lines, remedy) in finding.other_remedies().into_iter().take(MAX_REMEDIES) {
        let _ = write!(text, "; in {}: {remedy}", line_list(&lines));
    }
    text
}

/// Formats findings as a GitLab code quality report. All paths, including those in fingerprints, are relative to the
/// root of the repository.
///
/// Source: GitLab documentation, "Code Quality", "Code Quality report format".
#[must_use]
pub fn gitlab(report: &CheckReport) -> Value {
    let mut names = Names::for_repository();
    let issues = report.findings.iter().map(|finding| {
        let severity = match finding.severity {
            Severity::Error => "critical",
            Severity::Warning => "major",
            Severity::Note => "info",
        };
        let file = names.relative(&finding.location.file);
        let line = finding.location.place.map_or(1, |place| place.line);
        json!({
            "description": full_message(finding),
            "check_name": finding.rule.id(),
            "fingerprint": format!("{file}:{}", finding.fingerprint),
            "severity": severity,
            "location": {
                "path": file,
                "lines": {"begin": line},
            },
        })
    });
    issues.collect()
}

fn data(text: &str) -> String {
    // GitHub's log viewer interprets control sequences as a terminal does. Therefore, they are replaced.
    let text: String = text.lines().map(clean).collect::<Vec<_>>().join("\n");
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Formats findings as SARIF 2.1.0, for code scanning.
///
/// Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
#[must_use]
pub fn sarif(report: &CheckReport) -> Value {
    let suppressed = report.suppressed.iter();
    let all = report.findings.iter();
    let all = all.chain(suppressed.clone().map(|of| &of.finding));
    let used: BTreeSet<Rule> = all.map(|finding| finding.rule).collect();
    let rules: Vec<Value> = used.iter().map(|rule| sarif_rule(*rule)).collect();
    let (kept, n_left_out) = most_severe(&report.findings, MAX_RESULTS);
    let room = MAX_RESULTS - kept.len();
    let n_left_out = n_left_out + report.suppressed.len().saturating_sub(room);
    let results = kept.into_iter().map(sarif_result);
    let suppressed = suppressed.take(room).map(sarif_suppressed);
    let results: Vec<Value> = results.chain(suppressed).collect();
    let mut invocation = json!({"executionSuccessful": report.summary.unreadable == 0});
    if n_left_out > 0 {
        let text = format!(
            "{n_left_out} results are left out, the least severe first: GitHub stores {MAX_RESULTS} per file"
        );
        let notifications = json!([{"level": "warning", "message": {"text": text}}]);
        if let Value::Object(fields) = &mut invocation {
            fields.insert("toolExecutionNotifications".to_owned(), notifications);
        }
    }
    sarif_document(&rules, &invocation, &results)
}

/// Returns a SARIF document with one run.
pub(in crate::cli) fn sarif_document(
    rules: &[Value],
    invocation: &Value,
    results: &[Value],
) -> Value {
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kubectl-vap",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": results,
        }],
    })
}

fn sarif_rule(rule: Rule) -> Value {
    let terminal = Terminal {
        width: None,
        color: false,
    };
    let entry = rule.entry();
    json!({
        "id": rule.id(),
        "shortDescription": {"text": rule.summary()},
        "fullDescription": {"text": entry.mend},
        "help": {"text": explain::text(rule, terminal), "markdown": explain::section(rule)},
        "helpUri": help_uri(rule),
    })
}

/// Returns the URL of a rule's documentation.
pub(in crate::cli) fn help_uri(rule: Rule) -> String {
    let repository = env!("CARGO_PKG_REPOSITORY");
    format!("{repository}/blob/main/docs/rules.md#{}", rule.id())
}

/// Returns the `max` most severe findings in their original order, and the number of the remaining findings.
fn most_severe(findings: &[Finding], max: usize) -> (Vec<&Finding>, usize) {
    let mut kept: Vec<(usize, &Finding)> = findings.iter().enumerate().collect();
    kept.sort_by_key(|(n, finding)| (finding.severity, *n));
    kept.truncate(max);
    kept.sort_by_key(|(n, _)| *n);
    let n_left_out = findings.len() - kept.len();
    (
        kept.into_iter().map(|(_, finding)| finding).collect(),
        n_left_out,
    )
}

fn sarif_suppressed(suppressed: &Suppressed) -> Value {
    let kind = match suppressed.by {
        SuppressedBy::Comment => "inSource",
        SuppressedBy::Baseline | SuppressedBy::Level => "external",
    };
    let reason = suppressed.reason.clone();
    let reason = reason.unwrap_or_else(|| suppressed.by.count(1));
    let mut result = sarif_result(&suppressed.finding);
    if let Value::Object(fields) = &mut result {
        let suppression = json!({"kind": kind, "status": "accepted", "justification": reason});
        fields.insert("suppressions".to_owned(), json!([suppression]));
    }
    result
}

fn sarif_result(finding: &Finding) -> Value {
    let mut physical = Map::new();
    physical.insert(
        "artifactLocation".to_owned(),
        json!({"uri": uri(&finding.location.file)}),
    );
    if let Some(place) = finding.location.place {
        let region = json!({
            "startLine": place.line,
            "startColumn": place.column,
            "endColumn": place.column + finding.location.length,
        });
        physical.insert("region".to_owned(), region);
    }
    let mut location = Map::new();
    location.insert("physicalLocation".to_owned(), physical.into());
    if let Some(owner) = finding.owner.name() {
        let name = match &finding.field_ref {
            Some(field_ref) => format!("{owner}: {field_ref}"),
            None => owner.to_owned(),
        };
        location.insert(
            "logicalLocations".to_owned(),
            json!([{"fullyQualifiedName": name}]),
        );
    }
    let mut result = json!({
        "ruleId": finding.rule.id(),
        "level": finding.severity.as_str(),
        "message": {"text": full_message(finding)},
        "locations": [location],
        "partialFingerprints": {"vapFinding/v1": finding.fingerprint},
    });
    if let (Some(edit), Value::Object(fields)) = (&finding.fix, &mut result) {
        fields.insert("fixes".to_owned(), json!([sarif_fix(edit)]));
    }
    result
}

/// Formats the fix of a finding. Byte offsets in the result are relative to the start of the file.
///
/// Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.30, 3.55 to 3.57.
fn sarif_fix(edit: &Edit) -> Value {
    // Byte offsets in SARIF include the byte order mark, but the offsets of the edit do not.
    let n_mark = if edit.source.has_byte_order_mark() {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let start = edit.source.place(edit.bytes.start);
    let end = edit.source.place(edit.bytes.end);
    let region = json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
        "byteOffset": n_mark + edit.bytes.start,
        "byteLength": edit.bytes.len(),
    });
    json!({
        "description": {"text": "the fix that `kubectl vap check --fix` applies"},
        "artifactChanges": [{
            "artifactLocation": {"uri": uri(&edit.source.name)},
            "replacements": [{
                "deletedRegion": region,
                "insertedContent": {"text": edit.text},
            }],
        }],
    })
}

/// Returns a path as a URI. Relative paths stay relative, so that they resolve in the checkout.
pub(in crate::cli) fn uri(file: &str) -> String {
    let mut out = String::new();
    if Path::new(file).is_absolute() {
        out.push_str("file://");
    }
    let file = file.strip_prefix("./").unwrap_or(file);
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::finding::Location;
    use super::*;
    use crate::cli::input::Input;
    use crate::policy::analysis::Profile;

    #[test]
    fn data_with_line_breaks_is_escaped() {
        assert_eq!(data("a\r\n::error::b 5%\u{1b}[m"), "a%0A::error::b 5%25␛[m");
        assert_eq!(property("a,b:c"), "a%2Cb%3Ac");
    }

    #[test]
    fn uri_special_characters_are_escaped() {
        assert_eq!(uri("./a b/é.yaml"), "a%20b/%C3%A9.yaml");
        assert_eq!(uri("/x.yaml"), "file:///x.yaml");
    }

    fn report(counts: [usize; 3]) -> CheckReport {
        let severities = [Severity::Note, Severity::Warning, Severity::Error];
        let mut report = CheckReport::new("1.36", Profile::Truthful, &Input::default());
        for (severity, n) in severities.into_iter().zip(counts) {
            let findings = (0..n).map(|n| {
                let location = Location::from_file("::error::f");
                Finding::new(severity, Rule::NotChecked, format!("{n}"), location)
            });
            report.findings.extend(findings);
        }
        report
    }

    #[test]
    fn github_findings_above_limit_are_plain_log_lines() {
        let all = github(&report([0, 10, 2]));
        assert_eq!(all.lines().count(), 12, "{all}");
        let text = github(&report([11, 30, 10]));
        let n = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
        assert_eq!(
            (n("::error "), n("::warning "), n("::notice ")),
            (10, 10, 10),
            "{text}"
        );
        assert!(
            text.contains("::warning title=kubectl vap::21 more warnings than"),
            "{text}"
        );
        assert!(
            text.contains("::notice title=kubectl vap::2 more notes than"),
            "{text}"
        );
        // The other findings are printed as plain lines instead of commands.
        assert_eq!(n("  ::error::f: warning[not-checked]: "), 21, "{text}");
        assert_eq!(text.lines().count(), 30 + 21 + 2);
    }

    #[test]
    fn sarif_above_limit_omits_least_severe_findings() {
        let sarif = sarif(&report([10, 4_990, 5]));
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), MAX_RESULTS);
        let n_errors = results
            .iter()
            .filter(|result| result["level"] == "error")
            .count();
        let n_notes = results
            .iter()
            .filter(|result| result["level"] == "note")
            .count();
        assert_eq!((n_errors, n_notes), (5, 5));
        let message =
            &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]["message"];
        assert!(
            message["text"]
                .as_str()
                .unwrap()
                .starts_with("5 results are left out")
        );
        let rule = &sarif["runs"][0]["tool"]["driver"]["rules"][0];
        assert!(
            rule["help"]["text"]
                .as_str()
                .unwrap()
                .starts_with("not-checked"),
            "{rule}"
        );
    }
}
