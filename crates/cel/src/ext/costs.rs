//! Costs of the list and set extensions, estimated and measured.
//!
//! Source: cel-go `ext/lists.go`, `listsLib.CompileOptions`, `listsLib.ProgramOptions`; `ext/sets.go`,
//! `setsLib.CompileOptions`, `setsLib.ProgramOptions`.

use crate::ast::Literal;
use crate::cost::factors::{LIST_CREATE_BASE_COST, STRING_TRAVERSAL_COST_FACTOR};
use crate::cost::measure::{scaled, size_at, size_of};
use crate::cost::{
    self, AstNode, Call, CallEstimate, CostEstimate, Costs, RuntimeCost, SizeEstimate,
    SizeEstimator, StaticCost,
};
use crate::value::{EvalBudget, EvalError, Traits, Value};

/// Base cost of a call (`callCostEstimate`).
const CALL_COST: u64 = 1;

/// Cost factor of sorting, which compares all pairs of elements in both directions.
const SORT_COST_FACTOR: f64 = 2.0;

const ONE_UNIT: CallEstimate = CallEstimate::from_cost(CostEstimate::fixed(1));

/// Costs of `slice`, which creates a sublist.
pub const SLICED: Costs = Costs::new(
    StaticCost::Of(|call, sizes| match (call.target, call.args) {
        (Some(list), [start, end]) => {
            let start = int_or(start, 0);
            let end = int_or(end, cost::size_of(sizes, list).max);
            // As in upstream, an end before the start wraps around to a huge size.
            estimated(1.0, SizeEstimate::fixed(end.wrapping_sub(start)))
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::By(result_allocated),
);

/// Costs of `lists.range`, which creates a list of numbers.
pub const RANGE: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.args {
        [length] => estimated(1.0, SizeEstimate::fixed(int_or(length, u64::MAX))),
        _ => ONE_UNIT,
    }),
    RuntimeCost::By(result_allocated),
);

/// Costs of `reverse`, which creates a reversed list.
pub const REVERSED: Costs = Costs::new(
    StaticCost::Of(|call, sizes| match call.target {
        Some(list) => estimated(1.0, cost::size_of(sizes, list)),
        None => ONE_UNIT,
    }),
    RuntimeCost::By(result_allocated),
);

/// Costs of `flatten`, which flattens a list to a given depth.
pub const FLATTENED: Costs = Costs::new(
    StaticCost::Of(|call, sizes| match (call.target, call.args) {
        (Some(list), []) => estimated(1.0, cost::size_of(sizes, list)),
        (Some(list), [depth]) => {
            let depth = cost::to_f64(int_or(depth, u64::MAX));
            estimated(depth, cost::size_of(sizes, list))
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::By(flattened),
);

/// Like [`FLATTENED`], but a negative depth costs as much as the depth 1.
pub const FLATTENED_TO_DEPTH: Costs = Costs::new(
    FLATTENED.estimate,
    RuntimeCost::By(|args, outcome, budget| match args {
        [list, Value::Int(..0)] => Ok(allocated(1.0, size_at(std::slice::from_ref(list), 0))),
        _ => flattened(args, outcome, budget),
    }),
);

/// Costs of `distinct`, which compares all pairs of elements. Upstream's estimate is too low for lists of strings, so
/// [`bounds`](crate::bounds) uses a different estimate.
pub const DISTINCT: Costs = Costs::new(
    StaticCost::Of(|call, sizes| self_compared(call.target, sizes, SORT_COST_FACTOR)),
    RuntimeCost::By(|args, _, _| compared_with_itself(args.first())),
)
.with_estimate_of_actual(StaticCost::Of(|call, sizes| {
    self_compared(call.target, sizes, TEXT_SORT_COST_FACTOR)
}));

/// Costs of `sort`.
pub const SORTED: Costs = DISTINCT;

/// Costs of `sort` for lists of strings.
pub const SORTED_TEXTS: Costs = Costs::new(
    StaticCost::Of(|call, sizes| self_compared(call.target, sizes, TEXT_SORT_COST_FACTOR)),
    RuntimeCost::By(|args, _, _| compared_with_itself(args.first())),
);

/// Costs of `@sortByAssociatedKeys`, to which `sortBy` expands.
pub const SORTED_BY_KEYS: Costs = Costs::new(
    StaticCost::Of(|call, sizes| self_compared(call.args.first(), sizes, SORT_COST_FACTOR)),
    RuntimeCost::By(|args, _, _| compared_with_itself(args.get(1))),
);

/// Costs of `@sortByAssociatedKeys` with strings as keys.
pub const SORTED_BY_TEXTS: Costs = Costs::new(
    StaticCost::Of(|call, sizes| self_compared(call.args.first(), sizes, TEXT_SORT_COST_FACTOR)),
    RuntimeCost::By(|args, _, _| compared_with_itself(args.get(1))),
);

/// Costs of comparing each element of one list with each element of a second list.
pub const SETS: Costs = Costs::new(
    StaticCost::Of(|call, sizes| set_operation(call, sizes, 1.0)),
    RuntimeCost::ByArgs(|args| measured_sets(args, 1.0)),
);

/// Costs of comparing each element of one list with each element of a second list, in both directions.
pub const SETS_BOTH_WAYS: Costs = Costs::new(
    StaticCost::Of(|call, sizes| set_operation(call, sizes, 2.0)),
    RuntimeCost::ByArgs(|args| measured_sets(args, 2.0)),
);

/// Source: cel-go `ext/lists.go`, `estimateListSortCost`.
const TEXT_SORT_COST_FACTOR: f64 = SORT_COST_FACTOR + STRING_TRAVERSAL_COST_FACTOR;

/// Source: cel-go `ext/sets.go`, `estimateSetsCost`.
fn set_operation(call: &Call<'_>, sizes: &dyn SizeEstimator, factor: f64) -> CallEstimate {
    let [left, right] = call.args else {
        return ONE_UNIT;
    };
    let product = cost::size_of(sizes, left).times(cost::size_of(sizes, right));
    CallEstimate::from_cost(
        product
            .by_factor(factor)
            .plus(CostEstimate::fixed(CALL_COST)),
    )
}

/// Source: cel-go `ext/sets.go`, `trackSetsCost`.
fn measured_sets(args: &[Value], factor: f64) -> u64 {
    let product = size_at(args, 0).wrapping_mul(size_at(args, 1));
    scaled(product, factor).wrapping_add(CALL_COST)
}

/// Source: cel-go `ext/lists.go`, `estimateListDistinct`, `estimateListSortCost`.
fn self_compared(
    list: Option<&AstNode<'_>>,
    sizes: &dyn SizeEstimator,
    factor: f64,
) -> CallEstimate {
    let Some(list) = list else {
        return ONE_UNIT;
    };
    let size = cost::size_of(sizes, list);
    estimated(factor, size.times(size))
}

/// Estimates the cost of a call that creates a list of `size` elements and costs `factor` per element.
///
/// Source: cel-go `ext/lists.go`, `estimateAllocatingListCall`.
fn estimated(factor: f64, size: SizeEstimate) -> CallEstimate {
    let cost = size
        .by_factor(factor)
        .plus(CostEstimate::fixed(CALL_COST))
        .plus(CostEstimate::fixed(LIST_CREATE_BASE_COST));
    CallEstimate::sized(cost, size)
}

/// Returns the value of an `int` literal, or 0 if it is negative. Returns `otherwise` for other expressions.
///
/// Source: cel-go `ext/lists.go`, `nodeAsIntValue`.
fn int_or(node: &AstNode<'_>, otherwise: u64) -> u64 {
    match node.literal() {
        Some(Literal::Int(value)) => u64::try_from(*value).unwrap_or(0),
        _ => otherwise,
    }
}

type Outcome = Result<Value, EvalError>;

type Measured = Result<u64, EvalError>;

/// Source: cel-go `ext/lists.go`, `trackListOutputSize`.
#[expect(
    clippy::unnecessary_wraps,
    reason = "all costs that depend on the result have the same signature"
)]
fn result_allocated(_: &[Value], result: &Outcome, _: &EvalBudget) -> Measured {
    Ok(allocated(1.0, result.as_ref().map_or(1, size_of)))
}

/// Source: cel-go `ext/lists.go`, `trackAllocatingListCall`.
fn allocated(factor: f64, size: u64) -> u64 {
    scaled(size, factor).wrapping_add(CALL_COST + LIST_CREATE_BASE_COST)
}

/// Source: cel-go `ext/lists.go`, `trackListFlatten`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the depth is converted to a double"
)]
fn flattened(args: &[Value], _: &Outcome, _: &EvalBudget) -> Measured {
    let depth = match args.get(1) {
        None => 1.0,
        Some(Value::Int(depth)) => *depth as f64,
        // Upstream computes the cost of a failed call too, and panics if the depth is not an `int`.
        Some(other) => {
            let panic = format!(
                "interface conversion: ref.Val is {}, not types.Int",
                other.go_type()
            );
            return Err(EvalError::internal(&panic));
        }
    };
    Ok(allocated(depth, size_at(args, 0)))
}

/// Source: cel-go `ext/lists.go`, `trackListSelfCompare`.
fn compared_with_itself(list: Option<&Value>) -> Measured {
    let first = match list {
        Some(Value::List(list)) => list.get(0),
        Some(other) => return Err(no_list(other)),
        None => None,
    };
    let factor = match first {
        Some(Value::String(_) | Value::Bytes(_)) => TEXT_SORT_COST_FACTOR,
        _ => SORT_COST_FACTOR,
    };
    let size = list.map_or(0, size_of);
    Ok(allocated(factor, size.wrapping_mul(size)))
}

/// Returns the error for a value that upstream assumes to be a list.
fn no_list(value: &Value) -> EvalError {
    let missing = if value.traits().has(Traits::ADDER) {
        "Contains"
    } else {
        "Add"
    };
    EvalError::internal(&format!(
        "interface conversion: {} is not traits.Lister: missing method {missing}",
        value.go_type()
    ))
}
