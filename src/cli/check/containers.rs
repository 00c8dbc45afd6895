//! Removes findings about ignored containers if other policies of the input check these containers.

use std::collections::BTreeSet;

use super::OtherFiles;
use super::known::Known;
use super::policy::PolicyCheck;
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::compile::CompiledPolicy;
use crate::policy::lint::containers::ContainerReads;
use crate::policy::rule::Rule;
use crate::version::KubernetesVersion;

/// The fields of containers that a policy checks, and the resources for which it checks them.
#[derive(Debug)]
pub(in crate::cli) struct CheckedContainers {
    resources: BTreeSet<(String, String)>,
    reads: ContainerReads,
}

impl CheckedContainers {
    /// Collects the container fields that a policy reads.
    pub(in crate::cli) fn new(policy: &RequestPolicy, version: KubernetesVersion) -> Self {
        let compiled = CompiledPolicy::from_parts(policy.clone(), None, version);
        Self {
            resources: resources(policy),
            reads: ContainerReads::new(&compiled),
        }
    }
}

/// Removes the findings `ignored-containers` of a policy if another policy checks the init containers. The other policy
/// must match all resources that this policy matches, and read all fields that this policy reads.
pub(super) fn remove_checked_elsewhere(
    policies: &[Object<RequestPolicy>],
    others: Option<&OtherFiles<'_>>,
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
    let policies = policies.iter();
    let own: Vec<_> = policies
        .map(|policy| CheckedContainers::new(&policy.value, known.version()))
        .collect();
    let others = others.map(|others| (others.container_reads)());
    let others = others.unwrap_or_default();
    for (checked, outcome) in own.iter().zip(outcomes) {
        let is_checked = own.iter().chain(others.iter().copied()).any(|other| {
            other.reads.has_init_containers
                && checked.resources.is_subset(&other.resources)
                && checked
                    .reads
                    .security_fields
                    .is_subset(&other.reads.security_fields)
        });
        if is_checked {
            outcome
                .findings
                .retain(|finding| finding.rule != Rule::IgnoredContainers);
        }
    }
}

/// Returns the groups and resources of a policy's rules, without subresources.
fn resources(policy: &RequestPolicy) -> BTreeSet<(String, String)> {
    let rules = policy.match_constraints.iter();
    let rules = rules.flat_map(|rules| rules.resource_rules.iter().flatten());
    rules
        .flat_map(|rule| {
            let groups = rule.api_groups.iter().flatten();
            groups.flat_map(|group| {
                let resources = rule.resources.iter().flatten();
                resources.map(move |resource| {
                    let parent = resource.split_once('/').map_or(&**resource, |(it, _)| it);
                    (group.clone(), parent.to_owned())
                })
            })
        })
        .collect()
}
