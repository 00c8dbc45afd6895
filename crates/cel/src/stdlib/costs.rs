//! Costs of the standard functions, estimated and measured.
//!
//! Source: cel-go `checker/cost.go`, `coster.functionCost`; `interpreter/runtimecost.go`,
//! `CostTracker.costCall`.

use crate::cost::factors::{REGEX_STRING_LENGTH_COST_FACTOR, STRING_TRAVERSAL_COST_FACTOR};
use crate::cost::measure::{matching_cost, string_traversal_cost};
use crate::cost::{
    AstNode, Call, CallEstimate, CostEstimate, Costs, RuntimeCost, SizeEstimate, SizeEstimator,
    StaticCost,
};
use crate::value::Value;

/// Costs of `&&` and `||`, whose right operand is not always evaluated.
pub const LOGIC: Costs = Costs::new(
    StaticCost::WithArgs(|_, arg_costs| match arg_costs {
        [left, right] => {
            CallEstimate::from_cost(CostEstimate::new(left.min, left.plus(*right).max))
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::Fixed(1),
);

/// Costs of the conditional operator, which evaluates one of its branches.
pub const CONDITIONAL: Costs = Costs::new(StaticCost::WithArgs(conditional), RuntimeCost::Fixed(1));

/// Costs of comparing a string with a prefix or suffix. Upstream's estimate depends on the length of the prefix or
/// suffix. The measured cost depends on the length of the whole string.
pub const AFFIX: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.args {
        [affix] => CallEstimate::from_cost(traversal(size_or_unknown(affix))),
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(first_traversed),
)
.with_estimate_of_actual(StaticCost::Of(|call, _| match call.target {
    Some(text) => CallEstimate::from_cost(traversal(size_or_unknown(text))),
    None => ONE_UNIT,
}));

/// Like [`AFFIX`], but the measured cost also depends on the length of the prefix or suffix.
pub const AFFIX_BY_ARGUMENT: Costs = Costs::new(
    AFFIX.estimate,
    RuntimeCost::ByArgs(|args| string_traversal_cost(size_of(args, 1))),
);

/// Costs of converting a string to bytes.
pub const ENCODED: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.args {
        [text] => {
            let size = size_or_unknown(text);
            // A code point has up to four bytes. As in upstream, a huge size wraps around.
            let result = SizeEstimate::new(size.min, size.max.wrapping_mul(4));
            CallEstimate::sized(traversal(size), result)
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(first_traversed),
);

/// Costs of converting bytes to a string.
pub const DECODED: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.args {
        [bytes] => {
            let size = size_or_unknown(bytes);
            CallEstimate::sized(traversal(size), SizeEstimate::new(size.min / 4, size.max))
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(first_traversed),
);

/// Costs of quoting a string.
pub const QUOTED: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.args {
        [text] => {
            let size = size_or_unknown(text);
            // Each code point may be escaped, and two quotation marks are added.
            let result = SizeEstimate::new(
                size.min.wrapping_add(2),
                size.max.wrapping_mul(2).wrapping_add(2),
            );
            CallEstimate::sized(traversal(size), result)
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(first_traversed),
);

/// Costs of parsing a format string, excluding its arguments.
pub const FORMATTED: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.target {
        Some(format) => CallEstimate::from_cost(traversal(size_or_unknown(format))),
        None => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(first_traversed),
);

/// Costs of `in` with a list, which compares a value with each element. A constant list is evaluated as a set lookup,
/// but has the same estimate.
pub const IN_LIST: Costs = Costs::new(
    StaticCost::Of(|call, _| match call.args {
        [_, list] => CallEstimate::from_cost(size_or_unknown(list).by_factor(1.0)),
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(|args| size_of(args, 1)),
);

/// Costs of matching a string with a regular expression.
pub const MATCHED: Costs = Costs::new(
    StaticCost::Of(|call, _| match (call.target, call.args) {
        (Some(text), [regex]) => match_estimate(text, regex),
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(|args| matching_cost(size_of(args, 0), size_of(args, 1))),
);

/// Like [`MATCHED`], for the global function `matches(text, regex)`.
pub const MATCHED_GLOBALLY: Costs = Costs::new(
    StaticCost::Of(|call, _| match (call.target, call.args) {
        (None, [text, regex]) => match_estimate(text, regex),
        _ => ONE_UNIT,
    }),
    MATCHED.actual,
);

/// Costs of searching for a substring.
pub const CONTAINED: Costs = Costs::new(
    StaticCost::Of(|call, _| match (call.target, call.args) {
        (Some(text), [part]) => {
            let part = traversal(size_or_unknown(part));
            CallEstimate::from_cost(traversal(size_or_unknown(text)).times(part))
        }
        _ => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(|args| {
        let text = string_traversal_cost(size_of(args, 0));
        text.wrapping_mul(string_traversal_cost(size_of(args, 1)))
    }),
);

/// Costs of concatenating two lists, which do not depend on their sizes.
pub const JOINED_LISTS: Costs = Costs::new(
    StaticCost::Of(|call, _| match joined_size(call) {
        Some(size) => CallEstimate::sized(CostEstimate::fixed(1), size),
        None => ONE_UNIT,
    }),
    RuntimeCost::Fixed(1),
);

/// Costs of concatenating two strings.
pub const JOINED_TEXTS: Costs = Costs::new(
    StaticCost::Of(|call, _| match joined_size(call) {
        Some(size) => CallEstimate::sized(traversal(size), size),
        None => ONE_UNIT,
    }),
    RuntimeCost::ByArgs(|args| {
        string_traversal_cost(size_of(args, 0).wrapping_add(size_of(args, 1)))
    }),
);

/// Costs of comparing two values, which depend on the size of the shorter one.
pub const COMPARED: Costs = Costs::new(
    StaticCost::Of(estimated_comparison),
    RuntimeCost::ByArgs(measured_comparison),
);

const ONE_UNIT: CallEstimate = CallEstimate::from_cost(CostEstimate::fixed(1));

/// Estimates the cost of [`COMPARED`].
#[must_use]
pub fn estimated_comparison(call: &Call<'_>, _: &dyn SizeEstimator) -> CallEstimate {
    match call.args {
        [left, right] => {
            let shorter = size_or_unknown(left).max.min(size_or_unknown(right).max);
            CallEstimate::from_cost(traversal(SizeEstimate::new(shorter.min(1), shorter)))
        }
        _ => ONE_UNIT,
    }
}

/// Measures the cost of [`COMPARED`].
#[must_use]
pub fn measured_comparison(args: &[Value]) -> u64 {
    string_traversal_cost(size_of(args, 0).min(size_of(args, 1)))
}

fn conditional(call: &Call<'_>, arg_costs: &[CostEstimate]) -> CallEstimate {
    let [condition, if_true, if_false] = arg_costs else {
        return ONE_UNIT;
    };
    CallEstimate {
        cost: condition.plus(if_true.union(*if_false)),
        result_size: match call.args {
            [_, if_true, if_false] => {
                Some(size_or_unknown(if_true).union(size_or_unknown(if_false)))
            }
            _ => None,
        },
    }
}

fn joined_size(call: &Call<'_>) -> Option<SizeEstimate> {
    match call.args {
        [left, right] => Some(size_or_unknown(left).plus(size_or_unknown(right))),
        _ => None,
    }
}

fn size_or_unknown(node: &AstNode<'_>) -> SizeEstimate {
    node.size.unwrap_or(SizeEstimate::UNKNOWN)
}

/// Returns the estimate for matching `text` with `regex`.
fn match_estimate(text: &AstNode<'_>, regex: &AstNode<'_>) -> CallEstimate {
    // Adds 1, as in upstream, so that matching an empty string is not free.
    let text = size_or_unknown(text).plus(SizeEstimate::fixed(1));
    let regex = size_or_unknown(regex).by_factor(REGEX_STRING_LENGTH_COST_FACTOR);
    CallEstimate::from_cost(traversal(text).times(regex))
}

fn traversal(size: SizeEstimate) -> CostEstimate {
    size.by_factor(STRING_TRAVERSAL_COST_FACTOR)
}

fn size_of(args: &[Value], n: usize) -> u64 {
    args.get(n).map_or(1, Value::cost_size)
}

fn first_traversed(args: &[Value]) -> u64 {
    string_traversal_cost(size_of(args, 0))
}
