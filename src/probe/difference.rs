//! How what was decided differs from what must be, in words.

use super::api::{Decision, Expect};
use crate::policy::admission::{Action, Binding, Evaluation, Outcome};

/// How `outcome`, under `bindings`, differs from `expect`; `None` where it does not.
#[must_use]
pub(super) fn of(
    expect: &Expect,
    policy: &str,
    bindings: &[Binding],
    outcome: &Outcome,
) -> Option<String> {
    let decision = if outcome.is_allowed() {
        Decision::Allow
    } else {
        Decision::Deny
    };
    if decision != expect.decision {
        return Some(format!(
            "expected {}, got {}: {}",
            expect.decision.as_str(),
            decision.as_str(),
            explain(outcome)
        ));
    }
    let differences = [
        applies(expect, outcome),
        message(expect, bindings, outcome),
        reason(expect, outcome),
        warnings(expect, outcome),
        audit_annotations(expect, policy, outcome),
    ];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// Why the request was decided so, in a sentence.
#[must_use]
pub fn explain(outcome: &Outcome) -> String {
    if let Some(why) = &outcome.not_asked {
        return why.clone();
    }
    if let Some(denial) = &outcome.denial {
        return denial.cause.clone();
    }
    if let Some(error) = &outcome.definition.error {
        return format!(
            "whether the policy matches cannot be told, and failurePolicy ignores that: {error}"
        );
    }
    if outcome.definition.matched.is_none() {
        return "the match constraints of the policy do not match the request".to_owned();
    }
    if outcome.bindings.is_empty() {
        return "the policy has no binding".to_owned();
    }
    if let Some(error) = outcome
        .bindings
        .iter()
        .find_map(|binding| binding.error.as_ref())
    {
        return format!("a binding cannot be used, and failurePolicy ignores that: {error}");
    }
    if !outcome.bindings.iter().any(|binding| binding.matches) {
        return "no binding matches the request".to_owned();
    }
    if outcome.evaluations.is_empty() {
        return "there are no params, and the bindings allow that".to_owned();
    }
    if !outcome.evaluations.iter().any(has_applied) {
        let failed = outcome
            .evaluations
            .iter()
            .filter_map(|evaluation| evaluation.match_conditions.as_ref())
            .find_map(|conditions| conditions.failed_condition.as_ref());
        return match failed {
            Some(name) => format!("the match condition {name:?} is false"),
            None => "the match conditions do not hold".to_owned(),
        };
    }
    let refused = outcome
        .evaluations
        .iter()
        .flat_map(|evaluation| &evaluation.decisions)
        .find(|decision| decision.action == Action::Deny);
    match refused {
        Some(decision) => format!(
            "a validation failed, and no binding has the action Deny: {}",
            decision.message
        ),
        None => "all validations passed".to_owned(),
    }
}

/// Reports whether an evaluation got as far as the validations.
fn has_applied(evaluation: &Evaluation) -> bool {
    evaluation
        .match_conditions
        .as_ref()
        .is_none_or(|conditions| conditions.matches)
}

fn applies(expect: &Expect, outcome: &Outcome) -> Option<String> {
    let expected = expect.applies?;
    let applies = outcome.evaluations.iter().any(has_applied);
    match (expected, applies) {
        (true, false) => Some(format!(
            "expected the policy to apply: {}",
            explain(outcome)
        )),
        (false, true) => Some("expected the policy not to apply, and it does".to_owned()),
        _ => None,
    }
}

/// Reports whether the findings of an evaluation deny the request, and do not merely warn.
fn denies(evaluation: &Evaluation, bindings: &[Binding]) -> bool {
    let actions = bindings
        .iter()
        .filter(|binding| evaluation.binding.as_deref() == Some(binding.name()))
        .flat_map(Binding::validation_actions);
    actions.into_iter().any(|action| action == "Deny")
}

/// The messages of everything that denies the request.
fn messages<'a>(bindings: &[Binding], outcome: &'a Outcome) -> Vec<&'a str> {
    let mut messages: Vec<&str> = outcome
        .denial
        .iter()
        .map(|denial| denial.cause.as_str())
        .collect();
    let decisions = outcome
        .evaluations
        .iter()
        .filter(|evaluation| denies(evaluation, bindings))
        .flat_map(|evaluation| &evaluation.decisions);
    for decision in decisions.filter(|decision| decision.action == Action::Deny) {
        if !messages.contains(&decision.message.as_str()) {
            messages.push(&decision.message);
        }
    }
    messages
}

fn message(expect: &Expect, bindings: &[Binding], outcome: &Outcome) -> Option<String> {
    let given = messages(bindings, outcome);
    let shown = || {
        let quoted: Vec<String> = given.iter().map(|text| format!("{text:?}")).collect();
        quoted.join(", ")
    };
    if let Some(wanted) = &expect.message
        && !given.contains(&wanted.as_str())
    {
        return Some(format!("expected the message {wanted:?}, got {}", shown()));
    }
    if let Some(part) = &expect.message_contains
        && !given.iter().any(|text| text.contains(part.as_str()))
    {
        return Some(format!(
            "expected a message that contains {part:?}, got {}",
            shown()
        ));
    }
    None
}

fn reason(expect: &Expect, outcome: &Outcome) -> Option<String> {
    let wanted = expect.reason.as_ref()?;
    let given = outcome
        .denial
        .as_ref()
        .map(|denial| denial.reason.as_str())
        .unwrap_or_default();
    (given != wanted).then(|| format!("expected the reason {wanted:?}, got {given:?}"))
}

/// Warnings may be given whole, or as the message at their end.
fn warnings(expect: &Expect, outcome: &Outcome) -> Option<String> {
    let wanted = expect.warnings.as_ref()?;
    let fits = |given: &str, wanted: &str| {
        given == wanted
            || given
                .strip_suffix(wanted)
                .is_some_and(|rest| rest.ends_with(": "))
    };
    let mut left: Vec<&str> = outcome.warnings.iter().map(String::as_str).collect();
    let mut missing = Vec::new();
    for text in wanted {
        match left.iter().position(|given| fits(given, text)) {
            Some(at) => {
                left.remove(at);
            }
            None => missing.push(format!("{text:?}")),
        }
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("expected the warning {}", missing.join(", ")));
    }
    if !left.is_empty() {
        let left: Vec<String> = left.iter().map(|text| format!("{text:?}")).collect();
        parts.push(format!("unexpected warning {}", left.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn audit_annotations(expect: &Expect, policy: &str, outcome: &Outcome) -> Option<String> {
    let differing: Vec<String> = expect
        .audit_annotations
        .iter()
        .filter_map(|(key, wanted)| {
            let full = format!("{policy}/{key}");
            let given = outcome
                .audit_annotations
                .get(&full)
                .or_else(|| outcome.audit_annotations.get(key));
            match given {
                Some(given) if given == wanted => None,
                Some(given) => Some(format!(
                    "expected the audit annotation {key} to be {wanted:?}, got {given:?}"
                )),
                None => Some(format!(
                    "expected the audit annotation {key} to be {wanted:?}, got none"
                )),
            }
        })
        .collect();
    (!differing.is_empty()).then(|| differing.join("; "))
}
