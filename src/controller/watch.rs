//! The watches: policies, CRDs and API services.
//!
//! Each goes on whatever happens: it backs off, resumes, lists anew when it must, and says once a
//! minute what is wrong and what to do about it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Api, Resource};
use kube_runtime::watcher::{self, Config, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use super::by_policy::{ByPolicy, RefersToPolicy};
use super::context::Context;
use super::crds::{Crd, Crds, CustomResourceDefinition};
use super::error::watch_failure;
use super::mending::{Mending, Sign, is_listed};
use super::refresh::Signal;
use super::store::Origin;
use crate::schema::GroupVersion;
use crate::telemetry::metrics::{ErrorReason, Source};

/// How long one watch request lives, in seconds; a connection that died unnoticed is noticed then.
const WATCH_SECONDS: u32 = 120;

/// How many objects a list gives at once, where the API server cannot stream it.
const PAGE_SIZE: u32 = 50;

/// Follows the policies.
pub(crate) async fn policies(context: Arc<Context>) {
    let mut listed = BTreeSet::new();
    let api = context.policies();
    follow(&context, Source::Policies, api, |event| match event {
        Event::Init => listed.clear(),
        Event::InitApply(policy) => {
            listed.extend(policy.metadata.name.clone());
            put(&context, policy, Origin::List);
        }
        Event::InitDone => {
            for gone in context.store.retain(&listed) {
                context.queue.add(&gone);
            }
            listed.clear();
            context.set_policies_listed();
        }
        Event::Apply(policy) => put(&context, policy, Origin::Update),
        Event::Delete(policy) => {
            let name = policy.metadata.name.unwrap_or_default();
            if context.store.remove(&name) {
                context.queue.add(&name);
            }
        }
    })
    .await;
}

fn put(context: &Context, policy: ValidatingAdmissionPolicy, from: Origin) {
    let name = policy.metadata.name.clone().unwrap_or_default();
    if context.store.put(policy, from) {
        context.queue.add(&name);
    }
}

/// Follows the bindings.
pub(crate) async fn bindings(context: Arc<Context>) {
    follow_by_policy(&context, Source::Bindings, &context.bindings, || {
        context.set_bindings_listed();
    })
    .await;
}

/// Follows the probes while their kind is served.
pub(crate) async fn probes(context: Arc<Context>) {
    let mut news = context.news();
    loop {
        match context.serves_probes() {
            Some(true) => {
                tokio::select! {
                    () = served_probes(&context) => {}
                    () = until_probes_are_gone(&context) => {
                        tracing::info!("PolicyProbe is not served any more");
                    }
                }
                continue;
            }
            Some(false) => {
                context.readiness.forget(Source::Probes);
                for name in context.probes.retain(&BTreeSet::new()) {
                    context.queue.add(&name);
                }
                context.set_probes_listed();
            }
            None => {}
        }
        // The sender lives as long as the context.
        drop(news.changed().await);
    }
}

async fn until_probes_are_gone(context: &Context) {
    let mut news = context.news();
    while context.serves_probes() != Some(false) {
        drop(news.changed().await);
    }
}

async fn served_probes(context: &Context) {
    follow_by_policy(context, Source::Probes, &context.probes, || {
        context.set_probes_listed();
    })
    .await;
}

/// Follows objects that refer to policies, which each change puts into the queue.
async fn follow_by_policy<K>(
    context: &Context,
    source: Source,
    objects: &ByPolicy<K>,
    listed_all: impl Fn(),
) where
    K: RefersToPolicy
        + Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    let mut listed = BTreeSet::new();
    let api: Api<K> = Api::all(context.client.clone());
    let touch = |names: Vec<String>| names.iter().for_each(|name| context.queue.add(name));
    follow(context, source, api, |event| match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => {
            listed.extend(object.meta().name.clone());
            touch(objects.put(object));
        }
        Event::InitDone => {
            touch(objects.retain(&listed));
            listed.clear();
            listed_all();
        }
        Event::Apply(object) => touch(objects.put(object)),
        Event::Delete(object) => {
            let name = object.meta().name.clone().unwrap_or_default();
            touch(objects.remove(&name).into_iter().collect());
        }
    })
    .await;
}

/// Follows the CRDs.
pub(crate) async fn crds(context: Arc<Context>, signals: UnboundedSender<Signal>) {
    let mut listed = Crds::new();
    let api: Api<CustomResourceDefinition> = Api::all(context.client.clone());
    follow(&context, Source::Crds, api, |event| {
        let signal = match event {
            Event::Init => {
                listed.clear();
                return;
            }
            Event::InitApply(crd) => {
                listed.insert(name(&crd), Crd::from(crd));
                return;
            }
            Event::InitDone => Signal::CrdsListed(std::mem::take(&mut listed)),
            Event::Apply(crd) => Signal::CrdApplied(name(&crd), Crd::from(crd)),
            Event::Delete(crd) => Signal::CrdDeleted(name(&crd)),
        };
        // It cannot be received any more when the process ends.
        drop(signals.send(signal));
    })
    .await;
}

fn name(crd: &CustomResourceDefinition) -> String {
    crd.metadata.name.clone().unwrap_or_default()
}

/// Follows the API services, as they announce changes of aggregated APIs.
pub(crate) async fn api_services(context: Arc<Context>, signals: UnboundedSender<Signal>) {
    let api: Api<APIService> = Api::all(context.client.clone());
    follow(&context, Source::ApiServices, api, |event| {
        let (Event::Apply(api_service) | Event::Delete(api_service)) = event else {
            return;
        };
        let Some(spec) = api_service.spec else { return };
        // One without a service is of the API server itself: a built-in group or a CRD's.
        if spec.service.is_some() {
            let group_version = GroupVersion::new(
                spec.group.unwrap_or_default(),
                spec.version.unwrap_or_default(),
            );
            drop(signals.send(Signal::ApiServiceChanged(group_version)));
        }
    })
    .await;
}

/// Watches everything that `api` has, and hands each event to `handle`.
async fn follow<K>(context: &Context, source: Source, api: Api<K>, mut handle: impl FnMut(Event<K>))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    // A streamed list needs no page in memory. An API server that cannot stream it refuses.
    let streaming = Config::default().timeout(WATCH_SECONDS).streaming_lists();
    let paged = Config::default()
        .timeout(WATCH_SECONDS)
        .page_size(PAGE_SIZE);
    let mut config = streaming;
    let mut mending = Mending::default();
    loop {
        let mut events = pin!(watcher(api.clone(), config.clone()));
        loop {
            match mending.next(&mut events, || is_listed(&api)).await {
                Sign::Event(event) => {
                    let is_sound =
                        matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_));
                    handle(event);
                    if is_sound {
                        in_step(context, source);
                    }
                }
                Sign::Mended => in_step(context, source),
                Sign::Failed(error) if is_streaming_refused(&error) && config != paged => {
                    tracing::debug!(
                        what = source.as_str(),
                        "the API server does not stream lists"
                    );
                    config = paged.clone();
                    break;
                }
                Sign::Failed(error) => {
                    report::<K>(context, source, &error);
                    mending.rest(&context.readiness).await;
                }
                // The watcher does not end; if it did, another takes its place.
                Sign::Ended => break,
            }
        }
    }
}

/// Whether the API server does not know streamed lists.
fn is_streaming_refused(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            matches!(status.code, 400 | 422) && status.message.contains("sendInitialEvents")
        }
        _ => false,
    }
}

fn in_step(context: &Context, source: Source) {
    let was_refused = context.readiness.refusal(source).is_some();
    let is_back = context.readiness.synced(source);
    context.metrics.synced(source);
    if was_refused && matches!(source, Source::Bindings | Source::Probes) {
        context.touch_all();
    }
    if is_back && source == Source::Policies {
        // What could not be written will be taken now, rather than when its pause is over.
        context.queue.hurry();
    }
    context.complaints.is_over(source);
}

/// Says what is wrong with a watch, and what to do about it.
fn report<K: Resource<DynamicType = ()>>(
    context: &Context,
    source: Source,
    error: &watcher::Error,
) {
    let Some((reason, text)) = watch_failure(error) else {
        tracing::debug!(what = source.as_str(), "the watch is too old, listing anew");
        return;
    };
    context.metrics.sync_failed(source, reason);
    let resource = format!("{}.{}", K::plural(&()), K::group(&()));
    if reason != ErrorReason::Forbidden {
        let text = format!("cannot watch {resource}: {text}");
        context.complaints.trouble(source, reason, &text);
        context.readiness.failed(source, text);
        return;
    }
    let text = format!(
        "cannot watch {resource} ({text}): grant `list` and `watch` on it in the ClusterRole \
         vap-status-controller"
    );
    let is_news = context.readiness.refused(source, text.clone());
    if context.readiness.refusal(source).is_none() {
        tracing::debug!("{text}; an API server that starts refuses everybody, trying again");
        return;
    }
    context.complaints.refused(source, &text);
    // What we may not read is a fact too: nothing waits for it.
    match source {
        Source::Bindings => context.set_bindings_listed(),
        Source::Probes => context.set_probes_listed(),
        _ => return,
    }
    if is_news {
        context.touch_all();
    }
}

#[cfg(test)]
mod tests;
