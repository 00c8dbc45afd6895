//! Renders the differences between decisions as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::compare::{Cause, CauseKind, Effect, Part};
use super::expressions::ChangedExpression;
use super::report::{DiffReport, Group, InputValue};
use super::settings::{Setting, SettingField};
use crate::cli::check::render::{
    BOLD, RED, YELLOW, count, counts, painted, policies, write_finding, write_wrapped,
};
use crate::cli::terminal::Terminal;
use crate::cli::test::render::{GREEN, diff};
use crate::cli::text::{clean, cut};

/// The maximum number of subjects (objects or cases) that are listed per group.
const MAX_SUBJECTS: usize = 5;

/// The maximum number of lines of a unified diff.
const MAX_DIFF_LINES: usize = 20;

/// The maximum number of inputs that are listed for a generated request.
const MAX_INPUTS: usize = 8;

/// The maximum width of a changed expression, in columns.
const MAX_EXPRESSION: usize = 200;

/// The maximum width of the value of an input, in columns.
const MAX_VALUE: usize = 80;

/// Renders the problems, the differences by policy and cause, and the counts.
#[must_use]
pub fn text(report: &DiffReport, terminal: Terminal) -> String {
    let mut out = String::new();
    for found in &report.findings {
        write_finding(&mut out, found, terminal);
        out.push('\n');
    }
    if report.summary.unread > 0 {
        for unread in report.unread.iter().take(MAX_SUBJECTS) {
            write_wrapped(
                &mut out,
                &format!("not compared: {}: {}", unread.name, unread.reason),
                "",
                terminal,
            );
        }
        let shown = u64::try_from(report.unread.len().min(MAX_SUBJECTS)).unwrap_or(u64::MAX);
        more(
            &mut out,
            report.summary.unread.saturating_sub(shown),
            "",
            terminal,
        );
        out.push('\n');
    }
    for policy in &report.not_generated {
        let text = format!(
            "no generated requests for {}: {}",
            policy.name, policy.reason
        );
        write_wrapped(&mut out, &text, "", terminal);
    }
    if !report.not_generated.is_empty() {
        out.push('\n');
    }
    for one in &report.one_sided {
        write_wrapped(
            &mut out,
            &format!("only in the {} version: {}", one.version, one.policy),
            "",
            terminal,
        );
    }
    if !report.one_sided.is_empty() {
        out.push('\n');
    }
    // If no request matches any policy, the last line reports that instead.
    if !report.unmatched.is_empty() && report.unmatched.len() < report.summary.policies {
        let text = format!(
            "not compared, because no request matches: {}",
            report.unmatched.join(", ")
        );
        write_wrapped(&mut out, &text, "", terminal);
        out.push('\n');
    }
    let groups = report.groups.iter().map(|group| &group.policy);
    let changed = report.settings.iter().map(|setting| &setting.policy);
    let expressions = report.expressions.iter().map(|it| &it.policy);
    // The groups determine the order of the policies. Policies without a group follow.
    let mut policies: Vec<&String> = Vec::new();
    for policy in groups.chain(changed).chain(expressions) {
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    for policy in policies {
        let _ = writeln!(out, "{}", painted(&clean(policy), BOLD, terminal));
        for group in report.groups.iter().filter(|it| &it.policy == policy) {
            render_group(&mut out, group, terminal);
            out.push('\n');
        }
        let n = out.len();
        for setting in report.settings.iter().filter(|it| &it.policy == policy) {
            render_setting(&mut out, setting, terminal);
        }
        for expression in (report.expressions.iter()).filter(|it| &it.policy == policy) {
            render_expression(&mut out, expression, terminal);
        }
        if out.len() > n {
            out.push('\n');
        }
    }
    let _ = writeln!(out, "{}", summary(report, terminal));
    out
}

fn render_group(out: &mut String, group: &Group, terminal: Terminal) {
    write_wrapped(out, &cause(&group.cause), "  ", terminal);
    let same = format!(
        "with the same decision, {}",
        differing_parts(&group.differs)
    );
    let counts = [
        (group.denied, "denied now, allowed before"),
        (group.allowed, "allowed now, denied before"),
        (group.same, &same),
    ];
    let counts = counts.into_iter().filter(|(n, _)| *n > 0);
    let counts: Vec<String> = counts.map(|(n, what)| format!("{n} {what}")).collect();
    write_wrapped(out, &counts.join(", "), "    ", terminal);
    if let Some(diff) = &group.cause.diff {
        render_diff(out, diff, terminal);
    }
    for subject in group.subjects.iter().take(MAX_SUBJECTS) {
        let sign = match subject.effect {
            Effect::Denied => "-",
            Effect::Allowed => "+",
            Effect::Same => "~",
        };
        let place = subject.place.as_deref().map(|place| format!(" ({place})"));
        // CREATE is not shown, because most policies match it.
        let operation = subject.operation.filter(|it| *it != "CREATE");
        let operation = operation.map(|operation| format!("{operation} of "));
        let text = format!(
            "{sign} {}{}{}",
            operation.unwrap_or_default(),
            subject.name,
            place.unwrap_or_default()
        );
        write_wrapped(out, &text, "    ", terminal);
        render_inputs(out, &subject.inputs, terminal);
    }
    let n = group.denied + group.allowed + group.same;
    let shown = u64::try_from(group.subjects.len().min(MAX_SUBJECTS)).unwrap_or(u64::MAX);
    more(out, n.saturating_sub(shown), "    ", terminal);
}

fn render_inputs(out: &mut String, inputs: &[InputValue], terminal: Terminal) {
    for input in inputs.iter().take(MAX_INPUTS) {
        let value = input.value.as_ref().map_or_else(
            || "absent".to_owned(),
            |value| cut(&value.to_string(), MAX_VALUE),
        );
        let text = format!("{}: {value}", input.path);
        write_wrapped(out, &text, "        ", terminal);
    }
    let n_more = inputs.len().saturating_sub(MAX_INPUTS);
    more(
        out,
        u64::try_from(n_more).unwrap_or(u64::MAX),
        "        ",
        terminal,
    );
}

/// Returns the description of the parts that differ for subjects with the same decision.
fn differing_parts(parts: &BTreeSet<Part>) -> String {
    if parts.is_empty() {
        return "another result".to_owned();
    }
    let parts = parts.iter().map(|part| format!("another {}", part.noun()));
    parts.collect::<Vec<_>>().join(" and ")
}

/// Renders the lines of a unified diff without its header.
fn render_diff(out: &mut String, text: &str, terminal: Terminal) {
    let lines: Vec<&str> = text.lines().skip(2).collect();
    let shown = lines.get(..MAX_DIFF_LINES).unwrap_or(&lines);
    diff(out, &shown.join("\n"), "    ", terminal);
    if let Some(n_more @ 1..) = lines.len().checked_sub(shown.len()) {
        let text = format!("and {}; `-o json` lists all", count(n_more, "more line"));
        write_wrapped(out, &text, "    ", terminal);
    }
}

fn render_setting(out: &mut String, setting: &Setting, terminal: Terminal) {
    let field = setting.field.as_str();
    let name = setting.binding.as_deref().unwrap_or_default();
    let mut text = match (setting.field, setting.diff.is_empty()) {
        (SettingField::Binding, _) if setting.old == "absent" => {
            format!("the binding `{name}` was added")
        }
        (SettingField::Binding, _) => format!("the binding `{name}` was removed"),
        (_, is_scalar) => {
            let of = match (&setting.binding, &setting.params) {
                (Some(binding), _) => format!(" of the binding `{binding}`"),
                (_, Some(params)) => format!(" `{params}`"),
                (None, None) => String::new(),
            };
            let values = if is_scalar {
                format!(": {} -> {}", setting.old, setting.new)
            } else {
                String::new()
            };
            format!("the {field}{of} changed{values}")
        }
    };
    if let Some(version) = setting.unbound {
        let _ = write!(
            text,
            "; the {version} version has no effect, because it has no binding"
        );
    } else if !setting.affected {
        text.push_str("; ");
        text.push_str(setting.field.unaffected());
    }
    write_wrapped(out, &text, "  ", terminal);
    if !setting.diff.is_empty() {
        render_diff(out, &setting.diff, terminal);
    }
}

fn render_expression(out: &mut String, changed: &ChangedExpression, terminal: Terminal) {
    let verb = match (&changed.old, &changed.new) {
        (None, _) => "was added",
        (_, None) => "was removed",
        _ => "changed",
    };
    let name = changed.name.as_ref().map(|name| format!(" (`{name}`)"));
    let text = format!(
        "{}{} {verb}; the decision is the same for every compared request",
        changed.field.trim_end_matches(".expression"),
        name.unwrap_or_default(),
    );
    write_wrapped(out, &text, "  ", terminal);
    for (sign, expression) in [("-", &changed.old), ("+", &changed.new)] {
        if let Some(expression) = expression {
            let line = cut(&clean(expression), MAX_EXPRESSION);
            write_wrapped(out, &format!("{sign} {line}"), "    ", terminal);
        }
    }
}

fn cause(cause: &Cause) -> String {
    let short = |field: &Option<String>| {
        let field = field.as_deref().unwrap_or_default();
        field.trim_end_matches(".expression").to_owned()
    };
    let (old, new) = (short(&cause.old_field), short(&cause.new_field));
    let field = if old == new || old.is_empty() {
        new.clone()
    } else {
        format!("{old}, now {new}")
    };
    let change = format!("{} -> {}", cause.old, cause.new);
    match cause.kind {
        CauseKind::Policy => format!("the policy: {change}"),
        CauseKind::Constraints => format!("match constraints or bindings: {change}"),
        CauseKind::MatchCondition => format!("match conditions: {change}"),
        CauseKind::Validation => format!("{field}: {change}"),
        CauseKind::ValidationAdded => format!("{new} was added: its result is {}", cause.new),
        CauseKind::ValidationRemoved => format!("{old} was removed: its result was {}", cause.old),
        CauseKind::Message => format!("{field}, message: {change}"),
        CauseKind::Failure => {
            let field = if new.is_empty() { old } else { new };
            format!("{field}: error: {change}")
        }
        CauseKind::Mutation if cause.diff.is_some() => "the mutated object".to_owned(),
        CauseKind::Mutation => format!("the mutated object: {change}"),
        CauseKind::Actions => format!("actions of bindings: {change}"),
        CauseKind::FailurePolicy => format!("failurePolicy: {change}"),
        CauseKind::Reason => format!("{field}, reason: {change}"),
        CauseKind::AuditAnnotation => {
            let field = if new.is_empty() { old } else { new };
            format!("{field}: {change}")
        }
    }
}

fn more(out: &mut String, n: u64, indent: &str, terminal: Terminal) {
    if n > 0 {
        write_wrapped(
            out,
            &format!("and {n} more; `-o json` lists up to 100"),
            indent,
            terminal,
        );
    }
}

fn summary(report: &DiffReport, terminal: Terminal) -> String {
    let summary = &report.summary;
    let differing = report.groups.iter().flat_map(|group| &group.differs);
    let same = format!("with {}", differing_parts(&differing.copied().collect()));
    let n_settings = u64::try_from(report.settings.len()).unwrap_or(u64::MAX);
    let settings = match n_settings {
        1 => "setting changed",
        _ => "settings changed",
    };
    let parts = [
        (summary.denied, "denied now", RED),
        (summary.allowed, "allowed now", YELLOW),
        (summary.same, same.as_str(), YELLOW),
        (summary.unread, "not compared", YELLOW),
    ];
    let mut parts = counts(parts, terminal);
    let n_requests = summary.objects + summary.cases + summary.generated;
    parts.extend(counts([(n_settings, settings, YELLOW)], terminal));
    if !report.expressions.is_empty() {
        let n = count(report.expressions.len(), "expression");
        let requests = match summary.objects + summary.cases {
            0 => "generated",
            _ => "compared",
        };
        let text = format!("{n} changed, but no difference was found in the {requests} requests");
        parts.push(painted(&text, YELLOW, terminal));
    }
    let result = match (parts.as_slice(), n_requests) {
        ([], _) if summary.policies == 0 => painted(
            "nothing to compare: pass two versions of a policy",
            YELLOW,
            terminal,
        ),
        ([], 0) => painted(
            "no requests to evaluate: pass probes or objects",
            YELLOW,
            terminal,
        ),
        ([], _) if report.unmatched.len() == summary.policies => painted(
            "0 requests matched, so nothing was compared",
            YELLOW,
            terminal,
        ),
        ([], _) => painted("no difference", GREEN, terminal),
        (parts, _) => parts.join(", "),
    };
    let requests = [
        (summary.cases, "case"),
        (summary.objects, "object"),
        (summary.generated, "generated request"),
    ];
    let requests = requests.into_iter().filter(|(n, _)| *n > 0);
    let requests: Vec<String> = requests.map(|(n, noun)| count(n, noun)).collect();
    let requests = match &*requests {
        [] => "0 requests".to_owned(),
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        all => all.concat(),
    };
    format!(
        "{} compared for {requests}: {result}",
        policies(summary.policies)
    )
}
