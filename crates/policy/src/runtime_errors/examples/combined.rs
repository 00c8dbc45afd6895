//! Finds a request for which all validations are true, by satisfying one validation after the other. Also finds
//! requests at the boundaries of validations.
//!
//! Each step adds constraints to the request, so that more validations are true than before.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::{Boundary, ExampleSearch, MAX_EXAMPLE_STEPS, MAX_REPAIRS};
use crate::expressions::Role;
use crate::runtime_errors::examples::value_search::{ValueSearch, usual_constraints};
use crate::runtime_errors::path_conditions::solver;
use crate::runtime_errors::requests::{RequestBuilder, SyntheticRequest};
use crate::runtime_errors::symbolic::{BranchCondition, ExprRef, Scope};
use kubernetes::library::quantity::Quantity;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// Maximum number of boundaries of one validation.
const MAX_BOUNDARIES: usize = 4;

/// A request, and the results of the validations.
struct Attempt {
    constraints: InputConstraints,
    synthetic: Rc<SyntheticRequest>,
    /// The result of each validation. `None` if the evaluation fails.
    results: Vec<Option<bool>>,
}

impl Attempt {
    fn n_true(&self) -> usize {
        let holds = self.results.iter().filter(|it| **it == Some(true));
        holds.count()
    }

    fn is_allowed(&self) -> bool {
        self.n_true() == self.results.len()
    }

    /// Returns true if only the validation `n` is false.
    fn is_denied_by(&self, n: usize) -> bool {
        self.results.get(n) == Some(&Some(false)) && self.n_true() + 1 == self.results.len()
    }
}

impl ExampleSearch<'_, '_> {
    /// Searches for a request for which all validations are true, and for the boundaries of the validations.
    pub(super) fn combine(&mut self, builder: &mut RequestBuilder<'_>) {
        let evaluator = builder.evaluator(MAX_EXAMPLE_STEPS);
        let mut value_search = ValueSearch::new(&evaluator);
        let mut bases: Vec<InputConstraints> = self.allowed.take().into_iter().collect();
        // If the search for single validations found an allowed request, the existing examples are kept, because they
        // are simpler than further ones.
        self.is_recording = bases.is_empty();
        if bases.is_empty() {
            let conditions = self.match_conditions(&value_search);
            let usual = usual_constraints(&evaluator);
            let solutions = solver::solve(&evaluator, conditions, usual.clone()).solutions;
            bases.extend(solutions.into_iter().take(2));
            bases.push(usual);
        }
        for base in bases {
            let Some(first) = self.attempt(builder, &mut value_search, 0, base) else {
                continue;
            };
            let best = self.climb(builder, &mut value_search, first);
            if best.is_allowed() {
                self.is_recording = false;
                for n in 0..self.validations.len() {
                    self.find_boundaries(builder, &mut value_search, n, &best);
                }
                return;
            }
        }
    }

    /// Returns branch conditions that require each match condition to be true.
    fn match_conditions(&self, value_search: &ValueSearch<'_, '_>) -> Vec<BranchCondition> {
        let expressions = self.policy.expressions().iter().enumerate();
        let conditions = expressions.filter(|(_, it)| it.role == Role::MatchCondition);
        let conditions = conditions.filter_map(|(index, _)| {
            let id = value_search.evaluator.ast(index)?.root();
            let node = ExprRef { index, id };
            Some(BranchCondition::Evaluates(node, Scope::default(), true))
        });
        conditions.collect()
    }

    /// Improves a request until all validations are true, or until no candidate is better.
    fn climb(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        mut best: Attempt,
    ) -> Attempt {
        while !best.is_allowed() && !value_search.budget.is_used_up() {
            let Some(better) = self.better(builder, value_search, &best) else {
                break;
            };
            best = better;
        }
        best
    }

    /// Returns a request for which more validations are true than for `best`.
    fn better(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        best: &Attempt,
    ) -> Option<Attempt> {
        for n in 0..best.results.len() {
            if best.results.get(n) == Some(&Some(true)) {
                continue;
            }
            for candidate in self.candidates(value_search, n, &best.constraints) {
                let attempt = self.attempt(builder, value_search, n, candidate);
                if let Some(attempt) = attempt.filter(|it| it.n_true() > best.n_true()) {
                    return Some(attempt);
                }
            }
        }
        None
    }

    /// Returns constraints that may make the validation `n` true.
    fn candidates(
        &self,
        value_search: &ValueSearch<'_, '_>,
        n: usize,
        base: &InputConstraints,
    ) -> Vec<InputConstraints> {
        let Some(&index) = self.validations.get(n) else {
            return Vec::new();
        };
        let mut candidates = Vec::new();
        if let Some(ast) = value_search.evaluator.ast(index) {
            let id = ast.root();
            let node = ExprRef { index, id };
            let condition = BranchCondition::Evaluates(node, Scope::default(), true);
            let solved = solver::solve(value_search.evaluator, vec![condition], base.clone());
            candidates.extend(solved.solutions);
        }
        let (paths, literals) = self.inputs(value_search, index);
        for (path, constraint) in value_search.trials(&paths, &literals) {
            let mut candidate = base.clone();
            if candidate.replace(&path, constraint).is_some() {
                candidates.push(candidate);
            }
        }
        candidates
    }

    /// Returns the inputs of an expression, and the literals of the expression and of the params.
    pub(super) fn inputs(
        &self,
        value_search: &ValueSearch<'_, '_>,
        index: usize,
    ) -> (Vec<FieldPath>, Vec<Json>) {
        let (mut paths, mut literals) = (Vec::new(), Vec::new());
        value_search.paths(index, &mut paths, &mut literals);
        // The params often contain prefixes, to which the expression appends a separator. The search tries such
        // completed strings too.
        let separators: Vec<String> = literals
            .iter()
            .filter_map(Json::as_str)
            .filter(|text| !text.is_empty() && text.chars().all(|it| it.is_ascii_punctuation()))
            .map(str::to_owned)
            .collect();
        for value in &self.param_values {
            literals.push(value.clone());
            let text = value.as_str().into_iter();
            literals.extend(text.flat_map(|text| {
                let completed = separators.iter();
                completed.map(move |separator| json!(format!("{text}{separator}example")))
            }));
        }
        (paths, literals)
    }

    /// Evaluates a request that satisfies `constraints`. If the evaluation fails because a value is absent, adds the
    /// value and tries again.
    fn attempt(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        n: usize,
        mut constraints: InputConstraints,
    ) -> Option<Attempt> {
        for _ in 0..MAX_REPAIRS {
            let synthetic = builder.built(&constraints)?;
            let traced = builder.traced(&synthetic, &mut value_search.budget)?;
            if self.is_recording {
                self.record(builder, n, &synthetic, &traced.steps);
            } else {
                self.count(&traced.steps);
            }
            let index = self.validations.get(n).copied();
            let missing = super::missing_input(value_search, &synthetic, &traced.steps, index);
            if let Some(missing) = missing {
                constraints.add(&missing, Constraint::Present)?;
                continue;
            }
            if builder.fails_validation(&synthetic) {
                return None;
            }
            let results = self.results(&traced.steps)?;
            return Some(Attempt {
                constraints,
                synthetic,
                results,
            });
        }
        None
    }

    /// Finds, for each input of the validation `n`, neighboring values between which the result of the validation
    /// changes.
    fn find_boundaries(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        value_search: &mut ValueSearch<'_, '_>,
        n: usize,
        allowed: &Attempt,
    ) {
        let Some(&index) = self.validations.get(n) else {
            return;
        };
        let (paths, literals) = self.inputs(value_search, index);
        let has_quantities = (self.policy.expressions().iter())
            .any(|expression| expression.text.contains("quantity("));
        let mut boundaries = Vec::new();
        let mut seen = BTreeSet::new();
        for path in &paths {
            for literal in &literals {
                let neighbors = neighbors(literal, has_quantities);
                let mut attempts: Vec<(&Json, Attempt)> = Vec::new();
                for value in &neighbors {
                    let constraint = Constraint::Equals(value.clone());
                    let input_type = value_search.evaluator.input_type(path);
                    let mut constraints = allowed.constraints.clone();
                    if input_type.is_some_and(|input_type| input_type.allows(value))
                        && constraints.replace(path, constraint).is_some()
                        && let Some(attempt) = self.attempt(builder, value_search, n, constraints)
                    {
                        attempts.push((value, attempt));
                    }
                }
                let pairs = attempts.windows(2).filter_map(|pair| match pair {
                    [first, second] if first.1.is_allowed() && second.1.is_denied_by(n) => {
                        Some((first, second, true))
                    }
                    [first, second] if first.1.is_denied_by(n) && second.1.is_allowed() => {
                        Some((second, first, false))
                    }
                    _ => None,
                });
                for ((limit, of_limit), (beyond, of_beyond), is_upper) in pairs {
                    let input = format!("{}.{path}", path.root.name());
                    if boundaries.len() < MAX_BOUNDARIES
                        && seen.insert((input.clone(), beyond.to_string()))
                    {
                        boundaries.push(Boundary {
                            input,
                            is_upper,
                            allowed: (*limit).clone(),
                            allowed_request: builder.witness(&of_limit.synthetic, ""),
                            denied: (*beyond).clone(),
                            denied_request: builder.witness(&of_beyond.synthetic, ""),
                        });
                    }
                }
            }
        }
        if let Some(all) = self.boundaries.get_mut(n) {
            all.extend(boundaries);
        }
    }
}

/// Returns `literal`, which is a number or quantity, with its two neighbors, in ascending order.
fn neighbors(literal: &Json, has_quantities: bool) -> Vec<Json> {
    if let Some(n) = literal.as_i64() {
        let all = [n.checked_sub(1), Some(n), n.checked_add(1)];
        return all.into_iter().flatten().map(|n| json!(n)).collect();
    }
    let Some(text) = literal.as_str().filter(|_| has_quantities) else {
        return Vec::new();
    };
    let end = text.find(|it: char| !it.is_ascii_digit());
    let (digits, suffix) = text.split_at(end.unwrap_or(text.len()));
    let Ok(n) = digits.parse::<u64>() else {
        return Vec::new();
    };
    let all = [n.checked_sub(1), Some(n), n.checked_add(1)];
    let all = all.into_iter().flatten().map(|n| format!("{n}{suffix}"));
    let all: Vec<String> = all.collect();
    if all.iter().any(|text| Quantity::parse(text).is_err()) {
        return Vec::new();
    }
    all.into_iter().map(|text| json!(text)).collect()
}
