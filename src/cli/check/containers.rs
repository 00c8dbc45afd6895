//! Removes findings about ignored containers if other policies of the input check these containers.

use std::collections::BTreeSet;

use super::known::Known;
use super::policy::PolicyCheck;
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::compile::CompiledPolicy;
use crate::policy::lint::containers::ContainerReads;
use crate::policy::rule::Rule;

/// Removes the findings `ignored-containers` of policies whose init containers are checked by other policies: the others
/// match the same resources and read the same fields.
pub(super) fn remove_checked_elsewhere(
    policies: &[Object<RequestPolicy>],
    outcomes: &mut [PolicyCheck],
    known: &Known,
) {
    let has_finding = |outcome: &PolicyCheck| {
        let mut findings = outcome.findings.iter();
        findings.any(|finding| finding.rule == Rule::IgnoredContainers)
    };
    if !outcomes.iter().any(has_finding) {
        return;
    }
    let reads: Vec<_> = policies
        .iter()
        .map(|policy| {
            let version = known.version();
            let compiled = CompiledPolicy::from_parts(policy.value.clone(), None, version);
            (resources(&policy.value), ContainerReads::new(&compiled))
        })
        .collect();
    for ((own, reads_of_own), outcome) in reads.iter().zip(outcomes) {
        let is_checked = reads.iter().any(|(resources, other)| {
            other.has_init_containers
                && own.is_subset(resources)
                && reads_of_own
                    .security_fields
                    .is_subset(&other.security_fields)
        });
        if is_checked {
            outcome
                .findings
                .retain(|finding| finding.rule != Rule::IgnoredContainers);
        }
    }
}

/// Returns the groups and resources of a policy's rules, without subresources.
fn resources(policy: &RequestPolicy) -> BTreeSet<(&str, &str)> {
    let rules = policy.match_constraints.iter();
    let rules = rules.flat_map(|rules| rules.resource_rules.iter().flatten());
    rules
        .flat_map(|rule| {
            let groups = rule.api_groups.iter().flatten();
            groups.flat_map(|group| {
                let resources = rule.resources.iter().flatten();
                resources.map(move |resource| {
                    let parent = resource.split_once('/').map_or(&**resource, |(it, _)| it);
                    (&**group, parent)
                })
            })
        })
        .collect()
}
