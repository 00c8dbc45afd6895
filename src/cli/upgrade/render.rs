//! Renders the changes of an upgrade as text.

use std::fmt::Write as _;

use super::report::{Change, Class, UpgradeReport};
use crate::cli::check::render::{
    BOLD, RED, YELLOW, count, painted, policies, write_finding, write_wrapped,
};
use crate::cli::terminal::Terminal;
use crate::cli::test::render::GREEN;
use crate::cli::text::clean;
use crate::cli::yaml_text;

/// The maximum number of subjects, undecided policies and unread requests that are listed.
const MAX_LISTED: usize = 5;

/// Renders the problems, the changes and the counts.
#[must_use]
pub fn text(report: &UpgradeReport, terminal: Terminal, verbose: bool) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        write_finding(&mut out, finding, terminal);
        out.push('\n');
    }
    for change in &report.changes {
        render_change(&mut out, change, report, (terminal, verbose));
        out.push('\n');
    }
    let max = if verbose { usize::MAX } else { MAX_LISTED };
    for undecided in report.undecided.iter().take(max) {
        let line = format!("UNDECIDED {}: {}", undecided.policy, undecided.reason);
        write_wrapped(&mut out, &line, "", terminal);
    }
    more(
        &mut out,
        report.undecided.len().saturating_sub(max),
        "undecided policies; --verbose lists all",
        terminal,
    );
    for unread in report.unread.iter().take(max) {
        let line = format!("not evaluated: {}: {}", unread.name, unread.reason);
        write_wrapped(&mut out, &line, "", terminal);
    }
    let n_unread = usize::try_from(report.summary.unread).unwrap_or(usize::MAX);
    more(
        &mut out,
        n_unread.saturating_sub(report.unread.len().min(max)),
        "requests were not evaluated; `-o json` lists up to 100",
        terminal,
    );
    if !report.undecided.is_empty() || n_unread > 0 {
        out.push('\n');
    }
    write_wrapped(&mut out, &summary(report, terminal), "", terminal);
    out
}

fn more(out: &mut String, n: usize, what: &str, terminal: Terminal) {
    if n > 0 {
        write_wrapped(out, &format!("and {n} more {what}"), "", terminal);
    }
}

fn render_change(
    out: &mut String,
    change: &Change,
    report: &UpgradeReport,
    (terminal, verbose): (Terminal, bool),
) {
    let color = match change.class {
        Class::Denies | Class::Refused => RED,
        Class::Taken | Class::Audit | Class::Text => GREEN,
        _ => YELLOW,
    };
    let class = painted(&format!("{:<8}", change.class.as_str()), color, terminal);
    let policy = painted(&clean(&change.policy), BOLD, terminal);
    let field = change
        .field
        .as_deref()
        .map(|field| format!(" {}", clean(field)));
    let _ = writeln!(out, "{class}{policy}{}", field.unwrap_or_default());
    let indent = "        ";
    let side = |result: &str, message: &Option<String>| {
        let result = match result {
            "true" => "admits",
            "false" => "denies",
            other => other,
        };
        match message {
            Some(message) => format!("{result}: {message}"),
            None => result.to_owned(),
        }
    };
    let mut line = |label: &str, text: &str| {
        let text = format!("{label:<10}{text}");
        write_wrapped(out, &text, indent, terminal);
    };
    line(&report.from, &side(&change.old, &change.old_message));
    let policy = match change.class {
        Class::Denies | Class::Admits | Class::Errors => {
            format!(" (failurePolicy {})", change.failure_policy)
        }
        _ => String::new(),
    };
    line(
        &report.to,
        &(side(&change.new, &change.new_message) + &policy),
    );
    if let Some(expression) = &change.expression {
        line("in", expression);
    }
    if let Some(reason) = &change.reason {
        let text = match (reason.summary, reason.change) {
            (Some(summary), Some(id)) => format!("{}: {summary} [{id}]", reason.since),
            _ => reason.since.clone(),
        };
        line("since", &text);
    }
    if let Some(fix) = &change.fix {
        let applied = if change.fixable {
            " (`kubectl vap check --fix`)"
        } else {
            ""
        };
        line("fix", &format!("{fix}{applied}"));
    }
    if let Some(witness) = &change.witness {
        line("request", &request(&witness.request));
    }
    for subject in change.subjects.iter().take(MAX_LISTED) {
        let place = subject.place.as_ref().map(|place| format!(" ({place})"));
        line(
            "request",
            &format!("{}{}", subject.name, place.unwrap_or_default()),
        );
    }
    let n = usize::try_from(change.requests).unwrap_or(usize::MAX);
    let n_more = n.saturating_sub(change.subjects.len().min(MAX_LISTED));
    if n_more > 0 {
        line("", &format!("and {n_more} more; `-o json` lists up to 100"));
    }
    if let Some(place) = &change.place {
        line("file", place);
    }
    if verbose
        && let Some(witness) = &change.witness
        && let Ok(yaml) = yaml_text::to_string(witness)
    {
        for line in yaml.lines() {
            let _ = writeln!(out, "{indent}  {}", clean(line));
        }
    }
}

/// Returns the operation, kind and name of a generated request.
fn request(request: &serde_json::Value) -> String {
    let text = |pointer: &str| {
        let text = request.pointer(pointer).and_then(serde_json::Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let name = [text("/namespace"), text("/name")];
    let name: Vec<String> = name.into_iter().filter(|part| !part.is_empty()).collect();
    let subresource = match text("/subResource").as_str() {
        "" => String::new(),
        subresource => format!("/{subresource}"),
    };
    format!(
        "{} {}{subresource} {} (generated)",
        text("/operation"),
        text("/kind/kind"),
        name.join("/")
    )
}

fn summary(report: &UpgradeReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    if report.is_empty() {
        let text = if summary.policies == 0 {
            "nothing to compare: the input has no policy"
        } else {
            "no policy was evaluated for any request: pass probes, objects with -f, or CustomResourceDefinitions with --crds"
        };
        return painted(text, YELLOW, terminal);
    }
    let parts = [
        (summary.changed, "change", RED),
        (
            summary.informed,
            "change only in what they accept or log",
            GREEN,
        ),
        (summary.unchanged, "do not change", GREEN),
        (summary.undecided, "are undecided", YELLOW),
    ];
    let parts = parts.into_iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<String> = parts
        .map(|(n, what, color)| painted(&format!("{n} {what}"), color, terminal))
        .collect();
    format!(
        "{} from {} to {}: {}; {} ({} generated requests, {}, {})",
        policies(summary.policies),
        report.from,
        report.to,
        parts.join(", "),
        count(summary.comparisons, "comparison"),
        summary.generated,
        count(summary.cases, "case"),
        count(summary.objects, "object"),
    )
}
