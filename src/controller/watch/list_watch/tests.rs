//! Tests of lists and watches with regular and faulty responses of an API server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use tokio::time::Instant;

use super::*;
use crate::cluster::testing::{Log, Reply, client, paths};
use crate::controller::process::memory::MAX_WIRE_OBJECT;

const LIFE: Duration = Duration::from_secs(60);

fn map(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version}})
}

fn event(type_: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": type_, "object": object}))
}

fn bookmark(version: &str, ends_list: bool) -> String {
    let annotations = if ends_list {
        json!({transport::INITIAL_EVENTS_END: "true"})
    } else {
        Value::Null
    };
    let metadata = json!({"resourceVersion": version, "annotations": annotations});
    event("BOOKMARK", &json!({"metadata": metadata}))
}

fn error(code: u16) -> String {
    event(
        "ERROR",
        &json!({"kind": "Status", "code": code, "message": "no"}),
    )
}

fn listing(
    listing: Listing,
    answer: impl Fn(usize, &str) -> Option<Reply> + Send + Sync + 'static,
) -> (ListWatch<ConfigMap>, Log) {
    let n = AtomicUsize::new(0);
    let (client, log) =
        client(move |request| answer(n.fetch_add(1, Ordering::Relaxed), &request.path));
    let config = ListWatchConfig {
        path: "/api/v1/configmaps".to_owned(),
        representation: Representation::Whole,
        listing,
        life: LIFE,
        max_unpacked: usize::MAX,
    };
    (ListWatch::new(client, config), log)
}

fn streamed(
    answer: impl Fn(usize, &str) -> Option<Reply> + Send + Sync + 'static,
) -> (ListWatch<ConfigMap>, Log) {
    listing(Listing::Streamed(2), answer)
}

fn summary(sign: ListWatchEvent<ConfigMap>) -> String {
    let name = |map: ConfigMap| map.metadata.name.unwrap_or_default();
    match sign {
        ListWatchEvent::Init => "init".to_owned(),
        ListWatchEvent::InitApply(map) => format!("listed {}", name(map)),
        ListWatchEvent::InitDone => "done".to_owned(),
        ListWatchEvent::Apply(map) => format!("applied {}", name(map)),
        ListWatchEvent::Delete(map) => format!("deleted {}", name(map)),
        ListWatchEvent::Alive => "alive".to_owned(),
        ListWatchEvent::Unreadable(object) => format!("unreadable {}", object.name),
        ListWatchEvent::Expired => "expired".to_owned(),
        ListWatchEvent::Failed(error) => format!("failed {}", error.reason().as_str()),
    }
}

async fn signs(watch: &mut ListWatch<ConfigMap>, n: usize) -> Vec<String> {
    let mut signs = Vec::new();
    for _ in 0..n {
        signs.push(summary(watch.next().await));
    }
    signs
}

#[tokio::test(start_paused = true)]
async fn streamed_list_is_followed_by_watch_events() {
    let (mut watch, log) = streamed(|n, _| {
        Some(match n {
            0 => Reply::ended_watch(&[
                event("ADDED", &map("a", "1")),
                event("ADDED", &map("b", "2")),
                bookmark("3", true),
                event("MODIFIED", &map("a", "4")),
                bookmark("5", false),
                event("DELETED", &map("b", "6")),
            ]),
            _ => Reply::watch(&[]),
        })
    });
    let expect = [
        "init",
        "listed a",
        "listed b",
        "done",
        "alive",
        "applied a",
        "alive",
        "deleted b",
        "alive",
    ];
    assert_eq!(signs(&mut watch, 9).await, expect);
    let paths = paths(&log);
    let list = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert!(paths[0].ends_with(list), "{paths:?}");
    assert!(paths[1].ends_with("&resourceVersion=6"), "{paths:?}");
}

#[tokio::test(start_paused = true)]
async fn list_is_paged_if_streaming_is_rejected() {
    let (mut watch, log) = streamed(|n, path| {
        Some(match n {
            0 => Reply::failure(422, "sendInitialEvents is forbidden"),
            1 => Reply::json(
                &json!({"metadata": {"continue": "a/b=", "resourceVersion": "7"},
                                     "items": [map("a", "1"), map("b", "2")]}),
            ),
            2 => {
                assert!(path.ends_with("?limit=2&continue=a%2Fb%3D"), "{path}");
                Reply::json(
                    &json!({"metadata": {"resourceVersion": "7"}, "items": [map("c", "3")]}),
                )
            }
            _ => Reply::watch(&[]),
        })
    });
    let expect = ["init", "listed a", "listed b", "listed c", "done", "alive"];
    assert_eq!(signs(&mut watch, 6).await, expect);
    assert!(paths(&log)[3].ends_with("&resourceVersion=7"));
}

#[tokio::test(start_paused = true)]
async fn deletion_during_list_is_reported() {
    let (mut watch, _) = streamed(|n, _| {
        Some(match n {
            0 => Reply::watch(&[
                event("ADDED", &map("a", "1")),
                event("DELETED", &map("a", "2")),
                bookmark("3", true),
            ]),
            _ => Reply::watch(&[]),
        })
    });
    let expect = ["init", "listed a", "deleted a", "done", "alive"];
    assert_eq!(signs(&mut watch, 5).await, expect);
}

#[tokio::test(start_paused = true)]
async fn list_page_that_is_too_long_is_halved() {
    let long = || "x".repeat(MAX_WIRE_OBJECT);
    let (mut watch, log) = listing(Listing::Paged(2), move |n, _| {
        let mut object = map("a", "1");
        if n == 0 {
            object["data"] = json!({"key": long()});
        }
        Some(match n {
            0 | 1 => Reply::json(&json!({"metadata": {"resourceVersion": "7"}, "items": [object]})),
            _ => Reply::watch(&[]),
        })
    });
    let expect = ["init", "init", "listed a", "done", "alive"];
    assert_eq!(signs(&mut watch, 5).await, expect);
    let paths = paths(&log);
    assert!(
        paths[0].contains("limit=2") && paths[1].contains("limit=1"),
        "{paths:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn list_with_an_object_that_is_too_long_fails() {
    let (mut watch, _) = listing(Listing::Paged(1), |_, _| {
        let mut object = map("a", "1");
        object["data"] = json!({"key": "x".repeat(MAX_WIRE_OBJECT)});
        Some(Reply::json(
            &json!({"metadata": {"resourceVersion": "7"}, "items": [object]}),
        ))
    });
    assert_eq!(
        signs(&mut watch, 3).await,
        ["init", "failed decode", "init"]
    );
}

#[tokio::test(start_paused = true)]
async fn list_with_null_items_is_empty() {
    let (mut watch, _) = listing(Listing::Paged(5), |n, _| {
        Some(match n {
            0 => Reply::json(&json!({"metadata": {"resourceVersion": "7"}, "items": null})),
            _ => Reply::watch(&[]),
        })
    });
    assert_eq!(signs(&mut watch, 3).await, ["init", "done", "alive"]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_object_in_list_affects_only_itself() {
    let odd = |version: &str| {
        json!({"metadata": {"name": "odd", "namespace": "x",
                                                  "resourceVersion": version}, "data": 7})
    };
    let (mut watch, log) = streamed(move |n, _| {
        Some(match n {
            0 => Reply::ended_watch(&[
                event("ADDED", &odd("1")),
                event("ADDED", &map("a", "2")),
                bookmark("3", true),
                event("MODIFIED", &odd("4")),
                event("ADDED", &json!({"metadata": 7})),
                event("MODIFIED", &map("a", "5")),
                event("MODIFIED", &odd("6")),
            ]),
            _ => Reply::watch(&[]),
        })
    });
    let expect = [
        "init",
        "unreadable x/odd",
        "listed a",
        "done",
        "alive",
        "unreadable x/odd",
        "unreadable ",
        "applied a",
        "unreadable x/odd",
        "alive",
    ];
    assert_eq!(signs(&mut watch, 10).await, expect);
    // The watch resumes after the unreadable object, so the object is not received again.
    assert!(paths(&log)[1].ends_with("&resourceVersion=6"));
}

#[tokio::test(start_paused = true)]
async fn watch_relists_after_expired_version() {
    let (mut watch, _) = streamed(|n, _| {
        Some(match n {
            0 => Reply::watch(&[bookmark("3", true), error(410)]),
            1 => Reply::ended_watch(&[bookmark("5", true), bookmark("6", false)]),
            2 => Reply::failure(410, "too old"),
            // The lower resource version shows that the cluster was restored from a backup.
            3 => Reply::watch(&[bookmark("5", true), bookmark("2", false)]),
            _ => Reply::watch(&[bookmark("2", true)]),
        })
    });
    let expect = [
        "init", "done", "alive", "expired", "init", "done", "alive", "alive", "expired", "init",
        "done", "alive", "expired", "init", "done",
    ];
    assert_eq!(signs(&mut watch, 15).await, expect);
}

#[tokio::test(start_paused = true)]
async fn failure_is_reported_and_watch_resumes() {
    let (mut watch, log) = streamed(|n, _| {
        Some(match n {
            0 => Reply::failure(403, "no"),
            1 => Reply::watch(&[bookmark("3", true), error(500)]),
            2 => Reply::failure(503, "later"),
            3 => Reply::failure(429, "later"),
            4 => Reply::ended_watch(&[
                event("ADDED", &map("a", "4")),
                "{\"type\": \"ADD".to_owned(),
            ]),
            _ => Reply::watch(&[]),
        })
    });
    let expect = [
        "failed forbidden",
        "init",
        "done",
        "alive",
        "failed server",
        "failed server",
        "failed throttled",
        "alive",
        "applied a",
        "failed connection",
        "alive",
    ];
    assert_eq!(signs(&mut watch, 11).await, expect);
    let paths = paths(&log);
    for (n, version) in [(2, 3), (3, 3), (4, 3), (5, 4)] {
        let version = format!("&resourceVersion={version}");
        assert!(paths[n].ends_with(&version), "{n} {paths:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_relists_after_invalid_line() {
    for line in ["nonsense\n".to_owned(), event("RENAMED", &map("a", "9"))] {
        let (mut watch, log) = streamed(move |n, _| {
            Some(match n {
                0 => Reply::watch(&[bookmark("3", true), line.clone()]),
                _ => Reply::watch(&[bookmark("4", true)]),
            })
        });
        let expect = ["init", "done", "alive", "failed decode", "init", "done"];
        assert_eq!(signs(&mut watch, 6).await, expect);
        assert!(paths(&log)[1].contains("sendInitialEvents"));
    }
}

#[tokio::test(start_paused = true)]
async fn list_and_watch_requests_time_out_without_response() {
    let start = Instant::now();
    let (mut watch, _) = streamed(|n, _| match n {
        // First there is no response, then a list that stops, then a watch that stops.
        0 => None,
        1 => Some(Reply::watch(&[event("ADDED", &map("a", "1"))])),
        2 => Some(Reply::watch(&[bookmark("3", true)])),
        _ => Some(Reply::watch(&[])),
    });
    assert_eq!(signs(&mut watch, 1).await, ["failed timeout"]);
    assert_eq!(start.elapsed(), transport::START_TIMEOUT);
    assert_eq!(
        signs(&mut watch, 3).await,
        ["init", "listed a", "failed timeout"]
    );
    let listed = Instant::now();
    assert_eq!(
        signs(&mut watch, 5).await,
        ["init", "done", "alive", "failed timeout", "alive"]
    );
    assert_eq!(listed.elapsed(), LIFE + transport::GRACE);
}

#[tokio::test(start_paused = true)]
async fn watch_ending_immediately_is_a_failure() {
    let (mut watch, _) = streamed(|n, _| {
        Some(match n {
            0 => Reply::ended_watch(&[bookmark("3", true)]),
            _ => Reply::ended_watch(&[]),
        })
    });
    let expect = ["init", "done", "alive", "alive", "failed connection"];
    assert_eq!(signs(&mut watch, 5).await, expect);
}

#[test]
fn metadata_representation_requests_partial_objects() {
    let list = Representation::Metadata.media_type(false);
    assert!(list.contains("PartialObjectMetadataList;"));
    let event = Representation::Metadata.media_type(true);
    assert!(event.contains("PartialObjectMetadata;"));
}
