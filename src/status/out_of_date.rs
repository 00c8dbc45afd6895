//! Notes on conditions that may be out of date: what they rest on has not been readable for longer than a pause takes.
//!
//! A condition whose verdict cannot be given anew stands as it is (ADR 1), and so does one that rests on resources as
//! they were before an aggregated API went down. After a minute its message says so, and by what.

use super::compute::{Checked, Observed};
use super::condition::{ConditionStatus, ConditionType};
use super::message;
use super::verdict::Verdict;

/// Signs that a condition may be out of date, beside the verdicts themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Staleness<'a> {
    /// The group version of the policy's paramKind, where it has not been discovered for some time.
    pub undiscovered_params: &'a [String],
    /// True if a condition has been kept for longer than a pause takes, since its verdict cannot be given anew.
    pub is_kept_long: bool,
}

/// The words between a message and the note on it.
const MARK: &str = "; may be out of date: ";

/// The note on the condition `type_` with the verdict `verdict`, which stands in for another if it `is_kept`.
pub(super) fn note(
    observed: &Observed<'_>,
    type_: ConditionType,
    verdict: &Verdict,
    is_kept: bool,
) -> Option<String> {
    // What is unknown claims nothing.
    if verdict.status == ConditionStatus::Unknown {
        return None;
    }
    let undiscovered = undiscovered(observed, type_);
    if !undiscovered.is_empty() {
        let groups = message::list(undiscovered);
        return Some(format!("{groups} cannot be discovered"));
    }
    if !is_kept || !observed.staleness.is_kept_long {
        return None;
    }
    let what = match type_ {
        ConditionType::ResourcesMatched => "what is served cannot be discovered",
        ConditionType::ParamsResolved => "the params cannot be read",
        ConditionType::TypeChecked | ConditionType::Compiled => "a schema cannot be read",
        ConditionType::ProbesPassed => "what the probes need cannot be read",
        ConditionType::Bound => "the bindings cannot be read",
        ConditionType::Ready | ConditionType::Stalled => return None,
    };
    Some(what.to_owned())
}

/// The group versions that a condition rests on and that have not been discovered for some time.
fn undiscovered<'a>(observed: &Observed<'a>, type_: ConditionType) -> &'a [String] {
    match type_ {
        ConditionType::ResourcesMatched | ConditionType::TypeChecked => match &observed.matches {
            Checked::Done(matched) => &matched.undiscovered,
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

/// A message and the note on it.
pub(super) fn split(message: &str) -> (&str, Option<&str>) {
    match message.rsplit_once(MARK) {
        Some((message, note)) => (message, Some(note)),
        None => (message, None),
    }
}

/// The message with the note on it, of which nothing is cut off.
pub(super) fn join(message: &str, note: Option<&str>) -> String {
    let Some(note) = note else {
        return message.to_owned();
    };
    let room = message::MAX_BYTES.saturating_sub(MARK.len() + note.len());
    format!("{}{MARK}{note}", message::cut(message, room))
}
