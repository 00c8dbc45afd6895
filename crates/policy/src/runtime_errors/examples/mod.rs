//! Examples: requests for which a validation is true or false, found by the search that finds witnesses and confirmed
//! by the evaluator.

mod dependence;
mod trial;

use super::candidates::{self, Candidate, Cause};
use super::failures::failures;
use super::kinds::kinds_up_to;
use super::makers::Makers;
use super::symbol::{BranchCondition, ExprRef, Scope, SymbolicEvaluator};
use super::witness::{Budget, Made, Maker, Witness};
use super::{Context, goals, is_reason};
use crate::admission::trace::Step;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching;
use cel::stack::run_on_deep_stack;
pub use dependence::{Dependence, dependence};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};
use trial::{Trial, add_operation, edits, usual};

/// The most kinds that a policy is tried on.
const MAX_KINDS: usize = 16;

/// The most requests that are evaluated for one validation and kind.
const MAX_EVALUATIONS: u32 = 400;

/// The cost units that they may use.
const MAX_COST: u64 = 2_000_000;

/// The steps that reading the expressions may take for one validation and kind.
const MAX_STEPS: u32 = 60_000;

/// How often a request is mended that fails for something that is not there.
const MAX_MENDS: usize = 8;

/// The examples of one validation.
#[derive(Clone, Debug)]
pub struct Examples {
    /// The index of the validation among the policy's.
    pub validation: usize,
    /// The index of its expression among those of the policy.
    pub index: usize,
    /// A request for which all validations are true.
    pub allowed: Option<Witness>,
    /// A request for which this validation is false.
    pub denied: Option<Witness>,
}

/// Looks for an allowed and a denied request for each validation of `policy`.
#[must_use]
pub fn examples(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<Examples> {
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || Search::new(policy).run(context))
}

/// How good a request is as an example, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Quality {
    /// Nothing else says no, and nothing fails.
    Only,
    /// Others say no, after this one.
    First,
    /// Others say no before, or fail.
    Among,
}

struct Search<'a> {
    policy: &'a CompiledPolicy,
    /// The expressions of the validations.
    validations: Vec<usize>,
    found: Vec<[Option<(Quality, Witness)>; 2]>,
}

impl<'a> Search<'a> {
    fn new(policy: &'a CompiledPolicy) -> Self {
        let expressions = policy.expressions().iter().enumerate();
        let validations: Vec<usize> = expressions
            .filter(|(_, expression)| expression.role == Role::Validation)
            .map(|(n, _)| n)
            .collect();
        Self {
            policy,
            found: validations.iter().map(|_| [None, None]).collect(),
            validations,
        }
    }

    fn run(mut self, context: &Context<'_>) -> Vec<Examples> {
        let policy = self.policy;
        let targets = matching::targets(policy.policy(), context.mapper);
        let makers = Makers::new(policy, context);
        for (resource, operations) in kinds_up_to(&targets, MAX_KINDS) {
            // Of the kinds of connections, and of some subresources, there is no schema.
            let mut maker = makers.of_any(resource, operations);
            for n in 0..self.validations.len() {
                self.try_validation(&mut maker, n);
            }
        }
        let all = self.validations.into_iter().zip(self.found).enumerate();
        all.map(|(validation, (index, [allowed, denied]))| Examples {
            validation,
            index,
            allowed: allowed.map(|(_, witness)| witness),
            denied: denied.map(|(_, witness)| witness),
        })
        .collect()
    }

    /// Reports whether nothing better is to be found for the validation at `n`.
    fn is_done(&self, n: usize, wanted: bool) -> bool {
        let found = self.found.get(n);
        let best = found.and_then(|found| found.get(usize::from(!wanted))?.as_ref());
        best.is_some_and(|(quality, _)| *quality == Quality::Only)
    }

    fn has_any(&self, n: usize, wanted: bool) -> bool {
        let found = self.found.get(n);
        found.is_some_and(|found| found.get(usize::from(!wanted)).is_some_and(Option::is_some))
    }

    fn try_validation(&mut self, maker: &mut Maker<'_>, n: usize) {
        let Some(index) = self.validations.get(n).copied() else {
            return;
        };
        let evaluator = maker.evaluator(MAX_STEPS);
        let mut trial = Trial {
            evaluator: &evaluator,
            candidates: candidates::find(&evaluator),
            budget: Budget {
                n_evaluations: MAX_EVALUATIONS,
                cost: MAX_COST,
            },
        };
        for wanted in [false, true] {
            if self.is_done(n, wanted) {
                continue;
            }
            self.try_goals(maker, &mut trial, (n, index), wanted);
            if !self.has_any(n, wanted) {
                self.try_edits(maker, &mut trial, (n, index), wanted);
            }
        }
    }

    /// Tries what the expressions themselves ask for.
    fn try_goals(
        &mut self,
        maker: &mut Maker<'_>,
        trial: &mut Trial<'_, '_>,
        (n, index): (usize, usize),
        wanted: bool,
    ) {
        for base in [usual(trial.evaluator), InputConstraints::default()] {
            for with_others in [true, false] {
                let goals = self.goals(trial.evaluator, index, wanted, with_others);
                for needs in goals::solve(trial.evaluator, goals, base.clone()).found {
                    self.try_needs(maker, trial, (n, index), needs);
                    if self.is_done(n, wanted) {
                        return;
                    }
                }
            }
        }
        self.try_needs(maker, trial, (n, index), InputConstraints::default());
    }

    /// Goals: the validation at `index` is `wanted`, match conditions hold, and, where that is asked for, the other
    /// validations are true.
    fn goals(
        &self,
        evaluator: &SymbolicEvaluator<'_>,
        index: usize,
        wanted: bool,
        with_others: bool,
    ) -> Vec<BranchCondition> {
        let expressions = self.policy.expressions().iter().enumerate();
        let mut goals = Vec::new();
        for (n, expression) in expressions {
            let is_asked = match expression.role {
                Role::MatchCondition => true,
                Role::Validation => n != index && with_others,
                _ => false,
            };
            if let Some(ast) = evaluator.ast(n).filter(|_| is_asked) {
                let node = ExprRef {
                    index: n,
                    id: ast.root(),
                };
                goals.push(BranchCondition::Evaluates(node, Scope::default(), true));
            }
        }
        // The last goal is looked at first.
        if let Some(ast) = evaluator.ast(index) {
            let node = ExprRef {
                index,
                id: ast.root(),
            };
            goals.push(BranchCondition::Evaluates(node, Scope::default(), wanted));
        }
        goals
    }

    /// Tries requests that differ in what the validation reads.
    fn try_edits(
        &mut self,
        maker: &mut Maker<'_>,
        trial: &mut Trial<'_, '_>,
        (n, index): (usize, usize),
        wanted: bool,
    ) {
        let conditions = {
            let goals = self.goals(trial.evaluator, index, wanted, false);
            let n_conditions = goals.len().saturating_sub(1);
            goals.into_iter().take(n_conditions).collect()
        };
        let mut bases =
            goals::solve(trial.evaluator, conditions, InputConstraints::default()).found;
        bases.truncate(2);
        let conditions = {
            let goals = self.goals(trial.evaluator, index, wanted, false);
            let n_conditions = goals.len().saturating_sub(1);
            goals.into_iter().take(n_conditions).collect()
        };
        let more = goals::solve(trial.evaluator, conditions, usual(trial.evaluator)).found;
        bases.splice(0..0, more.into_iter().take(1));
        if bases.is_empty() {
            bases.push(InputConstraints::default());
        }
        let mut paths = Vec::new();
        let mut literals = Vec::new();
        trial.paths(index, &mut paths, &mut literals);
        let edits: Vec<(FieldPath, Constraint)> = paths
            .iter()
            .flat_map(|path| edits(path, &literals))
            .collect();
        for base in &bases {
            for operation in maker.operations.clone() {
                let mut needs = base.clone();
                if add_operation(&mut needs, operation).is_some() {
                    self.try_needs(maker, trial, (n, index), needs);
                }
            }
            for (path, edit) in &edits {
                if self.has_any(n, wanted) || trial.budget.is_used_up() {
                    return;
                }
                let mut needs = base.clone();
                if needs.add(path, edit.clone()).is_some() {
                    self.try_needs(maker, trial, (n, index), needs);
                }
            }
        }
        // Two of them at once: all there, and one changed.
        let mut all = bases.swap_remove(0);
        for path in &paths {
            let mut more = all.clone();
            if more.add(path, Constraint::Present).is_some() {
                all = more;
            }
        }
        self.try_needs(maker, trial, (n, index), all.clone());
        for (path, edit) in edits {
            if self.has_any(n, wanted) || trial.budget.is_used_up() {
                return;
            }
            let mut needs = all.clone();
            if needs.add(&path, edit).is_some() {
                self.try_needs(maker, trial, (n, index), needs);
            }
        }
    }

    /// Makes a request that fits `needs`, mends it where it lacks something, and keeps what it shows.
    fn try_needs(
        &mut self,
        maker: &mut Maker<'_>,
        trial: &mut Trial<'_, '_>,
        (n, index): (usize, usize),
        mut needs: InputConstraints,
    ) {
        for _ in 0..MAX_MENDS {
            let Some(made) = maker.make(&needs) else {
                return;
            };
            let Some(steps) = maker.traced(&made, &mut trial.budget) else {
                return;
            };
            self.keep(maker, n, &made, &steps);
            let failures = failures(trial.evaluator, &steps);
            let of_others = failures.iter().filter(|failure| failure.of != index);
            let of_it = failures.iter().filter(|failure| failure.of == index);
            let missing = of_it
                .chain(of_others)
                .filter(|failure| is_reason(&failure.message))
                .find_map(|failure| {
                    let at_node = |candidate: &&Candidate| {
                        candidate.node.index == failure.n
                            && candidate.node.id.index() == failure.id
                            && candidate.cause == Cause::Absent
                            && made.lacks(&candidate.path)
                    };
                    trial.candidates.iter().find(at_node)
                });
            let Some(missing) = missing else { return };
            if needs.add(&missing.path, Constraint::Present).is_none() {
                return;
            }
        }
    }

    /// Keeps `made` for the validation at `n`, and for all others, where it is better than what they have.
    fn keep(&mut self, maker: &Maker<'_>, n: usize, made: &Made, steps: &[Step]) {
        let expressions = self.policy.expressions();
        let role = |step: &Step| expressions.get(step.index).map(|found| found.role);
        let of_role = |wanted: Role| steps.iter().filter(move |step| role(step) == Some(wanted));
        let holds = |step: &Step| matches!(step.result, Ok(Some(true)));
        if !of_role(Role::MatchCondition).all(holds) {
            return;
        }
        if maker.is_refused(made) {
            return;
        }
        let has_error = of_role(Role::AuditAnnotation).any(|step| step.result.is_err());
        let of_validations: Vec<&Step> = of_role(Role::Validation).collect();
        if of_validations.len() != self.validations.len() {
            return;
        }
        let is_allowed = !has_error && of_validations.iter().all(|step| holds(step));
        let n_true = of_validations.iter().filter(|step| holds(step)).count();
        let first = of_validations.iter().position(|step| !holds(step));
        for (at, step) in of_validations.iter().enumerate() {
            let (slot, quality) = match step.result {
                Ok(Some(true)) if is_allowed => (0, Quality::Only),
                // What another validation came by is as good an example of it as its own, but not better.
                Ok(Some(false)) => {
                    let is_only = n_true + 1 == of_validations.len() && !has_error;
                    let quality = match (is_only, first == Some(at)) {
                        (true, _) => Quality::Only,
                        (false, true) => Quality::First,
                        (false, false) => Quality::Among,
                    };
                    (1, quality)
                }
                _ => continue,
            };
            let known = self.found.get_mut(at).and_then(|found| found.get_mut(slot));
            let Some(known) = known else { continue };
            // An allowed request is made for the validation itself, where one is found.
            let is_better = match known {
                None => true,
                Some((before, _)) => {
                    quality < *before || (slot == 0 && at == n && quality == *before)
                }
            };
            if is_better {
                *known = Some((quality, maker.witness(made, "")));
            }
        }
    }
}
