//! Targets of probes in the cluster: why a target is missing, and the inputs that evaluate an existing one.
//!
//! The code for targets in files (`probe::run`) evaluates them. This module passes it the inputs that files contain
//! and that must be read from a cluster.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::admissionregistration::v1::Mutation;
use serde_json::Value;

use super::super::context::Context;
use crate::controller::cluster::schemas::Schemas;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::cluster::{crds, definition};
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::subjects::params::Unavailable;
use crate::controller::subjects::probe::Probe;
use crate::controller::subjects::store::{Body, Entry};
use crate::policy::admission::Admission;
use crate::policy::admission::mutation::MutatingAdmission;
use crate::policy::compile::CompiledPolicy;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::probe::custom_resource::Definition;
use crate::schema::crd::{Crd, CrdVersion};
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::{Builtin, Gvk};

/// The most definitions that are read for the probes of a policy.
const MAX_DEFINITIONS: usize = 16;

/// Why there is no policy for a probe.
pub(super) enum Missing {
    /// It is not known yet whether there is; there is a sign when it is.
    Unknown,
    /// There is none.
    Absent(String),
    /// The controller does not follow such objects: why, and what to do.
    NotFollowed(String),
}

/// The reason why the subject that probes name is missing.
pub(super) fn missing(context: &Context, id: &SubjectId, probes: &[Arc<Probe>]) -> Missing {
    let Some(target) = probes.iter().find_map(|probe| probe.spec.target.as_ref()) else {
        return Missing::Absent(format!("there is no ValidatingAdmissionPolicy {id}"));
    };
    let Some(state) = context.opt_in.of(id.kind) else {
        return Missing::NotFollowed(format!(
            "it is about the {target}, which the controller does not decide; run it with `kubectl vap test`"
        ));
    };
    if !context.settings.followed.contains(&id.kind) {
        return Missing::NotFollowed(format!(
            "it is about the {target}, and the controller does not follow these: start it with `--follow {}` (the \
             component of that name, or the Helm value `follow`), or run the probe with `kubectl vap test`",
            id.kind.plural()
        ));
    }
    match state.obstacle() {
        Some(why) => Missing::NotFollowed(format!("it is about the {target}, and {why}")),
        None if state.is_known() => Missing::Absent(format!("there is no {target}")),
        None => Missing::Unknown,
    }
}

/// A policy, ready to decide.
pub(super) enum Ready {
    /// A validating one.
    Deciding(Arc<Admission>),
    /// A mutating one.
    Mutating(Arc<MutatingAdmission>),
}

impl Ready {
    /// The policy `entry`: as it was made ready before, where that was of this generation.
    pub(super) fn new(context: &Context, entry: &Entry) -> Self {
        let policy = &*entry.policy;
        let Some(Body::Mutating {
            mutations,
            reinvocation,
        }) = &entry.body
        else {
            return Self::Deciding(context.admissions.get(policy).unwrap_or_else(|| {
                context.metrics.policy_compiled();
                context.admissions.put(policy, Admission::new(policy))
            }));
        };
        Self::Mutating(context.admissions.mutating(entry, || {
            context.metrics.policy_compiled();
            let mutations: &[Mutation] = mutations;
            let compiled = CompiledPolicy::of_parts(policy, Some(mutations));
            let reinvocation = reinvocation.as_deref();
            MutatingAdmission::from_compiled(&compiled, mutations.len(), reinvocation)
        }))
    }

    /// The part that all policies have.
    pub(super) fn admission(&self) -> &Admission {
        match self {
            Self::Deciding(admission) => admission,
            Self::Mutating(policy) => policy.admission(),
        }
    }
}

/// The webhook of a configuration that a probe names, ready to decide.
///
/// # Errors
/// The reason why there is none.
pub(super) fn webhook(entry: &Entry, probe: &Probe) -> Result<Admission, String> {
    let target = probe.spec.target.as_ref();
    let Some(wanted) = target.and_then(|target| target.webhook.as_deref()) else {
        return Err("its target names no webhook: add `webhook`".to_owned());
    };
    let mut webhooks = entry.webhooks().iter();
    let named = webhooks.find(|webhook| webhook.metadata.name.as_deref() == Some(wanted));
    named
        .map(Admission::new)
        .ok_or_else(|| format!("the configuration has no webhook {wanted}"))
}

/// The kinds of Kubernetes' own APIs, read where a probe asks for them first.
pub(super) fn builtin() -> Option<&'static Builtin> {
    static BUILTIN: OnceLock<Option<Builtin>> = OnceLock::new();
    BUILTIN.get_or_init(|| Builtin::load().ok()).as_ref()
}

/// The schemas of the cluster, with the definitions of custom kinds.
#[derive(Debug)]
pub(super) struct WithDefinitions<'a> {
    schemas: &'a Schemas,
    definitions: &'a [Crd],
}

impl<'a> WithDefinitions<'a> {
    pub(super) const fn new(schemas: &'a Schemas, definitions: &'a [Crd]) -> Self {
        Self {
            schemas,
            definitions,
        }
    }
}

impl SchemaResolver for WithDefinitions<'_> {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        self.schemas.resolve(gvk)
    }

    fn custom(&self, gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        let mut definitions = self.definitions.iter();
        let of_kind = |crd: &&Crd| crd.group == gvk.group && crd.kind == gvk.kind;
        let crd = definitions.find(of_kind)?;
        let mut versions = crd.versions.iter();
        Some((crd, versions.find(|version| version.name == gvk.version)?))
    }
}

/// Returns the names of the definitions of the custom kinds of the cases: objects are completed by them, and merged.
///
/// # Errors
/// If there are too many.
pub(super) fn definition_names(
    entry: &Entry,
    probes: &[Arc<Probe>],
    snapshot: &ClusterSnapshot,
) -> Result<BTreeSet<String>, Unavailable> {
    if entry.kind().row().bindings.is_none() {
        return Ok(BTreeSet::new());
    }
    let kinds = probes.iter().flat_map(|probe| &probe.spec.kinds);
    let kinds: BTreeSet<&Gvk> = kinds.collect();
    let names = kinds.into_iter().filter_map(|gvk| {
        let (name, _) = crds::defining(&snapshot.crds, &gvk.group, &gvk.kind)?;
        Some(name.clone())
    });
    let names: BTreeSet<String> = names.collect();
    if names.len() > MAX_DEFINITIONS {
        return Err(Unavailable::lasting(format!(
            "its probes have objects of {} custom kinds, but the limit is {MAX_DEFINITIONS}",
            names.len()
        )));
    }
    Ok(names)
}

/// CustomResourceDefinitions as text.
#[derive(Debug, Default)]
pub(super) struct PackedDefinitions {
    texts: Vec<(String, Box<str>)>,
    /// Bytes that they need when they are parsed.
    pub(super) unpacked_bytes: usize,
}

impl PackedDefinitions {
    /// Parses the definitions.
    ///
    /// # Errors
    /// If one cannot be parsed.
    pub(super) fn unpack(&self) -> Result<Vec<Crd>, String> {
        let crd = |(name, text): &(String, Box<str>)| {
            let value: Result<Value, _> = serde_json::from_str(text);
            let crd = value.map_err(|error| error.to_string());
            let crd =
                crd.and_then(|value| Crd::from_value(&value).map_err(|error| error.to_string()));
            crd.map_err(|error| {
                format!("the CustomResourceDefinition {name} cannot be read: {error}")
            })
        };
        self.texts.iter().map(crd).collect()
    }
}

/// Reads the definitions of these names.
///
/// # Errors
/// The reason why they cannot be read.
pub(super) async fn definitions(
    context: &Context,
    names: Result<BTreeSet<String>, Unavailable>,
) -> Result<PackedDefinitions, Unavailable> {
    let mut definitions = PackedDefinitions::default();
    let mut n_bytes = 0_usize;
    for name in names? {
        let Some(text) = read(context, &name).await? else {
            continue;
        };
        n_bytes = n_bytes.saturating_add(text.len());
        if n_bytes > memory::MAX_DEFINITIONS_OF_POLICY {
            return Err(Unavailable::lasting(format!(
                "the CustomResourceDefinitions of the objects of its probes are larger than {} together, which is the \
                 limit",
                mebibytes(memory::MAX_DEFINITIONS_OF_POLICY)
            )));
        }
        let unpacked_bytes = memory::unpacked_bytes(&text);
        definitions.unpacked_bytes = definitions.unpacked_bytes.saturating_add(unpacked_bytes);
        definitions.texts.push((name, text));
    }
    Ok(definitions)
}

/// The CustomResourceDefinition `entry`, where it is one, as it was known when its probes were to be run.
///
/// It is stored, so that no API server refuses it.
///
/// # Errors
/// The reason why it is not available.
pub(super) async fn definition(
    context: &Context,
    entry: &Entry,
) -> Result<Option<Definition>, Unavailable> {
    if entry.kind() != SubjectKind::CustomResourceDefinition {
        return Ok(None);
    }
    let name = entry.policy.metadata.name.as_deref().unwrap_or_default();
    let Some(text) = read(context, name).await? else {
        return Err(changing(name));
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if definition::is_of(&value, &entry.policy.metadata) => Ok(Some(Definition {
            value,
            rejection: None,
        })),
        _ => Err(changing(name)),
    }
}

fn changing(name: &str) -> Unavailable {
    Unavailable::passing(format!(
        "the CustomResourceDefinition {name} is being changed"
    ))
}

/// Reads a definition as text.
///
/// # Errors
/// The reason why it cannot be read, or that it needs too much memory.
async fn read(context: &Context, name: &str) -> Result<Option<Box<str>>, Unavailable> {
    let definition = definition::read_text(&context.client, name).await;
    let text = definition.map_err(|error| {
        Unavailable::passing(format!(
            "the CustomResourceDefinition {name} cannot be read now: {error}"
        ))
    })?;
    if let Some(n_bytes) = text.as_deref().map(memory::unpacked_bytes)
        && n_bytes > memory::MAX_OBJECT
    {
        return Err(Unavailable::lasting(format!(
            "the CustomResourceDefinition {name} needs {} of memory, but the limit is {}; run the probe with \
             `kubectl vap test`",
            mebibytes(n_bytes),
            mebibytes(memory::MAX_OBJECT)
        )));
    }
    Ok(text)
}
