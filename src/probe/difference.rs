//! Describes how the outcome of a case differs from the expectation, for ValidatingAdmissionPolicies.

use std::collections::BTreeSet;

use regexp::MemoryLimit;

use super::api::{Decision, Expect};
use crate::policy;
use crate::policy::admission::{
    Action, Binding, DeniedBy, Evaluation, EvaluationResult, ReviewOutcome,
};

/// Describes how `outcome` differs from `expect`, if it differs. `bindings` must contain the bindings of all
/// evaluations in `outcome`.
#[must_use]
pub(super) fn difference(
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

/// Describes the difference in the decision or its cause. If there is one, other differences are not reported.
fn decision(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    let actual = if outcome.is_allowed() {
        Decision::Allow
    } else {
        Decision::Deny
    };
    let differs = expect.decision.filter(|expected| *expected != actual);
    let by = outcome.denial.as_ref().map(|denial| denial.by);
    if let Some(expected) = differs {
        let by = match by {
            Some(DeniedBy::Error) => " by an error",
            _ => "",
        };
        return Some(format!(
            "expected {}, got {}{by}: {}",
            expected.as_str(),
            actual.as_str(),
            explain(outcome)
        ));
    }
    let is_skipped = !has_policy_applied(outcome) && outcome.errors.is_empty();
    if is_skipped && expect.applies != Some(false) {
        return Some(format!(
            "the policy does not apply: {}; expect `applies: false` if this is intended",
            explain(outcome)
        ));
    }
    if expect.error.is_some() {
        return None;
    }
    match (expect.decision, by) {
        (Some(Decision::Deny), Some(DeniedBy::Validation)) => None,
        // If the case expects a message, a denial because of missing params is accepted.
        (Some(Decision::Deny), Some(DeniedBy::NoParams)) if expects_message(expect) => None,
        (Some(Decision::Deny), Some(DeniedBy::NoParams)) => Some(format!(
            "denied because there are no params, not by a validation: {}; expect the message or \
             `error` if this is intended",
            explain(outcome)
        )),
        (_, Some(DeniedBy::Error | DeniedBy::NoParams)) => Some(format!(
            "denied by an error, not by a validation: {}; expect `error` if this is intended",
            explain(outcome)
        )),
        _ => outcome.errors.first().map(|error| {
            format!(
                "the policy failed, but the request is not denied: {error}; expect `error` if this is intended"
            )
        }),
    }
}

/// Describes how the outcome of a failed case differs from the expectation, without quoting expressions or messages.
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
        Some(DeniedBy::Error) => "denied by an error, not by a validation",
        Some(DeniedBy::NoParams) => "denied because there are no params, not by a validation",
        None if !outcome.errors.is_empty() => "the policy failed, but the request is not denied",
        None if !has_policy_applied(outcome) => "the policy does not apply",
        None | Some(DeniedBy::Validation) => "the result is not the expected one",
    };
    text.to_owned()
}

fn expects_message(expect: &Expect) -> bool {
    let messages = [
        &expect.message,
        &expect.message_contains,
        &expect.message_pattern,
    ];
    messages.into_iter().any(Option::is_some)
}

/// Returns true if `pattern` matches a substring of one of `texts`.
fn matches_pattern(pattern: &str, texts: &[&str]) -> Result<bool, String> {
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

/// Describes how the errors of `outcome` differ from the expected error. If there is no error, `explain` describes the
/// outcome.
pub(super) fn error(
    expect: &Expect,
    outcome: &ReviewOutcome,
    explain: fn(&ReviewOutcome) -> String,
) -> Option<String> {
    let expected = expect.error.as_ref()?;
    let mut actual: Vec<&str> = outcome.errors.iter().map(String::as_str).collect();
    if let Some(denial) = &outcome.denial
        && denial.by != DeniedBy::Validation
        && !actual.contains(&denial.cause.as_str())
    {
        actual.push(&denial.cause);
    }
    let mut missing = Vec::new();
    if let Some(text) = &expected.text
        && !actual.contains(&text.as_str())
    {
        missing.push(format!("the error {text:?}"));
    }
    if let Some(part) = &expected.contains
        && !actual.iter().any(|text| text.contains(part.as_str()))
    {
        missing.push(format!("an error that contains {part:?}"));
    }
    if let Some(pattern) = &expected.pattern {
        match matches_pattern(pattern, &actual) {
            Ok(true) => {}
            Ok(false) => missing.push(format!("an error that matches {pattern:?}")),
            Err(why) => {
                return Some(format!(
                    "error.pattern is not a valid regular expression: {why}"
                ));
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let actual = if actual.is_empty() {
        format!("none: {}", explain(outcome))
    } else {
        quoted(&actual)
    };
    Some(format!("expected {}, got {actual}", missing.join(" and ")))
}

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
    let actual = n_failing(outcome);
    (usize::try_from(expected) != Ok(actual))
        .then(|| format!("expected {expected} failing validations, got {actual}"))
}

/// Returns true if the policy applied: validations were evaluated, or a binding denied the request for lack of params.
fn has_policy_applied(outcome: &ReviewOutcome) -> bool {
    outcome.denial.is_some() || outcome.evaluations.iter().any(has_applied)
}

/// Returns the reason of the decision as a clause without a period.
#[must_use]
pub fn explain(outcome: &ReviewOutcome) -> String {
    if let Some(why) = &outcome.not_evaluated_reason {
        return why.clone();
    }
    if let Some(denial) = &outcome.denial {
        return denial.cause.clone();
    }
    if let Some(error) = &outcome.definition.error {
        return format!(
            "cannot determine whether the policy matches, and failurePolicy Ignore ignores this error: {error}"
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
        return format!(
            "a binding cannot be used, and failurePolicy Ignore ignores this error: {error}"
        );
    }
    if !outcome.bindings.iter().any(|binding| binding.matches) {
        return unbound(outcome);
    }
    if outcome.evaluations.is_empty() {
        return "there are no params, and parameterNotFoundAction Allow allows the request"
            .to_owned();
    }
    if !outcome.evaluations.iter().any(has_applied) {
        let failed = outcome
            .evaluations
            .iter()
            .filter_map(|evaluation| evaluation.match_conditions.as_ref())
            .find_map(|conditions| conditions.failed_condition.as_ref());
        return match failed {
            Some(name) => format!("the match condition {name:?} is false"),
            None => "a match condition is false".to_owned(),
        };
    }
    let denying = outcome
        .evaluations
        .iter()
        .flat_map(|evaluation| &evaluation.decisions)
        .find(|decision| decision.action == Action::Deny);
    match denying {
        Some(decision) => format!(
            "a validation failed, and no binding has the action Deny: {}",
            decision.message
        ),
        None => "all validations passed".to_owned(),
    }
}

/// Appends the failed match constraint to `sentence`, which only states that the match constraints do not match.
pub(super) fn unmatched(sentence: &str, outcome: &ReviewOutcome) -> String {
    match outcome.definition.unmatched {
        Some(unmatched) => format!("{sentence}: {}", unmatched.words()),
        None => sentence.to_owned(),
    }
}

/// Returns the clause "no binding matches the request" with the reason for each binding.
#[must_use]
pub fn unbound(outcome: &ReviewOutcome) -> String {
    /// The maximum number of bindings with a reason.
    const MAX_BINDINGS: usize = 3;
    let sentence = "no binding matches the request";
    let bindings = outcome.bindings.iter();
    let reasons = bindings.filter_map(|binding| {
        Some(format!(
            "{:?}: {}",
            binding.name,
            binding.unmatched?.words()
        ))
    });
    let mut reasons: Vec<String> = reasons.collect();
    if reasons.is_empty() {
        return sentence.to_owned();
    }
    let n_more = reasons.len().saturating_sub(MAX_BINDINGS);
    reasons.truncate(MAX_BINDINGS);
    if n_more > 0 {
        reasons.push(format!("and {n_more} more"));
    }
    format!("{sentence} ({})", reasons.join("; "))
}

/// Returns true if the match conditions were true, so validations were evaluated.
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
        (false, true) => Some("expected the policy not to apply, but it does".to_owned()),
        _ => None,
    }
}

fn denies(evaluation: &Evaluation, bindings: &[Binding]) -> bool {
    let actions = bindings
        .iter()
        .filter(|binding| evaluation.binding.as_deref() == Some(binding.name()))
        .flat_map(Binding::validation_actions);
    actions.into_iter().any(|action| action == "Deny")
}

/// Returns the messages of failed validations that deny the request. Includes messages of errors if `with_errors` is
/// true.
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
    let is_denial = |decision: &&policy::admission::Decision| {
        decision.action == Action::Deny
            && (with_errors || decision.evaluation == EvaluationResult::Deny)
    };
    for decision in decisions.filter(is_denial) {
        if !messages.contains(&decision.message.as_str()) {
            messages.push(&decision.message);
        }
    }
    messages
}

fn message(expect: &Expect, bindings: &[Binding], outcome: &ReviewOutcome) -> Option<String> {
    let actual = messages(bindings, outcome, expect.error.is_some());
    if let Some(expected) = &expect.message
        && !actual.contains(&expected.as_str())
    {
        return Some(format!(
            "expected the message {expected:?}, got {}",
            quoted(&actual)
        ));
    }
    if let Some(part) = &expect.message_contains
        && !actual.iter().any(|text| text.contains(part.as_str()))
    {
        return Some(format!(
            "expected a message that contains {part:?}, got {}",
            quoted(&actual)
        ));
    }
    if let Some(pattern) = &expect.message_pattern {
        match matches_pattern(pattern, &actual) {
            Ok(true) => {}
            Ok(false) => {
                return Some(format!(
                    "expected a message that matches {pattern:?}, got {}",
                    quoted(&actual)
                ));
            }
            Err(why) => {
                return Some(format!(
                    "messagePattern is not a valid regular expression: {why}"
                ));
            }
        }
    }
    expect.forbidden_messages.iter().find_map(|part| {
        let message = actual.iter().find(|text| text.contains(part.as_str()))?;
        Some(format!(
            "expected no message that contains {part:?}, got {message:?}"
        ))
    })
}

fn reason(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    let expected = expect.reason.as_ref()?;
    let actual = outcome
        .denial
        .as_ref()
        .map(|denial| denial.reason.as_str())
        .unwrap_or_default();
    (actual != expected).then(|| format!("expected the reason {expected:?}, got {actual:?}"))
}

/// Describes the difference in warnings. In an actual warning, a prefix that ends with `: ` may precede the expected
/// warning.
fn warnings(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    let expected = expect.warnings.as_ref()?;
    let is_match = |actual: &str, expected: &str| {
        actual == expected
            || actual
                .strip_suffix(expected)
                .is_some_and(|rest| rest.ends_with(": "))
    };
    let mut unexpected: Vec<&str> = outcome.warnings.iter().map(String::as_str).collect();
    let mut missing = Vec::new();
    for text in expected {
        match unexpected.iter().position(|actual| is_match(actual, text)) {
            Some(index) => {
                unexpected.remove(index);
            }
            None => missing.push(format!("{text:?}")),
        }
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("expected warnings: {}", missing.join(", ")));
    }
    if !unexpected.is_empty() {
        let unexpected: Vec<String> = unexpected.iter().map(|text| format!("{text:?}")).collect();
        parts.push(format!("unexpected warnings: {}", unexpected.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the differing audit annotations: key, expected value and actual value.
fn differing_annotations<'a>(
    expect: &'a Expect,
    policy: &str,
    outcome: &'a ReviewOutcome,
) -> impl Iterator<Item = (&'a str, &'a str, Option<&'a String>)> {
    let annotations = &outcome.audit_annotations;
    expect
        .audit_annotations
        .iter()
        .filter_map(move |(key, expected)| {
            let actual = annotations.get(&format!("{policy}/{key}"));
            let actual = actual.or_else(|| annotations.get(key));
            (actual != Some(expected)).then_some((key.as_str(), expected.as_str(), actual))
        })
}

/// Returns the keys of audit annotations that differ from the expected ones. Empty if the decision itself is not as
/// expected.
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
    let differing =
        differing_annotations(expect, policy, outcome).map(|(key, expected, actual)| {
            let actual = actual.map_or_else(|| "none".to_owned(), |actual| format!("{actual:?}"));
            format!("expected the audit annotation {key} to be {expected:?}, got {actual}")
        });
    let differing: Vec<String> = differing.collect();
    (!differing.is_empty()).then(|| differing.join("; "))
}
