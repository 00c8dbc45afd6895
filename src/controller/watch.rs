//! The watches: policies, CRDs and API services.
//!
//! Each goes on whatever happens: it backs off, resumes, lists anew when it must, and says once a
//! minute what is wrong and what to do about it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{Api, Resource};
use kube_runtime::watcher::{self, Config, Event, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use super::by_policy::{ByPolicy, RefersToPolicy};
use super::context::Context;
use super::crds::{Crd, Crds, CustomResourceDefinition};
use super::error::{Error, describe};
use super::refresh::Signal;
use super::store::Origin;
use crate::schema::GroupVersion;
use crate::telemetry::metrics::{ErrorReason, Source};

/// How long one watch request lives, in seconds; a connection that died unnoticed is noticed then.
const WATCH_SECONDS: u32 = 120;

/// How many objects a list gives at once, where the API server cannot stream it.
const PAGE_SIZE: u32 = 50;

/// The pause after the first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// How long after a failure no other must follow for the watch to be taken for mended: a connection
/// attempt and the longest pause together. A watch on which nothing happens gives no other sign.
const MENDED_AFTER: Duration = Duration::from_secs(45);

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
    let mut pause = PAUSES.0;
    let mut is_failing = false;
    loop {
        let mut events = pin!(watcher(api.clone(), config.clone()));
        loop {
            let patience = if is_failing {
                MENDED_AFTER
            } else {
                Duration::MAX
            };
            let Ok(event) = tokio::time::timeout(patience, events.next()).await else {
                is_failing = false;
                pause = PAUSES.0;
                in_step(context, source);
                continue;
            };
            match event {
                Some(Ok(event)) => {
                    let is_listed = matches!(event, Event::InitDone);
                    let is_update = matches!(event, Event::Apply(_) | Event::Delete(_));
                    handle(event);
                    if is_listed || is_update {
                        is_failing = false;
                        pause = PAUSES.0;
                        in_step(context, source);
                    }
                }
                Some(Err(error)) if is_streaming_refused(&error) && config != paged => {
                    tracing::debug!(
                        what = source.as_str(),
                        "the API server does not stream lists"
                    );
                    config = paged.clone();
                    break;
                }
                Some(Err(error)) => {
                    is_failing = true;
                    report::<K>(context, source, &error);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                // The watcher does not end; if it did, another takes its place.
                None => break,
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
    context.readiness.synced(source);
    context.metrics.synced(source);
    if was_refused && matches!(source, Source::Bindings | Source::Probes) {
        context.touch_all();
    }
    if context.complaints.end(source.as_str()) {
        tracing::info!(what = source.as_str(), "watching again");
    }
}

/// Says what is wrong with a watch, and what to do about it.
fn report<K: Resource<DynamicType = ()>>(
    context: &Context,
    source: Source,
    error: &watcher::Error,
) {
    let (reason, text) = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => (client_reason(error), describe(error)),
        watcher::Error::WatchError(status) => {
            let error = kube::Error::Api(status.clone());
            // The API server asks to list anew; that is what happens next.
            if status.code == 410 {
                tracing::debug!(what = source.as_str(), "the watch is too old, listing anew");
                return;
            }
            (client_reason(&error), describe(&error))
        }
        watcher::Error::NoResourceVersion => (ErrorReason::Decode, error.to_string()),
    };
    context.metrics.sync_failed(source, reason);
    let resource = format!("{}.{}", K::plural(&()), K::group(&()));
    let what = source.as_str();
    if reason == ErrorReason::Forbidden {
        let text = format!(
            "cannot watch {resource} ({text}): grant `list` and `watch` on it in the ClusterRole \
             vap-status-controller"
        );
        if context.complaints.are_due(what) {
            tracing::error!("{text}; trying again until then");
        }
        let is_new = context.readiness.refusal(source).is_none();
        context.readiness.refused(source, text);
        // What we may not read is a fact too: nothing waits for it.
        match source {
            Source::Bindings => context.set_bindings_listed(),
            Source::Probes => context.set_probes_listed(),
            _ => return,
        }
        if is_new {
            context.touch_all();
        }
    } else {
        let text = format!("cannot watch {resource}: {text}");
        if context.complaints.are_due(what) {
            tracing::warn!("{text}; trying again");
        }
        context.readiness.failed(source, text);
    }
}

fn client_reason(error: &kube::Error) -> ErrorReason {
    match error {
        kube::Error::Api(status) => Error::Status {
            code: status.code,
            message: status.message.clone(),
        }
        .reason(),
        kube::Error::SerdeError(_) => ErrorReason::Decode,
        _ => ErrorReason::Connection,
    }
}

#[cfg(test)]
mod tests;
