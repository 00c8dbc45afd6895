//! Costs of the functions of the API server's libraries: for each rule of upstream's, the estimate and
//! the cost of an evaluated call side by side.
//!
//! Upstream's rules go by the name of a function; the few overloads that differ are told apart by their ids.
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

/// The cost of a question to the authorizer, in cost units: two fit into a call.
pub const AUTHORIZER_CHECK_COST: u64 = 350_000;

/// The cost of a requirement of a selector: an object with a list of values.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `costPerRequirement`.
const SELECTOR_REQUIREMENT_COST: u64 = LIST_CREATE_BASE_COST + STRUCT_CREATE_BASE_COST;

/// The costs of all calls of a function.
const fn of_function(estimate: StaticCost, actual: RuntimeCost) -> Costs {
    Costs::new(estimate, actual).of_function()
}

/// Next to nothing: the builders and accessors of the authorizer, of addresses, formats, quantities, versions
/// and URLs.
pub(super) const NOMINAL: Costs = Costs::fixed(1).of_function();

/// As [`NOMINAL`], of one overload: other overloads of its function parse a text.
pub(super) const CIDR_IP: Costs = Costs::fixed(1);

/// A question to the authorizer.
pub(super) const AUTHORIZER_CHECK: Costs = Costs::fixed(AUTHORIZER_CHECK_COST).of_function();

/// A selector is parsed, and its requirements are kept.
pub(super) const SELECTOR: Costs = of_function(
    StaticCost::Of(estimated::selector),
    RuntimeCost::ByArgs(measured::selector),
);

/// A list is walked with a comparison for each element, or a text is searched.
pub(super) const SCANNED: Costs = of_function(
    StaticCost::Of(estimated::scan),
    RuntimeCost::By(measured::first_walked),
);

/// The receiver, a text, is read once; the result is no longer than it.
pub(super) const READ: Costs = of_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.target, sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// A text is read and made a URL, which is no longer than it.
pub(super) const CONVERTED_URL: Costs = of_function(
    StaticCost::Of(|call, sizes| estimated::reading(call.args.first(), sizes)),
    RuntimeCost::ByArgs(measured::first_read),
);

/// A text is parsed.
pub(super) const PARSED: Costs = of_function(
    StaticCost::Of(estimated::parsing),
    RuntimeCost::ByArgs(measured::first_read),
);

/// An address is parsed and compared with its own text.
pub(super) const CANONICAL: Costs = of_function(
    StaticCost::Of(estimated::canonical),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// A text is read, and the result is written.
pub(super) const REPLACED: Costs = of_function(
    StaticCost::Of(estimated::replace),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// A text is read, and its parts are written.
pub(super) const SPLIT: Costs = of_function(
    StaticCost::Of(estimated::split),
    RuntimeCost::ByArgs(measured::first_read_twice),
);

/// Texts are written behind each other.
pub(super) const JOINED: Costs = of_function(
    StaticCost::Of(estimated::join),
    RuntimeCost::By(measured::result_written),
);

/// A regular expression runs over a text.
pub(super) const SEARCHED: Costs = of_function(
    StaticCost::Of(estimated::find),
    RuntimeCost::ByArgs(measured::searched),
);

/// A text is held against a format, whose library measures that.
pub(super) const fn validated(measured: fn(&[Value]) -> u64) -> Costs {
    of_function(
        StaticCost::Of(estimated::validate),
        RuntimeCost::ByArgs(measured),
    )
}

/// An address is compared with a network.
pub(super) const CONTAINS_IP: Costs = of_function(
    StaticCost::Of(estimated::contains_ip),
    RuntimeCost::ByArgs(measured::contains_ip),
);

/// An address is parsed, and compared with a network.
pub(super) const CONTAINS_IP_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_ip_text),
    RuntimeCost::ByArgs(measured::contains_ip_text),
);

/// A network is masked, and compared with a network.
pub(super) const CONTAINS_CIDR: Costs = of_function(
    StaticCost::Of(estimated::contains_cidr),
    RuntimeCost::ByArgs(measured::contains_cidr),
);

/// A network is parsed, masked, and compared with a network.
pub(super) const CONTAINS_CIDR_TEXT: Costs = Costs::new(
    StaticCost::Of(estimated::contains_cidr_text),
    RuntimeCost::ByArgs(measured::contains_cidr_text),
);

/// Values of the API server's types are compared at costs of their own, others as the language has it.
pub(super) const EQUAL: Costs = Costs::new(
    StaticCost::Of(estimated::equality),
    RuntimeCost::ByArgs(measured::equality),
);
