//! Runtime errors of expressions, each with a witness: a request on which the evaluator confirms the error.
//!
//! The search is symbolic execution with concrete confirmation. It proposes, the evaluator decides, so an expression that
//! cannot be interpreted symbolically costs a finding and never invents one (ADR 18):
//!
//! 1. Symbolic values (`symbol`): the part of the request, or the constant, that each expression denotes. `decided`
//!    evaluates conditions that are constant for the kind.
//! 2. Failure sites (`candidates`): selections, indices, conversions and divisions that fail for some value, each with its
//!    path condition (`Goals`), the conditions of all branches on the way to the site.
//! 3. Constraints (`goals`): the path condition becomes a disjunction of `InputConstraints` on the request. An
//!    unsatisfiable one ends the site without an evaluation, which is how most guards are recognized.
//! 4. Request builder (`witness::Maker`): the minimal valid objects by their types (`shape::least`), changed to satisfy the
//!    constraints (`shape::meet`), completed and checked by `kubernetes::validity`, and defaulted as the API server does
//!    (`witness::prepare`).
//! 5. Confirmation (`Maker::evaluate`, `failures`): the evaluator runs the whole policy. If a request fails before the
//!    site, the missing value is added to the constraints and the request is built again.
//! 6. Report (`words`, `guard`): the message, and a guard that fixes the expression.
//!
//! [`analyse`] runs this loop over the kinds that the rules match (`kinds`), within a budget. The same parts find requests
//! for errors of type checking (`typed`), failing mutations (`mutated`), allowed and denied examples (`examples`), params
//! of the wrong scope (`scope`) and comparisons that are constant by the schemas (`compared`).

mod candidates;
mod compared;
mod decided;
mod examples;
mod failures;
mod free;
mod goals;
mod guard;
mod kept;
mod kinds;
mod makers;
mod mutated;
mod patched;
mod roots;
mod sample_text;
mod scope;
mod shape;
mod symbol;
mod typed;
mod witness;
mod words;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use serde_json::Value as Json;

use crate::compile::CompiledPolicy;
use crate::consequence::Consequence;
use crate::expressions::{PolicyExpression, Role};
use crate::finding::ExpressionFindings;
use crate::matching;
use crate::rule::Rule;
use candidates::{Candidate, Cause};
use cel::ast::{Ast, Expr, ExprId};
use cel::diagnostic::Code;
use cel::source::{Location, SourceMap};
use cel::stack::run_on_deep_stack;
pub use compared::constant_comparisons;
pub use examples::{Dependence, Examples, dependence, examples};
use failures::Failure;
pub use kept::KeptObjects;
use kinds::kinds;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::SchemaResolver;
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root};
use makers::Makers;
pub use mutated::{FailingMutation, failing_mutations};
pub use scope::{ScopeMismatch, scope_mismatch};
use symbol::Reader;
pub use typed::{TypedWitness, partial_witnesses, typed_witnesses};
pub use witness::Witness;
use witness::{Budget, Made, Maker};
use words::Words;

/// The most requests that are evaluated for one policy.
const MAX_EVALUATIONS: u32 = 400;

/// The cost units that all evaluations for one policy may use.
const MAX_COST: u64 = 300_000;

/// The steps that reading the expressions of a policy may take for one kind.
const MAX_STEPS: u32 = 20_000;

/// How often a request is mended that fails elsewhere.
const MAX_MENDS: usize = 6;

/// The most findings about one policy.
const MAX_FOUND: usize = 200;

/// The schemas of custom resources as they are written.
pub trait WrittenSchemas: Sync {
    /// The schema of `gvk` as written, where it is a custom resource with one.
    fn written(&self, gvk: &Gvk) -> Option<&Json>;

    /// Reports whether `gvk` is one of Kubernetes' own kinds.
    fn is_own(&self, gvk: &Gvk) -> bool;
}

/// An expression that fails where something is absent.
#[derive(Clone, Debug)]
pub struct Absence {
    /// The index of the expression among those of the policy.
    pub index: usize,
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The place in the expression.
    pub location: Location,
    /// The rule that it belongs to.
    pub rule: Rule,
    /// The kind of the object of the witness.
    pub gvk: Gvk,
    /// A sentence of what may be absent, and what happens then.
    pub message: String,
    /// The mend.
    pub mend: Option<String>,
    /// True if it is a part of the params, which are written together with the policy, and not of a request.
    pub is_of_params: bool,
    /// The fate of the request.
    pub consequence: Consequence,
    /// The number of other expressions that fail for the same reason.
    pub n_others: usize,
    /// The request.
    pub witness: Witness,
}

/// The facts that are known besides the policy.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The served resources.
    pub mapper: &'a RestMapper,
    /// The types of kinds.
    pub schemas: &'a dyn SchemaResolver,
    /// The schemas of custom resources as written.
    pub written: &'a dyn WrittenSchemas,
    /// The findings of type checking.
    pub typed: &'a [ExpressionFindings],
    /// The name of a binding of the policy that has no paramRef, where there is one.
    pub without_params: Option<&'a str>,
    /// True where no binding of the policy has one, though there are some.
    pub never_has_params: bool,
    /// The objects that were made for other policies.
    pub kept: &'a KeptObjects,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("without_params", &self.without_params)
            .finish_non_exhaustive()
    }
}

/// Finds the expressions of `policy` that fail where something is absent, in the order of the policy's fields.
#[must_use]
pub fn analyse(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<Absence> {
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || {
        let mut analysis = Analysis::new(policy, context.without_params);
        analysis.run(context);
        analysis.into_found(context.typed)
    })
}

/// The findings so far, and what may still be tried.
struct Analysis<'a> {
    policy: &'a CompiledPolicy,
    without_params: Option<&'a str>,
    budget: Budget,
    found: Vec<Found>,
    /// The chains of selections that are told, by the index of their expression.
    chains: HashSet<(usize, ExprId)>,
    /// The paths that are told, by the index of the expression.
    paths: HashSet<(usize, FieldPath)>,
    /// The causes that are told once for all expressions, roots and what params lack, with the place of the finding
    /// and the expressions that it is about.
    shared: BTreeMap<FieldPath, (usize, HashSet<usize>)>,
}

struct Found {
    absence: Absence,
    offset: u32,
    /// The places of the chain that it is in.
    chain: Vec<Location>,
}

impl<'a> Analysis<'a> {
    fn new(policy: &'a CompiledPolicy, without_params: Option<&'a str>) -> Self {
        Self {
            policy,
            without_params,
            budget: Budget {
                n_evaluations: MAX_EVALUATIONS,
                cost: MAX_COST,
            },
            found: Vec::new(),
            chains: HashSet::new(),
            paths: HashSet::new(),
            shared: BTreeMap::new(),
        }
    }

    fn run(&mut self, context: &Context<'_>) {
        let policy = self.policy;
        let targets = matching::targets(policy.policy(), context.mapper);
        let makers = Makers::new(policy, context);
        for (resource, operations) in kinds(&targets) {
            if self.budget.is_used_up() {
                break;
            }
            if let Some(maker) = makers.of(resource, operations) {
                self.try_kind(maker);
            }
        }
    }

    fn try_kind(&mut self, mut maker: Maker<'_>) {
        let reader = maker.reader(MAX_STEPS);
        let candidates = candidates::find(&reader);
        if candidates.is_empty() {
            return;
        }
        let by_place = by_place(&candidates);
        // The least object finds most.
        for needs in least_needs(&maker.operations) {
            self.try_needs(&mut maker, &reader, &by_place, &needs);
        }
        for candidate in &candidates {
            if self.budget.is_used_up() || self.found.len() >= MAX_FOUND {
                break;
            }
            self.try_candidate(&mut maker, &reader, &by_place, candidate);
        }
    }

    fn is_told(&self, candidate: &Candidate) -> bool {
        let (n, path) = (candidate.place.n, &candidate.path);
        let is_chain_told = self.chains.contains(&(n, candidate.chain));
        if candidate.cause != Cause::Absent {
            // What may be absent and null is told once.
            let is_known =
                candidate.cause == Cause::Null && self.paths.contains(&(n, path.clone()));
            return is_chain_told || is_known;
        }
        if self.shared.contains_key(path) {
            return true;
        }
        !path.segments.is_empty() && (is_chain_told || self.paths.contains(&(n, path.clone())))
    }

    /// Tries to reach `candidate`.
    fn try_candidate(
        &mut self,
        maker: &mut Maker<'_>,
        reader: &Reader<'_>,
        by_place: &HashMap<(usize, usize), Vec<&Candidate>>,
        candidate: &Candidate,
    ) {
        if self.is_told(candidate) {
            return;
        }
        for edit in candidate.edits(reader) {
            let mut needs = InputConstraints::default();
            if needs.add(&candidate.path, edit).is_some() {
                self.try_edit(maker, reader, by_place, candidate, &needs);
            }
        }
    }

    /// Tries to reach `candidate` by requests that fit `needs`.
    fn try_edit(
        &mut self,
        maker: &mut Maker<'_>,
        reader: &Reader<'_>,
        by_place: &HashMap<(usize, usize), Vec<&Candidate>>,
        candidate: &Candidate,
        needs: &InputConstraints,
    ) {
        for with_soft in candidate.goals.attempts() {
            if self.is_told(candidate) {
                return;
            }
            let goals = candidate.goals.list(*with_soft);
            let solved = goals::solve(reader, goals, needs.clone());
            if solved.is_hopeless {
                return;
            }
            for mut needs in solved.found {
                for _ in 0..MAX_MENDS {
                    let failures = self.try_needs(maker, reader, by_place, &needs);
                    if self.is_told(candidate) {
                        return;
                    }
                    let Some((made, failures)) = failures else {
                        break;
                    };
                    let Some(missing) = missing(&made, &failures, by_place, candidate.place.n)
                    else {
                        break;
                    };
                    if needs.add(missing, Constraint::Present).is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// Evaluates a request that fits `needs`, and tells what fails for it.
    fn try_needs(
        &mut self,
        maker: &mut Maker<'_>,
        reader: &Reader<'_>,
        by_place: &HashMap<(usize, usize), Vec<&Candidate>>,
        needs: &InputConstraints,
    ) -> Option<(Rc<Made>, Vec<Failure>)> {
        if !maker.is_new(needs) {
            return None;
        }
        let made = maker.make(needs)?;
        let failures = maker.evaluate(reader, &made, &mut self.budget)?;
        for failure in &failures {
            let at_place = by_place.get(&(failure.n, failure.id));
            let mut at_place = at_place.into_iter().flatten();
            let candidate = at_place.find(|it| self.is_cause(reader, &made, failure, it));
            if let Some(candidate) = candidate {
                self.tell(maker, reader, by_place, &made, failure, candidate);
            }
        }
        Some((made, failures))
    }

    /// Reports whether `failure` is for what the candidate says, in a way that a valid request may be.
    fn is_cause(
        &self,
        reader: &Reader<'_>,
        made: &Made,
        failure: &Failure,
        candidate: &Candidate,
    ) -> bool {
        let path = &candidate.path;
        let text = || made.at(path).and_then(Json::as_str);
        let is_beyond = failure.message.starts_with("index out of bounds");
        match candidate.cause {
            Cause::Absent => is_reason(&failure.message) && self.lacks(reader, made, candidate),
            Cause::Null => made.at(path).is_some_and(Json::is_null),
            Cause::Number => {
                let is_reason = failure.message.starts_with("no such overload");
                is_reason && made.at(path).is_some_and(Json::is_number)
            }
            Cause::Text => text().is_some_and(|text| reader.takes(path, text)),
            Cause::FewParts(_) => is_beyond && text().is_some_and(|text| reader.takes(path, text)),
            Cause::FewElements(_) => is_beyond,
            Cause::Zero => {
                ["division by zero", "modulus by zero"].contains(&failure.message.as_str())
            }
            Cause::OtherType => {
                let is_either = |value: &Json| value.is_string() || value.is_number();
                !is_reason(&failure.message) && made.at(path).is_some_and(is_either)
            }
        }
    }

    /// Reports whether `made` lacks what the candidate says, in a way that a valid request may.
    fn lacks(&self, reader: &Reader<'_>, made: &Made, candidate: &Candidate) -> bool {
        if candidate.path == FieldPath::new(Root::Namespace) {
            // Match conditions are given none.
            let expressions = self.policy.expressions();
            let role = expressions
                .get(candidate.place.n)
                .map(|expression| expression.role);
            if role == Some(Role::MatchCondition) {
                return true;
            }
        }
        made.lacks(&candidate.path)
            && (candidate.path.segments.is_empty() || reader.may_be_absent(&candidate.path))
    }

    fn tell(
        &mut self,
        maker: &Maker<'_>,
        reader: &Reader<'_>,
        by_place: &HashMap<(usize, usize), Vec<&Candidate>>,
        made: &Made,
        failure: &Failure,
        candidate: &Candidate,
    ) {
        let (n, path) = (candidate.place.n, &candidate.path);
        let is_absent = candidate.cause == Cause::Absent;
        if is_absent && let Some((_, others)) = self.shared.get_mut(path) {
            others.insert(n);
            return;
        }
        if self.is_told(candidate) || self.found.len() >= MAX_FOUND {
            return;
        }
        let Some(expression) = self.policy.expressions().get(n) else {
            return;
        };
        let Ok(ast) = expression.parsed() else { return };
        let offset = ast.offset(candidate.place.id);
        let source = SourceMap::new(&expression.text);
        let words = Words {
            reader,
            resource: maker.resource,
            without_params: self.without_params,
        };
        let absence = Absence {
            index: n,
            field_ref: expression.field_ref.clone(),
            location: source.location(offset),
            rule: words.rule(candidate),
            gvk: maker.resource.gvk.clone(),
            message: words.message(made, failure, candidate),
            mend: words.mend(by_place, candidate),
            is_of_params: path.root == Root::Params && !path.segments.is_empty(),
            consequence: self.policy.consequence(failure.of),
            n_others: 0,
            witness: maker.witness(made, &failure.message),
        };
        if is_absent && is_shared(path) {
            let known = (self.found.len(), HashSet::from([n]));
            self.shared.insert(path.clone(), known);
        }
        if !path.segments.is_empty() {
            self.chains.insert((n, candidate.chain));
        }
        let is_missing = is_absent || candidate.cause == Cause::Null;
        if is_missing && !path.segments.is_empty() {
            self.paths.insert((n, path.clone()));
        }
        let chain = chain_of(ast, candidate.chain)
            .into_iter()
            .map(|id| source.location(ast.offset(id)));
        self.found.push(Found {
            absence,
            offset,
            chain: chain.collect(),
        });
    }

    /// The findings in the order of the policy's fields, without those that type checking tells.
    fn into_found(mut self, typed: &[ExpressionFindings]) -> Vec<Absence> {
        for (place, expressions) in self.shared.values() {
            if let Some(found) = self.found.get_mut(*place) {
                found.absence.n_others = expressions.len().saturating_sub(1);
            }
        }
        let is_typed = |Found { absence, chain, .. }: &Found| {
            let of_expression = typed.iter().filter(|found| found.index == absence.index);
            let mut told = of_expression.flat_map(ExpressionFindings::iter);
            told.any(|(_, _, found)| {
                found.location == absence.location
                    // Of a chain that cannot be evaluated at all, no guard makes sense.
                    || found.kind.code() == Code::UndefinedField && chain.contains(&found.location)
                    || absence.rule == Rule::AbsentObject && found.kind.code() == Code::NoFieldSelection
            })
        };
        self.found.retain(|found| !is_typed(found));
        self.found
            .sort_by_key(|found| (found.absence.index, found.offset));
        self.found.into_iter().map(|found| found.absence).collect()
    }
}

/// The nodes of the chain of selections and indices at `chain`, outermost first.
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

/// Reports whether the cause is one of all expressions together: it is mended in one place, or not seen in them.
fn is_shared(absent: &FieldPath) -> bool {
    absent.segments.is_empty() || absent.root == Root::Params
}

/// Reports whether the error is one of something that is not there.
fn is_reason(message: &str) -> bool {
    [
        "no such key",
        "index out of bounds",
        "optional.none() dereference",
    ]
    .iter()
    .any(|reason| message.starts_with(reason))
}

/// The candidates by expression and node.
fn by_place(candidates: &[Candidate]) -> HashMap<(usize, usize), Vec<&Candidate>> {
    let mut by_place: HashMap<(usize, usize), Vec<&Candidate>> = HashMap::new();
    for candidate in candidates {
        let place = (candidate.place.n, candidate.place.id.index());
        by_place.entry(place).or_default().push(candidate);
    }
    by_place
}

/// The needs of the least request of each operation.
fn least_needs(operations: &[crate::admission::Operation]) -> Vec<InputConstraints> {
    let mut all = vec![InputConstraints::default()];
    for operation in operations.iter().skip(1) {
        let mut needs = InputConstraints::default();
        let path = FieldPath::new(Root::Request).field("operation");
        let name = Json::from(operation.as_str());
        if path
            .and_then(|path| needs.add(&path, Constraint::Equals(name)))
            .is_some()
        {
            all.push(needs);
        }
    }
    all
}

/// The path that is missing where the evaluation failed before it came to where it should, in the expression of the
/// index `n`.
fn missing<'c>(
    made: &Made,
    failures: &[Failure],
    by_place: &HashMap<(usize, usize), Vec<&'c Candidate>>,
    n: usize,
) -> Option<&'c FieldPath> {
    let lacking = |failure: &Failure| {
        let at_place = by_place.get(&(failure.n, failure.id))?;
        let missing = at_place
            .iter()
            .find(|other| other.cause == Cause::Absent && made.lacks(&other.path))?;
        Some(&missing.path)
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) = failures.iter().partition(|failure| failure.n == n);
    here.into_iter().chain(elsewhere).find_map(lacking)
}
