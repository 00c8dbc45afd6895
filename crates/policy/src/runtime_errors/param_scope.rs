//! Finds bindings whose paramRef does not match the scope of the paramKind.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::Context;
use super::requests::Witness;
use super::requests::builders::RequestBuilders;
use super::requests::kinds::{one_per_kind, operations};
use crate::admission::{Admission, AuthorizerList, Binding, ParamList, ReviewContext};
use crate::compile::CompiledPolicy;
use crate::consequence::Consequence;
use crate::{fails_closed, matching, param_kind};
use kubernetes::schema::Gvk;
use kubernetes::validity::InputConstraints;

/// Maximum number of matched kinds to try.
const MAX_SCOPE_KINDS: usize = 20;

/// A binding for which the params lookup fails for some requests. Match conditions cannot exclude these requests,
/// because the API server evaluates match conditions after the lookup.
#[derive(Clone, Debug)]
pub struct ScopeMismatch {
    /// The problem, its consequence and the error.
    pub message: String,
    /// The effect on the request.
    pub consequence: Consequence,
    /// The kind of the object of the witness.
    pub gvk: Gvk,
    /// A request for which the params lookup fails.
    pub witness: Witness,
}

/// Finds a request for which the params lookup fails, because the paramKind of `policy` and the paramRef of `binding`
/// have different scopes. `None` if their scopes match, or if no such request can be built.
#[must_use]
pub fn scope_mismatch(
    policy: &CompiledPolicy,
    binding: &ValidatingAdmissionPolicyBinding,
    context: &Context<'_>,
) -> Option<ScopeMismatch> {
    let reference = binding.spec.param_ref.as_ref()?;
    let gvk = param_kind(policy.policy())?;
    let is_namespaced = context.mapper.resources_of_kind(&gvk).next()?.namespaced;
    let has_namespace = reference
        .namespace
        .as_deref()
        .is_some_and(|name| !name.is_empty());
    if is_namespaced == has_namespace {
        return None;
    }
    let targets = matching::targets(policy.policy(), context.mapper);
    let builders = RequestBuilders::without_params(policy, context);
    let bound = Binding::new(binding);
    let params = ParamList::new(is_namespaced, Vec::new());
    // If the paramRef has no namespace, params are looked up in the namespace of the object. The lookup then fails only
    // for cluster-scoped objects.
    let fitting = targets
        .iter()
        .filter(|target| !is_namespaced || !target.resource.namespaced);
    let fitting: Vec<_> = fitting.collect();
    for target in one_per_kind(&fitting, MAX_SCOPE_KINDS) {
        let resource = target.resource;
        let Some(builder) = builders.for_resource(resource, operations(target)) else {
            continue;
        };
        let builder = builder.with_match_resources(binding.spec.match_resources.as_ref());
        let Some(synthetic) = builder.build(&InputConstraints::default()) else {
            continue;
        };
        let Some((request, _, namespaces)) = builder.admission_request(&synthetic) else {
            continue;
        };
        if !builders.admission().matches_exactly(&request, &namespaces) {
            continue;
        }
        let context = ReviewContext::new(&params, &namespaces, Arc::new(AuthorizerList::default()));
        let Some(error) = Admission::params_error(&request, &bound, &context) else {
            continue;
        };
        let kind = &gvk.kind;
        let problem = if is_namespaced {
            format!(
                "the paramKind {kind} is namespaced, but paramRef has no namespace and {} is cluster-scoped",
                resource.gvk.kind
            )
        } else {
            format!("the paramKind {kind} is cluster-scoped, but paramRef has a namespace")
        };
        let failing_requests = if is_namespaced {
            format!("every request for {}", resource.gvr.resource)
        } else {
            "every request that the binding matches".to_owned()
        };
        // Double quotes enclose an error that contains backquotes.
        let quote = if error.contains('`') { '"' } else { '`' };
        return Some(ScopeMismatch {
            message: format!(
                "{problem}: {failing_requests} fails with {quote}{error}{quote}, before match conditions are evaluated"
            ),
            consequence: if fails_closed(policy.policy()) {
                Consequence::Denied
            } else {
                Consequence::LetThrough
            },
            gvk: resource.gvk.clone(),
            witness: builder.witness(&synthetic, &error),
        });
    }
    None
}
