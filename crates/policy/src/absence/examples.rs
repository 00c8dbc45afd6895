//! Examples: requests for which a validation is true or false, found by the search that finds witnesses and confirmed
//! by the evaluator.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use serde_json::{Value as Json, json};

use super::candidates::{self, Candidate, Cause};
use super::failures::failures;
use super::kinds::kinds_up_to;
use super::need::{Edit, Needs};
use super::path::{Path, Root};
use super::shape::Shape;
use super::symbol::{Form, Goal, Place, Reader, Scope, Symbol, form};
use super::witness::{Budget, Made, Maker, Witness};
use super::{Context, goals, is_reason, params, shape};
use crate::admission::trace::Step;
use crate::admission::{Admission, Operation};
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching;
use cel::ast::{Expr, ExprId, Literal};
use cel::stack::run_on_deep_stack;
use kubernetes::schema::resolver::Resolution;

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

/// The most paths that are changed by trial.
const MAX_PATHS: usize = 24;

/// The most literals that are tried as values.
const MAX_LITERALS: usize = 24;

/// How deep expressions are searched for paths.
const MAX_DEPTH: usize = 60;

/// Texts that many validations of names, images and quantities tell apart.
const TEXTS: [&str; 16] = [
    "",
    "Not Valid!",
    "example.com/app:latest",
    "app",
    "app:1.0",
    "true",
    "false",
    "0",
    "1",
    "100",
    "1000Gi",
    "1m",
    "a/b",
    "-",
    "10.0.0.1",
    "a-very-long-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on",
];

/// Numbers that many validations tell apart.
const NUMBERS: [i64; 8] = [0, 1, -1, 2, 10, 100, 1_000, 70_000];

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
        let admission = Admission::from_compiled(policy);
        let params = params(policy, context);
        for (resource, operations) in kinds_up_to(&targets, MAX_KINDS) {
            // Of the kinds of connections, and of some subresources, there is no schema.
            let object = match context.schemas.resolve(&resource.gvk) {
                Resolution::Found(type_) => {
                    shape(context, &resource.gvk, type_, resource.namespaced)
                }
                Resolution::NotFound | Resolution::Unavailable(_) => Shape::open(),
            };
            let mut maker = Maker::new(
                &admission,
                policy,
                resource,
                operations,
                object,
                params.clone(),
                context.least,
            );
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
        let policy = self.policy;
        let Some(index) = self.validations.get(n).copied() else {
            return;
        };
        let expressions = policy.expressions().iter().enumerate();
        let variables = expressions
            .filter(|(_, expression)| expression.role == Role::Variable)
            .filter_map(|(n, expression)| Some((expression.name.as_deref()?, n)))
            .collect();
        let reader = Reader {
            policy,
            roots: maker.roots(),
            variables,
            constants: maker.constants(),
            known: RefCell::default(),
            ways: RefCell::default(),
            left: Cell::new(MAX_STEPS),
        };
        let mut trial = Trial {
            reader: &reader,
            candidates: candidates::find(&reader),
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
        for base in [usual(trial.reader), Needs::default()] {
            for with_others in [true, false] {
                let goals = self.goals(trial.reader, index, wanted, with_others);
                for needs in goals::solve(trial.reader, goals, base.clone()).found {
                    self.try_needs(maker, trial, (n, index), needs);
                    if self.is_done(n, wanted) {
                        return;
                    }
                }
            }
        }
        self.try_needs(maker, trial, (n, index), Needs::default());
    }

    /// Goals: the validation at `index` is `wanted`, match conditions hold, and, where that is asked for, the other
    /// validations are true.
    fn goals(
        &self,
        reader: &Reader<'_>,
        index: usize,
        wanted: bool,
        with_others: bool,
    ) -> Vec<Goal> {
        let expressions = self.policy.expressions().iter().enumerate();
        let mut goals = Vec::new();
        for (n, expression) in expressions {
            let is_asked = match expression.role {
                Role::MatchCondition => true,
                Role::Validation => n != index && with_others,
                _ => false,
            };
            if let Some(ast) = reader.ast(n).filter(|_| is_asked) {
                let place = Place { n, id: ast.root() };
                goals.push(Goal::Is(place, Scope::default(), true));
            }
        }
        // The last goal is looked at first.
        if let Some(ast) = reader.ast(index) {
            let place = Place {
                n: index,
                id: ast.root(),
            };
            goals.push(Goal::Is(place, Scope::default(), wanted));
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
            let goals = self.goals(trial.reader, index, wanted, false);
            let n_conditions = goals.len().saturating_sub(1);
            goals.into_iter().take(n_conditions).collect()
        };
        let mut bases = goals::solve(trial.reader, conditions, Needs::default()).found;
        bases.truncate(2);
        let conditions = {
            let goals = self.goals(trial.reader, index, wanted, false);
            let n_conditions = goals.len().saturating_sub(1);
            goals.into_iter().take(n_conditions).collect()
        };
        let more = goals::solve(trial.reader, conditions, usual(trial.reader)).found;
        bases.splice(0..0, more.into_iter().take(1));
        if bases.is_empty() {
            bases.push(Needs::default());
        }
        let mut paths = Vec::new();
        let mut literals = Vec::new();
        trial.paths(index, &mut paths, &mut literals);
        let edits: Vec<(Path, Edit)> = paths
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
            if more.add(path, Edit::Present).is_some() {
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
        mut needs: Needs,
    ) {
        for _ in 0..MAX_MENDS {
            let Some(made) = maker.make(&needs) else {
                return;
            };
            let Some(steps) = maker.traced(&made, &mut trial.budget) else {
                return;
            };
            self.keep(maker, n, &made, &steps);
            let failures = failures(trial.reader, &steps);
            let of_others = failures.iter().filter(|failure| failure.of != index);
            let of_it = failures.iter().filter(|failure| failure.of == index);
            let missing = of_it
                .chain(of_others)
                .filter(|failure| is_reason(&failure.message))
                .find_map(|failure| {
                    let at_place = |candidate: &&Candidate| {
                        candidate.place.n == failure.n
                            && candidate.place.id.index() == failure.id
                            && candidate.cause == Cause::Absent
                            && made.lacks(&candidate.path)
                    };
                    trial.candidates.iter().find(at_place)
                });
            let Some(missing) = missing else { return };
            if needs.add(&missing.path, Edit::Present).is_none() {
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

/// Needs that an object of a usual kind meets, though its schema does not say so.
fn usual(reader: &Reader<'_>) -> Needs {
    const LISTS: [&[&str]; 4] = [
        &["spec", "containers"],
        &["spec", "template", "spec", "containers"],
        &[
            "spec",
            "jobTemplate",
            "spec",
            "template",
            "spec",
            "containers",
        ],
        &["spec", "rules"],
    ];
    const OF_RULES: [(&str, &str); 3] =
        [("apiGroups", ""), ("resources", "pods"), ("verbs", "get")];
    let mut needs = Needs::default();
    let mut add = |path: Option<Path>, edit: Edit| {
        let path = path.filter(|path| reader.shape(path).is_some_and(|shape| !shape.is_unknown()));
        let mut more = needs.clone();
        if path.is_some_and(|path| more.add(&path, edit).is_some()) {
            needs = more;
        }
    };
    let of = |names: &[&str]| {
        let root = Path::of(Root::Object);
        names.iter().try_fold(root, |path, name| path.field(name))
    };
    for names in LISTS {
        let is_list = |path: &Path| reader.shape(path).is_some_and(|shape| shape.is_list());
        add(of(names).filter(is_list), Edit::MinLen(1));
    }
    let rule = of(&["rules"]).and_then(|rules| rules.element(0));
    for (name, value) in OF_RULES {
        add(
            rule.as_ref().and_then(|rule| rule.field(name)),
            Edit::Holds(json!(value)),
        );
    }
    let ingress = of(&["spec", "rules"]).and_then(|rules| rules.element(0));
    let paths = ingress.and_then(|rule| rule.field("http")?.field("paths")?.element(0));
    add(
        paths.and_then(|path| path.field("path")),
        Edit::Equals(json!("/")),
    );
    needs
}

fn add_operation(needs: &mut Needs, operation: Operation) -> Option<()> {
    let path = Path::of(Root::Request).field("operation")?;
    needs.add(&path, Edit::Equals(json!(operation.as_str())))
}

/// The edits that are tried at `path`.
fn edits(path: &Path, literals: &[Json]) -> Vec<(Path, Edit)> {
    let mut found = vec![
        (path.clone(), Edit::Absent),
        (path.clone(), Edit::Present),
        (path.clone(), Edit::MinLen(2)),
        (path.clone(), Edit::MaxLen(0)),
    ];
    let equal = |value: Json| (path.clone(), Edit::Equals(value));
    found.extend([json!(true), json!(false)].map(equal));
    for literal in literals {
        found.push((path.clone(), Edit::Equals(literal.clone())));
        match literal {
            Json::String(text) => {
                found.push((path.clone(), Edit::Equals(json!(format!("{text}x")))));
                found.push((path.clone(), Edit::Holds(literal.clone())));
                if let Some(inner) = path.field(text) {
                    found.push((inner.clone(), Edit::Present));
                    found.push((inner, Edit::Absent));
                }
            }
            Json::Number(number) => {
                let near = number.as_i64().into_iter();
                let near = near.flat_map(|n| [n.saturating_sub(1), n.saturating_add(1)]);
                found.extend(near.map(|n| (path.clone(), Edit::Equals(json!(n)))));
            }
            _ => {}
        }
    }
    found.extend(TEXTS.map(|text| equal(json!(text))));
    found.extend(NUMBERS.map(|number| equal(json!(number))));
    found
}

/// Means by which one validation is tried.
struct Trial<'r, 'a> {
    reader: &'r Reader<'a>,
    candidates: Vec<Candidate>,
    budget: Budget,
}

impl Trial<'_, '_> {
    /// The paths that the expression at `index` reads, itself or by variables, and the literals in it.
    fn paths(&self, index: usize, paths: &mut Vec<Path>, literals: &mut Vec<Json>) {
        let Some(ast) = self.reader.ast(index) else {
            return;
        };
        let place = Place {
            n: index,
            id: ast.root(),
        };
        let mut seen = BTreeSet::new();
        self.walk((place, &Scope::default()), &mut seen, (paths, literals), 0);
        paths.truncate(MAX_PATHS);
        literals.truncate(MAX_LITERALS);
    }

    fn walk(
        &self,
        (place, scope): (Place, &Scope),
        seen: &mut BTreeSet<usize>,
        (paths, literals): (&mut Vec<Path>, &mut Vec<Json>),
        depth: usize,
    ) {
        if depth > MAX_DEPTH || !self.reader.take() {
            return;
        }
        let below: Vec<(ExprId, Scope)> = match self.reader.expr(place) {
            Expr::Literal(literal) => {
                let value = match literal {
                    Literal::Int(value) => json!(value),
                    Literal::Uint(value) => json!(value),
                    Literal::Double(value) => json!(value),
                    Literal::String(text) => json!(&**text),
                    _ => return,
                };
                if !literals.contains(&value) {
                    literals.push(value);
                }
                return;
            }
            Expr::Select { operand, .. } => {
                if let Some(n) = self.reader.read_variable(place) {
                    if seen.insert(n)
                        && let Some(ast) = self.reader.ast(n)
                    {
                        let root = Place { n, id: ast.root() };
                        let scope = Scope::default();
                        self.walk((root, &scope), seen, (paths, literals), depth + 1);
                    }
                    Vec::new()
                } else {
                    vec![(*operand, scope.clone())]
                }
            }
            Expr::Call { target, args, .. } => {
                let parts = target.iter().chain(&**args);
                parts.map(|id| (*id, scope.clone())).collect()
            }
            Expr::List { elements, .. } => elements.iter().map(|id| (*id, scope.clone())).collect(),
            Expr::Comprehension(fold) => {
                let mut below = vec![(fold.iter_range, scope.clone())];
                match form(self.reader, place.n, fold) {
                    Form::Bind => {
                        let init = Place {
                            n: place.n,
                            id: fold.accu_init,
                        };
                        let bound = self.reader.symbols(init, scope);
                        below.push((fold.accu_init, scope.clone()));
                        below.push((fold.result, scope.with(&fold.accu_var, bound)));
                    }
                    Form::All(test) | Form::Exists(test) | Form::ExistsOne(test) => {
                        let rounds = self.reader.rounds(place.n, fold, scope, 0);
                        below.extend(rounds.into_iter().map(|(scope, _)| (test, scope)));
                    }
                    Form::Collect(filter, transform) => {
                        for (scope, _) in self.reader.rounds(place.n, fold, scope, 0) {
                            below.extend(filter.map(|id| (id, scope.clone())));
                            below.push((transform, scope));
                        }
                    }
                    Form::Other => {}
                }
                below
            }
            _ => Vec::new(),
        };
        for (id, scope) in below {
            let place = Place { n: place.n, id };
            self.walk(
                (place, &scope),
                seen,
                (&mut *paths, &mut *literals),
                depth + 1,
            );
        }
        self.add_paths((place, scope), paths);
    }

    /// Adds the paths that the part at `place` stands for.
    fn add_paths(&self, (place, scope): (Place, &Scope), paths: &mut Vec<Path>) {
        let symbols = match self.reader.expr(place) {
            Expr::Select {
                operand,
                field,
                test_only: true,
            } => {
                let operand = Place {
                    n: place.n,
                    id: *operand,
                };
                let of = self.reader.symbols(operand, scope).into_iter();
                let tested = of.filter_map(|symbol| match symbol {
                    Symbol::At { path, .. } => path.field(field).map(super::symbol::at),
                    _ => None,
                });
                tested.collect()
            }
            _ => self.reader.symbols(place, scope),
        };
        for symbol in symbols {
            let (Symbol::At { path, .. } | Symbol::Key(path) | Symbol::Size(path)) = symbol else {
                continue;
            };
            let is_of_interest = !path.segments.is_empty() || path.root == Root::OldObject;
            if is_of_interest && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
}

/// Dependencies of an expression, itself, by variables and by match conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// An expression that does not compile.
    Broken,
    /// Params or the authorizer, which no request brings.
    More,
    /// Nothing: it is a constant.
    Nothing,
    /// The request.
    Request,
}

/// Dependencies of the validation at `index`.
#[must_use]
pub fn reads(policy: &CompiledPolicy, index: usize) -> Reads {
    let expressions = policy.expressions();
    let by_name: HashMap<&str, usize> = expressions
        .iter()
        .enumerate()
        .filter(|(_, expression)| expression.role == Role::Variable)
        .filter_map(|(n, expression)| Some((expression.name.as_deref()?, n)))
        .collect();
    let conditions = expressions.iter().enumerate();
    let conditions = conditions
        .filter(|(_, expression)| expression.role == Role::MatchCondition)
        .map(|(n, _)| (n, false));
    let mut open = vec![(index, true)];
    open.extend(conditions);
    let mut seen = BTreeSet::new();
    let (mut has_more, mut has_request) = (false, false);
    while let Some((n, is_of_it)) = open.pop() {
        if !seen.insert(n) {
            continue;
        }
        let ast = expressions.get(n).and_then(|found| found.parsed().ok());
        let (Some(ast), Some(_)) = (ast, policy.program(n)) else {
            return Reads::Broken;
        };
        for (_, expr) in ast.iter() {
            match expr {
                Expr::Ident(name) => {
                    let name = name.trim_start_matches('.');
                    has_more |= name == "params" || name.starts_with("authorizer");
                    let roots = ["object", "oldObject", "request", "namespaceObject"];
                    has_request |= is_of_it && roots.contains(&name);
                }
                Expr::Select { field, .. } => {
                    let variable = by_name.get(&**field);
                    open.extend(variable.map(|variable| (*variable, is_of_it)));
                }
                _ => {}
            }
        }
    }
    match (has_more, has_request) {
        (true, _) => Reads::More,
        (false, true) => Reads::Request,
        (false, false) => Reads::Nothing,
    }
}
