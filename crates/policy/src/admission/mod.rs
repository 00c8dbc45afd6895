//! Admission: computes an API server's decision on a request, given a policy and its bindings.
//!
//! [`Admission`] is created once per policy. [`Admission::review`] evaluates match constraints, bindings, params, match
//! conditions, variables, validations, messages and audit annotations for a request, and returns a [`ReviewOutcome`].
//! The caller provides namespaces, params and the authorizer through traits. This module does not access a cluster.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/{generic,matching,validating}`, `pkg/admission/plugin/cel`,
//! `pkg/admission/plugin/webhook/{predicates,matchconditions}`.

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
pub(crate) mod rules;
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
pub use recorder::{RecordedValue, Recorder, Recording, TextLimits};
pub use request::{AdmissionRequest, Equivalent, Operation, UserInfo};
pub use review::code_of;
pub use rules::Unmatched;
pub use selector::{ConfigurationError, Selector};
pub use stage::without_expression;

use self::evaluate::Evaluator;
use self::failure::FailurePolicy;
use self::rules::{Constraints, Matched};
use super::compile::CompiledPolicy;
use super::reads::fields::FieldRead;
use super::request_policy::RequestPolicy;
use kubernetes::library::limits::RUNTIME_CEL_COST_BUDGET;
use kubernetes::schema::{Gvk, Gvr};
use kubernetes::version::KubernetesVersion;

/// A compiled policy that evaluates any number of requests.
#[derive(Debug)]
pub struct Admission {
    name: String,
    version: KubernetesVersion,
    failure_policy: FailurePolicy,
    has_param_kind: bool,
    constraints: Option<Constraints>,
    evaluator: Evaluator,
    reads: OnceLock<Vec<FieldRead>>,
}

/// All inputs of a review except the policy and the request.
#[derive(Clone)]
pub struct ReviewContext<'a> {
    /// The objects of the policy's paramKind, or the error if they cannot be read. Unused if the policy has no
    /// paramKind.
    pub params: Result<&'a dyn ParamSource, String>,
    /// The lookup of namespaces.
    pub namespaces: &'a dyn NamespaceSource,
    /// The authorizer that decides the authorization checks in expressions.
    pub authorizer: Arc<dyn Authorizer>,
    /// The cost budget of the validations and messages of one evaluation. The audit annotations have a separate budget
    /// of the same size.
    pub budget: u64,
    /// Setting this flag cancels the evaluation. The outcome of a canceled evaluation must be ignored.
    pub is_cancelled: Option<Arc<AtomicBool>>,
    /// If set, records the values of all subexpressions.
    pub recorder: Option<Arc<Recorder>>,
}

impl<'a> ReviewContext<'a> {
    /// Creates a context with the API server's budget.
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
    /// Prepares `policy` for an API server of `version`: parses its selectors and compiles its expressions.
    ///
    /// As in the API server, an expression that does not compile causes an error for each request. To reject such a
    /// policy, check [`CompiledPolicy::findings`] before calling [`Admission::from_compiled`].
    #[must_use]
    pub fn new(policy: impl Into<RequestPolicy>, version: KubernetesVersion) -> Self {
        Self::from_compiled(&CompiledPolicy::from_parts(policy.into(), None, version))
    }

    /// Returns the version of the API server for which the policy was compiled.
    #[must_use]
    pub fn version(&self) -> KubernetesVersion {
        self.version
    }

    /// Parses the selectors of a policy that is already compiled.
    #[must_use]
    pub fn from_compiled(compiled: &CompiledPolicy) -> Self {
        let policy = compiled.policy();
        Self {
            name: policy.name.clone().unwrap_or_default(),
            version: compiled.version(),
            failure_policy: FailurePolicy::new(policy.failure_policy.as_deref()),
            has_param_kind: policy.param_kind.is_some(),
            constraints: policy.match_constraints.as_ref().map(Constraints::new),
            evaluator: Evaluator::new(compiled),
            reads: OnceLock::new(),
        }
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the object fields that the policy's expressions read.
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

    /// Returns the resource and kind that `request` is evaluated as, possibly those of an equivalent resource. `None`
    /// if the policy's constraints do not match.
    fn matches(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Result<Matched, String> {
        match &self.constraints {
            None => Err("policy contained no match constraints, a required field".to_owned()),
            Some(constraints) => constraints
                .matches(request, namespaces)
                .map_err(|error| self.error_text(&error)),
        }
    }

    fn binding_matches(
        &self,
        binding: &Binding,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Result<bool, String> {
        binding.constraints().map_or(Ok(true), |constraints| {
            let matched = constraints.matches(request, namespaces);
            let is_match = matched.map(|matched| matched.is_some());
            is_match.map_err(|error| self.error_text(&error))
        })
    }

    /// Returns the params that a binding selects for `request`. The policy is evaluated once for each element. An
    /// element `None` means an evaluation without params.
    fn collect_params(
        &self,
        binding: &Binding,
        source: Option<&dyn ParamSource>,
        request: &AdmissionRequest,
    ) -> Result<Vec<Option<Object>>, String> {
        let Some(source) = source.filter(|_| self.has_param_kind) else {
            return Ok(vec![None]);
        };
        let params = params::collect(binding.param_ref(), source, &request.namespace);
        params.map_err(|error| self.error_text(&error))
    }

    fn error_text(&self, error: &ConfigurationError) -> String {
        error.text(&self.version.behavior())
    }

    /// Returns the kind that `request` is evaluated as. `None` if the policy's constraints do not match or cannot be
    /// evaluated.
    #[must_use]
    pub fn matched_kind(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Option<Gvk> {
        let matched = self.matches(request, namespaces).ok().flatten();
        matched.map(|(_, gvk)| gvk)
    }

    /// Returns the constraint of the policy that excludes `request`. `None` if the constraints match or cannot be
    /// evaluated.
    #[must_use]
    pub fn unmatched(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Option<Unmatched> {
        let constraints = self.constraints.as_ref()?;
        constraints.unmatched(request, namespaces)
    }

    /// Returns true if the policy's constraints match the resource of `request`. Returns false if they only match an
    /// equivalent resource.
    pub(crate) fn matches_exactly(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> bool {
        let matched = self.matches(request, namespaces);
        matched.is_ok_and(|matched| matched.is_some_and(|(gvr, _)| gvr == request.gvr))
    }

    /// Returns the error of the params lookup for `binding` and `request`. `None` if the lookup succeeds, or if the
    /// binding does not match.
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
        let params = params::collect(binding.param_ref(), *source, &request.namespace);
        params.err().map(|error| error.to_string())
    }

    /// Computes the decision of an API server that has only this policy and `bindings`.
    ///
    /// The bindings apply even if their policyName differs from the policy's name. Without bindings, the policy has no
    /// effect.
    #[must_use]
    pub fn review(
        &self,
        request: &AdmissionRequest,
        bindings: &[Binding],
        context: &ReviewContext<'_>,
    ) -> ReviewOutcome {
        review::review(self, request, bindings, context)
    }

    /// Evaluates the policy with at most one params object. Constraints and bindings are ignored.
    ///
    /// `matched` is the resource and kind that the request is evaluated as, possibly those of an equivalent resource.
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

    /// Like [`Admission::evaluate`], but also returns the result of each evaluated expression.
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
