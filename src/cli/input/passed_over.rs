//! Objects that a check passes over, by kind, and the kinds that are misspelt.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Place, SourceText};
use crate::policy::nearest::nearest;
use crate::schema::GroupVersion;

/// The group of policies and bindings.
const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds that are checked.
const CHECKED: [&str; 4] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// The other kinds of the group.
///
/// Source: `k8s.io/api` `admissionregistration/v1/register.go`.
const OTHERS: [&str; 2] = [
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

/// The sort of a kind that is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of another API, or one of the group that is not checked.
    Other,
    /// None that an API has, with the one that was meant if there is one like it.
    Unknown(Option<&'static str>),
}

/// Tells kinds that no API has from those that are not checked.
pub(super) fn kind_of(api_version: &str, kind: &str) -> Kind {
    let (group, _) = GroupVersion::split(api_version);
    let item = kind.strip_suffix("List").unwrap_or(kind);
    if CHECKED.contains(&item) || group == GROUP && OTHERS.contains(&item) {
        return Kind::Other;
    }
    let meant = nearest(kind, CHECKED.into_iter().chain(OTHERS));
    let is_binding = kind.to_lowercase().contains("binding");
    // Without `Policy` the name of a binding is nearer to that of a policy.
    let meant = meant.map(|meant| match meant {
        "ValidatingAdmissionPolicy" if is_binding => "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy" if is_binding => "MutatingAdmissionPolicyBinding",
        other => other,
    });
    if group == GROUP {
        return Kind::Unknown(meant);
    }
    // Other groups have kinds of their own, unless group and kind are both misspelt.
    let is_near = group.is_empty() || nearest(group, std::iter::once(GROUP)).is_some();
    let meant = meant.filter(|meant| CHECKED.contains(meant) && is_near);
    match meant {
        Some(_) => Kind::Unknown(meant),
        None => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_kinds_are_told_from_others() {
        let v1 = "admissionregistration.k8s.io/v1";
        let policy = Kind::Unknown(Some("ValidatingAdmissionPolicy"));
        assert_eq!(kind_of(v1, "ValidatingAdmisionPolicy"), policy);
        assert_eq!(kind_of(v1, "validatingadmissionpolicy"), policy);
        assert_eq!(kind_of("v1", "ValidatingAdmissionPolicies"), policy);
        assert_eq!(
            kind_of("admissionregistraton.k8s.io/v1", "ValidatingAdmisionPolicy"),
            policy
        );
        assert_eq!(kind_of(v1, "Policy"), Kind::Unknown(None));
        let binding = Kind::Unknown(Some("ValidatingAdmissionPolicyBinding"));
        assert_eq!(kind_of(v1, "ValidatingAdmissionBinding"), binding);
        assert_eq!(kind_of(v1, "ValidatingAdmissionPolicyBindings"), binding);
        for (api_version, kind) in [
            (v1, "MutatingAdmissionPolicy"),
            (v1, "ValidatingWebhookConfigurationList"),
            ("policies.kyverno.io/v1", "ValidatingAdmissionPolici"),
            ("policies.kyverno.io/v1", "ValidatingPolicy"),
            ("apps/v1", "Deployment"),
            ("v1", "Pod"),
        ] {
            assert_eq!(kind_of(api_version, kind), Kind::Other, "{kind}");
        }
    }
}
