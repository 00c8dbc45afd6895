//! Tests that an unresponsive aggregated API delays only policies that depend on it.

use std::sync::atomic::{AtomicBool, Ordering};

use ::http::Method;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use crate::cluster::testing::{Log, ReceivedRequest, Reply, client, paths};
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::cluster::snapshot::tests::snapshot;
use crate::controller::context::Context;
use crate::controller::reconcile::work;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::tests::{id, settings};

use super::super::*;

const DOWN: &str = "/openapi/v3/apis/down.example.com/v1?hash=1";

struct Cluster {
    context: Arc<Context>,
    is_down: Arc<AtomicBool>,
    log: Log,
}

fn document(group: &str, kind: &str) -> Value {
    json!({"components": {"schemas": {kind: {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
        "x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": kind}],
    }}}})
}

fn policy(name: &str, group: &str, resource: &str) -> ValidatingAdmissionPolicy {
    let value = json!({
        "metadata": {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"],
                "resources": [resource]}]},
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        },
    });
    serde_json::from_value(value).unwrap()
}

/// Returns a snapshot. The address of the document of deployments contains `round`, so each round fetches the document
/// again.
fn served(round: usize) -> ClusterSnapshot {
    let address = format!("/openapi/v3/apis/apps/v1?hash={round}");
    snapshot(
        &[
            ("apps/v1", "deployments", "Deployment"),
            ("down.example.com/v1", "things", "Thing"),
        ],
        &[("apps/v1", &*address), ("down.example.com/v1", DOWN)],
    )
}

/// Responds to all requests except those for the document of the API that is down.
fn answer(
    context: &std::sync::OnceLock<Arc<Context>>,
    is_down: bool,
    request: &ReceivedRequest,
) -> Option<Reply> {
    if request.method == Method::PATCH {
        let name = request.path.split('/').nth(5).unwrap();
        let entry = context.get().unwrap().store.get(&id(name)).unwrap();
        let metadata = entry.metadata();
        let mut written = json!({"metadata": metadata, "spec": entry.subject.policy()});
        let version: u64 = metadata.resource_version.as_ref().unwrap().parse().unwrap();
        written["metadata"]["resourceVersion"] = json!((version + 1).to_string());
        written["status"] = request.body["status"].clone();
        return Some(Reply::json(&written));
    }
    match request.path == DOWN {
        true if is_down => None,
        true => Some(Reply::json(&document("down.example.com", "Thing"))),
        false => Some(Reply::json(&document("apps", "Deployment"))),
    }
}

fn sound() -> impl Iterator<Item = String> {
    (0..12).map(|n| format!("sound-{n}"))
}

/// Creates a cluster with 52 queued policies. The first 40 match either the API that is down or all resources. The
/// other 12 match deployments.
fn cluster() -> Cluster {
    let is_down = Arc::new(AtomicBool::new(true));
    let late_context: Arc<std::sync::OnceLock<Arc<Context>>> = Arc::default();
    let (down, seen) = (Arc::clone(&is_down), Arc::clone(&late_context));
    let (client, log) = client(move |request| answer(&seen, down.load(Ordering::Relaxed), request));
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    late_context.set(Arc::clone(&context)).unwrap();
    context.bindings.retain(&BTreeSet::new());
    context.set_bindings_listed();
    context.probes.retain(&BTreeSet::new());
    context.set_probes_listed();
    let touching = (0..40).map(|n| match n % 2 {
        0 => policy(&format!("on-down-{n}"), "down.example.com", "things"),
        _ => policy(&format!("on-all-{n}"), "*", "*"),
    });
    for policy in touching.chain(sound().map(|name| policy(&name, "apps", "deployments"))) {
        let name = policy.metadata.name.clone().unwrap();
        context.store.put(policy, EventSource::Watched);
        context.queue.add(&id(&name));
    }
    context.set_policies_listed();
    Cluster {
        context,
        is_down,
        log,
    }
}

impl Cluster {
    /// Waits until the policies `names` are checked in the current snapshot. Returns the elapsed time.
    async fn time_until_checked(&self, names: &[String]) -> Duration {
        let start = Instant::now();
        let snapshot = self.context.snapshot();
        let is_checked = |name: &String| {
            let entry = self.context.store.get(&id(name)).unwrap();
            let is_current = |result: &Arc<
                crate::controller::subjects::check_result::CheckResult,
            >| { result.holds_for(&entry.generation(), &snapshot) };
            entry.result.as_ref().is_some_and(is_current)
                && entry
                    .status
                    .as_ref()
                    .is_some_and(|status| status.conditions.is_some())
        };
        while !names.iter().all(is_checked) {
            assert!(start.elapsed() < Duration::from_secs(600), "not checked");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        start.elapsed()
    }

    fn type_checked(&self, name: &str) -> Option<String> {
        let entry = self.context.store.get(&id(name)).unwrap();
        let conditions = entry.status?.conditions?;
        let of_types = |condition: &&_| {
            let condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition = condition;
            condition.type_ == "TypeChecked"
        };
        conditions
            .iter()
            .find(of_types)
            .map(|condition| condition.reason.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_aggregated_api_delays_no_other_policies() {
    let cluster = cluster();
    let names: Vec<String> = sound().collect();
    cluster.context.set_snapshot(served(0));
    let worker = tokio::spawn(work(Arc::clone(&cluster.context), std::future::pending()));
    for round in 1..=60 {
        let took = cluster.time_until_checked(&names).await;
        // Only the first round waits for the API that is down, for at most `GRACE`. This test polls every millisecond,
        // so it tolerates 5 ms.
        let limit = if round == 1 { GRACE } else { Duration::ZERO };
        let limit = limit + Duration::from_millis(5);
        assert!(took <= limit, "round {round}: {took:?}");
        // Policies that depend on the API that is down are checked without its schemas.
        tokio::time::sleep(Duration::from_secs(60)).await;
        for name in ["on-down-0", "on-all-1"] {
            assert_eq!(
                cluster.type_checked(name).as_deref(),
                Some(match name {
                    "on-down-0" => "SchemaUnavailable",
                    _ => "PartiallyChecked",
                })
            );
        }
        cluster.context.set_snapshot(served(round));
        cluster.context.touch_all();
    }
    let n_asked = paths(&cluster.log)
        .iter()
        .filter(|path| *path == DOWN)
        .count();
    assert!((10..=70).contains(&n_asked), "{n_asked}");
    // When the API recovers, the policies that depend on it are checked with its schemas, without another trigger.
    cluster.is_down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(80)).await;
    for name in ["on-down-0", "on-all-1"] {
        assert_eq!(
            cluster.type_checked(name).as_deref(),
            Some("NoWarnings"),
            "{name}"
        );
    }
    worker.abort();
}
