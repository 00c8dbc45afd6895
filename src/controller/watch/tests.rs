//! What the watches do with an API server that refuses, stops or does not know streamed lists.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::controller::testing::{Log, Reply, client};
use crate::controller::tests::settings;
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
    Reply {
        status: 200,
        etag: None,
        body: events.concat(),
    }
}

/// A context and the log of what its watch of policies asks.
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
    let mut names = context.store.names();
    names.sort();
    names
}

async fn queued(context: &Context) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(name) = tokio::time::timeout(Duration::from_secs(1), context.queue.next()).await {
        context.queue.done(&name);
        names.push(name);
    }
    names
}

#[tokio::test(start_paused = true)]
async fn follows_a_streamed_list_and_what_comes_after() {
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
    let paths = crate::controller::testing::paths(&log);
    assert!(paths[0].contains("sendInitialEvents=true"), "{paths:?}");
    // The stream ended; it goes on where it was.
    assert!(
        paths[1].contains("watch=true") && paths[1].contains("resourceVersion=5"),
        "{paths:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn lists_by_page_where_lists_are_not_streamed() {
    let (context, _) = watching(|path, _| {
        Some(if path.contains("sendInitialEvents") {
            Reply::failure(
                422,
                "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
            )
        } else if path.contains("watch=true") {
            return None;
        } else {
            assert!(path.contains("limit=50"), "{path}");
            Reply::json(&json!({"metadata": {"resourceVersion": "3"}, "items": [policy("a", 1)]}))
        })
    });
    assert_eq!(queued(&context).await, ["a"]);
    assert!(context.readiness.checks().contains(&("policies", None)));
}

#[tokio::test(start_paused = true)]
async fn a_new_list_takes_out_what_is_gone() {
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
    // The policy that is gone is looked at once more, to forget it.
    assert_eq!(queued(&context).await, ["a", "b", "a"]);
    assert_eq!(names(&context), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_says_what_to_grant_and_is_tried_again() {
    let (context, log) = watching(|_, n| {
        Some(match n {
            0..5 => Reply::failure(
                403,
                "validatingadmissionpolicies is forbidden: User \"x\" cannot list",
            ),
            5 => stream(&[bookmark("1")]),
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
                 server answered 403: validatingadmissionpolicies is forbidden: User \"x\" cannot \
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
async fn an_object_that_cannot_be_read_does_not_end_the_watch() {
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
async fn a_watch_that_works_again_is_in_step_although_nothing_happens() {
    let (context, _) = watching(|path, n| match n {
        0 => Some(stream(&[bookmark("1")])),
        1 => Some(Reply::failure(503, "down")),
        _ if path.contains("watch=true") => None,
        _ => {
            assert!(path.contains("limit=1"), "{path}");
            Some(Reply::json(&json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                "metadata": {"resourceVersion": "1"}, "items": [],
            })))
        }
    });
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert!(!context.readiness.is_in_step(Source::Policies));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(context.readiness.is_in_step(Source::Policies));
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_taken_away_is_seen_and_so_is_that_it_is_back() {
    let start = tokio::time::Instant::now();
    let is_listed = std::sync::atomic::AtomicBool::new(false);
    let (client, _) = client(move |request| {
        let is_first = !is_listed.swap(true, std::sync::atomic::Ordering::Relaxed);
        let seconds = start.elapsed().as_secs();
        match (seconds, request.path.contains("watch=true")) {
            // The watch ends when its time is over.
            _ if is_first => Some(stream(&[bookmark("1")])),
            (0..120, _) => Some(Reply::failure(403, "cannot list resource")),
            (_, true) => None,
            (_, false) => Some(Reply::json(&json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                "metadata": {"resourceVersion": "1"}, "items": [],
            }))),
        }
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    context.store.put(
        serde_json::from_value(policy("a", 1)).unwrap(),
        Origin::Update,
    );
    tokio::spawn(bindings(Arc::clone(&context)));
    tokio::time::sleep(Duration::from_secs(15)).await;
    let of_a =
        || super::super::bound::bindings_of(&context, &context.store.get("a").unwrap().policy);
    assert_eq!(of_a().unwrap().len(), 0);
    assert_eq!(queued(&context).await, Vec::<String>::new());

    tokio::time::sleep(Duration::from_secs(30)).await;
    let BindingsState::NotPermitted(text) = of_a().unwrap_err() else {
        panic!("{:?}", of_a());
    };
    assert!(text.contains("grant `list` and `watch` on it"), "{text}");
    // It is told once, however often it is found again.
    assert_eq!(queued(&context).await, ["a"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(queued(&context).await, Vec::<String>::new());

    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(of_a().unwrap().len(), 0);
    assert_eq!(queued(&context).await, ["a"]);
}
