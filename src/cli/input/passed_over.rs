//! Objects that a check passes over, by kind, and the kinds that are misspelt.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Place, SourceText};
use crate::cli::check::suggestion::nearest;

/// The group of policies and bindings.
const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds that are checked.
const CHECKED: [&str; 2] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// The other kinds of the group.
///
/// Source: `k8s.io/api` `admissionregistration/v1/register.go`.
const OTHERS: [&str; 4] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// How many objects of a kind were passed over, and where the first is.
#[derive(Clone, Debug)]
pub struct PassedOver {
    /// The number of objects.
    pub n: usize,
    /// The file of the first.
    pub source: Arc<SourceText>,
    /// Its place.
    pub place: Place,
}

/// The objects that were passed over, by `apiVersion` and `kind`.
pub type ByKind = BTreeMap<(String, String), PassedOver>;

/// The kind that was meant, or none that is known, where an object of the kind is no object of an API.
pub(super) fn misspelt(api_version: &str, kind: &str) -> Option<Option<&'static str>> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let item = kind.strip_suffix("List").unwrap_or(kind);
    if CHECKED.contains(&item) || group == GROUP && OTHERS.contains(&item) {
        return None;
    }
    let meant = nearest(kind, CHECKED.into_iter().chain(OTHERS));
    if group == GROUP {
        return Some(meant);
    }
    // Other groups have kinds of their own, unless group and kind are both misspelt.
    let is_near = group.is_empty() || nearest(group, std::iter::once(GROUP)).is_some();
    let meant = meant.filter(|meant| CHECKED.contains(meant) && is_near);
    meant.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_kinds_are_told_from_others() {
        let v1 = "admissionregistration.k8s.io/v1";
        let policy = Some(Some("ValidatingAdmissionPolicy"));
        assert_eq!(misspelt(v1, "ValidatingAdmisionPolicy"), policy);
        assert_eq!(misspelt(v1, "validatingadmissionpolicy"), policy);
        assert_eq!(misspelt("v1", "ValidatingAdmissionPolicies"), policy);
        assert_eq!(
            misspelt("admissionregistraton.k8s.io/v1", "ValidatingAdmisionPolicy"),
            policy
        );
        assert_eq!(misspelt(v1, "Policy"), Some(None));
        for (api_version, kind) in [
            (v1, "MutatingAdmissionPolicy"),
            (v1, "ValidatingWebhookConfigurationList"),
            ("policies.kyverno.io/v1", "ValidatingAdmissionPolici"),
            ("policies.kyverno.io/v1", "ValidatingPolicy"),
            ("apps/v1", "Deployment"),
            ("v1", "Pod"),
        ] {
            assert_eq!(misspelt(api_version, kind), None, "{kind}");
        }
    }
}
