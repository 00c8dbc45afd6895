//! Tests of reconciliation with an in-memory API server.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::FIELD_MANAGER;
use super::context::{Context, Settings};
use crate::cluster::testing::{Log, ReceivedRequest, Reply, client};
use crate::controller::cluster::snapshot::tests::snapshot;
use crate::controller::cluster::snapshot::{Change, ClusterSnapshot};
use crate::controller::reconcile::result::ReconcileResult;
use crate::controller::reconcile::{reconcile, work};
use crate::controller::subjects::event_source::EventSource;
use crate::policy::analysis::Profile;
use crate::policy::subject::SubjectId;
use crate::status::condition::ConditionType;
use crate::status::exclusion::Exclusion;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::{ErrorReason, Skipped};

const DOCUMENT: &str = "/openapi/v3/apis/apps/v1?hash=1";
const STATUS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/a/status?\
                      &force=true&fieldManager=vap-status-controller&fieldValidation=Ignore";

pub(super) fn id(name: &str) -> SubjectId {
    SubjectId::policy(name)
}

pub(super) fn settings() -> Settings {
    Settings {
        followed: std::collections::BTreeSet::new(),
        profile: Profile::Truthful,
        ready_requires: ConditionType::COUNTING.into(),
        refresh_interval: Duration::from_secs(10),
        exclusion: Exclusion::default(),
        concurrency: 4,
        watch_timeout: Duration::from_secs(60),
    }
}

pub(super) fn policy(expression: &str) -> ValidatingAdmissionPolicy {
    let value = json!({
        "metadata": {"name": "a", "uid": "uid", "generation": 2, "resourceVersion": "7"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["deployments"]}]},
            "validations": [{"expression": expression}],
        },
    });
    serde_json::from_value(value).unwrap()
}

fn document() -> Value {
    json!({"components": {"schemas": {"Deployment": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
        "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
    }}}})
}

/// Returns the managed fields of a status that the controller owns.
pub(super) fn managed() -> Value {
    json!([{"manager": FIELD_MANAGER, "operation": "Apply", "subresource": "status"}])
}

/// Returns the API server's response to a write: the policy with the applied fields.
fn written(request: &ReceivedRequest) -> Reply {
    let mut policy = serde_json::to_value(policy(SOUND)).unwrap();
    // Each write increments the resource version.
    let version = request.body["metadata"]["resourceVersion"].as_str();
    let version: u64 = version
        .and_then(|version| version.parse().ok())
        .unwrap_or(7);
    policy["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    policy["metadata"]["managedFields"] = managed();
    policy["status"] = request.body["status"].clone();
    Reply::json(&policy)
}

/// Creates a context with one policy, in a cluster that serves deployments.
pub(super) fn context(
    expression: &str,
    answer: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
) -> (Arc<Context>, Log) {
    context_with(settings(), expression, answer)
}

/// Creates the same context as [`context`], with `settings`.
pub(super) fn context_with(
    settings: Settings,
    expression: &str,
    answer: impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static,
) -> (Arc<Context>, Log) {
    let (client, log) = client(answer);
    let mut context = Context::new(client, settings, Arc::new(Metrics::new()));
    context.now = || Timestamp::from_second(1000).unwrap();
    context.set_snapshot(snapshot(
        &[("apps/v1", "deployments", "Deployment")],
        &[("apps/v1", DOCUMENT)],
    ));
    context.bindings.retain(&BTreeSet::new());
    context.set_bindings_listed();
    context.probes.retain(&BTreeSet::new());
    context.set_probes_listed();
    context.store.put(policy(expression), EventSource::Watched);
    (Arc::new(context), log)
}

/// Responds like an API server that serves the schema and accepts every write.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a test server")]
pub(super) fn healthy(request: &ReceivedRequest) -> Option<Reply> {
    Some(if request.method == Method::PATCH {
        written(request)
    } else {
        Reply::json(&document())
    })
}

fn writes(log: &Log) -> Vec<ReceivedRequest> {
    let log = log.lock().unwrap();
    log.iter()
        .filter(|seen| seen.method == Method::PATCH)
        .cloned()
        .collect()
}

const SOUND: &str = "object.spec.replicas <= 5";

#[tokio::test(start_paused = true)]
async fn only_owned_fields_are_written() {
    let (context, log) = context("object.spec.replicsa <= 5", healthy);
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    let [write] = writes(&log).try_into().unwrap();
    assert_eq!(write.path, STATUS);
    let status = &write.body["status"];
    assert_eq!(
        write.body["metadata"],
        json!({"name": "a", "uid": "uid", "resourceVersion": "7"})
    );
    assert_eq!(
        status.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["conditions", "observedGeneration", "typeChecking"]
    );
    assert_eq!(status["observedGeneration"], 2);
    assert_eq!(
        status["typeChecking"]["expressionWarnings"],
        json!([{"fieldRef": "spec.validations[0].expression", "warning":
            "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'\n | \
             object.spec.replicsa <= 5\n | ...........^\n"}])
    );
    assert_eq!(status["conditions"][0]["type"], "Ready");
    assert_eq!(status["conditions"][0]["reason"], "ExpressionWarnings");
    assert_eq!(
        status["conditions"][0]["lastTransitionTime"],
        "1970-01-01T00:16:40Z"
    );
    let text = context.metrics.encode().unwrap();
    let condition = "vap_policy_condition{kind=\"ValidatingAdmissionPolicy\",policy=\"a\",\
                     condition=\"Ready\",status=\"False\"} 1\n";
    assert!(text.contains(condition), "{text}");
}

#[tokio::test(start_paused = true)]
async fn warnings_of_other_writers_are_replaced_with_empty_list() {
    let (context, log) = context(SOUND, healthy);
    reconcile(&context, &id("a")).await.unwrap();
    assert_eq!(
        writes(&log)[0].body["status"]["typeChecking"],
        json!({"expressionWarnings": []})
    );
}

#[tokio::test(start_paused = true)]
async fn shared_stalled_condition_is_removed() {
    let (context, log) = context(SOUND, |request| {
        if request.method != Method::PATCH {
            return healthy(request);
        }
        let mut policy = serde_json::to_value(policy(SOUND)).unwrap();
        policy["metadata"]["resourceVersion"] = json!("8");
        policy["metadata"]["managedFields"] = managed();
        policy["status"] = request.body["status"].clone();
        // An apply does not remove shared conditions that it omits, but a merge patch does.
        if request.body["kind"].is_string() {
            let stale = json!({"type": "Stalled", "status": "True", "reason": "ExpressionWarnings", "message": "old",
                               "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:00:01Z"});
            let conditions = policy["status"]["conditions"].as_array_mut().unwrap();
            conditions.push(stale);
        } else {
            policy["status"]["observedGeneration"] = json!(2);
            policy["status"]["typeChecking"] = json!({"expressionWarnings": []});
        }
        Some(Reply::json(&policy))
    });
    reconcile(&context, &id("a")).await.unwrap();
    let written = writes(&log);
    assert_eq!(written.len(), 2);
    let metadata = &written[1].body["metadata"];
    assert_eq!(metadata["resourceVersion"], "8", "{metadata}");
    let kept = written[1].body["status"]["conditions"].as_array().unwrap();
    assert!(kept.iter().all(|it| it["type"] != "Stalled"), "{kept:?}");
    let applied = &written[0].body["status"]["conditions"];
    assert_eq!(json!(kept), *applied);
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
}

#[tokio::test(start_paused = true)]
async fn status_is_written_again_after_managed_fields_are_cleared() {
    let (context, log) = context(SOUND, healthy);
    reconcile(&context, &id("a")).await.unwrap();
    // A client clears the managed fields, but not the status.
    let mut cleared = policy(SOUND);
    cleared.metadata.resource_version = Some("9".into());
    cleared.status = context.store.get(&id("a")).unwrap().status;
    assert!(context.store.put(cleared, EventSource::Watched));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    assert_eq!(writes(&log).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn own_write_causes_no_other_write() {
    let (context, log) = context(SOUND, healthy);
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    // The policy is reconciled again although the watch has not reported the write yet.
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
    // The watch reports the write, and then the state before the write.
    for version in ["8", "7"] {
        let mut echo = policy(SOUND);
        echo.metadata.resource_version = Some(version.into());
        assert!(!context.store.put(echo, EventSource::Watched));
    }
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
    assert_eq!(writes(&log).len(), 1);
    // The index and the document were each fetched once.
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn overwritten_status_is_restored() {
    let (context, log) = context(SOUND, healthy);
    reconcile(&context, &id("a")).await.unwrap();
    let mut overwritten = policy(SOUND);
    overwritten.status = context.store.get(&id("a")).unwrap().status;
    overwritten.metadata.resource_version = Some("9".into());
    let type_checking = &mut overwritten.status.as_mut().unwrap().type_checking;
    *type_checking = serde_json::from_value(json!({"expressionWarnings": [
        {"fieldRef": "spec.validations[0].expression", "warning": "a false alarm"}]}))
    .unwrap();
    assert!(context.store.put(overwritten, EventSource::Watched));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    assert_eq!(writes(&log).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn deleted_policy_is_forgotten() {
    let (context, log) = context(SOUND, healthy);
    reconcile(&context, &id("a")).await.unwrap();
    assert!(context.metrics.encode().unwrap().contains("policy=\"a\""));
    context.store.remove(&id("a"));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Deleted
    );
    assert!(!context.metrics.encode().unwrap().contains("policy=\"a\""));
    assert_eq!(writes(&log).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn policy_deleted_before_write_is_not_a_failure() {
    let (context, _) = context(SOUND, |request| match request.method {
        Method::PATCH => Some(Reply::failure(404, "not found")),
        _ => healthy(request),
    });
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Deleted
    );
}

#[tokio::test(start_paused = true)]
async fn failed_status_writes_have_reasons() {
    for (status, reason) in [
        (403, ErrorReason::Forbidden),
        (422, ErrorReason::Invalid),
        (429, ErrorReason::Throttled),
        (503, ErrorReason::Server),
        // Status 0 means that there is no response.
        (0, ErrorReason::Timeout),
    ] {
        let (context, log) = context(SOUND, move |request| match (&request.method, status) {
            (&Method::PATCH, 0) => None,
            (&Method::PATCH, _) => Some(Reply::failure(status, "rejected")),
            _ => healthy(request),
        });
        let failure = reconcile(&context, &id("a")).await.unwrap_err();
        assert_eq!(failure.reason(), reason, "{failure}");
        assert_eq!(writes(&log).len(), 1);
        // The result of the check is reused: nothing is fetched or checked again.
        drop(reconcile(&context, &id("a")).await);
        assert_eq!(log.lock().unwrap().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn conflict_of_status_write_is_retried() {
    let (context, log) = context(SOUND, move |request| match request.method {
        Method::PATCH if request.body["metadata"]["resourceVersion"] == "7" => {
            Some(Reply::failure(409, "the object has been modified"))
        }
        Method::PATCH => {
            let mut answer = serde_json::to_value(policy("true")).unwrap();
            answer["metadata"]["resourceVersion"] = json!("9");
            answer["metadata"]["generation"] = json!(3);
            answer["metadata"]["managedFields"] = managed();
            answer["status"] = request.body["status"].clone();
            Some(Reply::json(&answer))
        }
        _ => healthy(request),
    });
    let again = reconcile(&context, &id("a")).await.unwrap();
    assert_eq!(again, ReconcileResult::Conflict);
    let mut changed = policy("object.spec.replicas <= 6");
    changed.metadata.resource_version = Some("8".to_owned());
    changed.metadata.generation = Some(3);
    context.store.put(changed, EventSource::Watched);
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    assert_eq!(writes(&log)[1].body["status"]["observedGeneration"], 3);
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
}

#[tokio::test(start_paused = true)]
async fn schema_change_during_check_requeues_policy() {
    let late_context = Arc::new(std::sync::OnceLock::<Arc<Context>>::new());
    let seen = Arc::clone(&late_context);
    let (context, _) = context(SOUND, move |request| {
        if request.method == Method::GET {
            // The schema changes while the policy is checked with the previous schema. At this time, the policy's
            // dependency on the schema is not recorded yet.
            let new = snapshot(
                &[("apps/v1", "deployments", "Deployment")],
                &[("apps/v1", "/openapi/v3/apis/apps/v1?hash=2")],
            );
            let context = seen.get().unwrap();
            let change = Change::between(&context.snapshot(), &new);
            context.set_snapshot(new);
            assert_eq!(
                context.store.touched_by(&change, Profile::Truthful),
                Vec::new()
            );
        }
        healthy(request)
    });
    late_context.set(Arc::clone(&context)).unwrap();
    reconcile(&context, &id("a")).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(1), context.queue.next()).await;
    assert_eq!(next.unwrap(), id("a"));
}

/// A check may end after the watch has reported another spec with the generation of the checked spec.
#[tokio::test(start_paused = true)]
async fn result_for_other_spec_is_discarded() {
    let (context, _) = context(SOUND, healthy);
    let late = loop {
        reconcile(&context, &id("a")).await.unwrap();
        if let Some(result) = context.store.get(&id("a")).unwrap().result {
            break result;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let mut whole = policy("object.spec.replicsa <= 5");
    whole.metadata.resource_version = Some("9".to_owned());
    assert!(context.store.put(whole, EventSource::Watched));
    context.store.note(&id("a"), &late);
    assert!(context.store.get(&id("a")).unwrap().result.is_none());
}

#[tokio::test(start_paused = true)]
async fn policy_is_requeued_if_response_has_other_spec() {
    // The watch reported one spec. The API server has stored another spec with this generation, and returns the stored
    // spec in the response to the write.
    let (context, log) = context(SOUND, move |request| {
        if request.method != Method::PATCH {
            return healthy(request);
        }
        let mut answer = serde_json::to_value(policy("object.spec.replicsa <= 5")).unwrap();
        answer["metadata"]["resourceVersion"] = json!("8");
        answer["status"] = request.body["status"].clone();
        Some(Reply::json(&answer))
    });
    reconcile(&context, &id("a")).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(1), context.queue.next()).await;
    assert_eq!(next.unwrap(), id("a"));
    reconcile(&context, &id("a")).await.unwrap();
    let reasons: Vec<Value> = writes(&log)
        .iter()
        .map(|write| write.body["status"]["conditions"][0]["reason"].clone())
        .collect();
    assert_eq!(reasons, ["Ready", "ExpressionWarnings"]);
}

#[tokio::test(start_paused = true)]
async fn late_response_does_not_restore_deleted_policy() {
    let (context, _) = context(SOUND, healthy);
    let at_work = Arc::clone(&context);
    reconcile(&at_work, &id("a")).await.unwrap();
    assert!(context.store.remove(&id("a")));
    let mut answered = policy(SOUND);
    answered.metadata.resource_version = Some("9".to_owned());
    assert!(!context.store.put(answered, EventSource::Answered));
    reconcile(&context, &id("a")).await.unwrap();
    let text = context.metrics.encode().unwrap();
    assert!(!text.contains("policy=\"a\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn unavailable_schema_retains_status() {
    let is_down = Arc::new(AtomicU16::new(0));
    let status = Arc::clone(&is_down);
    let (context, log) = context(SOUND, move |request| match status.load(Ordering::Relaxed) {
        503 if request.method == Method::GET => Some(Reply::failure(503, "starting")),
        _ => healthy(request),
    });
    reconcile(&context, &id("a")).await.unwrap();
    // The document has a new URL, and cannot be read.
    is_down.store(503, Ordering::Relaxed);
    context.set_snapshot(snapshot(
        &[("apps/v1", "deployments", "Deployment")],
        &[("apps/v1", "/openapi/v3/apis/apps/v1?hash=2")],
    ));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
    assert_eq!(writes(&log).len(), 1);
    // After a minute of failures, the policy must be reconciled.
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(
        context.stale_conditions.due(tokio::time::Instant::now()),
        [id("a")]
    );
    let message = |n: usize, condition: usize| {
        let writes = writes(&log);
        let conditions = &writes[n].body["status"]["conditions"];
        conditions[condition]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let note = "; may be out of date: a schema cannot be read";
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    assert_eq!(message(1, 0), format!("{}{note}", message(0, 0)));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
    // A restarted controller does not know how long the schema has been unavailable, so it keeps the note.
    context.stale_conditions.forget(&id("a"));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Skipped(Skipped::Equal)
    );
    // The document can be read again.
    is_down.store(0, Ordering::Relaxed);
    context.set_snapshot(snapshot(
        &[("apps/v1", "deployments", "Deployment")],
        &[("apps/v1", DOCUMENT)],
    ));
    assert_eq!(
        reconcile(&context, &id("a")).await.unwrap(),
        ReconcileResult::Applied
    );
    assert_eq!(message(2, 0), message(0, 0));
}

/// Runs the workers until `until` returns true for the logged writes.
async fn work_until(context: &Arc<Context>, log: &Log, until: impl Fn(&[ReceivedRequest]) -> bool) {
    context.set_policies_listed();
    let stop = async {
        while !until(&writes(log)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    work(Arc::clone(context), stop).await;
}

#[tokio::test(start_paused = true)]
async fn failed_status_write_is_retried() {
    let n_failures = Mutex::new(5);
    let (context, log) = context(SOUND, move |request| {
        let mut n_failures = n_failures.lock().unwrap();
        if request.method == Method::PATCH && *n_failures > 0 {
            *n_failures -= 1;
            return Some(Reply::failure(503, "down"));
        }
        healthy(request)
    });
    context.queue.add(&id("a"));
    work_until(&context, &log, |writes| writes.len() == 6).await;
    tokio::time::advance(Duration::from_secs(600)).await;
    let text = context.metrics.encode().unwrap();
    assert!(
        text.contains("vap_reconcile_errors_total{reason=\"server\"} 5\n"),
        "{text}"
    );
    assert!(
        text.contains("vap_reconciles_total{outcome=\"applied\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("vap_status_writes_total 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn workers_reconcile_nothing_before_first_snapshot() {
    let (client, log) = client(healthy);
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    context.store.put(policy(SOUND), EventSource::Watched);
    context.queue.add(&id("a"));
    context.set_policies_listed();
    // For an hour, nothing happens because there is no snapshot of the cluster.
    let hour = tokio::time::sleep(Duration::from_secs(3600));
    work(Arc::clone(&context), hour).await;
    assert_eq!(log.lock().unwrap().len(), 0);
    assert_eq!(context.queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stopped_workers_wait_only_for_write_in_progress() {
    let (context, log) = context(SOUND, |request| match request.method {
        Method::PATCH => None,
        _ => healthy(request),
    });
    context.queue.add(&id("a"));
    let start = tokio::time::Instant::now();
    work_until(&context, &log, |writes| writes.len() == 1).await;
    // The write gets no response, and is canceled.
    assert!(
        start.elapsed() < Duration::from_secs(6),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(context.store.ids(), [id("a")]);
}

#[tokio::test]
async fn marking_a_kind_as_listed_again_causes_no_notification() {
    // The watch of probes waits for changes. If probes are not served, it calls `set_probes_listed` after each change.
    let (context, _) = context(SOUND, healthy);
    let mut changes = context.changes();
    changes.mark_unchanged();
    context.set_policies_listed();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    context.set_policies_listed();
    context.set_bindings_listed();
    context.set_probes_listed();
    assert!(!changes.has_changed().unwrap());
    let snapshot = ClusterSnapshot::clone(&context.snapshot());
    context.set_snapshot(snapshot);
    assert!(changes.has_changed().unwrap());
}
