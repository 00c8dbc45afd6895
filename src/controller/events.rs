//! Events on transitions of conditions, on the policy.
//!
//! They wait in a queue with an end, and one task sends them, some each second: a cluster whose policies
//! all turn at once is not flooded by us. What does not fit is counted and not sent: the status says the
//! same, and for longer.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, ObjectMeta};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::FIELD_MANAGER;
use super::context::Context;
use super::error::{Error, within};
use crate::status::DesiredStatus;
use crate::status::condition::{self, ConditionStatus, ConditionType};
use crate::telemetry::metrics::ErrorReason;

/// How long publishing one event may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest note of an event.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/events.go`, `NoteLengthLimit`.
const MAX_NOTE: usize = 1024;

/// The longest reporting instance.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/events.go`, `ReportingInstanceLengthLimit`.
const MAX_INSTANCE: usize = 128;

/// Events are about objects without a namespace, so that they go here, as those of others do.
const NAMESPACE: &str = "default";

/// How much of a policy's name is in that of an event, which is not longer than 253 bytes.
const MAX_NAME: usize = 220;

/// How many events may wait.
const MAX_WAITING: usize = 1_000;

/// How many events may be sent at once, if none was sent for a while.
const BURST: u32 = 50;

/// How often an event may be sent in the long run.
const PACE: Duration = Duration::from_millis(100);

/// How long the same event is counted up instead of being told anew.
const MAX_SERIES_AGE: Duration = Duration::from_secs(6 * 60);

/// How many events are known again.
const MAX_SERIES: usize = 1_000;

/// The events that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: Mutex<VecDeque<Told>>,
    has_work: Notify,
}

/// What tells an event from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    regarding: String,
    type_: String,
    status: String,
    reason: String,
    /// The hash of the note.
    note: u64,
}

/// An event that is to be sent.
#[derive(Clone, Debug)]
struct Told {
    key: Key,
    regarding: ObjectReference,
    condition: Condition,
}

impl Events {
    /// Puts in an event; whether there was room for it. One that waits already is not put in again.
    fn add(&self, event: Told) -> bool {
        let mut waiting = self.lock();
        if waiting.iter().any(|other| other.key == event.key) {
            return true;
        }
        if waiting.len() >= MAX_WAITING {
            return false;
        }
        waiting.push_back(event);
        drop(waiting);
        self.has_work.notify_one();
        true
    }

    async fn next(&self) -> Told {
        loop {
            let first = self.lock().pop_front();
            match first {
                Some(event) => return event,
                None => self.has_work.notified().await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Told>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets an event be published for each condition that `desired` changes.
pub(crate) fn publish(
    context: &Context,
    policy: &ValidatingAdmissionPolicy,
    desired: &DesiredStatus,
) {
    let live = policy
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    for condition in transitions(live, &desired.conditions) {
        let regarding = policy.object_ref(&());
        let mut hasher = DefaultHasher::new();
        condition.message.hash(&mut hasher);
        let key = Key {
            regarding: regarding.uid.clone().unwrap_or_default(),
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            note: hasher.finish(),
        };
        let event = Told {
            key,
            regarding,
            condition: condition.clone(),
        };
        if !context.events.add(event) {
            context.metrics.event_dropped();
            if context.complaints.are_due("events dropped") {
                tracing::warn!(
                    "more conditions turn than events are sent: some are left out, and the statuses say \
                     the same"
                );
            }
        }
    }
}

/// Says once a minute that events are lost, and what to do about it. That the API server does not answer is
/// said by others, and passes.
fn complain(context: &Context, error: &Error) {
    match error.reason() {
        ErrorReason::Forbidden => {
            if context.complaints.are_due("events") {
                tracing::warn!(
                    %error,
                    "cannot publish an event: grant `create` and `patch` on events (events.k8s.io) in the \
                     namespace {NAMESPACE} by the Role vap-status-controller-events"
                );
            }
        }
        ErrorReason::Connection | ErrorReason::Timeout => {
            tracing::debug!(%error, "an event was not published");
        }
        _ => {
            if context.complaints.are_due("events refused") {
                tracing::warn!(%error, "cannot publish an event; the status says the same");
            }
        }
    }
}

/// Sends the events that wait, for ever.
pub(crate) async fn send(context: Arc<Context>) {
    let mut bucket = Bucket::new(Instant::now());
    let mut sent = Sent::default();
    loop {
        let event = context.events.next().await;
        tokio::time::sleep_until(bucket.take(Instant::now())).await;
        // What turned while another instance led is told by that one.
        let Some(deadline) = context.leadership.may_write() else {
            continue;
        };
        let sent = deadline.within(sent.send(&context, &event)).await;
        if let Err(error) = sent {
            context.metrics.event_dropped();
            complain(&context, &error);
        }
    }
}

/// When events may be sent: some at once, and then one at a time.
#[derive(Debug)]
struct Bucket {
    /// When the bucket is full again.
    full_at: Instant,
}

impl Bucket {
    fn new(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// When the next event may be sent, which then counts as sent.
    fn take(&mut self, now: Instant) -> Instant {
        self.full_at = self.full_at.max(now) + PACE;
        let allowed = self.full_at.checked_sub(PACE * BURST);
        allowed.map_or(now, |allowed| allowed.max(now))
    }
}

/// The events that were sent a short while ago.
#[derive(Debug, Default)]
struct Sent(BTreeMap<Key, Series>);

#[derive(Clone, Debug)]
struct Series {
    /// The name of the event.
    name: String,
    count: i32,
    last: Instant,
}

impl Sent {
    /// Sends an event, or counts it up where it was sent before.
    ///
    /// # Errors
    /// Where the API server does not take it.
    async fn send(&mut self, context: &Context, event: &Told) -> Result<(), Error> {
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
                // It was deleted, or has expired.
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

/// The event as the API has it.
fn object(event: &Told, time: MicroTime) -> Event {
    let condition = &event.condition;
    let is_healthy = ConditionStatus::of(condition) == ConditionStatus::True;
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

/// The conditions that turned from `old` to `new`: True or False, or False from the start. What `Ready`
/// repeats of another that turned is left out.
fn transitions<'a>(old: &[Condition], new: &'a [Condition]) -> Vec<&'a Condition> {
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
    let all: Vec<&Condition> = ConditionType::ALL.into_iter().filter_map(turned).collect();
    let is_repeated = |ready: &Condition| {
        let is_ready = ready.type_ == ConditionType::Ready.as_str();
        let says_the_same = |other: &&Condition| {
            other.type_ != ready.type_
                && other.status == ready.status
                && other.reason == ready.reason
                && other.message == ready.message
        };
        is_ready && all.iter().any(says_the_same)
    };
    all.iter()
        .copied()
        .filter(|condition| !is_repeated(condition))
        .collect()
}

#[cfg(test)]
mod tests {
    use http::Method;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::controller::testing::{Log, Reply, Seen};
    use crate::controller::tests::{context, policy};

    fn condition(type_: &str, status: &str, message: &str) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: "Why".to_owned(),
            message: message.to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    fn turned(old: &[Condition], new: &[Condition]) -> Vec<String> {
        let conditions = transitions(old, new);
        let text = |condition: &Condition| format!("{} is {}", condition.type_, condition.status);
        conditions.into_iter().map(text).collect()
    }

    #[test]
    fn only_what_turns_is_an_event() {
        let table: [(Option<&str>, &str, &[&str]); 7] = [
            (None, "True", &[]),
            (None, "False", &["Compiled is False"]),
            (None, "Unknown", &[]),
            (Some("True"), "False", &["Compiled is False"]),
            (Some("False"), "True", &["Compiled is True"]),
            (Some("False"), "False", &[]),
            (Some("Unknown"), "True", &[]),
        ];
        for (before, after, expect) in table {
            let old: Vec<Condition> = before
                .map(|status| condition("Compiled", status, "so"))
                .into_iter()
                .collect();
            let new = [condition("Compiled", after, "so")];
            assert_eq!(turned(&old, &new), expect, "{before:?} {after}");
        }
    }

    #[test]
    fn a_staged_policy_is_none() {
        let unbound = [condition("Bound", "False", "so")];
        assert_eq!(turned(&[], &unbound), Vec::<String>::new());
        assert_eq!(
            turned(&[condition("Bound", "True", "so")], &unbound).len(),
            1
        );
    }

    #[test]
    fn what_ready_repeats_of_another_is_left_out() {
        let of = |compiled: &str, ready: &str| {
            [
                condition("Ready", "False", ready),
                condition("Compiled", "False", compiled),
            ]
        };
        assert_eq!(turned(&[], &of("x", "x")), ["Compiled is False"]);
        assert_eq!(
            turned(&[], &of("x", "y")),
            ["Ready is False", "Compiled is False"]
        );
        // The other did not turn, so that Ready alone tells of it.
        let old = [condition("Compiled", "False", "x")];
        assert_eq!(turned(&old, &of("x", "x")), ["Ready is False"]);
    }

    fn desired(status: &str, message: &str) -> DesiredStatus {
        DesiredStatus {
            observed_generation: 2,
            expression_warnings: Vec::new(),
            conditions: vec![condition("Compiled", status, message)],
        }
    }

    /// The API server takes events, or refuses each with this status.
    fn taking(refusal: Option<u16>) -> (Arc<Context>, Log) {
        context("true", move |request: &Seen| {
            Some(match refusal {
                Some(status) => Reply::failure(status, "no"),
                None => Reply::json(&request.body),
            })
        })
    }

    async fn send_for(context: &Arc<Context>, time: Duration) {
        drop(tokio::time::timeout(time, send(Arc::clone(context))).await);
    }

    fn requests(log: &Log) -> Vec<(Method, Value)> {
        let log = log.lock().unwrap();
        let of = |seen: &Seen| {
            assert!(
                seen.path
                    .starts_with("/apis/events.k8s.io/v1/namespaces/default/events"),
                "{}",
                seen.path
            );
            (seen.method.clone(), seen.body.clone())
        };
        log.iter().map(of).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_is_counted_up_and_another_note_is_another_event() {
        let (context, log) = taking(None);
        let policy = policy("true");
        let turns = [("False", "A"), ("True", ""), ("False", "B"), ("False", "A")];
        for (status, message) in turns {
            let mut before = policy.clone();
            before.status = Some(
                serde_json::from_value(json!({"conditions": [condition(
                    "Compiled", if status == "True" { "False" } else { "True" }, "")]}))
                .unwrap(),
            );
            publish(&context, &before, &desired(status, message));
            send_for(&context, Duration::from_secs(1)).await;
        }
        let requests = requests(&log);
        let notes: Vec<_> = requests
            .iter()
            .map(|(_, body)| body["note"].clone())
            .collect();
        assert_eq!(
            notes[..3],
            [
                json!("Compiled is False: A"),
                json!("Compiled is True: "),
                json!("Compiled is False: B"),
            ]
        );
        // Each task knows what it sent itself.
        assert_eq!(requests.len(), 4);
        let (_, first) = &requests[0];
        assert_eq!(first["type"], "Warning");
        assert_eq!(first["reason"], "Why");
        assert_eq!(first["regarding"]["uid"], "uid");
        assert_eq!(first["metadata"]["namespace"], "default");
    }

    #[tokio::test(start_paused = true)]
    async fn a_repetition_is_a_series() {
        let (context, log) = taking(None);
        let policy = policy("true");
        let sending = tokio::spawn(send(Arc::clone(&context)));
        for _ in 0..3 {
            publish(&context, &policy, &desired("False", "A"));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        publish(&context, &policy, &desired("False", "B"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        // After some minutes it is news again.
        tokio::time::sleep(MAX_SERIES_AGE).await;
        publish(&context, &policy, &desired("False", "A"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        sending.abort();
        let requests = requests(&log);
        let methods: Vec<_> = requests.iter().map(|(method, _)| method.clone()).collect();
        assert_eq!(
            methods,
            [
                Method::POST,
                Method::PATCH,
                Method::PATCH,
                Method::POST,
                Method::POST
            ]
        );
        assert_eq!(requests[2].1["series"]["count"], 3);
        assert_eq!(requests[3].1["note"], "Compiled is False: B");
    }

    #[tokio::test(start_paused = true)]
    async fn many_at_once_are_spread_and_too_many_are_counted() {
        let (context, log) = taking(None);
        let policy = policy("true");
        for n in 0..MAX_WAITING + 7 {
            publish(&context, &policy, &desired("False", &n.to_string()));
        }
        let text = context.metrics.encode().unwrap();
        assert!(text.contains("vap_events_dropped_total 7\n"), "{text}");
        let sending = tokio::spawn(send(Arc::clone(&context)));
        tokio::time::sleep(Duration::from_millis(1050)).await;
        sending.abort();
        assert_eq!(log.lock().unwrap().len(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_refused_is_counted_and_stops_nobody() {
        let (context, log) = taking(Some(403));
        for message in ["A", "B"] {
            publish(&context, &policy("true"), &desired("False", message));
        }
        send_for(&context, Duration::from_secs(1)).await;
        assert_eq!(log.lock().unwrap().len(), 2);
        let text = context.metrics.encode().unwrap();
        assert!(text.contains("vap_events_dropped_total 2\n"), "{text}");
    }

    #[test]
    fn the_name_of_an_event_is_valid() {
        let told = |name: &str| Told {
            key: Key {
                regarding: String::new(),
                type_: String::new(),
                status: String::new(),
                reason: String::new(),
                note: 0,
            },
            regarding: ObjectReference {
                name: Some(name.to_owned()),
                ..ObjectReference::default()
            },
            condition: condition("Compiled", "False", ""),
        };
        let time = || MicroTime(Timestamp::from_second(1).unwrap());
        let name = |policy: &str| object(&told(policy), time()).metadata.name.unwrap();
        assert_eq!(name("a"), "a.3b9aca00");
        let long = format!("{}-{}", "a".repeat(MAX_NAME - 1), "b".repeat(32));
        assert_eq!(
            name(&long),
            format!("{}.3b9aca00", "a".repeat(MAX_NAME - 1))
        );
    }
}
