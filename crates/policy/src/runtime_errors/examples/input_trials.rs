//! Builds requests with trial values for each input of some expressions.

use k8s_openapi::api::admissionregistration::v1::MatchResources;

use serde_json::Value as Json;

use super::{inputs, trials_of, usual_constraints};
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::matching;
use crate::runtime_errors::Context;
use crate::runtime_errors::requests::builders::RequestBuilders;
use crate::runtime_errors::requests::kinds::representative_kinds;
use crate::runtime_errors::requests::{
    RequestBuilder, SyntheticRequest, Witness, minimal_constraints,
};
use crate::runtime_errors::search::MAX_SYMBOLIC_STEPS;
use crate::runtime_errors::symbolic::SymbolicEvaluator;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// Maximum number of requests that [`requests_near`] returns.
const MAX_REQUESTS: usize = 120;

/// A function that is called with each request and its constraints. The search ends if the function returns false.
pub(crate) type ObserveTrial<'o> =
    &'o mut dyn FnMut(&RequestBuilder<'_>, &InputConstraints, &SyntheticRequest) -> bool;

/// The changes that [`for_each_trial`] makes to requests: it sets the inputs of some expressions to trial values.
pub(crate) struct Trials<'t> {
    /// The indices of the expressions whose inputs are changed.
    pub(crate) indices: &'t [usize],
    /// Returns the constraints of requests that are changed in addition to the minimal requests.
    pub(crate) bases: &'t dyn Fn(&SymbolicEvaluator<'_>) -> Vec<InputConstraints>,
    /// The values near which trial values are chosen. If empty, trial values are near the literals of the expressions.
    pub(crate) values: &'t [Json],
}

impl<'t> Trials<'t> {
    /// Creates changes of minimal requests: trial values near the literals, for the inputs of the expressions at
    /// `indices`.
    pub(crate) fn new(indices: &'t [usize]) -> Self {
        Self {
            indices,
            bases: &|_| Vec::new(),
            values: &[],
        }
    }
}

/// Returns requests in which an input of a validation or match condition has a value near one of `values`.
#[must_use]
pub fn requests_near(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    values: &[Json],
) -> Vec<Witness> {
    let expressions = policy.expressions().iter().enumerate();
    let conditions =
        expressions.filter(|(_, it)| matches!(it.role, Role::Validation | Role::MatchCondition));
    let indices: Vec<usize> = conditions.map(|(index, _)| index).collect();
    let trials = Trials {
        indices: &indices,
        bases: &|evaluator| vec![usual_constraints(evaluator)],
        values,
    };
    let mut witnesses: Vec<Witness> = Vec::new();
    let observe: ObserveTrial<'_> = &mut |builder, _, synthetic| {
        if !builder.fails_validation(synthetic) && !builder.fails_crd_rules(synthetic) {
            let witness = builder.witness(synthetic, "");
            if !witnesses.contains(&witness) {
                witnesses.push(witness);
            }
        }
        witnesses.len() < MAX_REQUESTS
    };
    for_each_trial(policy, context, None, &trials, observe);
    witnesses
}

/// Calls `observe` with the minimal requests of each kind, and with requests that differ from them by one of the
/// changes in `trials`. The requests match `match_resources`, the matchResources of a binding.
pub(crate) fn for_each_trial(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    match_resources: Option<&MatchResources>,
    trials: &Trials<'_>,
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
        let mut constrained: Vec<(FieldPath, Constraint)> = Vec::new();
        for index in trials.indices {
            let (paths, literals) = inputs(&evaluator, *index);
            // The given values replace the literals of the expressions.
            constrained.extend(trials_of(&evaluator, &paths, trials.values));
            if trials.values.is_empty() {
                constrained.extend(trials_of(&evaluator, &paths, &literals));
            }
        }
        let mut bases = minimal_constraints(&builder.operations);
        bases.extend((trials.bases)(&evaluator));
        for minimal in bases {
            let with_trials = constrained.iter().filter_map(|(path, constraint)| {
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
