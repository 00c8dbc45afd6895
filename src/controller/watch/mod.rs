//! The watches of policies, bindings, probes, CRDs and API services.
//!
//! Each watch runs forever ([`reflector`]). After a failure it backs off, and resumes or lists again. The problem and
//! its remedy are logged once per minute.

pub(crate) mod binding_state;
pub(crate) mod definitions;
pub(crate) mod list_watch;
pub(crate) mod opt_in;
pub(crate) mod opt_in_wire;
pub(crate) mod params;
pub(crate) mod reflector;
pub(crate) mod refresh;
mod unknown_fields;
pub(crate) mod unreadable;
pub(crate) mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use super::context::Context;
use crate::cluster::error::Error;
use crate::controller::cluster::crds::{Crd, Crds, CustomResourceDefinition};
use crate::controller::process::memory::MAX_TYPED_OBJECT;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::opt_in::{OptInState, kind_of_source};
use crate::controller::subjects::policy_index::{PolicyIndex, RefersToPolicy};
use crate::controller::watch::definitions::{Listener, ReadDefinition, WithRules};
use crate::controller::watch::list_watch::{ListWatchConfig, Listing, Representation};
use crate::controller::watch::reflector::{Event, EventHandler};
use crate::controller::watch::refresh::RefreshTrigger;
use crate::controller::watch::wire::{WirePolicy, WireValidatingBinding};
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::schema::GroupVersion;
use crate::telemetry::metrics::{ErrorReason, Source};

/// The number of objects per list request, in case the API server does not support streamed lists.
const PAGE_SIZE: u32 = 50;

/// Watches ValidatingAdmissionPolicies. Never returns.
pub(crate) async fn policies(context: Arc<Context>) {
    let mut listed = BTreeSet::new();
    watch_kind::<WirePolicy>(&context, Source::Policies, |event| match event {
        Event::Init => listed.clear(),
        Event::InitKeep(name) => drop(listed.insert(name)),
        Event::InitApply(received) => {
            listed.extend(received.policy.metadata.name.clone());
            put(&context, received, EventSource::Listed);
        }
        Event::InitDone => {
            let kind = SubjectKind::ValidatingAdmissionPolicy;
            context.touch(context.store.retain(kind, &listed));
            listed.clear();
            context.set_policies_listed();
        }
        Event::Apply(received) => put(&context, received, EventSource::Watched),
        Event::Delete(WirePolicy { policy, .. }) => {
            let name = policy.metadata.name.unwrap_or_default();
            listed.remove(&name);
            let id = SubjectId::policy(name);
            if context.store.remove(&id) {
                context.queue.add(&id);
            }
        }
    })
    .await;
}

fn put(context: &Context, received: WirePolicy, from: EventSource) {
    let id = SubjectId::policy(received.policy.metadata.name.as_deref().unwrap_or_default());
    let (metadata, policy, status) = received.parts();
    if context.store.put_policy(&metadata, policy, status, from) {
        context.queue.add(&id);
    }
}

/// Watches `ValidatingAdmissionPolicyBindings`. Never returns.
pub(crate) async fn bindings(context: Arc<Context>) {
    let path = ValidatingAdmissionPolicyBinding::url_path(&(), None);
    watch_by_policy_at::<WireValidatingBinding, _>(
        &context,
        (Source::Bindings, path),
        &context.bindings,
        |WireValidatingBinding(binding)| binding,
        || context.set_bindings_listed(),
    )
    .await;
}

/// Watches probes while the cluster serves them. Never returns.
pub(crate) async fn probes(context: Arc<Context>) {
    let mut changes = context.changes();
    loop {
        match context.serves_probes() {
            Some(true) => {
                tokio::select! {
                    () = served_probes(&context) => {}
                    () = until_probes_are_gone(&context) => {
                        tracing::info!("PolicyProbe is no longer served");
                    }
                }
                continue;
            }
            Some(false) => {
                context.readiness.forget(Source::Probes);
                context.touch(context.probes.retain(&BTreeSet::new()));
                context.set_probes_listed();
            }
            None => {}
        }
        // The wait cannot fail, since the context owns the sender.
        drop(changes.changed().await);
    }
}

async fn until_probes_are_gone(context: &Context) {
    let mut changes = context.changes();
    while context.serves_probes() != Some(false) {
        drop(changes.changed().await);
    }
}

async fn served_probes(context: &Context) {
    watch_by_policy(context, Source::Probes, &context.probes, || {
        context.set_probes_listed();
    })
    .await;
}

/// Watches objects that refer to policies, and queues the affected policies. Calls `listed_all` after each complete
/// list.
async fn watch_by_policy<K>(
    context: &Context,
    source: Source,
    objects: &PolicyIndex<K>,
    listed_all: impl Fn(),
) where
    K: RefersToPolicy + Resource<DynamicType = ()> + DeserializeOwned,
{
    let source_path = (source, K::url_path(&(), None));
    watch_by_policy_at::<K, K>(context, source_path, objects, |object| object, listed_all).await;
}

/// Watches the objects at `path`, which refer to policies. They are parsed as `R`, and stored as `K` after a conversion
/// by `kept`.
pub(super) async fn watch_by_policy_at<R, K>(
    context: &Context,
    (source, path): (Source, String),
    objects: &PolicyIndex<K>,
    kept: impl Fn(R) -> K,
    listed_all: impl Fn(),
) where
    R: Resource<DynamicType = ()> + DeserializeOwned,
    K: RefersToPolicy,
{
    let mut listed = BTreeSet::new();
    watch_at::<R>(
        context,
        source,
        (path, resource_name::<R>()),
        |event| match event {
            Event::Init => listed.clear(),
            Event::InitKeep(name) => drop(listed.insert(name)),
            Event::InitApply(object) => {
                listed.extend(object.meta().name.clone());
                context.touch(objects.put(kept(object), EventSource::Listed));
            }
            Event::InitDone => {
                let is_first = !objects.is_listed();
                context.touch(objects.retain(&listed));
                listed.clear();
                listed_all();
                if is_first {
                    // Until now, it was unknown which policies have no such objects.
                    context.touch_all();
                }
            }
            Event::Apply(object) => context.touch(objects.put(kept(object), EventSource::Watched)),
            Event::Delete(object) => {
                let name = object.meta().name.clone().unwrap_or_default();
                listed.remove(&name);
                context.touch(objects.remove(&name));
            }
        },
    )
    .await;
}

/// Watches CRDs. Never returns.
pub(crate) async fn crds(context: Arc<Context>, signals: UnboundedSender<RefreshTrigger>) {
    match Listener::new(&context) {
        None => crds_as::<CustomResourceDefinition>(&context, &signals, None).await,
        listener => crds_as::<WithRules>(&context, &signals, listener).await,
    }
}

/// Watches CRDs, parsed as `K`. `listener` handles CRDs as subjects. `None` if CRDs are not subjects.
async fn crds_as<K: ReadDefinition>(
    context: &Context,
    signals: &UnboundedSender<RefreshTrigger>,
    mut listener: Option<Listener<'_>>,
) {
    let mut listed = Crds::new();
    // Names of listed CRDs that cannot be parsed. Their stored state remains.
    let mut kept = BTreeSet::new();
    let put = |read: K, listener: &mut Option<Listener<'_>>, from| {
        let (crd, rules) = read.parts();
        if let (Some(listener), Some(rules)) = (listener, rules) {
            listener.put(&crd.metadata, rules, from);
        }
        (name(&crd), Crd::from(crd))
    };
    watch_kind::<K>(context, Source::Crds, |event| {
        let signal = match event {
            Event::Init => {
                listed.clear();
                kept.clear();
                listener.iter_mut().for_each(Listener::begin);
                return;
            }
            Event::InitKeep(name) => {
                if let Some(listener) = &mut listener {
                    listener.keep(&name);
                }
                kept.insert(name);
                return;
            }
            Event::InitApply(crd) => {
                listed.extend([put(crd, &mut listener, EventSource::Listed)]);
                return;
            }
            Event::InitDone => {
                listener.iter_mut().for_each(Listener::end);
                RefreshTrigger::CrdsListed {
                    crds: std::mem::take(&mut listed),
                    kept: std::mem::take(&mut kept),
                }
            }
            Event::Apply(crd) => {
                let (name, crd) = put(crd, &mut listener, EventSource::Watched);
                RefreshTrigger::CrdApplied(name, crd)
            }
            Event::Delete(crd) => {
                let name = crd.meta().name.clone().unwrap_or_default();
                listed.remove(&name);
                kept.remove(&name);
                if let Some(listener) = &mut listener {
                    listener.delete(&name);
                }
                RefreshTrigger::CrdDeleted(name)
            }
        };
        // The error is ignored, because the receiver is dropped only when the process ends.
        drop(signals.send(signal));
    })
    .await;
}

fn name(crd: &CustomResourceDefinition) -> String {
    crd.metadata.name.clone().unwrap_or_default()
}

/// Watches `APIServices`, since their changes indicate changes of aggregated APIs. Never returns.
pub(crate) async fn api_services(context: Arc<Context>, signals: UnboundedSender<RefreshTrigger>) {
    watch_kind::<APIService>(&context, Source::ApiServices, |event| {
        let (Event::Apply(api_service) | Event::Delete(api_service)) = event else {
            return;
        };
        let Some(spec) = api_service.spec else { return };
        // An APIService without `service` is for a group that the API server itself serves: a built-in group, or the
        // group of a CRD.
        if spec.service.is_some() {
            let group_version = GroupVersion::new(
                spec.group.unwrap_or_default(),
                spec.version.unwrap_or_default(),
            );
            drop(signals.send(RefreshTrigger::ApiServiceChanged(group_version)));
        }
    })
    .await;
}

/// Watches all objects of a kind, and passes each event to `handle`.
async fn watch_kind<K>(context: &Context, source: Source, handle: impl FnMut(Event<K>))
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let at = (K::url_path(&(), None), resource_name::<K>());
    watch_at::<K>(context, source, at, handle).await;
}

/// Watches all objects at `path`, and passes each event to `handle`. Messages contain the name `resource`.
pub(super) async fn watch_at<K>(
    context: &Context,
    source: Source,
    (path, resource): (String, String),
    handle: impl FnMut(Event<K>),
) where
    K: Resource + DeserializeOwned,
{
    let config = ListWatchConfig {
        path,
        representation: Representation::Whole,
        listing: Listing::Streamed(PAGE_SIZE),
        life: context.settings.watch_timeout,
        max_unpacked: match source {
            // Probes have their own limit. The schemas of CRDs are not parsed.
            Source::Probes | Source::Crds => usize::MAX,
            _ => MAX_TYPED_OBJECT,
        },
    };
    let mut handler = SourceHandler {
        context,
        source,
        resource: resource.clone(),
        handle,
    };
    let names = (source.as_str(), resource);
    reflector::reflect(context, names, config, &mut handler).await;
}

/// Handles the events of a watch, and records whether the watch works.
struct SourceHandler<'a, H> {
    context: &'a Context,
    source: Source,
    /// The name of the resource, such as `policyprobes.vap-status.dev`.
    resource: String,
    handle: H,
}

impl<K, H> EventHandler<K> for SourceHandler<'_, H>
where
    K: Resource,
    H: FnMut(Event<K>),
{
    fn on_event(&mut self, event: Event<K>) {
        (self.handle)(event);
    }

    fn on_progress(&mut self) {
        in_sync(self.context, self.source);
    }

    fn on_error(&mut self, error: &Error) {
        report(self.context, self.source, &self.resource, error);
    }

    fn on_unreadable(&mut self, n: usize) {
        self.context.metrics.set_unreadable(self.source, n);
    }
}

fn in_sync(context: &Context, source: Source) {
    let was_refused = context.readiness.rejection(source).is_some();
    let is_back = context.readiness.synced(source);
    context.metrics.synced(source);
    if was_refused
        && matches!(
            source,
            Source::Bindings | Source::Probes | Source::MutatingBindings
        )
    {
        context.touch_all();
    }
    if is_back && source == Source::Policies {
        // The API server is available again, so failed writes are retried now.
        context.queue.flush_backoff();
    }
    context.log_throttle.watch_recovered(source);
}

fn resource_name<K: Resource<DynamicType = ()>>() -> String {
    format!("{}.{}", K::plural(&()), K::group(&()))
}

fn report(context: &Context, source: Source, resource: &str, error: &Error) {
    let reason = error.reason();
    if source == Source::ApiServices && reason == ErrorReason::NotFound {
        // The cluster has no API aggregation, and so no APIServices.
        if context.readiness.not_served(source) {
            tracing::info!(
                "the cluster does not serve {resource}, so aggregated APIs are not watched"
            );
        }
        return;
    }
    context.metrics.sync_failed(source, reason);
    if reason != ErrorReason::Forbidden {
        let text = format!("cannot watch {resource}: {error}");
        context.log_throttle.watch_failed(source, reason, &text);
        let is_lasting = context.readiness.failed(source, text);
        if is_lasting {
            go_on_without(context, source);
        }
        return;
    }
    let text = format!(
        "cannot watch {resource} ({error}): grant `list` and `watch` on it in the ClusterRole {}",
        role(source)
    );
    let is_news = context.readiness.refused(source, text.clone());
    if context.readiness.rejection(source).is_none() {
        tracing::debug!("{text}; retrying, since a starting API server rejects all requests");
        return;
    }
    context.log_throttle.watch_forbidden(source, &text);
    // Policies must not wait for a watch whose permission is missing.
    if go_on_without(context, source) && is_news {
        context.touch_all();
    }
}

/// Returns the name of the `ClusterRole` with the permission to read `source`.
fn role(source: Source) -> String {
    match kind_of_source(source) {
        Some(kind) => crate::controller::subjects::opt_in::role(kind),
        None => "vap-status-controller".to_owned(),
    }
}

/// Marks `source` as listed, so that statuses are computed without it. Returns false if every status depends on
/// `source`.
fn go_on_without(context: &Context, source: Source) -> bool {
    match source {
        Source::Bindings => context.set_bindings_listed(),
        Source::Probes => context.set_probes_listed(),
        Source::MutatingBindings => {
            let state = context.opt_in.state(SubjectKind::MutatingAdmissionPolicy);
            if state.is_some_and(OptInState::set_bindings_listed) {
                context.touch_opt_in();
            }
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests;
