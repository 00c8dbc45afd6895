//! Tests of costs that cannot be tested with expressions. `tests/cases/cost` contains the other tests.

use crate::library::environment::base_env;
use crate::library::types;
use crate::version::KubernetesVersion;
use cel::cost::{AstNode, Call, CallEstimate, SizeEstimate, StaticCost, UnknownSizes};
use cel::decls::{OverloadRow, Sig};
use cel::types::Type;
use cel::value::{EvalBudget, EvalError, Value};

/// Returns the row of the overload `id` in the base environment.
fn row(id: &str) -> &'static OverloadRow {
    let functions = base_env(KubernetesVersion::DEFAULT).library().functions();
    let mut rows = functions.flat_map(|function| &function.overloads);
    rows.find(|overload| overload.row.id == id).unwrap().row
}

fn estimate(id: &str, call: &Call<'_>) -> CallEstimate {
    match row(id).costs.estimate {
        StaticCost::Of(estimate) => estimate(call, &UnknownSizes),
        other => panic!("{id}: {other:?}"),
    }
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost_test.go`, `TestSize`.
#[test]
fn result_size_of_replace_is_estimated() {
    #[track_caller]
    fn check(target: u64, args: [(u64, u64); 2], expected: (u64, u64)) {
        let node =
            |(min, max)| AstNode::from_type(&Type::String, Some(SizeEstimate::new(min, max)));
        let call = Call {
            target: Some(&node((target, target))),
            args: &args.map(node),
        };
        let size = estimate("string_replace_string_string", &call).result_size;
        assert_eq!(size, Some(SizeEstimate::new(expected.0, expected.1)));
    }
    check(3, [(0, 0), (1, 1)], (7, 7));
    check(3, [(1, 1), (0, 0)], (0, 3));
    check(4, [(2, 2), (4, 4)], (4, 8));
    check(4, [(0, 1), (0, 2)], (0, 14));
    check(4, [(1, 1), (1, 2)], (4, 8));
    check(4, [(1, 2), (1, 1)], (2, 4));
}

/// Even if the sizes of the values are unknown, the estimated cost is bounded. It is at most 7 units, the cost of
/// traversing the longest format name.
///
/// Source: k8s.io/apiserver `pkg/cel/library/cost_test.go`, `TestTypeEquality`.
#[test]
fn cost_of_equality_is_bounded_for_all_types_of_kubernetes() {
    let types = [
        types::AUTHORIZER,
        types::PATH_CHECK,
        types::GROUP_CHECK,
        types::RESOURCE_CHECK,
        types::DECISION,
        types::URL,
        types::QUANTITY,
        types::IP,
        types::CIDR,
        types::NAMED_FORMAT,
        types::SEMVER,
    ];
    for type_ in types.map(Sig::to_type) {
        let node = AstNode::from_type(&type_, None);
        let call = Call {
            target: None,
            args: &[node, node],
        };
        let cost = estimate("equals", &call).cost;
        assert!(cost.max <= 7, "{type_}: {cost}");
    }
}

#[track_caller]
fn check(id: &str, args: &[Value], result: Value, expected: u64) {
    let cost = row(id)
        .costs
        .actual
        .measure(args, &Ok(result), &EvalBudget::default());
    assert_eq!(cost, Ok(expected), "{id}");
}

fn text(len: usize) -> Value {
    "a".repeat(len).into()
}

fn list(element: &Value, len: usize) -> Value {
    Value::list(vec![element.clone(); len])
}

#[test]
fn measured_costs_depend_on_sizes_of_arguments() {
    check("string_lower_ascii", &[text(11)], text(11), 2);
    let replaced = [text(11), text(1), text(1)];
    check("string_replace_string_string", &replaced, text(11), 3);
    check("list_join", &[list(&text(1), 2)], text(21), 5);
    check("string_find_string", &[text(0), text(4)], text(0), 1);
    let searched = [text(100), text(9)];
    check("string_find_all_string", &searched, list(&text(1), 3), 33);
    let numbers = [list(&Value::Int(1), 7)];
    check("list_int_sum_int", &numbers, Value::Int(7), 7);
    check("list_string_max_string", &[list(&text(25), 3)], text(25), 6);
    let part = [text(25), text(1)];
    check("string_index_of_string", &part, Value::Int(0), 2);
    let selector = [Value::Null, text(3)];
    check("authorizer_labelselector", &selector, Value::Null, 111);
    check("resourcecheck_check", &[], Value::Null, 350_000);
}

#[test]
fn measured_costs_of_extensions_agree_with_upstream() {
    let numbers = |len| list(&Value::Int(1), len);
    check("list_slice", &[], numbers(5), 16);
    check("list_flatten", &[numbers(4)], numbers(9), 15);
    let depth = [numbers(4), Value::Int(3)];
    check("list_flatten_int", &depth, numbers(9), 23);
    check("list_int_sort", &[numbers(10)], numbers(10), 211);
    let texts = [list(&text(1), 10)];
    check("list_string_sort", &texts, Value::Null, 221);
    check("list_distinct", &[numbers(0)], numbers(0), 11);
    let lists = [numbers(3), numbers(4)];
    check("list_sets_contains_list", &lists, true.into(), 13);
    check("list_sets_equivalent_list", &lists, true.into(), 25);
}

#[test]
fn unsupported_arguments_end_evaluation_with_upstream_panic_message() {
    let failed = Value::Error(EvalError::fixed("division by zero"));
    let message = |id, args: &[Value]| {
        let result = Err(EvalError::no_such_overload());
        let cost = row(id)
            .costs
            .actual
            .measure(args, &result, &EvalBudget::default());
        let error = cost.unwrap_err();
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
