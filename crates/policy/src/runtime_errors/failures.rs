//! Selects the failures of an evaluation that affect the request, and finds the node at which each error originates.

use std::collections::HashMap;

use super::symbolic::SymbolicEvaluator;
use crate::admission::trace::Step;
use crate::expressions::Role;

/// A failed expression that affects the request.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The index of the failed expression in the policy. The expression is not a variable.
    pub(super) index: usize,
    /// The index of the expression in which the error originates: `index`, or the index of a variable that the
    /// failed expression reads.
    pub(super) origin_index: usize,
    /// The index of the failing node in the expression `origin_index`.
    pub(super) origin_id: usize,
    pub(super) message: String,
}

/// Returns the failures in `steps` that affect the request.
///
/// The result is empty if a match condition is false, because the policy then does not apply to the request. A message
/// expression is included only if its validation is false. The error of a variable is attributed to the expressions
/// that read the variable. An error is omitted if the node at which it originates is unknown.
pub(super) fn effective_failures(symbolic: &SymbolicEvaluator<'_>, steps: &[Step]) -> Vec<Failure> {
    let expressions = symbolic.policy.expressions();
    let role = |n: usize| expressions.get(n).map(|expression| expression.role);
    let has_false_condition = steps.iter().any(|step| {
        role(step.index) == Some(Role::MatchCondition) && matches!(step.result, Ok(Some(false)))
    });
    if has_false_condition {
        return Vec::new();
    }
    let mut errors = HashMap::new();
    for step in steps {
        if let Err(error) = &step.result {
            errors.insert(step.index, error);
        }
    }
    let mut failures = Vec::new();
    let mut is_denied = false;
    for step in steps {
        let Some(role) = role(step.index) else {
            continue;
        };
        if role == Role::Variable {
            continue;
        }
        let Err(error) = &step.result else {
            continue;
        };
        if role == Role::MessageExpression {
            // In the list of expressions, a message expression directly follows its validation.
            let validation = step.index.checked_sub(1);
            is_denied = steps.iter().any(|other| {
                Some(other.index) == validation && matches!(other.result, Ok(Some(false)))
            });
        }
        if role == Role::MessageExpression && !is_denied {
            continue;
        }
        // If the failing node reads a failed variable, the error originates in the expression of the variable.
        let (mut n, mut error) = (step.index, error);
        for _ in 0..expressions.len().saturating_add(1) {
            let Some(id) = error.origin() else { break };
            let node = symbolic.node(n, id);
            let variable = node.and_then(|node| symbolic.evaluated_variable(node));
            match variable.and_then(|n| Some((n, *errors.get(&n)?))) {
                Some((variable, inner)) => (n, error) = (variable, inner),
                None => {
                    failures.push(Failure {
                        index: step.index,
                        origin_index: n,
                        origin_id: id,
                        message: error.message().to_owned(),
                    });
                    break;
                }
            }
        }
    }
    failures
}

/// Returns true if `message` is the error of reading an absent value.
pub(super) fn is_missing_value_error(message: &str) -> bool {
    [
        "no such key",
        "index out of bounds",
        "optional.none() dereference",
    ]
    .iter()
    .any(|reason| message.starts_with(reason))
}
