//! Pairs the conditions of two versions of a policy: validations and match conditions.

use std::collections::BTreeSet;

use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::reads::Reads;

/// A validation or match condition of one version, and its counterpart in the other version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConditionPair {
    pub(super) role: Role,
    /// The indices of the expressions in both versions. `None` if only the other version has the condition.
    pub(super) sides: [Option<usize>; 2],
    /// True if the expressions differ, or if a variable that one of them reads is changed.
    pub(super) is_changed: bool,
}

/// Pairs the match conditions and validations of both versions. Match conditions are paired by name. Validations with
/// equal expressions are paired first, and the remaining validations in order.
pub(super) fn condition_pairs([old, new]: [&CompiledPolicy; 2]) -> Vec<ConditionPair> {
    let changed = [changed_variables([old, new]), changed_variables([new, old])];
    let mut pairs = Vec::new();
    for role in [Role::MatchCondition, Role::Validation] {
        let [of_old, of_new] = [old, new].map(|policy| expressions_with(policy, role));
        let mut free: Vec<usize> = of_new;
        let mut take = |is_counterpart: &dyn Fn(&PolicyExpression) -> bool| {
            let at = |n: &usize| new.expressions().get(*n).is_some_and(is_counterpart);
            let position = free.iter().position(at)?;
            Some(free.remove(position))
        };
        let expression = |n: usize| old.expressions().get(n);
        let mut sides: Vec<[Option<usize>; 2]> = Vec::new();
        for n in of_old {
            let Some(own) = expression(n) else { continue };
            let counterpart = take(&|it| it.name == own.name && it.text.trim() == own.text.trim());
            sides.push([Some(n), counterpart]);
        }
        for side in &mut sides {
            let Some(own) = side[0].and_then(expression) else {
                continue;
            };
            if side[1].is_none() {
                side[1] = take(&|it| it.name == own.name);
            }
        }
        sides.extend(free.into_iter().map(|n| [None, Some(n)]));
        pairs.extend(sides.into_iter().map(|sides| ConditionPair {
            role,
            sides,
            is_changed: is_changed([old, new], sides, &changed),
        }));
    }
    pairs
}

fn expressions_with(policy: &CompiledPolicy, role: Role) -> Vec<usize> {
    let expressions = policy.expressions().iter().enumerate();
    let of_role = expressions.filter(|(_, it)| it.role == role);
    of_role.map(|(n, _)| n).collect()
}

fn is_changed(
    policies: [&CompiledPolicy; 2],
    sides: [Option<usize>; 2],
    changed: &[BTreeSet<String>; 2],
) -> bool {
    let expression = |side: usize| {
        let index = (*sides.get(side)?)?;
        policies.get(side)?.expressions().get(index)
    };
    let (Some(old), Some(new)) = (expression(0), expression(1)) else {
        return true;
    };
    let [of_old, of_new] = changed;
    old.text.trim() != new.text.trim() || reads(old, of_old) || reads(new, of_new)
}

/// Returns the names of the variables that the other version lacks or defines differently.
fn changed_variables([policy, other]: [&CompiledPolicy; 2]) -> BTreeSet<String> {
    let variables = |policy: &CompiledPolicy| {
        let expressions = policy.expressions().iter();
        let variables = expressions.filter(|it| it.role == Role::Variable);
        variables.cloned().collect::<Vec<_>>()
    };
    let others = variables(other);
    let mut changed = BTreeSet::new();
    // A variable reads only the variables before it.
    for variable in variables(policy) {
        let is_equal = |it: &PolicyExpression| {
            it.name == variable.name && it.text.trim() == variable.text.trim()
        };
        if !others.iter().any(is_equal) || reads(&variable, &changed) {
            changed.extend(variable.name.clone());
        }
    }
    changed
}

fn reads(expression: &PolicyExpression, variables: &BTreeSet<String>) -> bool {
    let Ok(ast) = expression.parsed() else {
        return false;
    };
    let reads = Reads::new(ast);
    let read = reads.variables();
    variables.iter().any(|name| read.contains(name))
}
