//! Renders the summary of an audit as text.

use std::fmt::Write as _;

use super::decide::ObjectId;
use super::report::{AuditReport, PolicyAudit, Tally};
use crate::cli::check::render::{
    BOLD, RED, YELLOW, count, counts, painted, policies, write_finding, write_wrapped,
};
use crate::cli::terminal::Terminal;
use crate::cli::test::render::{GREEN, diff};
use crate::cli::text::clean;

/// The maximum number of unread objects that are listed.
const MAX_UNREAD: usize = 10;

/// The message if there are no objects to audit.
const NO_OBJECTS: &str = "the files contain no objects to audit, only policies and their inputs";

/// Renders the problems, the policies with their violations, and the counts.
#[must_use]
pub fn text(report: &AuditReport, terminal: Terminal) -> String {
    let mut out = String::new();
    for found in &report.findings {
        write_finding(&mut out, found, terminal);
        out.push('\n');
    }
    let n_unread = report.summary.unread;
    if n_unread > 0 {
        let mut say = |text: &str, indent: &str| write_wrapped(&mut out, text, indent, terminal);
        say(&format!("{} not audited:", objects(n_unread)), "");
        for unread in report.unread.iter().take(MAX_UNREAD) {
            say(&format!("{}: {}", id(&unread.id), unread.reason), "  ");
        }
        more(
            &mut say,
            n_unread,
            report.unread.len().min(MAX_UNREAD),
            "  ",
        );
        out.push('\n');
    }
    for policy in &report.policies {
        render_policy(policy, &mut |text, indent| {
            write_wrapped(&mut out, text, indent, terminal);
        });
        render_changes(&mut out, policy, terminal);
        out.push('\n');
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

/// Renders findings, unread objects and rejected policies, for an output format that cannot contain them.
pub(super) fn problems(report: &AuditReport) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        let _ = writeln!(out, "{}", clean(text));
    };
    for found in &report.findings {
        let severity = found.severity.as_str();
        let file = &found.location.file;
        line(&format!("{severity}: {file}: {}", found.message));
    }
    for policy in &report.policies {
        if let Some(reason) = &policy.rejected {
            line(&format!("error: {}: {reason}", policy.name));
        } else if let Some(reason) = &policy.not_audited {
            line(&format!("note: {}: not audited: {reason}", policy.name));
        }
    }
    if report.no_objects {
        line(&format!("error: nothing was evaluated: {NO_OBJECTS}"));
    }
    for unread in &report.unread {
        line(&format!("error: {}: {}", id(&unread.id), unread.reason));
    }
    let listed = u64::try_from(report.unread.len()).unwrap_or(u64::MAX);
    if let Some(n_more) = report.summary.unread.checked_sub(listed).filter(|n| *n > 0) {
        line(&format!("error: {n_more} more objects were not audited"));
    }
    out
}

fn render_policy(policy: &PolicyAudit, say: &mut dyn FnMut(&str, &str)) {
    say(
        &format!(
            "{}{} ({}:{})",
            policy
                .kind
                .map(|kind| format!("{kind} "))
                .unwrap_or_default(),
            policy.name,
            policy.file,
            policy.line
        ),
        "",
    );
    if let Some(rejected) = &policy.rejected {
        say(
            &format!("not evaluated: the API server rejects the policy: {rejected}"),
            "  ",
        );
        return;
    }
    if let Some(reason) = &policy.not_audited {
        say(&format!("not audited: {reason}"), "  ");
        return;
    }
    if policy.is_binding_implied {
        let action = policy.kind.map_or(" with the action Deny", |_| "");
        let parts = format!("no binding is known: evaluated as if bound to all resources{action}");
        say(&parts, "  ");
    }
    let excluded = match policy.excluded {
        0 => String::new(),
        n => format!(" ({n} excluded by a match condition)"),
    };
    let result = match policy.kind {
        None => format!("{} with violations", policy.violating),
        Some(_) => format!("{} would change", policy.changed),
    };
    let undecided = match policy.undecided {
        0 => String::new(),
        n => format!("; no decision for {n} more"),
    };
    say(
        &format!(
            "{} matched{excluded}: {result}, {} denied, {} with failed evaluations{undecided}",
            objects(policy.matched),
            policy.denied,
            policy.failing
        ),
        "  ",
    );
    for (tallies, verb) in [
        (&policy.validations, "violated by"),
        (&policy.failures, "fails for"),
    ] {
        for tally in tallies {
            render_tally(tally, verb, say);
        }
    }
    if policy.matched > 0 {
        for assumption in &policy.assumed {
            say(
                &format!("assumed: {}: {}", assumption.input, assumption.assumed),
                "  ",
            );
        }
    }
}

/// Renders the objects that a mutating policy would change, with a diff of the first object.
fn render_changes(out: &mut String, policy: &PolicyAudit, terminal: Terminal) {
    for (n, change) in policy.changes.iter().enumerate() {
        write_wrapped(
            out,
            &format!("would change {}", id(&change.id)),
            "  ",
            terminal,
        );
        if n == 0 {
            // The first two lines of a diff are its header.
            let lines: Vec<&str> = change.change.lines().skip(2).collect();
            diff(out, &lines.join("\n"), "    ", terminal);
        }
    }
    let mut say = |text: &str, indent: &str| write_wrapped(out, text, indent, terminal);
    more(&mut say, policy.changed, policy.changes.len(), "  ");
}

fn render_tally(tally: &Tally, verb: &str, say: &mut dyn FnMut(&str, &str)) {
    let actions: Vec<&str> = tally
        .validation_actions
        .iter()
        .map(String::as_str)
        .collect();
    let actions = match actions.as_slice() {
        [] => String::new(),
        actions => format!(" ({})", actions.join(", ")),
    };
    let field = tally.field_ref.trim_end_matches(".expression");
    let n = objects(tally.objects);
    let head = format!("{field} {verb} {n}{actions}");
    if tally.messages.len() < 2 {
        say(&format!("{head}: {}", tally.message), "  ");
        for example in &tally.examples {
            say(&id(example), "    ");
        }
        more(say, tally.objects, tally.examples.len(), "    ");
        return;
    }
    say(&format!("{head}:"), "  ");
    for message in &tally.messages {
        say(&message.message, "    ");
        let others = match message.objects {
            0 | 1 => String::new(),
            n => format!(", and {} with this message", count(n - 1, "more object")),
        };
        say(&format!("{}{others}", id(&message.example)), "      ");
    }
    if tally.other_messages > 0 {
        let n = count(tally.other_messages, "object");
        say(
            &format!("and {n} with other messages; `-o json` lists all"),
            "    ",
        );
    }
}

/// Prints the number of objects that are not listed.
fn more(mut say: impl FnMut(&str, &str), n: u64, n_shown: usize, indent: &str) {
    let n_more = n.saturating_sub(u64::try_from(n_shown).unwrap_or(u64::MAX));
    if n_more > 0 {
        say(&format!("and {n_more} more; `-o json` lists all"), indent);
    }
}

fn objects(n: u64) -> String {
    count(n, "object")
}

fn id(id: &ObjectId) -> String {
    let name = id.display_name();
    let place = match (&id.file, id.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => String::new(),
    };
    match (name.is_empty(), place.is_empty()) {
        (true, true) => "an object".to_owned(),
        (true, false) => place,
        (false, true) => name,
        (false, false) => format!("{name} ({place})"),
    }
}

/// Renders the last line: the number of objects, and the results.
fn summary(report: &AuditReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    let parts = [
        (summary.violating, "with violations", RED),
        (summary.denied, "denied", RED),
        (summary.changed, "would change", YELLOW),
        (summary.failing, "with failed evaluations", YELLOW),
        (summary.unread, "not audited", YELLOW),
    ];
    let parts = counts(parts, terminal);
    let policies_evaluated = report.policies.iter().filter(|it| it.is_evaluated());
    let n_evaluated = policies_evaluated.count();
    let evaluated = match report.policies.len().saturating_sub(n_evaluated) {
        0 => policies(n_evaluated),
        n => format!("{} ({n} not evaluated)", policies(n_evaluated)),
    };
    let result = if parts.is_empty() && report.no_objects {
        let text = format!("nothing was evaluated: {NO_OBJECTS}");
        painted(&text, YELLOW, terminal)
    } else if parts.is_empty() && n_evaluated == 0 {
        painted("nothing was evaluated", YELLOW, terminal)
    } else if parts.is_empty() {
        painted("none with violations", GREEN, terminal)
    } else {
        parts.join(", ")
    };
    let place = match &report.cluster {
        Some(server) => format!(" of {}", clean(server)),
        None => String::new(),
    };
    let audited = match summary.unread {
        0 => format!("{} audited", objects(summary.objects)),
        _ => format!(
            "{} of {} audited",
            summary.audited,
            objects(summary.objects)
        ),
    };
    format!(
        "{} by {}{place}, {} matched, {} evaluations: {result}",
        painted(&audited, BOLD, terminal),
        evaluated,
        summary.matched,
        summary.evaluations,
    )
}
