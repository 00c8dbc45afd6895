//! What calls cost when they are evaluated, where it differs from the language's own rule.
//!
//! Costs are computed as upstream does, in doubles where it does, so that they agree to the unit.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go` (`CostEstimator.CallCost`); cel-go `ext/lists.go`,
//! `ext/sets.go` (`ProgramOptions`).

use crate::cel::eval::{CallCost, string_traversal_cost};
use crate::cel::value::{EvalError, Value};

use super::format::Format;

/// The result of a call, as a cost function is given it.
type Outcome = Result<Value, EvalError>;

/// The cost of an authorization check: two fit into the limit of an expression.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost`.
const CHECK_COST: u64 = 350_000;

/// Source: cel-go `common/cost.go`, `ListCreateBaseCost`.
const LIST_COST: u64 = 10;

/// The cost of a requirement of a selector: a list and a message.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `costPerRequirement`.
const REQUIREMENT_COST: u64 = 50;

/// How the cost of a call of `function` is computed, or `None` for the language's own rule.
///
/// The trackers of cel-go's extensions go by the overload and come first, Kubernetes' own rules go by the
/// function.
#[must_use]
pub fn call_cost(function: &str, overload: &str) -> Option<CallCost> {
    extension_cost(overload).or_else(|| function_cost(function, overload))
}

/// Source: cel-go `ext/lists.go`, `listsLib.ProgramOptions`; `ext/sets.go`, `setsLib.ProgramOptions`.
fn extension_cost(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => by_result,
        "list_flatten" | "list_flatten_int" => flatten,
        "list_distinct" => compare_first,
        "list_sets_contains_list" | "list_sets_intersects_list" => by_both,
        "list_sets_equivalent_list" => by_both_twice,
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => compare_first,
        _ if overload.ends_with("_sortByAssociatedKeys") => compare_second,
        _ => return None,
    })
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost`.
fn function_cost(function: &str, overload: &str) -> Option<CallCost> {
    Some(match function {
        "check" => |_, _| Some(CHECK_COST),
        "serviceAccount"
        | "path"
        | "group"
        | "resource"
        | "subresource"
        | "namespace"
        | "name"
        | "allowed"
        | "reason"
        | "error"
        | "errored"
        | "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "format.named"
        | "sign"
        | "asInteger"
        | "isInteger"
        | "asApproximateFloat"
        | "isGreaterThan"
        | "isLessThan"
        | "compareTo"
        | "add"
        | "sub"
        | "major"
        | "minor"
        | "patch"
        | "getScheme"
        | "getHostname"
        | "getHost"
        | "getPort"
        | "getEscapedPath"
        | "getQuery" => |_, _| Some(1),
        "fieldSelector" | "labelSelector" => selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => first_traversed,
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => by_first,
        "ip" if overload == "cidr_ip" => |_, _| Some(1),
        "ip" => by_first,
        "replace" | "split" | "ip.isCanonical" => by_first_twice,
        "join" => by_joined,
        "find" | "findAll" => searched,
        "containsIP" if overload == "cidr_contains_ip_string" => contains_ip_text,
        "containsIP" => contains_ip,
        "containsCIDR" if overload == "cidr_contains_cidr_string" => contains_cidr_text,
        "containsCIDR" => contains_cidr,
        "validate" => validated,
        "_==_" => equality,
        _ => return None,
    })
}

/// The size of a value that has one, else one.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `actualSize`; cel-go `ext/sets.go`, `actualSize`.
fn size_of(value: &Value) -> u64 {
    value
        .size()
        .map_or(1, |size| u64::try_from(size).unwrap_or(u64::MAX))
}

/// The size of the argument at `n`, if it is there.
fn size_at(args: &[Value], n: usize) -> Option<u64> {
    args.get(n).map(size_of)
}

/// `size` times `factor`, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as upstream, the product is computed as a double"
)]
fn scaled_up(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// `size` times `factor`, rounded to zero; what is less than zero wraps.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as upstream, the product is computed as a double"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    let product = size as f64 * factor;
    if product < 0.0 {
        (product as i64).cast_unsigned()
    } else {
        product as u64
    }
}

fn by_first(args: &[Value], _: &Outcome) -> Option<u64> {
    size_at(args, 0).map(string_traversal_cost)
}

fn by_first_twice(args: &[Value], _: &Outcome) -> Option<u64> {
    size_at(args, 0).map(|size| scaled_up(size, 2.0 * 0.1))
}

fn by_joined(args: &[Value], result: &Outcome) -> Option<u64> {
    let size = result.as_ref().map_or(1, size_of);
    args.first().map(|_| scaled_up(size, 2.0 * 0.1))
}

/// Source: cel-go `ext/lists.go`, `trackListOutputSize`.
fn by_result(_: &[Value], result: &Outcome) -> Option<u64> {
    Some(allocating(1.0, result.as_ref().map_or(1, size_of)))
}

/// Source: cel-go `ext/lists.go`, `trackAllocatingListCall`.
fn allocating(factor: f64, size: u64) -> u64 {
    scaled(size, factor).wrapping_add(1 + LIST_COST)
}

/// Source: cel-go `ext/lists.go`, `trackListFlatten`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as upstream, the depth is taken for a double"
)]
fn flatten(args: &[Value], _: &Outcome) -> Option<u64> {
    let depth = match args.get(1) {
        Some(Value::Int(depth)) => *depth as f64,
        _ => 1.0,
    };
    size_at(args, 0).map(|size| allocating(depth, size))
}

fn compare_first(args: &[Value], _: &Outcome) -> Option<u64> {
    args.first().map(compared_with_itself)
}

fn compare_second(args: &[Value], _: &Outcome) -> Option<u64> {
    args.get(1).map(compared_with_itself)
}

/// Source: cel-go `ext/lists.go`, `trackListSelfCompare`.
fn compared_with_itself(list: &Value) -> u64 {
    let size = size_of(list);
    let first = list.as_list().and_then(|list| list.get(0));
    let factor = match first {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + 0.1,
        _ => 2.0,
    };
    allocating(factor, size.wrapping_mul(size))
}

/// Source: cel-go `ext/sets.go`, `trackSetsCost`.
fn by_both(args: &[Value], _: &Outcome) -> Option<u64> {
    let product = size_at(args, 0)?.wrapping_mul(size_at(args, 1)?);
    Some(scaled(product, 1.0).wrapping_add(1))
}

fn by_both_twice(args: &[Value], _: &Outcome) -> Option<u64> {
    let product = size_at(args, 0)?.wrapping_mul(size_at(args, 1)?);
    Some(scaled(product, 2.0).wrapping_add(1))
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `selectorCostEstimate`.
fn selector(args: &[Value], _: &Outcome) -> Option<u64> {
    let size = size_at(args, 1)?;
    let requirements = scaled_up(size, 0.5).saturating_mul(REQUIREMENT_COST);
    let parsing = string_traversal_cost(size);
    Some(
        LIST_COST
            .saturating_add(parsing)
            .saturating_add(requirements),
    )
}

fn first_traversed(args: &[Value], _: &Outcome) -> Option<u64> {
    Some(args.first().map_or(0, traversal_cost))
}

/// The cost of going through all of a value.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `traversalCost`.
fn traversal_cost(value: &Value) -> u64 {
    let of_bytes = |len: usize| scaled(u64::try_from(len).unwrap_or(u64::MAX), 0.1);
    let mut cost = 0_u64;
    let mut pending = vec![value.clone()];
    while let Some(value) = pending.pop() {
        let own = match &value {
            Value::String(text) => of_bytes(text.len()),
            Value::Bytes(bytes) => of_bytes(bytes.len()),
            Value::List(list) => {
                for element in list {
                    match element {
                        Value::List(_) | Value::Map(_) => pending.push(element),
                        element => cost = cost.wrapping_add(flat_cost(&element)),
                    }
                }
                0
            }
            Value::Map(map) => {
                for (key, value) in map.entries().unwrap_or_default() {
                    pending.extend([key, value]);
                }
                0
            }
            _ => 1,
        };
        cost = cost.wrapping_add(own);
    }
    cost
}

/// The cost of going through a value that holds no others.
fn flat_cost(value: &Value) -> u64 {
    match value {
        Value::String(text) => scaled(u64::try_from(text.len()).unwrap_or(u64::MAX), 0.1),
        Value::Bytes(bytes) => scaled(u64::try_from(bytes.len()).unwrap_or(u64::MAX), 0.1),
        _ => 1,
    }
}

/// The cost of matching a text of the size `text` with a pattern of the size `pattern`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as upstream, the product is computed as a double"
)]
fn matching_cost(text: u64, pattern: u64) -> u64 {
    // A pattern costs something even where there is no text.
    let text = ((1.0 + text as f64) * 0.1).ceil() as u64;
    text.wrapping_mul(scaled_up(pattern, 0.25))
}

fn searched(args: &[Value], _: &Outcome) -> Option<u64> {
    Some(matching_cost(size_at(args, 0)?, size_at(args, 1)?))
}

fn validated(args: &[Value], _: &Outcome) -> Option<u64> {
    let format: &Format = args.first()?.downcast()?;
    Some(matching_cost(size_at(args, 1)?, format.pattern_len))
}

fn contains_ip(args: &[Value], _: &Outcome) -> Option<u64> {
    let (network, _) = (size_at(args, 0)?, args.get(1)?);
    Some(string_traversal_cost(network.wrapping_mul(2)))
}

fn contains_ip_text(args: &[Value], outcome: &Outcome) -> Option<u64> {
    let text = string_traversal_cost(size_at(args, 1)?);
    Some(contains_ip(args, outcome)?.wrapping_add(text))
}

fn contains_cidr(args: &[Value], outcome: &Outcome) -> Option<u64> {
    let masked = string_traversal_cost(size_at(args, 0)?);
    Some(
        contains_ip(args, outcome)?
            .wrapping_add(masked)
            .wrapping_add(1),
    )
}

fn contains_cidr_text(args: &[Value], outcome: &Outcome) -> Option<u64> {
    let text = string_traversal_cost(size_at(args, 1)?);
    Some(contains_cidr(args, outcome)?.wrapping_add(text))
}

/// Values of the types that the API server adds are equal at the cost of one.
fn equality(args: &[Value], _: &Outcome) -> Option<u64> {
    matches!(args, [Value::Opaque(_), _]).then_some(1)
}
