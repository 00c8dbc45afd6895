//! The costs of the standard functions, by overload.
//!
//! Source: cel-go `checker/cost.go`, `coster.functionCost`.

use super::factors::{REGEX_STRING_LENGTH_COST_FACTOR, STRING_TRAVERSAL_COST_FACTOR};
use super::node::{AstNode, Call, CallEstimate};
use super::size::{CostEstimate, SizeEstimate};

/// What a call costs with its arguments, of which `arg_costs` are the costs.
///
/// Calls that nothing is known of cost one unit.
pub(super) fn call_estimate(call: &Call<'_>, arg_costs: &[CostEstimate]) -> CallEstimate {
    match (call.overload, arg_costs) {
        // The right side need not be evaluated.
        ("logical_or" | "logical_and", [left, right]) => {
            CallEstimate::of_cost(CostEstimate::new(left.min, left.plus(*right).max))
        }
        ("conditional", [condition, if_true, if_false]) => {
            let cost = condition.plus(if_true.union(*if_false));
            CallEstimate {
                cost,
                result_size: match call.args {
                    [_, if_true, if_false] => {
                        Some(size_or_unknown(if_true).union(size_or_unknown(if_false)))
                    }
                    _ => None,
                },
            }
        }
        _ => {
            let estimate =
                own_estimate(call).unwrap_or(CallEstimate::of_cost(CostEstimate::fixed(1)));
            CallEstimate {
                cost: estimate.cost.plus(sum(arg_costs)),
                ..estimate
            }
        }
    }
}

/// The sum of `costs`.
pub(super) fn sum(costs: &[CostEstimate]) -> CostEstimate {
    costs
        .iter()
        .fold(CostEstimate::default(), |sum, cost| sum.plus(*cost))
}

fn size_or_unknown(node: &AstNode<'_>) -> SizeEstimate {
    node.computed_size().unwrap_or(SizeEstimate::UNKNOWN)
}

fn traversal(size: SizeEstimate) -> CostEstimate {
    size.by_factor(STRING_TRAVERSAL_COST_FACTOR)
}

/// The cost without that of the arguments.
fn own_estimate(call: &Call<'_>) -> Option<CallEstimate> {
    let estimate = match (call.overload, call.target, call.args) {
        ("string_format", Some(format), _) => {
            CallEstimate::of_cost(traversal(size_or_unknown(format)))
        }
        ("string_to_bytes", _, [text]) => {
            let size = size_or_unknown(text);
            // A code point has up to four bytes. As upstream has it, a huge size wraps around.
            let result = SizeEstimate::new(size.min, size.max.wrapping_mul(4));
            CallEstimate::sized(traversal(size), result)
        }
        ("bytes_to_string", _, [bytes]) => {
            let size = size_or_unknown(bytes);
            CallEstimate::sized(traversal(size), SizeEstimate::new(size.min / 4, size.max))
        }
        ("strings_quote", _, [text]) => {
            let size = size_or_unknown(text);
            // Each code point may be escaped, and there are two quotation marks.
            let result = SizeEstimate::new(
                size.min.wrapping_add(2),
                size.max.wrapping_mul(2).wrapping_add(2),
            );
            CallEstimate::sized(traversal(size), result)
        }
        ("starts_with_string" | "ends_with_string", _, [affix]) => {
            CallEstimate::of_cost(traversal(size_or_unknown(affix)))
        }
        // A list of constants is looked up at once when evaluated, which is not accounted for.
        ("in_list", _, [_, list]) => CallEstimate::of_cost(size_or_unknown(list).by_factor(1.0)),
        ("matches_string", Some(text), [regex]) => {
            // An empty text still costs what the regular expression does.
            let text = size_or_unknown(text).plus(SizeEstimate::fixed(1));
            let regex = size_or_unknown(regex).by_factor(REGEX_STRING_LENGTH_COST_FACTOR);
            CallEstimate::of_cost(traversal(text).times(regex))
        }
        ("contains_string", Some(text), [part]) => {
            let part = traversal(size_or_unknown(part));
            CallEstimate::of_cost(traversal(size_or_unknown(text)).times(part))
        }
        ("add_list", _, [left, right]) => {
            let size = size_or_unknown(left).plus(size_or_unknown(right));
            CallEstimate::sized(CostEstimate::fixed(1), size)
        }
        ("add_string" | "add_bytes", _, [left, right]) => {
            let size = size_or_unknown(left).plus(size_or_unknown(right));
            CallEstimate::sized(traversal(size), size)
        }
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals",
            _,
            [left, right],
        ) => {
            let shorter = size_or_unknown(left).max.min(size_or_unknown(right).max);
            CallEstimate::of_cost(traversal(SizeEstimate::new(shorter.min(1), shorter)))
        }
        _ => return None,
    };
    Some(estimate)
}
