//! Compares two versions of a policy for generated requests: the same policy under two Kubernetes versions, or a policy
//! before and after a change.
//!
//! The search for examples ([`super::examples`]) generates the requests. For two Kubernetes versions, further requests
//! reach the nodes that a change between these versions may affect ([`crate::version_changes`]). For a changed policy,
//! further requests have trial values for the inputs of the changed expressions. Each request is evaluated under both
//! versions.

mod changed_conditions;
mod distinguishing;
mod match_changes;
mod trial_values;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::admissionregistration::v1::MatchResources;

pub use match_changes::differing_matches;

use super::Context;
use super::examples::{Trials, for_each_request, for_each_trial, trials, usual_constraints};
use super::failure_sites::{self, FailureCause, SitesByNode, sites_by_node};
use super::path_conditions::{PathCondition, solver};
use super::requests::builders::RequestBuilders;
use super::requests::kinds::representative_kinds;
use super::requests::{Budget, RequestBuilder, SyntheticRequest, Witness, minimal_constraints};
use super::search::{MAX_REPAIRS, MAX_SYMBOLIC_STEPS, missing_path};
use super::symbolic::{BranchCondition, ExprRef, Scope, SymbolicEvaluator};
use crate::admission::{
    Action, Admission, Evaluation, EvaluationResult, Object, ParamList, RecordedValue, Recorder,
    ReviewContext, without_expression,
};
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching;
use crate::version_changes::AffectedNode;
use cel::stack::run_on_deep_stack;
use kubernetes::schema::Gvr;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root};
use serde_json::Value as Json;

/// Maximum number of differences.
const MAX_DIFFERENCES: usize = 32;

/// Maximum number of requests that are returned for a mutating policy. This module does not evaluate mutations.
const MAX_SAMPLES: usize = 48;

/// Maximum number of requests for one affected node and kind.
const MAX_REQUESTS_PER_NODE: usize = 40;

/// Maximum number of variations of one request. Each variation has a trial value for an input of the validations.
const MAX_VALIDATION_TRIALS: usize = 300;

/// Maximum number of requests, for one changed policy, that are varied with trial values for the validations.
const MAX_CHANGED_REQUESTS: usize = 4;

/// Maximum number of requests, for one kind, that make the validation of a changed message expression false.
const MAX_DENIED: usize = 2;

/// Maximum number of requests that satisfy all match conditions of a mutating policy, for one operation and kind.
const MAX_MATCHED: usize = 2;

/// Maximum number of requests for a changed mutating policy.
const MAX_CHANGED_SAMPLES: usize = 160;

/// Maximum number of requests that the search for differences of changed conditions builds.
const MAX_DISTINGUISHING: usize = 4_000;

/// Maximum number of updates that change a field from null to an empty list, for one kind.
const MAX_NULL_LISTS: usize = 6;

/// The evaluation budget for the affected nodes of one policy and kind.
const BUDGET: Budget = Budget {
    n_evaluations: 400,
    cost: 2_000_000,
};

/// The limits of one comparison. They are counts instead of a time, so that each run compares the same requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The number of requests that may be built, including those that are skipped.
    pub(super) n_requests: usize,
    /// The total cost of evaluating the requests in both versions, in cost units.
    pub(super) cost: u64,
}

pub(super) const LIMITS: Limits = Limits {
    n_requests: 1_500,
    cost: 20_000_000,
};

/// The result of comparing two versions of a policy.
#[derive(Clone, Debug, Default)]
pub struct VersionComparison {
    /// The number of requests that were evaluated under both versions.
    pub n_requests: usize,
    /// The first request for each type of difference.
    pub differences: Vec<VersionDifference>,
    /// A flag per affected node: true if the node has a value in the old version for at least one request.
    pub reached: Vec<bool>,
    /// The requests for a mutating policy, which the caller must evaluate. Empty for other policies.
    pub samples: Vec<Witness>,
}

/// A request for which the results of the two versions differ.
#[derive(Clone, Debug)]
pub struct VersionDifference {
    /// The request. Its `error` is empty.
    pub witness: Witness,
    /// For a changed policy, the inputs that the changed expressions read. Inputs that only one version reads are
    /// first.
    pub inputs: Vec<FieldPath>,
    /// The result of the old version.
    pub old: Evaluation,
    /// The result of the new version.
    pub new: Evaluation,
}

/// Generates requests for a policy and evaluates them under both versions. `old` and `new` are the same policy compiled
/// for the two versions, and `nodes` the nodes of `old` that a change may affect. The requests match `match_resources`,
/// the matchResources of a binding. If `is_cancelled` becomes true, the search and the running evaluation end.
#[must_use]
pub fn compare_versions(
    [old, new]: [&CompiledPolicy; 2],
    context: &Context<'_>,
    nodes: &[AffectedNode],
    match_resources: Option<&MatchResources>,
    is_cancelled: &Arc<AtomicBool>,
) -> VersionComparison {
    compare_within(
        LIMITS,
        [old, new],
        context,
        nodes,
        match_resources,
        is_cancelled,
    )
}

/// Generates requests for a policy and for its changed version, and evaluates each request with both versions. The
/// requests match `match_resources`, the matchResources of a binding. If `is_cancelled` becomes true, the search and
/// the running evaluation end.
#[must_use]
pub fn compare_policies(
    [old, new]: [&CompiledPolicy; 2],
    context: &Context<'_>,
    match_resources: Option<&MatchResources>,
    is_cancelled: &Arc<AtomicBool>,
) -> VersionComparison {
    let mut expressions = [old, new].into_iter().flat_map(CompiledPolicy::expressions);
    let is_deep = expressions.any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let mut comparer = Comparer::new([old, new], &[], LIMITS, is_cancelled);
        comparer.max_samples = MAX_CHANGED_SAMPLES;
        if !comparer.is_mutating {
            comparer.limits.n_requests = MAX_DISTINGUISHING;
            comparer.distinguish([old, new], context, match_resources);
        }
        for [policy, other] in [[old, new], [new, old]] {
            comparer.limits = LIMITS;
            let changed = changed_expressions(policy, other);
            comparer.try_changes(policy, &changed, context, match_resources);
            comparer.limits = LIMITS;
            comparer.run(policy, context, match_resources);
        }
        comparer.comparison
    })
}

/// Returns requests for which a changed validation or match condition of a policy has different results in `old` and
/// `new`. Evaluates at most `n_requests` requests.
pub(super) fn distinguishing_requests(
    [old, new]: [&CompiledPolicy; 2],
    context: &Context<'_>,
    n_requests: usize,
) -> Vec<VersionDifference> {
    let limits = Limits {
        n_requests,
        ..LIMITS
    };
    let mut comparer = Comparer::new([old, new], &[], limits, &Arc::default());
    if !comparer.is_mutating {
        comparer.distinguish([old, new], context, None);
    }
    comparer.comparison.differences
}

/// Returns the indices of the expressions of `policy` for which `other` has no expression with an equal source and
/// role.
fn changed_expressions(policy: &CompiledPolicy, other: &CompiledPolicy) -> Vec<usize> {
    let key = |it: &PolicyExpression| (it.role, Arc::clone(&it.text));
    let others: HashSet<_> = other.expressions().iter().map(key).collect();
    let expressions = policy.expressions().iter().enumerate();
    let changed = expressions.filter(|(_, it)| !others.contains(&key(it)));
    changed.map(|(index, _)| index).collect()
}

/// Compares like [`compare_versions`], but with other limits.
pub(super) fn compare_within(
    limits: Limits,
    [old, new]: [&CompiledPolicy; 2],
    context: &Context<'_>,
    nodes: &[AffectedNode],
    match_resources: Option<&MatchResources>,
    is_cancelled: &Arc<AtomicBool>,
) -> VersionComparison {
    let is_deep = old.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let mut comparer = Comparer::new([old, new], nodes, limits, is_cancelled);
        comparer.run(old, context, match_resources);
        comparer.comparison
    })
}

/// The properties by which differences are distinguished. If several differences have the same key, only the first is
/// reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DifferenceKey {
    /// For each version, true if it denies the request.
    denies: [bool; 2],
    /// The indices of the validations with different results, and these results.
    decisions: Vec<(usize, [Option<&'static str>; 2])>,
    /// The other parts of the results that differ.
    parts: Vec<Part>,
}

/// A part of a result other than the decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    MatchConstraints,
    MatchConditions,
    AuditAnnotations,
    Messages,
    /// The number of failed validations in the audit annotation.
    AuditedFailures,
}

impl DifferenceKey {
    /// Returns the key of the difference between the results. `None` if nothing differs except the costs.
    fn new(
        evaluations: [&Evaluation; 2],
        matches: [bool; 2],
        max_audited: [usize; 2],
    ) -> Option<Self> {
        let [old, new] = evaluations;
        let result = |evaluation: &Evaluation, n: usize| {
            let decision = evaluation.decisions.get(n)?;
            Some(decision.evaluation.as_str())
        };
        let n_decisions = old.decisions.len().max(new.decisions.len());
        let decisions = (0..n_decisions)
            .map(|n| (n, [result(old, n), result(new, n)]))
            .filter(|(_, [old, new])| old != new);
        let n_audited = |evaluation: &Evaluation, max: usize| {
            let decisions = evaluation.decisions.iter();
            let denials = decisions.filter(|it| it.evaluation == EvaluationResult::Deny);
            denials.count().min(max)
        };
        let [old_max, new_max] = max_audited;
        let parts = [
            (Part::MatchConstraints, matches[0] != matches[1]),
            (
                Part::MatchConditions,
                old.match_conditions != new.match_conditions,
            ),
            (
                Part::AuditAnnotations,
                old.audit_annotations != new.audit_annotations,
            ),
            (Part::Messages, has_other_messages([old, new])),
            (
                Part::AuditedFailures,
                n_audited(old, old_max) != n_audited(new, new_max),
            ),
        ];
        let parts = parts.into_iter().filter(|(_, differs)| *differs);
        let key = Self {
            denies: evaluations.map(is_denial),
            decisions: decisions.collect(),
            parts: parts.map(|(part, _)| part).collect(),
        };
        (!key.decisions.is_empty() || !key.parts.is_empty()).then_some(key)
    }
}

/// Returns true if the decisions differ, including their messages. Ignores the expression that an error message quotes.
fn has_other_messages(evaluations: [&Evaluation; 2]) -> bool {
    let [old, new] = evaluations.map(|evaluation| {
        let decisions = evaluation.decisions.iter().cloned();
        let decisions = decisions.map(|mut decision| {
            decision.message = without_expression(&decision.message).to_owned();
            decision
        });
        decisions.collect::<Vec<_>>()
    });
    old != new
}

fn is_denial(evaluation: &Evaluation) -> bool {
    let mut decisions = evaluation.decisions.iter();
    decisions.any(|decision| decision.action == Action::Deny)
}

/// The results of both versions for a request.
struct Probe {
    is_difference: bool,
    /// For each version, true if it denies the request.
    denies: [bool; 2],
    evaluations: [Evaluation; 2],
}

struct Comparer<'n> {
    admissions: [Admission; 2],
    nodes: &'n [AffectedNode],
    /// The remaining requests and cost.
    limits: Limits,
    is_cancelled: Arc<AtomicBool>,
    /// The hashes of the compared requests.
    seen: HashSet<u64>,
    keys: BTreeSet<DifferenceKey>,
    is_mutating: bool,
    max_samples: usize,
    /// The inputs of the changed expressions by resource.
    inputs: HashMap<Gvr, Vec<FieldPath>>,
    comparison: VersionComparison,
}

impl<'n> Comparer<'n> {
    fn new(
        [old, new]: [&CompiledPolicy; 2],
        nodes: &'n [AffectedNode],
        limits: Limits,
        is_cancelled: &Arc<AtomicBool>,
    ) -> Self {
        Self {
            admissions: [old, new].map(Admission::from_compiled),
            nodes,
            limits,
            is_cancelled: Arc::clone(is_cancelled),
            seen: HashSet::new(),
            keys: BTreeSet::new(),
            is_mutating: old.is_mutating(),
            max_samples: MAX_SAMPLES,
            inputs: HashMap::new(),
            comparison: VersionComparison {
                reached: vec![false; nodes.len()],
                ..VersionComparison::default()
            },
        }
    }

    fn run(
        &mut self,
        policy: &CompiledPolicy,
        context: &Context<'_>,
        match_resources: Option<&MatchResources>,
    ) {
        let targets = matching::targets(policy.policy(), context.mapper);
        let builders = RequestBuilders::new(policy, context);
        for (resource, operations) in representative_kinds(&targets) {
            let builder = builders.for_untyped(resource, operations);
            let mut builder = builder.with_match_resources(match_resources);
            self.try_kind(policy, &mut builder);
        }
        if !self.is_mutating && !self.is_over() {
            for_each_request(
                policy,
                context,
                match_resources,
                &mut |builder, synthetic| {
                    let _ = self.compare(builder, synthetic);
                    !self.is_over()
                },
            );
        }
    }

    /// Compares requests with trial values for the inputs of the expressions at `changed`. If the results differ for a
    /// request that both versions allow, varies the inputs of the validations too.
    fn try_changes(
        &mut self,
        policy: &CompiledPolicy,
        changed: &[usize],
        context: &Context<'_>,
        match_resources: Option<&MatchResources>,
    ) {
        let validations: Vec<usize> = validations(policy).collect();
        let mut n_left = MAX_CHANGED_REQUESTS;
        let messages = message_validations(policy, changed);
        let denied = |evaluator: &SymbolicEvaluator<'_>| -> Vec<InputConstraints> {
            let conditions = messages.iter().filter_map(|index| {
                let id = evaluator.ast(*index)?.root();
                let node = ExprRef { index: *index, id };
                Some(BranchCondition::Evaluates(node, Scope::default(), false))
            });
            let bases = conditions.flat_map(|condition| {
                let base = usual_constraints(evaluator);
                let solution = solver::solve(evaluator, vec![condition], base);
                solution.solutions.into_iter().take(MAX_DENIED)
            });
            bases.collect()
        };
        let trials = Trials {
            bases: &denied,
            ..Trials::new(changed)
        };
        for_each_trial(
            policy,
            context,
            match_resources,
            &trials,
            &mut |builder, constraints, synthetic| {
                let denies = self.compare(builder, synthetic);
                if denies == Some([false, false]) && n_left > 0 {
                    n_left -= 1;
                    self.try_validations(builder, constraints, &validations);
                }
                !self.is_over()
            },
        );
    }

    /// Adds trial values for the inputs of `validations` to `constraints`, until only the new version denies the request.
    fn try_validations(
        &mut self,
        builder: &RequestBuilder<'_>,
        constraints: &InputConstraints,
        validations: &[usize],
    ) {
        let evaluator = builder.evaluator(MAX_SYMBOLIC_STEPS);
        let mut n_left = MAX_VALIDATION_TRIALS;
        for (path, constraint) in validations.iter().flat_map(|n| trials(&evaluator, *n)) {
            let mut constraints = constraints.clone();
            let is_consistent = constraints.add(&path, constraint).is_some();
            let Some(synthetic) = builder.build(&constraints).filter(|_| is_consistent) else {
                continue;
            };
            n_left -= 1;
            let denies = self.compare(builder, &synthetic);
            if denies == Some([false, true]) || n_left == 0 || self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        let Limits { n_requests, cost } = self.limits;
        n_requests == 0 || cost == 0 || self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Compares the minimal requests, typical requests, and requests that reach the affected nodes.
    fn try_kind(&mut self, policy: &CompiledPolicy, builder: &mut RequestBuilder<'_>) {
        let symbolic = builder.evaluator(MAX_SYMBOLIC_STEPS);
        let mut all = minimal_constraints(&builder.operations);
        all.push(usual_constraints(&symbolic));
        let conditions = true_conditions(policy, &symbolic);
        if self.is_mutating && !conditions.is_empty() {
            // A mutation is applied only if all match conditions are true.
            let matched = all.iter().flat_map(|base| {
                let solution = solver::solve(&symbolic, conditions.clone(), base.clone());
                solution.solutions.into_iter().take(MAX_MATCHED)
            });
            let matched: Vec<InputConstraints> = matched.collect();
            all.extend(matched);
        }
        for constraints in all {
            if let Some(synthetic) = builder.build(&constraints) {
                let _ = self.compare(builder, &synthetic);
            }
        }
        let nodes = self.nodes.iter().map(|affected| ExprRef {
            index: affected.index,
            id: affected.node,
        });
        let targets: HashSet<ExprRef> = nodes.collect();
        if targets.is_empty() {
            return;
        }
        let is_target = |node| targets.contains(&node);
        for constraints in null_and_empty(builder) {
            if let Some(synthetic) = builder.build(&constraints) {
                let _ = self.compare(builder, &synthetic);
            }
        }
        let (sites, reached) = failure_sites::find_with_targets(&symbolic, &is_target);
        let sites_by_node = sites_by_node(&sites);
        let mut budget = BUDGET;
        let others = conditions;
        let validations: Vec<usize> = validations(policy).collect();
        for (node, path_condition) in reached {
            if budget.is_used_up() || self.is_over() {
                return;
            }
            self.try_node(
                builder,
                (&symbolic, &sites_by_node),
                &mut budget,
                (node, &path_condition),
                (&others, &validations),
            );
        }
    }

    /// Compares requests that satisfy the path condition of `node`. First tries to satisfy `others` too, so that the
    /// old version admits the request. If no request is found that only the new version denies, varies the inputs of
    /// `validations` in a request with a difference.
    fn try_node(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        (symbolic, sites_by_node): (&SymbolicEvaluator<'_>, &SitesByNode<'_>),
        budget: &mut Budget,
        (node, path_condition): (ExprRef, &PathCondition),
        (others, validations): (&[BranchCondition], &[usize]),
    ) {
        let mut n_left = MAX_REQUESTS_PER_NODE;
        let mut failing = None;
        let needed = needed_values(symbolic, sites_by_node, node);
        for others in [others, &[]] {
            for base in [usual_constraints(symbolic), InputConstraints::default()] {
                for with_soft in path_condition.attempts() {
                    let mut conditions = others.to_vec();
                    conditions.extend(path_condition.conditions(*with_soft));
                    let solution = solver::solve(symbolic, conditions, base.clone());
                    for mut constraints in solution.solutions {
                        if self.is_mutating {
                            // Mutations are not evaluated here, so it is unknown whether a value is missing. All values
                            // that the node needs are therefore added.
                            let mut with_values = constraints.clone();
                            let mut needed = needed.iter();
                            let is_consistent = needed
                                .all(|path| with_values.add(path, Constraint::Present).is_some());
                            let synthetic = builder.build(&with_values).filter(|_| is_consistent);
                            if let Some(synthetic) = synthetic {
                                n_left = n_left.saturating_sub(1);
                                let _ = self.compare(builder, &synthetic);
                            }
                        }
                        for _ in 0..MAX_REPAIRS {
                            if n_left == 0 || self.is_over() {
                                return;
                            }
                            n_left -= 1;
                            let Some(synthetic) = builder.build(&constraints) else {
                                break;
                            };
                            match self.compare(builder, &synthetic) {
                                Some([false, true]) => return,
                                Some(_) => drop(failing.get_or_insert_with(|| constraints.clone())),
                                None => {}
                            }
                            if self.is_mutating {
                                break;
                            }
                            let missing = missing(
                                builder,
                                (symbolic, sites_by_node),
                                budget,
                                &synthetic,
                                node.index,
                            );
                            let is_added = missing.is_some_and(|path| {
                                constraints.add(path, Constraint::Present).is_some()
                            });
                            if !is_added {
                                break;
                            }
                        }
                    }
                }
            }
        }
        // The search found no request that only the new version denies. Such a request would show the effect better, so
        // variants of a request with a difference are tried.
        let Some(failing) = failing else { return };
        self.try_validations(builder, &failing, validations);
    }

    /// Evaluates a request under both versions, unless it was already compared, and records the differences. Returns
    /// one flag per version: true if it denies the request. `None` if the request was not compared, or if there is no
    /// difference.
    fn compare(
        &mut self,
        builder: &RequestBuilder<'_>,
        synthetic: &SyntheticRequest,
    ) -> Option<[bool; 2]> {
        let probe = self.probe(builder, synthetic)?;
        probe.is_difference.then_some(probe.denies)
    }

    /// Like [`Self::compare`], but also returns the results if there is no difference.
    fn probe(
        &mut self,
        builder: &RequestBuilder<'_>,
        synthetic: &SyntheticRequest,
    ) -> Option<Probe> {
        if self.is_over() {
            return None;
        }
        self.limits.n_requests -= 1;
        if !self.seen.insert(synthetic.digest) {
            return None;
        }
        if builder.fails_validation(synthetic) || builder.fails_crd_rules(synthetic) {
            return None;
        }
        let (request, namespace, namespaces) = builder.admission_request(synthetic)?;
        let [old_admission, new_admission] = &self.admissions;
        let matches = [old_admission, new_admission]
            .map(|admission| admission.matches_exactly(&request, &namespaces));
        if matches == [false, false] {
            return None;
        }
        if self.is_mutating {
            if self.comparison.samples.len() < self.max_samples {
                let witness = builder.witness(synthetic, "");
                self.comparison.samples.push(witness);
            }
            return None;
        }
        let no_params = ParamList::default();
        let params = synthetic.params.as_ref().map(Object::new);
        let mut context = ReviewContext::new(&no_params, &namespaces, synthetic.authorizer());
        context.is_cancelled = Some(Arc::clone(&self.is_cancelled));
        let evaluate = |admission: &Admission, context: &ReviewContext<'_>| {
            let adapted = builder.adapted(synthetic, &request, admission.version());
            let request = adapted.as_ref().unwrap_or(&request);
            admission.evaluate(
                request,
                (&request.gvr, &request.gvk),
                params.as_ref(),
                namespace.as_ref(),
                context,
            )
        };
        let new = evaluate(new_admission, &context);
        let recorder = self
            .comparison
            .reached
            .contains(&false)
            .then(|| Arc::new(Recorder::default()));
        context.recorder.clone_from(&recorder);
        let old = evaluate(old_admission, &context);
        if self.is_cancelled.load(Ordering::Relaxed)
            || old.exceeded.is_some()
            || new.exceeded.is_some()
        {
            return None;
        }
        let cost = old.costs.used().saturating_add(new.costs.used());
        self.limits.cost = self.limits.cost.saturating_sub(cost);
        self.comparison.n_requests += 1;
        if let Some(recorder) = recorder {
            let recording = recorder.take();
            for (reached, affected) in self.comparison.reached.iter_mut().zip(self.nodes) {
                let recorded = recording.get(&(affected.index, affected.node.index()));
                *reached |= recorded.is_some_and(RecordedValue::has_value);
            }
        }
        let max_audited = [old_admission, new_admission]
            .map(|admission| admission.version().behavior().max_audited_failures);
        let key = DifferenceKey::new([&old, &new], matches, max_audited);
        let probe = Probe {
            is_difference: key.is_some(),
            denies: [&old, &new].map(is_denial),
            evaluations: [old, new],
        };
        if self.comparison.differences.len() < MAX_DIFFERENCES
            && key.is_some_and(|key| self.keys.insert(key))
        {
            let [old, new] = probe.evaluations.clone();
            let inputs = self.inputs.get(&builder.resource.gvr).cloned();
            self.comparison.differences.push(VersionDifference {
                witness: builder.witness(synthetic, ""),
                inputs: inputs.unwrap_or_default(),
                old,
                new,
            });
        }
        Some(probe)
    }
}

/// Returns constraints of updates that change a list or map from null (not set) to empty.
fn null_and_empty(builder: &RequestBuilder<'_>) -> Vec<InputConstraints> {
    let object = FieldPath::new(Root::Object);
    let paths = builder.object.nullable_lists(&object, 0).into_iter();
    let all = paths.filter_map(|path| {
        let mut constraints = InputConstraints::default();
        let old = FieldPath {
            root: Root::OldObject,
            segments: path.segments.clone(),
        };
        constraints.add(&old, Constraint::Equals(Json::Null))?;
        constraints.add(&path, Constraint::MaxLen(0))?;
        Some(constraints)
    });
    all.take(MAX_NULL_LISTS).collect()
}

/// Returns the paths of the values whose absence makes `node` or one of its descendants fail.
fn needed_values<'s>(
    symbolic: &SymbolicEvaluator<'_>,
    sites_by_node: &SitesByNode<'s>,
    node: ExprRef,
) -> Vec<&'s FieldPath> {
    let ast = symbolic.ast(node.index);
    let ids = ast.into_iter().flat_map(|ast| ast.descendants(node.id));
    let sites = ids.filter_map(|id| sites_by_node.get(&(node.index, id.index())));
    let sites = sites.flatten();
    sites
        .filter(|site| site.cause == FailureCause::Absent)
        .map(|site| &site.path)
        .collect()
}

/// Returns the indices of the validations whose message expressions are at `changed`.
fn message_validations(policy: &CompiledPolicy, changed: &[usize]) -> Vec<usize> {
    let expressions = policy.expressions();
    let of_messages = changed.iter().filter_map(|n| expressions.get(*n));
    let of_messages = of_messages.filter(|it| it.role == Role::MessageExpression);
    let fields = of_messages.filter_map(|it| it.field_ref.split_once(']'));
    let validations = fields.filter_map(|(field, _)| {
        let mut validations = validations(policy);
        validations.find(|n| {
            let own = expressions
                .get(*n)
                .and_then(|it| it.field_ref.split_once(']'));
            own.is_some_and(|(own, _)| own == field)
        })
    });
    validations.collect()
}

/// Returns the indices of the expressions of validations.
fn validations(policy: &CompiledPolicy) -> impl Iterator<Item = usize> {
    let expressions = policy.expressions().iter().enumerate();
    let validations = expressions.filter(|(_, it)| it.role == Role::Validation);
    validations.map(|(index, _)| index)
}

/// Returns branch conditions that require all match conditions and validations of `policy` to be true.
fn true_conditions(
    policy: &CompiledPolicy,
    symbolic: &SymbolicEvaluator<'_>,
) -> Vec<BranchCondition> {
    let expressions = policy.expressions().iter().enumerate();
    let constrained =
        expressions.filter(|(_, it)| matches!(it.role, Role::MatchCondition | Role::Validation));
    let conditions = constrained.filter_map(|(index, _)| {
        let id = symbolic.ast(index)?.root();
        Some(BranchCondition::Evaluates(
            ExprRef { index, id },
            Scope::default(),
            true,
        ))
    });
    conditions.collect()
}

/// Returns the path of the absent value that makes the expression at `index` fail in the old version.
fn missing<'c>(
    builder: &mut RequestBuilder<'_>,
    (symbolic, sites_by_node): (&SymbolicEvaluator<'_>, &SitesByNode<'c>),
    budget: &mut Budget,
    synthetic: &Rc<SyntheticRequest>,
    index: usize,
) -> Option<&'c FieldPath> {
    let failures = builder.evaluate(symbolic, synthetic, budget)?;
    missing_path(synthetic, &failures, sites_by_node, index)
}
