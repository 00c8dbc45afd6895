//! Expressions for which upstream violates a property. This project behaves like upstream. Each exception was observed
//! by running upstream.

use vap_status_controller::cel::ast::{Expr, ExprId};
use vap_status_controller::cel::checker::{CheckedAst, Reference};
use vap_status_controller::cel::types::Type;

/// Overloads whose actual cost can exceed upstream's estimate.
///
/// - `flatten`: The estimate assumes that the result is as long as the outer list. Source: cel-go `ext/lists.go`,
///   `estimateListFlatten`.
/// - `distinct` of strings: Only the actual cost includes the comparison of strings. Source: `estimateListDistinct`,
///   `trackListDistinct`.
/// - `findAll`: The estimate assumes that an empty string has no match, but it has one. Source: k8s.io/apiserver
///   `pkg/cel/library/cost.go`, `CostEstimator.EstimateCallCost` of `findAll`.
/// - `startsWith` and `endsWith`: The estimate depends on the argument, the actual cost on the receiver. Source: cel-go
///   `checker/cost.go`, `interpreter/runtimecost.go`, `StartsWithString`.
/// - `validate` of formats: The estimate assumes no cost for an empty string, but the pattern has a cost. Source:
///   estimated and actual cost of `validate`.
/// - `indexOf` of lists: The estimate assumes that elements of type `dyn` have size one. Source: `CostEstimator` of
///   `indexOf`.
const UNDERESTIMATED: [&str; 10] = [
    "list_flatten",
    "list_flatten_int",
    "list_distinct",
    "string_find_all_string",
    "string_find_all_string_int",
    "starts_with_string",
    "ends_with_string",
    "format-validate",
    "list_a_index_of_int",
    "list_a_last_index_of_int",
];

/// Overloads that return the error "no such overload" for an invalid address.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cidr.go`, `cidrContainsIP`, `cidrContainsCIDR`.
const NO_OVERLOAD_FOR_A_BAD_TEXT: [&str; 2] =
    ["cidr_contains_ip_string", "cidr_contains_cidr_string"];

/// Returns true if there is a known reason why the actual cost of `checked` may exceed the estimate.
pub(super) fn may_cost_more(checked: &CheckedAst) -> bool {
    has_relative_attribute(checked) || calls(checked, &UNDERESTIMATED)
}

/// Returns the maximum difference between the actual cost and the estimate for an expression that fails. The actual
/// cost counts an error argument as a value of size one. The estimate may assume size zero.
///
/// A selector of an authorization check costs 2 for one code point: one for parsing, and one for a requirement.
///
/// Source: cel-go `interpreter/runtimecost.go`, `actualSize`; k8s.io/apiserver `pkg/cel/library/cost.go`,
/// `selectorCostEstimate`.
pub(super) fn cost_of_errors(checked: &CheckedAst) -> u64 {
    const OF_SELECTOR: usize = 51;
    let is_selector = |(_, expr): &(ExprId, &Expr)| match expr {
        Expr::Call { function, .. } => matches!(&**function, "fieldSelector" | "labelSelector"),
        _ => false,
    };
    let n_selectors = checked.ast().iter().filter(is_selector).count();
    let cost = checked.ast().len() + n_selectors * OF_SELECTOR;
    u64::try_from(cost).unwrap_or(u64::MAX)
}

/// Returns true if an overload may be missing at run time although all types are known. Also returns true if the type
/// of a value may differ from the checked type.
pub(super) fn may_lose_values(checked: &CheckedAst) -> bool {
    has_odd_optionals(checked)
        || calls(checked, &NO_OVERLOAD_FOR_A_BAD_TEXT)
        || computes_with_null(checked)
}

/// Returns true if null is an argument of a function that does not accept null at run time. For example, the checker
/// accepts `null < null`, but the evaluator has no such overload.
///
/// Source: cel-go `checker/types.go`, `internalIsAssignable`, `isLegacyNullable`.
fn computes_with_null(checked: &CheckedAst) -> bool {
    let takes_null = |function: &str| {
        matches!(
            function,
            "_==_" | "_!=_" | "_?:_" | "@in" | "dyn" | "type" | "_[_]"
        )
    };
    checked.ast().iter().any(|(_, expr)| match expr {
        Expr::Call {
            function,
            target,
            args,
        } if !takes_null(function) => {
            let mut operands = target.iter().chain(args.iter());
            operands.any(|id| matches!(checked.type_at(*id), Type::Null))
        }
        _ => false,
    })
}

/// Returns true if an index or a selection has an operand that is neither a variable nor a field of a variable.
///
/// The estimate for such an operation is too low by one: for `[1, x][0]`, the estimate is 13, and the actual cost is
/// 14.
///
/// Source: cel-go `checker/cost.go`, `costSelect`; `interpreter/attributes.go`, `relativeAttribute`;
/// `interpreter/runtimecost.go`, `CostObserver`.
fn has_relative_attribute(checked: &CheckedAst) -> bool {
    let ast = checked.ast();
    ast.iter().any(|(_, expr)| match expr {
        Expr::Select { operand, .. } => !is_attribute(checked, *operand),
        Expr::Call { function, args, .. } if is_index(function) => !is_attribute(checked, args[0]),
        _ => false,
    })
}

fn is_attribute(checked: &CheckedAst, mut id: ExprId) -> bool {
    loop {
        id = match checked.ast().expr(id) {
            Expr::Ident(_) => return true,
            Expr::Select { operand, .. } => *operand,
            Expr::Call { function, args, .. } if is_index(function) => args[0],
            _ => return false,
        };
    }
}

fn is_index(function: &str) -> bool {
    matches!(function, "_[_]" | "_[?_]" | "_?._")
}

fn calls(checked: &CheckedAst, ids: &[&str]) -> bool {
    checked
        .ast()
        .iter()
        .any(|(id, _)| match checked.reference(id) {
            Some(Reference::Function { overloads, .. }) => {
                overloads.iter().any(|row| ids.contains(&row.id))
            }
            _ => false,
        })
}

/// Returns true if the expression has an optional that contains an optional, a type, or a value of an opaque type.
///
/// A conditional converts an optional to a native value and back. `optMap` contains a conditional. The conversion
/// flattens nested optionals, converts a type to its name, and loses opaque values. An index into a list or map of
/// optionals returns the contained optional.
///
/// Source: cel-go `interpreter/attributes.go`, `conditionalAttribute.Resolve`; `common/types/optional.go`,
/// `Optional.Value`.
fn has_odd_optionals(checked: &CheckedAst) -> bool {
    let known_types = checked.ast().iter();
    known_types
        .filter_map(|(id, _)| checked.known_type(id))
        .any(is_odd)
}

fn is_odd(type_: &Type) -> bool {
    match type_ {
        Type::List(element) => is_odd(element),
        Type::Map(entry) => is_odd(&entry.1),
        _ => type_.optional_value().is_some_and(|held| {
            matches!(held, Type::Opaque(_) | Type::Struct(_) | Type::Type(_)) || is_odd(held)
        }),
    }
}
