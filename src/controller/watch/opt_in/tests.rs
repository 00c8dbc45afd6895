//! Tests of the watches of opt-in kinds.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::cluster::testing::{Reply, client};
use crate::controller::cluster::snapshot::tests::snapshot;
use crate::controller::tests::settings;
use crate::controller::watch::binding_state::bindings_of;
use crate::status::bindings::BindingsState;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::Source;

fn event(type_: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": type_, "object": object}))
}

fn policy(name: &str, version: u32, mutations: &Value) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
           "spec": {"mutations": mutations}})
}

async fn queued(context: &Context) -> Vec<SubjectId> {
    let mut keys = Vec::new();
    let second = Duration::from_secs(1);
    while let Ok(key) = tokio::time::timeout(second, context.queue.next()).await {
        context.queue.done(&key);
        keys.push(key);
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn revoked_permission_for_bindings_is_noticed_until_granted() {
    let start = tokio::time::Instant::now();
    let end = json!({"kind": "MutatingAdmissionPolicyBinding", "apiVersion": "v1", "metadata": {
        "resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}}});
    let (client, _) = client(move |request| {
        Some(match start.elapsed().as_secs() {
            // The first watch ends at its timeout.
            _ if request.path.contains("sendInitialEvents") => {
                Reply::ended_watch(&[event("BOOKMARK", &end)])
            }
            0..120 => Reply::failure(403, "cannot list resource"),
            _ => Reply::watch(&[]),
        })
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let kind = SubjectKind::MutatingAdmissionPolicy;
    let key = SubjectId::new(kind, "a");
    let object = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
    let object = serde_json::from_value(object).unwrap();
    context
        .opt_in
        .state(kind)
        .unwrap()
        .put(object, EventSource::Listed);
    let at_work = Arc::clone(&context);
    tokio::spawn(
        async move { bindings(&at_work, at_work.opt_in.state(kind).unwrap(), "v1").await },
    );
    let of_a = || bindings_of(&context, &key);
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(of_a().unwrap().len(), 0);
    assert_eq!(queued(&context).await, std::slice::from_ref(&key));
    assert!(!context.readiness.is_in_sync(Source::MutatingBindings));

    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(of_a().unwrap_err(), BindingsState::NotPermitted);
    assert_eq!(queued(&context).await, std::slice::from_ref(&key));
    let mut checks = context.readiness.checks().into_iter();
    let check = checks.find(|(name, _)| *name == "mutatingbindings");
    let problem = check.unwrap().1.unwrap();
    let grant = "grant `list` and `watch` on it in the ClusterRole \
                 vap-status-controller-mutatingadmissionpolicies";
    assert!(problem.contains(grant), "{problem}");
    // The policies are queued only once for this problem.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(queued(&context).await, []);

    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(of_a().unwrap().len(), 0);
    assert_eq!(queued(&context).await, std::slice::from_ref(&key));
    assert!(context.readiness.is_in_sync(Source::MutatingBindings));
}

/// Bindings that cannot be listed must not block policies forever. Either the permission is missing, or requests fail.
#[tokio::test(start_paused = true)]
async fn bindings_that_cannot_be_listed_do_not_block_policies() {
    for code in [403, 500] {
        let (client, _) = client(move |_| Some(Reply::failure(code, "broken")));
        let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
        let kind = SubjectKind::MutatingAdmissionPolicy;
        let state = context.opt_in.state(kind).unwrap();
        let object = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
        let object = serde_json::from_value(object).unwrap();
        state.put(object, EventSource::Listed);
        state.set_objects_listed();
        state.set_policies_listed(BTreeSet::new());
        let following = bindings(&context, state, "v1");
        drop(tokio::time::timeout(Duration::from_secs(30), following).await);
        assert!(state.is_known(), "{code}");
        assert_eq!(
            queued(&context).await,
            [SubjectId::new(kind, "a")],
            "{code}"
        );
    }
}

/// After an unreadable policy, the watch continues. The status object of this policy is not deleted.
#[tokio::test(start_paused = true)]
async fn unreadable_policy_affects_only_itself() {
    let n = std::sync::atomic::AtomicUsize::new(0);
    let (client, _) = client(move |_| {
        let is_first = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        let end = json!({"kind": "MutatingAdmissionPolicy", "apiVersion": "v1", "metadata": {
            "resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}}});
        is_first.then(|| {
            Reply::ended_watch(&[
                event("ADDED", &policy("odd", 1, &json!("none"))),
                event("ADDED", &policy("null", 2, &Value::Null)),
                event(
                    "ADDED",
                    &json!({"surprise": {"of": ["an", "unknown", "shape"]}}),
                ),
                event("BOOKMARK", &end),
                event("ADDED", &policy("later", 4, &json!([]))),
            ])
        })
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let kind = SubjectKind::MutatingAdmissionPolicy;
    let key = |name: &str| SubjectId::new(kind, name);
    let state = context.opt_in.state(kind).unwrap();
    for name in ["odd", "gone"] {
        let metadata = json!({"name": name, "resourceVersion": "1"});
        let object = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        state.put(object, EventSource::Listed);
    }
    state.set_objects_listed();
    state.set_bindings_listed();
    let following = subjects(&context, state, "v1");
    drop(tokio::time::timeout(Duration::from_secs(1), following).await);
    let mut names = context.store.ids();
    names.sort();
    assert_eq!(names, [key("later"), key("null")]);
    assert!(state.orphan("odd").is_none());
    assert!(state.orphan("gone").is_some());
    let text = context.metrics.encode().unwrap();
    assert!(
        text.contains("vap_unreadable_objects{source=\"mutatingpolicies\"} 1\n"),
        "{text}"
    );
}

/// Returns the bookmark that ends a streamed list.
fn end_of_list() -> String {
    let end = json!({"kind": "List", "apiVersion": "v1", "metadata": {
        "resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}});
    event("BOOKMARK", &end)
}

fn named(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": version}})
}

/// Returns the paths of the requests without their parameters.
fn requested(log: &crate::cluster::testing::Log) -> BTreeSet<String> {
    let paths = crate::cluster::testing::paths(log).into_iter();
    paths
        .map(|path| path.split('?').next().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "one sequence of states")]
async fn opt_in_kind_is_watched_while_it_is_served() {
    let (client, log) = client(|request| {
        if !request.path.contains("sendInitialEvents") {
            return Some(Reply::watch(&[]));
        }
        let mut events = if request.path.contains("/mutatingadmissionpolicies?") {
            vec![
                event("ADDED", &policy("a", 1, &json!([]))),
                event("ADDED", &policy("b", 2, &json!([]))),
            ]
        } else if request.path.contains("/mutatingadmissionpolicybindings?") {
            let mut binding = named("binding", "1");
            binding["spec"] = json!({"policyName": "a"});
            vec![event("ADDED", &binding)]
        } else {
            vec![
                event("ADDED", &named("kept", "1")),
                event("ADDED", &named("removed", "2")),
            ]
        };
        events.push(end_of_list());
        if request.path.contains("/mutatingadmissionpolicies?") {
            events.push(event("DELETED", &policy("b", 10, &json!([]))));
            events.push(event("ADDED", &policy("c", 11, &json!([]))));
        } else if request.path.contains("statuses?") {
            events.push(event("DELETED", &named("removed", "10")));
            events.push(event("ADDED", &named("added", "11")));
        }
        Some(Reply::watch(&events))
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let kind = SubjectKind::MutatingAdmissionPolicy;
    let ids = |names: &[&str]| -> BTreeSet<SubjectId> {
        names
            .iter()
            .map(|name| SubjectId::new(kind, *name))
            .collect()
    };
    let state = context.opt_in.state(kind).unwrap();
    let stale = serde_json::from_value(named("stale", "1")).unwrap();
    state.put(stale, EventSource::Listed);
    tokio::spawn(run(Arc::clone(&context), kind));
    let pause = || tokio::time::sleep(Duration::from_secs(1));
    let watched = |value: u8| {
        let text = context.metrics.encode().unwrap();
        let line = format!("vap_kind_watched{{kind=\"MutatingAdmissionPolicy\"}} {value}\n");
        assert!(text.contains(&line), "{text}");
    };

    // Before the first discovery, no obstacle is known, and there is no metric.
    pause().await;
    assert_eq!(state.obstacle(), None);
    assert!(
        !context
            .metrics
            .encode()
            .unwrap()
            .contains("vap_kind_watched{")
    );

    let beta = "admissionregistration.k8s.io/v1beta1".to_owned();
    let v1 = "admissionregistration.k8s.io/v1".to_owned();
    let policies = ("mutatingadmissionpolicies", "MutatingAdmissionPolicy");
    let its_bindings = (
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
    );
    let objects = (
        "vap-status.dev/v1alpha1",
        "mutatingadmissionpolicystatuses",
        "MutatingAdmissionPolicyStatus",
    );
    // A policy and its bindings must be served in the same version.
    context.set_snapshot(snapshot(
        &[
            (&beta, policies.0, policies.1),
            (&v1, its_bindings.0, its_bindings.1),
            objects,
        ],
        &[],
    ));
    pause().await;
    assert_eq!(
        state.obstacle().as_deref(),
        Some("the cluster does not serve this kind")
    );
    watched(0);
    let touched: BTreeSet<_> = queued(&context).await.into_iter().collect();
    assert_eq!(touched, ids(&["stale"]));

    let served = [
        (&*beta, policies.0, policies.1),
        (&*beta, its_bindings.0, its_bindings.1),
    ];
    context.set_snapshot(snapshot(&served, &[]));
    pause().await;
    assert_eq!(
        state.obstacle().as_deref(),
        Some("the CRD mutatingadmissionpolicystatuses.vap-status.dev is not installed")
    );
    watched(0);
    assert_eq!(requested(&log), BTreeSet::new());
    queued(&context).await;

    let all = [served[0], served[1], objects];
    context.set_snapshot(snapshot(&all, &[]));
    pause().await;
    let base = format!("/apis/{beta}");
    let expected = [
        format!("{base}/mutatingadmissionpolicies"),
        format!("{base}/mutatingadmissionpolicybindings"),
        "/apis/vap-status.dev/v1alpha1/mutatingadmissionpolicystatuses".to_owned(),
    ];
    assert_eq!(requested(&log), expected.into());
    assert_eq!(
        (state.obstacle(), state.api_version()),
        (None, beta.clone())
    );
    watched(1);
    assert!(state.is_known());
    let stored: BTreeSet<_> = context.store.ids().into_iter().collect();
    assert_eq!(stored, ids(&["a", "c"]));
    assert_eq!(BTreeSet::from_iter(state.ids()), ids(&["kept", "added"]));
    let of_a = bindings_of(&context, &SubjectId::new(kind, "a")).unwrap();
    assert_eq!(of_a.len(), 1);
    let touched: BTreeSet<_> = queued(&context).await.into_iter().collect();
    let expected = ["a", "b", "c", "kept", "removed", "added", "stale"];
    assert_eq!(touched, ids(&expected));
    let sources = [
        Source::MutatingPolicies,
        Source::MutatingBindings,
        Source::PolicyStatuses,
    ];
    for source in sources {
        assert!(context.readiness.is_in_sync(source), "{source:?}");
    }

    context.set_snapshot(snapshot(&[], &[]));
    pause().await;
    assert_eq!(
        state.obstacle().as_deref(),
        Some("the cluster does not serve this kind")
    );
    watched(0);
    assert!(!state.is_known());
    assert_eq!((context.store.ids(), state.ids()), (Vec::new(), Vec::new()));
    let touched: BTreeSet<_> = queued(&context).await.into_iter().collect();
    assert_eq!(touched, ids(&["a", "c", "kept", "added"]));
    for source in sources {
        assert!(!context.readiness.is_in_sync(source), "{source:?}");
    }
}

/// Only the status objects are forgotten, since another task watches the CRDs.
#[tokio::test(start_paused = true)]
async fn definitions_remain_stored_if_their_status_objects_are_no_longer_served() {
    let (client, log) = client(|request| {
        let is_list = request.path.contains("sendInitialEvents");
        let events = [event("ADDED", &named("a", "1")), end_of_list()];
        Some(Reply::watch(if is_list { &events } else { &[] }))
    });
    let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
    let kind = SubjectKind::CustomResourceDefinition;
    let id = SubjectId::new(kind, "a");
    let metadata = serde_json::from_value(named("a", "1")["metadata"].clone()).unwrap();
    let subject = crate::controller::subjects::subject::Subject::CustomResourceDefinition(
        crate::controller::subjects::rules::Rules::new("{}"),
    );
    let from = EventSource::Listed;
    assert!(
        context
            .store
            .put_opt_in(id.clone(), &metadata, subject, from)
    );
    let state = context.opt_in.state(kind).unwrap();
    let definitions = (
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
    );
    let objects = state.status_object;
    context.set_snapshot(snapshot(
        &[
            definitions,
            ("vap-status.dev/v1alpha1", objects.plural, objects.kind),
        ],
        &[],
    ));
    tokio::spawn(run(Arc::clone(&context), kind));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let statuses = format!("/apis/vap-status.dev/v1alpha1/{}", objects.plural);
    assert_eq!(requested(&log), [statuses].into());
    assert_eq!(state.ids(), std::slice::from_ref(&id));

    context.set_snapshot(snapshot(&[definitions], &[]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(state.ids(), []);
    assert_eq!(context.store.ids(), [id]);
}

#[tokio::test(start_paused = true)]
async fn webhook_configurations_are_watched_without_bindings() {
    for (kind, plural) in [
        (
            SubjectKind::ValidatingWebhookConfiguration,
            "validatingwebhookconfigurations",
        ),
        (
            SubjectKind::MutatingWebhookConfiguration,
            "mutatingwebhookconfigurations",
        ),
    ] {
        let (client, log) = client(|request| {
            let is_list = request.path.contains("sendInitialEvents");
            let events = [event("ADDED", &named("a", "1")), end_of_list()];
            Some(Reply::watch(if is_list { &events } else { &[] }))
        });
        let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
        let state = context.opt_in.state(kind).unwrap();
        let objects = state.status_object;
        context.set_snapshot(snapshot(
            &[
                ("admissionregistration.k8s.io/v1", plural, kind.as_str()),
                ("vap-status.dev/v1alpha1", objects.plural, objects.kind),
            ],
            &[],
        ));
        tokio::spawn(run(Arc::clone(&context), kind));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let expected = [
            format!("/apis/admissionregistration.k8s.io/v1/{plural}"),
            format!("/apis/vap-status.dev/v1alpha1/{}", objects.plural),
        ];
        assert_eq!(requested(&log), expected.into());
        assert!(state.is_known());
        assert_eq!(context.store.ids(), [SubjectId::new(kind, "a")]);
    }
}
