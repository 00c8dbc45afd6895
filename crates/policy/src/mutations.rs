//! The mutations of mutating policies, and the conversion of their bindings to bindings of validating policies.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/compilation.go` (`compilePolicy`), `plugin.go`
//! (`NewPlugin`).

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};

/// The patch type of a mutation whose expression returns an object to merge.
pub const APPLY_CONFIGURATION: &str = "ApplyConfiguration";

/// The patch type of a mutation whose expression returns a JSON patch.
pub const JSON_PATCH: &str = "JSONPatch";

/// Converts the binding of a mutating policy to a binding of a validating policy. The policy name, params and match
/// resources are the same.
#[must_use]
pub fn shared_part_of_binding(
    binding: &MutatingAdmissionPolicyBinding,
) -> ValidatingAdmissionPolicyBinding {
    let spec = binding.spec.clone().unwrap_or_default();
    ValidatingAdmissionPolicyBinding {
        metadata: binding.metadata.clone(),
        spec: ValidatingAdmissionPolicyBindingSpec {
            match_resources: spec.match_resources,
            param_ref: spec.param_ref,
            policy_name: spec.policy_name.unwrap_or_default(),
            validation_actions: vec!["Deny".to_owned()],
        },
    }
}

/// Returns the mutations of `policy`, in order.
#[must_use]
pub fn mutations(policy: &MutatingAdmissionPolicy) -> &[Mutation] {
    let spec = policy.spec.as_ref();
    let mutations = spec.and_then(|spec| spec.mutations.as_deref());
    mutations.unwrap_or_default()
}
