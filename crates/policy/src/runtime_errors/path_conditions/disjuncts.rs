//! Translates a branch condition to its disjuncts, by the structure of its expression.

use std::rc::Rc;

use super::calls::{boolean_disjuncts, call_disjuncts, constant_disjuncts, operands_present};
use crate::runtime_errors::symbolic::constant_conditions::constant_truth;
use crate::runtime_errors::symbolic::{
    BranchCondition, ComprehensionKind, Disjunct, ExprRef, Scope, SymbolicEvaluator, SymbolicValue,
    comprehension_kind,
};
use cel::ast::{Comprehension, Expr, ExprId, Literal};
use kubernetes::validity::Constraint;
use serde_json::Value as Json;

/// Returns the disjuncts of a branch condition. They are cached for expressions outside of comprehensions.
pub(crate) fn disjuncts(
    evaluator: &SymbolicEvaluator<'_>,
    condition: &BranchCondition,
) -> Rc<[Disjunct]> {
    match condition {
        BranchCondition::HasElements(path, n) => {
            [Disjunct::from_constraint(path, Constraint::MinLen(*n))].into()
        }
        BranchCondition::Evaluates(node, scope, expected) if scope.is_empty() => {
            let key = (*node, *expected);
            if let Some(known) = evaluator.disjuncts.borrow().get(&key) {
                return Rc::clone(known);
            }
            let disjuncts: Rc<[Disjunct]> =
                expression_disjuncts(evaluator, *node, scope, *expected).into();
            evaluator
                .disjuncts
                .borrow_mut()
                .insert(key, Rc::clone(&disjuncts));
            disjuncts
        }
        BranchCondition::Evaluates(node, scope, expected) => {
            expression_disjuncts(evaluator, *node, scope, *expected).into()
        }
    }
}

/// Returns the disjuncts for which the expression at `node` evaluates to `expected`.
fn expression_disjuncts(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
    expected: bool,
) -> Vec<Disjunct> {
    let node_at = |id| node.with_id(id);
    let is = |id, expected| BranchCondition::Evaluates(node_at(id), scope.clone(), expected);
    if let Some(n) = evaluator.read_variable(node) {
        let Some(ast) = evaluator.ast(n) else {
            return Vec::new();
        };
        let id = ast.root();
        return vec![Disjunct::from_conditions(vec![BranchCondition::Evaluates(
            ExprRef { index: n, id },
            Scope::default(),
            expected,
        )])];
    }
    let is_test = matches!(
        evaluator.expr(node),
        Expr::Select {
            test_only: true,
            ..
        }
    );
    if is_test && evaluator.tested_variable(node).is_some() {
        return constant_disjuncts(expected);
    }
    if let Some((operand, value)) = compared_condition(evaluator, node, scope) {
        return vec![Disjunct::from_conditions(vec![is(
            operand,
            value == expected,
        )])];
    }
    match evaluator.expr(node) {
        Expr::Literal(Literal::Bool(value)) => constant_disjuncts(*value == expected),
        Expr::Select {
            operand,
            field,
            test_only: true,
        } => {
            let operands = evaluator.evaluate(node_at(*operand), scope);
            let paths = operands.iter().filter_map(|symbolic| match symbolic {
                SymbolicValue::Input { path, .. } => path.field(field),
                _ => None,
            });
            let constraint = if expected {
                Constraint::Present
            } else {
                Constraint::Absent
            };
            let mut disjuncts: Vec<_> = paths
                .map(|path| Disjunct::from_constraint(&path, constraint.clone()))
                .collect();
            if disjuncts.is_empty() {
                disjuncts.push(Disjunct::default());
            }
            disjuncts
        }
        Expr::Call {
            function,
            target,
            args,
        } => match (&**function, target, &**args) {
            ("!_", None, [arg]) => vec![Disjunct::from_conditions(vec![is(*arg, !expected)])],
            ("_&&_", None, args) if expected => {
                vec![Disjunct::from_conditions(
                    args.iter().rev().map(|arg| is(*arg, true)).collect(),
                )]
            }
            ("_||_", None, args) if !expected => {
                vec![Disjunct::from_conditions(
                    args.iter().rev().map(|arg| is(*arg, false)).collect(),
                )]
            }
            ("_&&_" | "_||_", None, args) => args
                .iter()
                .map(|arg| Disjunct::from_conditions(vec![is(*arg, expected)]))
                .collect(),
            ("_?_:_", None, [condition, truthy, falsy]) => vec![
                Disjunct::from_conditions(vec![is(*truthy, expected), is(*condition, true)]),
                Disjunct::from_conditions(vec![is(*falsy, expected), is(*condition, false)]),
            ],
            _ => call_disjuncts(evaluator, node, scope, (function, *target, args), expected),
        },
        Expr::Comprehension(fold) => {
            comprehension_disjuncts(evaluator, node, fold, scope, expected)
        }
        _ => {
            let alternatives = evaluator.evaluate(node, scope);
            let disjuncts: Vec<_> = alternatives
                .iter()
                .flat_map(|it| boolean_disjuncts(it, expected))
                .collect();
            if disjuncts.is_empty() {
                return vec![operands_present(evaluator, node, scope)];
            }
            disjuncts
        }
    }
}

/// Returns the condition that is compared with a boolean literal, as in `has(a.b) == true`, and the value of the
/// condition for which the comparison is true. `None` for other expressions, and if the compared operand is an input.
fn compared_condition(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
) -> Option<(ExprId, bool)> {
    let ast = evaluator.ast(node.index)?;
    let (function, [left, right]) = ast.global_call(node.id)? else {
        return None;
    };
    let is_equal = match function {
        "_==_" => true,
        "_!=_" => false,
        _ => return None,
    };
    let (operand, value) = match (ast.expr(*left), ast.expr(*right)) {
        (_, Expr::Literal(Literal::Bool(value))) => (*left, *value),
        (Expr::Literal(Literal::Bool(value)), _) => (*right, *value),
        _ => return None,
    };
    let values = evaluator.evaluate(node.with_id(operand), scope);
    let is_input = |value: &SymbolicValue| matches!(value, SymbolicValue::Input { .. });
    (!values.iter().any(is_input)).then_some((operand, value == is_equal))
}

/// Returns the disjuncts for which a comprehension evaluates to `expected`.
fn comprehension_disjuncts(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    fold: &Comprehension,
    scope: &Scope,
    expected: bool,
) -> Vec<Disjunct> {
    if let Some(value) = constant_truth(evaluator, node, scope) {
        return constant_disjuncts(value == expected);
    }
    let node_at = |id| node.with_id(id);
    let kind = comprehension_kind(evaluator, node.index, fold);
    let test = match kind {
        ComprehensionKind::All(test) => Some((test, true)),
        ComprehensionKind::Exists(test) | ComprehensionKind::ExistsOne(test) => Some((test, false)),
        ComprehensionKind::Bind => {
            let bound = evaluator.evaluate(node_at(fold.accu_init), scope);
            let scope = scope.with(&fold.accu_var, bound);
            return vec![Disjunct::from_conditions(vec![BranchCondition::Evaluates(
                node_at(fold.result),
                scope,
                expected,
            )])];
        }
        ComprehensionKind::FilterMap(..) | ComprehensionKind::Other => None,
    };
    let Some((test, is_all)) = test else {
        return vec![operands_present(evaluator, node, scope)];
    };
    let mut disjuncts = Vec::new();
    // An empty range also has the expected result: `all` is true, and `exists` is false.
    if is_all == expected {
        let range = evaluator.evaluate(node_at(fold.iter_range), scope);
        let empty = range.iter().filter_map(|symbolic| match symbolic {
            SymbolicValue::Input { path, default, .. } => Some(if has_scalar(default.as_ref()) {
                Disjunct::from_constraint(path, Constraint::Absent)
            } else {
                Disjunct::from_constraint(path, Constraint::MaxLen(0))
            }),
            _ => None,
        });
        disjuncts.extend(empty);
    }
    let iterations = evaluator.iterations(node.index, fold, scope, 0);
    for (iteration, mut conditions) in iterations.clone() {
        conditions.push(BranchCondition::Evaluates(
            node_at(test),
            iteration,
            expected,
        ));
        disjuncts.push(Disjunct::from_conditions(conditions));
    }
    if evaluator.has_several_elements() && iterations.len() > 1 {
        let is_one = matches!(kind, ComprehensionKind::ExistsOne(_));
        disjuncts.extend(combined_disjuncts(
            node_at(test),
            &iterations,
            expected,
            is_one,
        ));
    }
    if disjuncts.is_empty() {
        disjuncts.push(Disjunct::default());
    }
    disjuncts
}

/// Returns true for a default other than an empty map. An empty map may also be the value of a present input.
fn has_scalar(default: Option<&Json>) -> bool {
    default.is_some_and(|default| !default.is_object())
}

/// Returns disjuncts that constrain several elements of a list. In the first disjunct, the test has one result for all
/// elements. In the second disjunct, the test has the other result for the first element. For `exists_one`, returns
/// only the disjunct for which the macro is `expected`.
fn combined_disjuncts(
    test: ExprRef,
    iterations: &[(Scope, Vec<BranchCondition>)],
    expected: bool,
    is_one: bool,
) -> Vec<Disjunct> {
    let combined = |result: &dyn Fn(usize) -> bool| {
        let iterations = iterations.iter().enumerate();
        let conditions = iterations.flat_map(|(n, (iteration, conditions))| {
            let is = BranchCondition::Evaluates(test, iteration.clone(), result(n));
            conditions.iter().cloned().chain([is])
        });
        Disjunct::from_conditions(conditions.collect())
    };
    match (is_one, expected) {
        (true, false) => vec![combined(&|_| true)],
        (true, true) => vec![combined(&|n| n == 0)],
        (false, _) => vec![combined(&|_| expected), combined(&|n| (n == 0) == expected)],
    }
}
