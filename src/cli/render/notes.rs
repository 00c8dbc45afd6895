//! Notes on a policy: why its conditions say nothing, and which are not True.

use super::cells::word;
use crate::cli::report::{ConditionReport, Judge, PolicyReport, State};
use crate::cli::text::clean;

/// The reasons whose messages say no more than the column does, of many policies at once: what nobody bound
/// or probed.
const TOLD_BY_COLUMN: [&str; 2] = ["NoBindings", "NoProbes"];

/// The notes on a policy, a paragraph each: its state, then the conditions that are not True, those that are
/// False first.
pub(super) fn notes(policy: &PolicyReport) -> Vec<String> {
    let mut notes: Vec<_> = state_note(policy).into_iter().collect();
    let mut conditions: Vec<_> = policy
        .conditions
        .iter()
        .filter(|condition| !condition.is_ready() && condition.status != "True")
        .filter(|condition| !TOLD_BY_COLUMN.contains(&condition.reason.as_str()))
        .collect();
    if conditions.is_empty() && policy.state != State::Ready {
        conditions.extend(policy.ready().filter(|ready| ready.status != "True"));
    }
    conditions.sort_by_key(|condition| condition.status != "False");
    notes.extend(conditions.into_iter().map(condition_note));
    notes
}

/// A condition in one paragraph.
fn condition_note(condition: &ConditionReport) -> String {
    format!(
        "{}={} {}: {}",
        word(&condition.type_),
        word(&condition.status),
        word(&condition.reason),
        clean(&condition.message)
    )
}

/// Why the conditions, or the lack of them, say nothing about the policy as it stands.
pub(super) fn state_note(policy: &PolicyReport) -> Option<String> {
    if policy.judged_by == Some(Judge::Plugin) {
        return None;
    }
    match policy.state {
        State::NoStatus if policy.type_checking_completed => Some(format!(
            "no status from vap-status-controller; kube-controller-manager alone has checked types: {}",
            count(policy.expression_warnings.len(), "warning", "warnings"),
        )),
        State::NoStatus => Some("no status from vap-status-controller".to_owned()),
        State::Excluded => Some(
            "left alone by vap-status-controller, whose --exclude-names or --exclude-selector fit"
                .to_owned(),
        ),
        State::Stale => Some(format!(
            "stale: the status is of generation {}, the policy is at {}",
            policy.observed_generation.unwrap_or(0),
            policy.generation
        )),
        State::Ready | State::NotReady | State::Unknown => None,
    }
}

/// A number of things.
pub(super) fn count(n_things: usize, one: &str, many: &str) -> String {
    format!("{n_things} {}", if n_things == 1 { one } else { many })
}
