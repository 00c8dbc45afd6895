//! Computes the costs of evaluated calls from their arguments and results.
//!
//! Intermediate results are rounded like in upstream, so the costs equal upstream's costs.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost`.

use super::SELECTOR_REQUIREMENT_COST;
use cel::cost::factors::{LIST_CREATE_BASE_COST, STRING_TRAVERSAL_COST_FACTOR};
use cel::cost::measure::{
    matching_cost, scaled, scaled_up, size_at, size_of, string_traversal_cost,
};
use cel::stdlib::costs::measured_comparison;
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Value};

type CallResult = Result<Value, EvalError>;

type Measured = Result<u64, EvalError>;

/// The cost per character of a function that reads a string twice.
const TWICE: f64 = 2.0 * STRING_TRAVERSAL_COST_FACTOR;

pub(super) fn first_read(args: &[Value]) -> u64 {
    string_traversal_cost(size_at(args, 0))
}

pub(super) fn first_read_twice(args: &[Value]) -> u64 {
    scaled_up(size_at(args, 0), TWICE)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "all costs that depend on the result have this signature"
)]
pub(super) fn result_written(_: &[Value], result: &CallResult, _: &EvalBudget) -> Measured {
    Ok(scaled_up(result.as_ref().map_or(1, size_of), TWICE))
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `selectorCostEstimate`.
pub(super) fn selector(args: &[Value]) -> u64 {
    let size = size_at(args, 1);
    let requirements = scaled_up(size, 0.5).saturating_mul(SELECTOR_REQUIREMENT_COST);
    let parsing = string_traversal_cost(size);
    LIST_CREATE_BASE_COST
        .saturating_add(parsing)
        .saturating_add(requirements)
}

/// Returns the cost of traversing the first argument and its nested values. Each visited value also consumes one step
/// of fuel.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `traversalCost`.
pub(super) fn first_walked(args: &[Value], _: &CallResult, budget: &EvalBudget) -> Measured {
    let mut cost = 0_u64;
    let mut pending: Vec<Value> = args.first().cloned().into_iter().collect();
    while let Some(value) = pending.pop() {
        budget.step()?;
        match value {
            Value::List(list) => {
                budget.reserve_list(pending.len().saturating_add(list.len()).saturating_mul(3))?;
                pending.extend(list.iter());
            }
            Value::Map(map) => {
                let n_values = map.len().saturating_mul(2).saturating_add(pending.len());
                budget.reserve_list(n_values.saturating_mul(3))?;
                for (key, value) in map.entries().unwrap_or_default() {
                    pending.extend([key, value]);
                }
            }
            value => cost = cost.wrapping_add(flat_cost(&value)),
        }
    }
    Ok(cost)
}

/// Returns the cost of a value without its nested values. The size of a string is its number of bytes.
fn flat_cost(value: &Value) -> u64 {
    let of_bytes = |len: usize| {
        scaled(
            u64::try_from(len).unwrap_or(u64::MAX),
            STRING_TRAVERSAL_COST_FACTOR,
        )
    };
    match value {
        Value::String(text) => of_bytes(text.len()),
        Value::Bytes(bytes) => of_bytes(bytes.len()),
        _ => 1,
    }
}

pub(super) fn searched(args: &[Value]) -> u64 {
    matching_cost(size_at(args, 0), size_at(args, 1))
}

/// The cost of checking whether a network contains an address.
fn compared_with_network(args: &[Value]) -> u64 {
    string_traversal_cost(size_at(args, 0).wrapping_mul(2))
}

pub(super) fn contains_ip(args: &[Value]) -> u64 {
    compared_with_network(args)
}

pub(super) fn contains_ip_text(args: &[Value]) -> u64 {
    let text = string_traversal_cost(size_at(args, 1));
    compared_with_network(args).wrapping_add(text)
}

pub(super) fn contains_cidr(args: &[Value]) -> u64 {
    let masked = string_traversal_cost(size_at(args, 0));
    compared_with_network(args)
        .wrapping_add(masked)
        .wrapping_add(1)
}

pub(super) fn contains_cidr_text(args: &[Value]) -> u64 {
    let text = string_traversal_cost(size_at(args, 1));
    contains_cidr(args).wrapping_add(text)
}

/// Returns the cost of comparing two values. The cost is 1 if the first value has a type that the API server adds to
/// CEL. All other types, such as messages, have CEL's costs.
pub(super) fn equality(args: &[Value]) -> u64 {
    match args {
        [Value::Opaque(value), _] if is_added(&value.type_()) => 1,
        _ => measured_comparison(args),
    }
}

fn is_added(type_: &Type) -> bool {
    let name = type_.type_name();
    ["kubernetes.", "net."]
        .iter()
        .any(|package| name.starts_with(package))
}
