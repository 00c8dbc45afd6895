//! Requests with trial values for each input of some expressions.

use k8s_openapi::api::admissionregistration::v1::MatchResources;

use super::trials;
use crate::compile::CompiledPolicy;
use crate::matching;
use crate::runtime_errors::Context;
use crate::runtime_errors::requests::builders::RequestBuilders;
use crate::runtime_errors::requests::kinds::representative_kinds;
use crate::runtime_errors::requests::{RequestBuilder, SyntheticRequest, minimal_constraints};
use crate::runtime_errors::search::MAX_SYMBOLIC_STEPS;
use kubernetes::validity::InputConstraints;

/// A function that is called with each request and its constraints. The loop ends if it returns false.
pub(crate) type ObserveTrial<'o> =
    &'o mut dyn FnMut(&RequestBuilder<'_>, &InputConstraints, &SyntheticRequest) -> bool;

/// Calls `observe` with the minimal requests of each kind, and with these requests changed by one trial value of an input
/// of the expressions at `indices`. The requests match `match_resources`, the matchResources of a binding.
pub(crate) fn for_each_trial(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    match_resources: Option<&MatchResources>,
    indices: &[usize],
    observe: ObserveTrial<'_>,
) {
    let targets = matching::targets(policy.policy(), context.mapper);
    let builders = RequestBuilders::new(policy, context);
    for (resource, operations) in representative_kinds(&targets) {
        let Some(builder) = builders.for_resource(resource, operations) else {
            continue;
        };
        let builder = builder.with_match_resources(match_resources);
        let evaluator = builder.evaluator(MAX_SYMBOLIC_STEPS);
        let indices = indices.iter();
        let trials: Vec<_> = indices.flat_map(|n| trials(&evaluator, *n)).collect();
        for minimal in minimal_constraints(&builder.operations) {
            let with_trials = trials.iter().filter_map(|(path, constraint)| {
                let mut constraints = minimal.clone();
                constraints.add(path, constraint.clone())?;
                Some(constraints)
            });
            for constraints in std::iter::once(minimal.clone()).chain(with_trials) {
                let Some(synthetic) = builder.build(&constraints) else {
                    continue;
                };
                if !observe(&builder, &constraints, &synthetic) {
                    return;
                }
            }
        }
    }
}
