//! Tests of the schema cache: each document is fetched once, fetched again when its address changes, and retried after
//! failures.

mod slow_api;

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::*;
use crate::cluster::testing::{Log, Reply, client, paths};
use crate::controller::tests::id;
use crate::schema::Gvk;
use crate::schema::resolver::{Resolution, SchemaResolver};

fn document(kinds: &[(&str, &str, &str)]) -> Value {
    let schemas: serde_json::Map<String, Value> = kinds
        .iter()
        .map(|(group, version, kind)| {
            let schema = json!({
                "type": "object",
                "properties": {"spec": {"type": "string"}},
                "x-kubernetes-group-version-kind":
                    [{"group": group, "version": version, "kind": kind}],
            });
            (format!("{group}.{version}.{kind}"), schema)
        })
        .collect();
    json!({"openapi": "3.0.0", "components": {"schemas": schemas}})
}

fn apps() -> Value {
    document(&[("apps", "v1", "Deployment"), ("autoscaling", "v1", "Scale")])
}

fn cache(answer: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> (SchemaCache, Log) {
    let (client, log) = client(move |request| answer(&request.path));
    let cache = SchemaCache::new(client, Arc::new(Metrics::new()), Arc::default());
    (cache, log)
}

/// Returns the result of `cache` for the policy `p`.
async fn get(cache: &SchemaCache, needed: &BTreeSet<GroupVersion>, index: &Index) -> Schemas {
    match cache.get(&id("p"), needed, index).await {
        SchemaRequest::Ready(schemas) => schemas,
        SchemaRequest::Pending => panic!("the documents are loading"),
    }
}

/// Returns the names of the queued policies.
async fn queued(cache: &SchemaCache) -> Vec<String> {
    let mut names = Vec::new();
    let queue = &cache.shared.queue;
    while let Ok(name) = tokio::time::timeout(Duration::ZERO, queue.next()).await {
        queue.done(&name);
        names.push(name.to_string());
    }
    names
}

fn gv(text: &str) -> GroupVersion {
    GroupVersion::parse(text).unwrap()
}

fn index(entries: &[(&str, &str)]) -> Index {
    entries
        .iter()
        .map(|(name, address)| (gv(name), (*address).to_owned()))
        .collect()
}

fn is_found(schemas: &Schemas, group: &str, version: &str, kind: &str) -> bool {
    matches!(
        schemas.resolve(&Gvk::new(group, version, kind)),
        Resolution::Found(_)
    )
}

#[tokio::test]
async fn document_is_fetched_once_for_all_callers() {
    let (cache, log) = cache(|_| Some(Reply::json(&apps())));
    let index = index(&[("apps/v1", "/a?hash=1")]);
    let needed = BTreeSet::from([gv("apps/v1"), gv("unpublished/v1")]);
    let asked = futures::future::join_all((0..100).map(|_| get(&cache, &needed, &index))).await;
    for schemas in &asked {
        assert!(is_found(schemas, "apps", "v1", "Deployment"));
        // `Scale` is in the document of its parent resource (`apps/v1`), not in the document of `autoscaling/v1`.
        assert!(is_found(schemas, "autoscaling", "v1", "Scale"));
        assert!(!is_found(schemas, "apps", "v1", "Pod"));
        assert!(schemas.waiting.is_empty());
    }
    assert_eq!(paths(&log), ["/a?hash=1"]);
}

#[tokio::test]
async fn document_with_new_url_is_fetched_again() {
    let (cache, log) = cache(|path| {
        Some(Reply::json(&match path {
            "/a?hash=1" => apps(),
            _ => document(&[("apps", "v1", "ReplicaSet")]),
        }))
    });
    let needed = BTreeSet::from([gv("apps/v1")]);
    for address in ["/a?hash=1", "/a?hash=1", "/a?hash=2"] {
        let schemas = get(&cache, &needed, &index(&[("apps/v1", address)])).await;
        let is_first = address == "/a?hash=1";
        assert_eq!(is_found(&schemas, "apps", "v1", "Deployment"), is_first);
        assert_eq!(is_found(&schemas, "apps", "v1", "ReplicaSet"), !is_first);
    }
    assert_eq!(paths(&log), ["/a?hash=1", "/a?hash=2"]);
}

/// Documents that are no longer served stay in the cache until the next cleanup.
#[tokio::test]
async fn cached_document_is_returned_only_while_served() {
    let (cache, _) = cache(|_| Some(Reply::json(&apps())));
    let needed = BTreeSet::from([gv("apps/v1")]);
    let served = index(&[("apps/v1", "/a?hash=1")]);
    get(&cache, &needed, &served).await;
    let cached = |index: &Index| {
        let schemas = cache.cached(&needed, index);
        is_found(&schemas, "apps", "v1", "Deployment")
    };
    assert!(cached(&served));
    assert!(!cached(&index(&[("apps/v1", "/a?hash=2")])));
    assert!(!cached(&Index::default()));
}

#[tokio::test(start_paused = true)]
async fn failed_request_for_document_is_retried_once_for_all_callers() {
    let failing = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let switch = Arc::clone(&failing);
    let (cache, log) = cache(move |_| {
        Some(if switch.load(std::sync::atomic::Ordering::Relaxed) {
            Reply::failure(503, "starting")
        } else {
            Reply::json(&apps())
        })
    });
    let index = index(&[("apps/v1", "/a?hash=1")]);
    let needed = BTreeSet::from([gv("apps/v1")]);
    for _ in 0..10 {
        let schemas = get(&cache, &needed, &index).await;
        let Resolution::Unavailable(reason) =
            schemas.resolve(&Gvk::new("apps", "v1", "Deployment"))
        else {
            panic!("not unavailable")
        };
        assert_eq!(reason, "the API server returned 503: starting");
        assert_eq!(schemas.waiting.len(), 1);
    }
    assert_eq!(paths(&log).len(), 1);
    let waiting = get(&cache, &needed, &index).await.waiting;
    // Retries after 1, 2, 4, … seconds, and finally every 60 s.
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(paths(&log).len(), 1 + 6 + 28);
    assert!(waiting.values().all(Missing::is_still_missing));
    assert_eq!(queued(&cache).await, Vec::<String>::new());
    failing.store(false, std::sync::atomic::Ordering::Relaxed);
    cache.flush_backoff(None);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(queued(&cache).await, ["p"]);
    assert!(!waiting.values().any(Missing::is_still_missing));
    let schemas = get(&cache, &needed, &index).await;
    assert!(is_found(&schemas, "apps", "v1", "Deployment"));
}

#[tokio::test(start_paused = true)]
async fn hanging_document_does_not_block_callers() {
    let (cache, log) = cache(|path| (path != "/b?hash=1").then(|| Reply::json(&apps())));
    let index = index(&[("apps/v1", "/a?hash=1"), ("hangs/v1", "/b?hash=1")]);
    let needed = BTreeSet::from([gv("apps/v1"), gv("hangs/v1")]);
    let start = Instant::now();
    let asked = cache.get(&id("p"), &needed, &index).await;
    assert!(matches!(asked, SchemaRequest::Pending));
    assert!(start.elapsed() <= GRACE);
    // The policy is queued twice: when the document is late, and when the request has timed out.
    tokio::time::sleep(Duration::from_millis(1900)).await;
    assert_eq!(queued(&cache).await, Vec::<String>::new());
    for (wait, expect) in [
        (1, "no response within 2 s"),
        (8, "no response within 10 s"),
    ] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        assert_eq!(queued(&cache).await, ["p"]);
        let schemas = get(&cache, &needed, &index).await;
        assert_eq!(schemas.waiting[&gv("hangs/v1")].reason, expect);
        assert!(is_found(&schemas, "apps", "v1", "Deployment"));
    }
    // The tasks of documents that no policy needs are canceled.
    cache.retain(&BTreeSet::from([gv("apps/v1")]), |_| false);
    let before = paths(&log).len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(paths(&log).len(), before);
}

#[tokio::test(start_paused = true)]
async fn policy_waits_limited_time_for_changing_documents() {
    let (cache, _) = cache(|_| None);
    let needed = BTreeSet::from([gv("apps/v1")]);
    let start = Instant::now();
    let mut n = 0;
    loop {
        n += 1;
        let address = format!("/a?hash={n}");
        let index = index(&[("apps/v1", &*address)]);
        if let SchemaRequest::Ready(schemas) = cache.get(&id("p"), &needed, &index).await {
            assert_eq!(schemas.waiting[&gv("apps/v1")].reason, "it is being read");
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(
        (5..7).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn redirected_document_is_requested_again_without_hash() {
    let (cache, log) = cache(|path| {
        Some(if path.contains("hash") {
            Reply::failure(301, "")
        } else {
            Reply::json(&apps())
        })
    });
    let index = index(&[("apps/v1", "/a?hash=1")]);
    let schemas = get(&cache, &BTreeSet::from([gv("apps/v1")]), &index).await;
    assert!(is_found(&schemas, "apps", "v1", "Deployment"));
    assert_eq!(paths(&log), ["/a?hash=1", "/a"]);
}

/// If a document changes and changes back, it gets its first URL again, so the index does not show the change.
#[tokio::test(start_paused = true)]
async fn reverted_document_is_read_again() {
    let moved_back = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (cache, log) = cache({
        let moved_back = Arc::clone(&moved_back);
        move |path| {
            Some(
                match (path.contains("hash"), moved_back.load(Ordering::Relaxed)) {
                    (true, false) => Reply::failure(301, ""),
                    (true, true) => Reply::json(&apps()),
                    (false, _) => Reply::json(&json!({})),
                },
            )
        }
    });
    let index = index(&[("apps/v1", "/a?hash=1")]);
    let needed = BTreeSet::from([gv("apps/v1")]);
    let passing = get(&cache, &needed, &index).await;
    assert!(!is_found(&passing, "apps", "v1", "Deployment"));
    let guards: Vec<_> = passing.guards().cloned().collect();
    assert!(guards.iter().all(Missing::is_still_missing));

    moved_back.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        queued(&cache).await,
        ["p"],
        "the policy must be checked again with the current document"
    );
    assert!(!guards.iter().all(Missing::is_still_missing));
    let schemas = get(&cache, &needed, &index).await;
    assert!(is_found(&schemas, "apps", "v1", "Deployment"));

    let n_requests = paths(&log).len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(
        paths(&log).len(),
        n_requests,
        "a loaded document must not be read again"
    );
    assert_eq!(queued(&cache).await, [""; 0]);
}

#[tokio::test]
async fn invalid_document_is_reported_as_missing() {
    let (cache, _) = cache(|_| {
        Some(Reply {
            status: 200,
            etag: None,
            body: "[1,".into(),
            is_open: false,
            delay: Duration::ZERO,
        })
    });
    let needed = BTreeSet::from([gv("apps/v1")]);
    let schemas = get(&cache, &needed, &index(&[("apps/v1", "/a?hash=1")])).await;
    let reason = &schemas.waiting.values().next().unwrap().reason;
    assert!(reason.starts_with("cannot read the response: "), "{reason}");
}

/// The API server returns an empty document for a CRD that was deleted after the index was read.
#[tokio::test(start_paused = true)]
async fn empty_document_counts_as_unpublished() {
    let is_published = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (cache, log) = cache({
        let is_published = Arc::clone(&is_published);
        move |_| {
            let mut reply = Reply::json(&apps());
            if !is_published.load(Ordering::Relaxed) {
                reply.body = String::new();
            }
            Some(reply)
        }
    });
    let needed = BTreeSet::from([gv("apps/v1")]);
    let index = index(&[("apps/v1", "/a?hash=1")]);
    let schemas = get(&cache, &needed, &index).await;
    let reason = &schemas.waiting[&gv("apps/v1")].reason;
    assert_eq!(
        reason,
        "the API server currently publishes no schemas for this group version"
    );
    // By now, the backoff is one minute. A notification that the document may exist resets the backoff.
    tokio::time::sleep(Duration::from_secs(600)).await;
    cache.flush_backoff(Some(&gv("apps/v1")));
    tokio::time::sleep(Duration::from_millis(10)).await;
    let n_requests = paths(&log).len();
    is_published.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(paths(&log).len(), n_requests + 1);
    let schemas = get(&cache, &needed, &index).await;
    assert!(is_found(&schemas, "apps", "v1", "Deployment"));
}

#[tokio::test]
async fn unused_documents_are_dropped() {
    let (cache, log) = cache(|_| Some(Reply::json(&apps())));
    let index = index(&[("apps/v1", "/a?hash=1"), ("v1", "/b?hash=1")]);
    let needed = BTreeSet::from([gv("apps/v1"), gv("v1")]);
    drop(get(&cache, &needed, &index).await);
    cache.retain(&BTreeSet::from([gv("v1")]), |_| true);
    drop(get(&cache, &needed, &index).await);
    let mut asked = paths(&log);
    asked.sort();
    assert_eq!(asked, ["/a?hash=1", "/a?hash=1", "/b?hash=1"]);
    assert!(cache.retain(&BTreeSet::new(), |_| true));
    assert!(!cache.retain(&BTreeSet::new(), |_| true));
    cache.purge().await;
    assert!(cache.loader.is_empty());
}

#[tokio::test(start_paused = true)]
async fn panic_of_document_task_is_reported_and_task_is_retried() {
    let (cache, _) = cache(|_| Some(Reply::json(&apps())));
    cache.loader.panics.store(1, Ordering::Relaxed);
    let needed = BTreeSet::from([gv("apps/v1")]);
    let index = index(&[("apps/v1", "/openapi/v3/apis/apps/v1?hash=1")]);
    let schemas = loop {
        match cache.get(&id("p"), &needed, &index).await {
            SchemaRequest::Ready(schemas) => break schemas,
            SchemaRequest::Pending => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let [(_, missing)] = schemas.waiting.iter().collect::<Vec<_>>()[..] else {
        panic!("{schemas:?}")
    };
    assert!(missing.reason.contains("internal error"), "{missing:?}");
    let text = cache.shared.metrics.encode().unwrap();
    assert!(text.contains("panics_total 1"), "{text}");
    tokio::time::sleep(Duration::from_secs(61)).await;
    let schemas = get(&cache, &needed, &index).await;
    assert!(schemas.waiting.is_empty(), "{schemas:?}");
    assert!(!missing.is_still_missing());
}
