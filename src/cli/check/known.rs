//! What is known without a cluster: Kubernetes' own APIs, and the CRDs of the input.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::policy;
use crate::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Builtin, Crd, Gvk, Gvr, Interner, RestMapper, SchemaError};
use crate::status::compute::{NotServed, ParamKindState};

/// Why a group cannot be looked into, as a condition says it.
const NO_CRD: &str = "no CustomResourceDefinition is among the input";

/// The schemas and resources that policies are checked against.
#[derive(Debug)]
pub struct Known {
    builtin: Builtin,
    crds: SchemaSet,
    /// What is served, and the groups that a policy names and nothing is known of.
    pub mapper: RestMapper,
    groups: BTreeSet<String>,
}

impl Known {
    /// Kubernetes' own APIs and `crds`; `policies` are those that will be asked about.
    ///
    /// # Errors
    /// Where the built-in schemas cannot be read.
    pub fn new<'a>(
        crds: impl Iterator<Item = &'a Crd>,
        policies: impl Iterator<Item = &'a ValidatingAdmissionPolicy>,
    ) -> Result<Self, SchemaError> {
        let builtin = Builtin::load()?;
        let mut schemas = SchemaSet::default();
        let mut interner = Interner::default();
        let mut resources = builtin.resources().to_vec();
        for crd in crds {
            schemas.add_crd(crd, &mut interner);
            resources.extend(crd.resources());
        }
        let groups = resources
            .iter()
            .map(|served| served.gvr.group.clone())
            .collect();
        let mut known = Self {
            builtin,
            crds: schemas,
            mapper: RestMapper::new(resources),
            groups,
        };
        known.mapper.incomplete = known.unknown_group_versions(policies);
        Ok(known)
    }

    /// The version of Kubernetes whose APIs are built in, `1.36`.
    #[must_use]
    pub fn kubernetes(&self) -> &str {
        let version = self.builtin.kubernetes();
        version.rsplit_once('.').map_or(version, |(minor, _)| minor)
    }

    /// Whether anything is known of the group.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.groups.contains(group)
    }

    /// The group versions that policies name and of whose groups nothing is known, each with a reason.
    fn unknown_group_versions<'a>(
        &self,
        policies: impl Iterator<Item = &'a ValidatingAdmissionPolicy>,
    ) -> Vec<(String, String)> {
        let mut unknown = BTreeSet::new();
        for policy in policies {
            if let Some(gvk) = policy::param_kind(policy)
                && !self.has_group(&gvk.group)
            {
                unknown.insert(gvk.api_version());
            }
            let constraints = policy
                .spec
                .as_ref()
                .and_then(|spec| spec.match_constraints.as_ref());
            let rules = constraints.and_then(|of| of.resource_rules.as_deref());
            for rule in rules.unwrap_or_default() {
                for group in rule.api_groups.iter().flatten() {
                    if group == "*" || self.has_group(group) {
                        continue;
                    }
                    let versions = rule.api_versions.iter().flatten();
                    unknown.extend(versions.map(|version| format!("{group}/{version}")));
                }
            }
        }
        let reason = |group_version| (group_version, NO_CRD.to_owned());
        unknown.into_iter().map(reason).collect()
    }

    /// What is known of the paramKind of `policy`.
    #[must_use]
    pub fn param_kind_state(&self, policy: &ValidatingAdmissionPolicy) -> ParamKindState {
        let spec = policy.spec.as_ref();
        let Some(param_kind) = spec.and_then(|spec| spec.param_kind.as_ref()) else {
            return ParamKindState::NotRequired;
        };
        let gvk = policy::param_kind(policy).unwrap_or_else(|| {
            // An apiVersion that cannot be read names nothing that is served.
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            Gvk::new("", text(&param_kind.api_version), text(&param_kind.kind))
        });
        if self.mapper.resources_of_kind(&gvk).next().is_some() {
            return ParamKindState::Served(gvk);
        }
        if !self.has_group(&gvk.group) {
            return ParamKindState::Undiscovered {
                gvk,
                reason: NO_CRD.to_owned(),
            };
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
        let plain = |kind: &str| kind.to_lowercase().trim_end_matches('s').to_owned();
        let similar: BTreeSet<String> = candidates()
            .filter(|served| plain(&served.gvk.kind) == plain(&gvk.kind))
            .map(|served| format!("{} {}", served.gvk.api_version(), served.gvk.kind))
            .collect();
        ParamKindState::NotFound {
            gvk,
            similar: similar.into_iter().collect(),
        }
    }
}

impl SchemaResolver for Known {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        match self.builtin.resolve(gvk) {
            Resolution::NotFound => self.crds.resolve(gvk),
            found => found,
        }
    }
}
