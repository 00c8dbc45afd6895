//! Resources that are exempt from policies, regardless of match constraints.
//!
//! Policies and bindings are exempt so that a faulty policy can always be repaired. Reviews are exempt so that
//! authentication and authorization keep working. A review, such as a `TokenReview`, is a request that is not stored.
//! The API server checks for exemption before it evaluates any policy. The version and the subresource of the request
//! are ignored.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/generic/plugin.go`, `Dispatch` (`admissionResources`, the
//! same in v0.36 and v0.37); `k8s.io/kubernetes` `pkg/kubeapiserver/admission/exclusion/resources.go`, `excluded`.

use kubernetes::schema::Gvr;
use kubernetes::version::{Behavior, StaticNames};

/// The API group of policies and webhook configurations.
pub(crate) const CONFIGURATION_GROUP: &str = "admissionregistration.k8s.io";

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

/// Returns true if requests for `resource` are exempt from all policies. `resource` may be a subresource.
#[must_use]
pub fn is_exempt(resource: &Gvr) -> bool {
    let main = resource.resource.split('/').next().unwrap_or_default();
    EXEMPT
        .iter()
        .any(|(group, resources)| *group == resource.group && resources.contains(&main))
}

/// The suffix of the names of policies and bindings that an API server loads from a directory.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/manifest/validation.go`, `StaticConfigSuffix`.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Returns true if requests for `resource` are exempt from the policy `name` in an API server with `behavior`. A static
/// policy also applies to policies and bindings.
///
/// Source: `k8s.io/apiserver` 0.36 `pkg/admission/plugin/policy/generic/plugin.go`, `Dispatch`.
#[must_use]
pub fn is_exempt_from(name: &str, resource: &Gvr, behavior: &Behavior) -> bool {
    let has_static = behavior.static_names != StaticNames::Accepted;
    let is_static = has_static && name.ends_with(STATIC_SUFFIX);
    is_exempt(resource) && !(is_static && resource.group == CONFIGURATION_GROUP)
}

/// Returns true if requests for `resource` are exempt from webhooks in an API server with `behavior`. Policies,
/// bindings and webhook configurations are exempt. Reviews are exempt since 1.37.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/rules/rules.go`,
/// `IsExemptAdmissionConfigurationResource`; 0.37 `pkg/admission/plugin/webhook/generic/webhook.go`, `Dispatch`.
#[must_use]
pub fn is_exempt_from_webhooks(resource: &Gvr, behavior: Behavior) -> bool {
    let is_configuration = resource.group == CONFIGURATION_GROUP;
    is_webhooks(resource)
        || is_exempt(resource) && (is_configuration || behavior.webhooks_skip_reviews)
}

/// Returns true for webhook configurations. They are exempt from webhooks, but not from policies.
pub(crate) fn is_webhooks(resource: &Gvr) -> bool {
    resource.group == CONFIGURATION_GROUP && resource.resource.ends_with("webhookconfigurations")
}

/// Returns the name of an exempt resource for messages, such as `authentication.k8s.io tokenreviews`.
#[must_use]
pub fn name(resource: &Gvr) -> String {
    let main = resource.resource.split('/').next().unwrap_or_default();
    format!("{} {main}", resource.group)
}

#[cfg(test)]
mod tests {
    use kubernetes::version::KubernetesVersion;

    use super::*;

    #[test]
    fn policies_bindings_and_reviews_are_exempt_from_policies() {
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
            // Requests for tokens are not stored either, but are not exempt.
            ("", "serviceaccounts/token", false),
            ("", "bindings", false),
        ];
        for (group, resource, expect) in table {
            let gvr = Gvr::new(group, "v1", resource);
            assert_eq!(is_exempt(&gvr), expect, "{group} {resource}");
        }
    }

    #[test]
    fn reviews_are_exempt_from_webhooks_since_1_37_and_configurations_always() {
        let own = "admissionregistration.k8s.io";
        let table = [
            (own, "validatingadmissionpolicies", [true, true]),
            (own, "mutatingadmissionpolicybindings", [true, true]),
            (own, "mutatingwebhookconfigurations", [true, true]),
            ("authentication.k8s.io", "tokenreviews", [false, true]),
            ("apps", "deployments", [false, false]),
        ];
        for (group, resource, expect) in table {
            let gvr = Gvr::new(group, "v1", resource);
            let versions = [36, 37].map(KubernetesVersion::new);
            let exempt = versions.map(|version| is_exempt_from_webhooks(&gvr, version.behavior()));
            assert_eq!(exempt, expect, "{group} {resource}");
        }
    }
}
