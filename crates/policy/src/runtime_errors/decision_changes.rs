//! Compares the decisions of a policy before and after a change of one expression.

use std::sync::Arc;

use super::Context;
use super::examples::for_each_request;
use crate::admission::{
    Admission, AuthorizerList, Evaluation, EvaluationResult, Object, ParamList, ReviewContext,
};
use crate::compile::CompiledPolicy;

/// Maximum number of compared requests.
const MAX_REQUESTS: usize = 200;

/// Returns true if `changed` allows a request that `policy` denies because a validation is false. The requests are those
/// of the search for examples.
#[must_use]
pub fn allows_denied_requests(
    [policy, changed]: [&CompiledPolicy; 2],
    context: &Context<'_>,
) -> bool {
    let admissions = [policy, changed].map(Admission::from_compiled);
    let mut n_left = MAX_REQUESTS;
    let mut allows = false;
    for_each_request(policy, context, None, &mut |builder, synthetic| {
        n_left -= 1;
        if let Some((request, namespace, namespaces)) = builder.admission_request(synthetic) {
            let no_params = ParamList::default();
            let authorizer = Arc::new(AuthorizerList::default());
            let context = ReviewContext::new(&no_params, &namespaces, authorizer);
            let params = synthetic.params.as_ref().map(Object::new);
            let [before, after] = admissions.each_ref().map(|admission| {
                let gvk = (&request.gvr, &request.gvk);
                let namespace = namespace.as_ref();
                admission.evaluate(&request, gvk, params.as_ref(), namespace, &context)
            });
            allows = is_denied(&before) && !is_denied(&after) && after.exceeded.is_none();
        }
        !allows && n_left > 0
    });
    allows
}

/// Returns true if a validation is false.
fn is_denied(evaluation: &Evaluation) -> bool {
    let mut decisions = evaluation.decisions.iter();
    decisions.any(|decision| decision.evaluation == EvaluationResult::Deny)
}
