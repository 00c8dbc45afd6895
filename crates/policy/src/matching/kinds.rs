//! Kinds of the resources that rules match: those for the analysis, and those for upstream's type
//! checker.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`typesToCheck`).

use std::collections::BTreeSet;

use cel::interrupt::checkpoint;
use kubernetes::library::limits::MAX_TYPES_TO_CHECK;
use kubernetes::schema::Gvk;
use kubernetes::schema::rest_mapper::RestMapper;

use super::{Kinds, Target, list, rules, targets};
use crate::request_policy::RequestPolicy;

/// Maximum number of kinds from wildcards. If there are more, nothing is reported about them: an unchecked
/// kind may be the intended one.
const MAX_WILDCARD_KINDS: usize = 400;

/// Returns the kinds of all resources that rules match by name, sorted.
pub(crate) fn named_kinds(targets: &[Target<'_>]) -> Vec<Gvk> {
    let named = targets.iter().filter(|target| !target.by_wildcard);
    let kinds: BTreeSet<_> = named.map(|target| target.resource.gvk.clone()).collect();
    kinds.into_iter().collect()
}

/// Returns the kinds that rules match only by wildcards, and those of them beyond the maximum.
///
/// Kubernetes' own kinds come first, since a cluster may have hundreds of custom kinds.
pub(crate) fn wildcard_kinds(targets: &[Target<'_>]) -> (Vec<Gvk>, Vec<Gvk>) {
    let named = named_kinds(targets);
    let by_wildcard = targets.iter().map(|target| &target.resource.gvk);
    let kinds: BTreeSet<_> = by_wildcard
        .filter(|gvk| named.binary_search(gvk).is_err())
        .cloned()
        .collect();
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    let is_own = |gvk: &Gvk| gvk.group.contains('.') && !gvk.group.ends_with(".k8s.io");
    kinds.sort_by_key(is_own);
    let rest = kinds.split_off(kinds.len().min(MAX_WILDCARD_KINDS));
    kinds.sort();
    (kinds, rest)
}

/// Returns the kinds of all resources that rules match, by name or by wildcards, sorted; of the latter not more
/// than can be checked.
#[must_use]
pub fn kinds(policy: &RequestPolicy, mapper: &RestMapper) -> Vec<Gvk> {
    Kinds::new(&targets(policy, mapper)).all()
}

/// Maximum number of lookups of resources for one policy, since a rule can combine a billion groups, versions and
/// resources.
const MAX_LOOKUPS: usize = 50_000;

/// Returns the kinds that upstream's type checker checks, sorted.
///
/// A rule with a wildcard in its groups or versions is skipped, and so are resources with a `*` or
/// a `/`. After a rule has led to ten kinds, counting repetitions, the rest is skipped.
#[must_use]
pub fn upstream_kinds(policy: &RequestPolicy, mapper: &RestMapper) -> Vec<Gvk> {
    let mut kinds = BTreeSet::new();
    let mut n_lookups = 0;
    for rule in rules(policy) {
        let groups = sorted(list(rule.api_groups.as_ref()));
        let versions = sorted(list(rule.api_versions.as_ref()));
        if groups
            .iter()
            .chain(&versions)
            .any(|value| value.contains('*'))
        {
            continue;
        }
        let mut resources = sorted(list(rule.resources.as_ref()));
        resources.retain(|resource| !resource.contains(['*', '/']));
        let mut n_kinds = 0;
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    checkpoint();
                    n_lookups += 1;
                    if n_lookups > MAX_LOOKUPS {
                        return kinds.into_iter().collect();
                    }
                    for gvk in mapper.kinds_for(group, version, resource) {
                        kinds.insert(gvk);
                        n_kinds += 1;
                        if n_kinds == MAX_TYPES_TO_CHECK {
                            return kinds.into_iter().collect();
                        }
                    }
                }
            }
        }
    }
    kinds.into_iter().collect()
}

fn sorted(values: &[String]) -> Vec<&str> {
    let mut values: Vec<_> = values.iter().map(String::as_str).collect();
    values.sort_unstable();
    values
}
