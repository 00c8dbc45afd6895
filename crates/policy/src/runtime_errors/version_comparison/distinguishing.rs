//! Searches for requests for which a changed validation or match condition has different results in the two versions.
//!
//! The solver combines the conditions of both versions: the old and the new expression have opposite results, and all
//! other conditions are true. The solutions are refined with trial values for the inputs of the changed expressions,
//! because the solver interprets only some functions. A request that other validations deny is changed until only the
//! changed condition determines the decision.

use std::rc::Rc;

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use serde_json::{Value as Json, json};

use super::changed_conditions::{ConditionPair, condition_pairs};
use super::trial_values::{
    NumberTexts, calls, changed, differing_first, number_texts, numbers_near, patterns, spread,
    values_near,
};
use super::{Comparer, Probe};
use crate::admission::{Evaluation, EvaluationResult};
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::matching;
use crate::runtime_errors::Context;
use crate::runtime_errors::examples::{inputs, trials_of, usual_constraints};
use crate::runtime_errors::failure_sites::{self, FailureSite, sites_by_node};
use crate::runtime_errors::input_types::satisfy::MAX_LEN;
use crate::runtime_errors::path_conditions::solver::{SolverLimits, solve_jointly};
use crate::runtime_errors::requests::builders::RequestBuilders;
use crate::runtime_errors::requests::kinds::representative_kinds;
use crate::runtime_errors::requests::{Budget, RequestBuilder, SyntheticRequest};
use crate::runtime_errors::search::{MAX_REPAIRS, MAX_SYMBOLIC_STEPS, missing_path};
use crate::runtime_errors::symbolic::{BranchCondition, ExprRef, Scope, SymbolicEvaluator};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// The limits of the solver when it solves the changed condition.
const CORE_LIMITS: SolverLimits = SolverLimits {
    n_solutions: 10,
    n_steps: 600,
};

/// The limits of the solver when it adds the other conditions to a solution.
const OTHERS_LIMITS: SolverLimits = SolverLimits {
    n_solutions: 2,
    n_steps: 300,
};

/// Maximum number of requests to which trial values are added, for one condition and kind.
const MAX_BASES: usize = 8;

/// Maximum number of requests with trial values for one policy.
const MAX_TRIALS: usize = 3_000;

/// Maximum number of requests with trial values if a request with different decisions has already been found.
const MAX_FURTHER_TRIALS: usize = 400;

/// Maximum number of requests that the search tries to improve, for one condition and kind. An improvement makes more
/// of the other validations true.
const MAX_IMPROVED: usize = 3;

/// Maximum number of attempts to improve one request.
const MAX_IMPROVEMENTS: usize = 200;

/// Maximum number of inputs with trial values.
const MAX_INPUTS: usize = 16;

/// Trial addresses and address ranges.
const ADDRESSES: [&str; 7] = [
    "10.0.0.1",
    "192.168.0.1",
    "8.8.8.8",
    "2001:db8::1",
    "10.0.0.0/8",
    "192.168.0.0/24",
    "2001:db8::/32",
];

/// Maximum number of validations that the solver tries to make false for a changed match condition.
const MAX_DENYING: usize = 4;

/// The evaluation budget for finding absent values to add to requests.
const BUDGET: Budget = Budget {
    n_evaluations: 400,
    cost: 2_000_000,
};

/// One version of the policy, for one kind.
struct Side<'a> {
    policy: &'a CompiledPolicy,
    builder: RequestBuilder<'a>,
    evaluator: SymbolicEvaluator<'a>,
    sites: Vec<FailureSite>,
    budget: Budget,
}

impl<'a> Side<'a> {
    fn new(policy: &'a CompiledPolicy, builder: RequestBuilder<'a>) -> Self {
        let evaluator = builder.combining_evaluator(MAX_SYMBOLIC_STEPS);
        Self {
            policy,
            sites: failure_sites::find(&evaluator),
            evaluator,
            builder,
            budget: BUDGET,
        }
    }

    /// Returns the branch condition that requires the expression at `index` to have the result `expected`.
    fn condition(&self, index: usize, expected: bool) -> Option<BranchCondition> {
        let id = self.evaluator.ast(index)?.root();
        let node = ExprRef { index, id };
        Some(BranchCondition::Evaluates(node, Scope::default(), expected))
    }

    /// Returns the path of the absent value that makes the expression at `index` fail in this version.
    fn missing(&mut self, synthetic: &Rc<SyntheticRequest>, index: usize) -> Option<FieldPath> {
        let budget = &mut self.budget;
        let failures = self.builder.evaluate(&self.evaluator, synthetic, budget)?;
        missing_path(synthetic, &failures, &sites_by_node(&self.sites), index).cloned()
    }
}

/// A request for which the changed condition has different results in the two versions. The decisions of the versions
/// may be equal.
struct Candidate {
    constraints: InputConstraints,
    evaluations: [Evaluation; 2],
}

/// The search for one changed condition and kind.
struct PairSearch<'s, 'a, 'c, 'n> {
    comparer: &'c mut Comparer<'n>,
    sides: &'s mut [Side<'a>; 2],
    pairs: &'s [ConditionPair],
    pair: ConditionPair,
    /// Two flags, one for each result of the changed condition in the old version: false, then true. A flag is true if
    /// the search found a request with this result for which the decisions differ.
    is_done: [bool; 2],
    /// The requests for which the condition has different results in the two versions, but the decisions are equal.
    undecided: Vec<Candidate>,
    /// The constraints of requests to which trial values are added.
    bases: Vec<InputConstraints>,
}

impl Comparer<'_> {
    /// Searches for requests for which the changed validations and match conditions have different results.
    pub(super) fn distinguish(
        &mut self,
        [old, new]: [&CompiledPolicy; 2],
        context: &Context<'_>,
        match_resources: Option<&MatchResources>,
    ) {
        let pairs = condition_pairs([old, new]);
        let changed: Vec<ConditionPair> =
            pairs.iter().filter(|it| it.is_changed).copied().collect();
        let targets = [old, new].map(|policy| matching::targets(policy.policy(), context.mapper));
        let [of_old, of_new] = targets
            .each_ref()
            .map(|targets| representative_kinds(targets));
        let mut kinds = of_old;
        for (resource, operations) in of_new {
            if !kinds.iter().any(|(known, _)| known.gvr == resource.gvr) {
                kinds.push((resource, operations));
            }
        }
        let n_searches = changed.len().saturating_mul(kinds.len()).max(1);
        let n_trials = (MAX_TRIALS / n_searches).max(MAX_IMPROVEMENTS);
        let builders = [old, new].map(|policy| RequestBuilders::new(policy, context));
        let mut decided = vec![[false; 2]; changed.len()];
        for (resource, operations) in kinds {
            let builder = |n: usize| -> Option<RequestBuilder<'_>> {
                let builder = builders.get(n)?.for_untyped(resource, operations.clone());
                Some(builder.with_match_resources(match_resources))
            };
            let (Some(of_old), Some(of_new)) = (builder(0), builder(1)) else {
                return;
            };
            let mut sides = [Side::new(old, of_old), Side::new(new, of_new)];
            for (pair, decided) in changed.iter().zip(&mut decided) {
                if self.is_over() {
                    return;
                }
                let mut search = PairSearch {
                    comparer: &mut *self,
                    sides: &mut sides,
                    pairs: &pairs,
                    pair: *pair,
                    is_done: *decided,
                    undecided: Vec::new(),
                    bases: Vec::new(),
                };
                let paths = search.leaf_inputs();
                let inputs = search.comparer.inputs.entry(resource.gvr.clone());
                let inputs = inputs.or_default();
                for path in paths {
                    if !inputs.contains(&path) {
                        inputs.push(path);
                    }
                }
                search.run(n_trials);
                *decided = search.is_done;
            }
        }
    }
}

impl PairSearch<'_, '_, '_, '_> {
    fn run(&mut self, n_trials: usize) {
        for old_result in [true, false] {
            if !self.is_done(old_result) {
                self.solve([old_result, !old_result]);
            }
        }
        self.improve();
        if self.is_done == [true; 2] {
            return;
        }
        for result in [false, true] {
            self.add_bases([result; 2]);
        }
        let n_trials = match self.is_done {
            [false, false] => n_trials,
            _ => n_trials.min(MAX_FURTHER_TRIALS),
        };
        self.try_values(n_trials);
        self.improve();
    }

    fn is_done(&self, old_result: bool) -> bool {
        let [if_false, if_true] = self.is_done;
        if old_result { if_true } else { if_false }
    }

    /// Returns branch conditions that require the changed condition to have the given results in the old and the new
    /// version. `None` if a version lacks the condition and the required result is false.
    fn core(&self, results: [bool; 2]) -> Option<Vec<(usize, BranchCondition)>> {
        let mut conditions = Vec::new();
        for (n, (side, result)) in self.pair.sides.into_iter().zip(results).enumerate() {
            match side {
                Some(index) => conditions.push((n, self.sides.get(n)?.condition(index, result)?)),
                None if !result => return None,
                None => {}
            }
        }
        Some(conditions)
    }

    /// Returns branch conditions that require all other match conditions and validations to be true. If the changed
    /// condition is a match condition, only other match conditions are required.
    fn others(&self) -> Vec<(usize, BranchCondition)> {
        let is_other = |pair: &&ConditionPair| {
            pair.sides != self.pair.sides
                && (self.pair.role == Role::Validation || pair.role == Role::MatchCondition)
        };
        let mut conditions = Vec::new();
        for pair in self.pairs.iter().filter(is_other) {
            let sides = pair.sides.into_iter().enumerate();
            let sides = sides.filter_map(|(n, index)| Some((n, index?)));
            // An unchanged condition is required only in the new version, because both versions have the same result.
            let sides = sides.skip(usize::from(!pair.is_changed));
            conditions
                .extend(sides.filter_map(|(n, index)| {
                    Some((n, self.sides.get(n)?.condition(index, true)?))
                }));
        }
        conditions
    }

    fn solutions(
        &self,
        conditions: &[(usize, BranchCondition)],
        base: InputConstraints,
        limits: SolverLimits,
    ) -> Vec<InputConstraints> {
        let conditions = conditions.iter().filter_map(|(n, condition)| {
            let side = self.sides.get(*n)?;
            Some((&side.evaluator, condition.clone()))
        });
        solve_jointly(conditions.collect(), base, limits).solutions
    }

    /// Returns constraints of requests for which the changed condition has the given results in the old and the new
    /// version. Each array contains alternatives, best first. The last alternative does not require the other
    /// conditions to be true.
    fn requests(&self, results: [bool; 2]) -> Vec<[Option<InputConstraints>; 3]> {
        let Some(core) = self.core(results) else {
            return Vec::new();
        };
        let others = self.others();
        let mut cores = Vec::new();
        for denying in self.denying(results) {
            let mut conditions = denying;
            conditions.extend(core.clone());
            let [old, _] = &*self.sides;
            for base in [
                usual_constraints(&old.evaluator),
                InputConstraints::default(),
            ] {
                let solutions = self.solutions(&conditions, base, CORE_LIMITS);
                // If no request satisfies the usual constraints, the solver continues without them. For example, a
                // DELETE request has no object.
                let is_solved = solutions.iter().any(|it| old.builder.build(it).is_some());
                cores.extend(solutions);
                if is_solved {
                    break;
                }
            }
        }
        let extended = cores.into_iter().map(|core| {
            let mut solutions = self.solutions(&others, core.clone(), OTHERS_LIMITS);
            let best = (!solutions.is_empty()).then(|| solutions.swap_remove(0));
            let spread = best.as_ref().and_then(spread);
            [best, spread, Some(core)]
        });
        extended.collect()
    }

    /// Returns alternative branch conditions under which a changed match condition affects the decision: a validation
    /// must be false in the version that evaluates the validations. A changed validation needs no such condition.
    fn denying(&self, results: [bool; 2]) -> Vec<Vec<(usize, BranchCondition)>> {
        if self.pair.role == Role::Validation {
            return vec![Vec::new()];
        }
        let n = usize::from(!results[0]);
        let Some(side) = self.sides.get(n) else {
            return Vec::new();
        };
        let validations = self.pairs.iter().filter(|it| it.role == Role::Validation);
        let validations = validations.filter_map(|it| *it.sides.get(n)?);
        let denying =
            validations.filter_map(|index| Some(vec![(n, side.condition(index, false)?)]));
        denying.take(MAX_DENYING).collect()
    }

    /// Compares requests for which the solver expects the given results of the changed condition.
    fn solve(&mut self, results: [bool; 2]) {
        let [old_result, _] = results;
        for request in self.requests(results) {
            for constraints in request.into_iter().flatten() {
                if self.is_done(old_result) || self.comparer.is_over() {
                    return;
                }
                self.add_base(&constraints);
                let _ = self.attempt(constraints);
            }
        }
    }

    fn add_base(&mut self, constraints: &InputConstraints) {
        if self.bases.len() < MAX_BASES && !self.bases.contains(constraints) {
            self.bases.push(constraints.clone());
        }
    }

    /// Adds bases for which the solver expects the given results of the changed condition.
    fn add_bases(&mut self, results: [bool; 2]) {
        for request in self.requests(results).into_iter().take(2) {
            if let Some(constraints) = request.into_iter().flatten().next() {
                let _ = self.attempt(constraints.clone());
                // Trials start with the solutions of the solver: if it interprets the conditions correctly, their
                // requests already have the expected results.
                self.bases.insert(0, constraints);
            }
        }
        self.bases.dedup();
        self.bases.truncate(MAX_BASES);
    }

    /// Compares a request that satisfies `constraints`. If the changed condition fails in a version because a value is
    /// absent, adds the value and tries again.
    fn attempt(&mut self, mut constraints: InputConstraints) -> Option<Probe> {
        for _ in 0..MAX_REPAIRS {
            let (synthetic, probe) = self.probe(&constraints)?;
            let has_error = |evaluation: &Evaluation| {
                let mut decisions = evaluation.decisions.iter();
                decisions.any(|it| it.evaluation == EvaluationResult::Error)
            };
            let is_differing = self.differs(&probe.evaluations).is_some();
            if is_differing || !probe.evaluations.iter().any(has_error) {
                return Some(probe);
            }
            let sides = self.sides.iter_mut().zip(self.pair.sides);
            let mut missing = sides
                .filter_map(|(side, index)| side.missing(&synthetic, index.unwrap_or_default()));
            let Some(missing) = missing.next() else {
                return Some(probe);
            };
            constraints.add(&missing, Constraint::Present)?;
        }
        None
    }

    /// Compares a request that satisfies `constraints`, and records whether the results of the changed condition
    /// differ.
    fn probe(&mut self, constraints: &InputConstraints) -> Option<(Rc<SyntheticRequest>, Probe)> {
        let [old, _] = &*self.sides;
        let synthetic = old.builder.build(constraints)?;
        let probe = self.comparer.probe(&old.builder, &synthetic)?;
        if let Some(old_result) = self.differs(&probe.evaluations) {
            let [was, is] = probe.denies;
            if was != is {
                let [if_false, if_true] = &mut self.is_done;
                *(if old_result { if_true } else { if_false }) = true;
            } else if self.undecided.len() < MAX_IMPROVED {
                self.undecided.push(Candidate {
                    constraints: constraints.clone(),
                    evaluations: probe.evaluations.clone(),
                });
            }
        }
        Some((synthetic, probe))
    }

    /// Returns the result of the changed condition in the old version if the result in the new version differs. An
    /// error counts as false.
    fn differs(&self, evaluations: &[Evaluation; 2]) -> Option<bool> {
        let results = [0, 1].map(|n| self.result(n, evaluations.get(n)?));
        match results {
            [Some(old), Some(new)] if old != new => Some(old),
            _ => None,
        }
    }

    /// Returns the result of the changed condition in the version with the index `n`. `None` if it is not evaluated.
    fn result(&self, n: usize, evaluation: &Evaluation) -> Option<bool> {
        if self.pair.role == Role::MatchCondition {
            let matches = evaluation.match_conditions.as_ref();
            return Some(matches.is_none_or(|it| it.matches));
        }
        let Some(index) = *self.pair.sides.get(n)? else {
            return Some(true);
        };
        let position = position(self.sides.get(n)?.policy, index);
        if evaluation.decisions.len() != n_validations(self.sides.get(n)?.policy) {
            return None;
        }
        let decision = evaluation.decisions.get(position)?;
        Some(decision.evaluation == EvaluationResult::Admit)
    }

    /// Compares requests that differ from a base in one input of the changed condition.
    fn try_values(&mut self, n_trials: usize) {
        let trials = self.trials();
        let mut n_left = n_trials;
        for (path, constraint) in &trials {
            for base in self.bases.clone() {
                if n_left == 0 || self.is_done == [true; 2] || self.comparer.is_over() {
                    return;
                }
                let Some(constraints) = changed(&base, path, constraint) else {
                    continue;
                };
                n_left -= 1;
                let _ = self.probe(&constraints);
            }
        }
    }

    /// Returns trial values for the inputs of the changed condition in both versions.
    fn trials(&self) -> Vec<(FieldPath, Constraint)> {
        let (paths, literals) = self.inputs();
        let [old, _] = &*self.sides;
        let evaluator = &old.evaluator;
        // A structure such as `object.spec` is rarely compared with a literal, so it gets fewer trial values.
        let is_structure = |path: &&FieldPath| {
            let has_fields = paths.iter().any(|it| it != *path && it.starts_with(path));
            let input_type = evaluator.input_type(path);
            has_fields && !input_type.is_some_and(|it| it.is_map())
        };
        let (structures, values): (Vec<_>, Vec<_>) = paths.iter().partition(is_structure);
        let values: Vec<FieldPath> = values.into_iter().cloned().collect();
        let mut trials = trials_of(evaluator, &values, &literals);
        for path in &values {
            trials.extend(self.typed_trials(path, &literals));
        }
        for path in structures {
            let of_structure = [
                Constraint::Absent,
                Constraint::Present,
                Constraint::MinLen(2),
            ];
            trials.extend(of_structure.map(|it| (path.clone(), it)));
        }
        let mut seen: Vec<(FieldPath, Constraint)> = Vec::new();
        trials.retain(|trial| {
            let is_new = !seen.contains(trial);
            seen.extend(is_new.then(|| trial.clone()));
            is_new
        });
        trials
    }

    /// Returns trial values for an input by its type, such as numbers formatted as strings, sizes of lists, and
    /// addresses.
    fn typed_trials(&self, path: &FieldPath, literals: &[Json]) -> Vec<(FieldPath, Constraint)> {
        let [old, new] = &*self.sides;
        let calls = |functions: &[&str]| {
            let policies = [old.policy, new.policy];
            policies.into_iter().any(|policy| calls(policy, functions))
        };
        let Some(input_type) = old.evaluator.input_type(path) else {
            return Vec::new();
        };
        let mut constraints = Vec::new();
        if input_type.is_list() || input_type.is_map() {
            let sizes = numbers_near(literals).into_iter();
            let sizes = sizes.filter_map(|n| usize::try_from(n).ok());
            let sizes = sizes.filter(|n| (2..=MAX_LEN).contains(n));
            constraints.extend(sizes.map(Constraint::MinLen));
        }
        let has_percentages = input_type.is_int_or_string();
        if has_percentages || input_type.is_string() || input_type.is_quantity() {
            let kinds = NumberTexts {
                has_percentages,
                has_durations: calls(&["duration"]),
            };
            let texts = number_texts(literals, kinds).into_iter();
            constraints.extend(texts.map(Constraint::Equals));
        }
        if input_type.is_string() && calls(&["ip", "cidr", "isIP", "isCIDR"]) {
            let addresses = ADDRESSES.into_iter().map(|it| json!(it));
            constraints.extend(addresses.map(Constraint::Equals));
        }
        let constraints = constraints.into_iter();
        constraints.map(|it| (path.clone(), it)).collect()
    }

    /// Returns the inputs of the changed condition, and values near its literals. Inputs and literals of only one
    /// version come first.
    fn inputs(&self) -> (Vec<FieldPath>, Vec<Json>) {
        let sides = self.sides.iter().zip(self.pair.sides);
        let sides = sides.map(|(side, index)| {
            let index = index?;
            Some((inputs(&side.evaluator, index), patterns(side.policy)))
        });
        let sides: Vec<_> = sides.map(Option::unwrap_or_default).collect();
        let [
            ((old_paths, old_literals), old_patterns),
            ((new_paths, new_literals), new_patterns),
        ] = &*sides
        else {
            return Default::default();
        };
        let mut paths = differing_first(old_paths, new_paths);
        let literals = differing_first(old_literals, new_literals);
        let mut patterns = old_patterns.clone();
        patterns.extend(new_patterns.iter().cloned());
        paths.truncate(MAX_INPUTS);
        (paths, values_near(&literals, &patterns))
    }

    /// Returns the inputs of the changed condition, except for structures whose fields are also inputs.
    fn leaf_inputs(&self) -> Vec<FieldPath> {
        let (paths, _) = self.inputs();
        let is_leaf = |path: &&FieldPath| {
            let mut others = paths.iter().filter(|it| it != path);
            !others.any(|it| it.starts_with(path))
        };
        paths.iter().filter(is_leaf).cloned().collect()
    }

    /// Changes the requests in `undecided` until the other validations are true, so that the decisions differ.
    fn improve(&mut self) {
        for candidate in std::mem::take(&mut self.undecided) {
            let Some(old_result) = self.differs(&candidate.evaluations) else {
                continue;
            };
            let mut n_left = MAX_IMPROVEMENTS;
            let mut best = candidate;
            while !self.is_done(old_result) && n_left > 0 && !self.comparer.is_over() {
                match self.better(&best, old_result, &mut n_left) {
                    Some(better) => best = better,
                    None => break,
                }
            }
        }
        self.undecided.clear();
    }

    /// Returns a request like `best` for which more of the other validations are true.
    fn better(
        &mut self,
        best: &Candidate,
        old_result: bool,
        n_left: &mut usize,
    ) -> Option<Candidate> {
        let violated = self.violated(&best.evaluations);
        for (n, index) in violated.clone() {
            let side = self.sides.get(n)?;
            let condition = side.condition(index, true)?;
            let base = best.constraints.clone();
            let mut all = self.solutions(&[(n, condition)], base.clone(), OTHERS_LIMITS);
            all.extend(all.clone().iter().chain([&base]).filter_map(spread));
            let (paths, literals) = inputs(&side.evaluator, index);
            let trials = trials_of(&side.evaluator, &paths, &literals);
            all.extend(
                trials
                    .iter()
                    .filter_map(|(path, it)| changed(&base, path, it)),
            );
            for constraints in all {
                if *n_left == 0 {
                    return None;
                }
                *n_left -= 1;
                let Some((_, probe)) = self.probe(&constraints) else {
                    continue;
                };
                if self.differs(&probe.evaluations) == Some(old_result)
                    && self.violated(&probe.evaluations).len() < violated.len()
                {
                    return Some(Candidate {
                        constraints,
                        evaluations: probe.evaluations,
                    });
                }
            }
        }
        None
    }

    /// Returns the validations that are not true, except the changed one. Each pair is the index of the version and the
    /// index of the expression.
    fn violated(&self, evaluations: &[Evaluation; 2]) -> Vec<(usize, usize)> {
        let mut violated = Vec::new();
        for (n, evaluation) in evaluations.iter().enumerate() {
            let Some(side) = self.sides.get(n) else {
                continue;
            };
            if evaluation.decisions.len() != n_validations(side.policy) {
                continue;
            }
            let validations = super::validations(side.policy).zip(&evaluation.decisions);
            let own = self.pair.sides.get(n).copied().flatten();
            let validations = validations.filter(|(index, decision)| {
                Some(*index) != own && decision.evaluation != EvaluationResult::Admit
            });
            violated.extend(validations.map(|(index, _)| (n, index)));
        }
        violated
    }
}

fn n_validations(policy: &CompiledPolicy) -> usize {
    super::validations(policy).count()
}

/// Returns the position of a validation in `spec.validations`.
fn position(policy: &CompiledPolicy, index: usize) -> usize {
    super::validations(policy)
        .take_while(|it| *it != index)
        .count()
}
