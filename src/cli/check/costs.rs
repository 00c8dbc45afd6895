//! Reports costs of a policy's expressions.
//!
//! `report` creates the cost section of the report. `notes` creates notes on expressions whose cost for an object of
//! typical size is near a limit.

use schemars::JsonSchema;
use serde::Serialize;

use super::finding::{Finding, Severity};
use super::policy::object_finding;
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::compile::CompiledPolicy;
use crate::policy::consequence::Consequence;
use crate::policy::cost::{
    ExpressionCost, GREATEST_COST, PolicyCosts, Stage, USUAL_OBJECT_BYTES, WorstCase,
};
use crate::policy::rule::Rule;
use crate::status::message;

/// The estimated cost of an expression, or of all expressions that share a budget.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostReport {
    /// The field of the expression, such as `spec.validations[0].expression`; `spec.validations` for the budget that
    /// the validations share with their messages.
    pub field_ref: String,
    /// The upstream name of the limit: `PerCallLimit`, `RuntimeCELCostBudget` or
    /// `RuntimeCELCostBudgetMatchConditions`.
    pub limit_name: &'static str,
    /// The limit, in cost units.
    pub limit: u64,
    /// The kind whose objects have the highest cost, such as `apps/v1 Deployment`. This and the following fields are
    /// null if there is no estimate.
    pub kind: Option<String>,
    /// The minimum cost.
    pub min: Option<u64>,
    /// The maximum cost for the largest request, of 3 MiB; null if it is unbounded.
    pub max: Option<u64>,
    /// The depth of nested loops in the expression; null for a sum.
    pub loops: Option<u32>,
    /// The ratio of `max` to the limit.
    pub share: Option<f64>,
    /// The maximum cost for an object of 64 KiB; null if it is unbounded.
    pub max_for_usual_object: Option<u64>,
    /// The size of the largest objects that cannot reach the limit, in bytes: a power of two from 1 KiB to 2 MiB. It is
    /// null if an object of 1 KiB can reach the limit, or if the cost is unbounded.
    pub object_bytes_within_limit: Option<i64>,
}

impl CostReport {
    fn new(
        field_ref: String,
        (limit, limit_name): (u64, &'static str),
        worst: Option<&WorstCase>,
        loops: Option<u32>,
    ) -> Self {
        let max = worst.and_then(WorstCase::max);
        Self {
            field_ref,
            limit_name,
            limit,
            kind: worst.map(|worst| message::kind(&worst.gvk)),
            min: worst.map(WorstCase::min),
            max,
            loops,
            share: max.map(|max| share(max, limit)),
            max_for_usual_object: worst.and_then(WorstCase::usual_object_cost),
            object_bytes_within_limit: worst.and_then(|worst| worst.bytes_within(limit)),
        }
    }

    /// Returns true if the cost is that of all expressions that share a budget.
    #[must_use]
    pub fn is_sum(&self) -> bool {
        self.limit_name != ExpressionCost::LIMIT_NAME
    }
}

/// Returns the ratio of `cost` to `limit`, rounded to billionths.
#[expect(
    clippy::cast_precision_loss,
    reason = "both are below 2^53, and the result is rounded"
)]
fn share(cost: u64, limit: u64) -> f64 {
    (cost as f64 / limit as f64 * 1e9).round() / 1e9
}

/// Returns the costs of all expressions in the order of the policy's fields, followed by the costs of the budgets.
pub(super) fn report(costs: &PolicyCosts) -> Vec<CostReport> {
    let limit = (ExpressionCost::LIMIT, ExpressionCost::LIMIT_NAME);
    let expressions = costs.expressions.iter();
    let expressions = expressions.map(|cost| {
        let loops = Some(cost.loops);
        CostReport::new(cost.field_ref.clone(), limit, cost.worst.as_ref(), loops)
    });
    let stages = costs.stages.iter().map(|cost| {
        let limit = (cost.stage.limit(), cost.stage.limit_name());
        CostReport::new(field_ref(cost.stage), limit, cost.worst.as_ref(), None)
    });
    expressions.chain(stages).collect()
}

/// Adds a note on each expression whose cost for an object of typical size is near its limit. If there is no such
/// expression, adds notes on shared budgets that such an object may nearly exhaust.
pub(super) fn notes(
    policy: &Object<RequestPolicy>,
    compiled: &CompiledPolicy,
    costs: &PolicyCosts,
    findings: &mut Vec<Finding>,
) {
    let n_before = findings.len();
    for (n, cost) in costs.expressions.iter().enumerate() {
        let consequence = compiled.consequence(n);
        let worst = cost.worst.as_ref();
        // An unread variable is never evaluated, so it gets no note.
        let worst = worst.filter(|_| consequence != Consequence::Unread);
        let limit = ExpressionCost::LIMIT;
        let note =
            worst.and_then(|worst| note(policy, &cost.field_ref, "the expression", limit, worst));
        findings.extend(note.map(|note| note.with_consequence(consequence)));
    }
    if findings.len() > n_before {
        return;
    }
    for cost in &costs.stages {
        let all = match cost.stage {
            Stage::MatchConditions => "all match conditions together",
            Stage::Validations => {
                "all validations and their messages, with the variables that they read,"
            }
            Stage::AuditAnnotations => "all audit annotations, with the variables that they read,",
        };
        let worst = cost.worst.as_ref();
        let limit = cost.stage.limit();
        let note = worst.and_then(|worst| note(policy, &field_ref(cost.stage), all, limit, worst));
        findings.extend(note);
    }
}

/// Returns the field of the policy that contains the expressions of `stage`.
fn field_ref(stage: Stage) -> String {
    format!("spec.{}", stage.field())
}

/// Returns a note on `what` if its worst-case cost is near `limit`.
fn note(
    policy: &Object<RequestPolicy>,
    field_ref: &str,
    what: &str,
    limit: u64,
    worst: &WorstCase,
) -> Option<Finding> {
    let cost = worst.usual_object_cost().filter(|_| worst.is_near(limit))?;
    let n_bytes = kib(USUAL_OBJECT_BYTES);
    let cost = match rounded(cost) {
        Some(rounded) => format!("more than {} cost units", rounded.trim_start_matches('>')),
        None => format!("up to {} cost units", digits(cost)),
    };
    let message = format!(
        "{what} may cost {cost} for an object of {n_bytes}; the API server stops the evaluation at {} cost units",
        digits(limit)
    );
    let place = policy.place_of_field(field_ref);
    let mut finding = object_finding(policy, Severity::Note, Rule::CostNearLimit, &message, place);
    finding.field_ref = Some(field_ref.to_owned());
    finding.kinds = vec![message::kind(&worst.gvk)];
    let is_always_below = worst.max().is_some_and(|max| max < limit);
    finding.help = Some(match worst.bytes_within(limit) {
        _ if is_always_below => {
            "even the largest request stays below the limit, but may use 80% of it or more"
                .to_owned()
        }
        Some(n) => format!("objects of up to {} stay below the limit", kib(n)),
        None => "objects of 1 KiB may reach the limit".to_owned(),
    });
    Some(finding)
}

fn kib(n_bytes: i64) -> String {
    format!("{} KiB", n_bytes / 1024)
}

/// Formats a number with commas between groups of three digits.
pub(in crate::cli) fn digits(n: u64) -> String {
    let text = n.to_string();
    let mut out = String::with_capacity(text.len() * 4 / 3);
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && (text.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Rounds a cost of at least a billion down to a power of ten, such as `>1e12`. `None` for lower costs.
pub(in crate::cli) fn rounded(cost: u64) -> Option<String> {
    (cost >= 1_000_000_000).then(|| format!(">1e{}", cost.ilog10()))
}

/// A cost that is near its limit in only the newer of two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct CostIncrease {
    /// The field of the expression, or of the expressions that share a budget.
    pub(in crate::cli) field_ref: String,
    /// The estimated costs for an object of 64 KiB, in the old and in the new version.
    pub(in crate::cli) costs: [u64; 2],
    pub(in crate::cli) limit: u64,
    pub(in crate::cli) limit_name: &'static str,
}

/// Returns the expressions and budgets whose cost for an object of typical size is near the limit in the new version, but
/// not in the old one.
pub(in crate::cli) fn increases([old, new]: [&PolicyCosts; 2]) -> Vec<CostIncrease> {
    let increase = |field_ref: String,
                    (limit, limit_name): (u64, &'static str),
                    [old, new]: [Option<&WorstCase>; 2]| {
        let (old, new) = (old?, new?);
        let costs = [old, new].map(|worst| worst.usual_object_cost().unwrap_or(GREATEST_COST));
        (new.is_near(limit) && !old.is_near(limit)).then_some(CostIncrease {
            field_ref,
            costs,
            limit,
            limit_name,
        })
    };
    let expressions = old.expressions.iter().zip(&new.expressions);
    let expressions = expressions.filter_map(|(old, new)| {
        let limit = (ExpressionCost::LIMIT, ExpressionCost::LIMIT_NAME);
        let worst = [old.worst.as_ref(), new.worst.as_ref()];
        increase(new.field_ref.clone(), limit, worst)
    });
    let stages = old.stages.iter().zip(&new.stages);
    let stages = stages.filter_map(|(old, new)| {
        let limit = (new.stage.limit(), new.stage.limit_name());
        let worst = [old.worst.as_ref(), new.worst.as_ref()];
        increase(field_ref(new.stage), limit, worst)
    });
    expressions.chain(stages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let all = [0, 999, 1000, 12_345, 1_000_000].map(digits);
        assert_eq!(all, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "the results are rounded")]
    fn share_is_rounded_to_nine_decimals() {
        assert_eq!(share(3, 10_000_000), 0.000_000_3);
        assert_eq!(share(1, 3), 0.333_333_333);
        assert_eq!(share(2_500_000, 1_000_000), 2.5);
    }
}
