//! MutatingAdmissionPolicies: what they share with validating ones, and their mutations.
//!
//! A mutating policy is read as a validating one with the same constraints, conditions, variables and params, without
//! validations, whose mutations are held beside it.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/compilation.go` (`compilePolicy`), `plugin.go`
//! (`NewPlugin`).

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation, NamedRuleWithOperations,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
};

/// The type of a mutation whose expression is an object to apply.
pub const APPLY_CONFIGURATION: &str = "ApplyConfiguration";

/// The type of a mutation whose expression is a JSON patch.
pub const JSON_PATCH: &str = "JSONPatch";

/// The operations that mutating policies are asked about; a wildcard stands for these.
const OPERATIONS: [&str; 3] = ["CREATE", "UPDATE", "CONNECT"];

/// The part of `policy` that it shares with validating policies.
#[must_use]
pub fn shared_part(policy: &MutatingAdmissionPolicy) -> ValidatingAdmissionPolicy {
    let spec = policy.spec.as_ref().map(|spec| {
        let mut match_constraints = spec.match_constraints.clone();
        if let Some(constraints) = &mut match_constraints {
            for rule in constraints.resource_rules.iter_mut().flatten() {
                name_operations(rule);
            }
        }
        ValidatingAdmissionPolicySpec {
            failure_policy: spec.failure_policy.clone(),
            match_conditions: spec.match_conditions.clone(),
            match_constraints,
            param_kind: spec.param_kind.clone(),
            variables: spec.variables.clone(),
            ..Default::default()
        }
    });
    ValidatingAdmissionPolicy {
        metadata: policy.metadata.clone(),
        spec,
        ..Default::default()
    }
}

/// Names the operations that a wildcard stands for.
fn name_operations(rule: &mut NamedRuleWithOperations) {
    if let Some(operations) = &mut rule.operations
        && operations.iter().any(|operation| operation == "*")
    {
        *operations = OPERATIONS.map(str::to_owned).to_vec();
    }
}

/// The part of `binding` that it shares with those of validating policies.
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

/// The mutations of `policy`.
#[must_use]
pub fn mutations(policy: &MutatingAdmissionPolicy) -> &[Mutation] {
    let spec = policy.spec.as_ref();
    let mutations = spec.and_then(|spec| spec.mutations.as_deref());
    mutations.unwrap_or_default()
}
