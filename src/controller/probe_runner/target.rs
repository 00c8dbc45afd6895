//! Finds the targets of probes in the cluster, and reads the inputs for their evaluation.
//!
//! Shared code in `probe::run` evaluates the targets, whether they come from files or from a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::super::context::Context;
use crate::controller::cluster::schemas::Schemas;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::cluster::{crds, definition};
use crate::controller::process::memory::{self, mebibytes};
use crate::controller::subjects::params::Unavailable;
use crate::controller::subjects::probe::Probe;
use crate::controller::subjects::store::Entry;
use crate::controller::subjects::subject::Subject;
use crate::policy::RequestPolicy;
use crate::policy::admission::Admission;
use crate::policy::admission::mutation::MutatingAdmission;
use crate::policy::compile::CompiledPolicy;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::probe::custom_resource::Definition;
use crate::schema::Gvk;
use crate::schema::crd::{Crd, CrdVersion};
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::version::KubernetesVersion;

/// The maximum number of CustomResourceDefinitions that are read for a policy's probes.
const MAX_DEFINITIONS: usize = 16;

/// Why the target of a probe was not found.
pub(super) enum Missing {
    /// The controller does not know yet whether the target exists. When this is known, the probes are queued again.
    Unknown,
    /// The target does not exist.
    Absent(String),
    /// The controller does not watch the target's kind. The message states the reason and a remedy.
    NotFollowed(String),
}

/// Returns why the target of `probes` was not found.
pub(super) fn missing(context: &Context, id: &SubjectId, probes: &[Arc<Probe>]) -> Missing {
    let Some(target) = probes.iter().find_map(|probe| probe.spec.target.as_ref()) else {
        return Missing::Absent(format!("there is no ValidatingAdmissionPolicy {id}"));
    };
    let Some(state) = context.opt_in.state(id.kind) else {
        return Missing::NotFollowed(format!(
            "its target is the {target}, which the controller does not evaluate; run the probe with `kubectl vap test`"
        ));
    };
    if !context.settings.followed.contains(&id.kind) {
        return Missing::NotFollowed(format!(
            "its target is the {target}, and the controller does not watch this kind: start the controller with \
             `--follow {}` (the component of that name, or the Helm value `follow`), or run the probe with `kubectl \
             vap test`",
            id.kind.plural()
        ));
    }
    match state.obstacle() {
        Some(why) => Missing::NotFollowed(format!("its target is the {target}, and {why}")),
        None if state.is_known() => Missing::Absent(format!("there is no {target}")),
        None => Missing::Unknown,
    }
}

/// A compiled policy or webhook.
pub(super) enum PreparedPolicy {
    /// A validating policy or a webhook, which is evaluated in the form of a validating policy.
    Validating(Arc<Admission>),
    Mutating(Arc<MutatingAdmission>),
}

impl PreparedPolicy {
    /// Returns the compiled policy of `entry` from the cache, or compiles it.
    pub(super) fn new(context: &Context, entry: &Entry) -> Self {
        let version = context.snapshot().server.version;
        match &*entry.subject {
            Subject::ValidatingPolicy(policy) => {
                Self::Validating(context.admissions.get(entry, version).unwrap_or_else(|| {
                    context.metrics.policy_compiled();
                    context
                        .admissions
                        .put(entry, Admission::new(policy, version))
                }))
            }
            Subject::MutatingPolicy {
                policy,
                mutations,
                reinvocation_policy,
            } => Self::Mutating(context.admissions.mutating(entry, version, || {
                context.metrics.policy_compiled();
                let compiled = CompiledPolicy::from_parts(policy.clone(), Some(mutations), version);
                let reinvocation = reinvocation_policy.as_deref();
                MutatingAdmission::from_compiled(&compiled, mutations.len(), reinvocation)
            })),
            // This empty policy is a placeholder. Each probe of a webhook configuration is evaluated with the webhook
            // that it names.
            Subject::Webhooks(_) | Subject::CustomResourceDefinition(_) => {
                Self::Validating(Arc::new(Admission::new(RequestPolicy::default(), version)))
            }
        }
    }

    /// Returns the parts that validating and mutating policies share, such as match conditions, rules and bindings.
    pub(super) fn admission(&self) -> &Admission {
        match self {
            Self::Validating(admission) => admission,
            Self::Mutating(policy) => policy.admission(),
        }
    }
}

/// Compiles the webhook that `probe` names, from the configuration `entry`, for an API server of `version`.
///
/// # Errors
/// Returns an error message if the probe names no webhook, or the configuration has no webhook of that name.
pub(super) fn webhook(
    entry: &Entry,
    probe: &Probe,
    version: KubernetesVersion,
) -> Result<Admission, String> {
    let target = probe.spec.target.as_ref();
    let Some(name) = target.and_then(|target| target.webhook.as_deref()) else {
        return Err("its target has no field `webhook`: add the name of a webhook".to_owned());
    };
    let mut webhooks = entry.subject.webhooks().iter();
    let named = webhooks.find(|webhook| webhook.name.as_deref() == Some(name));
    named
        .map(|webhook| Admission::new(webhook, version))
        .ok_or_else(|| format!("the configuration has no webhook {name}"))
}

/// Resolves kinds with the schemas of the cluster, and custom kinds also with their CustomResourceDefinitions.
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

/// Returns the names of the CustomResourceDefinitions that define the custom kinds in the cases. The definitions are
/// needed to set defaults in objects and to merge objects.
///
/// # Errors
/// Returns an error if there are more than [`MAX_DEFINITIONS`] names.
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

/// CustomResourceDefinitions as unparsed JSON.
#[derive(Debug, Default)]
pub(super) struct PackedDefinitions {
    texts: Vec<(String, Box<str>)>,
    /// The memory of the parsed definitions, in bytes.
    pub(super) unpacked_bytes: usize,
}

impl PackedDefinitions {
    /// Parses the definitions.
    ///
    /// # Errors
    /// Returns an error message if a definition is invalid.
    pub(super) fn unpack(&self) -> Result<Vec<Crd>, String> {
        let crd = |(name, text): &(String, Box<str>)| {
            let value: Result<Value, _> = serde_json::from_str(text);
            let crd = value.map_err(|error| error.to_string());
            let crd =
                crd.and_then(|value| Crd::from_value(&value).map_err(|error| error.to_string()));
            crd.map_err(|error| {
                format!("the CustomResourceDefinition {name} cannot be parsed: {error}")
            })
        };
        self.texts.iter().map(crd).collect()
    }
}

/// Reads the CustomResourceDefinitions `names`. Omits missing ones.
///
/// # Errors
/// Returns the reason if they cannot be read or are too large.
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
                "the total size of the CustomResourceDefinitions of the objects in its probes exceeds the limit of {}",
                mebibytes(memory::MAX_DEFINITIONS_OF_POLICY)
            )));
        }
        let unpacked_bytes = memory::unpacked_bytes(&text);
        definitions.unpacked_bytes = definitions.unpacked_bytes.saturating_add(unpacked_bytes);
        definitions.texts.push((name, text));
    }
    Ok(definitions)
}

/// Reads the CustomResourceDefinition of `entry`, in the generation of `entry`. `None` if `entry` is not a
/// CustomResourceDefinition.
///
/// [`Definition::rejection`] is `None`, since the API server has accepted the definition.
///
/// # Errors
/// Returns the reason if the definition cannot be read, or if its generation is not that of `entry`.
pub(super) async fn definition(
    context: &Context,
    entry: &Entry,
) -> Result<Option<Definition>, Unavailable> {
    if entry.kind() != SubjectKind::CustomResourceDefinition {
        return Ok(None);
    }
    let name = &*entry.id.name;
    let Some(text) = read(context, name).await? else {
        return Err(changing(name));
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(value) if definition::is_of(&value, &entry.metadata()) => Ok(Some(Definition {
            value,
            rejection: None,
            version: context.snapshot().server.version,
        })),
        _ => Err(changing(name)),
    }
}

fn changing(name: &str) -> Unavailable {
    Unavailable::passing(format!(
        "the CustomResourceDefinition {name} is being changed"
    ))
}

/// Reads the JSON of the CustomResourceDefinition `name`. `None` if it does not exist.
///
/// # Errors
/// Returns the reason if it cannot be read or needs too much memory.
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
