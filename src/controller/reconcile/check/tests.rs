//! Tests of the time limits of checks: lanes, deadlines, stuck threads and restarts.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use super::*;
use crate::cel::interrupt::{checkpoint, working_on};
use crate::cluster::testing::{Log, ReceivedRequest};
use crate::controller::reconcile::{reconcile, slow_checks, work};
use crate::controller::subjects::check_result::Late;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::lanes::Limits;
use crate::controller::tests::{context_with, healthy, id, policy, settings};

const FIELD: &str = "spec.validations[3].expression";

const LIMITS: Limits = Limits {
    turn: Duration::from_millis(20),
    quick: Duration::from_millis(60),
    slow: Duration::from_millis(200),
    grace: Duration::from_millis(100),
};

fn context(limits: Limits, expression: &str) -> (Arc<Context>, Log) {
    let (mut context, log) = context_with(settings(), expression, healthy);
    Arc::get_mut(&mut context).unwrap().lanes.limits = limits;
    context.set_policies_listed();
    (context, log)
}

fn endless() {
    working_on(FIELD);
    loop {
        checkpoint();
    }
}

async fn late_in(context: &Context, lane: Lane) -> Late {
    match guard(context, &id("a"), lane, endless)
        .await
        .unwrap()
        .value()
    {
        Err(late) => late,
        Ok(_) => panic!("endless work must be interrupted"),
    }
}

/// The task that runs deferred and slow checks. Drop aborts it.
struct Task(tokio::task::JoinHandle<()>);

impl Task {
    fn spawn(context: &Arc<Context>) -> Self {
        Self(tokio::spawn(slow_checks::work(Arc::clone(context))))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a policy with 14 expressions of 90 kB. Its check takes minutes.
fn expensive(name: &str) -> ValidatingAdmissionPolicy {
    let term = "object.spec.replicas == 1 || ";
    let expression = format!("{}true", term.repeat(90_000 / term.len()));
    let mut policy = policy(&expression);
    policy.metadata.name = Some(name.to_owned());
    policy.metadata.resource_version = Some("8".to_owned());
    let spec = policy.spec.as_mut().unwrap();
    let validation = spec.validations.as_ref().unwrap()[0].clone();
    spec.validations = Some(vec![validation; 14]);
    policy
}

fn sound(name: &str) -> ValidatingAdmissionPolicy {
    let mut policy = policy("object.spec.replicas <= 5");
    policy.metadata.name = Some(name.to_owned());
    policy
}

fn writes(log: &Log) -> Vec<ReceivedRequest> {
    let log = log.lock().unwrap();
    let is_write = |seen: &&ReceivedRequest| seen.method == http::Method::PATCH;
    log.iter().filter(is_write).cloned().collect()
}

/// Returns the status, reason and message of the written condition of this type.
fn condition(write: &ReceivedRequest, type_: &str) -> (String, String, String) {
    let conditions = write.body["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|it| it["type"] == type_).unwrap();
    let text = |key: &str| condition[key].as_str().unwrap().to_owned();
    (text("status"), text("reason"), text("message"))
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), wait)
        .await
        .unwrap();
}

#[tokio::test]
async fn panic_of_guarded_check_is_counted_and_contained() {
    let (context, _) = context(Limits::default(), "true");
    let policy = id("a");
    let outcome = guard(&context, &policy, Lane::Quick, || -> u32 {
        panic!("hostile")
    });
    assert_eq!(outcome.await.unwrap().value(), Ok(None));
    let outcome = guard(&context, &policy, Lane::Quick, || 1);
    assert_eq!(outcome.await.unwrap().value(), Ok(Some(1)));
    let text = context.metrics.encode().unwrap();
    assert!(text.contains("vap_check_panics_total 1\n"), "{text}");
    let count = "vap_check_duration_seconds_count 2\n";
    assert!(text.contains(count), "{text}");
}

#[tokio::test]
async fn late_check_is_moved_to_next_lane() {
    let (context, _) = context(LIMITS, "true");
    let expect = |limit, next| Late {
        field: Some(FIELD.to_owned()),
        limit,
        next,
        is_stuck: false,
    };
    let quick = late_in(&context, Lane::Quick).await;
    assert_eq!(quick, expect(LIMITS.quick, Some(Lane::Slow)));
    let deferred = late_in(&context, Lane::Deferred).await;
    assert_eq!(deferred, expect(LIMITS.quick, Some(Lane::Slow)));
    let slow = late_in(&context, Lane::Slow).await;
    assert_eq!(slow, expect(LIMITS.slow, None));
}

#[tokio::test]
async fn running_check_yields_to_waiting_policy() {
    let limits = Limits {
        quick: Duration::from_secs(3600),
        ..LIMITS
    };
    let (context, _) = context(limits, "true");
    context.queue.add(&id("b"));
    let late = late_in(&context, Lane::Quick).await;
    assert_eq!(late.next, Some(Lane::Deferred));
}

#[tokio::test(start_paused = true)]
async fn hanging_check_is_abandoned() {
    let limits = Limits::STANDARD;
    let (context, _) = context(limits, "true");
    let (release, blocked) = mpsc::channel::<()>();
    let (began, begin) = tokio::sync::oneshot::channel();
    let hang = move || {
        working_on(FIELD);
        began.send(()).ok();
        blocked.recv().is_ok()
    };
    let guarded = tokio::spawn({
        let context = Arc::clone(&context);
        async move {
            guard(&context, &id("a"), Lane::Quick, hang)
                .await
                .unwrap()
                .value()
        }
    });
    begin.await.unwrap();
    // While a thread is busy, the paused clock does not advance by itself.
    for _ in 0..200 {
        tokio::time::advance(Duration::from_millis(50)).await;
        tokio::task::yield_now().await;
    }
    let late = guarded.await.unwrap().unwrap_err();
    assert_eq!(
        late,
        Late {
            field: Some(FIELD.to_owned()),
            limit: limits.quick,
            next: None,
            is_stuck: true,
        }
    );
    assert!(crate::cluster::blocking::n_stuck() >= 1);
    drop(release);
}

#[tokio::test]
async fn check_exceeding_all_limits_has_unknown_result() {
    let limits = Limits {
        slow: Duration::from_millis(400),
        ..LIMITS
    };
    let (context, log) = context(limits, "true");
    context.store.put(expensive("a"), EventSource::Watched);
    let _task = Task::spawn(&context);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let workers = tokio::spawn(work(Arc::clone(&context), async {
        drop(stopped.await);
    }));
    context.queue.add(&id("a"));
    until(|| !writes(&log).is_empty()).await;
    let write = writes(&log).remove(0);
    let (status, reason, message) = condition(&write, "Compiled");
    assert_eq!(
        (&*status, &*reason),
        ("Unknown", "DeadlineExceeded"),
        "{message}"
    );
    assert!(message.contains("spec.validations["), "{message}");
    let (status, reason, _) = condition(&write, "ResourcesMatched");
    assert_eq!((&*status, &*reason), ("True", "ResourcesServed"));
    let (status, reason, _) = condition(&write, "Ready");
    assert_eq!((&*status, &*reason), ("Unknown", "Pending"));
    let text = context.metrics.encode().unwrap();
    assert!(
        text.contains("vap_check_deadline_exceeded_total 1\n"),
        "{text}"
    );
    drop(stop);
    workers.await.unwrap();
}

#[tokio::test]
async fn check_exceeding_limit_is_not_repeated_without_change() {
    let (context, _) = context(LIMITS, "true");
    context.store.put(expensive("a"), EventSource::Watched);
    let entry = context.store.get(&id("a")).unwrap();
    let snapshot = context.snapshot();
    let result = check_in(&context, &entry, &snapshot, Lane::Slow).await;
    let result = result.unwrap().unwrap();
    assert!(
        matches!(result.outcome, CheckOutcome::DeadlineExceeded { .. }),
        "{result:?}"
    );
    let entry = context.store.get(&id("a")).unwrap();
    assert!(
        entry
            .result
            .as_ref()
            .unwrap()
            .holds_for(&entry.generation(), &snapshot)
    );
    assert_eq!(context.lanes.lane(&entry), Lane::Slow);
}

#[tokio::test]
async fn policies_are_checked_while_others_exceed_their_limits() {
    let limits = Limits {
        slow: Duration::from_secs(3600),
        ..Limits::STANDARD
    };
    let (context, log) = context(limits, "true");
    context.store.remove(&id("a"));
    let _task = Task::spawn(&context);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let workers = tokio::spawn(work(Arc::clone(&context), async {
        drop(stopped.await);
    }));
    for n in 0..4 {
        let name = format!("expensive-{n}");
        context.store.put(expensive(&name), EventSource::Watched);
        context.queue.add(&id(&name));
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    for n in 0..20 {
        let name = format!("sound-{n}");
        context.store.put(sound(&name), EventSource::Watched);
        context.queue.add(&id(&name));
    }
    let is_written = |n: usize| {
        let path = format!("/sound-{n}/status");
        writes(&log).iter().any(|write| write.path.contains(&path))
    };
    until(|| (0..20).all(is_written)).await;
    let took = start.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let is_expensive = |write: &ReceivedRequest| write.path.contains("/expensive-");
    assert!(
        !writes(&log).iter().any(is_expensive),
        "the checks of expensive policies must not complete"
    );
    let is_alive = |(_, problem): &(String, Option<String>)| problem.is_none();
    assert!(context.supervisor.checks().iter().all(is_alive));
    drop(stop);
    workers.await.unwrap();
}

/// Returns a status which reports that the check of `generation` exceeded its time limit.
fn exceeded(generation: i64) -> Value {
    json!({
        "observedGeneration": generation,
        "conditions": [{
            "type": "TypeChecked", "status": "Unknown", "reason": "DeadlineExceeded", "message": "m",
            "observedGeneration": generation, "lastTransitionTime": "1970-01-01T00:16:40Z",
        }],
    })
}

fn restarted(generation: i64) -> (Arc<Context>, Log) {
    let (context, log) = context(Limits::default(), "true");
    let mut stored = policy("object.spec.replicas <= 5");
    stored.metadata.resource_version = Some("8".into());
    stored.status = serde_json::from_value(exceeded(generation)).unwrap();
    context.store.put(stored, EventSource::Watched);
    (context, log)
}

#[tokio::test(start_paused = true)]
async fn late_policy_is_checked_in_slow_lane_after_restart() {
    let (context, log) = restarted(2);
    let entry = context.store.get(&id("a")).unwrap();
    assert_eq!(context.lanes.lane(&entry), Lane::Slow);
    reconcile(&context, &id("a")).await.unwrap();
    assert_eq!(writes(&log).len(), 0, "the previous status remains");
    let _task = Task::spawn(&context);
    until(|| context.queue.len() > 0).await;
    // The check is quick now, so the policy returns to the quick lane.
    let entry = context.store.get(&id("a")).unwrap();
    assert!(entry.result.is_some());
    reconcile(&context, &id("a")).await.unwrap();
    let write = writes(&log).remove(0);
    let (status, reason, _) = condition(&write, "TypeChecked");
    assert_eq!((&*status, &*reason), ("True", "NoWarnings"));
    let entry = context.store.get(&id("a")).unwrap();
    assert_eq!(context.lanes.lane(&entry), Lane::Quick);
}

#[tokio::test(start_paused = true)]
async fn edited_policy_is_checked_in_quick_lane_after_restart() {
    let (context, log) = restarted(1);
    let entry = context.store.get(&id("a")).unwrap();
    assert_eq!(context.lanes.lane(&entry), Lane::Quick);
    reconcile(&context, &id("a")).await.unwrap();
    assert_eq!(writes(&log).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn check_exceeding_limit_is_repeated_after_an_hour() {
    let (context, _) = restarted(2);
    let entry = context.store.get(&id("a")).unwrap();
    context.lanes.exceeded(&id("a"), entry.generation(), false);
    let slow = |context: &Context| context.lanes.n_slow();
    context.lanes.retry(Instant::now());
    assert_eq!(slow(&context), 0);
    tokio::time::advance(Duration::from_secs(3601)).await;
    context.lanes.retry(Instant::now());
    assert_eq!(slow(&context), 1);
    // The check is not repeated. Its thread is stuck, and a second attempt could block a second
    // thread.
    context.lanes.exceeded(&id("b"), entry.generation(), true);
    tokio::time::advance(Duration::from_secs(3601)).await;
    context.lanes.retry(Instant::now());
    assert_eq!(slow(&context), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_lanes_send_heartbeats() {
    let (context, _) = context(Limits::default(), "true");
    let _task = Task::spawn(&context);
    tokio::time::sleep(Duration::from_secs(900)).await;
    let checks = context.supervisor.checks();
    let names: BTreeSet<&str> = checks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["deferred-checks", "slow-checks"]));
    assert!(
        checks.iter().all(|(_, problem)| problem.is_none()),
        "{checks:?}"
    );
}
