//! Resources that no policy is asked about, whatever its constraints say.
//!
//! Policies and their bindings are exempt, lest they lock each other, and so are reviews that are not stored,
//! lest nobody can be authenticated or authorized any more. The API server leaves them out before it looks at
//! any policy; neither the group's versions nor subresources make a difference.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/plugin.go`, `Dispatch`
//! (`admissionResources`, the same in v0.36 and v0.37); `k8s.io/kubernetes`
//! `pkg/kubeapiserver/admission/exclusion/resources.go`, `excluded`.

use kubernetes::schema::Gvr;

/// The group of policies and webhooks.
pub(crate) const CONFIGURATION_GROUP: &str = "admissionregistration.k8s.io";

/// The exempt resources by group.
const EXEMPT: [(&str, &[&str]); 3] = [
    (
        CONFIGURATION_GROUP,
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
    ),
    (
        "authentication.k8s.io",
        &["selfsubjectreviews", "tokenreviews"],
    ),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
];

/// Reports whether no policy of the API is asked about requests for `resource`, which may name a subresource.
#[must_use]
pub fn is_exempt(resource: &Gvr) -> bool {
    let main = resource.resource.split('/').next().unwrap_or_default();
    EXEMPT
        .iter()
        .any(|(group, resources)| *group == resource.group && resources.contains(&main))
}

/// Reports whether no webhook is called about requests for `resource`: policies, bindings and the configurations of
/// webhooks themselves. Of reviews webhooks are told.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/rules/rules.go`,
/// `IsExemptAdmissionConfigurationResource`.
#[must_use]
pub fn is_exempt_from_webhooks(resource: &Gvr) -> bool {
    resource.group == CONFIGURATION_GROUP && (is_exempt(resource) || is_webhooks(resource))
}

/// Reports whether it is a configuration of webhooks, about which policies are asked and webhooks are not.
pub(crate) fn is_webhooks(resource: &Gvr) -> bool {
    resource.group == CONFIGURATION_GROUP && resource.resource.ends_with("webhookconfigurations")
}

/// The name of an exempt resource in messages: `authentication.k8s.io tokenreviews`.
#[must_use]
pub fn name(resource: &Gvr) -> String {
    let main = resource.resource.split('/').next().unwrap_or_default();
    format!("{} {main}", resource.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_bindings_and_reviews_are_exempt() {
        let table = [
            (
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies",
                true,
            ),
            (
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies/status",
                true,
            ),
            (
                "admissionregistration.k8s.io",
                "mutatingadmissionpolicybindings",
                true,
            ),
            (
                "admissionregistration.k8s.io",
                "validatingwebhookconfigurations",
                false,
            ),
            ("authentication.k8s.io", "tokenreviews", true),
            ("authorization.k8s.io", "subjectaccessreviews", true),
            ("example.com", "tokenreviews", false),
            // Those are asked about, though nothing is stored.
            ("", "serviceaccounts/token", false),
            ("", "bindings", false),
        ];
        for (group, resource, expect) in table {
            let gvr = Gvr::new(group, "v1", resource);
            assert_eq!(is_exempt(&gvr), expect, "{group} {resource}");
        }
    }

    #[test]
    fn webhooks_are_told_of_reviews_and_not_of_configurations() {
        let table = [
            (
                "admissionregistration.k8s.io",
                "validatingadmissionpolicies",
                true,
            ),
            (
                "admissionregistration.k8s.io",
                "mutatingadmissionpolicybindings",
                true,
            ),
            (
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations",
                true,
            ),
            ("authentication.k8s.io", "tokenreviews", false),
            ("apps", "deployments", false),
        ];
        for (group, resource, expect) in table {
            let gvr = Gvr::new(group, "v1", resource);
            assert_eq!(is_exempt_from_webhooks(&gvr), expect, "{group} {resource}");
        }
    }
}
