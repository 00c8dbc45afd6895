//! Finds `has()` tests that come after the read that they should guard.

use std::collections::HashSet;

use cel::ast::{Ast, Expr, ExprId};
use cel::source::SourceMap;

use super::Lint;
use super::path::path;
use super::positions::{conditions, conjuncts};
use crate::expressions::{PolicyExpression, Role};
use crate::rule::Rule;

/// Returns the lints of the chains of `&&` in `expression`.
pub(super) fn find(expression: &PolicyExpression, ast: &Ast) -> Vec<Lint> {
    if !matches!(expression.role, Role::MatchCondition | Role::Validation) {
        return Vec::new();
    }
    let mut nodes = ast.iter();
    if !nodes.any(|(id, _)| tested(ast, id).is_some()) {
        return Vec::new();
    }
    let mut lints = Vec::new();
    let mut inner = HashSet::new();
    for (id, _) in conditions(ast) {
        let Some(("_&&_", operands)) = ast.global_call(id) else {
            continue;
        };
        inner.extend(operands.iter().map(|operand| operand.index()));
        if inner.contains(&id.index()) {
            continue;
        }
        let mut reads = HashSet::new();
        for operand in conjuncts(ast, id) {
            if let Some(field) = tested(ast, operand)
                && reads.contains(&field)
            {
                lints.push(Lint {
                    rule: Rule::LateGuard,
                    field_ref: expression.field_ref.clone(),
                    location: Some(SourceMap::new(&expression.text).location(ast.offset(operand))),
                    message: format!(
                        "`{field}` is read before this test, and for objects without the field the whole `&&` is false"
                    ),
                    fix: Some(format!(
                        "to allow objects without the field, write `!has({field}) ||`; to keep this result, write \
                         `has({field})` first"
                    ).into()),
                    is_harmless: true,
                });
            }
            let nodes = ast.descendants(operand).into_iter();
            let selections = nodes.filter(|id| {
                matches!(
                    ast.expr(*id),
                    Expr::Select {
                        test_only: false,
                        ..
                    }
                )
            });
            reads.extend(selections.filter_map(|id| path(ast, id)));
        }
    }
    lints
}

/// Returns the path of the field that `has()` tests. `None` for other expressions.
fn tested(ast: &Ast, id: ExprId) -> Option<String> {
    match ast.expr(id) {
        Expr::Select {
            operand,
            field,
            test_only: true,
        } => Some(format!("{}.{field}", path(ast, *operand)?)),
        _ => None,
    }
}
