//! Expressions for which upstream violates a property. This project reproduces upstream, and each exception was
//! observed by running upstream.

use vap_status_controller::cel::ast::{Expr, ExprId};
use vap_status_controller::cel::checker::{CheckedAst, Reference};
use vap_status_controller::cel::types::Type;

/// Overloads whose actual cost can be higher than upstream's estimate.
///
/// - `flatten`: the estimate assumes that the result is as long as the outer list (cel-go `ext/lists.go`,
///   `estimateListFlatten`);
/// - `distinct` of strings: only the actual cost includes the comparison of strings (`estimateListDistinct`,
///   `trackListDistinct`);
/// - `findAll`: the estimate assumes that an empty string has no match, but it has one (k8s.io/apiserver
///   `pkg/cel/library/cost.go`, `CostEstimator.EstimateCallCost` of `findAll`);
/// - `startsWith` and `endsWith`: the estimate depends on the argument, the actual cost on the receiver (cel-go
///   `checker/cost.go`, `interpreter/runtimecost.go`, both for `StartsWithString`);
/// - `validate` of formats: the estimate assumes no cost for an empty string, but the actual cost is that of the
///   pattern (both of `validate`);
/// - `indexOf` of lists: the estimate assumes that elements of type `dyn` have size one (`CostEstimator` of `indexOf`).
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

/// Overloads that, for an invalid address, return the error that there is no such overload.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cidr.go`, `cidrContainsIP`, `cidrContainsCIDR`.
const NO_OVERLOAD_FOR_A_BAD_TEXT: [&str; 2] =
    ["cidr_contains_ip_string", "cidr_contains_cidr_string"];

/// Returns true if the actual cost of `checked` may be higher than the estimate for a known reason.
pub(super) fn may_cost_more(checked: &CheckedAst) -> bool {
    has_relative_attribute(checked) || calls(checked, &UNDERESTIMATED)
}

/// Returns how much the actual cost of an expression that ends with an error may exceed the estimate. An error as an
/// argument counts as a value of size one, but the estimate may assume size zero.
///
/// A selector of an authorization check costs 2 for one code point: one for parsing it, and one for a requirement.
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

/// Returns true if an overload may be missing at run time although all types are known, or if a value may have a type
/// other than the checked type.
pub(super) fn may_lose_values(checked: &CheckedAst) -> bool {
    has_odd_optionals(checked)
        || calls(checked, &NO_OVERLOAD_FOR_A_BAD_TEXT)
        || computes_with_null(checked)
}

/// Returns true if null is an argument of a function that requires a duration, a timestamp or another nullable type.
/// The checker accepts, for example, `null < null`, but the evaluator has no such overload.
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

/// Returns true if the expression has an index or a selection whose operand is neither a variable nor a field of a
/// variable.
///
/// The estimate omits one unit of its actual cost: for `[1, x][0]`, the estimate is 13, and the actual cost is 14.
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

/// Returns true if the expression has an optional of an optional, of a type, or of a value of an opaque type.
///
/// A conditional (including the one in `optMap`) converts an optional to a native value and back. Nested optionals then
/// become one optional, a type becomes its name, and opaque values are lost. An index into a list or map of optionals
/// returns the optional in it.
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
