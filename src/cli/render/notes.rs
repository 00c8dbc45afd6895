//! Notes on a policy: its state, and the conditions that are not True.

use super::cells::word;
use crate::cli::report::{ConditionReport, PolicyReport, State, StatusSource};
use crate::cli::text::clean;

/// Common reasons whose messages add no information: the policy has no bindings or no probes.
const SELF_EXPLANATORY: [&str; 2] = ["NoBindings", "NoProbes"];

/// Returns the notes on a policy, one per paragraph: first its state, then the conditions that are not True. False
/// conditions precede Unknown conditions.
pub(super) fn notes(policy: &PolicyReport) -> Vec<String> {
    let mut notes: Vec<_> = state_note(policy).into_iter().collect();
    let mut conditions: Vec<_> = policy
        .conditions
        .iter()
        .filter(|condition| !condition.is_ready() && condition.status != "True")
        .filter(|condition| !SELF_EXPLANATORY.contains(&condition.reason.as_str()))
        .collect();
    if conditions.is_empty() && policy.state != State::Ready {
        conditions.extend(policy.ready().filter(|ready| ready.status != "True"));
    }
    conditions.sort_by_key(|condition| condition.status != "False");
    notes.extend(conditions.into_iter().map(condition_note));
    notes
}

fn condition_note(condition: &ConditionReport) -> String {
    format!(
        "{}={} {}: {}",
        word(&condition.type_),
        word(&condition.status),
        word(&condition.reason),
        clean(&condition.message)
    )
}

/// Explains why the conditions of a policy are absent or outdated. `None` if they are current.
pub(super) fn state_note(policy: &PolicyReport) -> Option<String> {
    if policy.checked_by == Some(StatusSource::Plugin) {
        return None;
    }
    match policy.state {
        State::NoStatus if policy.type_checking_completed => Some(format!(
            "no status from vap-status-controller; only kube-controller-manager has checked types: {}",
            count(policy.expression_warnings.len(), "warning", "warnings"),
        )),
        State::NoStatus => Some("no status from vap-status-controller".to_owned()),
        State::Excluded => Some(
            "excluded from vap-status-controller by its --exclude-names or --exclude-selector"
                .to_owned(),
        ),
        State::Stale => Some(format!(
            "stale: the status is for generation {}, but the policy has generation {}",
            policy.observed_generation.unwrap_or(0),
            policy.generation
        )),
        State::Ready | State::NotReady | State::Unknown => None,
    }
}

pub(super) fn count(n_things: usize, one: &str, many: &str) -> String {
    format!("{n_things} {}", if n_things == 1 { one } else { many })
}
