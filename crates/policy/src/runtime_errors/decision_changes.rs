//! Compares the decisions of a policy before and after a change of one expression.
//!
//! The requests come from a search for examples, which runs for both policies. It finds no examples among requests that
//! a match condition skips. For changed match conditions, the minimal requests of each kind are therefore compared too,
//! with trial values for each input that the changed expression reads. Finally, the solver searches for requests for
//! which the changed expression has different results.

use std::sync::Arc;

use super::Context;
use super::examples::{Trials, for_each_request, for_each_trial};
use super::requests::{RequestBuilder, SyntheticRequest};
use super::version_comparison::distinguishing_requests;
use crate::admission::{
    Action, Admission, AuthorizerList, Evaluation, EvaluationResult, Object, ParamList,
    ReviewContext,
};
use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use cel::stack::run_on_deep_stack;

/// Maximum number of compared requests in each search.
const MAX_REQUESTS: usize = 200;

/// Maximum number of requests for which the solver's search compares the results of the changed expression.
const MAX_DISTINGUISHING: usize = 600;

/// The reasons for which a validation denies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReasons {
    /// The validation is false.
    False,
    /// The validation is false, or fails under failurePolicy Fail.
    FalseOrError,
}

/// Returns true in two cases: `changed` allows a request that `policy` denies for one of `reasons`, or `changed` skips
/// a request for which all match conditions of `policy` are true. `changed` differs in the expression of the field
/// `field_ref`.
#[must_use]
pub fn allows_denied_requests(
    [policy, changed]: [&CompiledPolicy; 2],
    field_ref: &str,
    reasons: DenialReasons,
    context: &Context<'_>,
) -> bool {
    let expressions = [policy, changed].map(CompiledPolicy::expressions);
    let is_deep = expressions
        .iter()
        .any(|expressions| expressions.iter().any(PolicyExpression::is_deep));
    run_on_deep_stack(is_deep, || {
        let mut comparison = Comparison {
            admissions: [policy, changed].map(Admission::from_compiled),
            reasons,
            n_left: 0,
            allows: false,
        };
        for policy in [policy, changed] {
            comparison.n_left = MAX_REQUESTS;
            for_each_request(policy, context, None, &mut |builder, synthetic| {
                comparison.compare(builder, synthetic)
            });
        }
        comparison.n_left = MAX_REQUESTS;
        let mut expressions = changed.expressions().iter();
        if let Some(index) = expressions.position(|it| it.field_ref == field_ref) {
            for_each_trial(
                changed,
                context,
                None,
                &Trials::new(&[index]),
                &mut |builder, _, synthetic| comparison.compare(builder, synthetic),
            );
        }
        comparison.allows || {
            let policies = [policy, changed];
            let differences = distinguishing_requests(policies, context, MAX_DISTINGUISHING);
            let mut differences = differences.iter();
            differences.any(|it| is_weaker([&it.old, &it.new], reasons))
        }
    })
}

struct Comparison {
    admissions: [Admission; 2],
    reasons: DenialReasons,
    n_left: usize,
    allows: bool,
}

impl Comparison {
    /// Compares the decisions for a request. Returns false if no further requests need to be compared.
    fn compare(&mut self, builder: &RequestBuilder<'_>, synthetic: &SyntheticRequest) -> bool {
        self.n_left = self.n_left.saturating_sub(1);
        if let Some((request, namespace, namespaces)) = builder.admission_request(synthetic) {
            let no_params = ParamList::default();
            let authorizer = Arc::new(AuthorizerList::default());
            let context = ReviewContext::new(&no_params, &namespaces, authorizer);
            let params = synthetic.params.as_ref().map(Object::new);
            let [before, after] = self.admissions.each_ref().map(|admission| {
                let gvk = (&request.gvr, &request.gvk);
                let namespace = namespace.as_ref();
                admission.evaluate(&request, gvk, params.as_ref(), namespace, &context)
            });
            self.allows |= is_weaker([&before, &after], self.reasons);
        }
        !self.allows && self.n_left > 0
    }
}

/// Returns true if the policy is weaker after the change: it allows a request that it denied before for one of
/// `reasons`, or skips a request for which all match conditions were true before.
fn is_weaker([before, after]: [&Evaluation; 2], reasons: DenialReasons) -> bool {
    let is_denied = |evaluation| is_denied(evaluation, reasons);
    let is_allowed = !is_denied(after) && after.exceeded.is_none();
    is_allowed && (is_denied(before) || is_checked(before) && is_skipped(after))
}

/// Returns true if a validation denies the request for one of `reasons`.
fn is_denied(evaluation: &Evaluation, reasons: DenialReasons) -> bool {
    let mut decisions = evaluation.decisions.iter();
    decisions.any(|decision| match decision.evaluation {
        EvaluationResult::Deny => true,
        EvaluationResult::Error => {
            reasons == DenialReasons::FalseOrError && decision.action == Action::Deny
        }
        EvaluationResult::Admit => false,
    })
}

/// Returns true if all match conditions are true.
fn is_checked(evaluation: &Evaluation) -> bool {
    let conditions = evaluation.match_conditions.as_ref();
    conditions.is_some_and(|conditions| conditions.matches)
}

/// Returns true if a match condition is false.
fn is_skipped(evaluation: &Evaluation) -> bool {
    let conditions = evaluation.match_conditions.as_ref();
    conditions.is_some_and(|conditions| conditions.failed_condition.is_some())
}
