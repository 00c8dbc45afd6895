//! Costs of the functions of the API server's libraries. Each of upstream's rules is one constant with the estimate and
//! the cost of an evaluated call.
//!
//! Upstream's rules apply to function names. The few overloads that differ are distinguished by their ids.
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

/// The cost of an authorization check, in cost units: two fit into one call.
pub const AUTHORIZER_CHECK_COST: u64 = 350_000;

/// The cost of a requirement of a selector: an object with a list of values.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `costPerRequirement`.
const SELECTOR_REQUIREMENT_COST: u64 = LIST_CREATE_BASE_COST + STRUCT_CREATE_BASE_COST;

/// Creates the costs of all overloads of a function.
const fn per_function(estimate: StaticCost, actual: RuntimeCost) -> Costs {
    Costs::new(estimate, actual).per_function()
}

/// A nominal cost: the builders and accessors of the authorizer, of addresses, formats, quantities, versions and URLs.
pub(super) const NOMINAL: Costs = Costs::fixed(1).per_function();

/// Same as [`NOMINAL`], for one overload. Other overloads of its function parse a string.
pub(super) const CIDR_IP: Costs = Costs::fixed(1);

/// An authorization check.
pub(super) const AUTHORIZER_CHECK: Costs = Costs::fixed(AUTHORIZER_CHECK_COST).per_function();

/// Parses a selector and stores its requirements.
pub(super) const SELECTOR: Costs = per_function(
    StaticCost::Of(estimated::selector),
    RuntimeCost::ByArgs(measured::selector),
);

/// Traverses a list with a comparison per element, or searches a string.
pub(super) const SCANNED: Costs = per_function(
    StaticCost::Of(estimated::scan),
    RuntimeCost::By(measured::first_walked),
);

/// Reads the receiver, a string, once. The result is no longer than it.
pub(super) const READ: Costs = per_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.target, sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// Reads a string and converts it to a URL, which is no longer than it.
pub(super) const CONVERTED_URL: Costs = per_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.args.first(), sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// Parses a string.
pub(super) const PARSED: Costs = per_function(
    StaticCost::Of(estimated::parsing),
    RuntimeCost::ByArgs(measured::first_read),
);

/// Parses an address and compares it with its canonical text.
pub(super) const CANONICAL: Costs = per_function(
    StaticCost::Of(estimated::canonical),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// Reads a string and writes the result.
pub(super) const REPLACED: Costs = per_function(
    StaticCost::Of(estimated::replace),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// Reads a string and writes its parts.
pub(super) const SPLIT: Costs = per_function(
    StaticCost::Of(estimated::split),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// Concatenates strings.
pub(super) const JOINED: Costs = per_function(
    StaticCost::Of(estimated::join),
    RuntimeCost::By(measured::result_written),
);

/// Searches a string with a regular expression.
pub(super) const SEARCHED: Costs = per_function(
    StaticCost::Of(estimated::find),
    RuntimeCost::ByArgs(measured::searched),
);

/// Validates a string against a format, whose library measures the cost.
pub(super) const fn validated(measured: fn(&[Value]) -> u64) -> Costs {
    per_function(
        StaticCost::Of(estimated::validate),
        RuntimeCost::ByArgs(measured),
    )
}

/// Compares an address with a network.
pub(super) const CONTAINS_IP: Costs = per_function(
    StaticCost::Of(estimated::contains_ip),
    RuntimeCost::ByArgs(measured::contains_ip),
);

/// Parses an address and compares it with a network.
pub(super) const CONTAINS_IP_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_ip_text),
    RuntimeCost::ByArgs(measured::contains_ip_text),
);

/// Masks a network and compares it with a network.
pub(super) const CONTAINS_CIDR: Costs = per_function(
    StaticCost::Of(estimated::contains_cidr),
    RuntimeCost::ByArgs(measured::contains_cidr),
);

/// Parses and masks a network and compares it with a network.
pub(super) const CONTAINS_CIDR_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_cidr_text),
    RuntimeCost::ByArgs(measured::contains_cidr_text),
);

/// Compares values. Types that the API server adds have their own costs, others those of the language.
pub(super) const EQUAL: Costs = Costs::new(
    StaticCost::Of(estimated::equality),
    RuntimeCost::ByArgs(measured::equality),
);
