//! Tests of the evaluation of probes: its triggers, the reuse of results, and the written statuses.

mod apart;
mod authorization;
mod memory;
mod rights;
mod stale;
mod standby;
mod target;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use serde_json::{Value, json};

use kube::Resource;

use super::super::context::Context;
use super::super::tests::{context, healthy, id, managed, policy};
use super::work;
use crate::cluster::testing::{Log, ReceivedRequest, Reply};
use crate::controller::cluster::snapshot::tests::snapshot;
use crate::controller::reconcile::reconcile;
use crate::controller::reconcile::result::ReconcileResult;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::probe::Probe;
use crate::policy::admission::Admission;
use crate::probe::api::PolicyProbe;
use crate::telemetry::metrics::ReconcileOutcome;
use crate::version::KubernetesVersion;

const AT_MOST_FIVE: &str = "object.spec.replicas <= 5";

/// Returns a probe with one deployment that must be denied.
fn probe(generation: i64, replicas: i64, bindings: &str) -> Probe {
    let probe: PolicyProbe = serde_json::from_value(json!({
        "apiVersion": "vap-status.dev/v1alpha1",
        "kind": "PolicyProbe",
        "metadata": {"name": "p", "generation": generation, "resourceVersion": generation.to_string()},
        "spec": {"policyName": "a", "samples": "Partial", "bindings": bindings, "cases": [{
            "name": "many",
            "request": {
                "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                           "spec": {"replicas": replicas}},
                "namespaceObject": {"metadata": {"name": "default"}},
            },
            "expect": {"decision": "Deny"},
        }]},
    }))
    .unwrap();
    probe.into()
}

fn binding() -> ValidatingAdmissionPolicyBinding {
    serde_json::from_value(json!({
        "metadata": {"name": "b"},
        "spec": {"policyName": "a", "validationActions": ["Deny"]},
    }))
    .unwrap()
}

/// Returns `binding` with the annotation that allows probes to use params and namespaces of the cluster.
fn allowing(mut binding: ValidatingAdmissionPolicyBinding) -> ValidatingAdmissionPolicyBinding {
    crate::controller::subjects::binding_annotations::set_allows_inputs(
        &mut binding.metadata,
        true,
    );
    binding
}

/// Responds like an API server that stores the policy with [`AT_MOST_FIVE`] and accepts statuses of policies and
/// probes.
fn answer(request: &ReceivedRequest) -> Option<Reply> {
    answer_of(AT_MOST_FIVE, request)
}

/// Responds like an API server that stores the policy with `expression` and accepts statuses of policies and probes.
fn answer_of(expression: &str, request: &ReceivedRequest) -> Option<Reply> {
    if request.method == Method::PATCH && request.path.contains("/policyprobes/p/status") {
        // The response is older than the stored probe, as if the watch had already reported a later state.
        let mut probe = serde_json::to_value(probe(1, 6, "FromCluster").object()).unwrap();
        probe["status"] = request.body["status"].clone();
        return Some(Reply::json(&probe));
    }
    if request.method == Method::PATCH {
        let mut policy = serde_json::to_value(policy(expression)).unwrap();
        policy["metadata"]["resourceVersion"] = json!("8");
        policy["metadata"]["managedFields"] = managed();
        policy["status"] = request.body["status"].clone();
        return Some(Reply::json(&policy));
    }
    if request.path.contains("/namespaces/") {
        return Some(Reply::failure(404, "not found"));
    }
    healthy(request)
}

/// Returns the outcomes that were written to probes, in order.
fn outcomes(log: &Log) -> Vec<Value> {
    let log = log.lock().unwrap();
    log.iter()
        .filter(|seen| seen.method == Method::PATCH && seen.path.contains("/policyprobes/"))
        .map(|seen| seen.body["status"]["cases"][0]["outcome"].clone())
        .collect()
}

#[track_caller]
fn assert_compiled(context: &Context, n_times: usize) {
    let text = context.metrics.encode().unwrap();
    let line = format!("vap_policy_compilations_total {n_times}\n");
    assert!(text.contains(&line), "not {n_times}:\n{text}");
}

/// Returns the compiled policy of the stored generation.
fn cached(context: &Context) -> Option<Arc<Admission>> {
    context.admissions.get(
        &context.store.get(&id("a")).unwrap(),
        KubernetesVersion::DEFAULT,
    )
}

fn put(context: &Context, policy: ValidatingAdmissionPolicy) {
    assert!(context.store.put(policy, EventSource::Watched));
}

/// Starts the evaluation of probes.
fn start(context: &Arc<Context>) -> tokio::task::JoinHandle<()> {
    context.set_policies_listed();
    tokio::spawn(work(Arc::clone(context)))
}

/// Waits until `holds` returns true. Panics after a timeout.
#[track_caller]
fn until(holds: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        for _ in 0..20_000 {
            if holds() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("timeout: the condition of `until` at {caller} did not become true");
    }
}

/// Reconciles until the schemas are loaded. Until then, the outcome is [`ReconcileOutcome::Unchanged`].
async fn next_reconciliation(context: &Arc<Context>) -> ReconcileResult {
    for _ in 0..20_000 {
        let done = reconcile(context, &id("a")).await.unwrap();
        if done.outcome() != ReconcileOutcome::Unchanged {
            return done;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no reconciliation");
}

/// Reconciles, and then waits until `n_written` outcomes were written.
#[track_caller]
fn reconciled<'a>(
    context: &'a Arc<Context>,
    log: &'a Log,
    n_written: usize,
) -> impl Future<Output = ()> + 'a {
    let written = until(move || outcomes(log).len() >= n_written);
    async move {
        reconcile(context, &id("a")).await.unwrap();
        written.await;
    }
}

/// Returns an API server that stores the status of the probe. If `rejection` returns an HTTP status code, a write of
/// the status fails with this code.
fn server(
    rejection: impl Fn() -> Option<u16> + Send + Sync + 'static,
) -> impl Fn(&ReceivedRequest) -> Option<Reply> + Send + Sync + 'static {
    let version = Mutex::new(100_u64);
    move |request| {
        if request.method != Method::PATCH || !request.path.contains("/policyprobes/p/status") {
            return answer(request);
        }
        if let Some(status) = rejection() {
            return Some(Reply::failure(status, "rejected"));
        }
        let mut version = version.lock().unwrap();
        *version += 1;
        let mut probe = serde_json::to_value(probe(1, 6, "Implied").object()).unwrap();
        probe["metadata"]["resourceVersion"] = json!(version.to_string());
        probe["status"] = request.body["status"].clone();
        Some(Reply::json(&probe))
    }
}

#[tokio::test(start_paused = true)]
async fn policy_is_compiled_for_probes_once_per_generation() {
    let (context, log) = context(AT_MOST_FIVE, answer);
    start(&context);
    context
        .probes
        .put(probe(1, 6, "FromCluster"), EventSource::Watched);
    reconciled(&context, &log, 1).await;
    // Without a binding, the policy denies no request.
    assert_eq!(outcomes(&log), ["Failed"]);
    assert_compiled(&context, 1);
    let first = cached(&context).unwrap();

    context.bindings.put(binding(), EventSource::Watched);
    reconciled(&context, &log, 2).await;
    assert_eq!(outcomes(&log), ["Failed", "Passed"]);
    context
        .probes
        .put(probe(2, 5, "FromCluster"), EventSource::Watched);
    reconciled(&context, &log, 3).await;
    assert_eq!(outcomes(&log), ["Failed", "Passed", "Failed"]);
    context
        .probes
        .put(probe(3, 7, "Implied"), EventSource::Watched);
    reconciled(&context, &log, 4).await;
    assert_eq!(outcomes(&log), ["Failed", "Passed", "Failed", "Passed"]);
    assert_compiled(&context, 1);

    // After a schema changes, the policy is checked again. The policy compiled for the probes is reused.
    context.set_snapshot(snapshot(
        &[("apps/v1", "deployments", "Deployment")],
        &[("apps/v1", "/openapi/v3/apis/apps/v1?hash=2")],
    ));
    reconciled(&context, &log, 5).await;
    assert_compiled(&context, 2);
    let now = cached(&context).unwrap();
    assert!(Arc::ptr_eq(&first, &now));

    let before = context.store.get(&id("a")).unwrap();
    let mut changed = policy("object.spec.replicas <= 9");
    changed.metadata.generation = Some(3);
    changed.metadata.resource_version = Some("99".to_owned());
    put(&context, changed);
    reconciled(&context, &log, 6).await;
    assert_eq!(outcomes(&log).last().unwrap(), "Failed");
    assert_compiled(&context, 3);
    assert!(
        context
            .admissions
            .get(&before, KubernetesVersion::DEFAULT)
            .is_none()
    );
    assert!(cached(&context).is_some());
}

/// A received policy may have an incomplete spec although its generation is unchanged.
#[tokio::test(start_paused = true)]
async fn changed_spec_of_same_generation_is_evaluated_again() {
    let (context, log) = context(AT_MOST_FIVE, answer);
    start(&context);
    let mut mutilated = policy("true");
    mutilated.metadata.resource_version = Some("98".to_owned());
    put(&context, mutilated);
    context
        .probes
        .put(probe(1, 6, "Implied"), EventSource::Watched);
    reconciled(&context, &log, 1).await;
    assert_eq!(outcomes(&log), ["Failed"]);

    let mut whole = policy(AT_MOST_FIVE);
    whole.metadata.resource_version = Some("99".to_owned());
    put(&context, whole);
    reconciled(&context, &log, 2).await;
    assert_eq!(outcomes(&log), ["Failed", "Passed"]);
}

#[tokio::test(start_paused = true)]
async fn policy_is_compiled_for_probes_only_while_it_has_probes() {
    let (context, log) = context(AT_MOST_FIVE, answer);
    reconcile(&context, &id("a")).await.unwrap();
    assert_compiled(&context, 1);
    assert!(cached(&context).is_none());

    start(&context);
    context
        .probes
        .put(probe(1, 6, "Implied"), EventSource::Watched);
    reconciled(&context, &log, 1).await;
    assert_eq!(outcomes(&log), ["Passed"], "{:#?}", log.lock().unwrap());
    assert_compiled(&context, 2);
    assert!(cached(&context).is_some());

    context.probes.remove("p");
    reconcile(&context, &id("a")).await.unwrap();
    assert!(cached(&context).is_none());

    context
        .probes
        .put(probe(1, 6, "Implied"), EventSource::Watched);
    reconciled(&context, &log, 2).await;
    assert!(cached(&context).is_some());
    let before = context.store.get(&id("a")).unwrap();
    context.store.remove(&id("a"));
    reconcile(&context, &id("a")).await.unwrap();
    assert!(
        context
            .admissions
            .get(&before, KubernetesVersion::DEFAULT)
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn failed_probe_status_write_does_not_affect_policy() {
    for (status, is_counted) in [
        (403, true),
        (422, true),
        (500, true),
        (503, true),
        (409, false),
    ] {
        let refusals = Arc::new(Mutex::new(1));
        let left = Arc::clone(&refusals);
        let (context, log) = context(
            AT_MOST_FIVE,
            server(move || {
                let mut left = left.lock().unwrap();
                (*left > 0).then(|| {
                    *left -= 1;
                    status
                })
            }),
        );
        start(&context);
        context
            .probes
            .put(probe(1, 6, "Implied"), EventSource::Watched);
        assert_eq!(
            next_reconciliation(&context).await,
            ReconcileResult::Applied,
            "{status}"
        );
        let written = context.store.get(&id("a")).unwrap().status;
        let conditions = serde_json::to_value(&written).unwrap()["conditions"].clone();
        let passed =
            conditions.as_array().unwrap().iter().any(|condition| {
                condition["type"] == "ProbesPassed" && condition["status"] == "True"
            });
        assert!(passed, "{status}: {conditions}");
        // The write is retried after a backoff, without another trigger.
        until(|| outcomes(&log).len() == 2).await;
        until(|| {
            context.probes.for_policy(&id("a")).unwrap()[0]
                .status
                .is_some()
        })
        .await;
        let text = context.metrics.encode().unwrap();
        let n_counted = text.lines().filter(|line| {
            line.starts_with("vap_probe_status_write_errors_total{") && line.ends_with("} 1")
        });
        assert_eq!(n_counted.count(), usize::from(is_counted), "{status}");
        // Further reconciliations write nothing.
        for _ in 0..3 {
            assert_eq!(
                reconcile(&context, &id("a")).await.unwrap().outcome(),
                ReconcileOutcome::Unchanged
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(outcomes(&log).len(), 2);
        assert_compiled(&context, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn probe_status_write_has_resource_version() {
    let (context, log) = context(AT_MOST_FIVE, server(|| None));
    start(&context);
    let mut old = probe(4, 6, "Implied").clone();
    old.meta_mut().uid = Some("u".to_owned());
    context.probes.put(old, EventSource::Watched);
    reconciled(&context, &log, 1).await;
    let log = log.lock().unwrap();
    let write = log
        .iter()
        .find(|seen| seen.path.contains("/policyprobes/"))
        .unwrap();
    assert_eq!(
        write.body["metadata"],
        json!({"name": "p", "uid": "u", "resourceVersion": "4"})
    );
    assert_eq!(write.body["status"]["observedGeneration"], 4);
    assert_eq!(write.body["status"]["policyGeneration"], 2);
}

#[tokio::test(start_paused = true)]
async fn unreadable_probe_is_reported_with_and_without_policy() {
    let (context, log) = context(AT_MOST_FIVE, server(|| None));
    start(&context);
    let unread = |policy: &str, version: &str| -> Probe {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "generation": 1, "resourceVersion": version},
            "spec": {"policyName": policy, "bindings": "Later", "cases": []},
        }))
        .unwrap()
    };
    context.probes.put(unread("a", "1"), EventSource::Watched);
    reconciled(&context, &log, 1).await;
    context
        .probes
        .put(unread("gone", "1000"), EventSource::Watched);
    reconcile(&context, &id("gone")).await.unwrap();
    until(|| outcomes(&log).len() == 2).await;
    let log = log.lock().unwrap();
    let writes = log
        .iter()
        .filter(|seen| seen.path.contains("/policyprobes/"));
    for write in writes {
        let ready = &write.body["status"]["conditions"][0];
        assert_eq!(ready["reason"], "ProbesPending", "{ready}");
        let message = ready["message"].as_str().unwrap();
        assert!(message.contains("unknown variant `Later`"), "{message}");
    }
}
