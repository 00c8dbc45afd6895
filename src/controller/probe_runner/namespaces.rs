//! The namespaces that probes depend on, read once a minute however many probes name them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use super::super::error::{Error, within};
use super::super::http;
use super::super::params::Unavailable;
use super::super::store::Entry;
use crate::policy::admission::{Namespace, NamespaceSource};
use crate::probe::api::{BindingSource, Case, PolicyProbeSpec};
use crate::telemetry::metrics::ErrorReason;

/// How long reading one namespace may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long it counts that a namespace could not be read.
const MAX_FAILURE_AGE: Duration = Duration::from_secs(5);

/// How many namespaces are kept.
const MAX_KEPT: usize = 1_000;

/// How many are read at once for one policy.
const MAX_AT_ONCE: usize = 8;

/// The label that the API server sets on each namespace to its name.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/v1/defaults.go`, `SetDefaults_Namespace`.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The state of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// It cannot be read.
    Unreadable,
    /// There is none of that name.
    Missing,
    /// Its resource version.
    Of(String),
}

impl Version {
    pub(super) fn new(read: &Result<Option<Found>, Unavailable>) -> Self {
        match read {
            Ok(Some(found)) => Self::Of(found.version.clone()),
            Ok(None) => Self::Missing,
            Err(_) => Self::Unreadable,
        }
    }
}

/// The namespaces that were read.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    known: Mutex<BTreeMap<String, Arc<Slot>>>,
}

/// A namespace; who reads it holds the lock, so that nobody reads it as well.
#[derive(Debug, Default)]
struct Slot {
    read: tokio::sync::Mutex<Option<Read>>,
}

/// Result of reading a namespace.
#[derive(Clone, Debug)]
struct Read {
    at: Instant,
    found: Result<Option<Found>, Unavailable>,
}

/// A namespace as it was read.
#[derive(Clone, Debug)]
pub(super) struct Found {
    version: String,
    namespace: Namespace,
}

impl Namespaces {
    /// The namespace `name`, not older than `max_age`; `None` where it does not exist.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) async fn get(
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
        let found = fetch(client, name).await;
        *read = Some(Read {
            at: Instant::now(),
            found: found.clone(),
        });
        drop(read);
        self.forget_oldest();
        found
    }

    /// Forgets some of those that were read longest ago, where too many are kept.
    fn forget_oldest(&self) {
        let mut known = self.lock();
        if known.len() <= MAX_KEPT {
            return;
        }
        let read_at = |slot: &Slot| {
            let read = slot.read.try_lock().ok()?;
            read.as_ref().map(|read| read.at)
        };
        let ages = known.iter();
        let mut ages: Vec<(Instant, String)> = ages
            .filter_map(|(name, slot)| Some((read_at(slot)?, name.clone())))
            .collect();
        ages.sort();
        for (_, name) in ages.into_iter().take(MAX_KEPT / 10) {
            known.remove(&name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Slot>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a namespace.
///
/// As a value: one of any shape is a namespace, as far as selectors and expressions look at it.
async fn fetch(client: &Client, name: &str) -> Result<Option<Found>, Unavailable> {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(is_in_name) {
        // There is no namespace of a name that is not valid.
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
    let value = serde_json::from_slice(&body);
    let mut value: Value = value.map_err(|error| failed(&Error::Decode(error.to_string())))?;
    let version = value.pointer("/metadata/resourceVersion");
    let version = version.and_then(Value::as_str).unwrap_or_default();
    let version = version.to_owned();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "Namespace".into());
    }
    Ok(Some(Found {
        version,
        namespace: Namespace::new(&value),
    }))
}

/// The namespaces that the probes of one policy are evaluated with.
#[derive(Debug, Default)]
pub(super) struct Given {
    read: BTreeMap<String, Result<Option<Found>, Unavailable>>,
    /// Why one that was looked up cannot be told.
    failure: Mutex<Option<String>>,
}

impl Given {
    /// Reads those of `names`.
    pub(super) async fn read(
        namespaces: &Namespaces,
        client: &Client,
        names: BTreeSet<String>,
        max_age: Duration,
    ) -> Self {
        let read = stream::iter(names)
            .map(|name| async move {
                let found = namespaces.get(client, &name, max_age).await;
                (name, found)
            })
            .buffer_unordered(MAX_AT_ONCE)
            .collect()
            .await;
        Self {
            read,
            failure: Mutex::default(),
        }
    }

    /// Namespaces that are not read, for this reason.
    pub(super) fn refused(names: &BTreeSet<String>, why: &str) -> Self {
        let refused = |name: &String| (name.clone(), Err(Unavailable::lasting(why)));
        Self {
            read: names.iter().map(refused).collect(),
            failure: Mutex::default(),
        }
    }

    /// The state of each.
    pub(super) fn versions(&self) -> BTreeMap<String, Version> {
        let all = self.read.iter();
        all.map(|(name, found)| (name.clone(), Version::new(found)))
            .collect()
    }

    /// Reports whether a namespace could not be read that may be readable in a moment.
    pub(super) fn is_transient(&self) -> bool {
        let mut failures = self.read.values().filter_map(|found| found.as_ref().err());
        failures.any(|why| why.is_transient)
    }

    /// Why a namespace that was looked up since this was asked last cannot be told.
    pub(super) fn take_failure(&self) -> Option<String> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

impl NamespaceSource for Given {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        match self.read.get(name)? {
            Ok(found) => Some(found.as_ref()?.namespace.clone()),
            Err(why) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                *failure = Some(why.text.clone());
                None
            }
        }
    }
}

/// The namespaces of the cluster that the results of a probe depend on: none, where neither the policy nor a
/// binding looks at namespaces.
pub(super) fn needed<'a>(
    entry: &Entry,
    bindings: impl IntoIterator<Item = &'a ValidatingAdmissionPolicyBinding>,
    probe: &PolicyProbeSpec,
) -> BTreeSet<String> {
    let selects = |resources: Option<&MatchResources>| resources.is_some_and(selects_namespaces);
    let needs = looks_at_namespaces(&entry.policy)
        || (entry.body.as_ref()).is_some_and(|body| body.looks_at_namespaces(looks_at_namespaces))
        || match probe.bindings {
            BindingSource::FromCluster => {
                (bindings.into_iter()).any(|binding| selects(binding.spec.match_resources.as_ref()))
            }
            BindingSource::Inline => {
                (probe.inline_bindings.iter()).any(|spec| selects(spec.match_resources.as_ref()))
            }
            BindingSource::Implied => false,
        };
    let cases = needs.then_some(&probe.cases).into_iter().flatten();
    cases.filter_map(namespace_of).map(str::to_owned).collect()
}

/// The namespace of a request that does not bring it along. One without a namespace may be for an object
/// that has one, and is in `default` then.
pub(super) fn namespace_of(case: &Case) -> Option<&str> {
    let request = &case.request;
    if request.namespace_object.is_some() {
        return None;
    }
    let object = request.object.as_ref().or(request.old_object.as_ref());
    let text = |pointer| {
        let text = object?.pointer(pointer)?.as_str()?;
        (!text.is_empty()).then_some(text)
    };
    let is_namespace = text("/kind") == Some("Namespace");
    let named = request.namespace.as_deref().filter(|name| !name.is_empty());
    let of_object = || text("/metadata/namespace");
    let itself = || {
        let name = request.name.as_deref().or_else(|| text("/metadata/name"));
        name.filter(|_| is_namespace)
    };
    named.or_else(of_object).or_else(itself).or(Some("default"))
}

/// Reports whether a selector of `policy` or one of its expressions looks at namespaces.
fn looks_at_namespaces(policy: &ValidatingAdmissionPolicy) -> bool {
    let Some(spec) = &policy.spec else {
        return false;
    };
    let constraints = spec.match_constraints.as_ref();
    if constraints.is_some_and(selects_namespaces) {
        return true;
    }
    let validations = spec.validations.iter().flatten();
    let validations = validations.flat_map(|validation| {
        let message = validation.message_expression.as_ref();
        std::iter::once(&validation.expression).chain(message)
    });
    let variables = spec.variables.iter().flatten();
    let conditions = spec.match_conditions.iter().flatten();
    let annotations = spec.audit_annotations.iter().flatten();
    validations
        .chain(variables.map(|variable| &variable.expression))
        .chain(conditions.map(|condition| &condition.expression))
        .chain(annotations.map(|annotation| &annotation.value_expression))
        .any(|text| text.contains("namespaceObject"))
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
