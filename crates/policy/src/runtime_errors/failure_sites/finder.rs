//! Visits the expressions of a policy and collects failure sites with their path conditions.
//!
//! The visitor extends the path condition at each `&&`, `||`, `?:` and macro. A variable may be read under several path
//! conditions. Its expression is visited once per path condition.

use std::collections::HashMap;

use super::causes::parsed_string;
use super::{FailureCause, FailureSite};
use crate::expressions::Role;
use crate::runtime_errors::path_conditions::PathCondition;
use crate::runtime_errors::symbolic::{
    BranchCondition, ComprehensionKind, ExprRef, Scope, SymbolicEvaluator, SymbolicValue,
    comprehension_kind,
};
use cel::ast::{Comprehension, Expr, ExprId};

/// Maximum number of failure sites for one policy and kind. This is also the maximum number of recorded target nodes.
const MAX_SITES: usize = 600;

/// Maximum nesting of visited expressions.
const MAX_DEPTH: usize = 150;

/// Maximum number of path conditions for one variable. Further reads of the variable are ignored.
const MAX_READS_PER_VARIABLE: usize = 3;

/// Finds the failure sites of the policy, and the path conditions of the nodes that `is_target` selects.
pub(crate) fn find_all(
    evaluator: &SymbolicEvaluator<'_>,
    is_target: Option<&dyn Fn(ExprRef) -> bool>,
) -> (Vec<FailureSite>, Vec<(ExprRef, PathCondition)>) {
    let mut finder = FailureSiteFinder {
        evaluator,
        sites: Vec::new(),
        is_target,
        reached: Vec::new(),
        variable_reads: HashMap::new(),
    };
    finder.run();
    (finder.sites, finder.reached)
}

/// A visitor of all expressions of a policy, in the order of its fields. Variables are visited after the other
/// expressions, from last to first.
pub(super) struct FailureSiteFinder<'a, 'r> {
    pub(super) evaluator: &'r SymbolicEvaluator<'a>,
    pub(super) sites: Vec<FailureSite>,
    /// Selects the nodes whose path conditions are collected.
    is_target: Option<&'r dyn Fn(ExprRef) -> bool>,
    reached: Vec<(ExprRef, PathCondition)>,
    /// The path conditions of the reads of each variable.
    variable_reads: HashMap<usize, Vec<PathCondition>>,
}

impl FailureSiteFinder<'_, '_> {
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
        let is_true = |node: &ExprRef| BranchCondition::Evaluates(*node, Scope::default(), true);
        let all_true = conditions.iter().map(is_true).collect();
        let after_conditions = PathCondition::default().with_all(all_true);
        let mut validation = None;
        for (n, expression) in expressions.iter().enumerate() {
            if !self.evaluator.policy.compiles(n) {
                continue;
            }
            let Some(node) = root(n) else { continue };
            let path_condition = match expression.role {
                Role::Variable => continue,
                Role::MatchCondition => {
                    // An error of this match condition has an effect only if no other is false, so the others are soft
                    // conditions.
                    let others = conditions.iter().filter(|other| **other != node);
                    let true_others = others.map(is_true);
                    true_others.fold(PathCondition::default(), |path_condition, condition| {
                        path_condition.with(condition, true)
                    })
                }
                Role::Validation => {
                    validation = Some(node);
                    after_conditions.clone()
                }
                Role::MessageExpression => match validation {
                    // A message expression is evaluated only if its validation is false.
                    Some(node) => after_conditions.with(
                        BranchCondition::Evaluates(node, Scope::default(), false),
                        false,
                    ),
                    None => continue,
                },
                Role::AuditAnnotation | Role::ApplyConfiguration | Role::JsonPatch => {
                    after_conditions.clone()
                }
            };
            self.visit(node, None, &Scope::default(), &path_condition, 0);
        }
        // Variables are visited from last to first, because a variable can only read earlier ones.
        for (n, expression) in expressions.iter().enumerate().rev() {
            if expression.role != Role::Variable || !self.evaluator.policy.compiles(n) {
                continue;
            }
            let Some(node) = root(n) else { continue };
            for path_condition in self.variable_reads.remove(&n).unwrap_or_default() {
                self.visit(node, None, &Scope::default(), &path_condition, 0);
            }
        }
    }

    /// Records the path condition of `node` if it is a target node.
    fn record_target(&mut self, node: ExprRef, path_condition: &PathCondition) {
        if self.reached.len() < MAX_SITES && self.is_target.is_some_and(|is| is(node)) {
            self.reached.push((node, path_condition.clone()));
        }
    }

    fn visit(
        &mut self,
        node: ExprRef,
        chain: Option<ExprId>,
        scope: &Scope,
        path_condition: &PathCondition,
        depth: usize,
    ) {
        if depth > MAX_DEPTH || self.sites.len() >= MAX_SITES || !self.evaluator.take_step() {
            return;
        }
        self.record_target(node, path_condition);
        if let Some(n) = self.evaluator.evaluated_variable(node) {
            let variable_reads = self.variable_reads.entry(n).or_default();
            if variable_reads.len() < MAX_READS_PER_VARIABLE {
                variable_reads.push(path_condition.clone());
            }
            return;
        }
        let depth = depth.saturating_add(1);
        let node_at = |id| node.with_id(id);
        match self.evaluator.expr(node) {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select {
                operand,
                field,
                test_only,
            } => {
                let chain = if *test_only {
                    None
                } else {
                    Some(chain.unwrap_or(node.id))
                };
                self.visit(node_at(*operand), chain, scope, path_condition, depth);
                if !*test_only {
                    self.add_null(node, node_at(*operand), scope, path_condition);
                }
                if let Some(chain) = chain {
                    for symbolic in self.evaluator.evaluate(node_at(*operand), scope) {
                        self.add_selection(node, chain, &symbolic, path_condition, |path| {
                            path.field(field)
                        });
                    }
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => self.visit_call(
                node,
                chain,
                scope,
                path_condition,
                (function, *target, args),
                depth,
            ),
            Expr::List { elements, .. } => {
                for id in elements {
                    self.visit(node_at(*id), None, scope, path_condition, depth);
                }
            }
            Expr::Map(entries) => {
                for entry in entries {
                    self.visit(node_at(entry.key), None, scope, path_condition, depth);
                    self.visit(node_at(entry.value), None, scope, path_condition, depth);
                }
            }
            Expr::Struct { fields, .. } => {
                for field in fields {
                    self.visit(node_at(field.value), None, scope, path_condition, depth);
                }
            }
            Expr::Comprehension(fold) => {
                self.visit_comprehension(node, fold, scope, path_condition, depth);
            }
        }
    }

    fn visit_call(
        &mut self,
        node: ExprRef,
        chain: Option<ExprId>,
        scope: &Scope,
        path_condition: &PathCondition,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
        depth: usize,
    ) {
        let node_at = |id| node.with_id(id);
        let is = |id, expected| BranchCondition::Evaluates(node_at(id), scope.clone(), expected);
        match (function, target, args) {
            ("_&&_" | "_||_", None, [left, right]) => {
                // An error of one operand has an effect only if the other operand does not absorb it. An operand
                // absorbs errors if it is false for `&&`, or true for `||`.
                let goes_on = function == "_&&_";
                let left_condition = path_condition.with(is(*right, goes_on), true);
                self.visit(node_at(*left), None, scope, &left_condition, depth);
                let right_condition = path_condition.with(is(*left, goes_on), false);
                self.visit(node_at(*right), None, scope, &right_condition, depth);
            }
            ("_?_:_", None, [condition, truthy, falsy]) => {
                self.visit(node_at(*condition), None, scope, path_condition, depth);
                let then = path_condition.with(is(*condition, true), false);
                self.visit(node_at(*truthy), None, scope, &then, depth);
                let otherwise = path_condition.with(is(*condition, false), false);
                self.visit(node_at(*falsy), None, scope, &otherwise, depth);
            }
            ("_[_]", None, [operand, index]) => {
                let chain = chain.unwrap_or(node.id);
                self.visit(node_at(*operand), Some(chain), scope, path_condition, depth);
                self.visit(node_at(*index), None, scope, path_condition, depth);
                self.add_null(node, node_at(*operand), scope, path_condition);
                for symbolic in self.evaluator.evaluate(node, scope) {
                    if let SymbolicValue::Input {
                        path,
                        is_optional: false,
                        ..
                    } = symbolic
                    {
                        self.add_absent(node, chain, path, path_condition);
                    }
                }
                self.add_short_lists(node, (*operand, *index), scope, path_condition);
            }
            ("_/_" | "_%_", None, [dividend, divisor]) => {
                self.visit(node_at(*dividend), None, scope, path_condition, depth);
                self.visit(node_at(*divisor), None, scope, path_condition, depth);
                self.add_int_or_string(node, scope, path_condition, (function, target, args));
                for id in [*dividend, *divisor] {
                    self.add_number_type(node, node_at(id), scope, path_condition);
                }
                for symbolic in self.evaluator.evaluate(node_at(*divisor), scope) {
                    if let SymbolicValue::Input { path, .. } | SymbolicValue::Size(path) = symbolic
                        && self.evaluator.may_be_zero(&path)
                    {
                        self.add_cause(node, path, FailureCause::ZeroDivisor, path_condition);
                    }
                }
            }
            ("value", Some(target), []) => {
                let inner = self.evaluator.evaluate(node_at(target), scope);
                self.visit(node_at(target), None, scope, path_condition, depth);
                for symbolic in inner {
                    if let SymbolicValue::Input {
                        path,
                        is_optional: true,
                        ..
                    } = symbolic
                    {
                        self.add_absent(node, node.id, path, path_condition);
                    }
                }
            }
            (_, target, args) => {
                for id in target.iter().chain(args) {
                    self.visit(node_at(*id), None, scope, path_condition, depth);
                    if !matches!(function, "_==_" | "_!=_") {
                        self.add_null(node, node_at(*id), scope, path_condition);
                        self.add_number_type(node, node_at(*id), scope, path_condition);
                    }
                }
                self.add_int_or_string(node, scope, path_condition, (function, target, args));
                self.add_failing_defaults(node, scope, path_condition, (function, target, args));
                let text = parsed_string(function, target, args)
                    .or_else(|| self.integer_quantity(node, function, target));
                if let Some(text) = text {
                    for symbolic in self.evaluator.evaluate(node_at(text), scope) {
                        if let SymbolicValue::Input { path, .. } = symbolic
                            && self.evaluator.is_free_string(&path)
                        {
                            self.add_cause(node, path, FailureCause::InvalidString, path_condition);
                        }
                    }
                }
            }
        }
    }

    /// Returns the node `x` if the call is `quantity(x).asInteger()`.
    fn integer_quantity(
        &self,
        node: ExprRef,
        function: &str,
        target: Option<ExprId>,
    ) -> Option<ExprId> {
        let target = target.filter(|_| function == "asInteger")?;
        match self.evaluator.expr(node.with_id(target)) {
            Expr::Call { function, args, .. } if &**function == "quantity" => args.first().copied(),
            _ => None,
        }
    }

    fn visit_comprehension(
        &mut self,
        node: ExprRef,
        fold: &Comprehension,
        scope: &Scope,
        path_condition: &PathCondition,
        depth: usize,
    ) {
        let node_at = |id| node.with_id(id);

        let kind = comprehension_kind(self.evaluator, node.index, fold);
        if let ComprehensionKind::Bind = kind {
            self.visit(node_at(fold.accu_init), None, scope, path_condition, depth);
            let bound = self.evaluator.evaluate(node_at(fold.accu_init), scope);
            let scope = scope.with(&fold.accu_var, bound);
            self.visit(node_at(fold.result), None, &scope, path_condition, depth);
            return;
        }
        self.visit(node_at(fold.iter_range), None, scope, path_condition, depth);
        let range = node_at(fold.iter_range);
        self.add_null(range, range, scope, path_condition);
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
            let path_condition = path_condition.with_all(reached);
            self.record_target(node_at(fold.loop_step), &path_condition);
            match &kind {
                ComprehensionKind::All(test)
                | ComprehensionKind::Exists(test)
                | ComprehensionKind::ExistsOne(test) => {
                    self.visit(node_at(*test), None, &iteration, &path_condition, depth);
                }
                ComprehensionKind::FilterMap(filter, transform) => {
                    let mut path_condition = path_condition;
                    if let Some(filter) = filter {
                        self.visit(node_at(*filter), None, &iteration, &path_condition, depth);
                        let passes =
                            BranchCondition::Evaluates(node_at(*filter), iteration.clone(), true);
                        path_condition = path_condition.with(passes, false);
                    }
                    self.visit(
                        node_at(*transform),
                        None,
                        &iteration,
                        &path_condition,
                        depth,
                    );
                }
                ComprehensionKind::Bind | ComprehensionKind::Other => {
                    self.visit(
                        node_at(fold.loop_step),
                        None,
                        &iteration,
                        &path_condition,
                        depth,
                    );
                }
            }
        }
    }
}
