//! Determines whether a webhook is called, and compares this with the expectation of a case.
//!
//! The response of the webhook is unknown, because the webhook is not called. A case can expect a call, no call, or an
//! error of a match condition or selector.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/generic/webhook.go`, `ShouldCallHook`.

use super::api::Expect;
use super::difference::{self, has_applied, unmatched};
use crate::policy::admission::ReviewOutcome;

/// Describes how `outcome` differs from `expect`, if it differs. The webhook was evaluated as a policy.
pub(super) fn difference(expect: &Expect, outcome: &ReviewOutcome) -> Option<String> {
    if expect.error.is_some() {
        return difference::error(expect, outcome, explain);
    }
    let is_denied = outcome.denial.is_some();
    if is_denied || !outcome.errors.is_empty() {
        return Some(format!(
            "unexpected error: {}; expect `error` if this is intended",
            explain(outcome)
        ));
    }
    match (expect.applies, is_called(outcome)) {
        (Some(true), false) => Some(format!(
            "expected the webhook to be called: {}",
            explain(outcome)
        )),
        (Some(false), true) => Some("expected the webhook not to be called, but it is".to_owned()),
        _ => None,
    }
}

/// Returns a clause that states whether the webhook is called, and why.
pub(super) fn explain(outcome: &ReviewOutcome) -> String {
    if let Some(why) = &outcome.not_evaluated_reason {
        return why.clone();
    }
    if let Some(denial) = &outcome.denial {
        return format!("the request is denied: {}", denial.cause);
    }
    let error = (outcome.definition.error.as_ref()).or_else(|| outcome.errors.first());
    if let Some(error) = error {
        return format!(
            "the webhook is not called, because failurePolicy Ignore ignores an error: {error}"
        );
    }
    if outcome.definition.matched.is_none() {
        return unmatched(
            "the rules and selectors of the webhook do not match the request",
            outcome,
        );
    }
    if is_called(outcome) {
        return "the webhook is called".to_owned();
    }
    let conditions = outcome.evaluations.iter();
    let failed = conditions
        .filter_map(|evaluation| evaluation.match_conditions.as_ref())
        .find_map(|conditions| conditions.failed_condition.as_ref());
    match failed {
        Some(name) => format!("the match condition {name:?} is false"),
        None => "a match condition is false".to_owned(),
    }
}

fn is_called(outcome: &ReviewOutcome) -> bool {
    outcome.denial.is_none()
        && outcome.errors.is_empty()
        && outcome.evaluations.iter().any(has_applied)
}
