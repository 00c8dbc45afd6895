//! Renders the changes of an upgrade as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::report::{Change, Class, Undecided, UpgradeReport};
use crate::cli::check::costs::digits;
use crate::cli::check::render::{
    BLUE, BOLD, RED, YELLOW, count, painted, policies, write_finding, write_wrapped,
};
use crate::cli::terminal::Terminal;
use crate::cli::test::init;
use crate::cli::test::render::GREEN;
use crate::cli::text::{clean, wrap};
use crate::cli::yaml_text;
use crate::policy::admission::without_expression;

/// The maximum number of subjects, undecided policies and unread requests that are listed.
const MAX_LISTED: usize = 5;

/// The width of the column with labels.
const LABEL_WIDTH: usize = 9;

/// Renders the problems, the changes and the counts.
#[must_use]
pub fn text(report: &UpgradeReport, terminal: Terminal, verbose: bool) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        write_finding(&mut out, finding, terminal);
        out.push('\n');
    }
    let mut explained = BTreeSet::new();
    let mut n_in_group: BTreeMap<GroupKey<'_>, usize> = BTreeMap::new();
    for change in &report.changes {
        *n_in_group.entry(group_key(change)).or_default() += 1;
    }
    for change in &report.changes {
        let is_grouped = change.class == Class::Taken && !verbose;
        let n_others = match n_in_group
            .get_mut(&group_key(change))
            .filter(|_| is_grouped)
        {
            None => 0,
            Some(0) => continue,
            Some(n) => std::mem::take(n).saturating_sub(1),
        };
        render_change(
            &mut out,
            change,
            report,
            (terminal, verbose),
            &mut explained,
        );
        more(
            &mut out,
            n_others,
            "policies or bindings with the same message; --verbose lists all",
            terminal,
        );
        out.push('\n');
    }
    let max = if verbose { usize::MAX } else { MAX_LISTED };
    let lists = [
        (
            &report.undecided,
            "UNDECIDED",
            "undecided policies; --verbose lists all",
        ),
        (
            &report.rejected,
            "not compared:",
            "policies are not compared; --verbose lists all",
        ),
    ];
    for (policies, word, others) in lists {
        for policy in policies.iter().take(max) {
            let line = format!("{word} {}: {}", named(policy), policy.reason);
            write_wrapped(&mut out, &line, "", terminal);
        }
        let n_others = policies.len().saturating_sub(max);
        more(&mut out, n_others, others, terminal);
    }
    for object in report.not_compared.iter().take(max) {
        let line = format!(
            "not compared: {} {} ({}): {}",
            object.kind, object.name, object.place, object.reason
        );
        write_wrapped(&mut out, &line, "", terminal);
    }
    more(
        &mut out,
        report.not_compared.len().saturating_sub(max),
        "objects are not compared; --verbose lists all",
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
    let has_lists = !report.undecided.is_empty()
        || !report.rejected.is_empty()
        || !report.not_compared.is_empty();
    if has_lists || n_unread > 0 {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    if !verbose && report.changes.iter().any(|change| change.witness.is_some()) {
        let note = "`--verbose` shows the generated requests, and `--write-probes FILE` writes them as probes";
        write_wrapped(&mut out, note, "", terminal);
    }
    out
}

/// The parts of a change that are the same for all policies in a group, because they have the same cause.
type GroupKey<'a> = (Class, Option<&'a str>, Option<&'a str>);

fn group_key(change: &Change) -> GroupKey<'_> {
    let message = change.old_message.as_deref();
    (change.class, change.field.as_deref(), message)
}

fn named(policy: &Undecided) -> String {
    let place = policy.place.as_ref().map(|place| format!(" ({place})"));
    format!("{}{}", policy.policy, place.unwrap_or_default())
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
    explained: &mut BTreeSet<&'static str>,
) {
    let color = match change.class {
        Class::Denies | Class::Refused => RED,
        Class::Taken | Class::Audit | Class::Text => GREEN,
        _ => YELLOW,
    };
    let class = painted(&format!("{:<7}", change.class.as_str()), color, terminal);
    let policy = painted(&clean(&change.policy), BOLD, terminal);
    let field = change
        .field
        .as_deref()
        .map(|field| format!(" {}", clean(field)));
    let _ = writeln!(out, "{class} {policy}{}", field.unwrap_or_default());
    if let Some(place) = &change.place {
        let arrow = painted("-->", BLUE, terminal);
        let _ = writeln!(out, "  {arrow} {}", clean(place));
    }
    let mut line = |label: &str, text: &str| write_labeled(out, label, text, terminal);
    let with_decision = |result: &str, message: Option<&str>, is_denied: bool| {
        let text = side(change, result, message);
        match decision(change, result, is_denied) {
            decision if decision.is_empty() => text,
            decision => format!("{}{decision}", text.trim_end_matches('.')),
        }
    };
    let (class, old, new) = (change.class, &change.old, &change.new);
    let old_message = change.old_message.as_deref();
    line(
        &report.from,
        &with_decision(old, old_message, class == Class::Admits),
    );
    let new_message = change.new_message.as_deref();
    line(
        &report.to,
        &with_decision(new, new_message, class == Class::Denies),
    );
    if !change.other_fields.is_empty() {
        let n = count(change.other_fields.len(), "other field");
        line("", &format!("and {n} with an error"));
    }
    if let Some(expression) = &change.expression {
        line("in", expression);
    }
    if let Some(reason) = &change.reason {
        let text = match (reason.summary, reason.change) {
            (Some(summary), Some(id)) if explained.insert(id) => {
                format!("{}: {summary} [{id}]", reason.since)
            }
            (_, Some(id)) => format!("{}, as above [{id}]", reason.since),
            _ => reason.since.clone(),
        };
        line("since", &text);
        if let Some(source) = reason.source.filter(|_| verbose) {
            line("source", source);
        }
    }
    if let Some(fix) = &change.fix {
        let applied = if change.fixable {
            "; `kubectl vap check --fix` does this"
        } else {
            ""
        };
        line("fix", &format!("{fix}{applied}"));
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
    if let Some(witness) = &change.witness {
        let generated = match &change.binding {
            Some(name) => format!("generated, binding {name}"),
            None => "generated, as if bound".to_owned(),
        };
        line(
            "request",
            &format!("{} ({generated})", request(&witness.request)),
        );
    }
    if verbose
        && let Some(witness) = &change.witness
        && let Some(request) = init::request(witness, true)
        && let Ok(yaml) = yaml_text::to_string(&request)
    {
        for line in yaml.lines() {
            let _ = writeln!(out, "    {}", clean(line));
        }
    }
}

/// Writes and wraps `text` after a label. All lines of `text` start in the same column.
fn write_labeled(out: &mut String, label: &str, text: &str, terminal: Terminal) {
    let indent = " ".repeat(LABEL_WIDTH + 2);
    let room = terminal
        .width
        .map_or(usize::MAX, |width| width.saturating_sub(indent.len()));
    for (n, line) in wrap(&clean(text), room, usize::MAX, "")
        .into_iter()
        .enumerate()
    {
        let label = if n == 0 { label } else { "" };
        let _ = writeln!(out, "  {label:<LABEL_WIDTH$}{line}");
    }
}

/// Returns the result of one version and its error or message, as one line.
fn side(change: &Change, result: &str, message: Option<&str>) -> String {
    let message = message.map(short);
    if let Ok(cost) = result.parse() {
        let cost = format!("cost {}", digits(cost));
        return message.map_or_else(|| cost.clone(), |message| format!("{cost} {message}"));
    }
    let is_decision = matches!(change.class, Class::Denies | Class::Admits | Class::Mutates);
    match (result, message) {
        ("true", _) if !is_decision => {
            let is_error = [&*change.old, &*change.new].contains(&"error");
            if is_error { "no error" } else { "true" }.to_owned()
        }
        ("false", Some(message)) if !is_decision => format!("false: {message}"),
        ("true", _) => "admits".to_owned(),
        ("differs" | "none", Some(message)) => message,
        ("false", None) => "denies".to_owned(),
        ("false", Some(message)) => format!("denies: {message}"),
        (result, Some(message)) => format!("{result}: {message}"),
        (result, None) => result.to_owned(),
    }
}

/// Describes how an error in one version affects the request. `is_denied` is true if this version denies it.
fn decision(change: &Change, result: &str, is_denied: bool) -> String {
    let policy = &change.failure_policy;
    match change.class {
        _ if result != "error" => String::new(),
        // Some errors deny the request even with failurePolicy Ignore.
        Class::Denies | Class::Admits if is_denied && policy == "Ignore" => {
            "; the request is denied".to_owned()
        }
        Class::Denies | Class::Admits if is_denied => {
            format!("; failurePolicy {policy} denies the request")
        }
        Class::Denies | Class::Admits => format!("; failurePolicy {policy} admits the request"),
        _ => format!("; failurePolicy {policy}"),
    }
}

/// Returns the first line of a message, without the source of the expression.
fn short(message: &str) -> String {
    let error = without_expression(message);
    let error = error.strip_prefix("compilation error: ").unwrap_or(error);
    error.lines().next().unwrap_or_default().to_owned()
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
        "{} {}{subresource} {}",
        text("/operation"),
        text("/kind/kind"),
        name.join("/")
    )
}

fn summary(report: &UpgradeReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    if report.is_empty() {
        let text = if summary.policies == 0 {
            "nothing to compare: no policy was read"
        } else if summary.rejected == summary.policies {
            "nothing to compare: both versions reject all policies; `kubectl vap check` shows their errors"
        } else {
            "no policy was evaluated for any request: pass probes, objects with -f, or CustomResourceDefinitions with --crds"
        };
        return painted(text, YELLOW, terminal);
    }
    let verb = |n: usize, one: &str, many: &str| {
        let text = if n == 1 { one } else { many };
        format!("{n} {text}")
    };
    // The changes of bindings, CustomResourceDefinitions and webhook configurations have no policy index.
    let others = report.changes.iter();
    let others = others.filter(|change| change.index.is_none() && change.class.matters());
    let others: BTreeSet<&str> = others.map(|change| change.policy.as_str()).collect();
    let parts = [
        (summary.changed, "changes", "change", RED),
        (
            others.len(),
            "other object changes",
            "other objects change",
            RED,
        ),
        (
            summary.informed,
            "has only changes of class TAKEN, AUDIT or TEXT",
            "have only changes of class TAKEN, AUDIT or TEXT",
            GREEN,
        ),
        (summary.unchanged, "does not change", "do not change", GREEN),
        (summary.undecided, "is undecided", "are undecided", YELLOW),
        (
            summary.rejected,
            "is rejected by both versions",
            "are rejected by both versions",
            YELLOW,
        ),
    ];
    let parts = parts.into_iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<String> = parts
        .map(|(n, one, many, color)| painted(&verb(n, one, many), color, terminal))
        .collect();
    let requests = [
        (summary.generated, "generated request"),
        (summary.cases, "case"),
        (summary.objects, "object"),
    ];
    let requests = requests.into_iter().filter(|(n, _)| *n > 0);
    let requests: Vec<String> = requests.map(|(n, noun)| count(n, noun)).collect();
    let result = if !parts.is_empty() {
        parts.join(", ")
    } else if report.changes.is_empty() {
        "nothing changes".to_owned()
    } else {
        "no policy changes".to_owned()
    };
    format!(
        "{} from {} to {}{}: {result}",
        policies(summary.policies),
        report.from,
        report.to,
        if requests.is_empty() {
            String::new()
        } else {
            format!(", compared for {}", requests.join(", "))
        }
    )
}
