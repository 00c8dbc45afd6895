//! How what was decided differs from what must be, in words.

use std::collections::BTreeSet;

use regexp::MemoryLimit;

use super::api::{Decision, Expect};
use crate::policy;
use crate::policy::admission::{
    Action, Binding, DeniedBy, Evaluation, EvaluationResult, ReviewOutcome,
};

/// How `outcome`, under `bindings`, differs from `expect`; `None` where it does not.
#[must_use]
pub(super) fn of(
    expect: &Expect,
    policy: &str,
    bindings: &[Binding],
    outcome: &ReviewOutcome,
) -> Option<String> {
    if let Some(difference) = decision(expect, outcome) {
        return Some(difference);
    }
    let differences = [
        applies(expect, outcome),
        error(expect, outcome, explain),
        message(expect, bindings, outcome),
        failing_validations(expect, outcome),
        reason(expect, outcome),
        warnings(expect, outcome),
        audit_annotations(expect, policy, outcome),
    ];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// Difference in the decision, or in the reason for it: nothing else need be said then.
fn decision(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    let found = if outcome.is_allowed() {
        Decision::Allow
    } else {
        Decision::Deny
    };
    let differs = expect.decision.filter(|expected| *expected != found);
    let by = outcome.denial.as_ref().map(|denial| denial.by);
    if let Some(expected) = differs {
        let by = match by {
            Some(DeniedBy::Error) => " by an error",
            _ => "",
        };
        return Some(format!(
            "expected {}, got {}{by}: {}",
            expected.as_str(),
            found.as_str(),
            explain(outcome)
        ));
    }
    let is_passed_over = !has_policy_applied(outcome) && outcome.errors.is_empty();
    if is_passed_over && expect.applies != Some(false) {
        return Some(format!(
            "the policy does not apply: {}; write `applies: false` where that is meant",
            explain(outcome)
        ));
    }
    if expect.error.is_some() {
        return None;
    }
    match (expect.decision, by) {
        (Some(Decision::Deny), Some(DeniedBy::Validation)) => None,
        // That a binding denies without params is meant where the case names it.
        (Some(Decision::Deny), Some(DeniedBy::NoParams)) if names_message(expect) => None,
        (Some(Decision::Deny), Some(DeniedBy::NoParams)) => Some(format!(
            "denied because there are no params, and not by a validation: {}; write the message or \
             `error` where that is meant",
            explain(outcome)
        )),
        (_, Some(DeniedBy::Error | DeniedBy::NoParams)) => Some(format!(
            "denied by an error, and not by a validation: {}; write `error` where that is meant",
            explain(outcome)
        )),
        _ => outcome.errors.first().map(|error| {
            format!(
                "an error, which does not deny here: {error}; write `error` where that is meant"
            )
        }),
    }
}

/// Describes how a failed case differs from its expectation, without texts of expressions.
#[must_use]
pub fn outline(expect: &Expect, outcome: &ReviewOutcome) -> String {
    let actual = if outcome.is_allowed() {
        Decision::Allow
    } else {
        Decision::Deny
    };
    if let Some(expected) = expect.decision.filter(|expected| *expected != actual) {
        return format!("expected {}, got {}", expected.as_str(), actual.as_str());
    }
    let text = match outcome.denial.as_ref().map(|denial| denial.by) {
        Some(DeniedBy::Error) => "denied by an error, and not by a validation",
        Some(DeniedBy::NoParams) => "denied because there are no params, and not by a validation",
        None if !outcome.errors.is_empty() => "an error, which does not deny here",
        None if !has_policy_applied(outcome) => "the policy does not apply",
        None | Some(DeniedBy::Validation) => "the result is not the expected one",
    };
    text.to_owned()
}

fn names_message(expect: &Expect) -> bool {
    let names = [
        &expect.message,
        &expect.message_contains,
        &expect.message_pattern,
    ];
    names.into_iter().any(Option::is_some)
}

/// Reports whether a text has a part that `pattern` matches.
fn fits_pattern(pattern: &str, texts: &[&str]) -> Result<bool, String> {
    let program = regexp::Program::cached(pattern).map_err(|error| error.to_string())?;
    for text in texts {
        match program.is_match(text, &MemoryLimit) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(false)
}

fn quoted(texts: &[&str]) -> String {
    if texts.is_empty() {
        return "none".to_owned();
    }
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    quoted.join(", ")
}

/// How the errors of `outcome` differ from the expected one; `explain` says how it came to none.
pub(super) fn error(
    expect: &Expect,
    outcome: &ReviewOutcome,
    explain: fn(&ReviewOutcome) -> String,
) -> Option<String> {
    let expected = expect.error.as_ref()?;
    let mut given: Vec<&str> = outcome.errors.iter().map(String::as_str).collect();
    if let Some(denial) = &outcome.denial
        && denial.by != DeniedBy::Validation
        && !given.contains(&denial.cause.as_str())
    {
        given.push(&denial.cause);
    }
    let mut missing = Vec::new();
    if let Some(text) = &expected.text
        && !given.contains(&text.as_str())
    {
        missing.push(format!("the error {text:?}"));
    }
    if let Some(part) = &expected.contains
        && !given.iter().any(|text| text.contains(part.as_str()))
    {
        missing.push(format!("an error that contains {part:?}"));
    }
    if let Some(pattern) = &expected.pattern {
        match fits_pattern(pattern, &given) {
            Ok(true) => {}
            Ok(false) => missing.push(format!("an error that matches {pattern:?}")),
            Err(why) => return Some(format!("error.pattern is no regular expression: {why}")),
        }
    }
    if missing.is_empty() {
        return None;
    }
    let found = if given.is_empty() {
        format!("none: {}", explain(outcome))
    } else {
        quoted(&given)
    };
    Some(format!("expected {}, got {found}", missing.join(" and ")))
}

/// How many validations say no.
fn n_failing(outcome: &ReviewOutcome) -> usize {
    let evaluations = outcome.evaluations.iter();
    let failing = evaluations.flat_map(|evaluation| {
        let decisions = evaluation.decisions.iter().enumerate();
        decisions
            .filter(|(_, decision)| decision.evaluation == EvaluationResult::Deny)
            .map(|(n, _)| n)
    });
    failing.collect::<BTreeSet<usize>>().len()
}

fn failing_validations(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    let expected = expect.failing_validations?;
    let found = n_failing(outcome);
    (usize::try_from(expected) != Ok(found))
        .then(|| format!("expected {expected} validations that say no, got {found}"))
}

/// Reports whether the policy had a say: an evaluation got as far as the validations, or a binding denied for lack
/// of params.
fn has_policy_applied(outcome: &ReviewOutcome) -> bool {
    outcome.denial.is_some() || outcome.evaluations.iter().any(has_applied)
}

/// Why the request was decided so, in a sentence.
#[must_use]
pub fn explain(outcome: &ReviewOutcome) -> String {
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
        return unmatched(
            "the match constraints of the policy do not match the request",
            outcome,
        );
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
        return unbound(outcome);
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

/// Sentence about constraints that do not match, with the part because of which they do not.
pub(super) fn unmatched(what: &str, outcome: &ReviewOutcome) -> String {
    match outcome.definition.unmatched {
        Some(unmatched) => format!("{what}: {}", unmatched.words()),
        None => what.to_owned(),
    }
}

/// Sentence about bindings of which none matches, with the part of each because of which it does not.
#[must_use]
pub fn unbound(outcome: &ReviewOutcome) -> String {
    /// How many bindings are told of.
    const MAX_TOLD: usize = 3;
    let what = "no binding matches the request";
    let bindings = outcome.bindings.iter();
    let told = bindings.filter_map(|binding| {
        Some(format!(
            "{:?}: {}",
            binding.name,
            binding.unmatched?.words()
        ))
    });
    let mut told: Vec<String> = told.collect();
    if told.is_empty() {
        return what.to_owned();
    }
    let n_more = told.len().saturating_sub(MAX_TOLD);
    told.truncate(MAX_TOLD);
    if n_more > 0 {
        told.push(format!("and {n_more} more"));
    }
    format!("{what} ({})", told.join("; "))
}

/// Reports whether an evaluation got as far as the validations.
pub(super) fn has_applied(evaluation: &Evaluation) -> bool {
    evaluation
        .match_conditions
        .as_ref()
        .is_none_or(|conditions| conditions.matches)
}

fn applies(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
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

/// The messages of everything that denies the request, `with_errors` those of errors too.
fn messages<'a>(
    bindings: &[Binding],
    outcome: &'a ReviewOutcome,
    with_errors: bool,
) -> Vec<&'a str> {
    let denial = outcome.denial.iter();
    let mut messages: Vec<&str> = denial
        .filter(|denial| with_errors || denial.by != DeniedBy::Error)
        .map(|denial| denial.cause.as_str())
        .collect();
    let decisions = outcome
        .evaluations
        .iter()
        .filter(|evaluation| denies(evaluation, bindings))
        .flat_map(|evaluation| &evaluation.decisions);
    let is_told = |decision: &&policy::admission::Decision| {
        decision.action == Action::Deny
            && (with_errors || decision.evaluation == EvaluationResult::Deny)
    };
    for decision in decisions.filter(is_told) {
        if !messages.contains(&decision.message.as_str()) {
            messages.push(&decision.message);
        }
    }
    messages
}

fn message(expect: &Expect, bindings: &[Binding], outcome: &ReviewOutcome) -> Option<String> {
    let given = messages(bindings, outcome, expect.error.is_some());
    if let Some(wanted) = &expect.message
        && !given.contains(&wanted.as_str())
    {
        return Some(format!(
            "expected the message {wanted:?}, got {}",
            quoted(&given)
        ));
    }
    if let Some(part) = &expect.message_contains
        && !given.iter().any(|text| text.contains(part.as_str()))
    {
        return Some(format!(
            "expected a message that contains {part:?}, got {}",
            quoted(&given)
        ));
    }
    if let Some(pattern) = &expect.message_pattern {
        match fits_pattern(pattern, &given) {
            Ok(true) => {}
            Ok(false) => {
                return Some(format!(
                    "expected a message that matches {pattern:?}, got {}",
                    quoted(&given)
                ));
            }
            Err(why) => return Some(format!("messagePattern is no regular expression: {why}")),
        }
    }
    expect.forbidden_messages.iter().find_map(|part| {
        let found = given.iter().find(|text| text.contains(part.as_str()))?;
        Some(format!(
            "expected no message that contains {part:?}, got {found:?}"
        ))
    })
}

fn reason(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    let wanted = expect.reason.as_ref()?;
    let given = outcome
        .denial
        .as_ref()
        .map(|denial| denial.reason.as_str())
        .unwrap_or_default();
    (given != wanted).then(|| format!("expected the reason {wanted:?}, got {given:?}"))
}

/// Warnings may be given whole, or as the message at their end.
fn warnings(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
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

/// The expected audit annotations that `outcome` does not have so: key, value, and the value there is.
fn differing_annotations<'a>(
    expect: &'a Expect,
    policy: &str,
    outcome: &'a ReviewOutcome,
) -> impl Iterator<Item = (&'a str, &'a str, Option<&'a String>)> {
    let annotations = &outcome.audit_annotations;
    expect
        .audit_annotations
        .iter()
        .filter_map(move |(key, wanted)| {
            let given = annotations.get(&format!("{policy}/{key}"));
            let given = given.or_else(|| annotations.get(key));
            (given != Some(wanted)).then_some((key.as_str(), wanted.as_str(), given))
        })
}

/// The keys of the audit annotations because of which a case of `policy` fails, whose decision is as expected.
#[must_use]
pub fn failing_annotations<'a>(
    expect: &'a Expect,
    policy: &str,
    outcome: &'a ReviewOutcome,
) -> Vec<&'a str> {
    if decision(expect, outcome).is_some() {
        return Vec::new();
    }
    differing_annotations(expect, policy, outcome)
        .map(|(key, ..)| key)
        .collect()
}

fn audit_annotations(expect: &Expect, policy: &str, outcome: &ReviewOutcome) -> Option<String> {
    let differing = differing_annotations(expect, policy, outcome).map(|(key, wanted, given)| {
        let given = given.map_or_else(|| "none".to_owned(), |given| format!("{given:?}"));
        format!("expected the audit annotation {key} to be {wanted:?}, got {given}")
    });
    let differing: Vec<String> = differing.collect();
    (!differing.is_empty()).then(|| differing.join("; "))
}
