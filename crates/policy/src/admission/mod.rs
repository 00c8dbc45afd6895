//! Admission: what an API server decides of a request because of a policy and its bindings.
//!
//! [`Admission`] is made once of a policy; [`Admission::review`] takes a request through match
//! constraints, bindings, params, match conditions, variables, validations, messages and audit annotations
//! to a [`ReviewOutcome`]. Nothing here reads a cluster: namespaces, params and the authorizer are asked through
//! traits.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/{generic,matching,validating}`,
//! `pkg/admission/plugin/cel`, `pkg/admission/plugin/webhook/{predicates,matchconditions}`.

mod binding;
mod evaluate;
mod failure;
mod message;
pub mod mutation;
mod namespace;
mod object;
mod outcome;
mod params;
mod program;
mod recorder;
mod request;
mod review;
mod rules;
mod scope;
mod selector;
mod stage;
mod text;
pub(crate) mod trace;
mod visible;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

pub use binding::Binding;
pub use kubernetes::library::authz::{
    Authorizer, AuthorizerAnswer, AuthorizerAttributes, AuthorizerDecision, AuthorizerList,
    AuthorizerRule,
};
pub use namespace::{Namespace, NamespaceSource};
pub use object::{Labels, Object, kind_of};
pub use outcome::{
    Action, AuditAnnotation, AuditAnnotationAction, BindingMatch, ConditionsMatch, Costs, Decision,
    DefinitionMatch, DeniedBy, Evaluation, EvaluationResult, ReviewOutcome, StageCost, Status,
};
pub(crate) use params::NOT_FOUND as PARAMS_NOT_FOUND;
pub use params::{ParamList, ParamSource};
pub use recorder::{RecordedValue, Recorder, Recording};
pub use request::{AdmissionRequest, Equivalent, Operation, UserInfo};
pub use rules::Unmatched;
pub use selector::Selector;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use self::evaluate::Evaluator;
use self::failure::FailurePolicy;
use self::rules::{Constraints, Matched};
use super::compile::CompiledPolicy;
use super::reads::fields::FieldRead;
use kubernetes::library::limits::RUNTIME_CEL_COST_BUDGET;
use kubernetes::schema::{Gvk, Gvr};

/// A policy that is ready to decide. Made once, it reviews any number of requests.
#[derive(Debug)]
pub struct Admission {
    name: String,
    failure_policy: FailurePolicy,
    has_param_kind: bool,
    constraints: Option<Constraints>,
    evaluator: Evaluator,
    reads: OnceLock<Vec<FieldRead>>,
}

/// The sources that a review asks besides the policy and the request.
#[derive(Clone)]
pub struct ReviewContext<'a> {
    /// The objects of the policy's paramKind, or why they cannot be told, which is an error of the policy.
    /// Never asked where the policy has no paramKind.
    pub params: Result<&'a dyn ParamSource, String>,
    /// The namespaces.
    pub namespaces: &'a dyn NamespaceSource,
    /// Who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// The cost units that the validations and messages of an evaluation may use, and its audit
    /// annotations again.
    pub budget: u64,
    /// Where given and set, the evaluation ends soon, and its outcome says nothing.
    pub is_cancelled: Option<Arc<AtomicBool>>,
    /// Where the values of all parts of expressions are recorded, if someone wants to know.
    pub recorder: Option<Arc<Recorder>>,
}

impl<'a> ReviewContext<'a> {
    /// The context with the API server's budget.
    #[must_use]
    pub fn new(
        params: &'a dyn ParamSource,
        namespaces: &'a dyn NamespaceSource,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        Self {
            params: Ok(params),
            namespaces,
            authorizer,
            budget: RUNTIME_CEL_COST_BUDGET,
            is_cancelled: None,
            recorder: None,
        }
    }
}

impl fmt::Debug for ReviewContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewContext")
            .field("params", &self.params.as_ref().map(|_| ".."))
            .field("authorizer", &self.authorizer)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl Admission {
    /// Makes `policy` ready: reads its selectors and compiles its expressions.
    #[must_use]
    pub fn new(policy: &ValidatingAdmissionPolicy) -> Self {
        Self::from_compiled(&CompiledPolicy::new(policy))
    }

    /// Makes a policy ready that has been compiled.
    #[must_use]
    pub fn from_compiled(compiled: &CompiledPolicy) -> Self {
        let policy = compiled.policy();
        let spec = policy.spec.as_ref();
        Self {
            name: policy.metadata.name.clone().unwrap_or_default(),
            failure_policy: FailurePolicy::new(
                spec.and_then(|spec| spec.failure_policy.as_deref()),
            ),
            has_param_kind: spec.is_some_and(|spec| spec.param_kind.is_some()),
            constraints: spec
                .and_then(|spec| spec.match_constraints.as_ref())
                .map(Constraints::new),
            evaluator: Evaluator::new(compiled),
            reads: OnceLock::new(),
        }
    }

    /// The name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields of objects that its expressions read.
    pub fn field_reads(&self) -> &[FieldRead] {
        self.reads
            .get_or_init(|| self.evaluator.programs().field_reads())
    }

    fn failure_policy(&self) -> &FailurePolicy {
        &self.failure_policy
    }

    fn has_param_kind(&self) -> bool {
        self.has_param_kind
    }

    /// Where the policy's constraints match `request`, the resource and kind as which it is evaluated.
    fn matches(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Result<Matched, String> {
        match &self.constraints {
            None => Err("policy contained no match constraints, a required field".to_owned()),
            Some(constraints) => constraints.matches(request, namespaces),
        }
    }

    /// The kind as which `request` is evaluated, where the policy's constraints match it.
    #[must_use]
    pub fn matched_kind(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Option<Gvk> {
        let matched = self.matches(request, namespaces).ok().flatten();
        matched.map(|(_, gvk)| gvk)
    }

    /// The part of the policy's constraints because of which they do not match `request`, where they do not.
    #[must_use]
    pub fn unmatched(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Option<Unmatched> {
        let constraints = self.constraints.as_ref()?;
        constraints.unmatched(request, namespaces)
    }

    /// Reports whether the policy's constraints match `request` as the resource that it names.
    pub(crate) fn matches_exactly(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> bool {
        let matched = self.matches(request, namespaces);
        matched.is_ok_and(|matched| matched.is_some_and(|(gvr, _)| gvr == request.gvr))
    }

    /// The error in the params that `binding` names for `request`, where it applies to that.
    pub(crate) fn params_error(
        request: &AdmissionRequest,
        binding: &Binding,
        context: &ReviewContext<'_>,
    ) -> Option<String> {
        let source = context.params.as_ref().ok()?;
        if let Some(constraints) = binding.constraints() {
            let matched = constraints.matches(request, context.namespaces);
            matched.ok().flatten()?;
        }
        params::collect(binding.param_ref(), *source, &request.namespace).err()
    }

    /// Decides about `request` as an API server does that has `bindings` of this policy, and no other.
    ///
    /// Bindings count as given, whatever policy they name.
    #[must_use]
    pub fn review(
        &self,
        request: &AdmissionRequest,
        bindings: &[Binding],
        context: &ReviewContext<'_>,
    ) -> ReviewOutcome {
        review::review(self, request, bindings, context)
    }

    /// Evaluates the policy for one of its params, whatever it matches and however it is bound.
    ///
    /// `matched` is the resource and kind as which the request is evaluated: its own, unless constraints
    /// matched another that is equivalent.
    #[must_use]
    pub fn evaluate(
        &self,
        request: &AdmissionRequest,
        matched: (&Gvr, &Gvk),
        params: Option<&Object>,
        namespace: Option<&Namespace>,
        context: &ReviewContext<'_>,
    ) -> Evaluation {
        self.evaluator
            .evaluate(request, matched, params, namespace, context, None)
    }

    /// [`Admission::evaluate`], with the result of each expression that was evaluated.
    pub(crate) fn trace(
        &self,
        request: &AdmissionRequest,
        params: Option<&Object>,
        namespace: Option<&Namespace>,
        context: &ReviewContext<'_>,
    ) -> (Evaluation, Vec<trace::Step>) {
        let trace = Arc::new(trace::Trace::default());
        let evaluation = self.evaluator.evaluate(
            request,
            (&request.gvr, &request.gvk),
            params,
            namespace,
            context,
            Some(&trace),
        );
        (evaluation, trace.take())
    }
}

#[cfg(test)]
mod tests;
