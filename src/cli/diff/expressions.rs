//! Lists the changed expressions whose change affects no compared request.

use serde::Serialize;

use super::compare::CauseKind;
use super::report::Group;
use super::{PolicyPair, both_versions};
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::policy::expressions::{PolicyExpression, Role};

/// An expression that differs between two versions of a policy, with the same results for all compared requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedExpression {
    /// The name of the policy.
    pub policy: String,
    /// The field of the new version, or of the old version if the new version lacks the expression.
    pub field: String,
    /// The name of a variable or match condition, or the key of an audit annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The old expression; absent for an added expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The new expression; absent for a removed expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// Returns the expressions that differ between the versions of a policy, except those whose effect `groups` shows.
pub(super) fn without_effect(
    pair: &PolicyPair,
    sets: [&PolicySet<'_>; 2],
    groups: &[Group],
) -> Vec<ChangedExpression> {
    let Some([old, new]) = both_versions(pair, sets) else {
        return Vec::new();
    };
    let policy = pair.id.to_string();
    let of_policy: Vec<&Group> = groups.iter().filter(|it| it.policy == policy).collect();
    let mut changed = Vec::new();
    for expression in expressions(old) {
        let counterpart = expressions(new).find(|it| is_counterpart(pair, expression, it));
        if counterpart.is_none_or(|it| it.text.trim() != expression.text.trim()) {
            changed.push((Some(expression), counterpart));
        }
    }
    for expression in expressions(new) {
        if !expressions(old).any(|it| is_counterpart(pair, it, expression)) {
            changed.push((None, Some(expression)));
        }
    }
    changed.retain(|(old, new)| !is_shown(&of_policy, *old, *new));
    let changed = changed.into_iter().filter_map(|(old, new)| {
        let expression = new.or(old)?;
        let text = |it: &PolicyExpression| it.text.trim().to_owned();
        Some(ChangedExpression {
            policy: policy.clone(),
            field: expression.field_ref.clone(),
            name: expression.name.clone(),
            old: old.map(text),
            new: new.map(text),
        })
    });
    changed.collect()
}

fn expressions<'p>(policy: &'p PreparedPolicy<'_>) -> impl Iterator<Item = &'p PolicyExpression> {
    policy.compiled.expressions().iter()
}

/// Returns true if `new` is the counterpart of `old`. Counterparts have the same role and name. If they belong to
/// validations, the validations are counterparts. Outside of validations, expressions without a name are counterparts
/// only if they are in the same field.
fn is_counterpart(pair: &PolicyPair, old: &PolicyExpression, new: &PolicyExpression) -> bool {
    if old.role != new.role || old.name != new.name {
        return false;
    }
    match (validation(old), validation(new)) {
        (Some(n), Some(m)) => pair.pairs.counterpart(n) == Some(m),
        _ => old.name.is_some() || old.field_ref == new.field_ref,
    }
}

/// Returns the index of the validation that contains an expression.
fn validation(expression: &PolicyExpression) -> Option<usize> {
    let (index, _) = expression
        .field_ref
        .strip_prefix("spec.validations[")?
        .split_once(']')?;
    index.parse().ok()
}

/// Returns true if a group shows the effect of the changed expression. A variable can affect any group.
fn is_shown(
    groups: &[&Group],
    old: Option<&PolicyExpression>,
    new: Option<&PolicyExpression>,
) -> bool {
    let Some(expression) = new.or(old) else {
        return false;
    };
    let is_cause = |group: &&Group| {
        let cause = &group.cause;
        match expression.role {
            Role::MatchCondition => cause.kind == CauseKind::MatchCondition,
            Role::AuditAnnotation => cause.kind == CauseKind::AuditAnnotation,
            role if role.is_mutation() => cause.kind == CauseKind::Mutation,
            Role::Validation | Role::MessageExpression => {
                let fields = [(&cause.old_field, old), (&cause.new_field, new)];
                fields.into_iter().any(|(field, expression)| {
                    let field = field.as_deref().and_then(|it| it.split_once(']'));
                    let own = expression.and_then(|it| it.field_ref.split_once(']'));
                    field.zip(own).is_some_and(|(field, own)| field.0 == own.0)
                })
            }
            _ => true,
        }
    };
    groups.iter().any(is_cause)
}
