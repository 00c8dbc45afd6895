//! Solver: constraints on a request that satisfy branch conditions.
//!
//! A depth-first search over the disjuncts of the conditions. Each step takes one condition and branches on its
//! disjuncts: the constraints of the disjunct are added, and its residual conditions join the open ones. A branch ends
//! as soon as two constraints contradict each other. A branch without open conditions is a solution.
//!
//! Solutions are candidates that the evaluator has to confirm: a condition that cannot be interpreted only requires
//! its operands.

use super::disjuncts::disjuncts;
use crate::runtime_errors::symbolic::{BranchCondition, SymbolicEvaluator};
use kubernetes::validity::InputConstraints;

/// Maximum number of solutions of one path condition.
const MAX_SOLUTIONS: usize = 5;

/// Maximum number of disjuncts that are expanded for one path condition.
const MAX_STEPS: u32 = 120;

/// The number of innermost conditions that are checked for a contradiction before the search.
const MAX_PRECHECKED: usize = 12;

/// The result of the search for constraints.
pub(crate) struct Solution {
    /// One set of constraints for each satisfied combination of disjuncts.
    pub(crate) solutions: Vec<InputConstraints>,
    /// True if the conditions are unsatisfiable, and so is every extension of them.
    pub(crate) is_unsat: bool,
}

/// Finds constraints that extend `constraints` and satisfy all `conditions`.
pub(crate) fn solve(
    evaluator: &SymbolicEvaluator<'_>,
    conditions: Vec<BranchCondition>,
    constraints: InputConstraints,
) -> Solution {
    if is_contradictory(evaluator, &conditions, &constraints) {
        return Solution {
            solutions: Vec::new(),
            is_unsat: true,
        };
    }
    let mut solutions = Vec::new();
    let mut steps_left = MAX_STEPS;
    let mut is_incomplete = false;
    let mut worklist = vec![(conditions, constraints)];
    while let Some((mut conditions, mut constraints)) = worklist.pop() {
        if solutions.len() >= MAX_SOLUTIONS || steps_left == 0 || !evaluator.take_step() {
            is_incomplete = true;
            break;
        }
        steps_left -= 1;
        let Some(condition) = conditions.pop() else {
            if !solutions.contains(&constraints) {
                solutions.push(constraints);
            }
            continue;
        };
        // The worklist is a stack, so the first disjunct is pushed last.
        for (n, disjunct) in disjuncts(evaluator, &condition).iter().enumerate().rev() {
            // Most conditions have a single disjunct, which needs no copy.
            let (mut conditions, mut constraints) = if n == 0 {
                (
                    std::mem::take(&mut conditions),
                    std::mem::take(&mut constraints),
                )
            } else {
                (conditions.clone(), constraints.clone())
            };
            let added = disjunct
                .constraints
                .iter()
                .try_for_each(|(path, constraint)| constraints.add(path, constraint.clone()));
            if added.is_some() {
                conditions.extend_from_slice(&disjunct.conditions);
                worklist.push((conditions, constraints));
            }
        }
    }
    Solution {
        is_unsat: solutions.is_empty() && !is_incomplete,
        solutions,
    }
}

/// Returns true if the conditions with at most one disjunct contradict `constraints` or each other. Most guards are
/// recognized by this check.
fn is_contradictory(
    evaluator: &SymbolicEvaluator<'_>,
    conditions: &[BranchCondition],
    constraints: &InputConstraints,
) -> bool {
    let mut combined = constraints.clone();
    for condition in conditions.iter().take(MAX_PRECHECKED) {
        let disjuncts = disjuncts(evaluator, condition);
        let mut required = match &*disjuncts {
            [] => return true,
            [disjunct] => disjunct.constraints.iter(),
            _ => continue,
        };
        if required.any(|(path, constraint)| combined.add(path, constraint.clone()).is_none()) {
            return true;
        }
    }
    false
}
