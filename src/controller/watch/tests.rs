//! Tests of watches with an API server that rejects requests, fails or does not support streamed lists.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::cluster::testing::{Log, Reply, client};
use crate::controller::tests::{id, settings};
use crate::status::bindings::BindingsState;
use crate::telemetry::Metrics;

fn policy(name: &str, version: u32) -> Value {
    json!({"metadata": {"name": name, "uid": name, "generation": 1,
                        "resourceVersion": version.to_string()}, "spec": {}})
}

fn event(type_: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": type_, "object": object}))
}

fn bookmark(version: &str) -> String {
    event(
        "BOOKMARK",
        &json!({"kind": "ValidatingAdmissionPolicy", "apiVersion": "v1", "metadata": {
        "resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}}),
    )
}

fn stream(events: &[String]) -> Reply {
    Reply::ended_watch(events)
}

/// Starts the watch of policies. Returns its context, and the log of its requests.
fn watching(
    answer: impl Fn(&str, usize) -> Option<Reply> + Send + Sync + 'static,
) -> (Arc<Context>, Log) {
    let n = std::sync::atomic::AtomicUsize::new(0);
    let (client, log) = client(move |request| {
        let n = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        answer(&request.path, n)
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    tokio::spawn(policies(Arc::clone(&context)));
    (context, log)
}

fn names(context: &Context) -> Vec<String> {
    let mut names: Vec<String> = (context.store.ids().iter())
        .map(ToString::to_string)
        .collect();
    names.sort();
    names
}

async fn queued(context: &Context) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(name) = tokio::time::timeout(Duration::from_secs(1), context.queue.next()).await {
        context.queue.done(&name);
        names.push(name.to_string());
    }
    names
}

#[tokio::test(start_paused = true)]
async fn streamed_list_and_later_events_are_stored() {
    let (context, log) = watching(|_, n| match n {
        0 => Some(stream(&[
            event("ADDED", &policy("a", 1)),
            event("ADDED", &policy("b", 2)),
            bookmark("3"),
            event("MODIFIED", &policy("a", 4)),
            event("DELETED", &policy("b", 5)),
        ])),
        _ => None,
    });
    assert_eq!(queued(&context).await, ["a", "b"]);
    assert_eq!(names(&context), ["a"]);
    let paths = crate::cluster::testing::paths(&log);
    assert!(paths[0].contains("sendInitialEvents=true"), "{paths:?}");
    // After the end of the stream, the watch continues at the last resource version.
    assert!(
        paths[1].contains("watch=true") && paths[1].contains("resourceVersion=5"),
        "{paths:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn list_is_paged_if_streaming_is_not_supported() {
    let (context, _) = watching(|path, _| {
        Some(if path.contains("sendInitialEvents") {
            Reply::failure(
                422,
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            )
        } else if path.contains("watch=true") {
            Reply::watch(&[])
        } else {
            assert!(path.contains("limit=50"), "{path}");
            Reply::json(&json!({"metadata": {"resourceVersion": "3"}, "items": [policy("a", 1)]}))
        })
    });
    assert_eq!(queued(&context).await, ["a"]);
    assert!(context.readiness.checks().contains(&("policies", None)));
}

#[tokio::test(start_paused = true)]
async fn relist_removes_deleted_objects() {
    let (context, _) = watching(|_, n| {
        let gone = json!({"kind": "Status", "apiVersion": "v1", "code": 410, "message": "too old",
                          "metadata": {}, "status": "Failure", "reason": "Expired"});
        Some(match n {
            0 => stream(&[
                event("ADDED", &policy("a", 1)),
                bookmark("1"),
                event("ERROR", &gone),
            ]),
            1 => stream(&[event("ADDED", &policy("b", 3)), bookmark("4")]),
            _ => return None,
        })
    });
    // The deleted policy is reconciled once more, which removes its stored data.
    assert_eq!(queued(&context).await, ["a", "b", "a"]);
    assert_eq!(names(&context), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn missing_permission_is_reported_until_granted() {
    let (context, log) = watching(|_, n| {
        Some(match n {
            0..5 => Reply::failure(
                403,
                "validatingadmissionpolicies is forbidden: User \"x\" cannot list",
            ),
            5 => Reply::watch(&[bookmark("1"), bookmark("2")]),
            _ => return None,
        })
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        context.readiness.checks()[0],
        (
            "policies",
            Some(
                "cannot watch validatingadmissionpolicies.admissionregistration.k8s.io (the API \
                 server returned 403: validatingadmissionpolicies is forbidden: User \"x\" cannot \
                 list): grant `list` and `watch` on it in the ClusterRole vap-status-controller"
                    .to_owned()
            )
        )
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(context.readiness.checks()[0], ("policies", None));
    assert!(log.lock().unwrap().len() >= 6);
    let text = context.metrics.encode().unwrap();
    let errors = "vap_sync_errors_total{source=\"policies\",reason=\"forbidden\"} 5\n";
    assert!(text.contains(errors), "{text}");
}

#[tokio::test(start_paused = true)]
async fn watch_continues_after_unreadable_object() {
    let (context, _) = watching(|_, n| {
        let odd = json!({"metadata": {"name": "odd", "resourceVersion": "2"}, "spec": {"validations": 7}});
        Some(match n {
            0 => stream(&[
                bookmark("1"),
                event("ADDED", &odd),
                event("ADDED", &policy("a", 3)),
            ]),
            _ => return None,
        })
    });
    assert_eq!(queued(&context).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn source_is_in_sync_only_while_watch_works() {
    let (context, _) = watching(|_, n| match n {
        0 => Some(stream(&[bookmark("1"), bookmark("2")])),
        // First there is no response. Then the API server fails.
        1 => None,
        2 => Some(Reply::failure(503, "down")),
        _ => Some(Reply::watch(&[])),
    });
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(context.readiness.is_in_sync(Source::Policies));
    tokio::time::sleep(Duration::from_millis(14_400)).await;
    assert!(!context.readiness.is_in_sync(Source::Policies));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(context.readiness.is_in_sync(Source::Policies));
    let text = context.metrics.encode().unwrap();
    for reason in ["timeout", "server"] {
        let count = format!("vap_sync_errors_total{{source=\"policies\",reason=\"{reason}\"}} 1\n");
        assert!(text.contains(&count), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn crd_with_null_status_does_not_interrupt_watch() {
    let created = json!({
        "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 1, "resourceVersion": "2"},
        "spec": {"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"},
                 "versions": [{"name": "v1", "served": true}]},
        "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null},
    });
    let (client, log) = client(move |request| {
        let list = Reply::watch(&[bookmark("1"), event("ADDED", &created)]);
        request.path.contains("sendInitialEvents").then_some(list)
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let (signals, mut received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(crds(Arc::clone(&context), signals));
    assert!(matches!(
        received.recv().await,
        Some(RefreshTrigger::CrdsListed { .. })
    ));
    let Some(RefreshTrigger::CrdApplied(name, crd)) = received.recv().await else {
        panic!("the CRD was not reported");
    };
    assert_eq!(
        (name.as_str(), crd.is_established),
        ("widgets.example.com", false)
    );
    assert_eq!(crate::cluster::testing::paths(&log).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn probes_that_cannot_be_listed_do_not_block_start() {
    let (client, _) = client(|request| {
        request
            .path
            .contains("policyprobes")
            .then(|| Reply::failure(500, "broken"))
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    context.set_snapshot(crate::controller::cluster::snapshot::tests::snapshot(
        &[("vap-status.dev/v1alpha1", "policyprobes", "PolicyProbe")],
        &[],
    ));
    context.set_policies_listed();
    context.set_bindings_listed();
    tokio::spawn(probes(Arc::clone(&context)));
    let start = tokio::time::Instant::now();
    context.started().await;
    assert!(
        start.elapsed() < Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
    // The failure is a problem in the readiness checks.
    let problem = context.readiness.checks().pop().unwrap();
    assert_eq!(problem.0, "probes");
    assert!(
        problem.1.unwrap().contains("500"),
        "the problem must contain the status"
    );
}

#[tokio::test(start_paused = true)]
async fn unserved_api_services_are_not_a_problem() {
    let (client, _) = client(|_| Some(Reply::failure(404, "not found")));
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let (signals, _received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(api_services(Arc::clone(&context), signals));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(context.readiness.checks().contains(&("apiservices", None)));
    let text = context.metrics.encode().unwrap();
    assert!(
        !text.contains("vap_sync_errors_total{source=\"apiservices\""),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn first_list_of_bindings_queues_all_policies() {
    let (client, _) = client(|request| {
        request
            .path
            .contains("bindings")
            .then(|| Reply::watch(&[bookmark("1"), bookmark("1")]))
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    context.store.put(
        serde_json::from_value(policy("a", 1)).unwrap(),
        EventSource::Watched,
    );
    tokio::spawn(bindings(Arc::clone(&context)));
    assert_eq!(queued(&context).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn revoked_permission_is_noticed_until_granted() {
    let start = tokio::time::Instant::now();
    let (client, _) = client(move |request| {
        let seconds = start.elapsed().as_secs();
        Some(match seconds {
            // The first watch ends at its timeout.
            _ if request.path.contains("sendInitialEvents") => stream(&[bookmark("1")]),
            0..120 => Reply::failure(403, "cannot list resource"),
            _ => Reply::watch(&[]),
        })
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    context.store.put(
        serde_json::from_value(policy("a", 1)).unwrap(),
        EventSource::Watched,
    );
    tokio::spawn(bindings(Arc::clone(&context)));
    tokio::time::sleep(Duration::from_secs(15)).await;
    let of_a = || crate::controller::watch::binding_state::bindings_of(&context, &id("a"));
    assert_eq!(of_a().unwrap().len(), 0);
    // The first list of bindings has queued the policy.
    assert_eq!(queued(&context).await, ["a"]);

    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(of_a().unwrap_err(), BindingsState::NotPermitted);
    let text = context.readiness.rejection(Source::Bindings).unwrap();
    assert!(text.contains("grant `list` and `watch` on it"), "{text}");
    // The policies are queued only once for this problem.
    assert_eq!(queued(&context).await, ["a"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(queued(&context).await, Vec::<String>::new());

    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(of_a().unwrap().len(), 0);
    assert_eq!(queued(&context).await, ["a"]);
}
