//! The search loop over kinds, failure sites, constraints and requests.
//!
//! For each representative kind, the minimal requests of all operations are evaluated first. They lack most optional
//! fields, so they confirm most sites. For each remaining site, the solver gets the path condition and a constraint
//! that may cause the failure. A request is built and evaluated for each solution. The evaluation may fail before the
//! site because another value is absent. The search then requires this value and builds the request again.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::Value as Json;

use super::Context;
use super::applied_mutations::AppliedMutations;
use super::coverage::{Uncovered, has_matching_request};
use super::failure_sites::{self, FailureCause, FailureSite, SitesByNode, sites_by_node};
use super::failures::{Failure, is_missing_value_error};
use super::kind_signature::KindSignature;
use super::path_conditions::solver;
use super::reports::messages::{MessageWriter, is_generated_name};
use super::reports::trial;
use super::requests::builders::RequestBuilders;
use super::requests::kinds::{named_kinds, representative_kinds};
use super::requests::{Budget, RequestBuilder, SyntheticRequest, Witness, minimal_constraints};
use super::symbolic::{BranchCondition, ExprRef, Scope, SymbolicEvaluator};
use crate::compile::CompiledPolicy;
use crate::consequence::Consequence;
use crate::expressions::{PolicyExpression, Role};
use crate::finding::ExpressionFindings;
use crate::matching;
use crate::rule::Rule;
use crate::suggestion::{self, Effect, Suggestion};
use cel::ast::{Ast, Expr, ExprId};
use cel::diagnostic::Code;
use cel::source::{Location, SourceMap};
use cel::stack::run_on_deep_stack;
use kubernetes::schema::{Gvk, connect_options};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root, Segment};

/// Maximum number of evaluated requests for one policy.
const MAX_EVALUATIONS: u32 = 400;

/// Maximum total CEL cost of all evaluations for one policy. Each evaluation is charged at least 100 cost units.
const MAX_COST: u64 = 300_000;

/// Maximum number of steps of one [`SymbolicEvaluator`], for one policy and kind. A step is a node that the failure
/// site finder visits, a node that is evaluated symbolically, or a step of the solver. If the steps are used up,
/// findings are missed.
pub(super) const MAX_SYMBOLIC_STEPS: u32 = 20_000;

/// Maximum number of requests for one solution of the solver. If an evaluation fails before the site, the next request
/// contains one more value.
pub(super) const MAX_REPAIRS: usize = 6;

/// The number of evaluations reserved for each kind that has not been searched yet.
const RESERVED_EVALUATIONS: u32 = 12;

/// Maximum number of findings for one policy.
const MAX_FOUND: usize = 200;

/// Maximum number of other kinds whose requests are used to try a changed expression.
const MAX_OTHER_KINDS: usize = 8;

/// Maximum number of proposed changes that are tried for one policy. Further findings have no suggestions.
const MAX_TRIALS: u32 = 120;

/// An expression that fails at run time for a valid request.
#[derive(Clone, Debug)]
pub struct RuntimeErrorFinding {
    /// The index of the expression in the policy.
    pub index: usize,
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The location of the failing node in the expression.
    pub location: Location,
    /// The rule of the finding.
    pub rule: Rule,
    /// The kind of the object of the witness.
    pub gvk: Gvk,
    /// A sentence with the cause and the evaluator's error.
    pub message: String,
    /// The suggestions and other advice, as one line.
    pub fix: Option<String>,
    /// The changes of the expression after which it does not fail. If there are several, the author has to choose.
    pub suggestions: Vec<Suggestion>,
    /// A replacement for a variable that is null in every request that the rules match. Without it, the expression
    /// always fails.
    pub rename: Option<Suggestion>,
    /// The property of a value that makes the expression fail.
    pub cause: FailureCause,
    /// The variable that contains the value.
    pub root: Root,
    /// A change that replaces `object` with `oldObject`. It is not suggested. The changed expression is only checked
    /// for further errors.
    pub assumed: Option<Suggestion>,
    /// True if the params lack a value, false if the request lacks it.
    pub is_of_params: bool,
    /// True if few clients send requests like the witness, such as a custom resource without a spec, or `exec` without
    /// a command.
    pub is_rare: bool,
    /// The effect on the request.
    pub consequence: Consequence,
    /// Another validation that denies every request for which the expression fails. `None` if there is no such
    /// validation.
    pub denied_by: Option<DenyingValidation>,
    /// The number of other expressions that fail for the same reason. These expressions have no finding of their own.
    pub n_others: usize,
    /// A request for which the expression fails.
    pub witness: Witness,
}

/// Returns true if another field of the site's chain may be absent.
fn has_longer_site(sites_by_node: &SitesByNode<'_>, site: &FailureSite) -> bool {
    let mut sites = sites_by_node.values().flatten();
    sites.any(|other| {
        other.node.index == site.node.index
            && other.chain == site.chain
            && other.path.segments.len() > site.path.segments.len()
            && other.cause == FailureCause::Absent
    })
}

/// Returns true if the site fails only for custom resources without a spec.
fn lacks_spec(
    symbolic: &SymbolicEvaluator<'_>,
    sites_by_node: &SitesByNode<'_>,
    site: &FailureSite,
) -> bool {
    let path = &site.path;
    site.cause == FailureCause::Absent
        && path.fields() == ["spec"]
        && matches!(path.root, Root::Object | Root::OldObject)
        && symbolic.input_type(path).is_some_and(|it| !it.is_builtin())
        && !has_longer_site(sites_by_node, site)
}

/// A validation that is false whenever another expression fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyingValidation {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// True if the user sees the message of this validation. False if the failing expression belongs to an earlier
    /// validation, whose error the user sees instead.
    pub is_message_shown: bool,
    /// True if the validation is false because a value is absent. Otherwise it is false because of the string in the
    /// witness.
    pub is_of_absence: bool,
}

/// Finds the expressions of `policy` that fail at run time, in the order of the policy's fields. Also returns the kinds
/// and requests that the search did not cover.
///
/// An empty result does not prove that no expression fails, because the number of kinds and requests is limited. For
/// params, only absent values are tried, because the author of the policy chooses the other values.
#[must_use]
pub fn find_runtime_errors(
    policy: &CompiledPolicy,
    context: &Context<'_>,
) -> (Vec<RuntimeErrorFinding>, Uncovered) {
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let mut search = Search::new(policy, context);
        let uncovered = search.run(context);
        (search.into_findings(context.type_findings), uncovered)
    })
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

struct Search<'a> {
    policy: &'a CompiledPolicy,
    without_params: Option<&'a str>,
    /// The mutations of a mutating policy. `None` if they are not applied.
    applied: Option<AppliedMutations<'a>>,
    budget: Budget,
    /// The number of proposed changes that may still be tried.
    trials_left: u32,
    findings: Vec<LocatedFinding>,
    /// The signatures of the kinds that were searched within the budget.
    searched: Vec<KindSignature>,
    /// The selection chains with a finding: index of the expression, and outermost node of the chain.
    reported_chains: HashSet<(usize, ExprId)>,
    /// The absent or null values with a finding: index of the expression, and path of the value.
    reported_paths: HashSet<(usize, FieldPath)>,
    /// The absent values for which all expressions share one finding: the path of the value, the index of the finding,
    /// and the indices of the failing expressions.
    shared_causes: BTreeMap<FieldPath, (usize, HashSet<usize>)>,
}

/// A finding with its position in the expression. Findings are sorted by position. A finding at the position of a type
/// error is dropped.
struct LocatedFinding {
    finding: RuntimeErrorFinding,
    offset: u32,
    /// The locations of the selections and indices in the chain that contains the failing node.
    chain: Vec<Location>,
}

impl<'a> Search<'a> {
    fn new(policy: &'a CompiledPolicy, context: &Context<'a>) -> Self {
        let kinds = context.kinds;
        Self {
            policy,
            without_params: context.without_params,
            applied: kinds.map(|kinds| AppliedMutations::new(policy, kinds)),
            budget: Budget {
                n_evaluations: MAX_EVALUATIONS,
                cost: MAX_COST,
            },
            trials_left: MAX_TRIALS,
            findings: Vec::new(),
            searched: Vec::new(),
            reported_chains: HashSet::new(),
            reported_paths: HashSet::new(),
            shared_causes: BTreeMap::new(),
        }
    }

    fn run(&mut self, context: &Context<'_>) -> Uncovered {
        let policy = self.policy;
        let targets = matching::targets(policy.policy(), context.mapper);
        let builders = RequestBuilders::new(policy, context);
        let kinds = representative_kinds(&targets);
        let other_kinds = match &*kinds {
            [_] => Vec::new(),
            kinds => {
                let kinds = kinds.iter().take(MAX_OTHER_KINDS);
                kinds
                    .filter_map(|(resource, operations)| {
                        builders.for_resource(resource, operations.clone())
                    })
                    .collect()
            }
        };
        let other_kinds = Rc::new(other_kinds);
        let n_kinds = named_kinds(&targets);
        let n_kinds_left = n_kinds.saturating_sub(kinds.len());
        let (mut has_builder, mut has_request) = (false, false);
        let mut n_reserved = RESERVED_EVALUATIONS.saturating_mul(count(&kinds));
        for (resource, operations) in kinds {
            n_reserved = n_reserved.saturating_sub(RESERVED_EVALUATIONS);
            let n_left = self.budget.n_evaluations;
            self.budget.n_evaluations = n_left.saturating_sub(n_reserved);
            let n_available = self.budget.n_evaluations;
            if let Some(mut builder) = builders.for_resource(resource, operations) {
                builder.other_kinds = Rc::clone(&other_kinds);
                has_builder |= !builder.operations.is_empty();
                self.try_kind(&mut builder);
                has_request |= builder.has_evaluated();
                has_request = has_request || has_matching_request(&builder);
            }
            let n_used = n_available.saturating_sub(self.budget.n_evaluations);
            self.budget.n_evaluations = n_left.saturating_sub(n_used);
        }
        Uncovered {
            n_kinds,
            n_kinds_left,
            has_no_request: has_builder && !has_request,
        }
    }

    fn try_kind(&mut self, builder: &mut RequestBuilder<'_>) {
        let symbolic = builder.evaluator(MAX_SYMBOLIC_STEPS);
        let sites = failure_sites::find(&symbolic);
        if sites.is_empty() {
            return;
        }
        let has_several_kinds = !builder.other_kinds.is_empty();
        let new_signature = || KindSignature::new(builder, &symbolic, &sites);
        let signature = has_several_kinds.then(|| symbolic.with_refund(new_signature));
        let signature = signature.flatten().flatten();
        if signature
            .as_ref()
            .is_some_and(|it| self.searched.contains(it))
        {
            return;
        }
        let n_findings = self.findings.len();
        let sites_by_node = sites_by_node(&sites);
        for constraints in minimal_constraints(&builder.operations) {
            self.try_constraints(builder, &symbolic, &sites_by_node, &constraints);
        }
        for site in &sites {
            if self.budget.is_used_up() || self.findings.len() >= MAX_FOUND {
                return;
            }
            self.try_site(builder, &symbolic, &sites_by_node, site);
        }
        // If this kind has a new finding, other kinds with its signature are searched too: the search of these kinds
        // skips the reported sites, so it may find further errors.
        let has_new_finding = self.findings.len() > n_findings;
        if builder.has_evaluated() && !self.budget.is_used_up() && !has_new_finding {
            self.searched.extend(signature);
        }
    }

    fn is_reported(&self, site: &FailureSite) -> bool {
        let (n, path) = (site.node.index, &site.path);
        let is_chain_reported = self.reported_chains.contains(&(n, site.chain));
        if site.cause != FailureCause::Absent {
            // An expression has only one finding for a value that may be absent or null.
            let is_null_reported = site.cause == FailureCause::Null
                && self.reported_paths.contains(&(n, path.clone()));
            return is_chain_reported || is_null_reported;
        }
        if self.shared_causes.contains_key(path) {
            return true;
        }
        !path.segments.is_empty()
            && (is_chain_reported || self.reported_paths.contains(&(n, path.clone())))
    }

    /// Tries each constraint that may cause a failure at `site`.
    fn try_site(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        sites_by_node: &SitesByNode<'_>,
        site: &FailureSite,
    ) {
        if self.is_reported(site) {
            return;
        }
        for constraint in site.failing_constraints(symbolic) {
            let mut constraints = InputConstraints::default();
            if constraints.add(&site.path, constraint).is_some() {
                self.try_site_with(builder, symbolic, sites_by_node, site, &constraints);
            }
        }
    }

    /// Tries requests that satisfy the path condition of `site` and `constraints`.
    fn try_site_with(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        sites_by_node: &SitesByNode<'_>,
        site: &FailureSite,
        constraints: &InputConstraints,
    ) {
        for with_soft in site.path_condition.attempts() {
            if self.is_reported(site) {
                return;
            }
            let conditions = site.path_condition.conditions(*with_soft);
            let solve = |conditions| solver::solve(symbolic, conditions, constraints.clone());
            let mut solution = solve(conditions);
            if solution.is_unsat && *with_soft {
                // The other match conditions may fail, too.
                let path_condition = &site.path_condition;
                let is_satisfiable = |conditions| !solve(conditions).is_unsat;
                solution = solve(path_condition.satisfiable(is_satisfiable));
            }
            if solution.is_unsat {
                return;
            }
            for mut constraints in solution.solutions {
                for _ in 0..MAX_REPAIRS {
                    let failures =
                        self.try_constraints(builder, symbolic, sites_by_node, &constraints);
                    if self.is_reported(site) {
                        return;
                    }
                    let Some((synthetic, failures)) = failures else {
                        break;
                    };
                    let Some(missing) =
                        missing_path(&synthetic, &failures, sites_by_node, site.node.index)
                    else {
                        break;
                    };
                    if constraints.add(missing, Constraint::Present).is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// Evaluates a request that satisfies `constraints`, and reports its failures unless the request was already
    /// evaluated. Returns the request and the failures, which are empty if no expression failed.
    ///
    /// Returns `None` if no valid request satisfies the constraints, or if [`RequestBuilder::evaluate`] returns `None`.
    fn try_constraints(
        &mut self,
        builder: &mut RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        sites_by_node: &SitesByNode<'_>,
        constraints: &InputConstraints,
    ) -> Option<(Rc<SyntheticRequest>, Rc<Vec<Failure>>)> {
        let synthetic = builder.built(constraints)?;
        let is_new = !builder.is_evaluated(&synthetic);
        let failures = builder.evaluate(symbolic, &synthetic, &mut self.budget)?;
        for failure in failures.iter().filter(|_| is_new) {
            let at_node = sites_by_node.get(&(failure.origin_index, failure.origin_id));
            let mut at_node = at_node.into_iter().flatten();
            let site = at_node.find(|it| self.matches_site(symbolic, &synthetic, failure, it));
            let site = site.filter(|it| !is_required(builder, constraints, &synthetic, it));
            if let Some(site) = site {
                self.report(builder, symbolic, sites_by_node, &synthetic, failure, site);
            }
        }
        Some((synthetic, failures))
    }

    /// Returns true if `site` explains `failure`, which occurred at the node of the site: the cause is the same, and a
    /// valid request may have the failing value.
    fn matches_site(
        &self,
        symbolic: &SymbolicEvaluator<'_>,
        synthetic: &SyntheticRequest,
        failure: &Failure,
        site: &FailureSite,
    ) -> bool {
        let path = &site.path;
        let text = || synthetic.value_at(path).and_then(Json::as_str);
        let is_out_of_bounds = failure.message.starts_with("index out of bounds");
        match site.cause {
            FailureCause::Absent => {
                is_missing_value_error(&failure.message) && self.lacks(symbolic, synthetic, site)
            }
            FailureCause::FailingDefault => {
                !is_missing_value_error(&failure.message) && self.lacks(symbolic, synthetic, site)
            }
            FailureCause::Null => synthetic.value_at(path).is_some_and(Json::is_null),
            FailureCause::NumberType => {
                let is_overload_error = failure.message.starts_with("no such overload");
                is_overload_error && synthetic.value_at(path).is_some_and(Json::is_number)
            }
            FailureCause::InvalidString => text().is_some_and(|text| symbolic.accepts(path, text)),
            FailureCause::ShortSplit(_) => {
                is_out_of_bounds && text().is_some_and(|text| symbolic.accepts(path, text))
            }
            FailureCause::ShortList(_) => is_out_of_bounds,
            FailureCause::ZeroDivisor => {
                ["division by zero", "modulus by zero"].contains(&failure.message.as_str())
            }
            FailureCause::IntOrString => {
                let is_either = |value: &Json| value.is_string() || value.is_number();
                !is_missing_value_error(&failure.message)
                    && synthetic.value_at(path).is_some_and(is_either)
            }
        }
    }

    /// Returns true if the request lacks the path of `site` and a valid request may lack it.
    fn lacks(
        &self,
        symbolic: &SymbolicEvaluator<'_>,
        synthetic: &SyntheticRequest,
        site: &FailureSite,
    ) -> bool {
        if site.path == FieldPath::new(Root::Namespace) {
            // The API server evaluates match conditions without a namespaceObject, whatever the request.
            let expressions = self.policy.expressions();
            let role = expressions
                .get(site.node.index)
                .map(|expression| expression.role);
            if role == Some(Role::MatchCondition) {
                return true;
            }
        }
        synthetic.lacks(&site.path)
            && (site.path.segments.is_empty() || symbolic.may_be_absent(&site.path))
    }

    fn report(
        &mut self,
        builder: &RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        sites_by_node: &SitesByNode<'_>,
        synthetic: &Rc<SyntheticRequest>,
        failure: &Failure,
        site: &FailureSite,
    ) {
        let (n, path) = (site.node.index, &site.path);
        let is_absent = site.cause == FailureCause::Absent;
        if is_absent && let Some((_, others)) = self.shared_causes.get_mut(path) {
            others.insert(n);
            return;
        }
        if self.is_reported(site) || self.findings.len() >= MAX_FOUND {
            return;
        }
        // An API server rejects such a request, whatever the policy decides.
        if builder.fails_crd_rules(synthetic)
            || !self.is_confirmed(builder, synthetic, failure, site)
        {
            return;
        }
        let Some(expression) = self.policy.expressions().get(n) else {
            return;
        };
        let Ok(ast) = expression.parsed() else { return };
        let offset = ast.offset(site.node.id);
        let source = SourceMap::new(&expression.text);
        let writer = MessageWriter {
            evaluator: symbolic,
            resource: builder.resource,
            operations: &builder.operations,
            without_params: self.without_params,
        };
        let proposal = writer.proposal(sites_by_node, site);
        let trial = (synthetic, failure);
        let trial::Trials {
            suggestions,
            rename,
            assumed,
        } = trial::try_all(builder, &proposal, trial, &mut self.trials_left);
        let finding = RuntimeErrorFinding {
            index: n,
            field_ref: expression.field_ref.clone(),
            location: source.location(offset),
            rule: writer.rule(site),
            gvk: builder.resource.gvk.clone(),
            message: writer.message(synthetic, failure, site),
            fix: suggestion::with_advice(&suggestions, proposal.first_advice, proposal.advice)
                .or(proposal.fallback),
            suggestions,
            rename,
            cause: site.cause,
            root: path.root,
            assumed,
            is_rare: lacks_spec(symbolic, sites_by_node, site)
                || connect_options::has(&builder.resource.gvk) && site.cause == FailureCause::Null,
            is_of_params: path.root == Root::Params && !path.segments.is_empty(),
            consequence: self.policy.consequence(failure.index),
            denied_by: self.denying_validation(builder, symbolic, (synthetic, failure), site),
            n_others: 0,
            witness: builder.witness(synthetic, &failure.message),
        };
        if is_absent && is_shared(path) {
            let cause = (self.findings.len(), HashSet::from([n]));
            self.shared_causes.insert(path.clone(), cause);
        }
        if !path.segments.is_empty() {
            self.reported_chains.insert((n, site.chain));
        }
        let is_absent_or_null = is_absent || site.cause == FailureCause::Null;
        if is_absent_or_null && !path.segments.is_empty() {
            self.reported_paths.insert((n, path.clone()));
        }
        let chain = chain_of(ast, site.chain)
            .into_iter()
            .map(|id| source.location(ast.offset(id)));
        self.findings.push(LocatedFinding {
            finding,
            offset,
            chain: chain.collect(),
        });
    }

    /// Returns false for a mutation that does not fail after the earlier mutations, because one of them adds the
    /// missing value. Also returns false for names that the API server generates after mutations, because
    /// `mutation_failures` reports them.
    fn is_confirmed(
        &self,
        builder: &RequestBuilder<'_>,
        synthetic: &SyntheticRequest,
        failure: &Failure,
        site: &FailureSite,
    ) -> bool {
        let expressions = self.policy.expressions();
        let of_failing = expressions.get(failure.index);
        if !of_failing.is_some_and(|expression| expression.role.is_mutation()) {
            return true;
        }
        let is_applied = |applied: &AppliedMutations<'_>| {
            applied.mutations.first() == Some(&failure.index)
                || applied.fails_to_evaluate(builder, synthetic, failure.index)
        };
        let is_name = site.cause == FailureCause::Absent && is_generated_name(&site.path);
        !is_name && self.applied.as_ref().is_some_and(is_applied)
    }

    /// Returns another validation that is false whenever the expression fails at `site`. The expression fails because
    /// the value is absent, or because the string cannot be converted.
    ///
    /// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/dispatcher.go`, `Dispatch` (each validation is
    /// evaluated, and the first denial has the message).
    fn denying_validation(
        &self,
        builder: &RequestBuilder<'_>,
        symbolic: &SymbolicEvaluator<'_>,
        (synthetic, failure): (&Rc<SyntheticRequest>, &Failure),
        site: &FailureSite,
    ) -> Option<DenyingValidation> {
        let expressions = self.policy.expressions();
        let is_validation = |n: usize| {
            let expression = expressions.get(n);
            expression.is_some_and(|expression| expression.role == Role::Validation)
        };
        // A path through a list denotes any element of the list, so the other validation may read a different element.
        let mut segments = site.path.segments.iter();
        let has_element = segments.any(|segment| matches!(segment, Segment::Index(_)));
        let is_of_absence = matches!(
            site.cause,
            FailureCause::Absent | FailureCause::FailingDefault
        );
        let is_of_value = site.cause == FailureCause::InvalidString;
        if !(is_of_absence || is_of_value) || has_element || !is_validation(failure.index) {
            return None;
        }
        let mut constraints = InputConstraints::default();
        if is_of_absence {
            constraints.add(&site.path, Constraint::Absent)?;
        }
        // The failing node is reached only if the values that contain the absent one are present.
        if let Some(parent) = site.path.parent().filter(|it| !it.segments.is_empty()) {
            constraints.add(&parent, Constraint::Present)?;
        }
        let mut budget = Budget::UNLIMITED;
        let traced = builder.traced(synthetic, &mut budget)?;
        traced.steps.iter().find_map(|step| {
            let is_false = matches!(step.result, Ok(Some(false))) && is_validation(step.index);
            let expression = expressions.get(step.index).filter(|_| is_false)?;
            let node = ExprRef {
                index: step.index,
                id: expression.parsed().ok()?.root(),
            };
            let depends = if is_of_absence {
                let is_true = BranchCondition::Evaluates(node, Scope::default(), true);
                solver::solve(symbolic, vec![is_true], constraints.clone()).is_unsat
            } else {
                accepts_other_string(builder, site, [step.index, failure.index])
            };
            depends.then(|| DenyingValidation {
                field_ref: expression.field_ref.clone(),
                is_message_shown: step.index < failure.index,
                is_of_absence,
            })
        })
    }

    /// Returns the findings in the order of the policy's fields. Findings that type checking already reports are
    /// dropped.
    fn into_findings(mut self, type_findings: &[ExpressionFindings]) -> Vec<RuntimeErrorFinding> {
        for (finding_idx, expressions) in self.shared_causes.values() {
            if let Some(located) = self.findings.get_mut(*finding_idx) {
                located.finding.n_others = expressions.len().saturating_sub(1);
            }
        }
        let is_type_error = |LocatedFinding { finding, chain, .. }: &LocatedFinding| {
            let of_expression = type_findings
                .iter()
                .filter(|typed| typed.index == finding.index);
            // A type error for one kind does not hide an absent value for another kind.
            let mut diagnostics = of_expression.flat_map(|typed| {
                let lists_all = typed.lists_all_kinds();
                let of_kinds = typed.iter();
                of_kinds.filter(move |(gvk, ..)| !lists_all || **gvk == finding.gvk)
            });
            diagnostics.any(|(_, _, diagnostic)| {
                diagnostic.location == finding.location
                    // An undefined field affects the whole chain, and no guard can fix it.
                    || diagnostic.kind.code() == Code::UndefinedField && chain.contains(&diagnostic.location)
                    || finding.rule == Rule::AbsentObject && diagnostic.kind.code() == Code::NoFieldSelection
            })
        };
        self.findings.retain(|located| !is_type_error(located));
        self.findings
            .sort_by_key(|located| (located.finding.index, located.offset));
        // A suggestion that makes both sides of a comparison optional fixes the findings about both sides, so only the
        // first finding is kept.
        let mut compared = HashSet::new();
        self.findings.retain(|LocatedFinding { finding, .. }| {
            let mut suggestions = finding.suggestions.iter();
            suggestions.all(|it| {
                !Effect::INTENDED.contains(&it.effect)
                    || compared.insert((finding.index, it.replacement.clone()))
            })
        });
        self.findings
            .into_iter()
            .map(|located| located.finding)
            .collect()
    }
}

/// Strings that at least one conversion accepts.
const CONVERTIBLE: [&str; 8] = [
    "1",
    "50",
    "true",
    "1h",
    "1Gi",
    "2000-01-01T00:00:00Z",
    "10.0.0.1",
    "10.0.0.0/8",
];

/// Returns true if a string in [`CONVERTIBLE`], as the value of `site`, makes the expression `tested` true, and the
/// expression `converting` does not fail for it. If so, `tested` is false for the witness only because the string of
/// the witness cannot be converted.
fn accepts_other_string(
    builder: &RequestBuilder<'_>,
    site: &FailureSite,
    [tested, converting]: [usize; 2],
) -> bool {
    let mut budget = Budget::UNLIMITED;
    CONVERTIBLE.iter().any(|text| {
        let mut constraints = InputConstraints::default();
        let equals = Constraint::Equals(Json::from(*text));
        let added = constraints.add(&site.path, equals);
        let synthetic = added.and_then(|()| builder.built(&constraints));
        let traced = synthetic.and_then(|it| builder.traced(&it, &mut budget));
        traced.is_some_and(|traced| {
            let result = |index: usize| {
                let step = traced.steps.iter().find(|step| step.index == index);
                step.map(|step| &step.result)
            };
            matches!(result(tested), Some(Ok(Some(true))))
                && matches!(result(converting), Some(Ok(_)))
        })
    })
}

/// Returns `chain` and the nodes inside it: the operand of each selection and index, from the outside to the base.
fn chain_of(ast: &Ast, chain: ExprId) -> Vec<ExprId> {
    let mut nodes = Vec::new();
    let mut next = Some(chain);
    while let Some(id) = next {
        nodes.push(id);
        next = match ast.expr(id) {
            Expr::Select { operand, .. } => Some(*operand),
            Expr::Call {
                function,
                target: None,
                args,
            } if &**function == "_[_]" => args.first().copied(),
            _ => None,
        };
    }
    nodes
}

/// Returns true if all expressions share one finding for this absent value: a root variable, or a field of the params.
fn is_shared(absent: &FieldPath) -> bool {
    absent.segments.is_empty() || absent.root == Root::Params
}

/// Returns the path of an absent value that made the evaluation fail. Failures that originate in the expression with
/// the index `n` take precedence. `None` if no failure is due to an absent value.
pub(super) fn missing_path<'c>(
    synthetic: &SyntheticRequest,
    failures: &[Failure],
    sites_by_node: &SitesByNode<'c>,
    n: usize,
) -> Option<&'c FieldPath> {
    let absent_path = |failure: &Failure| {
        let at_node = sites_by_node.get(&(failure.origin_index, failure.origin_id))?;
        let missing = at_node
            .iter()
            .find(|other| other.cause == FailureCause::Absent && synthetic.lacks(&other.path))?;
        Some(&missing.path)
    };
    let (in_expression, in_others): (Vec<_>, Vec<_>) = failures
        .iter()
        .partition(|failure| failure.origin_index == n);
    in_expression
        .into_iter()
        .chain(in_others)
        .find_map(absent_path)
}

/// Lists of objects in which the value of one field determines whether another field is required. For example, an item
/// with the operator `In` requires `values`.
const DEPENDENT: [&str; 2] = ["matchExpressions", "tolerations"];

/// Returns true if validation rejects the request because an item of a [`DEPENDENT`] list lacks the field of `site`. If
/// the field is added, such a request is valid.
fn is_required(
    builder: &RequestBuilder<'_>,
    constraints: &InputConstraints,
    synthetic: &SyntheticRequest,
    site: &FailureSite,
) -> bool {
    let names = site.path.names();
    let list = names.len().checked_sub(2).and_then(|n| names.get(n));
    if site.cause != FailureCause::Absent
        || list.is_none_or(|name| !DEPENDENT.contains(name))
        || !builder.fails_validation(synthetic)
    {
        return false;
    }
    let mut constraints = constraints.clone();
    // `replace` is used because the constraints may require that the field is absent.
    let is_consistent = constraints
        .replace(&site.path, Constraint::Present)
        .is_some();
    let with_field = builder.build(&constraints).filter(|_| is_consistent);
    with_field.is_some_and(|it| !builder.fails_validation(&it))
}
