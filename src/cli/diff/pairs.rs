//! Pairs the versions of policies.

use std::collections::BTreeMap;

use super::BothResults;
use super::compare::{Side, ValidationPairs};
use crate::cli::audit::PolicyResult;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::policy::RequestPolicy;
use crate::probe::target::TargetId;

/// The two versions of a policy.
pub(in crate::cli) struct PolicyPair {
    pub(in crate::cli) id: TargetId,
    /// The index of each version in its policy set. `None` if the version does not exist.
    pub(in crate::cli) sides: [Option<usize>; 2],
    /// The reason why the API server rejects each version. `None` if it accepts the version.
    rejections: [Option<String>; 2],
    /// True for a version without bindings if the other version has bindings. The version without bindings has no
    /// effect.
    unbound: [bool; 2],
    pub(super) failure_policies: [&'static str; 2],
    pub(super) pairs: ValidationPairs,
}

impl PolicyPair {
    pub(super) fn decisions<'a>(&'a self, results: BothResults<'a>) -> [Side<'a>; 2] {
        let [old_result, new_result] = results;
        let [old, new] = self.sides;
        let [rejected_old, rejected_new] = &self.rejections;
        let [unbound_old, unbound_new] = self.unbound;
        [
            side(old, rejected_old.as_deref(), unbound_old, old_result),
            side(new, rejected_new.as_deref(), unbound_new, new_result),
        ]
    }

    /// Returns the version without bindings (`old` or `new`) if the other version has bindings.
    pub(super) fn unbound_version(&self) -> Option<&'static str> {
        match self.unbound {
            [true, _] => Some("old"),
            [_, true] => Some("new"),
            [false, false] => None,
        }
    }
}

fn policy_object<'a>(policy_set: &PolicySet<'a>, n: Option<usize>) -> Option<&'a RequestPolicy> {
    let policy = n.and_then(|n| policy_set.policies.get(n));
    policy.map(|policy| &policy.object.value)
}

/// Returns the two versions of a pair. `None` if one is absent or rejected.
pub(super) fn both_versions<'a>(
    pair: &PolicyPair,
    sets: [&'a PolicySet<'a>; 2],
) -> Option<[&'a PreparedPolicy<'a>; 2]> {
    let version = |n: usize| {
        let policies = &sets.get(n)?.policies;
        let policy = pair.sides.get(n).copied().flatten();
        let policy = policy.and_then(|index| policies.get(index));
        policy.filter(|policy| policy.rejection.is_none())
    };
    Some([version(0)?, version(1)?])
}

/// Pairs the policies of both sets by kind and name.
pub(in crate::cli) fn pairs(before: &PolicySet<'_>, after: &PolicySet<'_>) -> Vec<PolicyPair> {
    let mut by_id: BTreeMap<TargetId, [Option<usize>; 2]> = BTreeMap::new();
    for (n, policy) in before.policies.iter().enumerate() {
        let [old, _] = by_id.entry(policy.id()).or_default();
        *old = Some(n);
    }
    for (n, policy) in after.policies.iter().enumerate() {
        let [_, new] = by_id.entry(policy.id()).or_default();
        *new = Some(n);
    }
    let pair = |(id, sides): (TargetId, [Option<usize>; 2])| {
        let [old_index, new_index] = sides;
        PolicyPair {
            id,
            sides,
            rejections: [(before, old_index), (after, new_index)].map(|(policy_set, n)| {
                let policy = n.and_then(|n| policy_set.policies.get(n));
                policy.and_then(|policy| policy.rejection.clone())
            }),
            unbound: unbound([(before, old_index), (after, new_index)]),
            failure_policies: [(before, old_index), (after, new_index)].map(|(policy_set, n)| {
                let policy = policy_object(policy_set, n);
                let is_ignore =
                    |policy: &RequestPolicy| policy.failure_policy.as_deref() == Some("Ignore");
                if policy.is_some_and(is_ignore) {
                    "Ignore"
                } else {
                    "Fail"
                }
            }),
            pairs: ValidationPairs::new(
                policy_object(before, old_index),
                policy_object(after, new_index),
            ),
        }
    };
    by_id.into_iter().map(pair).collect()
}

/// Returns a flag for each version, which is true if only the other version has bindings. Both flags are false if only
/// one version is in a cluster, because the other version may have bindings there.
fn unbound(sides: [(&PolicySet<'_>, Option<usize>); 2]) -> [bool; 2] {
    let versions = sides.map(|(policy_set, n)| n.and_then(|n| policy_set.policies.get(n)));
    match versions {
        [Some(old), Some(new)] if old.is_live == new.is_live => {
            [(old, new), (new, old)].map(|(own, other)| own.is_unbound && !other.is_unbound)
        }
        _ => [false; 2],
    }
}

fn side<'a>(
    index: Option<usize>,
    rejection: Option<&'a str>,
    is_unbound: bool,
    result: Option<&'a PolicyResult>,
) -> Side<'a> {
    match (index, rejection, result) {
        (None, ..) => Side::Absent,
        (_, Some(why), _) => Side::Rejected(why),
        _ if is_unbound => Side::Unbound,
        (_, _, None) => Side::NotMatched,
        (_, _, Some(result)) => Side::Evaluated(result),
    }
}
