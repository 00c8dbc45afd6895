//! Watches opt-in kinds while the cluster serves them.
//!
//! A cluster may serve a kind only in a beta version, not yet, or no longer, and the CRD of its status objects may be
//! installed later. So the watches start when discovery lists all needed resources. If a resource is missing, this is
//! logged once, and no requests are sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Resource;

use crate::controller::context::Context;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::opt_in::OptInState;
use crate::controller::watch::opt_in_wire::{
    WireBinding, WireMutatingPolicy, WireSubject, WireWebhooks,
};
use crate::controller::watch::reflector::Event;
use crate::controller::watch::{watch_at, watch_by_policy_at};
use crate::policy::subject::{Row, SubjectId, SubjectKind};
use crate::schema::Gvr;
use crate::status::object::StatusObject;

/// The resources of an opt-in kind that the cluster serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// The kind is served in this API version, and its bindings and its status objects are served too.
    All(&'static str),
    /// The kind or its bindings are not served.
    NoPolicies,
    /// The status objects are not served.
    NoObjects,
}

/// Returns which resources of the kind the cluster serves. `None` before the first discovery.
fn served(context: &Context, state: &OptInState) -> Option<Served> {
    if !context.has_snapshot() {
        return None;
    }
    let (row, status_object) = (state.kind.row(), &state.status_object);
    let mapper = &context.snapshot().mapper;
    let serves = |gvr: &Gvr| mapper.resource(gvr).is_some();
    let version = row.versions.iter().copied().find(|version| {
        let mut needed = std::iter::once(row.plural).chain(row.bindings);
        needed.all(|resource| serves(&Gvr::new(row.group, *version, resource)))
    });
    let objects = Gvr::new(
        StatusObject::group(status_object),
        StatusObject::version(status_object),
        status_object.plural,
    );
    Some(match version {
        None => Served::NoPolicies,
        Some(_) if !serves(&objects) => Served::NoObjects,
        Some(version) => Served::All(version),
    })
}

/// Watches a kind while it is served. Never returns.
pub(crate) async fn run(context: Arc<Context>, kind: SubjectKind) {
    let Some(state) = context.opt_in.state(kind) else {
        return std::future::pending().await;
    };
    let mut changes = context.changes();
    loop {
        if let Some(now) = served(&context, state) {
            log_served(state, now);
            context
                .metrics
                .set_followed(kind.as_str(), matches!(now, Served::All(_)));
            if let Served::All(version) = now {
                state.set_version(version);
                tokio::select! {
                    () = subjects(&context, state, version) => {}
                    () = bindings(&context, state, version) => {}
                    () = objects(&context, state) => {}
                    () = until_other(&context, state, now) => {}
                }
                forget(&context, state);
                continue;
            }
            state.set_obstacle(match now {
                Served::NoObjects => format!(
                    "the CRD {}.vap-status.dev is not installed",
                    state.status_object.plural
                ),
                _ => "the cluster does not serve this kind".to_owned(),
            });
            context.touch_opt_in();
            until_other(&context, state, now).await;
        } else {
            // The wait cannot fail, since the context owns the sender.
            drop(changes.changed().await);
        }
    }
}

async fn until_other(context: &Context, state: &OptInState, served_now: Served) {
    let mut changes = context.changes();
    while served(context, state) == Some(served_now) {
        drop(changes.changed().await);
    }
}

fn log_served(state: &OptInState, served: Served) {
    let Row {
        plural: resource,
        group,
        ..
    } = state.kind.row();
    let remedy = if state.kind == SubjectKind::MutatingAdmissionPolicy {
        " (Kubernetes 1.36, or an older version with the beta API enabled)"
    } else {
        ""
    };
    match served {
        Served::All(version) => tracing::info!(version, "watching {resource}.{group}"),
        Served::NoPolicies => tracing::info!(
            "{resource}.{group} are not served: they are watched when the cluster serves them{remedy}"
        ),
        Served::NoObjects => tracing::warn!(
            "{resource}.{group} cannot be watched: install the CRD {}.vap-status.dev, which holds their conditions",
            state.status_object.plural
        ),
    }
}

/// Removes the stored data of the kind. The status objects in the cluster remain.
fn forget(context: &Context, state: &OptInState) {
    let watches = &state.watches;
    let sources = [watches.subjects, watches.bindings, Some(watches.statuses)];
    for source in sources.into_iter().flatten() {
        context.readiness.forget(source);
        context.metrics.forget_source(source);
    }
    let mut gone = state.forget();
    if !state.is_watched_anyway() {
        gone.extend(context.store.retain(state.kind, &BTreeSet::new()));
    }
    for id in gone {
        context.queue.add(&id);
    }
}

fn name_of(object: &impl Resource) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

fn path(row: &Row, version: &str, resource: &str) -> String {
    format!("/apis/{}/{version}/{resource}", row.group)
}

async fn subjects(context: &Context, state: &OptInState, version: &str) {
    match state.kind {
        SubjectKind::MutatingAdmissionPolicy => {
            watch_kind::<WireMutatingPolicy>(context, state, version).await;
        }
        SubjectKind::ValidatingWebhookConfiguration | SubjectKind::MutatingWebhookConfiguration => {
            watch_kind::<WireWebhooks>(context, state, version).await;
        }
        // Another task watches these kinds.
        SubjectKind::CustomResourceDefinition | SubjectKind::ValidatingAdmissionPolicy => {
            std::future::pending::<()>().await;
        }
    }
}

async fn watch_kind<K: WireSubject>(context: &Context, state: &OptInState, version: &str) {
    let row = state.kind.row();
    let id = |name: &str| SubjectId::new(state.kind, name);
    let mut listed = BTreeSet::new();
    // Names of listed objects that cannot be parsed.
    let mut unreadable = BTreeSet::new();
    let put = |received: K, from| {
        let id = id(name_of(&received));
        let (metadata, subject) = received.parts();
        let store = &context.store;
        if store.put_opt_in(id.clone(), &metadata, subject, from) {
            context.queue.add(&id);
        }
    };
    let Some(source) = state.watches.subjects else {
        return std::future::pending().await;
    };
    let at = (
        path(row, version, row.plural),
        format!("{}.{}", row.plural, row.group),
    );
    watch_at::<K>(context, source, at, |event| match event {
        Event::Init => {
            listed.clear();
            unreadable.clear();
        }
        Event::InitKeep(name) => {
            listed.insert(name.clone());
            unreadable.insert(name);
        }
        Event::InitApply(policy) => {
            listed.insert(name_of(&policy).to_owned());
            put(policy, EventSource::Listed);
        }
        Event::InitDone => {
            for gone in context.store.retain(state.kind, &listed) {
                context.queue.add(&gone);
            }
            listed.clear();
            state.set_policies_listed(std::mem::take(&mut unreadable));
            context.touch_opt_in();
        }
        Event::Apply(policy) => put(policy, EventSource::Watched),
        Event::Delete(policy) => {
            let name = name_of(&policy);
            listed.remove(name);
            state.set_gone(name);
            context.store.remove(&id(name));
            context.queue.add(&id(name));
        }
    })
    .await;
}

/// Watches the bindings of a kind. Never returns, even if the kind has no bindings.
async fn bindings(context: &Context, state: &OptInState, version: &str) {
    let row = state.kind.row();
    let (Some(source), Some(resource)) = (state.watches.bindings, row.bindings) else {
        return std::future::pending().await;
    };
    let listed_all = || {
        if state.set_bindings_listed() {
            context.touch_opt_in();
        }
    };
    watch_by_policy_at::<WireBinding, _>(
        context,
        (source, path(row, version, resource)),
        &state.bindings,
        |WireBinding(binding)| binding,
        listed_all,
    )
    .await;
}

async fn objects(context: &Context, state: &OptInState) {
    let status_object = &state.status_object;
    let id = |name: &str| SubjectId::new(state.kind, name);
    let mut listed = BTreeSet::new();
    let put = |object: StatusObject, from| {
        let id = id(name_of(&object));
        if state.put(object, from) {
            context.queue.add(&id);
        }
    };
    let source = state.watches.statuses;
    let name = format!(
        "{}.{}",
        status_object.plural,
        StatusObject::group(status_object)
    );
    let at = (StatusObject::url_path(status_object, None), name);
    watch_at::<StatusObject>(context, source, at, |event| match event {
        Event::Init => listed.clear(),
        Event::InitKeep(name) => drop(listed.insert(name)),
        Event::InitApply(object) => {
            listed.insert(name_of(&object).to_owned());
            put(object, EventSource::Listed);
        }
        Event::InitDone => {
            for gone in state.retain(&listed) {
                context.queue.add(&gone);
            }
            listed.clear();
            state.set_objects_listed();
            context.touch_opt_in();
        }
        Event::Apply(object) => put(object, EventSource::Watched),
        Event::Delete(object) => {
            let name = name_of(&object);
            listed.remove(name);
            state.remove(name);
            context.queue.add(&id(name));
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::testing::{Reply, client};
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
        // The policies are queued only once for the same problem.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(queued(&context).await, []);

        tokio::time::sleep(Duration::from_secs(25)).await;
        assert_eq!(of_a().unwrap().len(), 0);
        assert_eq!(queued(&context).await, std::slice::from_ref(&key));
        assert!(context.readiness.is_in_sync(Source::MutatingBindings));
    }

    /// Bindings that cannot be listed do not block policies forever, whether the permission is missing or requests
    /// fail.
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

    /// The watch continues after an unreadable policy, and the status object of that policy is not deleted.
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
}
