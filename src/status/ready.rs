//! Conditions that sum up the others: `Ready` and `Stalled`.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::compute::{Checked, Observed};
use super::condition::{self, ConditionStatus, ConditionType, Reason};
use super::message;
use super::out_of_date;
use super::stalled::Remedy;
use super::verdict::{Evidence, Verdict};

/// The condition `Ready`.
///
/// It is False with the first condition that counts and is False. It is Unknown while a condition
/// that counts is not known *yet*. Where one cannot be known at all (`NoTypesToCheck`,
/// `UnsupportedExpression`), waiting would be in vain, and nothing wrong was found: that is True,
/// and the message says what is not known.
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
        matches!(verdict.evidence, Evidence::Awaited | Evidence::Lost)
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
        // That nobody wrote a probe is no gap of the checks.
        .filter(|(_, verdict)| verdict.reason != Reason::NoProbes)
        .map(|(type_, verdict)| format!("{type_} ({})", verdict.reason))
        .collect();
    let text = if unknown.is_empty() {
        "nothing wrong was found".to_owned()
    } else {
        format!(
            "nothing wrong was found; cannot be told: {}",
            message::list(&unknown)
        )
    };
    let note = counting().find_map(|(_, verdict)| verdict.note.clone());
    Verdict::new(ConditionStatus::True, Reason::Ready, text).with_note(note)
}

/// The condition `Stalled`, where it holds: the first condition that counts, is False and lasts.
///
/// `Ready` may be False for another reason that passes; it stays False all the same.
pub(super) fn stalled(
    parts: &[(ConditionType, Verdict)],
    observed: &Observed<'_>,
) -> Option<Verdict> {
    let lasts = |verdict: &Verdict| match verdict.reason.remedy() {
        Remedy::Edit => true,
        Remedy::EditOrSchema => match (&observed.types, &observed.matches) {
            (Checked::Done(types), Checked::Done(matches)) => {
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
            && lasts(verdict)
    })?;
    let verdict = Verdict::new(
        ConditionStatus::True,
        lasting.reason,
        lasting.message.clone(),
    );
    Some(verdict.with_note(lasting.note.clone()))
}

/// `Stalled` because of warnings, as it was said of the same generation before.
///
/// The note is that of `TypeChecked`, which it repeats.
pub(super) fn standing_stalled(
    live: &[Condition],
    generation: i64,
    parts: &[(ConditionType, Verdict)],
) -> Option<Verdict> {
    let last = condition::find(live, ConditionType::Stalled)?;
    let reason = Reason::from_name(&last.reason)?;
    let stands = reason.remedy() == Remedy::EditOrSchema
        && last.observed_generation == Some(generation)
        && ConditionStatus::of(last) == ConditionStatus::True;
    let mut types = parts.iter();
    let types = types.find(|(type_, _)| *type_ == ConditionType::TypeChecked);
    let note = types.and_then(|(_, verdict)| verdict.note.clone());
    let (message, _) = out_of_date::split(&last.message);
    stands.then(|| Verdict::new(ConditionStatus::True, reason, message).with_note(note))
}
