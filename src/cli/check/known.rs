//! Provides the served APIs and their schemas: those of Kubernetes or of a cluster, and the CRDs of the input.
//!
//! This module makes no requests. Other modules read the data of a cluster.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;

use serde_json::Value;

use super::time_limit::Cancellation;
use crate::cli::input::Object;
use crate::cli::live::{PolicyBindings, Served};
use crate::policy;
use crate::policy::RequestPolicy;
use crate::policy::admission::mutation::{KindsOf, KnownTypes};
use crate::policy::matching;
use crate::policy::nearest::nearest_only;
use crate::policy::runtime_errors::ObjectCache;
use crate::schema::connect_options;
use crate::schema::crd::CrdVersion;
use crate::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Builtin, Crd, Gvk, Gvr, Interner, RestMapper, SchemaError};
use crate::status::bindings::BindingsState;
use crate::status::compute::{NotServed, ParamKindState, ParamsState};
use crate::status::message;
use crate::version::KubernetesVersion;

/// The reason why the resources of a group are unknown, as part of a condition's message.
const NO_CRD: &str = "the input has no CustomResourceDefinition for this group";

/// Maximum number of versions in a rule. In a rule with more, each unknown group gets one entry for all versions.
const MAX_VERSIONS: usize = 100;

/// The schemas and resources that policies are checked against. A clone shares the schemas and caches.
#[derive(Clone, Debug)]
pub struct Known {
    version: KubernetesVersion,
    /// True if the user selected the version.
    is_requested: bool,
    builtin: &'static Builtin,
    crds: Arc<[LazyCrd]>,
    /// For each kind, the index in `crds` of the first CRD that defines it.
    crd_kinds: Arc<HashMap<Gvk, usize>>,
    /// The served resources, and the unknown group versions in policies.
    pub mapper: RestMapper,
    /// The built-in groups, whose resources are all known.
    complete: Arc<BTreeSet<String>>,
    /// The APIs of a cluster. They replace the built-in APIs.
    cluster: Option<Arc<Served>>,
    /// Minimal and prepared objects that the search for runtime errors shares between policies.
    pub(in crate::cli) object_cache: Arc<ObjectCache>,
    /// The types that expressions of mutations have used, shared between policies.
    types: Arc<KnownTypes>,
    /// Cancels the checks that use these APIs.
    pub(in crate::cli) cancellation: Cancellation,
}

/// A CRD whose schemas are built on first use, since few CRDs of a directory are used.
#[derive(Debug)]
struct LazyCrd {
    crd: Crd,
    schemas: OnceLock<SchemaSet>,
}

impl LazyCrd {
    fn schemas(&self) -> &SchemaSet {
        self.schemas.get_or_init(|| {
            let mut schemas = SchemaSet::default();
            schemas.add_crd(&self.crd, &mut Interner::default());
            schemas
        })
    }
}

impl Known {
    /// Combines the built-in APIs of `version` and `crds`. Records the unknown group versions that `policies` refer to.
    /// Without a version, uses the newest version.
    ///
    /// # Errors
    /// Returns an error if the built-in schemas cannot be read.
    pub fn new<'a>(
        version: Option<KubernetesVersion>,
        crds: impl Iterator<Item = Crd>,
        policies: impl Iterator<Item = &'a RequestPolicy>,
    ) -> Result<Self, SchemaError> {
        let mut apis = Self::with_crds(version, crds, None)?;
        apis.mapper.incomplete = apis.unknown_group_versions(policies);
        Ok(apis)
    }

    /// Combines the APIs of a cluster and `crds`, which will be created in that cluster. `version` replaces the version of
    /// the cluster for expressions.
    ///
    /// # Errors
    /// Returns an error if the built-in schemas cannot be read.
    pub(in crate::cli) fn with_cluster(
        version: Option<KubernetesVersion>,
        crds: impl Iterator<Item = Crd>,
        cluster: Arc<Served>,
    ) -> Result<Self, SchemaError> {
        let incomplete = cluster.mapper.incomplete.clone();
        let mut apis = Self::with_crds(version, crds, Some(cluster))?;
        apis.mapper.incomplete = incomplete;
        Ok(apis)
    }

    /// Returns a copy of these APIs for the check of `policies`. It records the unknown group versions of these
    /// policies instead of the previous ones.
    #[must_use]
    pub(in crate::cli) fn for_policies<'a>(
        &self,
        policies: impl Iterator<Item = &'a RequestPolicy>,
    ) -> Self {
        let mut apis = self.clone();
        if apis.cluster.is_none() {
            apis.mapper.incomplete.clear();
            apis.mapper.incomplete = apis.unknown_group_versions(policies);
        }
        apis
    }

    /// Returns a copy of these APIs for an API server of a different version.
    ///
    /// # Errors
    /// Returns an error if the built-in schemas cannot be read.
    pub(in crate::cli) fn copy_for(&self, version: KubernetesVersion) -> Result<Self, SchemaError> {
        let crds = self.crds.iter().map(|lazy| lazy.crd.clone());
        let mut copy = Self::with_crds(Some(version), crds, self.cluster.clone())?;
        copy.mapper.incomplete.clone_from(&self.mapper.incomplete);
        Ok(copy)
    }

    /// Returns a copy of these APIs in which the CRDs with the indices `first` take precedence over other CRDs with the
    /// same names.
    ///
    /// # Errors
    /// Returns an error if the built-in schemas cannot be read.
    pub(super) fn with_first_crds(&self, first: &[usize]) -> Result<Self, SchemaError> {
        let chosen = first.iter().filter_map(|n| self.crds.get(*n));
        let indexed = self.crds.iter().enumerate();
        let others = indexed.filter(|(n, _)| !first.contains(n));
        let crds = chosen.chain(others.map(|(_, crd)| crd));
        let crds = crds.map(|lazy| lazy.crd.clone());
        let version = self.is_requested.then_some(self.version);
        let mut copy = Self::with_crds(version, crds, self.cluster.clone())?;
        copy.mapper.incomplete.clone_from(&self.mapper.incomplete);
        Ok(copy)
    }

    /// Returns a copy of these APIs in which the CRDs `corrected` replace those with the same resource, for the check of
    /// `policies`. If no CRD differs, the schemas and caches are shared.
    pub(super) fn with_corrected<'a>(
        &self,
        corrected: &[Object<Crd>],
        policies: impl Iterator<Item = &'a RequestPolicy>,
    ) -> Self {
        let replacement = |crd: &Crd| {
            let of_resource = |other: &&Object<Crd>| {
                other.value.group == crd.group && other.value.plural == crd.plural
            };
            let other = &corrected.iter().find(of_resource)?.value;
            (other.definition() != crd.definition()).then(|| other.clone())
        };
        let replacements: Vec<_> = self.crds.iter().map(|it| replacement(&it.crd)).collect();
        if replacements.iter().all(Option::is_none) {
            return self.for_policies(policies);
        }
        let crds = self.crds.iter().zip(replacements);
        let crds = crds.map(|(lazy, replacement)| replacement.unwrap_or_else(|| lazy.crd.clone()));
        let version = self.is_requested.then_some(self.version);
        match Self::with_crds(version, crds, self.cluster.clone()) {
            Ok(mut copy) => {
                copy.mapper.incomplete.clone_from(&self.mapper.incomplete);
                copy.for_policies(policies)
            }
            Err(_) => self.for_policies(policies),
        }
    }

    /// Returns the version of the API server for which expressions are checked.
    #[must_use]
    pub fn version(&self) -> KubernetesVersion {
        self.version
    }

    /// Returns true if the user selected the version of the API server.
    pub(super) fn is_requested(&self) -> bool {
        self.is_requested
    }

    fn with_crds(
        version: Option<KubernetesVersion>,
        crds: impl Iterator<Item = Crd>,
        cluster: Option<Arc<Served>>,
    ) -> Result<Self, SchemaError> {
        let of_cluster = cluster.as_ref().and_then(|cluster| cluster.version);
        let is_requested = version.is_some();
        let version = version.or(of_cluster).unwrap_or(KubernetesVersion::NEWEST);
        let builtin = Builtin::load(version)?;
        let mut lazy = Vec::new();
        let mut crd_kinds = HashMap::new();
        let mut resources = Vec::new();
        let own = builtin.resources().iter();
        let complete = own
            .map(|served| served.gvr.group.clone())
            .collect::<BTreeSet<_>>();
        if cluster.is_none() {
            resources.extend_from_slice(builtin.resources());
        }
        for crd in crds {
            resources.extend(crd.resources());
            for version in &crd.versions {
                for kind in [&crd.kind, &crd.list_kind] {
                    let gvk = Gvk::new(&crd.group, &version.name, kind);
                    crd_kinds.entry(gvk).or_insert(lazy.len());
                }
            }
            lazy.push(LazyCrd {
                crd,
                schemas: OnceLock::new(),
            });
        }
        // If several resources have the same name, the first takes precedence. CRDs of the input therefore replace
        // those of the cluster.
        let served = cluster.as_ref().map(|cluster| &cluster.mapper.resources);
        resources.extend(served.into_iter().flatten().cloned());
        Ok(Self {
            version,
            is_requested,
            builtin,
            crds: lazy.into(),
            crd_kinds: Arc::new(crd_kinds),
            mapper: RestMapper::new(resources),
            complete: Arc::new(complete),
            cluster,
            object_cache: Arc::default(),
            types: Arc::default(),
            cancellation: Cancellation::default(),
        })
    }

    /// Returns the built-in APIs of Kubernetes.
    #[must_use]
    pub fn builtin(&self) -> &'static Builtin {
        self.builtin
    }

    /// Returns the types of kinds, for expressions of mutations.
    pub(super) fn kinds(&self) -> KindsOf<'_, Self> {
        KindsOf::sharing(self.builtin, self, Arc::clone(&self.types))
    }

    /// Returns the version of Kubernetes, such as `1.36`. This is the version of the cluster or, without a cluster, of
    /// the built-in schemas.
    #[must_use]
    pub fn kubernetes(&self) -> &str {
        if let Some(cluster) = &self.cluster {
            return &cluster.kubernetes;
        }
        let version = self.builtin.kubernetes();
        version.rsplit_once('.').map_or(version, |(minor, _)| minor)
    }

    /// Returns true if all resources of the group are known, because the group is built in or the cluster lists them.
    /// Other groups may have CRDs that are not in the input.
    #[must_use]
    pub fn is_complete(&self, group: &str) -> bool {
        if self.cluster.is_none() {
            return self.complete.contains(group);
        }
        let mut unknown = self.mapper.incomplete.iter();
        !unknown.any(|(of, _)| of.split_once('/').is_some_and(|(of, _)| of == group))
    }

    /// Returns true if the APIs are those of a cluster.
    #[must_use]
    pub fn is_of_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// Returns true for a built-in kind.
    #[must_use]
    pub fn is_builtin(&self, gvk: &Gvk) -> bool {
        self.builtin.has(gvk) || connect_options::has(gvk)
    }

    /// Returns the OpenAPI schema of the kind, as its CRD or the cluster publishes it. `None` if neither a CRD nor the
    /// cluster has the kind.
    #[must_use]
    pub fn written_schema(&self, gvk: &Gvk) -> Option<&Value> {
        let Some(n) = self.crd_kinds.get(gvk) else {
            return self.cluster.as_ref()?.published(gvk);
        };
        let crd = &self.crds.get(*n)?.crd;
        let mut versions = crd.versions.iter();
        let version = versions.find(|version| version.name == gvk.version)?;
        version.schema.as_deref().filter(|_| crd.kind == gvk.kind)
    }

    /// Returns the groups of a rule that might have unknown resources.
    pub fn open_groups<'a>(
        &'a self,
        rule: &'a NamedRuleWithOperations,
    ) -> impl Iterator<Item = &'a str> {
        let groups = rule.api_groups.iter().flatten().map(String::as_str);
        groups.filter(|group| *group != "*" && !self.is_complete(group))
    }

    /// Returns the group versions of unknown resources and kinds that policies refer to, each with a reason.
    fn unknown_group_versions<'a>(
        &self,
        policies: impl Iterator<Item = &'a RequestPolicy>,
    ) -> Vec<(String, String)> {
        let mut unknown = BTreeSet::new();
        for policy in policies {
            if let ParamKindState::Undiscovered { gvk, .. } = self.param_kind_state(policy) {
                unknown.insert(gvk.api_version());
            }
            let mut of_rules = HashSet::new();
            for unserved in matching::resolve(policy, &self.mapper).unserved {
                let Some(rule) = rule(policy, unserved.index) else {
                    continue;
                };
                let is_known = unserved.is_misspelled || unserved.is_known;
                if is_known || !of_rules.insert(unserved.index) {
                    continue;
                }
                let versions: BTreeSet<_> = rule.api_versions.iter().flatten().collect();
                for group in self.open_groups(rule) {
                    if versions.len() > MAX_VERSIONS {
                        // An empty version means all versions.
                        unknown.insert(format!("{group}/"));
                        continue;
                    }
                    let versions = versions.iter();
                    unknown.extend(versions.map(|version| format!("{group}/{version}")));
                }
            }
        }
        let reason = |group_version| (group_version, NO_CRD.to_owned());
        unknown.into_iter().map(reason).collect()
    }

    fn bound(&self, policy: &RequestPolicy) -> Option<&PolicyBindings> {
        let name = policy.name.as_deref()?;
        self.cluster.as_ref()?.bound.get(name)
    }

    /// Returns the state of the bindings of `policy` in the cluster. Without a cluster, the state is
    /// [`BindingsState::Unread`].
    #[must_use]
    pub fn bindings_state(&self, policy: &RequestPolicy) -> BindingsState {
        let bound = self.bound(policy).map(|bound| bound.bindings.clone());
        bound.unwrap_or(BindingsState::Unread)
    }

    /// Returns the state of the paramKind of `policy`.
    #[must_use]
    pub fn param_kind_state(&self, policy: &RequestPolicy) -> ParamKindState {
        let Some(gvk) = policy::declared_param_kind(policy) else {
            return ParamKindState::NotRequired;
        };
        if self.mapper.resources_of_kind(&gvk).next().is_some() {
            let bound = self.bound(policy).map(|bound| bound.params.clone());
            return ParamKindState::Served(gvk, bound.unwrap_or(ParamsState::NotReferred));
        }
        let mut unknown = self.mapper.incomplete.iter();
        let unknown = unknown.find(|(of, _)| *of == gvk.api_version());
        if let (Some(_), Some((_, reason))) = (&self.cluster, unknown) {
            let reason = reason.clone();
            return ParamKindState::Undiscovered { gvk, reason };
        }
        let why = self.cluster.as_ref().and_then(|it| it.unserved.get(&gvk));
        if let Some(why) = why.cloned() {
            return ParamKindState::NotServed { gvk, why };
        }
        let own = |served: &&ApiResource| {
            served.gvk.group == gvk.group && !Gvr::is_subresource(&served.gvr)
        };
        let candidates = || self.mapper.resources.iter().filter(own);
        let versions: BTreeSet<String> = candidates()
            .filter(|served| served.gvk.kind == gvk.kind)
            .map(|served| served.gvk.api_version())
            .collect();
        if !versions.is_empty() {
            return ParamKindState::NotServed {
                gvk,
                why: NotServed::OtherVersions(versions.into_iter().collect()),
            };
        }
        let singular = |kind: &str| {
            let kind = kind.to_lowercase();
            let stem = kind.strip_suffix("ies").map(|stem| format!("{stem}y"));
            stem.unwrap_or_else(|| kind.trim_end_matches('s').to_owned())
        };
        let names: BTreeSet<&str> = candidates().map(|served| &*served.gvk.kind).collect();
        let near = nearest_only(&gvk.kind, names.into_iter());
        let mut similar: BTreeSet<String> = candidates()
            .filter(|served| {
                singular(&served.gvk.kind) == singular(&gvk.kind) || near == Some(&served.gvk.kind)
            })
            .map(|served| message::kind(&served.gvk))
            .collect();
        // The group of a CRD contains a dot, so no CRD can define a kind of `core/v1`. See
        // `validateCustomResourceDefinitionSpec` in apiextensions `pkg/apis/apiextensions/validation/validation.go`.
        let may_have_crd = gvk.group.contains('.') && !self.is_complete(&gvk.group);
        if similar.is_empty() && !gvk.group.contains('.') {
            let all = self.mapper.resources.iter();
            let of_kind = all.filter(|it| it.gvk.kind == gvk.kind && !Gvr::is_subresource(&it.gvr));
            similar = of_kind.map(|served| message::kind(&served.gvk)).collect();
        }
        if similar.is_empty() && may_have_crd {
            return ParamKindState::Undiscovered {
                gvk,
                reason: NO_CRD.to_owned(),
            };
        }
        ParamKindState::NotFound {
            gvk,
            similar: similar.into_iter().collect(),
        }
    }
}

/// Returns the resource rule with index `n`.
#[must_use]
pub fn rule(policy: &RequestPolicy, n: usize) -> Option<&NamedRuleWithOperations> {
    matching::rules(policy).get(n)
}

impl SchemaResolver for Known {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        let of_crds = || match self.crd_kinds.get(gvk).and_then(|n| self.crds.get(*n)) {
            Some(crd) => crd.schemas().resolve(gvk),
            None => Resolution::NotFound,
        };
        let resolution = match &self.cluster {
            Some(cluster) => match of_crds() {
                Resolution::NotFound => cluster.resolve(gvk),
                resolution => resolution,
            },
            None => match self.builtin.resolve(gvk) {
                Resolution::NotFound => of_crds(),
                resolution => resolution,
            },
        };
        match resolution {
            Resolution::NotFound => connect_options::resolve(gvk),
            resolution => resolution,
        }
    }

    fn custom(&self, gvk: &Gvk) -> Option<(&Crd, &CrdVersion)> {
        let crd = &self.crds.get(*self.crd_kinds.get(gvk)?)?.crd;
        let mut versions = crd.versions.iter();
        let version = versions.find(|version| version.name == gvk.version)?;
        (crd.kind == gvk.kind).then_some((crd, version))
    }
}
