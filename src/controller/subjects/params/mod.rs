//! The existing param objects by kind, and the policies that refer to them.
//!
//! Only metadata is stored. A probe that needs an object reads the whole object.

mod objects;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ParamRef;
use kube::api::DynamicObject;
use kube::core::ApiResource as KubeResource;
use kube::{Client, Resource};
use serde::Deserialize;
use tokio::task::AbortHandle;

use self::objects::References;
pub(crate) use self::objects::{Changed, Key, Meta, Objects, Referrer};
use super::packed::full_name;
use crate::cluster::error::{Error, within};
use crate::cluster::http;
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::process::queue::Queue;
use crate::policy::subject::SubjectId;
use crate::schema::Gvk;
use crate::schema::rest_mapper::ApiResource;
use crate::telemetry::Metrics;
use crate::telemetry::metrics::{ErrorReason, Source};

/// The timeout for reading one object.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(crate) enum Listing {
    #[default]
    Unread,
    /// The controller has no permission to list the objects. The message names the missing permission.
    Refused(String),
    /// Listing failed, for this reason.
    Failed(String),
    /// All objects. The watch updates them.
    Known(Arc<Objects>),
}

/// The watches of param objects, by kind.
#[derive(Debug, Default)]
pub(crate) struct Params {
    kinds: Mutex<BTreeMap<Gvk, Kind>>,
}

#[derive(Debug)]
struct Kind {
    resource: ApiResource,
    listing: Listing,
    /// Cached objects with their content.
    objects: HashMap<Key, Read>,
    references: References,
    n_unreadable: usize,
    task: AbortHandle,
}

/// A cached object with its content.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    version: String,
    pub(crate) text: Arc<str>,
    /// The estimated memory of the parsed object, in bytes.
    pub(crate) unpacked_bytes: usize,
}

/// Why an input of a probe is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unavailable {
    /// The reason, as shown in the status of the probe.
    pub(crate) text: String,
    /// True if a retry may succeed.
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
    /// Returns the listed objects of the kind of `resource`. If the kind is not watched, starts a watch.
    fn listing(
        &self,
        resource: &ApiResource,
        start_watch: impl FnOnce() -> AbortHandle,
    ) -> Listing {
        let mut kinds = self.lock();
        if let Some(kind) = kinds.get(&resource.gvk)
            && kind.resource.gvr == resource.gvr
            && kind.resource.namespaced == resource.namespaced
        {
            return kind.listing.clone();
        }
        kinds.insert(
            resource.gvk.clone(),
            Kind {
                resource: resource.clone(),
                listing: Listing::Unread,
                objects: HashMap::new(),
                references: References::default(),
                n_unreadable: 0,
                task: start_watch(),
            },
        );
        Listing::Unread
    }

    /// Returns the listed objects of the kind of `resource`, and records the `references` of a policy to them. If the
    /// kind is not watched, starts a watch. The policy is queued when the referenced objects change.
    pub(crate) fn referred<'a>(
        &self,
        resource: &ApiResource,
        (policy, referrer): (&SubjectId, Referrer),
        references: impl IntoIterator<Item = &'a ParamRef>,
        start_watch: impl FnOnce() -> AbortHandle,
    ) -> Listing {
        let listing = self.listing(resource, start_watch);
        let mut kinds = self.lock();
        for (gvk, kind) in kinds.iter_mut() {
            if *gvk != resource.gvk {
                kind.references.remove(policy, referrer);
            }
        }
        // The references are recorded before the caller reads the objects. So each later change queues the policy.
        if let Some(kind) = kinds.get_mut(&resource.gvk) {
            kind.references
                .set(policy, referrer, references, resource.namespaced);
        }
        listing
    }

    /// Removes the references of a policy that have the origin `referrer`.
    pub(crate) fn forget(&self, policy: &SubjectId, referrer: Referrer) {
        for kind in self.lock().values_mut() {
            kind.references.remove(policy, referrer);
        }
    }

    /// Queues the policies that refer to the `changed` objects. Removes deleted objects from the cache.
    pub(crate) fn touch(&self, queue: &Queue, gvk: &Gvk, changed: &[Changed]) {
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
            queue.add(&policy);
        }
    }

    /// Ends the watches of kinds that are not in `in_use`.
    pub(crate) fn retain(&self, metrics: &Metrics, in_use: &BTreeSet<Gvk>) {
        let mut kinds = self.lock();
        kinds.retain(|gvk, _| in_use.contains(gvk));
        let n_unreadable = kinds.values().map(|kind| kind.n_unreadable).sum();
        metrics.set_unreadable(Source::Params, n_unreadable);
    }

    /// Returns the object `key` with its content. Uses the cache if the object is unchanged, or else the API server.
    /// `None` if the object does not exist.
    ///
    /// # Errors
    /// Returns the reason if the object cannot be read or needs too much memory.
    pub(crate) async fn read(
        &self,
        client: &Client,
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
            let cached = kind.and_then(|kind| kind.objects.get(key));
            if let (Some(listed), Some(cached)) = (listed, cached)
                && cached.version == listed.resource_version
            {
                return Ok(Some(cached.clone()));
            }
        }
        let (namespace, name) = key;
        let path = path(resource, namespace, name);
        let document = http::get(client, &path, "application/json", None);
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
            Unavailable::lasting(format!("{full_name} cannot be parsed: {error}"))
        })?;
        drop(body);
        let unpacked_bytes = memory::unpacked_bytes(&text);
        if unpacked_bytes > memory::MAX_OBJECT {
            return Err(Unavailable::lasting(format!(
                "{} {full_name} needs {} of memory, but the limit is {}: split it, or give the probe its own params \
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

    /// Records the number of unreadable objects of a kind.
    pub(crate) fn set_unreadable(&self, metrics: &Metrics, gvk: &Gvk, n: usize) {
        let mut kinds = self.lock();
        if let Some(kind) = kinds.get_mut(gvk) {
            kind.n_unreadable = n;
        }
        let n_all = kinds.values().map(|kind| kind.n_unreadable).sum();
        metrics.set_unreadable(Source::Params, n_all);
    }

    pub(crate) fn set(&self, gvk: &Gvk, listing: Listing) {
        if let Some(kind) = self.lock().get_mut(gvk) {
            kind.listing = listing;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Gvk, Kind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn kube_resource(resource: &ApiResource) -> KubeResource {
    KubeResource {
        group: resource.gvr.group.clone(),
        version: resource.gvr.version.clone(),
        api_version: resource.gvr.group_version().to_string(),
        kind: resource.gvk.kind.clone(),
        plural: resource.gvr.resource.clone(),
    }
}

/// Returns the URL path of an object.
fn path(resource: &ApiResource, namespace: &str, name: &str) -> String {
    let namespace = Some(namespace).filter(|of| resource.namespaced && !of.is_empty());
    let path = DynamicObject::url_path(&kube_resource(resource), namespace);
    format!("{path}/{name}")
}

/// Returns the resource version and the JSON of an object. Does not parse other fields.
///
/// # Errors
/// Returns an error if `body` is not a JSON object.
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
    // JSON is UTF-8, so this conversion replaces no characters.
    let text = String::from_utf8_lossy(body).into_owned();
    Ok((version.unwrap_or_default(), text))
}

/// Returns the message about params that cannot be read, with a hint if a permission is missing.
fn unreadable(resource: &ApiResource, verb: &str, error: &Error) -> String {
    let name = resource_name(resource);
    if error.reason() == ErrorReason::Forbidden {
        return format!("cannot {verb} {name} ({error}): {}", grant(&name));
    }
    format!("cannot {verb} {name}: {error}")
}

pub(crate) fn resource_name(resource: &ApiResource) -> String {
    if resource.gvr.group.is_empty() {
        resource.gvr.resource.clone()
    } else {
        format!("{}.{}", resource.gvr.resource, resource.gvr.group)
    }
}

pub(crate) fn grant(name: &str) -> String {
    format!(
        "grant get, list and watch on {name} by a ClusterRole with the label \
         vap-status.dev/aggregate-to-controller: \"true\""
    )
}
