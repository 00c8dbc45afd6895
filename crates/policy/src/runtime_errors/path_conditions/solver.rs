//! Searches for constraints on a request that satisfy branch conditions.

use super::disjuncts::disjuncts;
use crate::runtime_errors::symbolic::{BranchCondition, SymbolicEvaluator};
use kubernetes::validity::InputConstraints;

/// How many ways to reach all goals are given.
const MAX_SOLUTIONS: usize = 5;

/// The most goals and needs that are looked at for one set of goals.
const MAX_STEPS: u32 = 120;

/// How many goals, the innermost ones, are looked at for a contradiction at first sight.
const MAX_PRECHECKED: usize = 12;

/// The outcome of a search for needs.
pub(crate) struct Solution {
    /// The needs, one for each way.
    pub(crate) solutions: Vec<InputConstraints>,
    /// True if there is no way, also where there are more goals.
    pub(crate) is_unsat: bool,
}

/// The needs that reach all of `goals` besides `needs`, as far as the goals can be read; none where they contradict
/// each other.
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
    let mut open = vec![(conditions, constraints)];
    while let Some((mut conditions, mut constraints)) = open.pop() {
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
        // The first way is looked at first.
        for (n, disjunct) in disjuncts(evaluator, &condition).iter().enumerate().rev() {
            // Mostly there is but one way.
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
                open.push((conditions, constraints));
            }
        }
    }
    Solution {
        is_unsat: solutions.is_empty() && !is_incomplete,
        solutions,
    }
}

/// Reports whether a goal that can be added in one way only, or in none, contradicts `needs` or another such goal: a
/// guard for what is absent, mostly.
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
