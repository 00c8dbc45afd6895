//! Results of the rules of a policy and the served resources, shared by policies with the same
//! rules, since a rule with wildcards is matched with thousands of resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::schema::{GroupVersion, Gvk};

use super::{
    Matches, Operations, Target, excluded, named_kinds, resolve, rules, targets, wildcard_kinds,
};
use crate::request_policy::RequestPolicy;

/// The matches of rules, shared by all policies with the same rules.
#[derive(Debug)]
pub struct RuleMatches {
    mapper: Arc<RestMapper>,
    rules: Box<[NamedRuleWithOperations]>,
    excluded: Box<[NamedRuleWithOperations]>,
    matches: Matches,
    targets: Box<[SharedTarget]>,
    kinds: Kinds,
    group_versions: BTreeSet<GroupVersion>,
}

/// The kinds of the resources that rules match.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    /// Kinds matched by name, sorted.
    pub(crate) named: Vec<Gvk>,
    /// Kinds matched only by wildcards, sorted, up to the maximum for one policy.
    pub(crate) by_wildcard: Vec<Gvk>,
    /// The other kinds that are matched only by wildcards.
    pub(crate) beyond: Vec<Gvk>,
}

impl Kinds {
    pub(crate) fn new(targets: &[Target<'_>]) -> Self {
        let (by_wildcard, beyond) = wildcard_kinds(targets);
        Self {
            named: named_kinds(targets),
            by_wildcard,
            beyond,
        }
    }

    /// The checked kinds, sorted.
    pub(super) fn all(&self) -> Vec<Gvk> {
        let mut kinds = [&*self.named, &*self.by_wildcard].concat();
        kinds.sort();
        kinds
    }
}

/// A [`Target`] that refers to its resource by index.
#[derive(Debug)]
struct SharedTarget {
    resource: usize,
    by_wildcard: bool,
    operations: Operations,
}

/// Returns the group versions whose documents describe `kinds`, which are sorted: their own, and those of their
/// resources, since the kind of a subresource is described with the resource.
#[must_use]
pub fn describing(kinds: &[Gvk], matches: &Matches) -> BTreeSet<GroupVersion> {
    let own = kinds.iter().map(Gvk::group_version);
    let described = matches
        .resources
        .iter()
        // A rule with wildcards has hundreds.
        .filter(|resource| kinds.binary_search(&resource.gvk).is_ok());
    let described = described.map(|resource| resource.gvr.group_version());
    own.chain(described).collect()
}

impl RuleMatches {
    /// Matches the rules of `policy` with the resources of `mapper`.
    #[must_use]
    pub fn new(policy: &RequestPolicy, mapper: Arc<RestMapper>) -> Self {
        let targets = targets(policy, &mapper);
        let kinds = Kinds::new(&targets);
        let shared = targets.into_iter().filter_map(|target| {
            let gvr = &target.resource.gvr;
            let found = mapper.resources.binary_search_by(|of| of.gvr.cmp(gvr));
            Some(SharedTarget {
                resource: found.ok()?,
                by_wildcard: target.by_wildcard,
                operations: target.operations,
            })
        });
        let targets = shared.collect();
        let matches = resolve(policy, &mapper);
        Self {
            rules: rules(policy).into(),
            excluded: excluded(policy).into(),
            group_versions: describing(&kinds.all(), &matches),
            matches,
            targets,
            kinds,
            mapper,
        }
    }

    /// Returns true if these are also the matches of `policy`: it has the same rules, and `mapper` is the one that
    /// was used.
    #[must_use]
    pub fn are_of(&self, policy: &RequestPolicy, mapper: &Arc<RestMapper>) -> bool {
        Arc::ptr_eq(&self.mapper, mapper)
            && *self.rules == *rules(policy)
            && *self.excluded == *excluded(policy)
    }

    /// Returns the resources that the rules match, and the exempt ones.
    #[must_use]
    pub fn matches(&self) -> &Matches {
        &self.matches
    }

    /// Returns the group versions whose documents describe the kinds of [`super::kinds`].
    #[must_use]
    pub fn group_versions(&self) -> &BTreeSet<GroupVersion> {
        &self.group_versions
    }

    pub(crate) fn kinds_by_role(&self) -> &Kinds {
        &self.kinds
    }

    pub(crate) fn mapper(&self) -> &RestMapper {
        &self.mapper
    }

    pub(crate) fn targets(&self) -> Vec<Target<'_>> {
        let targets = self.targets.iter().filter_map(|target| {
            Some(Target {
                resource: self.mapper.resources.get(target.resource)?,
                by_wildcard: target.by_wildcard,
                operations: target.operations,
            })
        });
        targets.collect()
    }
}
