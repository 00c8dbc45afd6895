//! Finds `exists()` where `all()` is probably meant, and the reverse.

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::Lint;
use super::path::{self, Operator};
use super::positions::{Elements, StringTestKind, conditions, conjuncts, string_test};
use crate::comprehensions::{ComprehensionKind, comprehension_kind};
use crate::expressions::{PolicyExpression, Role};
use crate::rule::Rule;

pub(super) fn find(expression: &PolicyExpression, ast: &Ast) -> Vec<Lint> {
    if !matches!(
        expression.role,
        Role::MatchCondition | Role::Validation | Role::Variable
    ) {
        return Vec::new();
    }
    let is_validation = expression.role == Role::Validation;
    let mut lints = Vec::new();
    let mut elements = None;
    // `!list.all(...) || other` means: if all elements pass, the other condition must hold.
    let negated = conjuncts(ast, ast.root()).into_iter();
    let negated = negated.filter_map(|id| match ast.global_call(id)? {
        ("!_", [operand]) => Some(*operand),
        _ => None,
    });
    let negated: Vec<ExprId> = negated.collect();
    for (id, sign) in conditions(ast) {
        let Expr::Comprehension(fold) = ast.expr(id) else {
            continue;
        };
        let kind = comprehension_kind(ast, fold);
        let elements = elements.get_or_insert_with(|| Elements::new(ast));
        let of_element = |id: ExprId| {
            let mut operand = id;
            while let Expr::Select { operand: inner, .. } = ast.expr(operand) {
                operand = *inner;
            }
            elements.list(operand) == Some(fold.iter_range)
        };
        let is_of_groups =
            |list: ExprId| path::path(ast, list).as_deref() == Some("request.userInfo.groups");
        // Each authenticated user has the group `system:authenticated`, so another group always differs.
        let differs_from_some_group = |id: &ExprId| match path::with_literal(ast, *id) {
            Some((Operator::NotEqual, _, Literal::String(name))) => {
                !["system:authenticated", "system:unauthenticated"].contains(&&**name)
                    && !name.starts_with("system:serviceaccounts")
            }
            _ => false,
        };
        let finding = match kind {
            ComprehensionKind::Exists(test)
                if sign && (is_validation || is_of_groups(fold.iter_range)) =>
            {
                let all = conjuncts(ast, test);
                let excludes = |id: &ExprId| {
                    excluded(ast, *id).is_some_and(of_element)
                        && (!is_of_groups(fold.iter_range) || differs_from_some_group(id))
                };
                all.iter().all(excludes).then_some((
                    "`exists()` is true if one element passes this test, even if others do not",
                    "to require that all elements pass this test, write `all()`",
                ))
            }
            ComprehensionKind::All(test) if negated.contains(&id) => {
                let is_equal = |id: ExprId| {
                    let subject = equal(ast, id).filter(|subject| of_element(*subject))?;
                    // Names are unique in a list, so at most one element passes a test such as `e.name == 'a'`.
                    let is_name = elements.field(ast, subject) == Some("name");
                    (is_validation || is_name).then_some(())
                };
                is_equal(test).map(|()| {
                    (
                        "`!all()` is true if one element fails this test, even if others pass it",
                        "to require that no element passes this test, write `!exists()`",
                    )
                })
            }
            _ => None,
        };
        let Some((message, help)) = finding else {
            continue;
        };
        lints.push(Lint {
            rule: Rule::WrongQuantifier,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
            message: message.to_owned(),
            fix: Some(help.into()),
            is_harmless: false,
        });
    }
    lints
}

/// Returns the string that is compared with a literal by `!=`, or by a negated test.
pub(super) fn excluded(ast: &Ast, id: ExprId) -> Option<ExprId> {
    if let Some(("!_", [operand])) = ast.global_call(id) {
        let test = string_test(ast, *operand)?;
        return (test.kind != StringTestKind::Differs).then_some(test.subject);
    }
    let (operator, subject, _) = path::with_literal(ast, id)?;
    (operator == Operator::NotEqual).then_some(subject)
}

/// Returns the value that is compared with literals by `==` or `in`.
fn equal(ast: &Ast, id: ExprId) -> Option<ExprId> {
    let test = string_test(ast, id)?;
    matches!(test.kind, StringTestKind::Equals | StringTestKind::In).then_some(test.subject)
}
