//! The watches of what is followed, for as long as the cluster serves it.
//!
//! Discovery decides: a cluster may serve mutating policies of a beta only, or not yet, or no longer, and the CRD of our
//! objects may be installed later. Where something is missing, that is said once and nothing is asked of the API server.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Resource;

use super::super::context::Context;
use super::super::event_source::EventSource;
use super::super::follow::Event;
use super::super::store::Body;
use super::super::watch::{follow_at, follow_by_policy_at};
use super::received::{BINDINGS, GROUP, POLICIES, ReceivedBinding, ReceivedMutating};
use super::{Followed, key};
use crate::schema::Gvr;
use crate::status::object::StatusObject;
use crate::telemetry::metrics::Source;

/// The versions of mutating policies, the best first.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Sources of facts about mutating policies.
const SOURCES: [Source; 3] = [
    Source::MutatingPolicies,
    Source::MutatingBindings,
    Source::PolicyStatuses,
];

/// The part of it that the cluster serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// All of it, the policies in this version.
    All(&'static str),
    /// No mutating policies.
    NoPolicies,
    /// No objects that could hold their conditions.
    NoObjects,
}

/// The part that the cluster serves; nothing before that is known.
fn served(context: &Context) -> Option<Served> {
    if !context.has_snapshot() {
        return None;
    }
    let mapper = &context.snapshot().mapper;
    let serves = |gvr: &Gvr| mapper.resource(gvr).is_some();
    let version = VERSIONS.into_iter().find(|version| {
        [POLICIES, BINDINGS]
            .iter()
            .all(|resource| serves(&Gvr::new(GROUP, *version, *resource)))
    });
    let objects = Gvr::new(
        StatusObject::group(&()),
        StatusObject::version(&()),
        StatusObject::plural(&()),
    );
    Some(match version {
        None => Served::NoPolicies,
        Some(_) if !serves(&objects) => Served::NoObjects,
        Some(version) => Served::All(version),
    })
}

/// Follows mutating policies while they are served, for ever.
pub(crate) async fn run(context: Arc<Context>) {
    let followed = Followed::MutatingAdmissionPolicies;
    let mut changes = context.changes();
    loop {
        if let Some(now) = served(&context) {
            tell(now);
            context
                .metrics
                .set_followed(followed.kind(), matches!(now, Served::All(_)));
            if let Served::All(version) = now {
                context.followed.set_version(version);
                tokio::select! {
                    () = policies(&context, version) => {}
                    () = bindings(&context, version) => {}
                    () = objects(&context) => {}
                    () = until_other(&context, now) => {}
                }
                forget(&context);
                continue;
            }
            context.followed.set_obstacle(match now {
                Served::NoObjects => {
                    "the CRD mutatingadmissionpolicystatuses.vap-status.dev is not installed"
                }
                _ => "the cluster does not serve these",
            });
            context.touch_followed();
            until_other(&context, now).await;
        } else {
            // The sender lives as long as the context.
            drop(changes.changed().await);
        }
    }
}

async fn until_other(context: &Context, served_now: Served) {
    let mut changes = context.changes();
    while served(context) == Some(served_now) {
        drop(changes.changed().await);
    }
}

fn tell(served: Served) {
    match served {
        Served::All(version) => tracing::info!(version, "following {POLICIES}.{GROUP}"),
        Served::NoPolicies => tracing::info!(
            "{POLICIES}.{GROUP} are not served: they are followed when they are (Kubernetes 1.36, or the beta)"
        ),
        Served::NoObjects => tracing::warn!(
            "{POLICIES}.{GROUP} cannot be followed: install the CRD \
             mutatingadmissionpolicystatuses.vap-status.dev, which holds their conditions"
        ),
    }
}

/// Forgets what was known. The objects stay: nothing tells that what they say is wrong.
fn forget(context: &Context) {
    for source in SOURCES {
        context.readiness.forget(source);
        context.metrics.forget_source(source);
    }
    let mut gone = context.followed.forget();
    gone.extend(retain(context, &BTreeSet::new()));
    for key in gone {
        context.queue.add(&key);
    }
}

/// Takes all mutating policies out of the store but these.
fn retain(context: &Context, keys: &BTreeSet<String>) -> Vec<String> {
    context
        .store
        .retain_among(|key| super::name_of(key).is_some(), keys)
}

fn path(version: &str, resource: &str) -> String {
    format!("/apis/{GROUP}/{version}/{resource}")
}

async fn policies(context: &Context, version: &str) {
    let mut listed = BTreeSet::new();
    // Those of the list that cannot be read exist.
    let mut unreadable = BTreeSet::new();
    let put = |received: ReceivedMutating, from| {
        let ReceivedMutating {
            shared,
            mutations,
            reinvocation,
        } = received;
        let name = shared.metadata.name.clone().unwrap_or_default();
        let key = key(&name);
        let body = Body::Mutating {
            mutations,
            reinvocation,
        };
        if context.store.put_followed(&key, shared, body, from) {
            context.queue.add(&key);
        }
    };
    let source = Source::MutatingPolicies;
    follow_at::<ReceivedMutating>(
        context,
        source,
        path(version, POLICIES),
        |event| match event {
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
                for gone in retain(context, &listed) {
                    context.queue.add(&gone);
                }
                listed.clear();
                context
                    .followed
                    .set_policies_listed(std::mem::take(&mut unreadable));
                context.touch_followed();
            }
            Event::Apply(policy) => put(policy, EventSource::Watched),
            Event::Delete(policy) => {
                let key = key(policy.meta().name.as_deref().unwrap_or_default());
                listed.remove(&key);
                context.followed.set_gone(&key);
                context.store.remove(&key);
                context.queue.add(&key);
            }
        },
    )
    .await;
}

async fn bindings(context: &Context, version: &str) {
    let listed_all = || {
        if context.followed.set_bindings_listed() {
            context.touch_followed();
        }
    };
    follow_by_policy_at::<ReceivedBinding, _>(
        context,
        (Source::MutatingBindings, path(version, BINDINGS)),
        &context.followed.bindings,
        |ReceivedBinding(binding)| binding,
        listed_all,
    )
    .await;
}

async fn objects(context: &Context) {
    let mut listed = BTreeSet::new();
    let put = |object: StatusObject, from| {
        let key = key(object.meta().name.as_deref().unwrap_or_default());
        if context.followed.put(object, from) {
            context.queue.add(&key);
        }
    };
    let source = Source::PolicyStatuses;
    let path = StatusObject::url_path(&(), None);
    follow_at::<StatusObject>(context, source, path, |event| match event {
        Event::Init => listed.clear(),
        Event::InitKeep(name) => drop(listed.insert(key(&name))),
        Event::InitApply(object) => {
            listed.insert(key(object.meta().name.as_deref().unwrap_or_default()));
            put(object, EventSource::Listed);
        }
        Event::InitDone => {
            for gone in context.followed.retain(&listed) {
                context.queue.add(&gone);
            }
            listed.clear();
            context.followed.set_objects_listed();
            context.touch_followed();
        }
        Event::Apply(object) => put(object, EventSource::Watched),
        Event::Delete(object) => {
            let key = key(object.meta().name.as_deref().unwrap_or_default());
            listed.remove(&key);
            context.followed.remove(&key);
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
    use crate::controller::testing::{Reply, client};
    use crate::controller::tests::settings;
    use crate::telemetry::Metrics;

    fn event(type_: &str, object: &Value) -> String {
        format!("{}\n", json!({"type": type_, "object": object}))
    }

    fn policy(name: &str, version: u32, mutations: &Value) -> Value {
        json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
               "spec": {"mutations": mutations}})
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
                    event("BOOKMARK", &end),
                    event("ADDED", &policy("later", 4, &json!([]))),
                ])
            })
        });
        let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
        for name in ["odd", "gone"] {
            let metadata = json!({"name": name, "resourceVersion": "1"});
            let object = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            context.followed.put(object, EventSource::Listed);
        }
        context.followed.set_objects_listed();
        context.followed.set_bindings_listed();
        let followed = policies(&context, "v1");
        drop(tokio::time::timeout(Duration::from_secs(1), followed).await);
        let mut names = context.store.names();
        names.sort();
        assert_eq!(names, [key("later"), key("null")]);
        assert!(context.followed.orphan(&key("odd")).is_none());
        assert!(context.followed.orphan(&key("gone")).is_some());
        let text = context.metrics.encode().unwrap();
        assert!(
            text.contains("vap_unreadable_objects{source=\"mutatingpolicies\"} 1\n"),
            "{text}"
        );
    }
}
