//! How a decision came about: the expressions that decided, each at its place in the policy, with the values of its
//! parts.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde::Serialize;

use crate::cli::input::Object;
use crate::policy::admission::{Action, EvaluationResult, ReviewOutcome};
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::Role;
use crate::policy::parts;
use crate::probe::run::CaseResult;

/// The most expressions that are shown of one case.
const MAX_EXPRESSIONS: usize = 4;

/// The most parts that are shown of one expression.
const MAX_PARTS: usize = 24;

/// An expression that was evaluated, with its parts.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The file of the policy.
    pub file: String,
    /// The line of the expression.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// True if the decision is due to it.
    pub decides: bool,
    /// The parts that were evaluated, the whole first.
    pub parts: Vec<TracePart>,
}

/// A part of an expression.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracePart {
    /// The text.
    pub text: String,
    /// How deep it is in the expression.
    pub depth: usize,
    /// The first of its values: within a macro it has one for each element.
    pub values: Vec<String>,
    /// How often it was evaluated.
    pub times: u64,
    /// The cost of it and its parts, in cost units.
    pub cost: u64,
}

/// The expressions that decided on a case; where none did, the validations that were true.
pub(in crate::cli) fn of_case(
    result: &CaseResult,
    compiled: &CompiledPolicy,
    policy: &Object<ValidatingAdmissionPolicy>,
) -> Vec<Trace> {
    let Some(outcome) = &result.outcome else {
        return Vec::new();
    };
    let deciding = deciding(outcome, compiled);
    let all = if deciding.is_empty() {
        of_role(compiled, Role::Validation)
    } else {
        deciding.clone()
    };
    let traces = all.into_iter().filter_map(|index| {
        let mut trace = of_expression(result, compiled, policy, index)?;
        trace.decides = deciding.contains(&index);
        Some(trace)
    });
    traces.take(MAX_EXPRESSIONS).collect()
}

/// The indices of the expressions of a role.
fn of_role(compiled: &CompiledPolicy, role: Role) -> Vec<usize> {
    let all = compiled.expressions().iter().enumerate();
    all.filter(|(_, expression)| expression.role == role)
        .map(|(n, _)| n)
        .collect()
}

/// The expressions that the outcome is due to.
fn deciding(outcome: &ReviewOutcome, compiled: &CompiledPolicy) -> Vec<usize> {
    let validations = of_role(compiled, Role::Validation);
    let mut found = Vec::new();
    for evaluation in &outcome.evaluations {
        let conditions = evaluation.match_conditions.as_ref();
        let failed = conditions.and_then(|conditions| conditions.failed_condition.as_ref());
        if let Some(name) = failed {
            let mut all = compiled.expressions().iter();
            found.extend(all.position(|expression| {
                expression.role == Role::MatchCondition
                    && expression.name.as_deref() == Some(name.as_str())
            }));
        }
        // Where a stage failed as a whole, there is one decision for all.
        if evaluation.decisions.len() != validations.len() {
            continue;
        }
        for (index, decision) in validations.iter().zip(&evaluation.decisions) {
            if decision.action == Action::Deny || decision.evaluation != EvaluationResult::Admit {
                found.push(*index);
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|index| seen.insert(*index));
    found
}

/// One expression with its parts, where it was evaluated.
pub(in crate::cli) fn of_expression(
    result: &CaseResult,
    compiled: &CompiledPolicy,
    policy: &Object<ValidatingAdmissionPolicy>,
    index: usize,
) -> Option<Trace> {
    let expression = compiled.expressions().get(index)?;
    let ast = expression.parsed().ok()?;
    let parts = parts::parts(ast).into_iter().filter_map(|part| {
        let seen = result.recording.get(&(index, part.id.index()))?;
        Some(TracePart {
            text: part.text,
            depth: part.depth,
            values: seen.values.clone(),
            times: seen.n,
            cost: seen.cost,
        })
    });
    let parts: Vec<TracePart> = parts.take(MAX_PARTS).collect();
    if parts.is_empty() {
        return None;
    }
    let place = policy.places_in_field(&expression.field_ref).start();
    Some(Trace {
        field_ref: expression.field_ref.clone(),
        file: policy.source.name.clone(),
        line: place.line,
        column: place.column,
        decides: false,
        parts,
    })
}

impl TracePart {
    /// The values in one line.
    pub(in crate::cli) fn shown(&self) -> String {
        let values = self.values.join(", ");
        let n_known = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        if self.times > n_known {
            format!("{values}, … ({} times)", self.times)
        } else {
            values
        }
    }
}
