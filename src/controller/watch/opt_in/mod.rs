//! Watches opt-in kinds while the cluster serves them.
//!
//! A cluster may serve a kind only in a beta version, not yet, or no longer. The CRD of its status objects may be
//! installed later. So the watches start when discovery lists all necessary resources. If one is missing, this is
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
    /// The kind and its bindings are served in this API version, and the status objects are served.
    All(&'static str),
    /// The kind or its bindings are not served.
    NoPolicies,
    /// The status objects are not served.
    NoObjects,
}

/// Returns the resources of the kind that the cluster serves. `None` before the first discovery.
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
            "{resource}.{group} are not served; the controller will watch them once the cluster serves them{remedy}"
        ),
        Served::NoObjects => tracing::warn!(
            "{resource}.{group} cannot be watched: install the CRD {}.vap-status.dev, which holds their conditions",
            state.status_object.plural
        ),
    }
}

/// Removes the stored data of the kind. The status objects remain in the cluster.
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
        // Other tasks watch these kinds.
        SubjectKind::CustomResourceDefinition | SubjectKind::ValidatingAdmissionPolicy => {
            std::future::pending::<()>().await;
        }
    }
}

async fn watch_kind<K: WireSubject>(context: &Context, state: &OptInState, version: &str) {
    let row = state.kind.row();
    let id = |name: &str| SubjectId::new(state.kind, name);
    let mut listed = BTreeSet::new();
    // Names of listed subjects that cannot be parsed.
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
            state.set_unavailable(name);
            context.store.remove(&id(name));
            context.queue.add(&id(name));
        }
    })
    .await;
}

/// Watches the bindings of a kind. Never returns, even for a kind without bindings.
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
mod tests;
