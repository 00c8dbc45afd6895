//! The costs of the functions in the API server's libraries. Each cost rule of upstream is one constant, which combines
//! the estimate and the cost of an evaluated call.
//!
//! Upstream's rules apply to function names. A few overloads have a different cost than the other overloads of the
//! function. Their rules apply to overload ids.
//!
//! Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.EstimateCallCost`,
//! `CostEstimator.CallCost`.

mod estimated;
mod measured;
#[cfg(test)]
mod tests;

use cel::cost::factors::{LIST_CREATE_BASE_COST, STRUCT_CREATE_BASE_COST};
use cel::cost::{Costs, RuntimeCost, StaticCost};
use cel::value::Value;

/// The cost of an authorization check, in CEL cost units. One expression can perform at most two checks without
/// exceeding the cost limit.
pub const AUTHORIZER_CHECK_COST: u64 = 350_000;

/// The cost of one requirement of a selector, in CEL cost units: the cost of creating an object and a list of values.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `costPerRequirement`.
const SELECTOR_REQUIREMENT_COST: u64 = LIST_CREATE_BASE_COST + STRUCT_CREATE_BASE_COST;

/// Creates costs that apply to all overloads of a function.
const fn per_function(estimate: StaticCost, actual: RuntimeCost) -> Costs {
    Costs::new(estimate, actual).per_function()
}

/// A constant cost of 1, for builders and accessors of authorizers, addresses, formats, quantities, versions and URLs.
pub(super) const NOMINAL: Costs = Costs::fixed(1).per_function();

/// The same cost as [`NOMINAL`], but only for the overload `cidr_ip`. The other overload of the function `ip` parses a
/// string and has a different cost.
pub(super) const CIDR_IP: Costs = Costs::fixed(1);

/// The cost of an authorization check.
pub(super) const AUTHORIZER_CHECK: Costs = Costs::fixed(AUTHORIZER_CHECK_COST).per_function();

/// The cost of parsing a selector and storing its requirements.
pub(super) const SELECTOR: Costs = per_function(
    StaticCost::Of(estimated::selector),
    RuntimeCost::ByArgs(measured::selector),
);

/// The cost of traversing a list with a comparison for each element, or of searching a string.
pub(super) const SCANNED: Costs = per_function(
    StaticCost::Of(estimated::scan),
    RuntimeCost::By(measured::first_walked),
);

/// The cost of `includes`, which compares each element of a list. The receiver may have any type.
pub(super) const INCLUDED: Costs = per_function(
    StaticCost::Of(estimated::inclusion),
    RuntimeCost::By(measured::first_walked),
);

/// The cost of reading the receiver, a string, once. The result is at most as long as the receiver.
pub(super) const READ: Costs = per_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.target, sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// The cost of reading the first argument, a string, once. The result is at most as long as the argument.
pub(super) const CONVERTED_URL: Costs = per_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.args.first(), sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// The cost of parsing a string.
pub(super) const PARSED: Costs = per_function(
    StaticCost::Of(estimated::parsing),
    RuntimeCost::ByArgs(measured::first_read),
);

/// The cost of parsing an IP address and comparing it with its canonical form.
pub(super) const CANONICAL: Costs = per_function(
    StaticCost::Of(estimated::canonical),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// The cost of `replace`, which reads a string and writes the result.
pub(super) const REPLACED: Costs = per_function(
    StaticCost::Of(estimated::replace),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// The cost of `split`, which reads a string and writes its parts.
pub(super) const SPLIT: Costs = per_function(
    StaticCost::Of(estimated::split),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// The cost of concatenating strings.
pub(super) const JOINED: Costs = per_function(
    StaticCost::Of(estimated::join),
    RuntimeCost::By(measured::result_written),
);

/// The cost of searching a string with a regular expression.
pub(super) const SEARCHED: Costs = per_function(
    StaticCost::Of(estimated::find),
    RuntimeCost::ByArgs(measured::searched),
);

/// Returns the cost of validating a string against a format. `measured` computes the cost of an evaluated call.
pub(super) const fn validated(measured: fn(&[Value]) -> u64) -> Costs {
    per_function(
        StaticCost::Of(estimated::validate),
        RuntimeCost::ByArgs(measured),
    )
}

/// The cost of checking whether a network contains an address.
pub(super) const CONTAINS_IP: Costs = per_function(
    StaticCost::Of(estimated::contains_ip),
    RuntimeCost::ByArgs(measured::contains_ip),
);

/// The cost of parsing an address and checking whether a network contains it.
pub(super) const CONTAINS_IP_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_ip_text),
    RuntimeCost::ByArgs(measured::contains_ip_text),
);

/// The cost of checking whether a network contains another network.
pub(super) const CONTAINS_CIDR: Costs = per_function(
    StaticCost::Of(estimated::contains_cidr),
    RuntimeCost::ByArgs(measured::contains_cidr),
);

/// The cost of parsing a network and checking whether another network contains it.
pub(super) const CONTAINS_CIDR_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_cidr_text),
    RuntimeCost::ByArgs(measured::contains_cidr_text),
);

/// The cost of comparing two values. Types that the API server added have their own costs. Other types have the costs
/// that CEL defines.
pub(super) const EQUAL: Costs = Costs::new(
    StaticCost::Of(estimated::equality),
    RuntimeCost::ByArgs(measured::equality),
);
