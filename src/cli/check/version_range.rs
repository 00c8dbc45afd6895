//! Merges the findings of several Kubernetes versions.

use std::collections::BTreeMap;

use super::finding::Finding;
use crate::version::KubernetesVersion;

/// Adds the findings of other versions to `findings`, the findings of `version`. A finding that occurs in only some of
/// the versions lists these versions. If the severity differs between versions, the highest one applies.
pub(super) fn merge(
    findings: &mut Vec<Finding>,
    version: KubernetesVersion,
    in_others: Vec<(KubernetesVersion, Vec<Finding>)>,
) {
    let n_versions = in_others.len().saturating_add(1);
    let mut versions: Vec<Vec<KubernetesVersion>> = vec![vec![version]; findings.len()];
    let mut indices: BTreeMap<Key, usize> = keys(findings).into_iter().zip(0..).collect();
    for (other, of_other) in in_others {
        for (key, finding) in keys(&of_other).into_iter().zip(of_other) {
            let index = indices.get(&key).copied();
            let merged = index.and_then(|n| Some((findings.get_mut(n)?, versions.get_mut(n)?)));
            if let Some((merged, versions)) = merged {
                merged.severity = merged.severity.min(finding.severity);
                versions.push(other);
            } else {
                indices.insert(key, findings.len());
                findings.push(finding);
                versions.push(vec![other]);
            }
        }
    }
    for (finding, versions) in findings.iter_mut().zip(versions) {
        if versions.len() < n_versions {
            let names: Vec<String> = versions.iter().rev().map(ToString::to_string).collect();
            let only = format!("only in Kubernetes {}", names.join(", "));
            finding.help = Some(match finding.help.take() {
                Some(help) => format!("{only}; {help}"),
                None => only,
            });
            finding.versions = names;
        }
    }
}

/// Identifies the same problem in several versions. The first value contains the location and the rule. The second
/// value numbers the findings with this location and rule, from 1. The message may differ between versions.
type Key = (String, usize);

fn keys(findings: &[Finding]) -> Vec<Key> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let key = |finding: &Finding| {
        let place = format!(
            "{} {:?} {} {:?} {:?}",
            finding.location.file,
            finding.location.place,
            finding.rule.id(),
            finding.owner,
            finding.field_ref
        );
        let count = counts.entry(place.clone()).or_default();
        *count = count.saturating_add(1);
        (place, *count)
    };
    findings.iter().map(key).collect()
}
