//! Applies all mutating policies to the object of a request. Validating policies are evaluated for the result.

use std::sync::Arc;

use super::policy_set::{PolicySet, PreparedPolicy};
use super::report::{MutatedObject, PolicyEval, Verdict};
use crate::cli::unified;
use crate::defaulting::Stage;
use crate::policy::admission::mutation::BoundPolicy;
use crate::policy::admission::{AuthorizerList, ParamList, ParamSource, ReviewContext};
use crate::probe::api::{Request, Samples};
use crate::probe::mutation::{patch, together};
use crate::probe::prepare;
use crate::probe::run::{self, case_namespaces};

/// Returns the object after all mutating `policies`, or `None` if the object does not change. `evals` contains the
/// result of each policy for the original object.
///
/// # Errors
/// Returns the reason why the object after the mutations is unknown.
pub(super) fn mutated_object(
    policies: &[&PreparedPolicy<'_>],
    evals: &[PolicyEval],
    request: &Request,
    policy_set: &PolicySet<'_>,
) -> Result<Option<MutatedObject>, String> {
    let with_verdict = |verdict: Verdict| evals.iter().find(move |eval| eval.verdict == verdict);
    if let Some(eval) = with_verdict(Verdict::Unknown).or_else(|| with_verdict(Verdict::Rejected)) {
        let name = &eval.name;
        return Err(format!(
            "the result of the mutating policy {name} is unknown"
        ));
    }
    if with_verdict(Verdict::Mutated).is_none() {
        return Ok(None);
    }
    let apis = policy_set.known;
    let sample = (Samples::Whole, Stage::Mutation);
    let prepared = prepare::objects(request, apis.version(), sample, &apis.mapper, apis)?.request;
    let admission_request = run::admission_request(&prepared, &apis.mapper)?;
    let applicable = policies
        .iter()
        .zip(evals)
        .filter(|(_, eval)| !matches!(eval.verdict, Verdict::NotBound | Verdict::NotMatched));
    let bound: Vec<BoundPolicy<'_>> = applicable
        .filter_map(|(policy, _)| {
            Some(BoundPolicy {
                policy: policy.mutating.as_ref()?,
                bindings: &policy.bindings,
                params: match &policy.params {
                    Ok(list) => Ok(list as &dyn ParamSource),
                    Err(why) => Err(why.clone()),
                },
            })
        })
        .collect();
    let namespaces = case_namespaces(
        &prepared,
        &admission_request.namespace,
        &policy_set.namespaces,
    );
    let none = ParamList::default();
    let authorizer = Arc::new(AuthorizerList(Vec::new()));
    let mut context = ReviewContext::new(&none, &namespaces, authorizer);
    let object = prepared.object.as_ref();
    let outcome = policy_set.limit.run(|is_cancelled| {
        context.is_cancelled = Some(Arc::clone(is_cancelled));
        together(
            &bound,
            &policy_set.kinds,
            (&admission_request, object),
            &context,
        )
    })??;
    if let Some(denial) = outcome.denial {
        return Err(format!(
            "a mutating policy denies the request: {}",
            denial.cause
        ));
    }
    let (Some(before), Some(mut after)) = (object, outcome.object) else {
        return Ok(None);
    };
    if let Some(metadata) = after.get_mut("metadata").and_then(|it| it.as_object_mut()) {
        metadata.remove("managedFields");
    }
    let mut before = before.clone();
    if let Some(metadata) = before.get_mut("metadata").and_then(|it| it.as_object_mut()) {
        metadata.remove("managedFields");
    }
    Ok(Some(MutatedObject {
        patch: patch::between(&before, &after),
        change: unified::from_objects(("before", "after"), &before, &after),
        object: after,
    }))
}
