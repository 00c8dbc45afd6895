use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::cluster::testing::{Reply, client, paths};

fn core() -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [
        {"metadata": {"name": null}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
            {"resource": "pods", "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
             "scope": "Namespaced", "singularResource": "pod", "verbs": ["get"],
             "subresources": [
                {"subresource": "eviction",
                 "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"}},
                {"subresource": "status", "responseKind": {"kind": "Pod"}},
                {"subresource": "proxy"},
            ]},
            {"resource": "odd", "responseKind": {"group": "", "version": "", "kind": ""},
             "scope": "Cluster", "subresources": [
                {"subresource": "only", "responseKind": {"version": "v1", "kind": "Only"}},
            ]},
        ]}]},
    ]})
}

/// Returns the discovery entry of an aggregated API. An unavailable (stale) API has no resources.
fn metrics(is_stale: bool) -> Value {
    let resources = if is_stale {
        json!([])
    } else {
        json!([{"resource": "nodes", "scope": "Cluster", "singularResource": "",
                "responseKind": {"group": "metrics.k8s.io", "version": "v1", "kind": "NodeMetrics"}}])
    };
    let freshness = if is_stale { "Stale" } else { "Current" };
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "metrics.k8s.io"},
        "versions": [{"version": "v1", "freshness": freshness, "resources": resources}]}]})
}

fn names(mapper: &RestMapper) -> Vec<String> {
    let name = |r: &ApiResource| format!("{} {} {}", r.gvr, r.gvk.kind, r.namespaced);
    mapper.resources.iter().map(name).collect()
}

#[tokio::test]
async fn refresh_returns_none_for_unchanged_aggregated_discovery() {
    let (client, log) = client(|request| {
        Some(match request.path.as_str() {
            "/api" => Reply::json(&core()).etag("\"core\""),
            _ => Reply::json(&metrics(false)).etag("\"apis\""),
        })
    });
    let mut discovery = Discovery::default();
    let mapper = discovery.refresh(&client).await.unwrap().unwrap();
    assert_eq!(
        names(&mapper),
        [
            "/v1, Resource=odd/only Only false",
            "/v1, Resource=pods Pod true",
            "/v1, Resource=pods/eviction Eviction true",
            "/v1, Resource=pods/status Pod true",
            "metrics.k8s.io/v1, Resource=nodes NodeMetrics false",
        ]
    );
    let eviction = &mapper.resources[2];
    assert_eq!(eviction.gvk, Gvk::new("policy", "v1", "Eviction"));
    assert_eq!(mapper.resources[1].singular, "pod");
    assert_eq!(mapper.incomplete, []);
    // The entity tags still match.
    assert_eq!(discovery.refresh(&client).await.unwrap(), None);
    assert_eq!(paths(&log), ["/api", "/apis", "/api", "/apis"]);
    let tags: Vec<_> = log
        .lock()
        .unwrap()
        .iter()
        .map(|seen| seen.if_none_match.clone())
        .collect();
    assert_eq!(
        tags,
        [None, None, Some("\"core\"".into()), Some("\"apis\"".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn stale_group_is_incomplete_until_it_is_first_discovered() {
    let round = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&round);
    let (client, _) = client(move |request| {
        Some(
            match (request.path.as_str(), counter.load(Ordering::Relaxed)) {
                ("/api", _) => Reply::json(&core()),
                (_, 1) => Reply::json(&metrics(false)),
                (_, 3) => Reply::json(&json!({"kind": "APIGroupDiscoveryList", "items": []})),
                _ => Reply::json(&metrics(true)),
            },
        )
    });
    let mut discovery = Discovery::default();
    let mapper = discovery.refresh(&client).await.unwrap().unwrap();
    let reason = "its API server does not respond".to_owned();
    assert_eq!(
        mapper.incomplete,
        [("metrics.k8s.io/v1".to_owned(), reason)]
    );
    // The API has never been available, so it counts as undiscovered immediately.
    assert_eq!(mapper.undiscovered, ["metrics.k8s.io/v1"]);
    assert!(!names(&mapper).iter().any(|name| name.contains("metrics")));
    round.store(1, Ordering::Relaxed);
    let mapper = discovery.refresh(&client).await.unwrap().unwrap();
    assert_eq!(mapper.incomplete, []);
    assert_eq!(mapper.undiscovered, Vec::<String>::new());
    assert!(names(&mapper).iter().any(|name| name.contains("metrics")));
    // The API becomes stale. Its resources are still known, so `refresh` reports no change.
    round.store(2, Ordering::Relaxed);
    assert_eq!(discovery.refresh(&client).await.unwrap(), None);
    assert_eq!(discovery.n_stale(), 1);
    assert!(!discovery.is_due(Instant::now()));
    tokio::time::advance(MAX_PAUSE).await;
    assert!(discovery.is_due(Instant::now()));
    let mapper = discovery.refresh(&client).await.unwrap().unwrap();
    assert_eq!(mapper.undiscovered, ["metrics.k8s.io/v1"]);
    assert!(!discovery.is_due(Instant::now()));
    assert!(names(&mapper).iter().any(|name| name.contains("metrics")));
    assert_eq!(discovery.refresh(&client).await.unwrap(), None);
    round.store(3, Ordering::Relaxed);
    let mapper = discovery.refresh(&client).await.unwrap().unwrap();
    assert_eq!(mapper.undiscovered, Vec::<String>::new());
    assert!(!names(&mapper).iter().any(|name| name.contains("metrics")));
}

#[tokio::test]
async fn refresh_reports_change_of_one_root_if_other_fails() {
    let round = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&round);
    let (client, _) = client(move |request| {
        Some(
            match (request.path.as_str(), counter.load(Ordering::Relaxed)) {
                ("/api", _) => Reply::json(&core()).etag("\"core\""),
                (_, 0) => Reply::failure(503, "starting"),
                _ => Reply::json(&json!({"kind": "APIGroupDiscoveryList", "items": []})),
            },
        )
    });
    let mut discovery = Discovery::default();
    let error = discovery.refresh(&client).await.unwrap_err();
    assert_eq!(error.to_string(), "the API server returned 503: starting");
    round.store(1, Ordering::Relaxed);
    let mapper = discovery.refresh(&client).await.unwrap().unwrap();
    assert_eq!(names(&mapper).len(), 4);
}

#[tokio::test]
async fn refresh_without_aggregation_requests_each_group_version() {
    let (client, _) = client(|request| {
        Some(match request.path.as_str() {
            "/api" => Reply::json(&json!({
                "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
            "/apis" => Reply::json(
                &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]},
                {"name": "down", "versions": [{"groupVersion": "down/v1", "version": "v1"}]}]}),
            ),
            "/api/v1" => Reply::json(&json!({
                "kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": []},
                {"name": "pods/eviction", "singularName": "", "namespaced": true,
                 "group": "policy", "version": "v1", "kind": "Eviction", "verbs": []}]})),
            "/apis/apps/v1" => Reply::json(&json!({
                "kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
                {"name": "deployments", "singularName": "deployment", "namespaced": true,
                 "kind": "Deployment", "verbs": []}]})),
            _ => Reply::failure(503, "down"),
        })
    });
    let mapper = Discovery::default()
        .refresh(&client)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        names(&mapper),
        [
            "/v1, Resource=pods Pod true",
            "/v1, Resource=pods/eviction Eviction true",
            "apps/v1, Resource=deployments Deployment true",
        ]
    );
    assert_eq!(
        mapper.resources[1].gvk,
        Gvk::new("policy", "v1", "Eviction")
    );
    assert_eq!(
        mapper.incomplete,
        [(
            "down/v1".to_owned(),
            "the API server returned 503: down".to_owned()
        )]
    );
}

#[tokio::test]
async fn refresh_with_unexpected_response_kind_fails() {
    let (client, _) = client(|_| Some(Reply::json(&json!({"kind": "Table"}))));
    let error = Discovery::default().refresh(&client).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the response: discovery returned a `Table`"
    );
}

#[tokio::test(start_paused = true)]
async fn refresh_times_out_without_response() {
    let (client, _) = client(|_| None);
    let error = Discovery::default().refresh(&client).await.unwrap_err();
    assert_eq!(error.to_string(), "no response within 10 s");
}
