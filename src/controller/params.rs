//! The params that exist: a metadata watch for each paramKind in use.
//!
//! A watch begins when a policy refers to params of its kind, and ends some time after the last one
//! does not any more. Only metadata is kept; the object itself is read when a probe needs it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::core::ApiResource as KubeResource;
use kube::{Api, ResourceExt};
use kube_runtime::watcher::{self, Config, Event, watcher};
use serde_json::Value;
use tokio::task::AbortHandle;

use super::context::Context;
use super::error::{Error, describe, within};
use crate::policy::admission::{Labels, Selector};
use crate::schema::Gvk;
use crate::schema::rest_mapper::ApiResource;
use crate::telemetry::metrics::ErrorReason;

/// How long one watch request lives, in seconds.
const WATCH_SECONDS: u32 = 120;

/// The pause after the first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// How long reading one object may take.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The namespace and name of an object; the namespace of what has none is empty.
pub(crate) type Key = (String, String);

/// What is kept of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) labels: Labels,
    pub(crate) resource_version: String,
}

/// What is known of the objects of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) enum Listing {
    /// They were not listed yet.
    #[default]
    Unread,
    /// We may not list them; the text says what is missing.
    Refused(String),
    /// They could not be listed, for this reason.
    Failed(String),
    /// These are all.
    Known(Arc<BTreeMap<Key, Meta>>),
}

/// The watches, by kind.
#[derive(Debug, Default)]
pub(crate) struct Params {
    kinds: Mutex<HashMap<Gvk, Kind>>,
}

#[derive(Debug)]
struct Kind {
    resource: ApiResource,
    listing: Listing,
    /// Objects that were read, by their resource version.
    objects: HashMap<Key, (String, Arc<Value>)>,
    task: AbortHandle,
}

impl Drop for Kind {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Params {
    /// What is known of the objects of the kind that `resource` serves; begins to watch them if nobody
    /// did.
    pub(crate) fn listing(&self, context: &Arc<Context>, resource: &ApiResource) -> Listing {
        let mut kinds = self.lock();
        if let Some(kind) = kinds.get(&resource.gvk)
            && kind.resource.gvr == resource.gvr
            && kind.resource.namespaced == resource.namespaced
        {
            return kind.listing.clone();
        }
        let task = tokio::spawn(watch(Arc::clone(context), resource.clone()));
        kinds.insert(
            resource.gvk.clone(),
            Kind {
                resource: resource.clone(),
                listing: Listing::Unread,
                objects: HashMap::new(),
                task: task.abort_handle(),
            },
        );
        Listing::Unread
    }

    /// Ends the watches of all kinds but these.
    pub(crate) fn retain(&self, in_use: &BTreeSet<Gvk>) {
        self.lock().retain(|gvk, _| in_use.contains(gvk));
    }

    /// Reads an object that is listed, unless it was read before and has not changed since.
    ///
    /// # Errors
    /// A sentence on why it could not be read.
    pub(crate) async fn read(
        &self,
        context: &Context,
        resource: &ApiResource,
        key: &Key,
    ) -> Result<Option<Arc<Value>>, String> {
        {
            let kinds = self.lock();
            let kind = kinds.get(&resource.gvk);
            let listed = kind.and_then(|kind| match &kind.listing {
                Listing::Known(known) => known.get(key),
                _ => None,
            });
            let known = kind.and_then(|kind| kind.objects.get(key));
            if let (Some(listed), Some((version, object))) = (listed, known)
                && *version == listed.resource_version
            {
                return Ok(Some(Arc::clone(object)));
            }
        }
        let (namespace, name) = key;
        let api = api(context, resource, Some(namespace));
        let object = match within(READ_TIMEOUT, api.get(name)).await {
            Ok(object) => object,
            Err(error) if error.reason() == ErrorReason::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(resource, "get", &error)),
        };
        let version = object.resource_version().unwrap_or_default();
        let value = serde_json::to_value(object)
            .map_err(|error| format!("{namespace}/{name} cannot be read: {error}"))?;
        let value = Arc::new(value);
        if let Some(kind) = self.lock().get_mut(&resource.gvk) {
            kind.objects
                .insert(key.clone(), (version, Arc::clone(&value)));
        }
        Ok(Some(value))
    }

    fn set(&self, gvk: &Gvk, listing: Listing) {
        if let Some(kind) = self.lock().get_mut(gvk) {
            if let Listing::Known(known) = &listing {
                kind.objects.retain(|key, _| known.contains_key(key));
            }
            kind.listing = listing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Gvk, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys of `known` that `selector` and `namespace` select; `None` is any namespace.
pub(crate) fn selected<'a>(
    known: &'a BTreeMap<Key, Meta>,
    namespace: Option<&'a str>,
    selector: &'a Selector,
) -> impl Iterator<Item = &'a Key> {
    known
        .iter()
        .filter(move |((of, _), meta)| {
            namespace.is_none_or(|namespace| of == namespace) && selector.matches(&meta.labels)
        })
        .map(|(key, _)| key)
}

fn kube_resource(resource: &ApiResource) -> KubeResource {
    KubeResource {
        group: resource.gvr.group.clone(),
        version: resource.gvr.version.clone(),
        api_version: resource.gvr.group_version().to_string(),
        kind: resource.gvk.kind.clone(),
        plural: resource.gvr.resource.clone(),
    }
}

fn metadata_api(
    context: &Context,
    resource: &ApiResource,
) -> Api<PartialObjectMeta<DynamicObject>> {
    Api::all_with(context.client.clone(), &kube_resource(resource))
}

fn api(context: &Context, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    let of = kube_resource(resource);
    match namespace {
        Some(namespace) if resource.namespaced && !namespace.is_empty() => {
            Api::namespaced_with(context.client.clone(), namespace, &of)
        }
        _ => Api::all_with(context.client.clone(), &of),
    }
}

/// What to do about params that cannot be read.
fn unreadable(resource: &ApiResource, verb: &str, error: &Error) -> String {
    let name = resource_name(resource);
    if error.reason() == ErrorReason::Forbidden {
        return format!("cannot {verb} {name} ({error}): {}", grant(&name));
    }
    format!("cannot {verb} {name}: {error}")
}

fn resource_name(resource: &ApiResource) -> String {
    if resource.gvr.group.is_empty() {
        resource.gvr.resource.clone()
    } else {
        format!("{}.{}", resource.gvr.resource, resource.gvr.group)
    }
}

fn grant(name: &str) -> String {
    format!(
        "grant get, list and watch on {name} by a ClusterRole with the label \
         vap-status.dev/aggregate-to-controller: \"true\""
    )
}

/// Watches the objects of a kind until the task is aborted.
async fn watch(context: Arc<Context>, resource: ApiResource) {
    let gvk = &resource.gvk;
    let config = Config::default().timeout(WATCH_SECONDS);
    let mut pause = PAUSES.0;
    let mut events = pin!(watcher(metadata_api(&context, &resource), config));
    let mut building: BTreeMap<Key, Meta> = BTreeMap::new();
    let mut known: Arc<BTreeMap<Key, Meta>> = Arc::default();
    let mut is_known = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => {
                building.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                let (key, meta) = described(&object);
                building.insert(key, meta);
                continue;
            }
            Ok(Event::InitDone) => {
                pause = PAUSES.0;
                let listed = std::mem::take(&mut building);
                if is_known && *known == listed {
                    continue;
                }
                known = Arc::new(listed);
                is_known = true;
            }
            Ok(Event::Apply(object)) => {
                pause = PAUSES.0;
                let (key, meta) = described(&object);
                Arc::make_mut(&mut known).insert(key, meta);
            }
            Ok(Event::Delete(object)) => {
                pause = PAUSES.0;
                let (key, _) = described(&object);
                Arc::make_mut(&mut known).remove(&key);
            }
            Err(error) => {
                // What was listed before stands: an API server that starts refuses everybody for a moment.
                if let Some(listing) = failure(&resource, &error, is_known) {
                    context.params.set(gvk, listing);
                    context.touch_params(gvk);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
                continue;
            }
        }
        context.params.set(gvk, Listing::Known(Arc::clone(&known)));
        context.touch_params(gvk);
    }
}

/// What a failure of the watch makes of the listing; `None` where nothing changes.
fn failure(resource: &ApiResource, error: &watcher::Error, is_known: bool) -> Option<Listing> {
    let (forbidden, text) = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => (
            matches!(error, kube::Error::Api(status) if status.code == 403),
            describe(error),
        ),
        watcher::Error::WatchError(status) => (status.code == 403, status.message.clone()),
        watcher::Error::NoResourceVersion => (false, error.to_string()),
    };
    if is_known {
        return None;
    }
    if forbidden {
        let name = resource_name(resource);
        return Some(Listing::Refused(format!(
            "we may not list {name}: {}",
            grant(&name)
        )));
    }
    Some(Listing::Failed(text))
}

fn described(object: &PartialObjectMeta<DynamicObject>) -> (Key, Meta) {
    let key = (object.namespace().unwrap_or_default(), object.name_any());
    let meta = Meta {
        labels: object.labels().clone(),
        resource_version: object.resource_version().unwrap_or_default(),
    };
    (key, meta)
}
