//! The costs of the functions in the API server's libraries. Each constant corresponds to one cost rule of upstream,
//! and contains the estimated cost and the measured cost of a call.
//!
//! Most of upstream's cost rules apply to function names. If one overload has a different cost than the other overloads
//! of its function, the rule applies to the overload id.
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

/// The cost of an authorization check, in CEL cost units. Three checks in one expression exceed the cost limit.
pub const AUTHORIZER_CHECK_COST: u64 = 350_000;

/// The cost of one requirement of a selector, in CEL cost units. It is the cost of creating an object and a list.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `costPerRequirement`.
const SELECTOR_REQUIREMENT_COST: u64 = LIST_CREATE_BASE_COST + STRUCT_CREATE_BASE_COST;

const fn per_function(estimate: StaticCost, actual: RuntimeCost) -> Costs {
    Costs::new(estimate, actual).per_function()
}

/// The constant cost of 1, for most constructors and accessors of authorizers, addresses, formats, quantities, versions
/// and URLs.
pub(super) const NOMINAL: Costs = Costs::fixed(1).per_function();

/// The constant cost of 1 for the overload `cidr_ip`. It does not apply to the other overload of `ip`, which parses a
/// string.
pub(super) const CIDR_IP: Costs = Costs::fixed(1);

pub(super) const AUTHORIZER_CHECK: Costs = Costs::fixed(AUTHORIZER_CHECK_COST).per_function();

/// The cost of parsing a selector.
pub(super) const SELECTOR: Costs = per_function(
    StaticCost::Of(estimated::selector),
    RuntimeCost::ByArgs(measured::selector),
);

/// The cost of comparing each element of a list, or of searching a string.
pub(super) const SCANNED: Costs = per_function(
    StaticCost::Of(estimated::scan),
    RuntimeCost::By(measured::first_walked),
)
.with_estimate_of_actual(StaticCost::Of(estimated::measured_scan));

/// The cost of `includes`, which compares each element of a list. The receiver may have any type.
pub(super) const INCLUDED: Costs = per_function(
    StaticCost::Of(estimated::inclusion),
    RuntimeCost::By(measured::first_walked),
)
.with_estimate_of_actual(StaticCost::Of(estimated::measured_scan));

/// The cost of reading the receiver once. The receiver and the result are strings. The result is at most as long as the
/// receiver.
pub(super) const READ: Costs = per_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.target, sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// The cost of reading the first argument, a string, once. The result is at most as long as the argument.
pub(super) const CONVERTED_URL: Costs = per_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.args.first(), sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

pub(super) const PARSED: Costs = per_function(
    StaticCost::Of(estimated::parsing),
    RuntimeCost::ByArgs(measured::first_read),
);

/// The cost of parsing an IP address and comparing it with its canonical form.
pub(super) const CANONICAL: Costs = per_function(
    StaticCost::Of(estimated::canonical),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

pub(super) const REPLACED: Costs = per_function(
    StaticCost::Of(estimated::replace),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

pub(super) const SPLIT: Costs = per_function(
    StaticCost::Of(estimated::split),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

pub(super) const JOINED: Costs = per_function(
    StaticCost::Of(estimated::join),
    RuntimeCost::By(measured::result_written),
)
.with_estimate_of_actual(StaticCost::Of(estimated::measured_join));

pub(super) const SEARCHED: Costs = per_function(
    StaticCost::Of(estimated::find),
    RuntimeCost::ByArgs(measured::searched),
);

/// Returns the cost of validating a string against a format. `measured` computes the measured cost.
pub(super) const fn validated(measured: fn(&[Value]) -> u64) -> Costs {
    per_function(
        StaticCost::Of(estimated::validate),
        RuntimeCost::ByArgs(measured),
    )
}

pub(super) const CONTAINS_IP: Costs = per_function(
    StaticCost::Of(estimated::contains_ip),
    RuntimeCost::ByArgs(measured::contains_ip),
);

/// The cost of parsing an address and checking whether the receiver, a network, contains this address.
pub(super) const CONTAINS_IP_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_ip_text),
    RuntimeCost::ByArgs(measured::contains_ip_text),
)
.by_platform();

pub(super) const CONTAINS_CIDR: Costs = per_function(
    StaticCost::Of(estimated::contains_cidr),
    RuntimeCost::ByArgs(measured::contains_cidr),
);

/// The cost of parsing a network and checking whether the receiver contains this network.
pub(super) const CONTAINS_CIDR_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_cidr_text),
    RuntimeCost::ByArgs(measured::contains_cidr_text),
)
.by_platform();

/// The cost of comparing two values. Types that the API server adds have their own costs. All other types have CEL's
/// costs.
pub(super) const EQUAL: Costs = Costs::new(
    StaticCost::Of(estimated::equality),
    RuntimeCost::ByArgs(measured::equality),
);
