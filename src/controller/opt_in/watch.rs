//! The watches of what is followed, for as long as the cluster serves it.
//!
//! Discovery decides: a cluster may serve what is followed in a beta only, or not yet, or no longer, and the CRD of our
//! objects may be installed later. Where something is missing, that is said once and nothing is asked of the API server.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Resource;

use super::super::context::Context;
use super::super::event_source::EventSource;
use super::super::follow::Event;
use super::super::watch::{follow_at, follow_by_policy_at};
use super::received::{Received, ReceivedBinding, ReceivedMutating, ReceivedWebhooks};
use super::{Followed, OptInState, Row};
use crate::schema::Gvr;
use crate::status::object::StatusObject;

/// The part of it that the cluster serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// All of it, what is followed in this version.
    All(&'static str),
    /// Nothing to follow.
    NoPolicies,
    /// No objects that could hold conditions.
    NoObjects,
}

/// The part that the cluster serves; nothing before that is known.
fn served(context: &Context, row: &Row) -> Option<Served> {
    if !context.has_snapshot() {
        return None;
    }
    let mapper = &context.snapshot().mapper;
    let serves = |gvr: &Gvr| mapper.resource(gvr).is_some();
    let version = row.versions.iter().copied().find(|version| {
        let mut needed = std::iter::once(row.resource).chain(row.bindings);
        needed.all(|resource| serves(&Gvr::new(row.group, *version, resource)))
    });
    let objects = Gvr::new(
        StatusObject::group(&row.objects),
        StatusObject::version(&row.objects),
        row.objects.plural,
    );
    Some(match version {
        None => Served::NoPolicies,
        Some(_) if !serves(&objects) => Served::NoObjects,
        Some(version) => Served::All(version),
    })
}

/// Follows a kind while it is served, for ever.
pub(crate) async fn run(context: Arc<Context>, followed: Followed) {
    let row = followed.row();
    let state = context.opt_in.of(followed);
    let mut changes = context.changes();
    loop {
        if let Some(now) = served(&context, row) {
            tell(row, now);
            context
                .metrics
                .set_followed(followed.kind(), matches!(now, Served::All(_)));
            if let Served::All(version) = now {
                state.set_version(version);
                tokio::select! {
                    () = policies(&context, followed, version) => {}
                    () = bindings(&context, state, version) => {}
                    () = objects(&context, state) => {}
                    () = until_other(&context, row, now) => {}
                }
                forget(&context, state);
                continue;
            }
            state.set_obstacle(match now {
                Served::NoObjects => format!(
                    "the CRD {}.vap-status.dev is not installed",
                    row.objects.plural
                ),
                _ => "the cluster does not serve these".to_owned(),
            });
            context.touch_opt_in();
            until_other(&context, row, now).await;
        } else {
            // The sender lives as long as the context.
            drop(changes.changed().await);
        }
    }
}

async fn until_other(context: &Context, row: &Row, served_now: Served) {
    let mut changes = context.changes();
    while served(context, row) == Some(served_now) {
        drop(changes.changed().await);
    }
}

fn tell(row: &Row, served: Served) {
    let Row {
        resource,
        group,
        remedy,
        ..
    } = row;
    match served {
        Served::All(version) => tracing::info!(version, "following {resource}.{group}"),
        Served::NoPolicies => tracing::info!(
            "{resource}.{group} are not served: they are followed when they are{remedy}"
        ),
        Served::NoObjects => tracing::warn!(
            "{resource}.{group} cannot be followed: install the CRD {}.vap-status.dev, which holds their \
             conditions",
            row.objects.plural
        ),
    }
}

/// Forgets what was known. The objects stay: nothing tells that what they say is wrong.
fn forget(context: &Context, state: &OptInState) {
    let (policies, bindings, objects) = state.followed.row().sources;
    for source in [policies, bindings, Some(objects)].into_iter().flatten() {
        context.readiness.forget(source);
        context.metrics.forget_source(source);
    }
    let mut gone = state.forget();
    if !state.followed.is_watched_anyway() {
        gone.extend(retain(context, state.followed, &BTreeSet::new()));
    }
    for key in gone {
        context.queue.add(&key);
    }
}

/// Takes everything of a kind out of the store but these.
fn retain(context: &Context, followed: Followed, keys: &BTreeSet<String>) -> Vec<String> {
    context
        .store
        .retain_among(|key| super::of_key(key) == Some(followed), keys)
}

fn path(row: &Row, version: &str, resource: &str) -> String {
    format!("/apis/{}/{version}/{resource}", row.group)
}

async fn policies(context: &Context, followed: Followed, version: &str) {
    match followed {
        Followed::MutatingAdmissionPolicies => {
            of_kind::<ReceivedMutating>(context, followed, version).await;
        }
        Followed::ValidatingWebhookConfigurations | Followed::MutatingWebhookConfigurations => {
            of_kind::<ReceivedWebhooks>(context, followed, version).await;
        }
        // They are told of by the watch of what is served.
        Followed::CustomResourceDefinitions => std::future::pending().await,
    }
}

async fn of_kind<K: Received>(context: &Context, followed: Followed, version: &str) {
    let state = context.opt_in.of(followed);
    let row = followed.row();
    let key = |name: &str| followed.key(name);
    let mut listed = BTreeSet::new();
    // Those of the list that cannot be read exist.
    let mut unreadable = BTreeSet::new();
    let put = |received: K, from| {
        let key = key(received.meta().name.as_deref().unwrap_or_default());
        let (shared, body) = received.parts();
        if context.store.put_opt_in(&key, shared, body, from) {
            context.queue.add(&key);
        }
    };
    let (Some(source), ..) = row.sources else {
        return std::future::pending().await;
    };
    let at = (
        path(row, version, row.resource),
        format!("{}.{}", row.resource, row.group),
    );
    follow_at::<K>(context, source, at, |event| match event {
        Event::Init => {
            listed.clear();
            unreadable.clear();
        }
        Event::InitKeep(name) => {
            listed.insert(key(&name));
            unreadable.insert(key(&name));
        }
        Event::InitApply(policy) => {
            listed.insert(key(policy.meta().name.as_deref().unwrap_or_default()));
            put(policy, EventSource::Listed);
        }
        Event::InitDone => {
            for gone in retain(context, followed, &listed) {
                context.queue.add(&gone);
            }
            listed.clear();
            state.set_policies_listed(std::mem::take(&mut unreadable));
            context.touch_opt_in();
        }
        Event::Apply(policy) => put(policy, EventSource::Watched),
        Event::Delete(policy) => {
            let key = key(policy.meta().name.as_deref().unwrap_or_default());
            listed.remove(&key);
            state.set_gone(&key);
            context.store.remove(&key);
            context.queue.add(&key);
        }
    })
    .await;
}

/// Follows the bindings of a kind; for ever, also where it has none.
async fn bindings(context: &Context, state: &OptInState, version: &str) {
    let row = state.followed.row();
    let ((_, Some(source), _), Some(resource)) = (row.sources, row.bindings) else {
        return std::future::pending().await;
    };
    let listed_all = || {
        if state.set_bindings_listed() {
            context.touch_opt_in();
        }
    };
    follow_by_policy_at::<ReceivedBinding, _>(
        context,
        (source, path(row, version, resource)),
        &state.bindings,
        |ReceivedBinding(binding)| binding,
        listed_all,
    )
    .await;
}

async fn objects(context: &Context, state: &OptInState) {
    let row = state.followed.row();
    let key = |name: &str| state.followed.key(name);
    let mut listed = BTreeSet::new();
    let put = |object: StatusObject, from| {
        let key = key(object.meta().name.as_deref().unwrap_or_default());
        if state.put(object, from) {
            context.queue.add(&key);
        }
    };
    let (.., source) = row.sources;
    let name = format!(
        "{}.{}",
        row.objects.plural,
        StatusObject::group(&row.objects)
    );
    let at = (StatusObject::url_path(&row.objects, None), name);
    follow_at::<StatusObject>(context, source, at, |event| match event {
        Event::Init => listed.clear(),
        Event::InitKeep(name) => drop(listed.insert(key(&name))),
        Event::InitApply(object) => {
            listed.insert(key(object.meta().name.as_deref().unwrap_or_default()));
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
            let key = key(object.meta().name.as_deref().unwrap_or_default());
            listed.remove(&key);
            state.remove(&key);
            context.queue.add(&key);
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::controller::binding_state::bindings_of;
    use crate::controller::testing::{Reply, client};
    use crate::controller::tests::settings;
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

    async fn queued(context: &Context) -> Vec<String> {
        let mut keys = Vec::new();
        let second = Duration::from_secs(1);
        while let Ok(key) = tokio::time::timeout(second, context.queue.next()).await {
            context.queue.done(&key);
            keys.push(key);
        }
        keys
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_on_bindings_that_is_taken_away_is_seen_and_so_is_that_it_is_back() {
        let start = tokio::time::Instant::now();
        let end = json!({"kind": "MutatingAdmissionPolicyBinding", "apiVersion": "v1", "metadata": {
            "resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}}});
        let (client, _) = client(move |request| {
            Some(match start.elapsed().as_secs() {
                // The watch ends when its time is over.
                _ if request.path.contains("sendInitialEvents") => {
                    Reply::ended_watch(&[event("BOOKMARK", &end)])
                }
                0..120 => Reply::failure(403, "cannot list resource"),
                _ => Reply::watch(&[]),
            })
        });
        let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
        let followed = Followed::MutatingAdmissionPolicies;
        let key = followed.key("a");
        let object = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
        let object = serde_json::from_value(object).unwrap();
        context
            .followed
            .of(followed)
            .put(object, EventSource::Listed);
        let at_work = Arc::clone(&context);
        tokio::spawn(async move { bindings(&at_work, at_work.followed.of(followed), "v1").await });
        let of_a = || bindings_of(&context, &key);
        tokio::time::sleep(Duration::from_secs(15)).await;
        assert_eq!(of_a().unwrap().len(), 0);
        assert_eq!(queued(&context).await, [key.as_str()]);
        assert!(!context.readiness.is_in_step(Source::MutatingBindings));

        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(of_a().unwrap_err(), BindingsState::NotPermitted);
        assert_eq!(queued(&context).await, [key.as_str()]);
        let mut checks = context.readiness.checks().into_iter();
        let check = checks.find(|(name, _)| *name == "mutatingbindings");
        let problem = check.unwrap().1.unwrap();
        let grant = "grant `list` and `watch` on it in the ClusterRole \
                     vap-status-controller-mutatingadmissionpolicies";
        assert!(problem.contains(grant), "{problem}");
        // It is told once, however often it is found again.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(queued(&context).await, Vec::<String>::new());

        tokio::time::sleep(Duration::from_secs(25)).await;
        assert_eq!(of_a().unwrap().len(), 0);
        assert_eq!(queued(&context).await, [key.as_str()]);
        assert!(context.readiness.is_in_step(Source::MutatingBindings));
    }

    /// Bindings that were never read hold up no policy for ever, whatever it is that fails.
    #[tokio::test(start_paused = true)]
    async fn bindings_that_cannot_be_listed_hold_nothing_up() {
        for code in [403, 500] {
            let (client, _) = client(move |_| Some(Reply::failure(code, "broken")));
            let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
            let followed = Followed::MutatingAdmissionPolicies;
            let state = context.opt_in.of(followed);
            let object = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
            let object = serde_json::from_value(object).unwrap();
            state.put(object, EventSource::Listed);
            state.set_objects_listed();
            state.set_policies_listed(BTreeSet::new());
            let following = bindings(&context, state, "v1");
            drop(tokio::time::timeout(Duration::from_secs(30), following).await);
            assert!(state.is_known(), "{code}");
            assert_eq!(queued(&context).await, [followed.key("a")], "{code}");
        }
    }

    /// One that cannot be read costs itself: the watch goes on, and its object is not taken for one without a policy.
    #[tokio::test(start_paused = true)]
    async fn a_policy_that_cannot_be_read_stops_nobody() {
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
        let followed = Followed::MutatingAdmissionPolicies;
        let key = |name: &str| followed.key(name);
        let state = context.opt_in.of(followed);
        for name in ["odd", "gone"] {
            let metadata = json!({"name": name, "resourceVersion": "1"});
            let object = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            state.put(object, EventSource::Listed);
        }
        state.set_objects_listed();
        state.set_bindings_listed();
        let following = policies(&context, followed, "v1");
        drop(tokio::time::timeout(Duration::from_secs(1), following).await);
        let mut names = context.store.names();
        names.sort();
        assert_eq!(names, [key("later"), key("null")]);
        assert!(state.orphan(&key("odd")).is_none());
        assert!(state.orphan(&key("gone")).is_some());
        let text = context.metrics.encode().unwrap();
        assert!(
            text.contains("vap_unreadable_objects{source=\"mutatingpolicies\"} 1\n"),
            "{text}"
        );
    }
}
