//! Publishes Events about transitions of policy conditions.
//!
//! If all policies change at once, the API server must not be flooded. So Events wait in a bounded queue, and one task
//! sends a few per second. If the queue is full, Events are counted and dropped. The status has the information of the
//! dropped Events, and does not expire.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::error::{Error, within};
use crate::controller::context::Context;
use crate::controller::process::token_bucket::TokenBucket;
use crate::controller::subjects::managed_fields::FIELD_MANAGER;
use crate::controller::subjects::opt_in::OptInState;
use crate::controller::subjects::pending_events::{Key, PendingEvent};
use crate::controller::subjects::store::Entry;
use crate::status::DesiredStatus;
use crate::status::condition::{self, ConditionStatus, ConditionType};
use crate::telemetry::metrics::ErrorReason;

/// The timeout for publishing one Event.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum length of an Event's note, in bytes.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/events.go`, `NoteLengthLimit`.
const MAX_NOTE: usize = 1024;

/// The maximum length of the reporting instance, in bytes.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/events.go`, `ReportingInstanceLengthLimit`.
const MAX_INSTANCE: usize = 128;

/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";

/// The maximum length of a policy's name in the name of an Event, in bytes. The name of an Event has at most 253 bytes.
const MAX_NAME: usize = 220;

/// The number of Events that may be sent at once after an idle time.
const BURST: u32 = 50;

/// The average interval between Events after a burst.
const PACE: Duration = Duration::from_millis(100);

/// How long the ending process continues to send pending Events. The Lease is released afterwards. Together, both steps
/// must take at most two seconds.
const MAX_ENDING: Duration = Duration::from_secs(1);

/// How long repetitions of an Event increment its series. A later repetition creates a new Event.
const MAX_SERIES_AGE: Duration = Duration::from_secs(6 * 60);

/// The maximum number of recent Events whose repetitions increment a series.
const MAX_SERIES: usize = 1_000;

/// Queues an Event for each transition from the current conditions of `entry` to the conditions of `desired`.
pub(crate) fn publish(context: &Context, entry: &Entry, desired: &DesiredStatus) {
    let regarding = regarding(context, entry);
    publish_of(context, entry.status.as_ref(), &regarding, desired);
}

fn publish_of(
    context: &Context,
    status: Option<&ValidatingAdmissionPolicyStatus>,
    regarding: &ObjectReference,
    desired: &DesiredStatus,
) {
    let live = status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    for condition in transitions(live, &desired.conditions) {
        let mut hasher = DefaultHasher::new();
        condition.message.hash(&mut hasher);
        let key = Key {
            regarding: regarding.uid.clone().unwrap_or_default(),
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            note: hasher.finish(),
        };
        let event = PendingEvent {
            key,
            regarding: regarding.clone(),
            condition: condition.clone(),
        };
        if !context.events.add(event) {
            context.metrics.event_dropped();
            if context.log_throttle.is_due("events dropped") {
                tracing::warn!(
                    "conditions change faster than events are sent: some events are dropped; the statuses have the \
                     same information"
                );
            }
        }
    }
}

/// Returns the reference to a policy for the field `regarding` of its Events.
fn regarding(context: &Context, entry: &Entry) -> ObjectReference {
    let state = context.opt_in.state(entry.id.kind);
    let api_version = state.map_or_else(
        || ValidatingAdmissionPolicy::api_version(&()).into_owned(),
        OptInState::api_version,
    );
    ObjectReference {
        api_version: Some(api_version),
        kind: Some(entry.kind().as_str().to_owned()),
        name: Some((*entry.id.name).to_owned()),
        uid: entry.identity.state().uid.map(str::to_owned),
        ..ObjectReference::default()
    }
}

/// Logs that an Event was not published, with a hint, at most once per minute. An unreachable API server is not logged
/// here, since the watches log it.
fn log_failure(context: &Context, error: &Error) {
    match error.reason() {
        ErrorReason::Forbidden => {
            if context.log_throttle.is_due("events") {
                tracing::warn!(
                    %error,
                    "cannot publish an event: grant `create` and `patch` on events (events.k8s.io) in the Role \
                     vap-status-controller-events of the namespace {NAMESPACE}"
                );
            }
        }
        ErrorReason::Connection | ErrorReason::Timeout => {
            tracing::debug!(%error, "an event was not published");
        }
        _ => {
            if context.log_throttle.is_due("events refused") {
                tracing::warn!(%error, "cannot publish an event; the status has the same information");
            }
        }
    }
}

/// Sends the pending Events. Never returns.
pub(crate) async fn send(context: Arc<Context>) {
    let mut bucket = TokenBucket::new(BURST, PACE, Instant::now());
    let mut correlator = EventCorrelator::default();
    loop {
        let event = context.events.next().await;
        let may_be_sent_at = bucket.take(Instant::now());
        context.events.pause(may_be_sent_at).await;
        // A standby drops its Events, since the leader sends them.
        if let Some(permit) = context.leadership.may_write()
            && let Err(error) = permit.within(correlator.send(&context, &event)).await
        {
            context.metrics.event_dropped();
            log_failure(&context, &error);
        }
        context.events.sent();
    }
}

/// Sends the pending Events before the process ends, for at most [`MAX_ENDING`]. Drops the remaining Events.
pub(crate) async fn end(context: &Context) {
    let n_dropped = context.events.flush(MAX_ENDING).await;
    for _ in 0..n_dropped {
        context.metrics.event_dropped();
    }
    if n_dropped > 0 {
        tracing::info!(
            events = n_dropped,
            "stopping: some events were not published; the statuses have the same information"
        );
    }
}

/// The recently sent Events, by their content.
#[derive(Debug, Default)]
struct EventCorrelator(BTreeMap<Key, Series>);

#[derive(Clone, Debug)]
struct Series {
    name: String,
    count: i32,
    last: Instant,
}

impl EventCorrelator {
    /// Sends an Event. If an equal Event was sent recently, increments the series of that Event instead.
    ///
    /// # Errors
    /// Returns an error if the API server rejects the Event or does not respond in time.
    async fn send(&mut self, context: &Context, event: &PendingEvent) -> Result<(), Error> {
        let now = Instant::now();
        self.0
            .retain(|_, series| now.duration_since(series.last) < MAX_SERIES_AGE);
        let api: Api<Event> = Api::namespaced(context.client.clone(), NAMESPACE);
        let time = MicroTime((context.now)());
        if let Some(series) = self.0.get_mut(&event.key) {
            let count = series.count.saturating_add(1);
            let patch = json!({"series": {"count": count, "lastObservedTime": time}});
            let params = PatchParams::default();
            let patch = Patch::Merge(&patch);
            match within(TIMEOUT, api.patch(&series.name, &params, &patch)).await {
                Ok(_) => {
                    series.count = count;
                    series.last = now;
                    return Ok(());
                }
                // The previous Event was deleted or has expired, so a new one is created.
                Err(error) if error.reason() == ErrorReason::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let object = object(event, time);
        let name = object.metadata.name.clone().unwrap_or_default();
        within(TIMEOUT, api.create(&PostParams::default(), &object)).await?;
        if self.0.len() >= MAX_SERIES {
            self.forget_oldest();
        }
        let series = Series {
            name,
            count: 1,
            last: now,
        };
        self.0.insert(event.key.clone(), series);
        Ok(())
    }

    fn forget_oldest(&mut self) {
        let oldest = self.0.iter().min_by_key(|(_, series)| series.last);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.0.remove(&key);
        }
    }
}

fn object(event: &PendingEvent, time: MicroTime) -> Event {
    let condition = &event.condition;
    let is_healthy = ConditionStatus::from_condition(condition) == ConditionStatus::True;
    let note = format!(
        "{} is {}: {}",
        condition.type_, condition.status, condition.message
    );
    let policy = event.regarding.name.as_deref().unwrap_or_default();
    let policy = policy.get(..MAX_NAME).unwrap_or(policy);
    let name = policy.trim_end_matches(['-', '.']);
    let instance = std::env::var("HOSTNAME").unwrap_or_else(|_| FIELD_MANAGER.to_owned());
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{:x}", time.0.as_nanosecond())),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        event_time: Some(time),
        type_: Some(if is_healthy { "Normal" } else { "Warning" }.to_owned()),
        reason: Some(condition.reason.clone()),
        action: Some("Check".to_owned()),
        note: Some(crate::status::cut(&note, MAX_NOTE)),
        regarding: Some(event.regarding.clone()),
        reporting_controller: Some(FIELD_MANAGER.to_owned()),
        reporting_instance: Some(crate::status::cut(&instance, MAX_INSTANCE)),
        ..Event::default()
    }
}

/// Returns the conditions in `new` that became False since `old`, or that changed from False to True.
///
/// Omits `Ready` if another returned condition has its status, reason and message.
fn transitions<'a>(old: &[Condition], new: &'a [Condition]) -> Vec<&'a Condition> {
    let turned = |type_: ConditionType| -> Option<&Condition> {
        let after = condition::find(new, type_)?;
        let status = ConditionStatus::from_condition(after);
        let before = condition::find(old, type_).map(ConditionStatus::from_condition);
        let is_news = match (before, status) {
            (_, ConditionStatus::Unknown)
            | (None | Some(ConditionStatus::Unknown), ConditionStatus::True) => false,
            (before, status) => before != Some(status),
        };
        // A new policy without bindings causes no Event. A policy that loses its last binding does.
        let is_staged = type_ == ConditionType::Bound && before.is_none();
        (is_news && !is_staged).then_some(after)
    };
    let all: Vec<&Condition> = ConditionType::ALL.into_iter().filter_map(turned).collect();
    let is_repeated = |ready: &Condition| {
        let is_ready = ready.type_ == ConditionType::Ready.as_str();
        let is_equal = |other: &&Condition| {
            other.type_ != ready.type_
                && other.status == ready.status
                && other.reason == ready.reason
                && other.message == ready.message
        };
        is_ready && all.iter().any(is_equal)
    };
    all.iter()
        .copied()
        .filter(|condition| !is_repeated(condition))
        .collect()
}

#[cfg(test)]
mod tests;
