//! Candidates: the places of a policy that fail where something is absent or has an unfit value, and the goals for an
//! evaluation to get there.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::free_values::sample_int_and_string;
use super::symbol::{
    BranchCondition, ComprehensionKind, ExprRef, Scope, SymbolicEvaluator, SymbolicValue,
    comprehension_kind,
};
use crate::expressions::Role;
use cel::ast::{Comprehension, Expr, ExprId, Literal};
use cel::source::Location;
use kubernetes::validity::{Constraint, FieldPath, Root};

/// The most candidates of one policy for one kind.
const MAX_CANDIDATES: usize = 600;

/// How deep expressions are searched.
const MAX_DEPTH: usize = 150;

/// The most ways to a variable that are followed.
const MAX_USES: usize = 3;

/// A place that fails where something is absent, or has an unfit value.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The place.
    pub(super) node: ExprRef,
    /// The part of the request that makes it fail.
    pub(super) path: FieldPath,
    /// The reason for which it fails there.
    pub(super) cause: Cause,
    /// The outermost selection or index of the chain that the place is in.
    pub(super) chain: ExprId,
    /// The goals for an evaluation to come to the place.
    pub(super) goals: Goals,
}

/// The cause of a failure, at a path of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Nothing is there; a root that is absent is null.
    Absent,
    /// Null is there, which nothing can be done with.
    Null,
    /// A number of the other sort, whole or not, which the call cannot take beside what it has.
    Number,
    /// A text that the call cannot take.
    Text,
    /// A text that has fewer parts than the index asks for.
    FewParts(usize),
    /// A list of which a macro leaves fewer elements than the index asks for.
    FewElements(usize),
    /// The number 0, or nothing to be counted, in a divisor.
    Zero,
    /// An integer where a text is taken, or a text where an integer is: it may be either.
    OtherType,
}

impl Candidate {
    /// The needs at the path that may make the place fail, each to be tried by itself.
    pub(super) fn edits(&self, evaluator: &SymbolicEvaluator<'_>) -> Vec<Constraint> {
        let shape = evaluator.shape(&self.path);
        let is_collection = shape
            .as_ref()
            .is_some_and(|shape| shape.is_list() || shape.is_map());
        let is_own = shape.is_some_and(|shape| shape.is_own());
        match self.cause {
            Cause::Absent => vec![Constraint::Absent],
            Cause::Null => vec![Constraint::Equals(Json::Null)],
            Cause::Number => vec![
                Constraint::Equals(json!(1)),
                Constraint::Equals(json!(1.5)),
                Constraint::Present,
            ],
            // The text that the goals ask for is tried first.
            Cause::Text | Cause::FewParts(_) => vec![
                Constraint::Present,
                Constraint::Equals(json!("example")),
                Constraint::Equals(json!("a")),
            ],
            Cause::FewElements(0) => vec![Constraint::Present, Constraint::Absent],
            Cause::FewElements(n) => vec![
                Constraint::Present,
                Constraint::MaxLen(n),
                Constraint::Absent,
            ],
            Cause::Zero if is_collection && is_own => vec![Constraint::Absent],
            Cause::Zero if is_collection => vec![Constraint::Absent, Constraint::MaxLen(0)],
            Cause::Zero => vec![Constraint::Equals(json!(0))],
            Cause::OtherType => sample_int_and_string(&self.path)
                .map(Constraint::Equals)
                .to_vec(),
        }
    }
}

/// Goals, the innermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Goals(Option<Rc<Link>>);

#[derive(Debug)]
struct Link {
    goal: BranchCondition,
    /// True of a goal without which an error is of no effect, and which another error may serve as well.
    is_soft: bool,
    outer: Goals,
}

impl Goals {
    fn with(&self, goal: BranchCondition, is_soft: bool) -> Self {
        Self(Some(Rc::new(Link {
            goal,
            is_soft,
            outer: self.clone(),
        })))
    }

    fn with_all(&self, goals: Vec<BranchCondition>) -> Self {
        goals
            .into_iter()
            .fold(self.clone(), |all, goal| all.with(goal, false))
    }

    /// The goals, outermost first to be reached; the soft ones only where they are asked for.
    pub(super) fn list(&self, with_soft: bool) -> Vec<BranchCondition> {
        let mut goals = Vec::new();
        let mut next = self.0.as_deref();
        while let Some(link) = next {
            if with_soft || !link.is_soft {
                goals.push(link.goal.clone());
            }
            next = link.outer.0.as_deref();
        }
        goals
    }

    /// The choices to ask for the soft goals or not, each to be tried by itself.
    pub(super) fn attempts(&self) -> &'static [bool] {
        if self.has_soft() {
            &[false, true]
        } else {
            &[false]
        }
    }

    /// Reports whether there are soft goals.
    fn has_soft(&self) -> bool {
        let mut next = self.0.as_deref();
        while let Some(link) = next {
            if link.is_soft {
                return true;
            }
            next = link.outer.0.as_deref();
        }
        false
    }
}

/// Finds the candidates of all expressions, in the order of the policy's fields.
pub(super) fn find(evaluator: &SymbolicEvaluator<'_>) -> Vec<Candidate> {
    find_and_reach(evaluator, &HashMap::new()).0
}

/// Finds the candidates, and the goals for an evaluation to get to each of `places`.
pub(super) fn find_and_reach(
    evaluator: &SymbolicEvaluator<'_>,
    places: &HashMap<ExprRef, Location>,
) -> (Vec<Candidate>, Vec<(ExprRef, Goals)>) {
    search(evaluator, places, false)
}

/// [`find_and_reach`], in mutations as well.
pub(super) fn find_in_mutations(
    evaluator: &SymbolicEvaluator<'_>,
    places: &HashMap<ExprRef, Location>,
) -> (Vec<Candidate>, Vec<(ExprRef, Goals)>) {
    search(evaluator, places, true)
}

fn search(
    evaluator: &SymbolicEvaluator<'_>,
    places: &HashMap<ExprRef, Location>,
    with_mutations: bool,
) -> (Vec<Candidate>, Vec<(ExprRef, Goals)>) {
    let is_wanted = |node| places.contains_key(&node);
    let mut finder = Finder {
        with_mutations,
        evaluator,
        found: Vec::new(),
        is_wanted: (!places.is_empty()).then_some(&is_wanted),
        reached: Vec::new(),
        uses: HashMap::new(),
    };
    finder.run();
    (finder.found, finder.reached)
}

struct Finder<'a, 'r> {
    with_mutations: bool,
    evaluator: &'r SymbolicEvaluator<'a>,
    found: Vec<Candidate>,
    /// Which places are to be reached.
    is_wanted: Option<&'r dyn Fn(ExprRef) -> bool>,
    reached: Vec<(ExprRef, Goals)>,
    /// The goals with which the variables are read, by their indices.
    uses: HashMap<usize, Vec<Goals>>,
}

impl Finder<'_, '_> {
    fn run(&mut self) {
        let expressions = self.evaluator.policy.expressions();
        let root = |n| {
            let id = self.evaluator.ast(n)?.root();
            Some(ExprRef { index: n, id })
        };
        let conditions: Vec<_> = (0..expressions.len())
            .filter(|n| {
                expressions
                    .get(*n)
                    .is_some_and(|e| e.role == Role::MatchCondition)
            })
            .filter_map(root)
            .collect();
        let is_met = |node: &ExprRef| BranchCondition::Evaluates(*node, Scope::default(), true);
        let all_met = conditions.iter().map(is_met).collect();
        let after_conditions = Goals::default().with_all(all_met);
        let mut validation = None;
        for (n, expression) in expressions.iter().enumerate() {
            if !self.evaluator.policy.compiles(n) {
                continue;
            }
            let Some(node) = root(n) else { continue };
            let goals = match expression.role {
                // Reviews, which have to confirm what is found, do not come to mutations.
                Role::ApplyConfiguration | Role::JsonPatch if self.with_mutations => {
                    after_conditions.clone()
                }
                Role::Variable | Role::ApplyConfiguration | Role::JsonPatch => continue,
                Role::MatchCondition => {
                    // A condition that is false hides the error of another.
                    let others = conditions.iter().filter(|other| **other != node);
                    let met = others.map(is_met);
                    met.fold(Goals::default(), |goals, goal| goals.with(goal, true))
                }
                Role::Validation => {
                    validation = Some(node);
                    after_conditions.clone()
                }
                Role::MessageExpression => match validation {
                    // It is of no use where the validation holds.
                    Some(node) => after_conditions.with(
                        BranchCondition::Evaluates(node, Scope::default(), false),
                        false,
                    ),
                    None => continue,
                },
                Role::AuditAnnotation => after_conditions.clone(),
            };
            self.visit(node, None, &Scope::default(), &goals, 0);
        }
        // A variable reads those before it.
        for (n, expression) in expressions.iter().enumerate().rev() {
            if expression.role != Role::Variable || !self.evaluator.policy.compiles(n) {
                continue;
            }
            let Some(node) = root(n) else { continue };
            for goals in self.uses.remove(&n).unwrap_or_default() {
                self.visit(node, None, &Scope::default(), &goals, 0);
            }
        }
    }

    /// Keeps how an evaluation comes to `place`, where that is asked for.
    fn reach(&mut self, node: ExprRef, goals: &Goals) {
        if self.reached.len() < MAX_CANDIDATES && self.is_wanted.is_some_and(|is| is(node)) {
            self.reached.push((node, goals.clone()));
        }
    }

    fn visit(
        &mut self,
        node: ExprRef,
        chain: Option<ExprId>,
        scope: &Scope,
        goals: &Goals,
        depth: usize,
    ) {
        if depth > MAX_DEPTH || self.found.len() >= MAX_CANDIDATES || !self.evaluator.take_step() {
            return;
        }
        self.reach(node, goals);
        let depth = depth.saturating_add(1);
        let node_at = |id| ExprRef {
            index: node.index,
            id,
        };
        match self.evaluator.expr(node) {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select {
                operand,
                field,
                test_only,
            } => {
                if let Some(n) = self.evaluator.read_variable(node) {
                    let uses = self.uses.entry(n).or_default();
                    if uses.len() < MAX_USES {
                        uses.push(goals.clone());
                    }
                    return;
                }
                let chain = if *test_only {
                    None
                } else {
                    Some(chain.unwrap_or(node.id))
                };
                self.visit(node_at(*operand), chain, scope, goals, depth);
                if !*test_only {
                    self.add_nulls(node, node_at(*operand), scope, goals);
                }
                if let Some(chain) = chain {
                    for symbolic in self.evaluator.evaluate(node_at(*operand), scope) {
                        self.add_selection(node, chain, &symbolic, goals, |path| path.field(field));
                    }
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => self.visit_call(node, chain, scope, goals, (function, *target, args), depth),
            Expr::List { elements, .. } => {
                for id in elements {
                    self.visit(node_at(*id), None, scope, goals, depth);
                }
            }
            Expr::Map(entries) => {
                for entry in entries {
                    self.visit(node_at(entry.key), None, scope, goals, depth);
                    self.visit(node_at(entry.value), None, scope, goals, depth);
                }
            }
            Expr::Struct { fields, .. } => {
                for field in fields {
                    self.visit(node_at(field.value), None, scope, goals, depth);
                }
            }
            Expr::Comprehension(fold) => self.visit_comprehension(node, fold, scope, goals, depth),
        }
    }

    fn visit_call(
        &mut self,
        node: ExprRef,
        chain: Option<ExprId>,
        scope: &Scope,
        goals: &Goals,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
        depth: usize,
    ) {
        let node_at = |id| ExprRef {
            index: node.index,
            id,
        };
        let is = |id, wanted| BranchCondition::Evaluates(node_at(id), scope.clone(), wanted);
        match (function, target, args) {
            ("_&&_" | "_||_", None, [left, right]) => {
                // The value of one side that decides hides an error of the other.
                let goes_on = function == "_&&_";
                let left_goals = goals.with(is(*right, goes_on), true);
                self.visit(node_at(*left), None, scope, &left_goals, depth);
                let right_goals = goals.with(is(*left, goes_on), false);
                self.visit(node_at(*right), None, scope, &right_goals, depth);
            }
            ("_?_:_", None, [condition, truthy, falsy]) => {
                self.visit(node_at(*condition), None, scope, goals, depth);
                let then = goals.with(is(*condition, true), false);
                self.visit(node_at(*truthy), None, scope, &then, depth);
                let otherwise = goals.with(is(*condition, false), false);
                self.visit(node_at(*falsy), None, scope, &otherwise, depth);
            }
            ("_[_]", None, [operand, index]) => {
                let chain = chain.unwrap_or(node.id);
                self.visit(node_at(*operand), Some(chain), scope, goals, depth);
                self.visit(node_at(*index), None, scope, goals, depth);
                self.add_nulls(node, node_at(*operand), scope, goals);
                for symbolic in self.evaluator.evaluate(node, scope) {
                    if let SymbolicValue::Input {
                        path,
                        is_optional: false,
                        ..
                    } = symbolic
                    {
                        self.add(node, chain, path, goals);
                    }
                }
                self.add_short(node, (*operand, *index), scope, goals);
            }
            ("_/_" | "_%_", None, [dividend, divisor]) => {
                self.visit(node_at(*dividend), None, scope, goals, depth);
                self.visit(node_at(*divisor), None, scope, goals, depth);
                self.add_other_types(node, scope, goals, (function, target, args));
                for id in [*dividend, *divisor] {
                    self.add_numbers(node, node_at(id), scope, goals);
                }
                for symbolic in self.evaluator.evaluate(node_at(*divisor), scope) {
                    if let SymbolicValue::Input { path, .. } | SymbolicValue::Size(path) = symbolic
                        && self.evaluator.may_be_zero(&path)
                    {
                        self.add_cause(node, path, Cause::Zero, goals);
                    }
                }
            }
            ("value", Some(target), []) => {
                let inner = self.evaluator.evaluate(node_at(target), scope);
                self.visit(node_at(target), None, scope, goals, depth);
                for symbolic in inner {
                    if let SymbolicValue::Input {
                        path,
                        is_optional: true,
                        ..
                    } = symbolic
                    {
                        self.add(node, node.id, path, goals);
                    }
                }
            }
            (_, target, args) => {
                for id in target.iter().chain(args) {
                    self.visit(node_at(*id), None, scope, goals, depth);
                    if !matches!(function, "_==_" | "_!=_") {
                        self.add_nulls(node, node_at(*id), scope, goals);
                        self.add_numbers(node, node_at(*id), scope, goals);
                    }
                }
                self.add_other_types(node, scope, goals, (function, target, args));
                if let Some(text) = taken_text(function, target, args) {
                    for symbolic in self.evaluator.evaluate(node_at(text), scope) {
                        if let SymbolicValue::Input { path, .. } = symbolic
                            && self.evaluator.is_free_string(&path)
                        {
                            self.add_cause(node, path, Cause::Text, goals);
                        }
                    }
                }
            }
        }
    }

    /// Adds a call of which an operand may be an integer or a text.
    fn add_other_types(
        &mut self,
        node: ExprRef,
        scope: &Scope,
        goals: &Goals,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
    ) {
        if takes_any_type(function) {
            return;
        }
        for id in target.iter().chain(args) {
            let operand = ExprRef {
                index: node.index,
                id: *id,
            };
            self.add_operand(node, operand, (scope, goals), Cause::OtherType);
        }
    }

    /// Adds the index of a list that is made of something and may be too short.
    fn add_short(
        &mut self,
        node: ExprRef,
        (operand, index): (ExprId, ExprId),
        scope: &Scope,
        goals: &Goals,
    ) {
        let node_at = |id| ExprRef {
            index: node.index,
            id,
        };
        let Expr::Literal(Literal::Int(index)) = self.evaluator.expr(node_at(index)) else {
            return;
        };
        let Ok(index) = usize::try_from(*index) else {
            return;
        };
        for symbolic in self.evaluator.evaluate(node_at(operand), scope) {
            match &symbolic {
                SymbolicValue::SplitParts(path) if self.evaluator.is_free_string(path) => {
                    self.add_cause(node, path.clone(), Cause::FewParts(index), goals);
                }
                SymbolicValue::Comprehension(..) => {
                    if let Some((path, excluded)) = self.evaluator.short_list_conditions(&symbolic)
                    {
                        let goals = goals.with_all(excluded);
                        self.add_cause(node, path, Cause::FewElements(index), &goals);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds that `place` fails where the operand is null.
    fn add_nulls(&mut self, node: ExprRef, operand: ExprRef, scope: &Scope, goals: &Goals) {
        self.add_operand(node, operand, (scope, goals), Cause::Null);
    }

    /// Adds that `place` may fail where the operand is a number of the other sort.
    fn add_numbers(&mut self, node: ExprRef, operand: ExprRef, scope: &Scope, goals: &Goals) {
        self.add_operand(node, operand, (scope, goals), Cause::Number);
    }

    /// Adds that `place` may fail by `cause` where its operand may be so.
    fn add_operand(
        &mut self,
        node: ExprRef,
        operand: ExprRef,
        (scope, goals): (&Scope, &Goals),
        cause: Cause,
    ) {
        for symbolic in self.evaluator.evaluate(operand, scope) {
            let SymbolicValue::Input { path, .. } = symbolic else {
                continue;
            };
            let may_be = match cause {
                Cause::Null => self.evaluator.may_be_null(&path),
                Cause::Number => self.evaluator.may_be_int_or_double(&path),
                Cause::OtherType => self.evaluator.is_int_or_string(&path),
                _ => false,
            };
            if may_be {
                self.add_cause(node, path, cause, goals);
            }
        }
    }

    fn add_cause(&mut self, node: ExprRef, path: FieldPath, cause: Cause, goals: &Goals) {
        // What params hold is for who wrote the policy to see.
        if path.root == Root::Params || path.segments.is_empty() {
            return;
        }
        self.found.push(Candidate {
            node,
            path,
            cause,
            chain: node.id,
            goals: goals.clone(),
        });
    }

    fn visit_comprehension(
        &mut self,
        node: ExprRef,
        fold: &Comprehension,
        scope: &Scope,
        goals: &Goals,
        depth: usize,
    ) {
        let node_at = |id| ExprRef {
            index: node.index,
            id,
        };

        let kind = comprehension_kind(self.evaluator, node.index, fold);
        if let ComprehensionKind::Bind = kind {
            self.visit(node_at(fold.accu_init), None, scope, goals, depth);
            let bound = self.evaluator.evaluate(node_at(fold.accu_init), scope);
            let scope = scope.with(&fold.accu_var, bound);
            self.visit(node_at(fold.result), None, &scope, goals, depth);
            return;
        }
        self.visit(node_at(fold.iter_range), None, scope, goals, depth);
        let range = node_at(fold.iter_range);
        self.add_nulls(range, range, scope, goals);
        let mut iterations = self.evaluator.iterations(node.index, fold, scope, 0);
        if iterations.is_empty() {
            let unknown = scope.with(&fold.iter_var, vec![SymbolicValue::Unknown]);
            let unknown = match &fold.iter_var2 {
                Some(second) => unknown.with(second, vec![SymbolicValue::Unknown]),
                None => unknown,
            };
            iterations.push((unknown, Vec::new()));
        }
        for (iteration, reached) in iterations {
            let goals = goals.with_all(reached);
            self.reach(node_at(fold.loop_step), &goals);
            match &kind {
                ComprehensionKind::All(test)
                | ComprehensionKind::Exists(test)
                | ComprehensionKind::ExistsOne(test) => {
                    self.visit(node_at(*test), None, &iteration, &goals, depth);
                }
                ComprehensionKind::FilterMap(filter, transform) => {
                    let mut goals = goals;
                    if let Some(filter) = filter {
                        self.visit(node_at(*filter), None, &iteration, &goals, depth);
                        let passes =
                            BranchCondition::Evaluates(node_at(*filter), iteration.clone(), true);
                        goals = goals.with(passes, false);
                    }
                    self.visit(node_at(*transform), None, &iteration, &goals, depth);
                }
                ComprehensionKind::Bind | ComprehensionKind::Other => {
                    self.visit(node_at(fold.loop_step), None, &iteration, &goals, depth);
                }
            }
        }
    }

    fn add_selection(
        &mut self,
        node: ExprRef,
        chain: ExprId,
        operand: &SymbolicValue,
        goals: &Goals,
        step: impl Fn(&FieldPath) -> Option<FieldPath>,
    ) {
        let SymbolicValue::Input {
            path,
            is_optional: false,
            ..
        } = operand
        else {
            return;
        };
        if path.segments.is_empty() && path.root != Root::Request {
            self.add(node, chain, path.clone(), goals);
        }
        if let Some(selected) = step(path) {
            self.add(node, chain, selected, goals);
        }
    }

    fn add(&mut self, node: ExprRef, chain: ExprId, absent: FieldPath, goals: &Goals) {
        if !absent.segments.is_empty() && !self.evaluator.may_be_absent(&absent) {
            return;
        }
        self.found.push(Candidate {
            node,
            path: absent,
            cause: Cause::Absent,
            chain,
            goals: goals.clone(),
        });
    }
}

/// Reports whether a function takes integers and texts alike.
fn takes_any_type(function: &str) -> bool {
    matches!(
        function,
        "_==_"
            | "_!=_"
            | "@in"
            | "type"
            | "string"
            | "dyn"
            | "orValue"
            | "or"
            | "hasValue"
            | "optional.of"
            | "optional.ofNonZeroValue"
    )
}

/// The text that a call takes, and for some texts fails.
fn taken_text(function: &str, target: Option<ExprId>, args: &[ExprId]) -> Option<ExprId> {
    match (function, target, args) {
        (
            "int" | "uint" | "double" | "bool" | "duration" | "timestamp" | "quantity" | "ip"
            | "cidr" | "url" | "semver",
            None,
            [text, ..],
        ) => Some(*text),
        ("substring" | "charAt", Some(text), _) => Some(text),
        _ => None,
    }
}
