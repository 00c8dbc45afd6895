//! Tests values with a schema: concatenation and equality of lists. Rules of CustomResourceDefinitions use such values.
//!
//! The expected results are those of `parity/oracle eval` with `typedValues`, which runs the API server's code.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use kubernetes::typed_values::{ValueSchema, typed};
use serde_json::{Value as Json, json};
use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::eval::{Bindings, Limits, Program};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::version::KubernetesVersion;

/// Asserts the results of expressions. `l` has the schema `schema`. `j` has no schema. The type of both is `dyn`.
#[track_caller]
fn check(schema: &Json, l: &Json, rows: &[(&str, &str)]) {
    for (expression, expected) in rows {
        let (result, _) = evaluate(schema, l, expression);
        assert_eq!(result, *expected, "{expression}");
    }
}

/// Evaluates `expression` with the variables of [`check`]. Returns the result as a string, and the cost.
#[track_caller]
fn evaluate(schema: &Json, l: &Json, expression: &str) -> (String, u64) {
    let variables = ["l", "j"].map(|name| Variable::new(name, Type::Dyn));
    let env = base_env(KubernetesVersion::DEFAULT).extend(variables);
    let (ast, _) = syntax::parse(expression);
    let (checked, findings) = checker::check(&Arc::new(ast.unwrap()), expression, &env);
    assert!(findings.is_empty(), "{}", findings.render(expression));
    let program = Program::plan(&checked, &env, &KubernetesRuntime).unwrap();
    let mut bindings = Bindings::default();
    bindings.bind(
        "l",
        typed(
            &Value::from(l),
            &ValueSchema::new(schema, KubernetesVersion::DEFAULT.behavior()),
        ),
    );
    bindings.bind("j", Value::from(&json!([[5]])));
    let evaluation = program.eval(&bindings, Limits::from_cost(1_000_000));
    let findings = match evaluation.result {
        Ok(value) => value.to_go_string(),
        Err(error) => format!("error: {error}"),
    };
    (findings, evaluation.cost)
}

#[test]
fn concatenated_lists_keep_wrapped_values() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    check(
        &schema,
        &json!([1]),
        &[
            ("l + [2]", "[1, 2]"),
            (
                "(l + [[2]])[1]",
                "error: invalid data, expected int, got []ref.Val",
            ),
            (
                "(l + j)[1]",
                "error: invalid data, expected int, got []interface {}",
            ),
            (
                "(l + [{'a': 1}])[1]",
                "error: invalid data, expected int, got map[ref.Val]ref.Val",
            ),
            (
                "(l + [1u])[1]",
                "error: invalid data, expected int, got uint64",
            ),
            (
                "(l + [null])[1]",
                "error: invalid data, expected int, got structpb.NullValue",
            ),
            (
                "(l + [duration('1h')])[1]",
                "error: invalid data, expected int, got time.Duration",
            ),
            (
                "(l + [quantity('1')])[1]",
                "error: invalid data, expected int, got *resource.Quantity",
            ),
            (
                "(l + [int])[1]",
                "error: invalid data, expected int, got string",
            ),
            ("(l + [optional.of(7)])[1]", "7"),
        ],
    );
    let nested = json!({"type": "array", "items": schema});
    let no_array = "error: invalid data, expected an array for the provided schema with type=array";
    check(
        &nested,
        &json!([[1]]),
        &[
            ("(l + [[2]])[1]", no_array),
            ("(l + j)[1]", "[5]"),
            ("(l + l)[1]", "[1]"),
            ("l == [null]", "error: no such overload"),
            ("null in l", "error: no such overload"),
        ],
    );
}

#[test]
fn concatenated_sets_have_upstream_results() {
    let set =
        |items: Json| json!({"type": "array", "x-kubernetes-list-type": "set", "items": items});
    check(
        &set(json!({"type": "string", "nullable": true})),
        &json!(["a", null]),
        &[
            ("(l + ['a', 'b']).size()", "3"),
            ("l == l", "false"),
            ("(l + [null]).size()", "3"),
            (
                "l + [b'a']",
                "error: internal error: runtime error: hash of unhashable type []uint8",
            ),
            (
                "l + j",
                "error: internal error: runtime error: hash of unhashable type []interface {}",
            ),
            (
                "l + [[1]]",
                "error: internal error: runtime error: hash of unhashable type []ref.Val",
            ),
        ],
    );
    check(
        &set(json!({"type": "string", "format": "duration"})),
        &json!(["1h"]),
        &[("l == l", "false"), ("l == []", "false")],
    );
    // As in upstream, concatenation adds the double 1.0 to a set that contains the JSON integer 1.
    check(
        &set(json!({"type": "number"})),
        &json!([1, 1.5]),
        &[("(l + l).size()", "3"), ("(l + l) == (l + l)", "false")],
    );
}

#[test]
fn concatenation_of_map_lists_replaces_items_with_equal_keys() {
    let list = |key: Json, items: Json| json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": key, "items": items});
    let object = json!({"type": "object", "properties": {"k": {"type": "string", "nullable": true}, "v": {"type": "integer"}}});
    check(
        &list(json!(["k"]), object.clone()),
        &json!([{"k": "a", "v": 1}, {"v": 2}]),
        &[
            ("(l + l).size()", "2"),
            ("l == l", "true"),
            // As in upstream, a map literal has no key, so it replaces no item.
            ("(l + [{'k': 'a', 'v': 3}]).size()", "3"),
            ("'%s'.format([l[0]])", "{\"k\":\"a\", \"v\":1}"),
        ],
    );
    // Items that are not objects have no keys, so they replace no items.
    check(
        &list(json!(["k"]), json!({"type": "integer"})),
        &json!([1, 1]),
        &[("(l + l).size()", "4"), ("l == l", "false")],
    );
    let lists = json!({"type": "object", "properties": {"k": {"type": "array", "items": {"type": "integer"}}}});
    check(
        &list(json!(["k"]), lists),
        &json!([{"k": [1]}]),
        &[(
            "l + l",
            "error: internal error: runtime error: hash of unhashable type []interface {}",
        )],
    );
    check(
        &object,
        &json!({"k": null, "v": 1}),
        &[(
            "'%s'.format([l])",
            "error: error during formatting: could not find key: \"k\"",
        )],
    );
}

#[test]
fn untyped_value_has_no_type_error() {
    let error = "error: type conversion to 'type' not supported for values preserved by \
                 x-kubernetes-preserve-unknown-fields";
    check(
        &json!({"x-kubernetes-preserve-unknown-fields": true}),
        &json!({"x": 1}),
        &[
            ("type(l)", error),
            ("[dyn(type(l))].size()", error),
            ("l == l", "true"),
            ("l == {'x': 1}", "false"),
            (
                "l.map(x, x)",
                "error: got '*common.unknownPreserved', expected iterable type",
            ),
        ],
    );
}

/// Source: cel-go `common/types/list.go`, `concatList.Value`; `interpreter/attributes.go`, `newQualifier`.
#[test]
fn concatenated_short_lists_have_upstream_results() {
    let set =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    let unhashable = "error: internal error: runtime error: hash of unhashable type";
    check(
        &set,
        &json!(["a"]),
        &[
            (
                "l == [dyn(['a'] + ['b'])]",
                &format!("{unhashable} []interface {{}}"),
            ),
            ("l == [dyn(['a', 'b'])]", &format!("{unhashable} []ref.Val")),
            (
                "{[]: 1}[[1] + [2]]",
                "error: invalid qualifier type: *types.concatList",
            ),
            (
                "{[]: 1}[[] + [2]]",
                "error: invalid qualifier type: *types.baseList",
            ),
        ],
    );
}

/// Source: k8s.io/apiserver `pkg/cel/library/cost.go`, `CostEstimator.CallCost` (`_==_`).
#[test]
fn cost_of_comparison_without_schema_is_size_of_value() {
    let open = json!({"x-kubernetes-preserve-unknown-fields": true});
    for (expression, expected) in [
        ("l == ''", 1),
        ("l == {}", 1),
        ("l == 'abc'", 2),
        ("quantity('1') == quantity('2')", 3),
        ("dyn(google.protobuf.Empty{}) == dyn('')", 41),
    ] {
        let (_, cost) = evaluate(&open, &json!("abc"), expression);
        assert_eq!(cost, expected, "{expression}");
    }
}
