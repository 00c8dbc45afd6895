//! Finds comparisons with null whose result is constant because a variable such as `namespaceObject` is null in every
//! request.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go` (`Validate` passes no namespace to the
//! match conditions), `pkg/admission/plugin/policy/validating/dispatcher.go` (`Dispatch` passes no namespace for requests
//! about Namespaces), `pkg/admission/plugin/cel/activation.go` (`newActivation`).

use super::Context;
use crate::admission::Operation;
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::lint::Lint;
use crate::matching;
use crate::rule::Rule;
use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::requests::kinds::operations;

/// Returns a lint for each comparison with null in which the compared variable is always null.
#[must_use]
pub fn null_root_comparisons(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<Lint> {
    let has_any = policy
        .expressions()
        .iter()
        .any(|it| it.text.contains("null"));
    if !has_any {
        return Vec::new();
    }
    let targets = matching::targets(policy.policy(), context.mapper);
    let all_operations: Vec<Operation> = targets.iter().flat_map(operations).collect();
    let is_always = |null_for: &[Operation]| {
        !all_operations.is_empty() && all_operations.iter().all(|it| null_for.contains(it))
    };
    let has_namespace = targets.iter().any(|target| target.resource.namespaced);
    let is_object_null = is_always(&[Operation::Delete]);
    let is_old_object_null = is_always(&[Operation::Create, Operation::Connect]);
    let is_namespace = targets
        .iter()
        .all(|target| &*target.resource.gvk.kind == "Namespace");
    let is_namespace_null = !all_operations.is_empty() && !has_namespace;
    let mut lints = Vec::new();
    for expression in policy.expressions() {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        for (id, name, is_not) in null_comparisons(ast) {
            let why = match name {
                "object" if is_object_null => "on DELETE",
                "oldObject" if is_old_object_null => "on CREATE and CONNECT",
                "namespaceObject" if expression.role == Role::MatchCondition => {
                    "in match conditions"
                }
                "namespaceObject" if is_namespace_null => "for cluster-scoped objects",
                _ => continue,
            };
            let fix = match name {
                "object" => "use `oldObject`, which is the deleted object",
                "oldObject" => "use `object`",
                _ if expression.role == Role::MatchCondition => {
                    "test it in a validation, or use a namespaceSelector in matchConstraints or in the binding"
                }
                _ if is_namespace && is_object_null => {
                    "read `oldObject`, which is the deleted Namespace"
                }
                _ if is_namespace => "read `object`, which is the Namespace",
                _ => "remove the comparison",
            };
            lints.push(Lint {
                rule: Rule::ConstantCondition,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
                message: format!(
                    "`{name}` is always null {why}, so this is always {}",
                    !is_not
                ),
                fix: Some(fix.into()),
                is_harmless: false,
            });
        }
    }
    lints
}

/// Returns the comparisons of a variable with null: the node, the variable, and true for `!=`.
fn null_comparisons(ast: &Ast) -> Vec<(ExprId, &str, bool)> {
    let comparisons = ast.iter().filter_map(|(id, _)| {
        let (function, [left, right]) = ast.global_call(id)? else {
            return None;
        };
        let is_not = match function {
            "_==_" => false,
            "_!=_" => true,
            _ => return None,
        };
        match (ast.expr(*left), ast.expr(*right)) {
            (Expr::Ident(name), Expr::Literal(Literal::Null))
            | (Expr::Literal(Literal::Null), Expr::Ident(name)) => Some((id, &**name, is_not)),
            _ => None,
        }
    });
    comparisons.collect()
}
