//! Evaluates conditions that have the same value in all requests for a kind, such as `object.kind == 'Pod'`.

use serde_json::Value as Json;

use super::{
    ComprehensionKind, ExprRef, Scope, SymbolicEvaluator, SymbolicValue, comprehension_kind,
};
use cel::ast::{Comprehension, Expr, ExprId, Literal};

/// Maximum nesting of an evaluated condition.
const MAX_DEPTH: usize = 20;

/// Maximum length of a list literal in a macro. A macro over a longer list is not evaluated.
const MAX_ELEMENTS: usize = 16;

/// Returns the value of the condition `node` if it is the same in all requests for the kind. Otherwise returns `None`.
pub(crate) fn constant_truth(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
) -> Option<bool> {
    constant_truth_at(evaluator, node, scope, 0)
}

fn constant_truth_at(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    scope: &Scope,
    depth: usize,
) -> Option<bool> {
    if depth > MAX_DEPTH || !evaluator.take_step() {
        return None;
    }
    let node_at = |id| node.with_id(id);
    let below = |id| constant_truth_at(evaluator, node_at(id), scope, depth.saturating_add(1));
    let evaluate = |id| evaluator.evaluate(node_at(id), scope);
    match evaluator.expr(node) {
        Expr::Literal(Literal::Bool(value)) => Some(*value),
        Expr::Select {
            test_only: false, ..
        } => {
            let n = evaluator.read_variable(node)?;
            let id = evaluator.ast(n)?.root();
            constant_truth_at(
                evaluator,
                ExprRef { index: n, id },
                &Scope::default(),
                depth.saturating_add(1),
            )
        }
        Expr::Call {
            function,
            target: None,
            args,
        } => match (&**function, &**args) {
            ("!_", [arg]) => below(*arg).map(|value| !value),
            ("_&&_", args) => conjunction(args.iter().map(|arg| below(*arg)), true),
            ("_||_", args) => conjunction(args.iter().map(|arg| below(*arg)), false),
            ("_==_", [left, right]) => constant_equality(&evaluate(*left), &evaluate(*right)),
            ("_!=_", [left, right]) => {
                constant_equality(&evaluate(*left), &evaluate(*right)).map(|value| !value)
            }
            ("@in" | "_in_", [element, of]) => {
                constant_membership(&evaluate(*element), &evaluate(*of))
            }
            _ => None,
        },
        Expr::Comprehension(fold) => comprehension_truth(evaluator, node, fold, scope, depth),
        _ => None,
    }
}

/// Evaluates `all` or `exists` over a list literal. `None` if the result is unknown.
fn comprehension_truth(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    fold: &Comprehension,
    scope: &Scope,
    depth: usize,
) -> Option<bool> {
    let node_at = |id: ExprId| node.with_id(id);
    let Expr::List { elements, .. } = evaluator.expr(node_at(fold.iter_range)) else {
        return None;
    };
    let (test, is_all) = match comprehension_kind(evaluator, node.index, fold) {
        ComprehensionKind::All(test) => (test, true),
        ComprehensionKind::Exists(test) => (test, false),
        ComprehensionKind::ExistsOne(_)
        | ComprehensionKind::FilterMap(..)
        | ComprehensionKind::Bind
        | ComprehensionKind::Other => return None,
    };
    if elements.len() > MAX_ELEMENTS || fold.iter_var2.is_some() {
        return None;
    }
    let iterations = elements.iter().map(|element| {
        let element = evaluator.evaluate(node_at(*element), scope);
        let scope = scope.with(&fold.iter_var, element);
        constant_truth_at(evaluator, node_at(test), &scope, depth.saturating_add(1))
    });
    conjunction(iterations, is_all)
}

/// Returns the conjunction of `parts` if `is_all`, and their disjunction otherwise. `None` if the result is unknown.
fn conjunction(parts: impl Iterator<Item = Option<bool>>, is_all: bool) -> Option<bool> {
    let mut is_open = false;
    for part in parts {
        match part {
            Some(value) if value != is_all => return Some(value),
            Some(_) => {}
            None => is_open = true,
        }
    }
    (!is_open).then_some(is_all)
}

/// Returns true if two constants are equal. `None` if one of the values is not constant.
pub(crate) fn constant_equality(left: &[SymbolicValue], right: &[SymbolicValue]) -> Option<bool> {
    Some(constant(left)? == constant(right)?)
}

/// Returns true if the constant `element` is in the list `of`. `None` if the result is unknown.
pub(crate) fn constant_membership(element: &[SymbolicValue], of: &[SymbolicValue]) -> Option<bool> {
    let element = constant(element)?;
    let [SymbolicValue::List(elements)] = of else {
        return None;
    };
    let equalities = elements.iter().map(|known| {
        constant_equality(
            std::slice::from_ref(known),
            &[SymbolicValue::Constant(element.clone())],
        )
    });
    conjunction(equalities, false)
}

fn constant(alternatives: &[SymbolicValue]) -> Option<&Json> {
    match alternatives {
        [SymbolicValue::Constant(value)] => Some(value),
        _ => None,
    }
}
