//! The params that exist: a metadata watch for each paramKind in use.
//!
//! A watch begins when a policy refers to params of its kind, and ends some time after the last one
//! does not any more. Only metadata is kept; the object itself is read when a probe needs it.

mod objects;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ParamRef;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::DynamicObject;
use kube::core::{ApiResource as KubeResource, DynamicResourceScope};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::objects::{Changed, References};
pub(crate) use self::objects::{Objects, Referrer};
use super::context::Context;
use super::follow::{Event, Follower, follow};
use super::list_watch::{Form, Listing as ListingOrder, Plan, full_name};
use super::memory::{self, mebibytes};
use super::readiness::certain_after;
use crate::cluster::error::Error;
use crate::cluster::error::within;
use crate::cluster::http;
use crate::policy::admission::Labels;
use crate::policy::subject::SubjectId;
use crate::schema::Gvk;
use crate::schema::rest_mapper::ApiResource;
use crate::telemetry::metrics::{ErrorReason, Source};

/// How many objects a list gives at once.
const PAGE_SIZE: u32 = 500;

/// How long reading one object may take.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The namespace and name of an object; the namespace of what has none is empty.
pub(crate) type Key = (String, String);

/// The parts of an object that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) labels: Labels,
    pub(crate) resource_version: String,
}

/// Knowledge about the objects of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) enum Listing {
    /// They were not listed yet.
    #[default]
    Unread,
    /// We may not list them; the text says what is missing.
    Refused(String),
    /// They could not be listed, for this reason.
    Failed(String),
    /// These are all; what becomes of them shows there.
    Known(Arc<Objects>),
}

/// The watches, by kind.
#[derive(Debug, Default)]
pub(crate) struct Params {
    kinds: Mutex<BTreeMap<Gvk, Kind>>,
}

#[derive(Debug)]
struct Kind {
    resource: ApiResource,
    listing: Listing,
    /// Objects that were read.
    objects: HashMap<Key, Read>,
    references: References,
    n_unreadable: usize,
    task: AbortHandle,
}

/// An object that was read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    version: String,
    /// The object as JSON.
    pub(crate) text: Arc<str>,
    /// Bytes that it needs when it is parsed.
    pub(crate) unpacked_bytes: usize,
}

/// Why something that a probe needs cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    /// A sentence on it.
    pub(crate) text: String,
    /// True if that may change by waiting alone.
    pub(crate) is_transient: bool,
}

impl Unavailable {
    pub(crate) fn passing(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_transient: true,
        }
    }

    pub(crate) fn lasting(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_transient: false,
        }
    }
}

impl Drop for Kind {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Params {
    /// Returns the objects of the kind that `resource` serves, as far as they are known; starts a watch
    /// if there is none.
    fn listing(&self, context: &Arc<Context>, resource: &ApiResource) -> Listing {
        let mut kinds = self.lock();
        if let Some(kind) = kinds.get(&resource.gvk)
            && kind.resource.gvr == resource.gvr
            && kind.resource.namespaced == resource.namespaced
        {
            return kind.listing.clone();
        }
        let supervisor = context.supervisor.clone();
        let watch = watch(Arc::clone(context), resource.clone());
        let task = tokio::spawn(async move { supervisor.supervised("watch-params", watch).await });
        kinds.insert(
            resource.gvk.clone(),
            Kind {
                resource: resource.clone(),
                listing: Listing::Unread,
                objects: HashMap::new(),
                references: References::default(),
                n_unreadable: 0,
                task: task.abort_handle(),
            },
        );
        Listing::Unread
    }

    /// Returns the objects to which `references` of a policy refer, and all others of their kind, as
    /// far as they are known; starts a watch if there is none. The policy is put into the queue when
    /// the objects that it refers to change.
    pub(crate) fn referred<'a>(
        &self,
        context: &Arc<Context>,
        resource: &ApiResource,
        (policy, referrer): (&SubjectId, Referrer),
        references: impl IntoIterator<Item = &'a ParamRef>,
    ) -> Listing {
        let listing = self.listing(context, resource);
        let mut kinds = self.lock();
        for (gvk, kind) in kinds.iter_mut() {
            if *gvk != resource.gvk {
                kind.references.remove(policy, referrer);
            }
        }
        // From here on each change is told, so that what is looked at after this is not outdated unnoticed.
        if let Some(kind) = kinds.get_mut(&resource.gvk) {
            kind.references
                .set(policy, referrer, references, resource.namespaced);
        }
        listing
    }

    /// Forgets what a policy refers to.
    pub(crate) fn forget(&self, policy: &SubjectId, referrer: Referrer) {
        for kind in self.lock().values_mut() {
            kind.references.remove(policy, referrer);
        }
    }

    /// Puts the policies into the queue that refer to objects that are others.
    fn touch(&self, context: &Context, gvk: &Gvk, changed: &[Changed]) {
        let touched = {
            let mut kinds = self.lock();
            let Some(kind) = kinds.get_mut(gvk) else {
                return;
            };
            let gone = changed.iter().filter(|changed| changed.new.is_none());
            gone.for_each(|changed| drop(kind.objects.remove(&changed.key)));
            kind.references.touched_by(changed)
        };
        for policy in touched {
            context.queue.add(&policy);
        }
    }

    /// Ends the watches of all kinds but these.
    pub(crate) fn retain(&self, context: &Context, in_use: &BTreeSet<Gvk>) {
        let mut kinds = self.lock();
        kinds.retain(|gvk, _| in_use.contains(gvk));
        let n_unreadable = kinds.values().map(|kind| kind.n_unreadable).sum();
        context.metrics.set_unreadable(Source::Params, n_unreadable);
    }

    /// Reads an object that is listed, unless it was read before and has not changed since.
    ///
    /// # Errors
    /// Why it could not be read.
    pub(crate) async fn read(
        &self,
        context: &Context,
        resource: &ApiResource,
        key: &Key,
    ) -> Result<Option<Read>, Unavailable> {
        {
            let kinds = self.lock();
            let kind = kinds.get(&resource.gvk);
            let listed = kind.and_then(|kind| match &kind.listing {
                Listing::Known(objects) => objects.get(key),
                _ => None,
            });
            let known = kind.and_then(|kind| kind.objects.get(key));
            if let (Some(listed), Some(known)) = (listed, known)
                && known.version == listed.resource_version
            {
                return Ok(Some(known.clone()));
            }
        }
        let (namespace, name) = key;
        let path = path(resource, namespace, name);
        let document = http::get(&context.client, &path, "application/json", None);
        let document = match within(READ_TIMEOUT, document).await {
            Ok(document) => document,
            Err(error) if error.reason() == ErrorReason::NotFound => return Ok(None),
            Err(error) => {
                let reason = error.reason();
                let is_lasting = matches!(reason, ErrorReason::Forbidden | ErrorReason::Decode);
                return Err(Unavailable {
                    text: unreadable(resource, "get", &error),
                    is_transient: !is_lasting,
                });
            }
        };
        let body = document.map(|document| document.body).unwrap_or_default();
        let full_name = full_name(Some(namespace), Some(name));
        let (version, text) = read_param(&body).map_err(|error| {
            Unavailable::lasting(format!("{full_name} cannot be read: {error}"))
        })?;
        drop(body);
        let unpacked_bytes = memory::unpacked_bytes(&text);
        if unpacked_bytes > memory::MAX_OBJECT {
            return Err(Unavailable::lasting(format!(
                "{} {full_name} needs {} of memory, and {} are the limit: split it, or give the probe params of its own \
                 (params: Inline)",
                resource_name(resource),
                mebibytes(unpacked_bytes),
                mebibytes(memory::MAX_OBJECT)
            )));
        }
        let read = Read {
            version,
            text: text.into(),
            unpacked_bytes,
        };
        let mut kinds = self.lock();
        let bytes_of =
            |kind: &Kind| -> usize { kind.objects.values().map(|read| read.text.len()).sum() };
        let n_bytes: usize = kinds.values().map(bytes_of).sum();
        if n_bytes.saturating_add(read.text.len()) > memory::MAX_PARAMS
            && let Some(largest) = kinds.values_mut().max_by_key(|kind| bytes_of(kind))
        {
            largest.objects.clear();
        }
        let n_bytes: usize = kinds.values().map(bytes_of).sum();
        if n_bytes.saturating_add(read.text.len()) <= memory::MAX_PARAMS
            && let Some(kind) = kinds.get_mut(&resource.gvk)
        {
            kind.objects.insert(key.clone(), read.clone());
        }
        Ok(Some(read))
    }

    /// Notes how many objects of a kind cannot be read.
    fn set_unreadable(&self, context: &Context, gvk: &Gvk, n: usize) {
        let mut kinds = self.lock();
        if let Some(kind) = kinds.get_mut(gvk) {
            kind.n_unreadable = n;
        }
        let n_all = kinds.values().map(|kind| kind.n_unreadable).sum();
        context.metrics.set_unreadable(Source::Params, n_all);
    }

    fn set(&self, gvk: &Gvk, listing: Listing) {
        if let Some(kind) = self.lock().get_mut(gvk) {
            kind.listing = listing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Gvk, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Returns the path of an object.
fn path(resource: &ApiResource, namespace: &str, name: &str) -> String {
    let namespace = Some(namespace).filter(|of| resource.namespaced && !of.is_empty());
    let path = DynamicObject::url_path(&kube_resource(resource), namespace);
    format!("{path}/{name}")
}

/// Reads the version of an object without parsing the rest, and returns it with the text.
///
/// # Errors
/// If it is no object.
fn read_param(body: &[u8]) -> Result<(String, String), serde_json::Error> {
    #[derive(Deserialize)]
    struct Outline {
        #[serde(default)]
        metadata: Option<Metadata>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Metadata {
        resource_version: Option<String>,
    }
    let outline: Outline = serde_json::from_slice(body)?;
    let version = outline.metadata.unwrap_or_default().resource_version;
    // JSON is UTF-8.
    let text = String::from_utf8_lossy(body).into_owned();
    Ok((version.unwrap_or_default(), text))
}

/// Returns the advice about params that cannot be read.
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
    let plan = Plan {
        path: DynamicObject::url_path(&kube_resource(&resource), None),
        form: Form::Metadata,
        // An aggregated API server may be older than streamed lists, and then answers with a watch alone.
        listing: ListingOrder::Paged(PAGE_SIZE),
        life: context.settings.watch_timeout,
        // Only some metadata is parsed.
        max_unpacked: usize::MAX,
    };
    let name = resource_name(&resource);
    let mut of_kind = OfKind {
        context: &context,
        resource: &resource,
        building: BTreeMap::new(),
        known: Arc::default(),
        is_known: false,
        trouble: Trouble::default(),
    };
    follow(&context, (&name, name.clone()), plan, &mut of_kind).await;
}

/// Who follows the objects of a kind.
struct OfKind<'a> {
    context: &'a Arc<Context>,
    resource: &'a ApiResource,
    /// Objects of a list that is not complete yet.
    building: BTreeMap<Key, Meta>,
    known: Arc<Objects>,
    is_known: bool,
    trouble: Trouble,
}

impl OfKind<'_> {
    /// Tells those who refer to objects that are others. The API server answers for this kind: what is known
    /// stands, also where nothing has changed.
    fn tell(&mut self, changed: &[Changed], was_known: bool) {
        let (context, gvk) = (self.context, &self.resource.gvk);
        let was_hidden = self.trouble.end(context, self.resource);
        if self.is_known && (!was_known || was_hidden) {
            self.publish(Listing::Known(Arc::clone(&self.known)));
        } else {
            context.params.touch(context, gvk, changed);
        }
    }

    fn publish(&self, listing: Listing) {
        let gvk = &self.resource.gvk;
        self.context.params.set(gvk, listing);
        self.context.touch_params(gvk);
    }
}

impl Follower<ReceivedMeta> for OfKind<'_> {
    fn event(&mut self, event: Event<ReceivedMeta>) {
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
        self.tell(&changed, was_known);
    }

    fn alive(&mut self) {
        self.context.metrics.synced(Source::Params);
        self.tell(&[], self.is_known);
    }

    fn failed(&mut self, error: &Error) {
        let (context, resource) = (self.context, self.resource);
        let news = self.trouble.note(context, resource, error, self.is_known);
        if let Some(listing) = news {
            self.publish(listing);
        }
    }

    fn unreadable(&mut self, n: usize) {
        let gvk = &self.resource.gvk;
        self.context.params.set_unreadable(self.context, gvk, n);
    }
}

/// The key of an object by its name, with its namespace before it where it has one.
fn key_of(name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    (namespace.to_owned(), name.to_owned())
}

/// Problem with the watch of a kind.
#[derive(Debug, Default)]
struct Trouble {
    refused_since: Option<Instant>,
    /// Problem that was reported in place of the objects.
    told: Option<String>,
}

impl Trouble {
    /// Notes a failure; what it makes of the listing, where that is news.
    ///
    /// What was listed before stands, until it is certain that we may not list it any more.
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
            let text = format!("we may not list {name}: {}", grant(&name));
            if context.log_throttle.is_due(&throttle_key(&name)) {
                tracing::error!("{text}; retrying until then");
            }
            Listing::Refused(text)
        } else {
            if self.told.is_none() {
                self.refused_since = None;
            }
            if is_known {
                return None;
            }
            Listing::Failed(text)
        };
        let told = match &listing {
            Listing::Refused(text) | Listing::Failed(text) => Some(text.clone()),
            Listing::Unread | Listing::Known(_) => None,
        };
        let is_news = told != self.told;
        self.told = told;
        is_news.then_some(listing)
    }

    /// Notes that the watch works; whether something else was said than what is known.
    fn end(&mut self, context: &Context, resource: &ApiResource) -> bool {
        let name = resource_name(resource);
        if context.log_throttle.end(&throttle_key(&name)) {
            tracing::info!(what = name, "watch recovered");
        }
        self.refused_since = None;
        self.told.take().is_some()
    }
}

/// Returns the key by which problems with the params of a kind are logged.
fn throttle_key(name: &str) -> String {
    format!("params {name}")
}

fn described(object: &ReceivedMeta) -> (Key, Meta) {
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
struct ReceivedMeta(ObjectMeta);

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

impl TryFrom<MetaObject> for ReceivedMeta {
    type Error = String;

    fn try_from(object: MetaObject) -> Result<Self, String> {
        let metadata = object.metadata.unwrap_or_default();
        let labels = metadata.labels.as_deref().map_or("null", RawValue::get);
        if labels.len() > memory::MAX_PARAM_LABELS {
            return Err(format!(
                "its labels have {} KiB, and {} KiB are the limit",
                labels.len() >> 10,
                memory::MAX_PARAM_LABELS >> 10
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

impl Resource for ReceivedMeta {
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
