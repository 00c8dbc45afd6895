//! Caches the matches of rules. A rule with wildcards is compared with thousands of resources, so policies with the
//! same rules share the matches.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::schema::{GroupVersion, Gvk};

use super::{
    Matches, Operations, Target, excluded, named_kinds, resolve, rules, targets, wildcard_kinds,
};
use crate::request_policy::RequestPolicy;

/// The matches of a set of rules. All policies with these rules share them.
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

/// The kinds of the matched resources, grouped by the way in which they are checked.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    /// Kinds matched by name, sorted.
    pub(crate) named: Vec<Gvk>,
    /// Kinds matched only by a wildcard, sorted, up to the maximum number for one policy.
    pub(crate) by_wildcard: Vec<Gvk>,
    /// Kinds matched only by a wildcard beyond the maximum. They are not checked.
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

    /// Returns the kinds to check, sorted.
    pub(super) fn all(&self) -> Vec<Gvk> {
        let mut kinds = [&*self.named, &*self.by_wildcard].concat();
        kinds.sort();
        kinds
    }
}

/// A [`Target`] with the index of its resource instead of a reference.
#[derive(Debug)]
struct SharedTarget {
    resource: usize,
    by_wildcard: bool,
    operations: Operations,
}

/// Returns the group versions whose OpenAPI documents describe `kinds`. `kinds` must be sorted. The result contains the
/// group versions of the kinds and of their resources, because the document of a resource also describes the kinds of
/// its subresources.
#[must_use]
pub fn describing(kinds: &[Gvk], matches: &Matches) -> BTreeSet<GroupVersion> {
    let own = kinds.iter().map(Gvk::group_version);
    let described = matches
        .resources
        .iter()
        // A rule with wildcards matches hundreds of resources, but only some of their kinds are checked.
        .filter(|resource| kinds.binary_search(&resource.gvk).is_ok());
    let described = described.map(|resource| resource.gvr.group_version());
    own.chain(described).collect()
}

impl RuleMatches {
    /// Matches the rules of `policy` with the resources in `mapper`.
    #[must_use]
    pub fn new(policy: &RequestPolicy, mapper: Arc<RestMapper>) -> Self {
        let targets = targets(policy, &mapper);
        let kinds = Kinds::new(&targets);
        let shared = targets.into_iter().filter_map(|target| {
            let gvr = &target.resource.gvr;
            let index = mapper.resources.binary_search_by(|of| of.gvr.cmp(gvr));
            Some(SharedTarget {
                resource: index.ok()?,
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

    /// Returns true if the matches were computed with the rules of `policy` and with `mapper`.
    #[must_use]
    pub fn are_of(&self, policy: &RequestPolicy, mapper: &Arc<RestMapper>) -> bool {
        Arc::ptr_eq(&self.mapper, mapper)
            && *self.rules == *rules(policy)
            && *self.excluded == *excluded(policy)
    }

    /// Returns the matched resources, and the exempt and unserved resources of the rules.
    #[must_use]
    pub fn matches(&self) -> &Matches {
        &self.matches
    }

    /// Returns the group versions whose OpenAPI documents describe the kinds to check.
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
