//! Targets of probes in the cluster: those that are not there, and what it takes to decide of those that are.
//!
//! A target is decided by the code that decides it in files (`probe::run`). What is here gives that code what files have
//! and a cluster is asked for.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::admissionregistration::v1::Mutation;
use serde_json::Value;

use super::super::cluster_snapshot::ClusterSnapshot;
use super::super::context::Context;
use super::super::crds;
use super::super::followed::{self, definitions};
use super::super::params::Unavailable;
use super::super::probe::Probe;
use super::super::schemas::Schemas;
use super::super::store::{Body, Entry};
use crate::policy::admission::mutation::MutatingAdmission;
use crate::policy::admission::{Admission, Object};
use crate::policy::compile::CompiledPolicy;
use crate::probe::custom_resource::Definition;
use crate::schema::crd::{Crd, CrdVersion};
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::{Builtin, Gvk};
use crate::status::compute::Subject;

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

/// Why there is nothing of that key that probes name.
pub(super) fn missing(context: &Context, key: &str, probes: &[Arc<Probe>]) -> Missing {
    let Some(target) = probes.iter().find_map(|probe| probe.spec.target.as_ref()) else {
        return Missing::Absent(format!("there is no ValidatingAdmissionPolicy {key}"));
    };
    let Some(followed) = followed::of_key(key) else {
        return Missing::NotFollowed(format!(
            "it is about the {target}, which the controller does not decide; run it with `kubectl vap test`"
        ));
    };
    if !context.settings.followed.contains(&followed) {
        return Missing::NotFollowed(format!(
            "it is about the {target}, and the controller does not follow these: start it with `--follow {}` (the \
             component of that name, or the Helm value `follow`), or run the probe with `kubectl vap test`",
            followed.resource()
        ));
    }
    let state = context.followed.of(followed);
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
/// Why there is none.
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

/// The definitions of the custom kinds of the cases, where it takes them: an object is completed by them, and merged.
///
/// # Errors
/// Why they cannot be read.
pub(super) async fn definitions(
    context: &Context,
    entry: &Entry,
    probes: &[Arc<Probe>],
    snapshot: &ClusterSnapshot,
) -> Result<Vec<Crd>, Unavailable> {
    if !matches!(entry.subject(), Subject::Validating | Subject::Mutating) {
        return Ok(Vec::new());
    }
    let cases = probes.iter().flat_map(|probe| &probe.spec.cases);
    let objects = cases.flat_map(|case| [&case.request.object, &case.request.old_object]);
    let kinds: BTreeSet<Gvk> = objects
        .flatten()
        .map(|object| Object::new(object).gvk().clone())
        .collect();
    let names = kinds.iter().filter_map(|gvk| {
        let (name, _) = crds::defining(&snapshot.crds, &gvk.group, &gvk.kind)?;
        Some(name.as_str())
    });
    let names: BTreeSet<&str> = names.collect();
    if names.len() > MAX_DEFINITIONS {
        return Err(Unavailable::lasting(format!(
            "its probes have objects of {} custom kinds, and {MAX_DEFINITIONS} are the limit",
            names.len()
        )));
    }
    let mut definitions = Vec::with_capacity(names.len());
    for name in names {
        let Some(value) = read(context, name).await? else {
            continue;
        };
        match Crd::from_value(&value) {
            Ok(crd) => definitions.push(crd),
            Err(error) => {
                let text = format!("the CustomResourceDefinition {name} cannot be read: {error}");
                return Err(Unavailable::lasting(text));
            }
        }
    }
    Ok(definitions)
}

/// The CustomResourceDefinition `entry`, where it is one, as it was known when its probes were to be run.
///
/// It is stored, so that no API server refuses it.
///
/// # Errors
/// Why it cannot be had.
pub(super) async fn definition(
    context: &Context,
    entry: &Entry,
) -> Result<Option<Definition>, Unavailable> {
    if entry.subject() != Subject::Definition {
        return Ok(None);
    }
    let name = entry.policy.metadata.name.as_deref().unwrap_or_default();
    match read(context, name).await? {
        Some(value) if definitions::is_of(&value, entry) => Ok(Some(Definition {
            value,
            refusal: None,
        })),
        _ => Err(Unavailable::passing(format!(
            "the CustomResourceDefinition {name} is being changed"
        ))),
    }
}

async fn read(context: &Context, name: &str) -> Result<Option<Value>, Unavailable> {
    let definition = definitions::read(context, name).await;
    definition.map_err(|error| {
        Unavailable::passing(format!(
            "the CustomResourceDefinition {name} cannot be read now: {error}"
        ))
    })
}
