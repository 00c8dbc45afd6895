//! Finds match conditions that a client can turn off in an UPDATE by removing labels or annotations.

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::matching::{self, Operations};
use crate::reads::{Attribute, Input, Reads, is_input};
use crate::rule::Rule;
use cel::ast::{Ast, ExprId};
use cel::source::SourceMap;

/// The metadata fields that a user with write access can change at will.
const FIELDS: [&str; 2] = ["labels", "annotations"];

/// Returns a lint for each match condition of `policy` that reads only labels or annotations of `object`. Such
/// conditions are reported only if the policy protects the old object: its validations read `oldObject`, and its rules
/// match UPDATE.
///
/// If no validation reads `oldObject`, such a condition is probably intentional. For example, the label may request the
/// injection of a sidecar.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/object/matcher.go`, `MatchObjectSelector` (an
/// objectSelector matches if it matches the object or the old object).
pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let mut rules = matching::rules(policy.policy()).iter();
    let is_updated = rules.any(|rule| {
        let operations = Operations::from_names(rule.operations.as_deref().unwrap_or_default());
        operations.names().any(|name| name == "UPDATE")
    });
    let mut judging = expressions_with_roles(policy, &[Role::Validation, Role::Variable]);
    if !is_updated || !judging.any(|(_, ast)| Reads::new(ast).has(&[Input::OldObject])) {
        return Vec::new();
    }
    let conditions = expressions_with_roles(policy, &[Role::MatchCondition]);
    // A variable may read `oldObject`, so conditions that read variables are excluded.
    let candidates =
        conditions.filter(|(_, ast)| !Reads::new(ast).has(&[Input::OldObject, Input::Variables]));
    let lints = candidates.filter_map(|(condition, ast)| {
        let (id, field) = ast.iter().find_map(|(id, _)| removable(ast, id))?;
        Some(Lint {
            rule: Rule::RemovableLabel,
            field_ref: condition.field_ref.clone(),
            location: Some(SourceMap::new(&condition.text).location(ast.offset(id))),
            message: format!(
                "an UPDATE that removes these {field} can make this condition false, so the same request can change \
                 fields that the policy protects with `oldObject`"
            ),
            fix: Some(format!(
                "also read the {field} of `oldObject`, or use an objectSelector, which is evaluated for both objects"
            ).into()),
            is_harmless: true,
        })
    });
    lints.collect()
}

fn expressions_with_roles<'a>(
    policy: &'a CompiledPolicy,
    roles: &'a [Role],
) -> impl Iterator<Item = (&'a PolicyExpression, &'a Ast)> {
    let expressions_with_roles = policy.expressions().iter();
    let expressions_with_roles =
        expressions_with_roles.filter(|expression| roles.contains(&expression.role));
    expressions_with_roles.filter_map(|expression| Some((expression, &**expression.parsed().ok()?)))
}

/// Returns `id` and the field name if `id` selects one of [`FIELDS`] from the metadata of `object`.
fn removable(ast: &Ast, id: ExprId) -> Option<(ExprId, &'static str)> {
    let attribute = Attribute::new(ast, id);
    let mut fields = attribute.fields();
    let is_metadata =
        is_input(ast, attribute.operand, Input::Object) && fields.next() == Some("metadata");
    let field = fields
        .next()
        .filter(|_| is_metadata && attribute.qualifiers.len() == 2);
    let field = FIELDS.into_iter().find(|known| Some(*known) == field)?;
    Some((id, field))
}
