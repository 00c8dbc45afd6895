//! Finds mutations that fail: the API server rejects the value of their expression for a valid request.
//!
//! The search builds requests that reach each object literal of a mutation. It applies the policy to them as the API
//! server does (`admission::mutation`). An expression whose evaluation fails is reported only if it reads the
//! name of an object before the API server generates it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::applied_mutations::AppliedMutations;
use super::failure_sites::{self, FailureCause, FailureSite};
use super::failures::Failure;
use super::patch_literals::{self, MatchedTypes};
use super::path_conditions::solver;
use super::reports::messages::{MessageWriter, is_generated_name};
use super::requests::builders::RequestBuilders;
use super::requests::kinds::representative_kinds_up_to;
use super::requests::minimal_constraints;
use super::requests::{RequestBuilder, SyntheticRequest, Witness};
use super::search::{MAX_REPAIRS, MAX_SYMBOLIC_STEPS};
use super::symbolic::{ExprRef, SymbolicEvaluator};
use super::{Context, mutation_locations};
use crate::admission::mutation::{Kinds, StepCause, StepError};
use crate::advice::Advice;
use crate::compile::CompiledPolicy;
use crate::consequence::Consequence;
use crate::expressions::{PolicyExpression, Role};
use crate::matching;
use crate::rule::Rule;
use cel::ast::Expr;
use cel::source::{Location, SourceMap};
use cel::stack::run_on_deep_stack;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::Resolution;
use kubernetes::validity::{Constraint, InputConstraints};

/// Maximum number of kinds to try for one policy.
const MAX_KINDS: usize = 16;

/// Maximum number of requests to try for one policy.
const MAX_EVALUATIONS: usize = 100;

/// The start of the message about a mutation that fails.
const CANNOT_APPLY: &str = "the mutation cannot be applied";

/// The start of the message about a mutation that fails only for objects that lack a field.
const MAY_FAIL: &str = "the mutation may fail";

/// The evaluator's error if an expression reads the name of an object that has none.
const NO_NAME: &str = "no such key: name";

/// A mutation that fails for a request.
#[derive(Clone, Debug)]
pub struct FailingMutation {
    /// The index of the expression in the policy.
    pub index: usize,
    /// `FailingMutation`, or `AbsentField` for an expression that reads a name before it is generated.
    pub rule: Rule,
    /// The path of the field in the policy, such as `spec.mutations[0].applyConfiguration.expression`.
    pub field_ref: String,
    /// The location of the failing node in the expression.
    pub location: Location,
    /// The kind of the witness's object. `None` for a mistake in a literal, because such a mistake is reported without a
    /// witness.
    pub gvk: Option<Gvk>,
    /// One sentence with the operation, the kind and the API server's error.
    pub message: String,
    /// A hint about how to fix the mutation.
    pub fix: Option<Advice>,
    /// The effect on the request. `None` if the API server rejects the mutated object, whatever the failure policy.
    pub consequence: Option<Consequence>,
    /// A request for which the mutation fails.
    pub witness: Option<Witness>,
    /// True if an earlier mutation of the policy also fails for the witness. The API server then reports only the
    /// earlier failure.
    pub is_hidden: bool,
}

/// Finds the mutations of `policy` that fail for a valid request. Each expression has at most one finding.
///
/// If all rules of the policy are wildcards, a mutation is reported only if it fails for every tried kind.
#[must_use]
pub fn failing_mutations(
    policy: &CompiledPolicy,
    context: &Context<'_>,
    kinds: &(dyn Kinds + Sync),
) -> Vec<FailingMutation> {
    let applied = AppliedMutations::new(policy, kinds);
    if applied.mutations.is_empty() {
        return Vec::new();
    }
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let search = MutationSearch {
            policy,
            kinds,
            pending: applied.mutations.clone(),
            applied,
            evaluated: HashMap::new(),
            succeeded: HashSet::new(),
            n_evaluations: 0,
            failures: Vec::new(),
            nameless: Vec::new(),
        };
        search.run(context)
    })
}

fn matched_types(targets: &[matching::Target<'_>], context: &Context<'_>) -> MatchedTypes {
    let kinds = || {
        targets
            .iter()
            .take(MAX_KINDS)
            .map(|target| &target.resource.gvk)
    };
    let types = kinds().map(|gvk| match context.schemas.resolve(gvk) {
        Resolution::Found(type_) => Some(type_),
        Resolution::NotFound | Resolution::Unavailable(_) => None,
    });
    MatchedTypes {
        all: types.collect::<Option<_>>().unwrap_or_default(),
        are_builtin: kinds().all(|gvk| context.written.is_builtin_kind(gvk)),
    }
}

struct MutationSearch<'a> {
    policy: &'a CompiledPolicy,
    kinds: &'a (dyn Kinds + Sync),
    applied: AppliedMutations<'a>,
    /// The mutations without a finding so far.
    pending: Vec<usize>,
    /// The evaluated requests of the current kind, each with the index of a mutation whose expression failed to
    /// evaluate. The index is `None` if there is no such mutation.
    evaluated: HashMap<Rc<SyntheticRequest>, Option<usize>>,
    /// The mutations that succeeded for at least one request of the current kind.
    succeeded: HashSet<usize>,
    n_evaluations: usize,
    failures: Vec<FailingMutation>,
    /// The mutations that fail for objects whose name is not generated yet, each for the first kind for which it fails.
    nameless: Vec<FailingMutation>,
}

impl MutationSearch<'_> {
    fn run(mut self, context: &Context<'_>) -> Vec<FailingMutation> {
        let targets = matching::targets(self.policy.policy(), context.mapper);
        let has_only_wildcards = targets.iter().all(|target| target.by_wildcard);
        let policy = self.policy;
        let builders = RequestBuilders::new(policy, context);
        let mut n_tried: usize = 0;
        for (resource, operations) in representative_kinds_up_to(&targets, MAX_KINDS) {
            if self.kinds.types(&resource.gvk).is_none() {
                continue;
            }
            if let Some(builder) = builders.for_resource(resource, operations) {
                n_tried = n_tried.saturating_add(1);
                self.try_kind(builder);
                let is_found = |index: &usize| self.is_found(*index, &resource.gvk);
                let (failing, others) = self.pending.iter().partition(|index| is_found(index));
                self.pending = if has_only_wildcards { failing } else { others };
                self.evaluated.clear();
                self.succeeded.clear();
            }
            if self.pending.is_empty() {
                break;
            }
        }
        let mut failures = std::mem::take(&mut self.failures);
        if has_only_wildcards {
            let mut n_failing: HashMap<usize, usize> = HashMap::new();
            for failing in &failures {
                let n = n_failing.entry(failing.index).or_default();
                *n = n.saturating_add(1);
            }
            failures.retain(|failing| n_failing.get(&failing.index) == Some(&n_tried));
        }
        // Type checking already reports a mutation with a type error.
        let has_type_error = |index| {
            context
                .type_findings
                .iter()
                .any(|typed| typed.index == index)
        };
        failures.retain(|failing| !has_type_error(failing.index));
        failures.sort_by_key(|failing| failing.index);
        failures.dedup_by_key(|failing| failing.index);
        let types = if has_only_wildcards {
            MatchedTypes::default()
        } else {
            matched_types(&targets, context)
        };
        for index in self.applied.mutations.iter().copied() {
            if !has_type_error(index) {
                self.explain_literals(index, &types, &mut failures);
            }
        }
        failures.append(&mut self.nameless);
        failures
    }

    /// Adds the mistakes in the literals of a mutation. If a failure of the mutation is already known, the message,
    /// location and fix of the first mistake replace those of the failure.
    fn explain_literals(
        &self,
        index: usize,
        types: &MatchedTypes,
        failures: &mut Vec<FailingMutation>,
    ) {
        let Some(expression) = self.policy.expressions().get(index) else {
            return;
        };
        let Ok(ast) = expression.parsed() else { return };
        let source = SourceMap::new(&expression.text);
        let mistakes = patch_literals::mistakes(ast, expression.role, types);
        for (n, mistake) in mistakes.into_iter().enumerate() {
            let location = source.location(ast.offset(mistake.node));
            let mut others = failures.iter_mut().filter(|_| n == 0);
            if let Some(other) = others.find(|failing| failing.index == index) {
                let error = [CANNOT_APPLY, MAY_FAIL]
                    .iter()
                    .find_map(|start| other.message.strip_prefix(start))
                    .unwrap_or_default();
                // The error may come from a different patch in the list, and not from this mistake.
                let is_of_other =
                    patch_literals::literal_text(ast, mistake.node).is_some_and(|text| {
                        error.contains("operation does not apply") && !error.contains(text)
                    });
                if is_of_other {
                    other.witness = None;
                    other.gvk = None;
                }
                let error = if is_of_other { "" } else { error };
                other.message = format!("{}{error}", mistake.message);
                other.location = location;
                other.fix = Some(mistake.fix);
                continue;
            }
            failures.push(FailingMutation {
                index,
                rule: Rule::FailingMutation,
                field_ref: expression.field_ref.clone(),
                location,
                gvk: None,
                message: mistake.message,
                fix: Some(mistake.fix),
                consequence: (!mistake.is_of_object).then(|| self.policy.consequence(index)),
                witness: None,
                is_hidden: false,
            });
        }
    }

    fn is_found(&self, index: usize, gvk: &Gvk) -> bool {
        let mut failures = self.failures.iter();
        failures.any(|failing| failing.index == index && failing.gvk.as_ref() == Some(gvk))
    }

    fn try_kind(&mut self, mut builder: RequestBuilder<'_>) {
        let evaluator = builder.evaluator(MAX_SYMBOLIC_STEPS);
        let target_nodes = self.target_nodes();
        let (sites, reached) =
            failure_sites::find_with_targets(&evaluator, &|node| target_nodes.contains_key(&node));
        for constraints in minimal_constraints(&builder.operations) {
            self.try_constraints(&mut builder, &sites, constraints);
        }
        self.try_generated_names(&mut builder, &evaluator, &sites);
        let gvk = builder.resource.gvk.clone();
        for (node, path_condition) in reached {
            if self.is_found(node.index, &gvk) {
                continue;
            }
            for with_soft in path_condition.attempts() {
                let conditions = path_condition.conditions(*with_soft);
                for constraints in
                    solver::solve(&evaluator, conditions, InputConstraints::default()).solutions
                {
                    self.try_constraints(&mut builder, &sites, constraints);
                }
            }
        }
    }

    /// Reports mutations that read the name of a new object, which the API server may generate after the mutation.
    fn try_generated_names(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        evaluator: &SymbolicEvaluator<'_>,
        sites: &[FailureSite],
    ) {
        let reads_name = |site: &&FailureSite| {
            site.cause == FailureCause::Absent && is_generated_name(&site.path)
        };
        for site in sites.iter().filter(reads_name) {
            let mut nameless = self.nameless.iter();
            if nameless.any(|failing| failing.index == site.node.index) {
                continue;
            }
            let mut constraints = InputConstraints::default();
            if constraints.add(&site.path, Constraint::Absent).is_none() {
                continue;
            }
            let conditions = site.path_condition.conditions(true);
            let solutions = solver::solve(evaluator, conditions, constraints).solutions;
            let mut solutions = solutions.into_iter();
            let failing = solutions
                .find_map(|constraints| self.nameless_failure(builder, sites, site, constraints));
            let Some((index, synthetic)) = failing else {
                continue;
            };
            let writer = MessageWriter {
                evaluator,
                resource: builder.resource,
                operations: &builder.operations,
                without_params: None,
            };
            self.report_nameless(builder, &writer, site, (index, &synthetic));
        }
    }

    /// Applies the policy to a request that satisfies `constraints` and lacks the value of `site`. If the evaluation
    /// fails on another absent value, adds the value and tries again. Returns a request for which a mutation fails
    /// because the object's name is not generated yet, and the index of the mutation.
    fn nameless_failure(
        &mut self,
        builder: &RequestBuilder<'_>,
        sites: &[FailureSite],
        site: &FailureSite,
        mut constraints: InputConstraints,
    ) -> Option<(usize, Rc<SyntheticRequest>)> {
        for _ in 0..MAX_REPAIRS {
            if self.n_evaluations >= MAX_EVALUATIONS {
                return None;
            }
            self.n_evaluations = self.n_evaluations.saturating_add(1);
            let synthetic = builder.build(&constraints)?;
            if builder.fails_validation(&synthetic) || !synthetic.lacks(&site.path) {
                return None;
            }
            let errors = self.applied.errors(builder, &synthetic);
            let (index, error) = errors.iter().find_map(|(mutation, error)| {
                let index = *self.applied.mutations.get(*mutation)?;
                matches!(error.cause, StepCause::Expression).then_some((index, error))
            })?;
            let mut others = sites.iter().filter(|other| {
                other.cause == FailureCause::Absent
                    && !is_generated_name(&other.path)
                    && synthetic.lacks(&other.path)
            });
            let is_name = |other: &FailureSite| other.path.names().last() == Some(&"name");
            let has_error = error.message.ends_with(NO_NAME);
            if has_error && !others.clone().any(is_name) {
                return Some((index, synthetic));
            }
            constraints.add(&others.next()?.path, Constraint::Present)?;
        }
        None
    }

    /// Reports that the mutation with the given index fails at `site` for a request without a name.
    fn report_nameless(
        &mut self,
        builder: &RequestBuilder<'_>,
        writer: &MessageWriter<'_, '_>,
        site: &FailureSite,
        (index, synthetic): (usize, &SyntheticRequest),
    ) {
        let origin_index = site.node.index;
        let Some(expression) = self.policy.expressions().get(origin_index) else {
            return;
        };
        let Ok(ast) = expression.parsed() else { return };
        let failure = Failure {
            index,
            origin_index,
            origin_id: site.node.id.index(),
            message: NO_NAME.to_owned(),
        };
        self.nameless.push(FailingMutation {
            index: origin_index,
            rule: Rule::AbsentField,
            field_ref: expression.field_ref.clone(),
            location: SourceMap::new(&expression.text).location(ast.offset(site.node.id)),
            gvk: Some(builder.resource.gvk.clone()),
            message: writer.message(synthetic, &failure, site),
            fix: Some(
                "the API server generates names after mutation: test `has(object.metadata.name)` first; the prefix of the \
                 name is `object.metadata.generateName`"
                    .into(),
            ),
            consequence: Some(self.policy.consequence(index)),
            witness: Some(builder.witness(synthetic, NO_NAME)),
            is_hidden: false,
        });
    }

    /// Returns a site at which the mutation with the index `index` may fail, because the request lacks the value of the
    /// site.
    fn missing_site<'s>(
        &self,
        sites: &'s [FailureSite],
        index: usize,
        synthetic: &SyntheticRequest,
    ) -> Option<&'s FailureSite> {
        let role = |n: usize| self.policy.expressions().get(n).map(|of| of.role);
        sites.iter().find(|site| {
            let n = site.node.index;
            site.cause == FailureCause::Absent
                && (n == index || role(n) == Some(Role::Variable))
                && synthetic.lacks(&site.path)
        })
    }

    /// Returns the nodes that requests must reach: the object literals in mutations and variables, and the root nodes
    /// of mutations.
    fn target_nodes(&self) -> HashMap<ExprRef, Location> {
        let mut target_nodes = HashMap::new();
        for (n, expression) in self.policy.expressions().iter().enumerate() {
            let is_searched = expression.role.is_mutation() || expression.role == Role::Variable;
            let Ok(ast) = expression.parsed() else {
                continue;
            };
            if !is_searched {
                continue;
            }
            let source = SourceMap::new(&expression.text);
            for (id, expr) in ast.iter() {
                let is_literal = matches!(expr, Expr::Struct { .. });
                if is_literal || id == ast.root() && expression.role.is_mutation() {
                    target_nodes.insert(ExprRef { index: n, id }, source.location(ast.offset(id)));
                }
            }
        }
        target_nodes
    }

    /// Applies the policy to a request that satisfies `constraints`. If the evaluation fails on an absent value, adds
    /// the value and tries again.
    fn try_constraints(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        sites: &[FailureSite],
        mut constraints: InputConstraints,
    ) {
        for _ in 0..MAX_REPAIRS {
            let gvk = &builder.resource.gvk;
            let mut pending = self.pending.iter();
            if pending.all(|index| self.is_found(*index, gvk))
                || self.n_evaluations >= MAX_EVALUATIONS
                || !builder.is_untried(&constraints)
            {
                return;
            }
            self.n_evaluations = self.n_evaluations.saturating_add(1);
            let Some(synthetic) = builder
                .build(&constraints)
                .filter(|synthetic| !builder.fails_validation(synthetic))
            else {
                return;
            };
            let failing = match self.evaluated.get(&synthetic) {
                Some(failing) => *failing,
                None => self.evaluate(builder, &synthetic),
            };
            let missing = failing.and_then(|index| self.missing_site(sites, index, &synthetic));
            let Some(missing) = missing else { return };
            if constraints
                .add(&missing.path, Constraint::Present)
                .is_none()
            {
                return;
            }
        }
    }

    /// Reports the mutations whose value the API server rejects. Returns the index of a mutation whose expression fails
    /// to evaluate.
    fn evaluate(
        &mut self,
        builder: &RequestBuilder<'_>,
        synthetic: &Rc<SyntheticRequest>,
    ) -> Option<usize> {
        let mut failing = None;
        let errors = self.applied.errors(builder, synthetic);
        let mutations = self.applied.mutations.iter().enumerate();
        let succeeded = mutations.filter(|(n, _)| errors.iter().all(|(failed, _)| failed != n));
        self.succeeded.extend(succeeded.map(|(_, index)| *index));
        for (n, (mutation, error)) in errors.iter().enumerate() {
            let Some(index) = self.applied.mutations.get(*mutation).copied() else {
                continue;
            };
            match error.cause {
                StepCause::Expression if !self.policy.compiles(index) => {}
                StepCause::Expression => {
                    failing.get_or_insert(index);
                }
                // The mutation does not cause these errors.
                StepCause::NoTypes | StepCause::Panic => {}
                _ => self.report(builder, synthetic, index, error, n > 0),
            }
        }
        self.evaluated.insert(Rc::clone(synthetic), failing);
        failing
    }

    fn report(
        &mut self,
        builder: &RequestBuilder<'_>,
        synthetic: &SyntheticRequest,
        index: usize,
        error: &StepError,
        is_hidden: bool,
    ) {
        let gvk = &builder.resource.gvk;
        if self.is_found(index, gvk) {
            return;
        }
        let Some(expression) = self.policy.expressions().get(index) else {
            return;
        };
        let Ok(ast) = expression.parsed() else { return };
        let id = mutation_locations::failing_node(ast, &error.cause).unwrap_or_else(|| ast.root());
        let kind = &*gvk.kind;
        let resource = &builder.resource.gvr.resource;
        let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
            "an"
        } else {
            "a"
        };
        let subject = if resource.contains('/') {
            resource.clone()
        } else {
            format!("{article} {kind}")
        };
        let shown = error
            .message
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let operation = synthetic.operation;
        let object = synthetic.object.as_ref();
        let absent = object
            .and_then(|it| mutation_locations::absent_path(it, &builder.object, &error.cause));
        let (start, without) = match &absent {
            Some(path) => (MAY_FAIL, format!(" without {path}")),
            None if self.succeeded.contains(&index) => (MAY_FAIL, String::new()),
            None => (CANNOT_APPLY, String::new()),
        };
        self.failures.push(FailingMutation {
            index,
            rule: Rule::FailingMutation,
            field_ref: expression.field_ref.clone(),
            location: SourceMap::new(&expression.text).location(ast.offset(id)),
            gvk: Some(gvk.clone()),
            message: format!("{start}: {operation} of {subject}{without} fails with `{shown}`"),
            fix: mutation_locations::fix(error, absent.is_some()).map(Advice::from),
            consequence: Some(self.policy.consequence(index)),
            witness: Some(builder.witness(synthetic, &error.message)),
            is_hidden,
        });
    }
}
