//! Compares the decisions of a policy before and after a change of one expression.
//!
//! The requests are those of the search for examples, for both policies. If a match condition changes, requests that it
//! skips have no examples. Therefore the minimal requests of each kind are compared too, with values for each input that
//! the changed expression reads.

use std::sync::Arc;

use super::Context;
use super::examples::{Trials, for_each_request, for_each_trial};
use super::requests::{RequestBuilder, SyntheticRequest};
use crate::admission::{
    Action, Admission, AuthorizerList, Evaluation, EvaluationResult, Object, ParamList,
    ReviewContext,
};
use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use cel::stack::run_on_deep_stack;

/// Maximum number of compared requests of each search.
const MAX_REQUESTS: usize = 200;

/// The reasons for which a validation denies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReasons {
    /// The validation is false.
    False,
    /// The validation is false, or fails under failurePolicy Fail.
    FalseOrError,
}

/// Returns true if `changed` allows a request that `policy` denies for one of `reasons`, or skips a request for which all
/// match conditions of `policy` are true. `changed` differs in the expression of the field `field_ref`.
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
        comparison.allows
    })
}

struct Comparison {
    admissions: [Admission; 2],
    reasons: DenialReasons,
    n_left: usize,
    allows: bool,
}

impl Comparison {
    /// Compares the decisions for a request. Returns false if the comparison is over.
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
            let is_denied = |evaluation| is_denied(evaluation, self.reasons);
            let is_allowed = !is_denied(&after) && after.exceeded.is_none();
            self.allows |=
                is_allowed && (is_denied(&before) || is_checked(&before) && is_skipped(&after));
        }
        !self.allows && self.n_left > 0
    }
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
