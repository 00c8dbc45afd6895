//! Tests of namespaces and permissions, which are not watched, and of kinds that are served later.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::controller::cluster::snapshot::Change;
use crate::controller::cluster::snapshot::tests::gv;
use crate::controller::probe_runner::stale::{MaintenanceTask, run_task, tasks};
use crate::controller::reconcile::periodic_resync;
use crate::controller::tests::id;
use crate::policy::analysis::Profile;

/// An expression that reads a label of the request's namespace.
const BY_LABEL: &str = "namespaceObject.metadata.labels['tier'] == 'test'";

/// Stores `n` probes with requests in the namespace `team`.
fn put_probes(context: &Context, n: usize) {
    for n in 0..n {
        let mut probe = probe(1, 6, "FromCluster");
        probe.edit(|object| {
            object.metadata.name = Some(format!("p{n}"));
            let request = &mut object.spec.cases[0].request;
            request.namespace_object = None;
            request.namespace = Some("team".to_owned());
        });
        context.probes.put(probe, EventSource::Watched);
    }
}

/// Returns a cluster with the namespace `team`, the log of the requests, and the version of the namespace. Tests change
/// this version. If it is 0, the namespace cannot be read.
fn cluster(expression: &str) -> (Arc<Context>, Log, Arc<AtomicU64>) {
    let version = Arc::new(AtomicU64::new(1));
    let of_server = Arc::clone(&version);
    let of_policy = expression.to_owned();
    let (context, log) = context(expression, move |request| {
        if request.path == "/api/v1/namespaces/team" {
            let version = of_server.load(Ordering::Relaxed);
            if version == 0 {
                return Some(Reply::failure(403, "no"));
            }
            let tier = if version == 1 { "prod" } else { "test" };
            return Some(Reply::json(&json!({"metadata": {
                "name": "team", "resourceVersion": version.to_string(), "labels": {"tier": tier}}})));
        }
        if request.method == Method::PATCH && request.path.contains("/policyprobes/") {
            let mut probe = serde_json::to_value(probe(1, 6, "Implied").object()).unwrap();
            probe["metadata"]["name"] = request.body["metadata"]["name"].clone();
            return Some(Reply::json(&probe));
        }
        if request.method == Method::PATCH {
            let mut written = serde_json::to_value(policy(&of_policy)).unwrap();
            written["metadata"]["resourceVersion"] = json!("8");
            written["status"] = request.body["status"].clone();
            return Some(Reply::json(&written));
        }
        answer(request)
    });
    context
        .bindings
        .put(allowing(binding()), EventSource::Watched);
    start(&context);
    (context, log, version)
}

fn n_reads(log: &Log) -> usize {
    let log = log.lock().unwrap();
    log.iter()
        .filter(|seen| seen.path.contains("/api/v1/namespaces/"))
        .count()
}

#[tokio::test(start_paused = true)]
async fn namespace_is_read_once_for_all_probes() {
    let (context, log, _) = cluster(BY_LABEL);
    put_probes(&context, 50);
    reconciled(&context, &log, 50).await;
    assert_eq!(outcomes(&log), vec!["Passed"; 50]);
    assert_eq!(n_reads(&log), 1);
    assert_eq!(
        tasks(&context),
        [MaintenanceTask::Namespace("team".to_owned())]
    );

    // The namespace is cached, so it is not read again.
    run_task(&context, MaintenanceTask::Namespace("team".to_owned())).await;
    assert_eq!(n_reads(&log), 1);
    assert_eq!(context.probe_runner.quick.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn namespaces_of_probes_are_read_again_every_minute() {
    let (context, log, version) = cluster(BY_LABEL);
    put_probes(&context, 3);
    reconciled(&context, &log, 3).await;
    let resync = tokio::spawn(periodic_resync::run(Arc::clone(&context)));
    tokio::time::sleep(Duration::from_secs(185)).await;
    assert_eq!(n_reads(&log), 1 + 3);
    // No input changed, so no probe was evaluated.
    assert_eq!(outcomes(&log).len(), 3);

    version.store(2, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(61)).await;
    until(|| outcomes(&log).len() >= 6).await;
    assert_eq!(outcomes(&log)[3..6], vec!["Failed"; 3]);

    // The status reports that the namespace cannot be read.
    version.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(61)).await;
    until(|| outcomes(&log).len() >= 9).await;
    assert_eq!(outcomes(&log)[6..9], vec!["Pending"; 3]);
    resync.abort();
}

#[tokio::test(start_paused = true)]
async fn unused_namespace_is_not_read() {
    let (context, log, _) = cluster(AT_MOST_FIVE);
    put_probes(&context, 3);
    reconciled(&context, &log, 3).await;
    assert_eq!(n_reads(&log), 0);
    assert_eq!(tasks(&context), []);
    // The namespace is read only if a namespace selector depends on more than the name.
    let mut by_name = allowing(binding());
    by_name.metadata.resource_version = Some("2".to_owned());
    by_name.spec.match_resources = serde_json::from_value(json!({"namespaceSelector":
        {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team"]}]}}))
    .unwrap();
    context.bindings.put(by_name, EventSource::Watched);
    reconcile(&context, &id("a")).await.unwrap();
    until(|| context.probe_runner.n_unfinished() == 0).await;
    assert_eq!(n_reads(&log), 0);
    let mut selecting = allowing(binding());
    selecting.metadata.resource_version = Some("3".to_owned());
    selecting.spec.match_resources =
        serde_json::from_value(json!({"namespaceSelector": {"matchLabels": {"tier": "test"}}}))
            .unwrap();
    context.bindings.put(selecting, EventSource::Watched);
    for n in 0..3 {
        let mut bound = Probe::clone(&context.probes.for_policy(&id("a")).unwrap()[n]);
        bound.edit(|object| {
            object.metadata.generation = Some(2);
            object.metadata.resource_version = Some("2".to_owned());
        });
        context.probes.put(bound, EventSource::Watched);
    }
    reconciled(&context, &log, 6).await;
    assert_eq!(n_reads(&log), 1);
}

#[tokio::test(start_paused = true)]
async fn maintenance_tasks_are_spread_over_one_minute() {
    let (context, log, _) = cluster(BY_LABEL);
    for n in 0..6 {
        let mut probe = probe(1, 6, "FromCluster");
        probe.edit(|object| {
            let request = &mut object.spec.cases[0].request;
            request.namespace_object = None;
            request.namespace = Some(format!("n{n}"));
            object.metadata.name = Some(format!("p{n}"));
        });
        context.probes.put(probe, EventSource::Watched);
    }
    reconciled(&context, &log, 6).await;
    assert_eq!(n_reads(&log), 6);
    let resync = tokio::spawn(periodic_resync::run(Arc::clone(&context)));
    for n in 0..6 {
        let due = if n == 0 { 60_100 } else { 10_000 };
        tokio::time::sleep(Duration::from_millis(due)).await;
        assert_eq!(n_reads(&log), 6 + n + 1);
    }
    resync.abort();
}

#[tokio::test(start_paused = true)]
async fn policy_is_requeued_when_kind_in_probe_is_served() {
    let (context, log) = context(AT_MOST_FIVE, answer);
    start(&context);
    let mut later = probe(1, 6, "Implied");
    later.edit(|object| {
        object.spec.cases[0].request.object = Some(json!({
            "apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "five"}}));
    });
    context.probes.put(later, EventSource::Watched);
    reconciled(&context, &log, 1).await;
    assert_eq!(outcomes(&log), ["Pending"]);
    let change = Change {
        resources: [gv("example.com/v1")].into(),
        ..Change::default()
    };
    let touched = context.store.touched_by(&change, Profile::Truthful);
    assert_eq!(touched, [(1, id("a"))]);

    let mut served = snapshot(
        &[
            ("apps/v1", "deployments", "Deployment"),
            ("example.com/v1", "limits", "Limit"),
        ],
        &[("apps/v1", "/openapi/v3/apis/apps/v1?hash=1")],
    );
    served.revision = context.snapshot().revision + 1;
    context.set_snapshot(served);
    reconciled(&context, &log, 2).await;
    // The policy does not match the kind, so the request is not denied.
    assert_eq!(outcomes(&log), ["Pending", "Failed"]);
    // Without the probe, the policy no longer depends on the kind.
    context.probes.remove("p");
    reconcile(&context, &id("a")).await.unwrap();
    assert_eq!(
        context.store.touched_by(&change, Profile::Truthful),
        Vec::new()
    );
}
