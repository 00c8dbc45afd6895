//! Bindings with parsed selectors.

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};

use super::namespace::NamespaceSource;
use super::request::AdmissionRequest;
use super::rules::{Constraints, Unmatched};

/// A binding of a policy, with parsed selectors.
#[derive(Clone, Debug)]
pub struct Binding {
    name: String,
    spec: ValidatingAdmissionPolicyBindingSpec,
    constraints: Option<Constraints>,
}

impl Binding {
    /// Parses the selectors of `binding`.
    #[must_use]
    pub fn new(binding: &ValidatingAdmissionPolicyBinding) -> Self {
        let spec = binding.spec.clone();
        Self {
            name: binding.metadata.name.clone().unwrap_or_default(),
            constraints: spec.match_resources.as_ref().map(Constraints::new),
            spec,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the policy that the binding refers to.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        &self.spec.policy_name
    }

    /// Returns the spec.
    #[must_use]
    pub fn spec(&self) -> &ValidatingAdmissionPolicyBindingSpec {
        &self.spec
    }

    /// Returns the validationActions, such as `Deny` and `Warn`. They apply if a validation is false.
    #[must_use]
    pub fn validation_actions(&self) -> &[String] {
        &self.spec.validation_actions
    }

    /// Returns true if the binding has a non-empty namespaceSelector.
    #[must_use]
    pub fn has_namespace_selector(&self) -> bool {
        let resources = self.spec.match_resources.as_ref();
        let selector = resources.and_then(|resources| resources.namespace_selector.as_ref());
        selector.is_some_and(|selector| {
            let labels = selector.match_labels.as_ref();
            let expressions = selector.match_expressions.as_ref();
            labels.is_some_and(|labels| !labels.is_empty())
                || expressions.is_some_and(|expressions| !expressions.is_empty())
        })
    }

    /// Returns the constraint of the binding that excludes `request`. `None` if the constraints match or cannot be
    /// evaluated.
    #[must_use]
    pub fn unmatched(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Option<Unmatched> {
        self.constraints()?.unmatched(request, namespaces)
    }

    pub(super) fn param_ref(&self) -> Option<&ParamRef> {
        self.spec.param_ref.as_ref()
    }

    /// Returns the constraints of the binding. A request must match these constraints and also those of the policy.
    pub(super) fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }
}
