//! Renders the changes of an upgrade as text.

use std::collections::BTreeSet;

use super::report::{Change, UpgradeReport};
use crate::cli::check::render::{count, policies, write_finding, write_wrapped};
use crate::cli::terminal::Terminal;

/// Renders the problems, the changes and the counts.
#[must_use]
pub fn text(report: &UpgradeReport, terminal: Terminal) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        write_finding(&mut out, finding, terminal);
        out.push('\n');
    }
    for unread in &report.unread {
        let line = format!("not compared: {}: {}", unread.name, unread.reason);
        write_wrapped(&mut out, &line, "", terminal);
    }
    for change in &report.changes {
        write_wrapped(&mut out, &line(change, report), "", terminal);
        let details = change.reason.iter().cloned();
        let subjects = change.subjects.first().map(|subject| subject.name.clone());
        for detail in details.chain(subjects) {
            write_wrapped(&mut out, &detail, "  ", terminal);
        }
    }
    let changed: BTreeSet<&str> = report.changes.iter().map(|it| it.policy.as_str()).collect();
    let n = usize::try_from(report.requests).unwrap_or(usize::MAX);
    let summary = format!(
        "{} of {} change, compared for {} with the schemas of Kubernetes {}",
        changed.len(),
        policies(report.policies),
        count(n, "request"),
        report.schemas
    );
    write_wrapped(&mut out, &summary, "", terminal);
    if report.requests == 0 {
        let note = "no decision was compared: pass probes, or objects with -f";
        write_wrapped(&mut out, note, "", terminal);
    }
    out
}

fn line(change: &Change, report: &UpgradeReport) -> String {
    let field = change.field.as_deref().unwrap_or_default();
    let field = field.strip_prefix("spec.").unwrap_or(field);
    let field = field.strip_suffix(".expression").unwrap_or(field);
    let subject = match field {
        "" => change.policy.clone(),
        field => format!("{} {field}", change.policy),
    };
    let result = |result: &str| match result {
        "true" => "admits".to_owned(),
        "false" => "denies".to_owned(),
        other => other.to_owned(),
    };
    format!(
        "{} {subject}: {} on {}, {} on {}",
        change.class.as_str(),
        result(&change.from),
        report.from,
        result(&change.to),
        report.to
    )
}
