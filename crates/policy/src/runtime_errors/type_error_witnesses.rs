//! Finds witnesses of type errors: requests for which an expression fails at the location of a type-check finding.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Context;
use super::failure_sites::{self, SitesByNode, sites_by_node};
use super::failures::Failure;
use super::path_conditions::{PathCondition, solver};
use super::requests::builders::RequestBuilders;
use super::requests::kinds::{one_per_kind, operations};
use super::requests::minimal_constraints;
use super::requests::{Budget, RequestBuilder, SyntheticRequest, Witness};
use super::search::{MAX_REPAIRS, MAX_SYMBOLIC_STEPS, missing_path};
use super::symbolic::{ExprRef, SymbolicEvaluator};
use crate::analysis::PartialFailure;
use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use crate::matching::{self, Target};
use cel::diagnostic::Severity;
use cel::source::{Location, SourceMap};
use cel::stack::run_on_deep_stack;
use kubernetes::schema::Gvk;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints};

/// Maximum number of kinds to search for witnesses.
const MAX_KINDS: usize = 6;

/// Maximum number of kinds to try for a partial failure.
const MAX_KINDS_OF_PARTIAL: usize = 2;

/// The evaluation budget for one policy.
const BUDGET: Budget = Budget {
    n_evaluations: 300,
    cost: 300_000,
};

/// A request for which an expression fails at the location of a type error.
#[derive(Clone, Debug)]
pub struct TypeErrorWitness {
    /// The index of the expression in the policy.
    pub index: usize,
    /// The location of the type error.
    pub location: Location,
    /// The request.
    pub witness: Witness,
}

/// Finds at most one witness for each type error of `policy`.
#[must_use]
pub fn type_error_witnesses(
    policy: &CompiledPolicy,
    context: &Context<'_>,
) -> Vec<TypeErrorWitness> {
    search(policy, context, unproven_findings(context))
}

/// Finds at most one witness for each partial failure: an expression that fails for only some of the kinds matched by a
/// wildcard.
#[must_use]
pub fn partial_failure_witnesses(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    partial: &[PartialFailure],
) -> Vec<TypeErrorWitness> {
    let unproven = partial.iter().map(|partial| UnprovenFinding {
        index: partial.index,
        location: partial.location,
        kinds: partial
            .kinds
            .iter()
            .take(MAX_KINDS_OF_PARTIAL)
            .cloned()
            .collect(),
    });
    search(policy, context, unproven.collect())
}

fn search(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    unproven: Vec<UnprovenFinding>,
) -> Vec<TypeErrorWitness> {
    if unproven.is_empty() {
        return Vec::new();
    }
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let mut search = WitnessSearch {
            policy,
            unproven,
            budget: BUDGET,
            witnesses: Vec::new(),
        };
        search.run(context);
        search.witnesses
    })
}

/// A finding without a witness so far.
#[derive(Clone, Debug)]
struct UnprovenFinding {
    index: usize,
    location: Location,
    kinds: Vec<Gvk>,
}

/// Returns the locations of all type errors, each with the kinds that have the error.
fn unproven_findings(context: &Context<'_>) -> Vec<UnprovenFinding> {
    let mut findings: Vec<UnprovenFinding> = Vec::new();
    let mut by_location = HashMap::new();
    for typed in context.type_findings {
        for (gvk, severity, diagnostic) in typed.iter() {
            if severity != Severity::Error {
                continue;
            }
            let n = *by_location
                .entry((typed.index, diagnostic.location))
                .or_insert_with(|| {
                    findings.push(UnprovenFinding {
                        index: typed.index,
                        location: diagnostic.location,
                        kinds: Vec::new(),
                    });
                    findings.len().saturating_sub(1)
                });
            if let Some(unproven) = findings.get_mut(n) {
                unproven.kinds.push(gvk.clone());
            }
        }
    }
    findings
}

struct WitnessSearch<'a> {
    policy: &'a CompiledPolicy,
    unproven: Vec<UnprovenFinding>,
    budget: Budget,
    witnesses: Vec<TypeErrorWitness>,
}

/// The nodes at the locations of one kind's findings.
type TargetNodes = HashMap<ExprRef, Location>;

impl WitnessSearch<'_> {
    fn run(&mut self, context: &Context<'_>) {
        let policy = self.policy;
        let targets = matching::targets(policy.policy(), context.mapper);
        let kinds: HashSet<&Gvk> = self.unproven.iter().flat_map(|it| &it.kinds).collect();
        let of_findings = targets
            .iter()
            .filter(|target| kinds.contains(&target.resource.gvk));
        let of_findings: Vec<&Target<'_>> = of_findings.collect();
        let chosen = one_per_kind(&of_findings, MAX_KINDS);
        let builders = RequestBuilders::new(policy, context);
        for target in chosen {
            if self.unproven.is_empty() || self.budget.is_used_up() {
                return;
            }
            if let Some(builder) = builders.for_resource(target.resource, operations(target)) {
                self.try_kind(builder);
            }
        }
    }

    fn target_nodes(&self, gvk: &Gvk) -> TargetNodes {
        let mut target_nodes = TargetNodes::new();
        for unproven in self.unproven.iter().filter(|it| it.kinds.contains(gvk)) {
            let expression = self.policy.expressions().get(unproven.index);
            let Some((expression, Ok(ast))) =
                expression.map(|expression| (expression, expression.parsed()))
            else {
                continue;
            };
            let source = SourceMap::new(&expression.text);
            for (id, _) in ast.iter() {
                if source.location(ast.offset(id)) == unproven.location {
                    let n = unproven.index;
                    target_nodes.insert(ExprRef { index: n, id }, unproven.location);
                }
            }
        }
        target_nodes
    }

    fn try_kind(&mut self, mut builder: RequestBuilder<'_>) {
        let target_nodes = self.target_nodes(&builder.resource.gvk);
        if target_nodes.is_empty() {
            return;
        }
        let symbolic = builder.evaluator(MAX_SYMBOLIC_STEPS);
        let (sites, reached) =
            failure_sites::find_with_targets(&symbolic, &|node| target_nodes.contains_key(&node));
        let sites_by_node = sites_by_node(&sites);
        for constraints in minimal_constraints(&builder.operations) {
            self.try_constraints(&mut builder, &symbolic, &target_nodes, &constraints);
        }
        for (node, path_condition) in reached {
            let location = target_nodes.get(&node);
            let is_unproven = |unproven: &UnprovenFinding| {
                unproven.index == node.index && location == Some(&unproven.location)
            };
            if self.unproven.iter().any(is_unproven) {
                self.try_target(
                    &mut builder,
                    &symbolic,
                    &target_nodes,
                    &sites_by_node,
                    (node, &path_condition),
                );
            }
        }
    }

    /// Tries requests that satisfy the path condition of `node`.
    fn try_target(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        target_nodes: &TargetNodes,
        sites_by_node: &SitesByNode<'_>,
        (node, path_condition): (ExprRef, &PathCondition),
    ) {
        let n_before = self.witnesses.len();
        for with_soft in path_condition.attempts() {
            let solution = solver::solve(
                symbolic,
                path_condition.conditions(*with_soft),
                InputConstraints::default(),
            );
            if solution.is_unsat {
                return;
            }
            for mut constraints in solution.solutions {
                for _ in 0..MAX_REPAIRS {
                    let tried = self.try_constraints(builder, symbolic, target_nodes, &constraints);
                    if self.witnesses.len() > n_before {
                        return;
                    }
                    let missing: Option<&FieldPath> =
                        tried.as_ref().and_then(|(synthetic, failures)| {
                            missing_path(synthetic, failures, sites_by_node, node.index)
                        });
                    let Some(missing) = missing else { break };
                    if constraints.add(missing, Constraint::Present).is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// Evaluates a request that satisfies `constraints`. Records a witness if the evaluation fails at a target node.
    fn try_constraints(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        target_nodes: &TargetNodes,
        constraints: &InputConstraints,
    ) -> Option<(Rc<SyntheticRequest>, Rc<Vec<Failure>>)> {
        let synthetic = builder.build(constraints)?;
        let failures = builder.evaluate(symbolic, &synthetic, &mut self.budget)?;
        for failure in &*failures {
            let node = symbolic.node(failure.origin_index, failure.origin_id);
            let Some(location) = node.and_then(|node| target_nodes.get(&node)) else {
                continue;
            };
            let n_before = self.unproven.len();
            let is_same_finding =
                |it: &UnprovenFinding| it.index == failure.origin_index && it.location == *location;
            self.unproven.retain(|it| !is_same_finding(it));
            if self.unproven.len() < n_before {
                self.witnesses.push(TypeErrorWitness {
                    index: failure.origin_index,
                    location: *location,
                    witness: builder.witness(&synthetic, &failure.message),
                });
            }
        }
        Some((synthetic, failures))
    }
}
