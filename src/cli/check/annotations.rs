//! A check's findings for code hosts: GitHub's workflow commands, and SARIF.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::finding::{Finding, Severity};
use super::report::{CheckReport, Suppressed, SuppressedBy};
use crate::cli::text::clean;
use crate::policy::rule::Rule;

/// Workflow commands, one a line, which GitHub shows beside the lines of a pull request.
///
/// Source: GitHub documentation, "Workflow commands for GitHub Actions", "Setting an error message".
#[must_use]
pub fn github(report: &CheckReport) -> String {
    let mut out = String::new();
    for found in &report.findings {
        let command = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let location = &found.location;
        let _ = write!(out, "::{command} file={}", property(&location.file));
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
            found.rule.id(),
            found
                .policy
                .as_deref()
                .or(found.binding.as_deref())
                .unwrap_or("kubectl vap")
        );
        let _ = writeln!(
            out,
            ",title={}::{}",
            property(&title),
            data(&full_message(found))
        );
    }
    out
}

/// The message with what it is about.
fn full_message(found: &Finding) -> String {
    let mut text = found.message.clone();
    if !found.kinds.is_empty() {
        let _ = write!(text, " on {}", found.kinds.join(", "));
    }
    if let Some(help) = &found.help {
        let _ = write!(text, "; {help}");
    }
    text
}

fn data(text: &str) -> String {
    // A log is shown in a terminal of sorts.
    let text: String = text.lines().map(clean).collect::<Vec<_>>().join("\n");
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// SARIF 2.1.0, for code scanning.
///
/// Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
#[must_use]
pub fn sarif(report: &CheckReport) -> Value {
    let suppressed = report.suppressed.iter();
    let all = report.findings.iter();
    let all = all.chain(suppressed.clone().map(|of| &of.finding));
    let used: BTreeSet<Rule> = all.map(|found| found.rule).collect();
    let rules: Vec<Value> = used
        .iter()
        .map(|rule| json!({"id": rule.id(), "shortDescription": {"text": rule.summary()}}))
        .collect();
    let results = report.findings.iter().map(sarif_result);
    let results: Vec<Value> = results.chain(suppressed.map(sarif_suppressed)).collect();
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
            "results": results,
        }],
    })
}

/// A result with what suppresses it.
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

fn sarif_result(found: &Finding) -> Value {
    let mut physical = Map::new();
    physical.insert(
        "artifactLocation".to_owned(),
        json!({"uri": uri(&found.location.file)}),
    );
    if let Some(place) = found.location.place {
        let region = json!({
            "startLine": place.line,
            "startColumn": place.column,
            "endColumn": place.column + found.location.length,
        });
        physical.insert("region".to_owned(), region);
    }
    let mut location = Map::new();
    location.insert("physicalLocation".to_owned(), physical.into());
    if let Some(policy) = found.policy.as_ref().or(found.binding.as_ref()) {
        let name = match &found.field_ref {
            Some(field_ref) => format!("{policy}: {field_ref}"),
            None => policy.clone(),
        };
        location.insert(
            "logicalLocations".to_owned(),
            json!([{"fullyQualifiedName": name}]),
        );
    }
    json!({
        "ruleId": found.rule.id(),
        "level": found.severity.as_str(),
        "message": {"text": full_message(found)},
        "locations": [location],
        "partialFingerprints": {"vapFinding/v1": found.fingerprint},
    })
}

/// A path as a URI: relative ones stay relative, so that they are found in the checkout.
fn uri(file: &str) -> String {
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
    use super::*;

    #[test]
    fn what_would_end_a_command_is_escaped() {
        assert_eq!(data("a\r\n::error::b 5%\u{1b}[m"), "a%0A::error::b 5%25␛[m");
        assert_eq!(property("a,b:c"), "a%2Cb%3Ac");
    }

    #[test]
    fn paths_are_uris() {
        assert_eq!(uri("./a b/é.yaml"), "a%20b/%C3%A9.yaml");
        assert_eq!(uri("/x.yaml"), "file:///x.yaml");
    }
}
