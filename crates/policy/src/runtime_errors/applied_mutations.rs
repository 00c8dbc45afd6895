//! Applies the mutations of a policy to generated requests.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    ParamRef, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};
use serde_json::{Value as Json, json};

use super::requests::{RequestBuilder, SyntheticRequest};
use crate::admission::mutation::{
    BoundPolicy, Kinds, MutatingAdmission, MutationContext, StepCause, StepError, step_errors,
};
use crate::admission::{AuthorizerList, Binding, Object, Operation, ParamList};
use crate::compile::CompiledPolicy;
use kubernetes::defaulting::Decoding;
use kubernetes::merge;
use kubernetes::schema::Gvk;

pub(super) struct AppliedMutations<'a> {
    kinds: &'a (dyn Kinds + Sync),
    mutating: MutatingAdmission,
    /// The indices of the mutations' expressions in the policy.
    pub(super) mutations: Vec<usize>,
}

impl<'a> AppliedMutations<'a> {
    pub(super) fn new(policy: &CompiledPolicy, kinds: &'a (dyn Kinds + Sync)) -> Self {
        let expressions = policy.expressions().iter().enumerate();
        let mutations = expressions.filter(|(_, expression)| expression.role.is_mutation());
        let mutations: Vec<usize> = mutations.map(|(n, _)| n).collect();
        Self {
            kinds,
            mutating: MutatingAdmission::from_compiled(policy, mutations.len(), None),
            mutations,
        }
    }

    /// Returns true if the evaluation of the mutation with the index `index` fails after the preceding mutations were
    /// applied.
    pub(super) fn fails_to_evaluate(
        &self,
        builder: &RequestBuilder<'_>,
        synthetic: &SyntheticRequest,
        index: usize,
    ) -> bool {
        let errors = self.errors(builder, synthetic);
        errors.iter().any(|(mutation, error)| {
            self.mutations.get(*mutation) == Some(&index)
                && matches!(error.cause, StepCause::Expression)
        })
    }

    /// Returns the errors of the mutations, each with the position of the mutation in the policy. Empty if the policy
    /// does not match the request, or if the object may be invalid before the mutation.
    pub(super) fn errors(
        &self,
        builder: &RequestBuilder<'_>,
        synthetic: &SyntheticRequest,
    ) -> Vec<(usize, StepError)> {
        let is_mutable = matches!(synthetic.operation, Operation::Create | Operation::Update);
        let (Some(object), Some((request, _, namespaces))) =
            (&synthetic.object, builder.admission_request(synthetic))
        else {
            return Vec::new();
        };
        let admission = self.mutating.admission();
        if !is_mutable || !admission.matches_exactly(&request, &namespaces) {
            return Vec::new();
        }
        let is_namespaced = (builder.params.as_ref()).is_some_and(|params| params.is_namespaced);
        let text = |name: &str| {
            let metadata = synthetic.params.as_ref()?.get("metadata")?;
            metadata.get(name)?.as_str().map(str::to_owned)
        };
        let param_ref = synthetic.params.as_ref().map(|_| ParamRef {
            name: text("name"),
            namespace: text("namespace").filter(|_| is_namespaced),
            ..ParamRef::default()
        });
        let params = synthetic.params.iter().map(Object::new).collect();
        let params = ParamList::new(is_namespaced, params);
        let binding = Binding::new(&ValidatingAdmissionPolicyBinding {
            spec: ValidatingAdmissionPolicyBindingSpec {
                param_ref,
                ..ValidatingAdmissionPolicyBindingSpec::default()
            },
            ..ValidatingAdmissionPolicyBinding::default()
        });
        let bound = BoundPolicy {
            policy: &self.mutating,
            bindings: std::slice::from_ref(&binding),
            params: Ok(&params),
        };
        let authorizer = Arc::new(AuthorizerList::default());
        let context = MutationContext::new(self.kinds, &namespaces, authorizer);
        let gvk = request.gvk.clone();
        let mut errors = step_errors(request, object.clone(), &bound, &context);
        // Most requests have no error, so the object is checked only after an error.
        if !errors.is_empty() && !self.is_readable(&gvk, object) {
            errors.clear();
        }
        errors
    }

    /// Returns true if the API server can decode and merge the object before the mutations.
    fn is_readable(&self, gvk: &Gvk, object: &Json) -> bool {
        let Some(types) = self.kinds.types(gvk) else {
            return false;
        };
        let reads = |decoding| self.kinds.read(gvk, object, decoding).is_ok();
        let nothing = merge::Applied::from(&json!({}));
        reads(Decoding::Json)
            && reads(Decoding::Conversion)
            && merge::undeclared(&types, gvk, object).is_empty()
            && merge::apply(&types, gvk, object, &nothing).is_ok()
    }
}
