//! Watches the metadata of params: one watch for each paramKind in use.
//!
//! A watch starts when a policy first refers to params of its kind. It ends some time after the last reference is
//! removed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ParamRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::DynamicObject;
use kube::core::{ApiResource as KubeResource, DynamicResourceScope};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::list_watch::{ListWatchConfig, Listing as ListingOrder, Representation};
use crate::cluster::error::Error;
use crate::controller::context::Context;
use crate::controller::process::memory::MAX_PARAM_LABELS;
use crate::controller::process::readiness::certain_after;
use crate::controller::subjects::params::{
    Changed, Key, Listing, Meta, Objects, Referrer, grant, kube_resource, resource_name,
};
use crate::controller::watch::reflector::{Event, EventHandler, reflect};
use crate::policy::subject::SubjectId;
use crate::schema::rest_mapper::ApiResource;
use crate::telemetry::metrics::{ErrorReason, Source};

/// Returns all listed objects of the kind of `resource`. If the kind is not watched, starts a watch. When an object
/// changes that the `references` select, the policy is queued.
pub(crate) fn referred<'a>(
    context: &Arc<Context>,
    resource: &ApiResource,
    by: (&SubjectId, Referrer),
    references: impl IntoIterator<Item = &'a ParamRef>,
) -> Listing {
    let start_watch = || {
        let supervisor = context.supervisor.clone();
        let watch = watch(Arc::clone(context), resource.clone());
        let task = tokio::spawn(async move { supervisor.supervised("watch-params", watch).await });
        task.abort_handle()
    };
    context
        .params
        .referred(resource, by, references, start_watch)
}

/// The number of objects per list request.
const PAGE_SIZE: u32 = 500;

/// Watches the objects of a kind until the task is aborted.
async fn watch(context: Arc<Context>, resource: ApiResource) {
    let config = ListWatchConfig {
        path: DynamicObject::url_path(&kube_resource(&resource), None),
        representation: Representation::Metadata,
        // Lists are not streamed. An aggregated API server without support for streamed lists would respond with a
        // watch that has no list.
        listing: ListingOrder::Paged(PAGE_SIZE),
        life: context.settings.watch_timeout,
        // No limit is needed, since only a part of the metadata is parsed.
        max_unpacked: usize::MAX,
    };
    let name = resource_name(&resource);
    let mut handler = ParamHandler {
        context: &context,
        resource: &resource,
        building: BTreeMap::new(),
        known: Arc::default(),
        is_known: false,
        trouble: WatchProblem::default(),
    };
    reflect(&context, (&name, name.clone()), config, &mut handler).await;
}

struct ParamHandler<'a> {
    context: &'a Arc<Context>,
    resource: &'a ApiResource,
    /// Objects of the list that is currently received.
    building: BTreeMap<Key, Meta>,
    known: Arc<Objects>,
    is_known: bool,
    trouble: WatchProblem,
}

impl ParamHandler<'_> {
    /// Queues the policies that refer to changed objects.
    ///
    /// Publishes the objects and queues all policies with params of the kind in two cases: after the first list, and
    /// after the end of a problem that was published instead of the objects.
    fn notify(&mut self, changed: &[Changed], was_known: bool) {
        let (context, gvk) = (self.context, &self.resource.gvk);
        let was_hidden = self.trouble.end(context, self.resource);
        if self.is_known && (!was_known || was_hidden) {
            self.publish(Listing::Known(Arc::clone(&self.known)));
        } else {
            context.params.touch(&context.queue, gvk, changed);
        }
    }

    fn publish(&self, listing: Listing) {
        let gvk = &self.resource.gvk;
        self.context.params.set(gvk, listing);
        self.context.touch_params(gvk);
    }
}

impl EventHandler<WireMeta> for ParamHandler<'_> {
    fn on_event(&mut self, event: Event<WireMeta>) {
        let was_known = self.is_known;
        let changed = match event {
            Event::Init => {
                self.building.clear();
                return;
            }
            Event::InitApply(object) => {
                let (key, meta) = described(&object);
                self.building.insert(key, meta);
                return;
            }
            Event::InitKeep(name) => {
                let key = key_of(&name);
                if let Some(meta) = self.known.get(&key) {
                    self.building.insert(key, meta);
                }
                return;
            }
            Event::InitDone => {
                self.is_known = true;
                self.known.replace(std::mem::take(&mut self.building))
            }
            Event::Apply(object) => {
                let (key, meta) = described(&object);
                self.known.put(key, meta).into_iter().collect()
            }
            Event::Delete(object) => {
                let (key, _) = described(&object);
                self.known.remove(&key).into_iter().collect()
            }
        };
        self.notify(&changed, was_known);
    }

    fn on_progress(&mut self) {
        self.context.metrics.synced(Source::Params);
        self.notify(&[], self.is_known);
    }

    fn on_error(&mut self, error: &Error) {
        let (context, resource) = (self.context, self.resource);
        let news = self.trouble.note(context, resource, error, self.is_known);
        if let Some(listing) = news {
            self.publish(listing);
        }
    }

    fn on_unreadable(&mut self, n: usize) {
        let gvk = &self.resource.gvk;
        let metrics = &self.context.metrics;
        self.context.params.set_unreadable(metrics, gvk, n);
    }
}

/// Returns the key of an object from `name` or `namespace/name`.
fn key_of(name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    (namespace.to_owned(), name.to_owned())
}

/// The current problem of the watch of a kind. Empty if the watch works.
#[derive(Debug, Default)]
struct WatchProblem {
    refused_since: Option<Instant>,
    /// The problem that was published instead of the objects.
    reported: Option<String>,
}

impl WatchProblem {
    /// Records a failure. Returns the listing to publish. `None` if the published listing is kept.
    ///
    /// Listed objects are kept, unless the permission has been missing for as long as [`certain_after`] requires.
    fn note(
        &mut self,
        context: &Context,
        resource: &ApiResource,
        error: &Error,
        is_known: bool,
    ) -> Option<Listing> {
        let (reason, text) = (error.reason(), error.to_string());
        context.metrics.sync_failed(Source::Params, reason);
        let name = resource_name(resource);
        let listing = if reason == ErrorReason::Forbidden {
            let since = *self.refused_since.get_or_insert_with(Instant::now);
            if since.elapsed() < certain_after(is_known) {
                return None;
            }
            let text = format!("listing {name} is not allowed: {}", grant(&name));
            if context.log_throttle.is_due(&throttle_key(&name)) {
                tracing::error!("{text}; retrying until it is granted");
            }
            Listing::Refused(text)
        } else {
            if self.reported.is_none() {
                self.refused_since = None;
            }
            if is_known {
                return None;
            }
            Listing::Failed(text)
        };
        let reported = match &listing {
            Listing::Refused(text) | Listing::Failed(text) => Some(text.clone()),
            Listing::Unread | Listing::Known(_) => None,
        };
        let is_news = reported != self.reported;
        self.reported = reported;
        is_news.then_some(listing)
    }

    /// Records that the watch works again. Returns true if a problem was published instead of the objects.
    fn end(&mut self, context: &Context, resource: &ApiResource) -> bool {
        let name = resource_name(resource);
        if context.log_throttle.end(&throttle_key(&name)) {
            tracing::info!(resource = name, "watch recovered");
        }
        self.refused_since = None;
        self.reported.take().is_some()
    }
}

/// Returns the key that limits log messages about the params of a kind.
fn throttle_key(name: &str) -> String {
    format!("params {name}")
}

fn described(object: &WireMeta) -> (Key, Meta) {
    let metadata = &object.0;
    let key = (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    );
    let meta = Meta {
        labels: metadata.labels.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    };
    (key, meta)
}

/// The metadata of an object, without annotations and managed fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "MetaObject")]
struct WireMeta(ObjectMeta);

#[derive(Deserialize)]
struct MetaObject {
    #[serde(default)]
    metadata: Option<MetaFields>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MetaFields {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    labels: Option<Box<RawValue>>,
}

impl TryFrom<MetaObject> for WireMeta {
    type Error = String;

    fn try_from(object: MetaObject) -> Result<Self, String> {
        let metadata = object.metadata.unwrap_or_default();
        let labels = metadata.labels.as_deref().map_or("null", RawValue::get);
        if labels.len() > MAX_PARAM_LABELS {
            return Err(format!(
                "its labels are {} KiB long, but the limit is {} KiB",
                labels.len() >> 10,
                MAX_PARAM_LABELS >> 10
            ));
        }
        Ok(Self(ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            resource_version: metadata.resource_version,
            labels: serde_json::from_str(labels).map_err(|error| error.to_string())?,
            ..ObjectMeta::default()
        }))
    }
}

impl Resource for WireMeta {
    type DynamicType = KubeResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &KubeResource) -> Cow<'_, str> {
        DynamicObject::kind(of)
    }

    fn group(of: &KubeResource) -> Cow<'_, str> {
        DynamicObject::group(of)
    }

    fn version(of: &KubeResource) -> Cow<'_, str> {
        DynamicObject::version(of)
    }

    fn plural(of: &KubeResource) -> Cow<'_, str> {
        DynamicObject::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0
    }
}
