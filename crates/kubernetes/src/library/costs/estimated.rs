//! Estimates the costs of calls from the sizes of their arguments.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.EstimateCallCost`.

use super::SELECTOR_REQUIREMENT_COST;
use crate::library::limits::{MAX_FORMAT_SIZE, MAX_NAME_FORMAT_REGEX_SIZE};
use cel::ast::Literal;
use cel::cost::factors::{
    LIST_CREATE_BASE_COST, REGEX_STRING_LENGTH_COST_FACTOR, STRING_TRAVERSAL_COST_FACTOR,
};
use cel::cost::{AstNode, Call, CallEstimate, CostEstimate, SizeEstimate, SizeEstimator, size_of};
use cel::stdlib::costs::estimated_comparison;
use cel::types::Type;

type Sizes<'a> = &'a dyn SizeEstimator;

const NOMINAL: CostEstimate = CostEstimate::fixed(1);

/// The estimate for a call with the wrong number of arguments. Checked expressions contain no such call.
const ONE_UNIT: CallEstimate = CallEstimate::from_cost(NOMINAL);

/// The size of an IP address in bytes: 4 for IPv4, 16 for IPv6.
const ADDRESS_SIZE: SizeEstimate = SizeEstimate::new(4, 16);

/// Estimates the cost of a call that reads `text` once. The result is a string that is at most as long as `text`.
pub(super) fn reading(text: Option<&AstNode<'_>>, sizes: Sizes<'_>) -> CallEstimate {
    let Some(text) = text else { return ONE_UNIT };
    let size = size_of(sizes, text);
    CallEstimate::sized(traversal_cost(size), size)
}

pub(super) fn parsing(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    match call.args.first() {
        Some(text) => CallEstimate::from_cost(traversal_cost(size_of(sizes, text))),
        None => ONE_UNIT,
    }
}

pub(super) fn canonical(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    match call.args.first() {
        Some(text) => CallEstimate::from_cost(twice(size_of(sizes, text))),
        None => ONE_UNIT,
    }
}

/// Estimates the cost of a call that compares each element of a list, or reads a string.
pub(super) fn scan(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let Some(target) = call.target else {
        return ONE_UNIT;
    };
    let size = size_of(sizes, target);
    let Some(items) = target.items() else {
        return CallEstimate::from_cost(traversal_cost(size));
    };
    let mut comparison = NOMINAL;
    if items.is_text() {
        comparison = comparison.plus(traversal_cost(size_of(sizes, &items)));
    }
    CallEstimate::from_cost(size.times_cost(comparison))
}

/// Estimates the measured cost of [`scan`] and [`inclusion`]. Unlike the cost that upstream estimates, the measured
/// cost includes nested values.
pub(super) fn measured_scan(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let Some(target) = call.target else {
        return ONE_UNIT;
    };
    let size = size_of(sizes, target);
    let cost = match target.items() {
        _ if target.is_text() => traversal_cost(size).plus(NOMINAL),
        // Each byte of an untyped value may be a separate nested value.
        None => size.times_cost(NOMINAL).plus(NOMINAL),
        Some(items) if items.is_text() => {
            let of_each = NOMINAL.plus(traversal_cost(size_of(sizes, &items)));
            size.times_cost(of_each)
        }
        Some(items) if has_fixed_size(items.type_()) => size.times_cost(NOMINAL),
        // For lists, maps and objects, the size is the JSON size. This size limits the number of nested values, because
        // each value has at least one byte.
        Some(items) => {
            let of_each = NOMINAL.plus(size_of(sizes, &items).times_cost(NOMINAL));
            size.times_cost(of_each)
        }
    };
    CallEstimate::from_cost(cost)
}

/// Returns true if all values of the type have the same size.
fn has_fixed_size(type_: &Type) -> bool {
    matches!(
        type_,
        Type::Bool
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::Null
            | Type::Timestamp
            | Type::Uint
    )
}

/// Estimates the cost of a search for an element. A receiver of unknown type is treated as a list.
pub(super) fn inclusion(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    match call.target {
        Some(target) if target.items().is_none() => {
            CallEstimate::from_cost(size_of(sizes, target).times_cost(NOMINAL))
        }
        _ => scan(call, sizes),
    }
}

/// Estimates the cost of a call of `replace`, and the size of its result.
pub(super) fn replace(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let (Some(target), [replaced, replacement, ..]) = (call.target, call.args) else {
        return ONE_UNIT;
    };
    let size = size_of(sizes, target);
    let (replaced, replacement) = (size_of(sizes, replaced), size_of(sizes, replacement));
    // The result is longest if the replaced string has its minimum size and occurs as often as possible. If the
    // replacement is not longer than the replaced string, the result is longest without a match. `kept_most` is the
    // size of the part that is not replaced.
    let (most, kept_most) = if replaced.min == 0 {
        // An empty string matches between any two code points and at both ends of the string.
        (size.max.saturating_add(1), size.max)
    } else if replacement.max <= replaced.min {
        (0, size.max)
    } else {
        (quotient(size.max, replaced.min), 0)
    };
    // The result is shortest if the replaced string has its maximum size and occurs as often as possible. If the
    // replacement is not shorter than the replaced string, the result is shortest without a match.
    let (fewest, kept_fewest) = if replaced.max == 0 {
        (size.min.saturating_add(1), size.min)
    } else if replaced.max <= replacement.min {
        (0, size.min)
    } else {
        (quotient(size.min, replaced.max), 0)
    };
    let result = SizeEstimate::new(fewest, most)
        .times(replacement)
        .plus(SizeEstimate::new(kept_fewest, kept_most));
    CallEstimate::sized(twice(size), result)
}

/// Estimates the cost of a call of `split`. A constant second argument limits the number of parts. Without such a
/// limit, each code point can be a part.
pub(super) fn split(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let Some(target) = call.target else {
        return ONE_UNIT;
    };
    let size = size_of(sizes, target);
    let most = match call.args.get(1).and_then(AstNode::literal) {
        Some(Literal::Int(limit)) => limit.cast_unsigned(),
        _ => size.max,
    };
    CallEstimate::sized(twice(size), SizeEstimate::new(0, most))
}

/// Estimates the cost of a call of `join`, which writes all elements and the separators between them.
pub(super) fn join(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let Some(list) = call.target else {
        return ONE_UNIT;
    };
    let n_elements = size_of(sizes, list);
    let mut size = list.items().map_or(SizeEstimate::fixed(0), |items| {
        n_elements.times(size_of(sizes, &items))
    });
    if let Some(separator) = call.args.first() {
        let n_separators = SizeEstimate::new(
            n_elements.min.saturating_sub(1),
            n_elements.max.saturating_sub(1),
        );
        size = size.plus(size_of(sizes, separator).times(n_separators));
    }
    CallEstimate::sized(traversal_cost(size), size)
}

/// Estimates the measured cost of a call of `join`, which is twice the estimate of upstream.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost`.
pub(super) fn measured_join(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let estimate = join(call, sizes);
    match estimate.result_size {
        Some(size) => CallEstimate::sized(twice(size), size),
        None => estimate,
    }
}

/// Estimates the cost of a search with a regular expression. Each code point of the string can be a match.
pub(super) fn find(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let (Some(target), [regex, ..]) = (call.target, call.args) else {
        return ONE_UNIT;
    };
    let size = size_of(sizes, target);
    // Adds 1, as in upstream, so that searching an empty string is not free.
    let text = traversal_cost(size.plus(SizeEstimate::fixed(1)));
    let regex = size_of(sizes, regex).by_factor(REGEX_STRING_LENGTH_COST_FACTOR);
    CallEstimate::sized(text.times(regex), SizeEstimate::new(0, size.max))
}

pub(super) fn validate(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let Some(text) = call.args.first() else {
        return ONE_UNIT;
    };
    let regex_size = cost_factor_of_regex(MAX_NAME_FORMAT_REGEX_SIZE);
    CallEstimate::from_cost(traversal_cost(size_of(sizes, text)).by_factor(regex_size))
}

pub(super) fn contains_ip(_: &Call<'_>, _: Sizes<'_>) -> CallEstimate {
    CallEstimate::from_cost(compared_addresses())
}

pub(super) fn contains_ip_text(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    with_parsing(compared_addresses(), call, sizes)
}

pub(super) fn contains_cidr(_: &Call<'_>, _: Sizes<'_>) -> CallEstimate {
    CallEstimate::from_cost(compared_networks())
}

pub(super) fn contains_cidr_text(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    with_parsing(compared_networks(), call, sizes)
}

fn compared_addresses() -> CostEstimate {
    traversal_cost(ADDRESS_SIZE.plus(ADDRESS_SIZE))
}

/// The cost of masking a network and comparing it with another network.
fn compared_networks() -> CostEstimate {
    let masking = traversal_cost(ADDRESS_SIZE).plus(NOMINAL);
    compared_addresses().plus(masking)
}

fn with_parsing(cost: CostEstimate, call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    match call.args.first() {
        Some(text) => CallEstimate::from_cost(cost.plus(traversal_cost(size_of(sizes, text)))),
        None => ONE_UNIT,
    }
}

/// Estimates the cost of a call that parses a selector. Upstream assumes one requirement per two code points.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `selectorCostEstimate`.
pub(super) fn selector(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    const REQUIREMENTS_PER_CODE_POINT: f64 = 0.5;
    const COST_PER_REQUIREMENT: f64 = 50.0;
    const _: () = assert!(SELECTOR_REQUIREMENT_COST == 50);
    let [selector] = call.args else {
        return ONE_UNIT;
    };
    let size = size_of(sizes, selector);
    let requirements = size
        .by_factor(REQUIREMENTS_PER_CODE_POINT)
        .by_factor(COST_PER_REQUIREMENT);
    CallEstimate::from_cost(
        CostEstimate::fixed(LIST_CREATE_BASE_COST)
            .plus(traversal_cost(size))
            .plus(requirements),
    )
}

pub(super) fn equality(call: &Call<'_>, sizes: Sizes<'_>) -> CallEstimate {
    let own = match call.args {
        [left, right] => equality_cost(left, right),
        _ => None,
    };
    match own {
        Some(cost) => CallEstimate::from_cost(cost),
        None => estimated_comparison(call, sizes),
    }
}

/// Returns the cost of comparing two values of the same type, if the API server adds this type to CEL. Returns `None`
/// for other types.
fn equality_cost(left: &AstNode<'_>, right: &AstNode<'_>) -> Option<CostEstimate> {
    let (Some(name), Some(other)) = (name_of(left.type_()), name_of(right.type_())) else {
        return None;
    };
    if name != other {
        return None;
    }
    match (left.type_(), name) {
        (Type::Opaque(_), "net.IP" | "net.CIDR")
        | (
            Type::Struct(_),
            "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.authorization.Authorizer"
            | "kubernetes.authorization.PathCheck"
            | "kubernetes.authorization.GroupCheck"
            | "kubernetes.authorization.ResourceCheck"
            | "kubernetes.authorization.Decision",
        ) => Some(NOMINAL),
        (Type::Struct(_), "kubernetes.NamedFormat") => {
            Some(CostEstimate::new(1, MAX_FORMAT_SIZE).by_factor(STRING_TRAVERSAL_COST_FACTOR))
        }
        (Type::Struct(_), "kubernetes.URL") => {
            // Upstream uses only the size of the right operand.
            let size = right.computed_size().map_or(1, |size| size.max);
            Some(CostEstimate::new(1, size).by_factor(STRING_TRAVERSAL_COST_FACTOR))
        }
        _ => None,
    }
}

fn name_of(type_: &Type) -> Option<&str> {
    match type_ {
        Type::Struct(object) => Some(&object.name),
        Type::Opaque(opaque) => Some(&opaque.name),
        _ => None,
    }
}

fn traversal_cost(size: SizeEstimate) -> CostEstimate {
    size.by_factor(STRING_TRAVERSAL_COST_FACTOR)
}

fn twice(size: SizeEstimate) -> CostEstimate {
    size.by_factor(2.0 * STRING_TRAVERSAL_COST_FACTOR)
}

/// Returns `size` divided by `part`, rounded up. Like upstream, divides floating-point numbers.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream divides floats; a conversion back saturates"
)]
fn quotient(size: u64, part: u64) -> u64 {
    (size as f64 / part as f64).ceil() as u64
}

/// Returns the cost per character of matching a string with a regular expression of `size` bytes.
#[expect(
    clippy::cast_precision_loss,
    reason = "sizes of regular expressions are small"
)]
const fn cost_factor_of_regex(size: u64) -> f64 {
    size as f64 * REGEX_STRING_LENGTH_COST_FACTOR
}
