//! Finds expressions with the same operand twice, such as `object.spec.a == object.spec.a` and `has(a.b) && has(a.b)`.

use cel::ast::{Ast, Expr, ExprId, Literal};

use super::bounds::chains;
use super::path::{self, Operator};
use crate::rule::Rule;

/// Maximum number of compared nodes of an expression.
const MAX_NODES: usize = 2000;

/// A finding at a node.
pub(super) struct Repeat {
    pub(super) rule: Rule,
    pub(super) message: String,
    pub(super) fix: Option<String>,
}

/// Finds a comparison of a value with itself, or with the sum of itself and a number.
pub(super) fn comparison(ast: &Ast, id: ExprId) -> Option<Repeat> {
    let (operator, left, right) = path::operands(ast, id)?;
    let ((left, added), (right, added_right)) = (sum(ast, left), sum(ast, right));
    let difference = added.checked_sub(added_right)?;
    (reads_value(ast, left) && is_same(ast, left, right)).then_some(())?;
    let is_true = match operator {
        Operator::Equal => difference == 0,
        Operator::NotEqual => difference != 0,
        Operator::Less => difference < 0,
        Operator::LessOrEqual => difference <= 0,
        Operator::Greater => difference > 0,
        Operator::GreaterOrEqual => difference >= 0,
    };
    let mut nodes = ast.descendants(left).into_iter();
    let root = nodes.find_map(|id| match ast.expr(id) {
        Expr::Ident(name) if matches!(&**name, "object" | "oldObject") => Some(&**name),
        _ => None,
    });
    let fix = root.map(|root| match root {
        "object" => "did you mean `oldObject` on one side?".to_owned(),
        _ => "did you mean `object` on one side?".to_owned(),
    });
    Some(Repeat {
        rule: Rule::ConstantCondition,
        message: format!("both sides read the same value, so this is always {is_true}"),
        fix,
    })
}

/// Returns the operands of `&&` and `||` that are the same as the operand directly before them.
pub(super) fn operands(ast: &Ast) -> Vec<(ExprId, Repeat)> {
    let mut repeats = Vec::new();
    for (function, operands) in chains(ast) {
        let pairs = operands.iter().zip(operands.iter().skip(1));
        let pairs =
            pairs.filter(|(one, next)| reads_value(ast, **one) && is_same(ast, **one, **next));
        repeats.extend(pairs.map(|(_, next)| {
            let operator = if function == "_||_" { "||" } else { "&&" };
            let repeat = Repeat {
                rule: Rule::RepeatedOperand,
                message: format!("`{operator}` has the same operand twice"),
                fix: Some("correct or remove one of the two operands".to_owned()),
            };
            (*next, repeat)
        }));
    }
    repeats
}

/// Returns the operand and the added integer if `id` adds an integer to an operand. The integer is negative for a
/// subtraction. Otherwise, returns `id` and 0.
fn sum(ast: &Ast, id: ExprId) -> (ExprId, i64) {
    let number = |id: ExprId| match ast.expr(id) {
        Expr::Literal(Literal::Int(number)) => Some(*number),
        _ => None,
    };
    let sum = match ast.global_call(id) {
        Some(("_+_", &[left, right])) => match (number(left), number(right)) {
            (None, Some(added)) => Some((left, added)),
            (Some(added), None) => Some((right, added)),
            _ => None,
        },
        Some(("_-_", &[left, right])) if number(left).is_none() => {
            number(right).and_then(|it| Some((left, it.checked_neg()?)))
        }
        _ => None,
    };
    sum.unwrap_or((id, 0))
}

/// Returns true if the expression contains an identifier. An expression without identifiers is a constant.
fn reads_value(ast: &Ast, id: ExprId) -> bool {
    let mut nodes = ast.descendants(id).into_iter();
    nodes.any(|id| matches!(ast.expr(id), Expr::Ident(_)))
}

/// Returns true if the two expressions have the same tokens, except for white space and parentheses.
fn is_same(ast: &Ast, one: ExprId, other: ExprId) -> bool {
    let mut open = vec![(one, other)];
    let mut n_nodes = 0;
    while let Some((one, other)) = open.pop() {
        n_nodes += 1;
        if n_nodes > MAX_NODES || !has_same_head(ast.expr(one), ast.expr(other)) {
            return false;
        }
        let children = |id: ExprId| {
            let mut children = Vec::new();
            ast.for_each_child(id, |child| children.push(child));
            children
        };
        let (of_one, of_other) = (children(one), children(other));
        if of_one.len() != of_other.len() {
            return false;
        }
        open.extend(of_one.into_iter().zip(of_other));
    }
    true
}

/// Returns true if the two nodes are equal except for their children.
fn has_same_head(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Literal(one), Expr::Literal(other)) => one == other,
        (Expr::Ident(one), Expr::Ident(other)) => one == other,
        (
            Expr::Select {
                field, test_only, ..
            },
            Expr::Select {
                field: other_field,
                test_only: other_test,
                ..
            },
        ) => field == other_field && test_only == other_test,
        (
            Expr::Call {
                function, target, ..
            },
            Expr::Call {
                function: other_function,
                target: other_target,
                ..
            },
        ) => function == other_function && target.is_some() == other_target.is_some(),
        (
            Expr::List {
                optional_indices, ..
            },
            Expr::List {
                optional_indices: other_indices,
                ..
            },
        ) => optional_indices == other_indices,
        (Expr::Map(one), Expr::Map(other)) => one
            .iter()
            .map(|entry| entry.optional)
            .eq(other.iter().map(|entry| entry.optional)),
        (Expr::Comprehension(one), Expr::Comprehension(other)) => {
            (&one.iter_var, &one.iter_var2, &one.accu_var)
                == (&other.iter_var, &other.iter_var2, &other.accu_var)
        }
        _ => false,
    }
}
