//! Solver: finds constraints on a request that satisfy branch conditions.
//!
//! The solver is a depth-first search over the disjuncts of the conditions. Each step takes one open condition and
//! branches on its disjuncts. A branch adds the constraints of its disjunct, and adds the disjunct's conditions to the
//! open conditions. A branch ends as soon as two constraints contradict each other. A branch without open conditions is
//! a solution.
//!
//! Solutions are candidates that the evaluator must confirm: for a condition that cannot be interpreted, the solver
//! only requires that the operands are present.

use super::disjuncts::disjuncts;
use crate::runtime_errors::symbolic::{BranchCondition, SymbolicEvaluator};
use kubernetes::validity::InputConstraints;

/// Maximum number of solutions of one path condition.
const MAX_SOLUTIONS: usize = 5;

/// Maximum number of steps of one [`solve`] call. A step takes one entry from the worklist.
const MAX_SOLVER_STEPS: u32 = 120;

/// Maximum number of conditions that are checked for contradictions before the search. Innermost conditions come first.
const MAX_PRECHECKED: usize = 12;

#[derive(Clone, Copy)]
pub(crate) struct SolverLimits {
    pub(crate) n_solutions: usize,
    /// Maximum number of steps. A step takes one entry from the worklist.
    pub(crate) n_steps: u32,
}

/// The limits of one [`solve`] call.
const LIMITS: SolverLimits = SolverLimits {
    n_solutions: MAX_SOLUTIONS,
    n_steps: MAX_SOLVER_STEPS,
};

pub(crate) struct Solution {
    /// The combined constraints of each solution.
    pub(crate) solutions: Vec<InputConstraints>,
    /// True if the conditions are unsatisfiable. Additional conditions cannot change this.
    pub(crate) is_unsat: bool,
}

/// Finds extensions of `constraints` that satisfy all `conditions`.
pub(crate) fn solve(
    symbolic: &SymbolicEvaluator<'_>,
    conditions: Vec<BranchCondition>,
    constraints: InputConstraints,
) -> Solution {
    if is_contradictory(symbolic, &conditions, &constraints) {
        return Solution {
            solutions: Vec::new(),
            is_unsat: true,
        };
    }
    let conditions = conditions.into_iter();
    let conditions = conditions.map(|condition| (symbolic, condition));
    solve_jointly(conditions.collect(), constraints, LIMITS)
}

/// Finds extensions of `constraints` that satisfy all `conditions`. Each condition has its own evaluator, so the
/// conditions may belong to different policies.
pub(crate) fn solve_jointly<'e>(
    conditions: Vec<(&'e SymbolicEvaluator<'e>, BranchCondition)>,
    constraints: InputConstraints,
    limits: SolverLimits,
) -> Solution {
    let mut solutions = Vec::new();
    let mut steps_left = limits.n_steps;
    let mut is_incomplete = false;
    let mut worklist = vec![(conditions, constraints)];
    while let Some((mut conditions, mut constraints)) = worklist.pop() {
        if solutions.len() >= limits.n_solutions || steps_left == 0 {
            is_incomplete = true;
            break;
        }
        steps_left -= 1;
        let condition = conditions.pop();
        if let Some((symbolic, _)) = &condition
            && !symbolic.take_step()
        {
            is_incomplete = true;
            break;
        }
        let Some((symbolic, condition)) = condition else {
            if !solutions.contains(&constraints) {
                solutions.push(constraints);
            }
            continue;
        };
        // The worklist is a stack, so the first disjunct is pushed last.
        for (n, disjunct) in disjuncts(symbolic, &condition).iter().enumerate().rev() {
            // The vectors are moved to the first disjunct, and copied for others. Most conditions have only one
            // disjunct.
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
                let more = disjunct.conditions.iter();
                conditions.extend(more.map(|condition| (symbolic, condition.clone())));
                worklist.push((conditions, constraints));
            }
        }
    }
    Solution {
        is_unsat: solutions.is_empty() && !is_incomplete,
        solutions,
    }
}

/// Returns true if `constraints` contradict the conditions. Checks only conditions with at most one disjunct, such as
/// most guards.
fn is_contradictory(
    symbolic: &SymbolicEvaluator<'_>,
    conditions: &[BranchCondition],
    constraints: &InputConstraints,
) -> bool {
    let mut combined = constraints.clone();
    for condition in conditions.iter().take(MAX_PRECHECKED) {
        let disjuncts = disjuncts(symbolic, condition);
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
