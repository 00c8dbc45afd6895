//! Tests of the conversion of CEL values to Go values.
//!
//! The expected values come from Go: the native values of cel-go `common/types`, formatted with `%T`, `%v` and `%#v`,
//! and the results of the conversion to `structpb.Value`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use cel::env::Env;
use cel::eval::{Limits, Program};
use cel::{checker, syntax};
use kubernetes::library::mutation::mutation_env;
use kubernetes::library::runtime::KubernetesRuntime;
use kubernetes::version::KubernetesVersion;
use serde_json::json;

use super::*;

fn env() -> &'static Env {
    mutation_env(KubernetesVersion::DEFAULT)
}

/// The behavior of a version in which JSON patches cannot contain nested objects.
fn behavior() -> Behavior {
    KubernetesVersion::new(36).with_patch(3).behavior()
}

fn evaluated(expression: &str) -> Value {
    let ast = Arc::new(syntax::parse(expression).0.unwrap());
    let (checked, diagnostics) = checker::check(&ast, expression, env());
    assert!(diagnostics.is_empty(), "{expression}");
    let program = Program::plan(&checked, env(), &KubernetesRuntime).unwrap();
    let none: [(&str, Value); 0] = [];
    let evaluated = program.eval(&none, Limits::from_cost(10_000));
    evaluated.result.unwrap()
}

fn foreign(go_type: &str, plain: &str, syntax: &str) -> Applied {
    Applied::NonJson(NonJson {
        go_type: go_type.to_owned(),
        plain: plain.to_owned(),
        syntax: syntax.to_owned(),
    })
}

fn map(fields: &[(&str, Applied)]) -> Applied {
    let fields = fields.iter().cloned();
    Applied::Map(fields.map(|(name, it)| (name.to_owned(), it)).collect())
}

#[test]
fn field_of_apply_configuration_becomes_go_value() {
    for (expression, expected) in [
        ("null", foreign("structpb.NullValue", "NULL_VALUE", "0")),
        ("true", Applied::Bool(true)),
        ("-4", Applied::Int(-4)),
        ("26u", foreign("uint64", "26", "0x1a")),
        ("1.0", Applied::Double(1.0)),
        ("'a'", Applied::Text("a".to_owned())),
        ("type(1)", Applied::Text("int".to_owned())),
        ("dyn(optional.of('a'))", Applied::Text("a".to_owned())),
        ("dyn(optional.none())", Applied::Null),
        ("b'ab'", foreign("[]uint8", "[97 98]", "[97 98]")),
        (
            "[1, 2]",
            Applied::List(vec![Applied::Int(1), Applied::Int(2)]),
        ),
        (
            "[[1, 2]]",
            Applied::List(vec![foreign("[]ref.Val", "[1 2]", "[]ref.Val{1, 2}")]),
        ),
        (
            "[1] + [2]",
            Applied::List(vec![Applied::Int(1), Applied::Int(2)]),
        ),
        (
            "{'a': 1, 'b': 'c'}",
            map(&[("a", Applied::Int(1)), ("b", Applied::Text("c".to_owned()))]),
        ),
        (
            "{'a': {'b': 1}}",
            map(&[(
                "a",
                foreign(
                    "map[ref.Val]ref.Val",
                    "map[b:1]",
                    "map[ref.Val]ref.Val{\"b\":1}",
                ),
            )]),
        ),
        (
            "[{1: 2}]",
            Applied::List(vec![foreign(
                "map[ref.Val]ref.Val",
                "map[1:2]",
                "map[ref.Val]ref.Val{1:2}",
            )]),
        ),
        (
            "Object.x{y: 1, z: Object.x.z{a: 'b'}}",
            map(&[
                ("y", Applied::Int(1)),
                ("z", map(&[("a", Applied::Text("b".to_owned()))])),
            ]),
        ),
    ] {
        let object = format!("Object{{x: {expression}}}");
        let converted = applied(&evaluated(&object)).map_err(|error| error.message);
        assert_eq!(converted, Ok(map(&[("x", expected)])), "{expression}");
    }
    for (expression, go_type) in [
        ("Object.x{y: {1: 'b'}}", "*types.Err"),
        ("duration('1s')", "time.Duration"),
        ("timestamp(0)", "time.Time"),
    ] {
        let Applied::NonJson(converted) = native(&evaluated(expression), 0) else {
            panic!("{expression}");
        };
        assert_eq!(converted.go_type, go_type);
        assert_eq!(converted.plain, converted.syntax);
    }
}

#[test]
fn values_of_request_are_applied_as_json() {
    let object =
        json!({"a": null, "b": [1, {"c": null}, [2]], "d": {"e": "f", "g": 1.5}, "h": true});
    let value = Value::from(&object);
    assert_eq!(native(&value, 0), Applied::from(&object));
    let list = &object["b"];
    assert_eq!(native(&Value::from(list), 0), Applied::from(list));
    assert_eq!(field(&value, 0), Some(Applied::from(&object)));
    // A null literal in an expression has a different Go value than a null in the object.
    assert_eq!(applied_json(&Value::Null, 0), Applied::Null);
    assert_ne!(native(&Value::Null, 0), Applied::Null);
}

#[test]
fn value_that_cannot_be_merged_is_rejected() {
    for (expression, expected) in [
        (
            "{'a': 1}",
            "unsupported return type from ApplyConfiguration expression: map(string, int)",
        ),
        (
            "1",
            "unsupported return type from ApplyConfiguration expression: int",
        ),
        (
            "Object{a: {1: 'b'}}",
            "invalid return type: *dynamic.ObjectVal",
        ),
        (
            "Object{a: {true: 'b'}}",
            "invalid return type: *dynamic.ObjectVal",
        ),
    ] {
        let Err(error) = applied(&evaluated(expression)) else {
            panic!("{expression}");
        };
        if expression.starts_with('{') {
            assert!(
                error
                    .message
                    .starts_with("unsupported return type from ApplyConfiguration expression: map"),
                "{}",
                error.message
            );
        } else {
            assert_eq!(error.message, expected, "{expression}");
        }
        assert_eq!(error.misplaced, None);
    }
}

#[test]
fn value_of_json_patch_is_converted_to_json() {
    for (expression, expected) in [
        ("null", json!(null)),
        ("true", json!(true)),
        ("false", json!(false)),
        ("9007199254740991", json!(9_007_199_254_740_991_i64)),
        ("-9007199254740991", json!(-9_007_199_254_740_991_i64)),
        ("9007199254740992", json!("9007199254740992")),
        ("-9007199254740992", json!("-9007199254740992")),
        ("9007199254740991u", json!(9_007_199_254_740_991_i64)),
        ("9007199254740992u", json!("9007199254740992")),
        ("2.0", json!(2)),
        ("2.5", json!(2.5)),
        ("'a'", json!("a")),
        ("b'ab'", json!("YWI=")),
        ("duration('90s')", json!("90s")),
        (
            "timestamp('2024-01-02T03:04:05Z')",
            json!("2024-01-02T03:04:05Z"),
        ),
        ("[1, 'a', [2]]", json!([1, "a", [2]])),
        (
            "{'a': 1, 'b': {'c': null}}",
            json!({"a": 1, "b": {"c": null}}),
        ),
        ("dyn(optional.of(1))", json!(1)),
        (
            "Object.a{b: 1, c: 1.5, d: 'e', f: true, g: [1], h: {'i': 2}}",
            json!({"b": 1, "c": 1.5, "d": "e", "f": true, "g": [1], "h": {"i": 2}}),
        ),
        ("Object.a{b: dyn(optional.none())}", json!({"b": null})),
    ] {
        let text = format!("[JSONPatch{{op: 'add', path: '/a', value: {expression}}}]");
        let operation = Operation::new("add", "/a").with_value(expected);
        match patch(&evaluated(&text), behavior()) {
            Ok(operations) => assert_eq!(operations, [operation], "{expression}"),
            Err(failure) => panic!("{expression}: {failure:?}"),
        }
    }
}

#[test]
fn json_patch_value_that_does_not_convert_to_json_is_an_error() {
    let marshal = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: ";
    for (expression, expected) in [
        ("type(1)", "type conversion not supported for 'type'"),
        ("dyn(optional.none())", "optional.none() dereference"),
        ("{1: 2}", "unsupported type conversion from 'int' to string"),
        (
            "{1u: 2}",
            "unsupported type conversion from 'uint' to string",
        ),
        ("{true: 2}", "type conversion error from bool to 'string'"),
        ("[[type(1)]]", "type conversion not supported for 'type'"),
        (
            "Object.a{b: null}",
            "proto: invalid type: structpb.NullValue",
        ),
        ("Object.a{b: [1u]}", "proto: invalid type: uint64"),
        (
            "Object.a{b: {'c': {'d': 1}}}",
            "proto: invalid type: map[ref.Val]ref.Val",
        ),
    ] {
        let text = format!("[JSONPatch{{op: 'add', path: '/a', value: {expression}}}]");
        match patch(&evaluated(&text), behavior()) {
            Err(PatchFailure::Failed(error)) => {
                assert_eq!(
                    error.message,
                    format!("{marshal}{expected}"),
                    "{expression}"
                );
            }
            other => panic!("{expression}: {other:?}"),
        }
    }
    for expression in ["0.0 / 0.0", "1.0 / 0.0"] {
        let text = format!("[JSONPatch{{op: 'add', path: '/a', value: {expression}}}]");
        let failure = patch(&evaluated(&text), behavior());
        assert!(
            matches!(failure, Err(PatchFailure::Failed(_))),
            "{failure:?}"
        );
    }
    for expression in ["[Object.a{b: 1}]", "{'x': Object.a{b: 1}}"] {
        let text = format!("[JSONPatch{{op: 'add', path: '/a', value: {expression}}}]");
        let failure = patch(&evaluated(&text), behavior());
        assert!(matches!(failure, Err(PatchFailure::Panic)), "{failure:?}");
    }
}

#[test]
fn evaluated_json_patch_becomes_operations() {
    let text =
        "[JSONPatch{op: 'move', from: '/a', path: '/b'}, JSONPatch{op: 'remove', path: '/c'}]";
    let operations = patch(&evaluated(text), behavior());
    let expected = [
        Operation::new("move", "/b").with_from("/a"),
        Operation::new("remove", "/c"),
    ];
    assert_eq!(operations.unwrap(), expected);
    for (expression, expected) in [
        (
            "1",
            "type mismatch: JSONPatchType.expression should evaluate to array",
        ),
        (
            "[JSONPatch{op: 'remove', path: '/c'}, dyn('a')]",
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of types.String",
        ),
    ] {
        match patch(&evaluated(expression), behavior()) {
            Err(PatchFailure::Failed(error)) => assert_eq!(error.message, expected),
            other => panic!("{expression}: {other:?}"),
        }
    }
}

#[test]
fn value_nested_beyond_limit_is_not_converted() {
    let nested = |depth: u32| (0..depth).fold(Value::Int(1), |inner, _| Value::list(vec![inner]));
    assert!(json(&nested(MAX_DEPTH), behavior(), 0).is_ok());
    let Err(PatchFailure::Failed(error)) = json(&nested(MAX_DEPTH + 1), behavior(), 0) else {
        panic!("must fail");
    };
    assert_eq!(error.message, "it nests too deeply");
    assert_eq!(native(&Value::Int(7), MAX_DEPTH), Applied::Int(7));
    assert_eq!(
        native(&Value::Int(7), MAX_DEPTH + 1),
        foreign("interface {}", "7", "7")
    );
}

/// A value that occurs twice is charged twice.
#[test]
fn allocated_memory_is_sum_of_nodes_and_strings() {
    let patch = "JSONPatch{op: 'add', path: '/a', value: 'abcd'}";
    let bytes = Value::bytes(&b"abcd"[..]);
    let part = Value::string("abcd");
    let list = Value::list(vec![part.clone(), part.clone()]);
    for (value, expected) in [
        (Value::Int(1), NODE),
        (part.clone(), NODE + 8),
        (bytes, NODE + 32),
        (list.clone(), NODE + 2 * (NODE + 8)),
        (Value::some(part.clone()), NODE + NODE + 8),
        (Value::from(&json!({"ab": "c"})), NODE + 2 + NODE + 2),
        (evaluated("Object{ab: 'c'}"), NODE + 2 + NODE + 2),
        (evaluated(patch), NODE + NODE + 8),
    ] {
        let is_enough = |limit: usize| {
            let budget = EvalBudget::new(1, u64::try_from(limit).unwrap());
            allocate(&value, &budget).is_ok()
        };
        assert!(is_enough(expected), "{value:?}");
        assert!(!is_enough(expected - 1), "{value:?}");
    }
}
