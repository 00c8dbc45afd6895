//! The costs of cel-go's extension libraries: lists and sets.
//!
//! They take precedence over what a platform's estimator says of a call.

use super::factors::{LIST_CREATE_BASE_COST, STRING_TRAVERSAL_COST_FACTOR};
use super::node::{AstNode, Call, CallEstimate, CostEstimator, size_of};
use super::size::{CostEstimate, SizeEstimate, to_f64};
use crate::ast::Literal;

/// The cost of the call itself, beside what it does (`callCostEstimate`).
const CALL_COST: CostEstimate = CostEstimate::fixed(1);

/// Sorting compares each element with each other, twice over.
const SORT_COST_FACTOR: f64 = 2.0;

/// What `call` costs, if it is of one of the extensions.
///
/// Source: cel-go `ext/lists.go`, `listsLib.CompileOptions`; `ext/sets.go`, `setsLib.CompileOptions`.
pub(super) fn call_estimate(
    call: &Call<'_>,
    sizes: &(impl CostEstimator + ?Sized),
) -> Option<CallEstimate> {
    match (call.overload, call.target, call.args) {
        ("list_sets_contains_list" | "list_sets_intersects_list", _, [left, right]) => {
            Some(set_operation(sizes, left, right, 1.0))
        }
        ("list_sets_equivalent_list", _, [left, right]) => {
            Some(set_operation(sizes, left, right, 2.0))
        }
        ("list_slice", Some(list), [start, end]) => {
            let size = size_of(sizes, list);
            let start = int_or(start, 0);
            let end = int_or(end, size.max);
            // As upstream has it, an end before the start wraps around to a huge size.
            Some(allocating(
                1.0,
                SizeEstimate::fixed(end.wrapping_sub(start)),
            ))
        }
        ("lists_range", None, [length]) => {
            let size = SizeEstimate::fixed(int_or(length, u64::MAX));
            Some(allocating(1.0, size))
        }
        ("list_reverse", Some(list), []) => Some(allocating(1.0, size_of(sizes, list))),
        ("list_flatten" | "list_flatten_int", Some(list), []) => {
            Some(allocating(1.0, size_of(sizes, list)))
        }
        ("list_flatten" | "list_flatten_int", Some(list), [depth]) => {
            let depth = to_f64(int_or(depth, u64::MAX));
            Some(allocating(depth, size_of(sizes, list)))
        }
        ("list_distinct", Some(list), []) => Some(squared(sizes, list, SORT_COST_FACTOR)),
        (overload, Some(list), []) => {
            let key = overload.strip_prefix("list_")?.strip_suffix("_sort")?;
            Some(squared(sizes, list, sort_factor(key)))
        }
        (overload, Some(_), [keys]) => {
            let key = overload
                .strip_prefix("list_")?
                .strip_suffix("_sortByAssociatedKeys")?;
            Some(squared(sizes, keys, sort_factor(key)))
        }
        _ => None,
    }
}

/// Source: cel-go `ext/sets.go`, `estimateSetsCost`.
fn set_operation(
    sizes: &(impl CostEstimator + ?Sized),
    left: &AstNode<'_>,
    right: &AstNode<'_>,
    factor: f64,
) -> CallEstimate {
    let product = size_of(sizes, left).times(size_of(sizes, right));
    CallEstimate::of_cost(product.by_factor(factor).plus(CALL_COST))
}

/// Source: cel-go `ext/lists.go`, `estimateListSortCost`.
fn sort_factor(key: &str) -> f64 {
    match key {
        "string" | "bytes" => SORT_COST_FACTOR + STRING_TRAVERSAL_COST_FACTOR,
        _ => SORT_COST_FACTOR,
    }
}

/// Source: cel-go `ext/lists.go`, `estimateListDistinct`, `estimateListSortCost`.
fn squared(sizes: &(impl CostEstimator + ?Sized), list: &AstNode<'_>, factor: f64) -> CallEstimate {
    let size = size_of(sizes, list);
    allocating(factor, size.times(size))
}

/// A call that makes a list of `size`, at `factor` for each element.
///
/// Source: cel-go `ext/lists.go`, `estimateAllocatingListCall`.
fn allocating(factor: f64, size: SizeEstimate) -> CallEstimate {
    let cost = size
        .by_factor(factor)
        .plus(CALL_COST)
        .plus(CostEstimate::fixed(LIST_CREATE_BASE_COST));
    CallEstimate::sized(cost, size)
}

/// The value of a literal `int`, where negative ones count as 0, or `otherwise`.
///
/// Source: cel-go `ext/lists.go`, `nodeAsIntValue`.
fn int_or(node: &AstNode<'_>, otherwise: u64) -> u64 {
    match node.literal() {
        Some(Literal::Int(value)) => u64::try_from(*value).unwrap_or(0),
        _ => otherwise,
    }
}
