//! Finds example requests for which a validation is true or false. The evaluator confirms each example.

mod combined;
mod dependence;
mod input_trials;
mod value_search;

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use serde_json::{Value as Json, json};

use crate::admission::trace::Step;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching;
use crate::runtime_errors::Context;
use crate::runtime_errors::failure_sites::{FailureCause, FailureSite};
use crate::runtime_errors::failures::{Failure, effective_failures, is_missing_value_error};
use crate::runtime_errors::path_conditions::solver;
use crate::runtime_errors::requests::builders::RequestBuilders;
use crate::runtime_errors::requests::kinds::{named_targets, representative_kinds_up_to};
use crate::runtime_errors::requests::{RequestBuilder, SyntheticRequest, Witness};
use crate::runtime_errors::symbolic::{BranchCondition, ExprRef, Scope, SymbolicEvaluator};
use cel::stack::run_on_deep_stack;
pub use dependence::{Dependence, dependence};
pub use input_trials::requests_near;
pub(crate) use input_trials::{Trials, for_each_trial};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};
use value_search::ValueSearch;
pub(crate) use value_search::{constrain_operation, usual_constraints};

/// Maximum number of kinds to try for one policy.
const MAX_KINDS: usize = 16;

/// Maximum number of steps of the [`SymbolicEvaluator`] for one validation and kind.
const MAX_EXAMPLE_STEPS: u32 = 60_000;

/// Maximum number of values of the params that are used as trial values.
const MAX_PARAM_VALUES: usize = 12;

/// Maximum number of requests for one set of constraints. If an evaluation fails because a value is absent, the next
/// request contains this value.
const MAX_REPAIRS: usize = 8;

/// The examples of one validation.
#[derive(Clone, Debug)]
pub struct Examples {
    /// The position of the validation in `spec.validations`.
    pub validation: usize,
    /// The index of the validation's expression in the policy.
    pub index: usize,
    /// A request for which all validations are true.
    pub allowed: Option<Witness>,
    /// A request for which this validation is false.
    pub denied: Option<Witness>,
    /// Pairs of an allowed request and a request that only this validation denies. The requests differ in one number or
    /// quantity.
    pub boundaries: Vec<Boundary>,
    /// The results of this validation for the generated requests.
    pub attempts: Attempts,
}

/// Two neighboring values of an input. A validation allows one of them and denies the other.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// The input, such as `object.spec.replicas`.
    pub input: String,
    /// True if the allowed value is less than the denied value.
    pub is_upper: bool,
    /// The allowed value: a number or a quantity.
    pub allowed: Json,
    /// A request with the allowed value.
    pub allowed_request: Witness,
    /// The denied value.
    pub denied: Json,
    /// A request with the denied value.
    pub denied_request: Witness,
}

/// The results of a validation for the generated requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// The number of evaluated requests.
    pub n_evaluated: u32,
    /// The number of requests that a match condition excludes.
    pub n_excluded: u32,
    /// The number of requests for which the validation is true.
    pub n_true: u32,
    /// The number of requests for which the validation is false.
    pub n_false: u32,
    /// The error of the first request for which the validation fails.
    pub error: Option<String>,
}

/// Finds an allowed and a denied request for each validation of `policy`. If `params` are given, all requests have
/// these params.
#[must_use]
pub fn examples(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    params: Option<&Json>,
) -> Vec<Examples> {
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let observe = &mut |_: &RequestBuilder<'_>, _: &SyntheticRequest| true;
        let mut search = ExampleSearch::new(policy, observe);
        search.is_thorough = true;
        search.params = params.cloned().map(Arc::new);
        search.param_values = params.map_or_else(Vec::new, param_values);
        search.run(context, None)
    })
}

/// Returns the numbers and strings in params, and the words of each string.
#[must_use]
pub fn param_values(params: &Json) -> Vec<Json> {
    let fields = params.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !matches!(&***name, "apiVersion" | "kind" | "metadata"));
    let mut worklist: Vec<&Json> = fields.map(|(_, value)| value).collect();
    let mut values = Vec::new();
    while let Some(value) = worklist.pop().filter(|_| values.len() < MAX_PARAM_VALUES) {
        match value {
            Json::Object(fields) => worklist.extend(fields.values()),
            Json::Array(items) => worklist.extend(items),
            Json::String(text) => {
                let is_separator = |it: char| it == ',' || it.is_whitespace();
                let words = text.split(is_separator).filter(|word| !word.is_empty());
                values.extend(words.map(|word| match word.parse::<i64>() {
                    Ok(n) => json!(n),
                    Err(_) => json!(word),
                }));
                values.push(value.clone());
            }
            Json::Number(_) => values.push(value.clone()),
            Json::Bool(_) | Json::Null => {}
        }
    }
    values.truncate(MAX_PARAM_VALUES);
    values
}

/// Searches for examples like [`examples`], and calls `observe` with each evaluated request. The requests match
/// `match_resources`, the matchResources of a binding.
pub(crate) fn for_each_request(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    match_resources: Option<&MatchResources>,
    observe: Observe<'_>,
) {
    ExampleSearch::new(policy, observe).run(context, match_resources);
}

/// A function that is called with each evaluated request. The search ends if the function returns false.
pub(crate) type Observe<'o> = &'o mut dyn FnMut(&RequestBuilder<'_>, &SyntheticRequest) -> bool;

/// Returns constraints to try on each input that the expression at `index` reads.
pub(crate) fn trials(
    evaluator: &SymbolicEvaluator<'_>,
    index: usize,
) -> Vec<(FieldPath, Constraint)> {
    let (paths, literals) = inputs(evaluator, index);
    trials_of(evaluator, &paths, &literals)
}

/// Returns the inputs that the expression at `index` reads directly or through variables, and the literals in these
/// expressions.
pub(crate) fn inputs(
    evaluator: &SymbolicEvaluator<'_>,
    index: usize,
) -> (Vec<FieldPath>, Vec<Json>) {
    let (mut paths, mut literals) = (Vec::new(), Vec::new());
    ValueSearch::for_trials(evaluator).paths(index, &mut paths, &mut literals);
    (paths, literals)
}

/// Returns constraints to try on each of `paths`, such as typical values, and values that are equal or similar to
/// `literals`.
pub(crate) fn trials_of(
    evaluator: &SymbolicEvaluator<'_>,
    paths: &[FieldPath],
    literals: &[Json],
) -> Vec<(FieldPath, Constraint)> {
    ValueSearch::for_trials(evaluator).trials(paths, literals)
}

/// The quality of an example. The best quality is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Quality {
    /// All other validations are true, and no expression fails.
    Only,
    /// This validation is false, and it is the first one that is not true.
    First,
    /// This validation is false, but an earlier one is false or fails.
    Preceded,
}

struct ExampleSearch<'a, 'o> {
    policy: &'a CompiledPolicy,
    observe: Observe<'o>,
    /// True after `observe` returned false.
    is_over: bool,
    /// The indices of the validations' expressions in the policy.
    validations: Vec<usize>,
    examples: Vec<[Option<(Quality, Witness)>; 2]>,
    boundaries: Vec<Vec<Boundary>>,
    attempts: Vec<Attempts>,
    /// True if the search also combines constraints to find an allowed request, and looks for boundaries.
    is_thorough: bool,
    /// False if requests are only counted, and not recorded as examples.
    is_recording: bool,
    /// The params of all requests.
    params: Option<Arc<Json>>,
    /// The numbers and strings in `params`.
    param_values: Vec<Json>,
    /// The constraints of an allowed request for the current kind.
    allowed: Option<InputConstraints>,
}

impl<'a, 'o> ExampleSearch<'a, 'o> {
    fn new(policy: &'a CompiledPolicy, observe: Observe<'o>) -> Self {
        let expressions = policy.expressions().iter().enumerate();
        let validations: Vec<usize> = expressions
            .filter(|(_, expression)| expression.role == Role::Validation)
            .map(|(n, _)| n)
            .collect();
        Self {
            policy,
            observe,
            is_over: false,
            examples: validations.iter().map(|_| [None, None]).collect(),
            boundaries: validations.iter().map(|_| Vec::new()).collect(),
            attempts: validations.iter().map(|_| Attempts::default()).collect(),
            is_thorough: false,
            is_recording: true,
            params: None,
            param_values: Vec::new(),
            allowed: None,
            validations,
        }
    }

    fn run(
        mut self,
        context: &Context<'_>,
        match_resources: Option<&MatchResources>,
    ) -> Vec<Examples> {
        let policy = self.policy;
        let targets = matching::targets(policy.policy(), context.mapper);
        let targets = named_targets(targets, context.match_resources);
        let builders = RequestBuilders::new(policy, context);
        for (resource, operations) in representative_kinds_up_to(&targets, MAX_KINDS) {
            // CONNECT requests and some subresources have no schema, so the builder must accept any object.
            let builder = builders.for_untyped(resource, operations);
            let mut builder = builder.with_match_resources(match_resources);
            builder.set_params(self.params.as_ref());
            self.allowed = None;
            self.is_recording = true;
            for n in 0..self.validations.len() {
                self.try_validation(&mut builder, n);
            }
            let is_missing = self.examples.iter().any(|[allowed, _]| allowed.is_none());
            let has_boundaries = self.boundaries.iter().any(|it| !it.is_empty());
            if self.is_thorough && (is_missing || self.allowed.is_some()) && !has_boundaries {
                self.combine(&mut builder);
            }
        }
        let results = self.boundaries.into_iter().zip(self.attempts);
        let all = self.validations.into_iter().zip(self.examples).zip(results);
        let all = all.enumerate();
        all.map(
            |(validation, ((index, [allowed, denied]), (boundaries, attempts)))| Examples {
                validation,
                index,
                allowed: allowed.map(|(_, witness)| witness),
                denied: denied.map(|(_, witness)| witness),
                boundaries,
                attempts,
            },
        )
        .collect()
    }

    /// Returns true if the validation `n` has an example of the best quality with the result `expected`.
    fn is_done(&self, n: usize, expected: bool) -> bool {
        let examples = self.examples.get(n);
        let best = examples.and_then(|examples| examples.get(usize::from(!expected))?.as_ref());
        best.is_some_and(|(quality, _)| *quality == Quality::Only)
    }

    fn has_any(&self, n: usize, expected: bool) -> bool {
        let examples = self.examples.get(n);
        examples.is_some_and(|examples| {
            examples
                .get(usize::from(!expected))
                .is_some_and(Option::is_some)
        })
    }

    fn try_validation(&mut self, builder: &mut RequestBuilder<'_>, n: usize) {
        let index = self.validations.get(n).copied();
        let Some(index) = index.filter(|_| !self.is_over) else {
            return;
        };
        let evaluator = builder.evaluator(MAX_EXAMPLE_STEPS);
        let mut value_search = ValueSearch::new(&evaluator);
        for expected in [false, true] {
            if self.is_done(n, expected) {
                continue;
            }
            self.try_conditions(builder, &mut value_search, (n, index), expected);
            if !self.has_any(n, expected) {
                self.try_values(builder, &mut value_search, (n, index), expected);
            }
        }
    }

    fn try_conditions(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        (n, index): (usize, usize),
        expected: bool,
    ) {
        for base in [
            usual_constraints(value_search.evaluator),
            InputConstraints::default(),
        ] {
            for with_others in [true, false] {
                let conditions =
                    self.branch_conditions(value_search.evaluator, index, expected, with_others);
                for constraints in
                    solver::solve(value_search.evaluator, conditions, base.clone()).solutions
                {
                    self.try_constraints(builder, value_search, (n, index), constraints);
                    if self.is_done(n, expected) {
                        return;
                    }
                }
            }
        }
        self.try_constraints(
            builder,
            value_search,
            (n, index),
            InputConstraints::default(),
        );
    }

    /// Returns the branch conditions of an example. All match conditions must be true, and the validation at `index`
    /// must evaluate to `expected`. If `with_others` is true, the other validations must be true
    /// too.
    fn branch_conditions(
        &self,
        symbolic: &SymbolicEvaluator<'_>,
        index: usize,
        expected: bool,
        with_others: bool,
    ) -> Vec<BranchCondition> {
        let expressions = self.policy.expressions().iter().enumerate();
        let mut conditions = Vec::new();
        for (n, expression) in expressions {
            let is_constrained = match expression.role {
                Role::MatchCondition => true,
                Role::Validation => n != index && with_others,
                _ => false,
            };
            if let Some(ast) = symbolic.ast(n).filter(|_| is_constrained) {
                let node = ExprRef {
                    index: n,
                    id: ast.root(),
                };
                conditions.push(BranchCondition::Evaluates(node, Scope::default(), true));
            }
        }
        // The condition of the validation itself is last, because the solver takes the last condition first.
        if let Some(ast) = symbolic.ast(index) {
            let node = ExprRef {
                index,
                id: ast.root(),
            };
            conditions.push(BranchCondition::Evaluates(node, Scope::default(), expected));
        }
        conditions
    }

    /// Tries typical values and the policy's literals as values of each input that the validation reads.
    fn try_values(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        (n, index): (usize, usize),
        expected: bool,
    ) {
        let conditions = {
            let all = self.branch_conditions(value_search.evaluator, index, expected, false);
            let n_conditions = all.len().saturating_sub(1);
            all.into_iter().take(n_conditions).collect()
        };
        let mut bases = solver::solve(
            value_search.evaluator,
            conditions,
            InputConstraints::default(),
        )
        .solutions;
        bases.truncate(2);
        let conditions = {
            let all = self.branch_conditions(value_search.evaluator, index, expected, false);
            let n_conditions = all.len().saturating_sub(1);
            all.into_iter().take(n_conditions).collect()
        };
        let usual = solver::solve(
            value_search.evaluator,
            conditions,
            usual_constraints(value_search.evaluator),
        )
        .solutions;
        bases.splice(0..0, usual.into_iter().take(1));
        if bases.is_empty() {
            bases.push(InputConstraints::default());
        }
        // Bases that lead to the same request would have mostly the same trials, so only one of them is kept.
        let mut built = Vec::new();
        bases.retain(|base| {
            let request = builder.build(base);
            let is_new = request.is_none() || !built.contains(&request);
            built.push(request);
            is_new
        });
        let (paths, literals) = self.inputs(value_search, index);
        let trials = value_search.trials(&paths, &literals);
        for base in &bases {
            for operation in builder.operations.clone() {
                let mut constraints = base.clone();
                if constrain_operation(&mut constraints, operation).is_some() {
                    self.try_constraints(builder, value_search, (n, index), constraints);
                }
            }
            for (path, constraint) in &trials {
                if self.has_any(n, expected) || value_search.budget.is_used_up() {
                    return;
                }
                let mut constraints = base.clone();
                if constraints.add(path, constraint.clone()).is_some() {
                    self.try_constraints(builder, value_search, (n, index), constraints);
                }
            }
        }
        // Also tries each trial value in a request in which all inputs are present.
        let mut all_present = bases.swap_remove(0);
        for path in &paths {
            let mut extended = all_present.clone();
            if extended.add(path, Constraint::Present).is_some() {
                all_present = extended;
            }
        }
        self.try_constraints(builder, value_search, (n, index), all_present.clone());
        for (path, constraint) in trials {
            if self.has_any(n, expected) || value_search.budget.is_used_up() {
                return;
            }
            let mut constraints = all_present.clone();
            if constraints.add(&path, constraint).is_some() {
                self.try_constraints(builder, value_search, (n, index), constraints);
            }
        }
    }

    /// Evaluates a request that satisfies `constraints`, and records it as an example. If the evaluation fails on an
    /// absent value, adds the value and tries again.
    fn try_constraints(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        (n, index): (usize, usize),
        mut constraints: InputConstraints,
    ) {
        for _ in 0..MAX_REPAIRS {
            if !builder.is_untried(&constraints) {
                return;
            }
            let Some(synthetic) = builder.build(&constraints) else {
                return;
            };
            let Some(steps) = builder.trace_once(&synthetic, &mut value_search.budget) else {
                return;
            };
            if !(self.observe)(builder, &synthetic) {
                self.is_over = true;
                value_search.budget.n_evaluations = 0;
            }
            if self.record(builder, n, &synthetic, &steps) {
                self.allowed.get_or_insert_with(|| constraints.clone());
            }
            let missing = missing_input(value_search, &synthetic, &steps, Some(index));
            let Some(missing) = missing else { return };
            if constraints.add(&missing, Constraint::Present).is_none() {
                return;
            }
        }
    }

    /// Returns the result of each validation, which is `None` if its evaluation fails. Returns `None` for the request
    /// if a match condition is not true.
    fn results(&self, steps: &[Step]) -> Option<Vec<Option<bool>>> {
        let expressions = self.policy.expressions();
        let mut results = Vec::new();
        for step in steps {
            let result = match step.result {
                Ok(Some(value)) => Some(value),
                _ => None,
            };
            match expressions.get(step.index).map(|it| it.role) {
                Some(Role::Validation) => results.push(result),
                Some(Role::MatchCondition) if result != Some(true) => return None,
                _ => {}
            }
        }
        (results.len() == self.validations.len()).then_some(results)
    }

    fn count(&mut self, steps: &[Step]) {
        let expressions = self.policy.expressions();
        let is_excluded = steps.iter().any(|step| {
            let expression = expressions.get(step.index);
            expression.is_some_and(|it| it.role == Role::MatchCondition)
                && !matches!(step.result, Ok(Some(true)))
        });
        if is_excluded {
            for attempts in &mut self.attempts {
                attempts.n_excluded += 1;
            }
        }
        let Some(results) = self.results(steps) else {
            return;
        };
        let of_validations = steps.iter().filter(|step| {
            let expression = expressions.get(step.index);
            expression.is_some_and(|it| it.role == Role::Validation)
        });
        for ((attempts, result), step) in self.attempts.iter_mut().zip(results).zip(of_validations)
        {
            attempts.n_evaluated += 1;
            match result {
                Some(true) => attempts.n_true += 1,
                Some(false) => attempts.n_false += 1,
                None => {
                    let error = step
                        .result
                        .as_ref()
                        .err()
                        .map(|error| error.message().to_owned());
                    attempts.error = attempts.error.take().or(error);
                }
            }
        }
    }

    /// Records the request as an example of each validation for which it is better than the current example. The
    /// request was built for the validation `n`. Returns true if all validations are true.
    fn record(
        &mut self,
        builder: &RequestBuilder<'_>,
        n: usize,
        synthetic: &SyntheticRequest,
        steps: &[Step],
    ) -> bool {
        self.count(steps);
        let expressions = self.policy.expressions();
        let role = |step: &Step| {
            expressions
                .get(step.index)
                .map(|expression| expression.role)
        };
        let of_role = |expected: Role| {
            steps
                .iter()
                .filter(move |step| role(step) == Some(expected))
        };
        let holds = |step: &Step| matches!(step.result, Ok(Some(true)));
        if !of_role(Role::MatchCondition).all(holds) || builder.fails_validation(synthetic) {
            return false;
        }
        let has_error = of_role(Role::AuditAnnotation).any(|step| step.result.is_err());
        let of_validations: Vec<&Step> = of_role(Role::Validation).collect();
        if of_validations.len() != self.validations.len() {
            return false;
        }
        let is_allowed = !has_error && of_validations.iter().all(|step| holds(step));
        let n_true = of_validations.iter().filter(|step| holds(step)).count();
        let first = of_validations.iter().position(|step| !holds(step));
        for (position, step) in of_validations.iter().enumerate() {
            let (slot, quality) = match step.result {
                Ok(Some(true)) if is_allowed => (0, Quality::Only),
                // A request that only this validation denies is the best example.
                Ok(Some(false)) => {
                    let is_only = n_true + 1 == of_validations.len() && !has_error;
                    let quality = match (is_only, first == Some(position)) {
                        (true, _) => Quality::Only,
                        (false, true) => Quality::First,
                        (false, false) => Quality::Preceded,
                    };
                    (1, quality)
                }
                _ => continue,
            };
            let example = self
                .examples
                .get_mut(position)
                .and_then(|examples| examples.get_mut(slot));
            let Some(example) = example else { continue };
            // If two allowed requests have the same quality, the one that was built for this validation is better.
            let is_better = match example {
                None => true,
                Some((before, _)) => {
                    quality < *before || (slot == 0 && position == n && quality == *before)
                }
            };
            if is_better {
                *example = Some((quality, builder.witness(synthetic, "")));
            }
        }
        is_allowed
    }
}

/// Returns the input whose absence makes the evaluation of a request fail. If several inputs are absent, prefers the
/// one that makes the expression at `index` fail.
fn missing_input(
    value_search: &ValueSearch<'_, '_>,
    synthetic: &SyntheticRequest,
    steps: &[Step],
    index: Option<usize>,
) -> Option<FieldPath> {
    let failures = effective_failures(value_search.evaluator, steps);
    let is_own = |failure: &&Failure| Some(failure.index) == index;
    let own_failures = failures.iter().filter(is_own);
    let other_failures = failures.iter().filter(|failure| !is_own(failure));
    let missing = own_failures
        .chain(other_failures)
        .filter(|failure| is_missing_value_error(&failure.message))
        .find_map(|failure| {
            let at_node = |site: &&FailureSite| {
                site.node.index == failure.origin_index
                    && site.node.id.index() == failure.origin_id
                    && site.cause == FailureCause::Absent
                    && synthetic.lacks(&site.path)
            };
            value_search.sites.iter().find(at_node)
        });
    missing.map(|site| site.path.clone())
}
