//! Collects the inputs of a policy's probes, and reads their params.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::ParamRef;
use serde_json::Value;

use super::super::context::Context;
use super::super::probes::{About, Inputs};
use super::rights;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::process::memory;
use crate::controller::subjects::generation::Generation;
use crate::controller::subjects::params::{Key, Listing, Referrer, Unavailable};
use crate::controller::subjects::probe::Probe;
use crate::controller::subjects::store::Entry;
use crate::controller::watch::binding_state::{Bindings, bindings_of, param_resource};
use crate::controller::watch::params;
use crate::policy::admission::{Object, ParamList, Selector};
use crate::policy::subject::SubjectId;
use crate::probe::api::{BindingSource, Source as From};
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{GroupVersion, Gvk};
use crate::status::bindings::BindingsState;
use crate::status::message;

/// The maximum number of params that are read for a policy's probes.
const MAX_PARAMS: usize = 500;

/// The timeout of reading the params of a policy's probes.
const MAX_READING: Duration = Duration::from_secs(20);

/// The maximum number of concurrent reads.
const MAX_AT_ONCE: usize = 8;

pub(super) fn collect(
    context: &Arc<Context>,
    entry: &Entry,
    probes: &[Arc<Probe>],
    snapshot: &ClusterSnapshot,
) -> Inputs {
    let (id, param_kind) = (&entry.id, entry.subject.param_kind());
    let bindings = bindings_of(context, id).map_err(|state| match state {
        BindingsState::NotPermitted => Unavailable::lasting(
            "the controller is not permitted to read bindings; see the policy's condition Bound",
        ),
        _ => Unavailable::passing("the bindings have not been read yet"),
    });
    let params = match param_resource(param_kind.as_ref(), snapshot) {
        Some(resource) => wanted(context, id, resource, probes, bindings.as_ref()),
        None => match &param_kind {
            Some(gvk) => Err(Unavailable::lasting(format!(
                "paramKind {} is not served",
                message::kind(gvk)
            ))),
            None => Ok(Vec::new()),
        },
    };
    let mut group_versions: BTreeSet<GroupVersion> = probes
        .iter()
        .flat_map(|probe| probe.spec.group_versions.iter().cloned())
        .collect();
    group_versions.extend(param_kind.map(|gvk| gvk.group_version()));
    let of_probe = |probe: &Arc<Probe>| {
        let name = probe.metadata.name.clone().unwrap_or_default();
        (name, Generation::from_probe(probe))
    };
    Inputs {
        about: About {
            policy: entry.generation(),
            probes: probes.iter().map(of_probe).collect(),
        },
        revision: snapshot.revision,
        bindings,
        params,
        schemas: context.schemas.cached(&group_versions, &snapshot.index),
    }
}

/// Reads the params of `inputs` from the cache or the API server.
///
/// # Errors
/// Returns the reason if the params are unknown.
pub(super) async fn read_params(
    inputs: &Inputs,
    context: &Arc<Context>,
    param_kind: Option<&Gvk>,
    snapshot: &ClusterSnapshot,
) -> Result<PackedParams, Unavailable> {
    let wanted = inputs.params.as_ref().map_err(Unavailable::clone)?;
    let Some(resource) = param_resource(param_kind, snapshot) else {
        return Ok(PackedParams::default());
    };
    let all = read(context, resource, wanted);
    match tokio::time::timeout(MAX_READING, all).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Unavailable::passing(format!(
            "the params were not read within {} s",
            MAX_READING.as_secs()
        ))),
    }
}

async fn read(
    context: &Arc<Context>,
    resource: &ApiResource,
    wanted: &[(Key, String)],
) -> Result<PackedParams, Unavailable> {
    let (mut n_bytes, mut unpacked_bytes) = (0_usize, 0_usize);
    let mut texts = Vec::with_capacity(wanted.len());
    let keys: Vec<Key> = wanted.iter().map(|(key, _)| key.clone()).collect();
    let mut all = stream::iter(keys)
        .map(|key| async move { context.params.read(&context.client, resource, &key).await })
        .buffered(MAX_AT_ONCE);
    while let Some(object) = all.try_next().await? {
        let Some(object) = object else { continue };
        n_bytes = n_bytes.saturating_add(object.text.len());
        unpacked_bytes = unpacked_bytes.saturating_add(object.unpacked_bytes);
        if n_bytes > memory::MAX_PARAMS_OF_POLICY {
            return Err(Unavailable::lasting(format!(
                "the total size of the params exceeds the limit of {} MiB; give the probe its own params (params: \
                 Inline)",
                memory::MAX_PARAMS_OF_POLICY >> 20
            )));
        }
        texts.push(object.text);
    }
    Ok(PackedParams {
        namespaced: resource.namespaced,
        texts,
        unpacked_bytes,
    })
}

/// Params as unparsed JSON.
#[derive(Debug, Default)]
pub(super) struct PackedParams {
    namespaced: bool,
    texts: Vec<Arc<str>>,
    /// The memory of the parsed params, in bytes.
    pub(super) unpacked_bytes: usize,
}

impl PackedParams {
    /// Parses the params.
    ///
    /// # Errors
    /// Returns an error message if an object is invalid.
    pub(super) fn unpack(&self) -> Result<ParamList, String> {
        let mut objects = Vec::with_capacity(self.texts.len());
        for text in &self.texts {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| format!("a param object cannot be parsed: {error}"))?;
            objects.push(Object::new(&value));
        }
        Ok(ParamList::new(self.namespaced, objects))
    }
}

/// Returns the params to which the bindings of `probes` refer, with their resource versions.
fn wanted(
    context: &Arc<Context>,
    policy: &SubjectId,
    resource: &ApiResource,
    probes: &[Arc<Probe>],
    bindings: Result<&Bindings, &Unavailable>,
) -> Result<Vec<(Key, String)>, Unavailable> {
    // Inline bindings are ignored here, since the API server has not checked that the author of the probe is allowed to
    // read their params.
    let from_cluster = probes.iter().find(|probe| {
        probe.spec.params == From::FromCluster && probe.spec.bindings == BindingSource::FromCluster
    });
    let mut references: Vec<ParamRef> = Vec::new();
    if let Some(probe) = from_cluster {
        let bindings = bindings.map_err(Unavailable::clone)?;
        if rights::params_denial(&probe.spec, bindings).is_none() {
            references.extend(
                bindings
                    .iter()
                    .filter_map(|binding| binding.spec.param_ref.clone()),
            );
        }
    }
    if references.is_empty() {
        context.params.forget(policy, Referrer::Probes);
        return Ok(Vec::new());
    }
    let by = (policy, Referrer::Probes);
    let objects = match params::referred(context, resource, by, &references) {
        Listing::Known(objects) => objects,
        Listing::Unread => return Err(Unavailable::passing("the params have not been read yet")),
        Listing::Refused(text) => return Err(Unavailable::lasting(text)),
        Listing::Failed(reason) => {
            let text = format!("the params cannot be read now: {reason}");
            return Err(Unavailable::passing(text));
        }
    };
    let mut wanted: BTreeSet<Key> = BTreeSet::new();
    for reference in &references {
        match (&reference.name, &reference.selector) {
            (Some(name), _) => {
                wanted.extend(objects.named(name));
            }
            (None, Some(selector)) => {
                if let Ok(selector) = Selector::new(selector) {
                    wanted.extend(objects.selected(&selector));
                }
            }
            (None, None) => {}
        }
    }
    if wanted.len() > MAX_PARAMS {
        return Err(Unavailable::lasting(format!(
            "the probe needs {} params, but at most {MAX_PARAMS} are allowed; give the probe its own \
             params (params: Inline)",
            wanted.len()
        )));
    }
    let version = |key: Key| {
        let meta = objects.get(&key);
        let version = meta.map(|meta| meta.resource_version);
        (key, version.unwrap_or_default())
    };
    Ok(wanted.into_iter().map(version).collect())
}
