//! Witnesses of what type checking finds: requests for which an expression fails at the place of the finding.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::candidates::{self, Candidate, Goals};
use super::failures::Failure;
use super::kinds::{of_kinds, operations};
use super::makers::Makers;
use super::symbol::{ExprRef, SymbolicEvaluator};
use super::witness::{Budget, Made, Maker, Witness};
use super::{Context, MAX_MENDS, MAX_STEPS, goals, least_needs, missing};
use crate::analysis::Partial;
use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use crate::matching::{self, Target};
use cel::diagnostic::Severity;
use cel::source::{Location, SourceMap};
use cel::stack::run_on_deep_stack;
use kubernetes::schema::Gvk;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// The most kinds that are tried.
const MAX_KINDS: usize = 6;

/// The most kinds that are tried for one expression that fails for some of the kinds of wildcards.
const MAX_KINDS_OF_PARTIAL: usize = 2;

/// The most requests that are evaluated for one policy, and what they may cost together.
const BUDGET: Budget = Budget {
    n_evaluations: 300,
    cost: 300_000,
};

/// A request for which an expression fails where type checking finds that it does.
#[derive(Clone, Debug)]
pub struct TypedWitness {
    /// The index of the expression among those of the policy.
    pub index: usize,
    /// The place of the finding in the expression.
    pub location: Location,
    /// The request.
    pub witness: Witness,
}

/// Finds witnesses of the findings of type checking, as many as there are to be had.
#[must_use]
pub fn typed_witnesses(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<TypedWitness> {
    search(policy, context, wanted(context))
}

/// Finds witnesses of what fails for some of the kinds of wildcards, as many as there are to be had.
#[must_use]
pub fn partial_witnesses(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    partial: &[Partial],
) -> Vec<TypedWitness> {
    let wanted = partial.iter().map(|partial| Wanted {
        index: partial.index,
        location: partial.location,
        kinds: partial
            .kinds
            .iter()
            .take(MAX_KINDS_OF_PARTIAL)
            .cloned()
            .collect(),
    });
    search(policy, context, wanted.collect())
}

fn search(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    wanted: Vec<Wanted>,
) -> Vec<TypedWitness> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let mut search = Search {
            policy,
            wanted,
            budget: BUDGET,
            found: Vec::new(),
        };
        search.run(context);
        search.found
    })
}

/// A finding of type checking.
#[derive(Clone, Debug)]
struct Wanted {
    index: usize,
    location: Location,
    kinds: Vec<Gvk>,
}

/// The findings that say that something fails, each with the kinds that it is about.
fn wanted(context: &Context<'_>) -> Vec<Wanted> {
    let mut found: Vec<Wanted> = Vec::new();
    let mut by_place = HashMap::new();
    for typed in context.typed {
        for (gvk, severity, diagnostic) in typed.iter() {
            if severity != Severity::Error {
                continue;
            }
            let n = *by_place
                .entry((typed.index, diagnostic.location))
                .or_insert_with(|| {
                    found.push(Wanted {
                        index: typed.index,
                        location: diagnostic.location,
                        kinds: Vec::new(),
                    });
                    found.len().saturating_sub(1)
                });
            if let Some(wanted) = found.get_mut(n) {
                wanted.kinds.push(gvk.clone());
            }
        }
    }
    found
}

struct Search<'a> {
    policy: &'a CompiledPolicy,
    /// The findings that have none yet.
    wanted: Vec<Wanted>,
    budget: Budget,
    found: Vec<TypedWitness>,
}

/// The places of the findings about one kind, each with the index of the expression and the finding's location.
type Places = HashMap<ExprRef, Location>;

impl Search<'_> {
    fn run(&mut self, context: &Context<'_>) {
        let policy = self.policy;
        let targets = matching::targets(policy.policy(), context.mapper);
        let kinds: HashSet<&Gvk> = self.wanted.iter().flat_map(|it| &it.kinds).collect();
        let of_findings = targets
            .iter()
            .filter(|target| kinds.contains(&target.resource.gvk));
        let of_findings: Vec<&Target<'_>> = of_findings.collect();
        let chosen = of_kinds(&of_findings, MAX_KINDS);
        let makers = Makers::new(policy, context);
        for target in chosen {
            if self.wanted.is_empty() || self.budget.is_used_up() {
                return;
            }
            if let Some(maker) = makers.of(target.resource, operations(target)) {
                self.try_kind(maker);
            }
        }
    }

    /// The places of the findings about `gvk`.
    fn places(&self, gvk: &Gvk) -> Places {
        let mut places = Places::new();
        for wanted in self.wanted.iter().filter(|it| it.kinds.contains(gvk)) {
            let expression = self.policy.expressions().get(wanted.index);
            let Some((expression, Ok(ast))) =
                expression.map(|expression| (expression, expression.parsed()))
            else {
                continue;
            };
            let source = SourceMap::new(&expression.text);
            for (id, _) in ast.iter() {
                if source.location(ast.offset(id)) == wanted.location {
                    let n = wanted.index;
                    places.insert(ExprRef { index: n, id }, wanted.location);
                }
            }
        }
        places
    }

    fn try_kind(&mut self, mut maker: Maker<'_>) {
        let places = self.places(&maker.resource.gvk);
        if places.is_empty() {
            return;
        }
        let evaluator = maker.evaluator(MAX_STEPS);
        let (candidates, reached) = candidates::find_and_reach(&evaluator, &places);
        let by_place = super::by_place(&candidates);
        for needs in least_needs(&maker.operations) {
            self.try_needs(&mut maker, &evaluator, &places, &needs);
        }
        for (node, goals) in reached {
            let location = places.get(&node);
            let is_wanted =
                |wanted: &Wanted| wanted.index == node.index && location == Some(&wanted.location);
            if self.wanted.iter().any(is_wanted) {
                self.try_place(&mut maker, &evaluator, &places, &by_place, (node, &goals));
            }
        }
    }

    /// Tries to reach `place`.
    fn try_place(
        &mut self,
        maker: &mut Maker<'_>,
        evaluator: &SymbolicEvaluator<'_>,
        places: &Places,
        by_place: &HashMap<(usize, usize), Vec<&Candidate>>,
        (node, to_reach): (ExprRef, &Goals),
    ) {
        let n_before = self.found.len();
        for with_soft in to_reach.attempts() {
            let solved = goals::solve(
                evaluator,
                to_reach.list(*with_soft),
                InputConstraints::default(),
            );
            if solved.is_hopeless {
                return;
            }
            for mut needs in solved.found {
                for _ in 0..MAX_MENDS {
                    let tried = self.try_needs(maker, evaluator, places, &needs);
                    if self.found.len() > n_before {
                        return;
                    }
                    let missing: Option<&FieldPath> = tried
                        .as_ref()
                        .and_then(|(made, failures)| missing(made, failures, by_place, node.index));
                    let Some(missing) = missing else { break };
                    if needs.add(missing, Constraint::Present).is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// Evaluates a request that fits `needs`, and keeps it where it fails at one of `places`.
    fn try_needs(
        &mut self,
        maker: &mut Maker<'_>,
        evaluator: &SymbolicEvaluator<'_>,
        places: &Places,
        needs: &InputConstraints,
    ) -> Option<(Rc<Made>, Rc<Vec<Failure>>)> {
        let made = maker.make(needs)?;
        let failures = maker.failures(evaluator, &made, &mut self.budget)?;
        for failure in &*failures {
            let node = evaluator.node(failure.n, failure.id);
            let Some(location) = node.and_then(|node| places.get(&node)) else {
                continue;
            };
            let n_before = self.wanted.len();
            let is_it = |it: &Wanted| it.index == failure.n && it.location == *location;
            self.wanted.retain(|it| !is_it(it));
            if self.wanted.len() < n_before {
                self.found.push(TypedWitness {
                    index: failure.n,
                    location: *location,
                    witness: maker.witness(&made, &failure.message),
                });
            }
        }
        Some((made, failures))
    }
}
