//! Adds notes to conditions that may be out of date.
//!
//! A condition is retained if it temporarily cannot be recomputed (ADR 1). A condition that depends on an unavailable
//! aggregated API is retained, too. If this lasts for more than a minute, a note with the cause is appended to the
//! message.

use super::compute::{Observations, StepOutcome};
use super::condition::{ConditionStatus, ConditionType};
use super::message;
use super::verdict::Verdict;

/// Inputs of the notes, in addition to the evidence in verdicts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Staleness<'a> {
    /// The group version of the paramKind, if its discovery has failed for more than a minute. Otherwise empty.
    pub undiscovered_params: &'a [String],
    /// True if a condition could not be recomputed for more than a minute.
    pub is_retained_long: bool,
}

/// The separator between a message and its note. Stored conditions contain this separator, so it must not change.
const MARK: &str = "; may be out of date: ";

/// Returns the note for a condition, if it may be out of date. `is_retained` is true if `verdict` comes from the stored
/// condition.
pub(super) fn note(
    observed: &Observations<'_>,
    type_: ConditionType,
    verdict: &Verdict,
    is_retained: bool,
) -> Option<String> {
    if verdict.status == ConditionStatus::Unknown {
        return None;
    }
    let undiscovered = undiscovered(observed, type_);
    if !undiscovered.is_empty() {
        let groups = message::list(undiscovered);
        return Some(format!("{groups} cannot be discovered"));
    }
    if !is_retained || !observed.staleness.is_retained_long {
        return None;
    }
    let cause = match type_ {
        ConditionType::ResourcesMatched => "the served resources cannot be discovered",
        ConditionType::ParamsResolved => "the params cannot be read",
        ConditionType::TypeChecked | ConditionType::Compiled => "a schema cannot be read",
        ConditionType::ProbesPassed => "inputs of the probes cannot be read",
        ConditionType::Bound => "the bindings cannot be read",
        ConditionType::Ready | ConditionType::Stalled => return None,
    };
    Some(cause.to_owned())
}

/// Returns the group versions on which a condition depends and whose discovery has failed for more than a minute.
fn undiscovered<'a>(observed: &Observations<'a>, type_: ConditionType) -> &'a [String] {
    match type_ {
        ConditionType::ResourcesMatched | ConditionType::TypeChecked => match &observed.matches {
            StepOutcome::Done(matched) => &matched.undiscovered,
            _ => &[],
        },
        ConditionType::ParamsResolved => observed.staleness.undiscovered_params,
        ConditionType::Ready
        | ConditionType::Compiled
        | ConditionType::ProbesPassed
        | ConditionType::Bound
        | ConditionType::Stalled => &[],
    }
}

/// Splits a stored message into the message without note, and the note.
pub(super) fn split(message: &str) -> (&str, Option<&str>) {
    match message.rsplit_once(MARK) {
        Some((message, note)) => (message, Some(note)),
        None => (message, None),
    }
}

/// Appends the note to the message. If necessary, truncates the message but not the note.
pub(super) fn join(message: &str, note: Option<&str>) -> String {
    let Some(note) = note else {
        return message.to_owned();
    };
    let room = message::MAX_BYTES.saturating_sub(MARK.len() + note.len());
    format!("{}{MARK}{note}", message::cut(message, room))
}
