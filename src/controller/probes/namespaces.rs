//! A cache of the namespaces that probes use. Each namespace is read about once per minute for all probes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, Mutation, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::cluster::error::{Error, within};
use crate::cluster::http;
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::subjects::params::Unavailable;
use crate::controller::subjects::probe::StoredSpec;
use crate::controller::subjects::store::Entry;
use crate::policy::RequestPolicy;
use crate::policy::admission::{Namespace, NamespaceSource};
use crate::probe::api::BindingSource;
use crate::telemetry::metrics::ErrorReason;

/// The timeout of reading one namespace.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a failed read of a namespace is cached.
const MAX_FAILURE_AGE: Duration = Duration::from_secs(5);

/// The maximum number of cached namespaces.
const MAX_KEPT: usize = 1_000;

/// The maximum number of concurrent reads for one policy.
const MAX_AT_ONCE: usize = 8;

/// The label that the API server sets on each namespace. Its value is the name of the namespace.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/v1/defaults.go`, `SetDefaults_Namespace`.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The state of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The namespace cannot be read.
    Unreadable,
    /// The namespace does not exist.
    Missing,
    /// The namespace exists with this resource version.
    Of(String),
}

impl Version {
    pub(crate) fn new(read: &Result<Option<Found>, Unavailable>) -> Self {
        match read {
            Ok(Some(found)) => Self::Of(found.version.clone()),
            Ok(None) => Self::Missing,
            Err(_) => Self::Unreadable,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    known: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// A cached namespace. Its lock is held during a read, so that concurrent callers cause only one read.
#[derive(Debug, Default)]
struct Slot {
    read: tokio::sync::Mutex<Option<Read>>,
}

#[derive(Clone, Debug)]
struct Read {
    at: Instant,
    found: Result<Option<Found>, Unavailable>,
}

/// A stored namespace, as unparsed JSON.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    version: String,
    text: Arc<str>,
}

impl Found {
    /// Parses the namespace. Returns `None` if it is invalid.
    fn unpack(&self) -> Option<Namespace> {
        let value: Value = serde_json::from_str(&self.text).ok()?;
        Some(Namespace::new(&value))
    }
}

impl Namespaces {
    /// Returns the namespace `name` from the cache if its age is at most `max_age`, or else from the API server. `None`
    /// if it does not exist.
    ///
    /// # Errors
    /// Returns the reason if the namespace cannot be read.
    pub(crate) async fn get(
        &self,
        client: &Client,
        name: &str,
        max_age: Duration,
    ) -> Result<Option<Found>, Unavailable> {
        let slot = Arc::clone(self.lock().entry(name.to_owned()).or_default());
        let mut read = slot.read.lock().await;
        if let Some(read) = &*read {
            let limit = match &read.found {
                Ok(_) => max_age,
                Err(_) => max_age.min(MAX_FAILURE_AGE),
            };
            if read.at.elapsed() < limit {
                return read.found.clone();
            }
        }
        let namespace = fetch(client, name).await;
        *read = Some(Read {
            at: Instant::now(),
            found: namespace.clone(),
        });
        drop(read);
        self.forget_oldest();
        namespace
    }

    /// If too many namespaces are cached, removes the namespaces that were read longest ago.
    fn forget_oldest(&self) {
        let mut cached = self.lock();
        let state_of = |slot: &Slot| {
            let read = slot.read.try_lock().ok()?;
            let read = read.as_ref()?;
            let n_bytes = match &read.found {
                Ok(Some(found)) => found.text.len(),
                Ok(None) => 0,
                Err(why) => why.text.len(),
            };
            Some((read.at, n_bytes))
        };
        let slots = cached.iter();
        let mut slots: Vec<(Instant, usize, String)> = slots
            .filter_map(|(name, slot)| {
                let (at, n_bytes) = state_of(slot)?;
                Some((at, n_bytes, name.clone()))
            })
            .collect();
        let mut n_bytes: usize = slots.iter().map(|(_, n_bytes, _)| n_bytes).sum();
        if cached.len() <= MAX_KEPT && n_bytes <= memory::MAX_NAMESPACES {
            return;
        }
        slots.sort();
        let least = MAX_KEPT - MAX_KEPT / 10;
        for (_, of_slot, name) in slots {
            if cached.len() <= least && n_bytes <= memory::MAX_NAMESPACES {
                break;
            }
            cached.remove(&name);
            n_bytes = n_bytes.saturating_sub(of_slot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Slot>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a namespace from the API server. `None` if it does not exist.
///
/// Only the fields for selectors and expressions are parsed, so other fields may be invalid.
async fn fetch(client: &Client, name: &str) -> Result<Option<Found>, Unavailable> {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(is_in_name) {
        // A namespace with an invalid name cannot exist.
        return Ok(None);
    }
    let failed = |error: &Error| {
        if error.reason() == ErrorReason::Forbidden {
            return Unavailable::lasting(format!(
                "the namespace {name} cannot be read ({error}): grant get on namespaces in the \
                 ClusterRole vap-status-controller, or give the case a namespaceObject"
            ));
        }
        Unavailable::passing(format!("the namespace {name} cannot be read now: {error}"))
    };
    let path = format!("/api/v1/namespaces/{name}");
    let document = http::get(client, &path, "application/json", None);
    let body = match within(TIMEOUT, document).await {
        Ok(document) => document.map(|document| document.body).unwrap_or_default(),
        Err(error) if error.reason() == ErrorReason::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let received: Received<'_> =
        serde_json::from_slice(&body).map_err(|error| failed(&Error::Decode(error.to_string())))?;
    let text = received
        .visible()
        .map_err(|error| failed(&Error::Decode(error.to_string())))?;
    let unpacked_bytes = memory::unpacked_bytes(&text);
    if unpacked_bytes > memory::MAX_NAMESPACE {
        return Err(Unavailable::lasting(format!(
            "the namespace {name} needs {} of memory, but the limit is {}: give the case a namespaceObject",
            mebibytes(unpacked_bytes),
            mebibytes(memory::MAX_NAMESPACE)
        )));
    }
    Ok(Some(Found {
        version: received.version(),
        text: text.into(),
    }))
}

/// A namespace in a response. Its fields are unparsed JSON.
#[derive(Deserialize)]
struct Received<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

impl Received<'_> {
    fn version(&self) -> String {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Metadata {
            resource_version: Option<String>,
        }
        let metadata = self.metadata.map(|text| serde_json::from_str(text.get()));
        let metadata: Option<Metadata> = metadata.and_then(Result::ok);
        metadata
            .unwrap_or_default()
            .resource_version
            .unwrap_or_default()
    }

    /// Returns the JSON of the fields that expressions can read. Audit annotations can read all metadata.
    fn visible(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Written {
            api_version: "v1",
            kind: "Namespace",
            metadata: self.metadata,
            spec: self.spec,
            status: self.status,
        })
    }
}

/// The JSON in which a namespace is stored.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a RawValue>,
}

/// The namespaces for one evaluation of a policy's probes.
#[derive(Debug, Default)]
pub(crate) struct Given {
    read: BTreeMap<String, Result<Option<Found>, Unavailable>>,
    /// Why a requested namespace is unknown. [`Given::take_failure`] resets this field.
    failure: Mutex<Option<String>>,
    /// The namespace that was parsed last.
    last: Mutex<Option<(String, Namespace)>>,
}

impl Given {
    /// Returns the namespaces `names` from the cache if their age is at most `max_age`, or else from the API server.
    pub(crate) async fn read(
        namespaces: &Namespaces,
        client: &Client,
        names: BTreeSet<String>,
        max_age: Duration,
    ) -> Self {
        let mut all = stream::iter(names)
            .map(|name| async move {
                let fetched = namespaces.get(client, &name, max_age).await;
                (name, fetched)
            })
            .buffered(MAX_AT_ONCE);
        let mut read = BTreeMap::new();
        let mut n_bytes = 0_usize;
        while let Some((name, mut fetched)) = all.next().await {
            if let Ok(Some(namespace)) = &fetched {
                n_bytes = n_bytes.saturating_add(namespace.text.len());
                if n_bytes > memory::MAX_NAMESPACES_OF_POLICY {
                    fetched = Err(Unavailable::lasting(format!(
                        "the total size of the namespaces of the probes exceeds the limit of {}: give the case a \
                         namespaceObject",
                        mebibytes(memory::MAX_NAMESPACES_OF_POLICY)
                    )));
                }
            }
            read.insert(name, fetched);
        }
        Self {
            read,
            ..Self::default()
        }
    }

    /// Returns an instance in which the namespaces `names` are unavailable, for the reason `why`.
    pub(crate) fn refused(names: &BTreeSet<String>, why: &str) -> Self {
        let refused = |name: &String| (name.clone(), Err(Unavailable::lasting(why)));
        Self {
            read: names.iter().map(refused).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn versions(&self) -> BTreeMap<String, Version> {
        let all = self.read.iter();
        all.map(|(name, found)| (name.clone(), Version::new(found)))
            .collect()
    }

    /// Returns true if a namespace is temporarily unreadable.
    pub(crate) fn is_transient(&self) -> bool {
        let mut failures = self.read.values().filter_map(|found| found.as_ref().err());
        failures.any(|why| why.is_transient)
    }

    /// Returns why a requested namespace is unknown, and resets the reason. `None` if no unknown namespace was
    /// requested since the last call.
    pub(crate) fn take_failure(&self) -> Option<String> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

impl NamespaceSource for Given {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        match self.read.get(name)? {
            Ok(fetched) => {
                let fetched = fetched.as_ref()?;
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((of, namespace)) = &*last
                    && of == name
                {
                    return Some(namespace.clone());
                }
                let namespace = fetched.unpack()?;
                *last = Some((name.to_owned(), namespace.clone()));
                Some(namespace)
            }
            Err(why) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(why.text.clone());
                None
            }
        }
    }
}

/// Returns the namespaces that affect the results of a probe. Empty if neither the policy nor a binding depends on
/// namespaces.
pub(crate) fn needed<'a>(
    entry: &Entry,
    bindings: impl IntoIterator<Item = &'a ValidatingAdmissionPolicyBinding>,
    probe: &StoredSpec,
) -> BTreeSet<String> {
    let selects = |resources: Option<&MatchResources>| resources.is_some_and(selects_namespaces);
    let mutations = entry.subject.mutations().unwrap_or_default();
    let needs =
        entry.subject.policies().iter().any(looks_at_namespaces)
            || mutations.iter().any(mutation_looks_at_namespaces)
            || match probe.bindings {
                BindingSource::FromCluster => (bindings.into_iter())
                    .any(|binding| selects(binding.spec.match_resources.as_ref())),
                BindingSource::Inline => (probe.inline_bindings.iter())
                    .any(|spec| selects(spec.match_resources.as_ref())),
                BindingSource::Implied => false,
            };
    let names = needs.then_some(&probe.namespaces).into_iter().flatten();
    names.cloned().collect()
}

/// Returns true if a selector or an expression of `policy` depends on namespaces.
fn looks_at_namespaces(policy: &RequestPolicy) -> bool {
    let constraints = policy.match_constraints.as_ref();
    if constraints.is_some_and(selects_namespaces) {
        return true;
    }
    let validations = policy.validations.iter();
    let validations = validations.flat_map(|validation| {
        let message = validation.message_expression.as_ref();
        std::iter::once(&validation.expression).chain(message)
    });
    let variables = policy.variables.iter();
    let conditions = policy.match_conditions.iter();
    let annotations = policy.audit_annotations.iter();
    validations
        .chain(variables.map(|variable| &variable.expression))
        .chain(conditions.map(|condition| &condition.expression))
        .chain(annotations.map(|annotation| &annotation.value_expression))
        .any(|text| text.contains("namespaceObject"))
}

/// Returns true if the expression of `mutation` reads the namespace.
fn mutation_looks_at_namespaces(mutation: &Mutation) -> bool {
    let applied = mutation.apply_configuration.as_ref();
    let applied = applied.and_then(|applied| applied.expression.as_ref());
    let patch = mutation.json_patch.as_ref();
    let expression = applied.or_else(|| patch.and_then(|patch| patch.expression.as_ref()));
    expression.is_some_and(|text| text.contains("namespaceObject"))
}

/// Returns true if the namespace selector depends on more than the name of the namespace.
fn selects_namespaces(resources: &MatchResources) -> bool {
    let depends = |selector: &LabelSelector| {
        let labels = selector.match_labels.iter().flatten().map(|(key, _)| key);
        let expressions = selector.match_expressions.iter().flatten();
        labels
            .chain(expressions.map(|requirement| &requirement.key))
            .any(|key| key != NAME_LABEL)
    };
    resources.namespace_selector.as_ref().is_some_and(depends)
}
