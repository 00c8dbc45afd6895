//! Tests of transitions that cause Events, and of sending Events.

use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::*;
use crate::cluster::testing::{Log, ReceivedRequest, Reply};
use crate::controller::subjects::pending_events::MAX_WAITING;
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
fn transitions_are_changes_to_false_and_from_false_to_true() {
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
fn new_unbound_policy_has_no_transition() {
    let unbound = [condition("Bound", "False", "so")];
    assert_eq!(turned(&[], &unbound), Vec::<String>::new());
    assert_eq!(
        turned(&[condition("Bound", "True", "so")], &unbound).len(),
        1
    );
}

#[test]
fn condition_ready_with_message_of_other_condition_has_no_transition() {
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
    // `Compiled` has not changed, so only `Ready` is reported.
    let old = [condition("Compiled", "False", "x")];
    assert_eq!(turned(&old, &of("x", "x")), ["Ready is False"]);
}

fn desired(status: &str, message: &str) -> DesiredStatus {
    DesiredStatus {
        observed_generation: 2,
        expression_warnings: Vec::new(),
        n_type_warnings: 0,
        conditions: vec![condition("Compiled", status, message)],
        has_retained: false,
    }
}

fn publish(context: &Context, policy: &ValidatingAdmissionPolicy, desired: &DesiredStatus) {
    publish_of(
        context,
        policy.status.as_ref(),
        &policy.object_ref(&()),
        desired,
    );
}

/// Returns a context whose API server accepts Events. If there is a `rejection`, Events are rejected with this HTTP
/// status.
fn taking(rejection: Option<u16>) -> (Arc<Context>, Log) {
    context("true", move |request: &ReceivedRequest| {
        Some(match rejection {
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
    let of = |seen: &ReceivedRequest| {
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
async fn each_transition_creates_an_event() {
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
    // Each call of `send` has its own correlator, so the repeated Event is created again.
    assert_eq!(requests.len(), 4);
    let (_, first) = &requests[0];
    assert_eq!(first["type"], "Warning");
    assert_eq!(first["reason"], "Why");
    assert_eq!(first["regarding"]["uid"], "uid");
    assert_eq!(first["metadata"]["namespace"], "default");
}

#[tokio::test(start_paused = true)]
async fn repeated_event_increments_its_series() {
    let (context, log) = taking(None);
    let policy = policy("true");
    let sending = tokio::spawn(send(Arc::clone(&context)));
    for _ in 0..3 {
        publish(&context, &policy, &desired("False", "A"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    publish(&context, &policy, &desired("False", "B"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // After some minutes a new Event is created.
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
async fn events_are_rate_limited_and_dropped_if_queue_is_full() {
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
async fn rejected_event_is_counted_and_skipped() {
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
fn event_name_is_valid_for_long_policy_name() {
    let event = |name: &str| PendingEvent {
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
    let name = |policy: &str| object(&event(policy), time()).metadata.name.unwrap();
    assert_eq!(name("a"), "a.3b9aca00");
    let long = format!("{}-{}", "a".repeat(MAX_NAME - 1), "b".repeat(32));
    assert_eq!(
        name(&long),
        format!("{}.3b9aca00", "a".repeat(MAX_NAME - 1))
    );
}

#[tokio::test(start_paused = true)]
async fn pending_events_are_sent_at_the_end_and_dropped_events_are_counted() {
    let policy = policy("true");
    let (context, log) = taking(None);
    for n in 0..200 {
        publish(&context, &policy, &desired("False", &n.to_string()));
    }
    let sending = tokio::spawn(send(Arc::clone(&context)));
    let start = Instant::now();
    end(&context).await;
    assert!(start.elapsed() < Duration::from_millis(100));
    assert_eq!(log.lock().unwrap().len(), 200);
    // `end` returns immediately if the queue is empty.
    end(&context).await;
    sending.abort();
    let text = context.metrics.encode().unwrap();
    assert!(text.contains("vap_events_dropped_total 0\n"), "{text}");

    // An API server that does not respond delays the end by at most a second.
    let (context, _) = context_of_silence();
    for n in 0..5 {
        publish(&context, &policy, &desired("False", &n.to_string()));
    }
    let sending = tokio::spawn(send(Arc::clone(&context)));
    let start = Instant::now();
    end(&context).await;
    assert_eq!(start.elapsed(), MAX_ENDING);
    sending.abort();
    let text = context.metrics.encode().unwrap();
    // The first Event is not counted as dropped, since it is being sent and has its own deadline.
    assert!(text.contains("vap_events_dropped_total 4\n"), "{text}");
}

/// Returns a context whose API server never responds.
fn context_of_silence() -> (Arc<Context>, Log) {
    context("true", |_: &ReceivedRequest| None)
}

fn event(message: &str) -> PendingEvent {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    PendingEvent {
        key: Key {
            regarding: "uid".to_owned(),
            type_: "Compiled".to_owned(),
            status: "False".to_owned(),
            reason: "Why".to_owned(),
            note: hasher.finish(),
        },
        regarding: policy("true").object_ref(&()),
        condition: condition("Compiled", "False", message),
    }
}

/// At the limit, the correlator forgets the Event that was sent longest ago. A repetition of this Event creates a new
/// Event.
#[tokio::test(start_paused = true)]
async fn correlator_forgets_oldest_series_at_limit() {
    let (context, log) = taking(None);
    let mut correlator = EventCorrelator::default();
    for n in 0..MAX_SERIES {
        correlator
            .send(&context, &event(&n.to_string()))
            .await
            .unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let methods = || -> Vec<Method> {
        let requests = requests(&log).into_iter().skip(MAX_SERIES);
        requests.map(|(method, _)| method).collect()
    };
    // The correlator remembers all Events, and `0` is now the most recent one.
    correlator.send(&context, &event("0")).await.unwrap();
    assert_eq!(methods(), [Method::PATCH]);
    tokio::time::advance(Duration::from_millis(1)).await;
    for message in ["new", "0", "2", "1"] {
        correlator.send(&context, &event(message)).await.unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let expected = [
        Method::PATCH,
        Method::POST,
        Method::PATCH,
        Method::PATCH,
        Method::POST,
    ];
    assert_eq!(methods(), expected);
    assert_eq!(correlator.0.len(), MAX_SERIES);
}

#[tokio::test(start_paused = true)]
async fn correlator_creates_event_again_only_if_it_is_gone() {
    for (status, is_recreated) in [(404, true), (403, false), (500, false)] {
        let (context, log) = context("true", move |request: &ReceivedRequest| {
            Some(if request.method == Method::PATCH {
                Reply::failure(status, "no")
            } else {
                Reply::json(&request.body)
            })
        });
        let mut correlator = EventCorrelator::default();
        correlator.send(&context, &event("A")).await.unwrap();
        let repeated = correlator.send(&context, &event("A")).await;
        assert_eq!(repeated.is_ok(), is_recreated, "{status}");
        let methods: Vec<Method> = requests(&log).into_iter().map(|(it, _)| it).collect();
        let expected = [Method::POST, Method::PATCH, Method::POST];
        let n_expected = if is_recreated { 3 } else { 2 };
        assert_eq!(methods, expected[..n_expected], "{status}");
        let (_, series) = correlator.0.first_key_value().unwrap();
        assert_eq!(series.count, 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn event_refers_to_policy_by_kind_and_version() {
    use crate::controller::subjects::event_source::EventSource;
    use crate::controller::subjects::subject::Subject;
    use crate::policy::subject::{SubjectId, SubjectKind};
    let (context, _) = taking(None);
    let entry = context.store.get(&SubjectId::policy("a")).unwrap();
    let reference = regarding(&context, &entry);
    let expected = ObjectReference {
        api_version: Some("admissionregistration.k8s.io/v1".to_owned()),
        kind: Some("ValidatingAdmissionPolicy".to_owned()),
        name: Some("a".to_owned()),
        uid: Some("uid".to_owned()),
        ..ObjectReference::default()
    };
    assert_eq!(reference, expected);
    let kind = SubjectKind::MutatingAdmissionPolicy;
    context.opt_in.state(kind).unwrap().set_version("v1beta1");
    let id = SubjectId::new(kind, "b");
    let metadata = serde_json::from_value(json!({"name": "b", "uid": "v", "resourceVersion": "1"}));
    let subject = Subject::MutatingPolicy {
        policy: crate::policy::RequestPolicy::default(),
        mutations: Vec::new(),
        reinvocation_policy: None,
    };
    let from = EventSource::Watched;
    assert!(
        context
            .store
            .put_opt_in(id.clone(), &metadata.unwrap(), subject, from)
    );
    let reference = regarding(&context, &context.store.get(&id).unwrap());
    let expected = ObjectReference {
        api_version: Some("admissionregistration.k8s.io/v1beta1".to_owned()),
        kind: Some("MutatingAdmissionPolicy".to_owned()),
        name: Some("b".to_owned()),
        uid: Some("v".to_owned()),
        ..ObjectReference::default()
    };
    assert_eq!(reference, expected);
}

#[tokio::test(start_paused = true)]
async fn standby_drops_events() {
    let (context, log) = taking(None);
    context.leadership.stand_by(Duration::from_secs(1));
    publish(&context, &policy("true"), &desired("False", "A"));
    send_for(&context, Duration::from_secs(1)).await;
    assert_eq!(requests(&log), []);
}
