//! What calls cost when they are evaluated, where it differs from the language's own rule.
//!
//! Costs are computed as upstream does, in doubles where it does, so that they agree to the unit.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go` (`CostEstimator.CallCost`); cel-go `ext/lists.go`,
//! `ext/sets.go` (`ProgramOptions`).

use cel::cost::factors::LIST_CREATE_BASE_COST;
use cel::eval::{CallCost, CostResult, string_traversal_cost, units};
use cel::types::Type;
use cel::value::{EvalError, Traits, Value, Work};

use super::cost::{AUTHORIZER_CHECK_COST, SELECTOR_REQUIREMENT_COST, is_nominal};
use super::format::Format;

/// The result of a call, as a cost function is given it.
type Outcome = Result<Value, EvalError>;

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
    if is_nominal(function, overload) {
        return Some(|_, _, _| units(1));
    }
    Some(match function {
        "check" => |_, _, _| units(AUTHORIZER_CHECK_COST),
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
        | "isSemver"
        | "ip" => by_first,
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

/// The size of the argument at `n`.
fn size_at(args: &[Value], n: usize) -> u64 {
    args.get(n).map_or(1, size_of)
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

fn by_first(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    units(string_traversal_cost(size_at(args, 0)))
}

fn by_first_twice(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    units(scaled_up(size_at(args, 0), 2.0 * 0.1))
}

fn by_joined(_: &[Value], result: &Outcome, _: &Work) -> CostResult {
    units(scaled_up(result.as_ref().map_or(1, size_of), 2.0 * 0.1))
}

/// Source: cel-go `ext/lists.go`, `trackListOutputSize`.
fn by_result(_: &[Value], result: &Outcome, _: &Work) -> CostResult {
    units(allocating(1.0, result.as_ref().map_or(1, size_of)))
}

/// Source: cel-go `ext/lists.go`, `trackAllocatingListCall`.
fn allocating(factor: f64, size: u64) -> u64 {
    scaled(size, factor).wrapping_add(1 + LIST_CREATE_BASE_COST)
}

/// Source: cel-go `ext/lists.go`, `trackListFlatten`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as upstream, the depth is taken for a double"
)]
fn flatten(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    let depth = match args.get(1) {
        None => 1.0,
        Some(Value::Int(depth)) => *depth as f64,
        // Upstream takes for granted that the call was good.
        Some(other) => {
            let panic = format!(
                "interface conversion: ref.Val is {}, not types.Int",
                other.go_type()
            );
            return Err(EvalError::internal(&panic));
        }
    };
    units(allocating(depth, size_at(args, 0)))
}

fn compare_first(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    compared_with_itself(args.first())
}

fn compare_second(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    compared_with_itself(args.get(1))
}

/// Source: cel-go `ext/lists.go`, `trackListSelfCompare`.
fn compared_with_itself(list: Option<&Value>) -> CostResult {
    let first = match list {
        Some(Value::List(list)) => list.get(0),
        Some(other) => return Err(no_list(other)),
        None => None,
    };
    let factor = match first {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + 0.1,
        _ => 2.0,
    };
    let size = list.map_or(0, size_of);
    units(allocating(factor, size.wrapping_mul(size)))
}

/// Upstream takes for granted that the call was good.
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

/// Source: cel-go `ext/sets.go`, `trackSetsCost`.
fn by_both(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    let product = size_at(args, 0).wrapping_mul(size_at(args, 1));
    units(scaled(product, 1.0).wrapping_add(1))
}

fn by_both_twice(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    let product = size_at(args, 0).wrapping_mul(size_at(args, 1));
    units(scaled(product, 2.0).wrapping_add(1))
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `selectorCostEstimate`.
fn selector(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    let size = size_at(args, 1);
    let requirements = scaled_up(size, 0.5).saturating_mul(SELECTOR_REQUIREMENT_COST);
    let parsing = string_traversal_cost(size);
    units(
        LIST_CREATE_BASE_COST
            .saturating_add(parsing)
            .saturating_add(requirements),
    )
}

fn first_traversed(args: &[Value], _: &Outcome, work: &Work) -> CostResult {
    match args.first() {
        Some(value) => traversal_cost(value, work).map(Some),
        None => units(0),
    }
}

/// The cost of going through all of a value, which is a part of the work of the evaluation.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `traversalCost`.
fn traversal_cost(value: &Value, work: &Work) -> Result<u64, EvalError> {
    let mut cost = 0_u64;
    let mut pending = vec![value.clone()];
    while let Some(value) = pending.pop() {
        work.step()?;
        match value {
            Value::List(list) => pending.extend(list.iter()),
            Value::Map(map) => {
                for (key, value) in map.entries().unwrap_or_default() {
                    pending.extend([key, value]);
                }
            }
            value => cost = cost.wrapping_add(flat_cost(&value)),
        }
    }
    Ok(cost)
}

/// The cost of going through a value that holds no others: of a text by its bytes.
fn flat_cost(value: &Value) -> u64 {
    let of_bytes = |len: usize| scaled(u64::try_from(len).unwrap_or(u64::MAX), 0.1);
    match value {
        Value::String(text) => of_bytes(text.len()),
        Value::Bytes(bytes) => of_bytes(bytes.len()),
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

fn searched(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    units(matching_cost(size_at(args, 0), size_at(args, 1)))
}

fn validated(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    match args.first().and_then(Value::downcast::<Format>) {
        Some(format) => units(matching_cost(size_at(args, 1), format.pattern_len)),
        None => Ok(None),
    }
}

/// The cost of comparing an address with a network.
fn compared_with_network(args: &[Value]) -> u64 {
    string_traversal_cost(size_at(args, 0).wrapping_mul(2))
}

fn contains_ip(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    units(compared_with_network(args))
}

fn contains_ip_text(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    let text = string_traversal_cost(size_at(args, 1));
    units(compared_with_network(args).wrapping_add(text))
}

/// The cost of comparing a network with a network.
fn compared_networks(args: &[Value]) -> u64 {
    let masked = string_traversal_cost(size_at(args, 0));
    compared_with_network(args)
        .wrapping_add(masked)
        .wrapping_add(1)
}

fn contains_cidr(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    units(compared_networks(args))
}

fn contains_cidr_text(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    let text = string_traversal_cost(size_at(args, 1));
    units(compared_networks(args).wrapping_add(text))
}

/// Values of the types that the API server adds are compared at the cost of one. Others that are opaque
/// here, such as messages and fields of unknown type, go by the language's own rule.
fn equality(args: &[Value], _: &Outcome, _: &Work) -> CostResult {
    match args {
        [Value::Opaque(value), _] if is_added(&value.type_()) => units(1),
        _ => Ok(None),
    }
}

/// Whether a type is one that the API server adds to the language's.
fn is_added(type_: &Type) -> bool {
    let name = type_.type_name();
    ["kubernetes.", "net."]
        .iter()
        .any(|package| name.starts_with(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(function: &str, overload: &str, args: &[Value], result: Value, expected: u64) {
        let cost = call_cost(function, overload).unwrap();
        assert_eq!(
            cost(args, &Ok(result), &Work::default()),
            Ok(Some(expected)),
            "{function}"
        );
    }

    fn text(len: usize) -> Value {
        "a".repeat(len).into()
    }

    fn list(element: &Value, len: usize) -> Value {
        Value::list(vec![element.clone(); len])
    }

    #[test]
    fn by_size() {
        check("lowerAscii", "", &[text(11)], text(11), 2);
        check("replace", "", &[text(11), text(1), text(1)], text(11), 3);
        check("join", "", &[list(&text(1), 2)], text(21), 5);
        check("find", "", &[text(0), text(4)], text(0), 1);
        check("findAll", "", &[text(100), text(9)], list(&text(1), 3), 33);
        check("sum", "", &[list(&Value::Int(1), 7)], Value::Int(7), 7);
        check("max", "", &[list(&text(25), 3)], text(25), 6);
        check("indexOf", "", &[text(25), text(1)], Value::Int(0), 2);
        check(
            "labelSelector",
            "",
            &[Value::Null, text(3)],
            Value::Null,
            111,
        );
        check("check", "", &[], Value::Null, 350_000);
    }

    #[test]
    fn extensions() {
        let numbers = |len| list(&Value::Int(1), len);
        check("slice", "list_slice", &[], numbers(5), 16);
        check("flatten", "list_flatten", &[numbers(4)], numbers(9), 15);
        check(
            "flatten",
            "list_flatten_int",
            &[numbers(4), Value::Int(3)],
            numbers(9),
            23,
        );
        check("sort", "list_int_sort", &[numbers(10)], numbers(10), 211);
        check(
            "sort",
            "list_string_sort",
            &[list(&text(1), 10)],
            Value::Null,
            221,
        );
        check("distinct", "list_distinct", &[numbers(0)], numbers(0), 11);
        let (left, right) = (numbers(3), numbers(4));
        check(
            "",
            "list_sets_contains_list",
            &[left.clone(), right.clone()],
            true.into(),
            13,
        );
        check(
            "",
            "list_sets_equivalent_list",
            &[left, right],
            true.into(),
            25,
        );
    }

    #[test]
    fn what_upstream_takes_for_granted() {
        let failed = Value::Error(EvalError::fixed("division by zero"));
        let message = |overload, args: &[Value]| {
            let cost = call_cost("", overload).unwrap();
            let error =
                cost(args, &Err(EvalError::no_such_overload()), &Work::default()).unwrap_err();
            assert!(error.ends_evaluation());
            error.message().to_owned()
        };
        let lister = "is not traits.Lister: missing method";
        assert_eq!(
            message("list_distinct", std::slice::from_ref(&failed)),
            format!("internal error: interface conversion: *types.Err {lister} Add")
        );
        assert_eq!(
            message("list_distinct", &[Value::Int(1)]),
            format!("internal error: interface conversion: types.Int {lister} Contains")
        );
        assert_eq!(
            message("list_flatten_int", &[Value::list(vec![]), failed]),
            "internal error: interface conversion: ref.Val is *types.Err, not types.Int"
        );
    }
}
