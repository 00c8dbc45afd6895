//! Everything that is made of the rules of a policy and of what is served, to be shared by the policies with the same
//! rules: a rule with wildcards is held against thousands of resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::schema::{GroupVersion, Gvk};

use super::{
    Matches, Operations, Target, excluded, named_kinds, resolve, rules, targets, wildcard_kinds,
};
use crate::request_policy::RequestPolicy;

/// The matches of rules: those of every policy with the same rules.
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
    /// Those matched by name, sorted.
    pub(crate) named: Vec<Gvk>,
    /// Those matched by wildcards only, sorted, as many as are checked for one policy.
    pub(crate) by_wildcard: Vec<Gvk>,
    /// The others that are matched by wildcards only.
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

    /// Those that are checked, sorted.
    pub(super) fn all(&self) -> Vec<Gvk> {
        let mut kinds = [&*self.named, &*self.by_wildcard].concat();
        kinds.sort();
        kinds
    }
}

/// A [`Target`] that names its resource by its index.
#[derive(Debug)]
struct SharedTarget {
    resource: usize,
    by_wildcard: bool,
    operations: Operations,
}

/// The group versions whose documents describe `kinds`, which are sorted: their own, and those of the resources that
/// hold them, since the kind of a subresource is described where the resource is.
#[must_use]
pub fn describing(kinds: &[Gvk], matches: &Matches) -> BTreeSet<GroupVersion> {
    let own = kinds.iter().map(Gvk::group_version);
    let described = matches
        .resources
        .iter()
        // They are hundreds where a rule has wildcards.
        .filter(|resource| kinds.binary_search(&resource.gvk).is_ok());
    let described = described.map(|resource| resource.gvr.group_version());
    own.chain(described).collect()
}

impl RuleMatches {
    /// Holds the rules of `policy` against what `mapper` serves.
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

    /// Reports whether these are the matches of `policy` too: it has these very rules, and `mapper` is the one that
    /// they were held against.
    #[must_use]
    pub fn are_of(&self, policy: &RequestPolicy, mapper: &Arc<RestMapper>) -> bool {
        Arc::ptr_eq(&self.mapper, mapper)
            && *self.rules == *rules(policy)
            && *self.excluded == *excluded(policy)
    }

    /// The resources that the rules match, and those that they match in vain.
    #[must_use]
    pub fn matches(&self) -> &Matches {
        &self.matches
    }

    /// The group versions whose documents describe the kinds of [`super::kinds`].
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
