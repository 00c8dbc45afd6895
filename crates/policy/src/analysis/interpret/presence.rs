//! Recognizes conditions that test whether a value is present.
//!
//! If such a condition selects between two values, one of the two is a default.

use std::collections::HashMap;

use cel::ast::{Ast, Expr, ExprId, Literal};

use super::Variable;
use crate::reads::variable;

/// Maximum nesting of a condition. Deeper parts are ignored.
const MAX_DEPTH: u8 = 12;

/// Returns true if `id` tests for presence, and false if it tests for absence. `None` for other expressions.
pub(crate) fn presence(
    ast: &Ast,
    id: ExprId,
    variables: &HashMap<String, Variable>,
) -> Option<bool> {
    presence_at(ast, id, variables, MAX_DEPTH)
}

fn presence_at(
    ast: &Ast,
    id: ExprId,
    variables: &HashMap<String, Variable>,
    depth: u8,
) -> Option<bool> {
    let depth = depth.checked_sub(1)?;
    match ast.expr(id) {
        Expr::Select {
            test_only: true, ..
        } => Some(true),
        Expr::Select { .. } => variables.get(variable(ast, id)?)?.presence,
        Expr::Call {
            function,
            target,
            args,
        } => match (&**function, target, &**args) {
            ("hasValue", Some(_), []) | ("@in", None, [_, _]) => Some(true),
            ("orValue", Some(_), [default]) => match ast.expr(*default) {
                Expr::Literal(Literal::Bool(default)) => Some(!default),
                _ => None,
            },
            ("!_", None, &[operand]) => {
                presence_at(ast, operand, variables, depth).map(|there| !there)
            }
            ("_&&_" | "_||_", None, &[left, right]) => {
                let wanted = &**function == "_&&_";
                [left, right]
                    .into_iter()
                    .any(|side| presence_at(ast, side, variables, depth) == Some(wanted))
                    .then_some(wanted)
            }
            ("_!=_" | "_==_", None, &[left, right]) => [left, right]
                .into_iter()
                .any(|side| is_nothing(ast, side))
                .then_some(&**function == "_!=_"),
            ("_>_", None, &[_, right]) => is_nothing(ast, right).then_some(true),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if `id` is a null, zero or empty literal.
pub(crate) fn is_nothing(ast: &Ast, id: ExprId) -> bool {
    match ast.expr(id) {
        Expr::Literal(Literal::Null | Literal::Int(0)) => true,
        Expr::Literal(Literal::String(text)) => text.is_empty(),
        Expr::List { elements, .. } => elements.is_empty(),
        Expr::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Returns true if `id` is a literal, or an empty list or map.
pub(crate) fn is_literal(ast: &Ast, id: ExprId) -> bool {
    matches!(ast.expr(id), Expr::Literal(_)) || is_nothing(ast, id)
}
