//! Lists the kinds that rules match: those that the analysis checks, and those that upstream's type checker checks.
//!
//! Source: `k8s.io/apiserver` `plugin/policy/validating/typechecking.go` (`typesToCheck`).

use std::collections::BTreeSet;

use cel::interrupt::checkpoint;
use kubernetes::library::limits::MAX_TYPES_TO_CHECK;
use kubernetes::schema::Gvk;
use kubernetes::schema::rest_mapper::RestMapper;

use super::{Kinds, Target, list, rules, targets};
use crate::request_policy::RequestPolicy;

/// Maximum number of checked kinds that only wildcards match. If wildcards match more kinds, these kinds get no
/// warnings, because an unchecked kind may be the intended one.
const MAX_WILDCARD_KINDS: usize = 400;

/// Returns the kinds of all resources that rules match by name, sorted.
pub(crate) fn named_kinds(targets: &[Target<'_>]) -> Vec<Gvk> {
    let named = targets.iter().filter(|target| !target.by_wildcard);
    let kinds: BTreeSet<_> = named.map(|target| target.resource.gvk.clone()).collect();
    kinds.into_iter().collect()
}

/// Returns the kinds that rules match only by a wildcard, in two lists: the kinds to check, and the kinds beyond the
/// maximum, which are not checked.
///
/// Built-in kinds come first, because a cluster may have hundreds of custom kinds.
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

/// Returns the kinds to check, sorted. These are all kinds that rules match by name, and up to a maximum number of
/// kinds that rules match only by a wildcard.
#[must_use]
pub fn kinds(policy: &RequestPolicy, mapper: &RestMapper) -> Vec<Gvk> {
    Kinds::new(&targets(policy, mapper)).all()
}

/// Maximum number of resource lookups for one policy. A rule that combines many groups, versions and resources could
/// otherwise cause a billion lookups.
const MAX_LOOKUPS: usize = 50_000;

/// Returns the kinds that upstream's type checker checks, sorted.
///
/// Upstream skips rules with a wildcard in their groups or versions, and resources with `*` or `/` in their names. It
/// also stops after the first ten kinds of a rule. Repeated kinds count each time.
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
