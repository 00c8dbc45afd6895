//! Events on transitions of conditions, on the policy.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube_runtime::events::{Event, EventType};

use super::context::Context;
use super::error::within;
use crate::status::DesiredStatus;
use crate::status::condition::{self, ConditionStatus, ConditionType};

/// How long publishing one event may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest note of an event.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/events.go`, `NoteLengthLimit`.
const MAX_NOTE: usize = 1024;

/// Publishes an event for each condition that `desired` changes. An event that cannot be published is
/// not tried again: the status says the same, and for longer.
pub(crate) fn publish(
    context: &Arc<Context>,
    policy: &ValidatingAdmissionPolicy,
    desired: &DesiredStatus,
) {
    let live = policy
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let events = transitions(live, &desired.conditions);
    if events.is_empty() {
        return;
    }
    let reference = policy.object_ref(&());
    let context = Arc::clone(context);
    tokio::spawn(async move {
        for event in events {
            let Some(deadline) = context.leadership.may_write() else {
                return;
            };
            let published = context.recorder.publish(&event, &reference);
            if let Err(error) = within(TIMEOUT, deadline.within(published)).await
                && context.complaints.are_due("events")
            {
                tracing::warn!(
                    %error,
                    "cannot publish an event: grant `create` and `patch` on events (events.k8s.io) in \
                     the ClusterRole vap-status-controller"
                );
            }
        }
    });
}

/// The events that lead from the conditions `old` to those of `new`: one for each that turned True or
/// False, and for one that is False from the start. What `Ready` repeats of another is left out.
fn transitions(old: &[Condition], new: &[Condition]) -> Vec<Event> {
    let turned = |type_: ConditionType| -> Option<&Condition> {
        let after = condition::find(new, type_)?;
        let status = ConditionStatus::of(after);
        let before = condition::find(old, type_).map(ConditionStatus::of);
        let is_news = match (before, status) {
            (_, ConditionStatus::Unknown)
            | (None | Some(ConditionStatus::Unknown), ConditionStatus::True) => false,
            (before, status) => before != Some(status),
        };
        // An unbound policy is no event, only the loss of the last binding is.
        let is_staged = type_ == ConditionType::Bound && before.is_none();
        (is_news && !is_staged).then_some(after)
    };
    ConditionType::ALL
        .into_iter()
        .filter_map(turned)
        .map(event)
        .collect()
}

fn event(condition: &Condition) -> Event {
    let is_healthy = ConditionStatus::of(condition) == ConditionStatus::True;
    let note = format!(
        "{} is {}: {}",
        condition.type_, condition.status, condition.message
    );
    Event {
        type_: if is_healthy {
            EventType::Normal
        } else {
            EventType::Warning
        },
        reason: condition.reason.clone(),
        note: Some(crate::status::cut(&note, MAX_NOTE)),
        action: "Check".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn condition(type_: &str, status: &str) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: "Why".to_owned(),
            message: "so".to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    fn notes(old: &[Condition], new: &[Condition]) -> Vec<String> {
        let events = transitions(old, new);
        events.into_iter().filter_map(|event| event.note).collect()
    }

    #[test]
    fn only_what_turns_is_an_event() {
        let table: [(Option<&str>, &str, &[&str]); 7] = [
            (None, "True", &[]),
            (None, "False", &["Compiled is False: so"]),
            (None, "Unknown", &[]),
            (Some("True"), "False", &["Compiled is False: so"]),
            (Some("False"), "True", &["Compiled is True: so"]),
            (Some("False"), "False", &[]),
            (Some("Unknown"), "True", &[]),
        ];
        for (before, after, expect) in table {
            let old: Vec<Condition> = before
                .map(|status| condition("Compiled", status))
                .into_iter()
                .collect();
            assert_eq!(
                notes(&old, &[condition("Compiled", after)]),
                expect,
                "{before:?} {after}"
            );
        }
    }

    #[test]
    fn a_staged_policy_is_none() {
        let unbound = [condition("Bound", "False")];
        assert_eq!(notes(&[], &unbound), Vec::<String>::new());
        assert_eq!(notes(&[condition("Bound", "True")], &unbound).len(), 1);
    }
}
