//! A stage of an evaluation: several expressions that share variables and a cost budget.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (`ForInput`), `activation.go` (`Evaluate`),
//! `composition.go`.

use std::sync::Arc;

use super::outcome::StageCost;
use super::program::Expression;
use super::scope::Scope;
use cel::value::Value;

/// Source: `activation.go`, `Evaluate`.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The result of an expression. `None` if the policy omits the optional expression.
pub(super) type Evaluated = Option<Result<Value, String>>;

#[derive(Debug)]
pub(super) struct StageOutcome {
    /// The result of each expression, or the error that ended the stage early.
    pub(super) evaluated: Result<Vec<Evaluated>, String>,
    pub(super) cost: StageCost,
    /// The rest of the budget. `None` if an error ended the stage early.
    pub(super) remaining: Option<u64>,
}

/// Evaluates `expressions` in order. Each variable is evaluated at most once, on first use.
///
/// `make_scope` is called only if there is an expression to evaluate.
pub(super) fn run<'a>(
    expressions: impl Iterator<Item = Option<&'a Expression>>,
    make_scope: impl Fn() -> Arc<Scope>,
    budget: u64,
) -> StageOutcome {
    let mut remaining = budget;
    let mut cached_scope: Option<Arc<Scope>> = None;
    let evaluated: Result<Vec<_>, String> = expressions
        .map(|expression| {
            expression
                .map(|expression| {
                    let scope = cached_scope.get_or_insert_with(&make_scope);
                    evaluate(expression, scope, &mut remaining)
                })
                .transpose()
        })
        .collect();
    let used = match &evaluated {
        Ok(_) => Ok(budget.saturating_sub(remaining)),
        Err(error) => Err(error.clone()),
    };
    StageOutcome {
        remaining: evaluated.is_ok().then_some(remaining),
        cost: StageCost { budget, used },
        evaluated,
    }
}

/// Evaluates one expression.
///
/// # Errors
///
/// Returns an error that ends the stage. This happens if the cost exceeds the budget, or if the evaluation exceeds a
/// limit of this crate.
fn evaluate(
    expression: &Expression,
    scope: &Scope,
    remaining: &mut u64,
) -> Result<Result<Value, String>, String> {
    let planned = match &expression.program {
        Ok(planned) => planned,
        Err(error) => return Ok(Err(format!("compilation error: {error}"))),
    };
    let (result, cost) = scope.evaluate(planned);
    scope.note(expression.index, &result);
    for cost in [scope.take_variables_cost(), cost] {
        *remaining = remaining
            .checked_sub(cost)
            .ok_or_else(|| OUT_OF_BUDGET.to_owned())?;
    }
    if let Err(error) = &result {
        let len = expression.text.len().saturating_add(error.message().len());
        // The message is copied into the decision, so its length is charged twice.
        let _ = scope.budget().allocate(len.saturating_mul(2));
    }
    if let Some(exceeded) = scope.exceeded() {
        return Err(exceeded.to_string());
    }
    Ok(result.map_err(|error| {
        let text = &expression.text;
        format!("expression '{text}' resulted in error: {error}")
    }))
}

/// Removes the quoted expression from the message of a failing expression. Returns other messages unchanged.
#[must_use]
pub fn without_expression(message: &str) -> &str {
    match message.split_once("' resulted in error: ") {
        Some((_, error)) if message.starts_with("expression '") => error,
        _ => message,
    }
}
