//! Computes `Ready` and `Stalled`, which summarize the other conditions.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::compute::{Observations, StepOutcome};
use super::condition::{self, ConditionStatus, ConditionType, Reason};
use super::message;
use super::staleness;
use super::stalled::Remedy;
use super::verdict::{Evidence, Verdict};

/// Computes the condition `Ready` from the conditions in `requires`:
///
/// - `Ready` is False if a required condition is False. The reason is that of the first such condition.
/// - `Ready` is Unknown if a required condition is not known *yet*.
/// - Otherwise, `Ready` is True. Its message lists required conditions that are permanently Unknown (such as
///   `NoTypesToCheck`), because waiting does not change them.
pub(super) fn ready(
    parts: &[(ConditionType, Verdict)],
    requires: &BTreeSet<ConditionType>,
) -> Verdict {
    let counting = || parts.iter().filter(|(type_, _)| requires.contains(type_));
    if let Some((_, failing)) =
        counting().find(|(_, verdict)| verdict.status == ConditionStatus::False)
    {
        return Verdict::new(
            ConditionStatus::False,
            failing.reason,
            failing.message.clone(),
        )
        .with_note(failing.note.clone());
    }
    let is_pending = |verdict: &Verdict| {
        matches!(verdict.evidence, Evidence::Pending | Evidence::Unavailable)
            && verdict.status == ConditionStatus::Unknown
    };
    if let Some((type_, verdict)) = counting().find(|(_, verdict)| is_pending(verdict)) {
        return Verdict::new(
            ConditionStatus::Unknown,
            Reason::Pending,
            format!("{type_} is not known yet: {}", verdict.message),
        );
    }
    let unknown: Vec<String> = counting()
        .filter(|(_, verdict)| verdict.status == ConditionStatus::Unknown)
        // A policy without probes is normal, so the message does not mention `ProbesPassed`.
        .filter(|(_, verdict)| verdict.reason != Reason::NoProbes)
        .map(|(type_, verdict)| format!("{type_} ({})", verdict.reason))
        .collect();
    let text = if unknown.is_empty() {
        "no problems found".to_owned()
    } else {
        format!("no problems found; unknown: {}", message::list(&unknown))
    };
    let note = counting().find_map(|(_, verdict)| verdict.note.clone());
    Verdict::new(ConditionStatus::True, Reason::Ready, text).with_note(note)
}

/// Computes the condition `Stalled` from the first required condition that is False and that only an edit of the policy
/// can change. Returns `None` if there is none.
///
/// `Ready` may report another False condition, which can change without an edit. Nevertheless, `Ready` becomes True
/// only after an edit.
pub(super) fn stalled(
    parts: &[(ConditionType, Verdict)],
    observed: &Observations<'_>,
) -> Option<Verdict> {
    let needs_edit = |verdict: &Verdict| match verdict.reason.remedy() {
        Remedy::Edit => true,
        Remedy::EditOrSchema => match (&observed.types, &observed.matches) {
            (StepOutcome::Done(types), StepOutcome::Done(matches)) => {
                !types.outcome.has_foreign_kinds
                    && types.waiting.is_empty()
                    && matches.incomplete.is_empty()
            }
            _ => false,
        },
        Remedy::Elsewhere => false,
    };
    let (_, lasting) = parts.iter().find(|(type_, verdict)| {
        observed.ready_requires.contains(type_)
            && verdict.status == ConditionStatus::False
            && needs_edit(verdict)
    })?;
    let verdict = Verdict::new(
        ConditionStatus::True,
        lasting.reason,
        lasting.message.clone(),
    );
    Some(verdict.with_note(lasting.note.clone()))
}

/// Returns the stored `Stalled` condition for `generation`, with the note of `TypeChecked`. Only a condition with the
/// reason `ExpressionWarnings` can be retained.
pub(super) fn retained_stalled(
    live: &[Condition],
    generation: i64,
    parts: &[(ConditionType, Verdict)],
) -> Option<Verdict> {
    let last = condition::find(live, ConditionType::Stalled)?;
    let reason = Reason::from_name(&last.reason)?;
    let is_current = reason.remedy() == Remedy::EditOrSchema
        && last.observed_generation == Some(generation)
        && ConditionStatus::from_condition(last) == ConditionStatus::True;
    let mut types = parts.iter();
    let types = types.find(|(type_, _)| *type_ == ConditionType::TypeChecked);
    let note = types.and_then(|(_, verdict)| verdict.note.clone());
    let (message, _) = staleness::split(&last.message);
    is_current.then(|| Verdict::new(ConditionStatus::True, reason, message).with_note(note))
}
