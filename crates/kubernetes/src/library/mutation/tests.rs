//! Tests of constructing `Object` and `JSONPatch`, based on upstream's tests and code.

use std::sync::Arc;

use super::*;
use crate::library::runtime::KubernetesRuntime;
use crate::version::KubernetesVersion;
use cel::decls::Variable;
use cel::eval::{Limits, Program};
use cel::{checker, syntax};

fn env() -> Env {
    mutation_env(KubernetesVersion::DEFAULT).extend([Variable::new("object", Type::Dyn)])
}

/// Returns the errors from checking or planning the expression. If there are none, returns the type of the expression.
fn rejection(text: &str) -> String {
    let ast = Arc::new(syntax::parse(text).0.unwrap());
    let env = env();
    let (checked, diagnostics) = checker::check(&ast, text, &env);
    if !diagnostics.is_empty() {
        let messages = diagnostics.as_slice().iter().map(ToString::to_string);
        return messages.collect::<Vec<_>>().join("; ");
    }
    let planned = Program::plan(&checked, &env, &KubernetesRuntime);
    planned.map_or_else(
        |error| error.to_string(),
        |_| checked.output_type().to_string(),
    )
}

fn evaluated(text: &str) -> Result<Value, EvalError> {
    let ast = Arc::new(syntax::parse(text).0.unwrap());
    let env = env();
    let (checked, diagnostics) = checker::check(&ast, text, &env);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    let program = Program::plan(&checked, &env, &KubernetesRuntime).unwrap();
    let object = serde_json::json!({"spec": {"replicas": 1, "list": [1]}});
    let activation = [("object", Value::from(&object))];
    program.eval(&activation, Limits::from_cost(100_000)).result
}

#[track_caller]
fn holds(text: &str) {
    match evaluated(text) {
        Ok(Value::Bool(true)) => {}
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn fails(text: &str, message: &str) {
    let error = evaluated(text).unwrap_err();
    assert_eq!(error.message(), message, "{text}");
}

#[test]
fn constructed_types_have_upstream_names_and_errors() {
    for (text, expected) in [
        ("Object{}", "Object"),
        ("Object{spec: Object.spec{replicas: 1}}", "Object"),
        ("Object.a.b.c{d: 'x'}", "Object.a.b.c"),
        (".Object{}", "Object"),
        (
            "[JSONPatch{op: 'test', path: '/a', value: 1}]",
            "list(JSONPatch)",
        ),
        ("true ? Object{} : null", "Object"),
        ("Object{}.a", "dyn"),
        ("JSONPatch{}.op", "string"),
        (
            "Objects{}",
            "undeclared reference to 'Objects' (in container '')",
        ),
        (
            "JSONPatch{op: 1}",
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (
            "JSONPatch{operation: 'a'}",
            "expected type of field 'operation' is '' but provided type is 'string'",
        ),
        (
            "true ? Object{} : Object.spec{}",
            "found no matching overload for '_?_:_' applied to '(bool, Object, Object.spec)'",
        ),
        (
            "type(Object{}) == Object",
            "program instantiation failed: reference to undefined type: Object",
        ),
        (
            "type(Object{}) == Object.spec",
            "program instantiation failed: reference to undefined type: Object.spec",
        ),
        (
            "Object{?a: 1}",
            "expected type 'optional_type(int)' but found 'int'",
        ),
        ("jsonpatch.escapeKey('a')", "string"),
    ] {
        assert_eq!(rejection(text), expected, "{text}");
    }
}

#[test]
fn object_fields_are_read_like_map_entries() {
    for text in [
        "Object{a: 1}.a == 1",
        "Object{}.a == null",
        "has(Object{a: 1}.a) && !has(Object{}.a)",
        "Object{a: Object.a{b: 1}}.a == {'b': 1}",
        "Object{a: Object.a{b: 1}}.a.b == 1",
        "Object{?a: optional.none(), ?b: optional.of(2)}.b == 2",
        "Object{a: 1}.?a == optional.none()",
        "[Object{a: 1}].map(o, o.a) == [1]",
        "!has(dyn(Object{a: 1}).a)",
        "(object.spec.replicas == 1 ? optional.of(Object{a: 1}) : optional.none()).a == optional.of(1)",
    ] {
        holds(text);
    }
    fails("dyn(Object{a: 1}).a", "no such key: a");
    fails("(false ? Object{} : null).a", "cannot get field \"a\"");
}

#[test]
fn object_equality_agrees_with_go() {
    for text in [
        "Object{a: 1} == Object{a: 1}",
        "Object{a: 1} != Object{a: 1.0}",
        "Object{a: {'b': 1}} == Object{a: {'b': 1}}",
        "Object{a: [1]} != Object{a: [1]}",
        "Object{a: object.spec} == Object{a: object.spec}",
        "dyn(Object{}) != dyn(Object.spec{})",
        "type(Object{}) == type(Object.spec{})",
        "JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a', value: 1.0}",
        "JSONPatch{op: 'a'} != JSONPatch{op: 'a', value: null}",
        "!optional.ofNonZeroValue(Object{}).hasValue()",
        "optional.ofNonZeroValue(JSONPatch{}).hasValue()",
    ] {
        holds(text);
    }
}

#[test]
fn json_patch_fields_are_read_and_checked() {
    for text in [
        "JSONPatch{op: 'add', path: '/a'}.op == 'add'",
        "JSONPatch{}.op == ''",
        "JSONPatch{}.value == null",
        "has(JSONPatch{op: 'a'}.op) && !has(JSONPatch{}.op) && !has(JSONPatch{}.value)",
        "dyn(JSONPatch{op: 'a'})['op'] == 'a'",
        "dyn(JSONPatch{}).?op == optional.none()",
        "jsonpatch.escapeKey('k8s.io/my~label') == 'k8s.io~1my~0label'",
    ] {
        holds(text);
    }
    fails(
        "JSONPatch{op: dyn(1)}",
        "unexpected type int64 for JSONPatchType 'op' field",
    );
    fails(
        "JSONPatch{foo: dyn(1)}",
        "unexpected JSONPatchType field: foo",
    );
    fails("dyn(JSONPatch{}).foo", "unsupported indexer: foo");
    fails("has(dyn(JSONPatch{}).foo)", "unsupported field: foo");
    fails("string(dyn(Object{}))", "no such overload: string(Object)");
}

#[test]
fn misplaced_objects_are_reported() {
    let misplaced = |text: &str| {
        let value = evaluated(text).unwrap();
        let misplaced = value.downcast::<ObjectValue>().unwrap().misplaced();
        let texts = misplaced.iter().map(ToString::to_string);
        texts.collect::<Vec<String>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(
        misplaced("Object{spec: Object.spec{a: [Object.spec.a{}]}}"),
        none
    );
    assert_eq!(
        misplaced("Object{spec: Object.wrong{}}"),
        [
            "unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field name path from \
             root Object type"
        ]
    );
}

#[test]
fn objects_with_equal_go_values_are_equal() {
    let equal = [
        "null",
        "true",
        "1",
        "1u",
        "1.5",
        "'a'",
        "b'a'",
        "duration('1s')",
        "timestamp('2001-01-01T00:00:00Z')",
        "int",
        "optional.of(1)",
        "optional.none()",
        "{'x': 1}",
        "{}",
        "object.spec",
        "Object.a{b: 1}",
        "quantity('1Gi')",
    ];
    let unequal = [
        "false",
        "2",
        "2u",
        "2.5",
        "'b'",
        "b'b'",
        "duration('2s')",
        "timestamp('2002-01-01T00:00:00Z')",
        "string",
        "optional.of(2)",
        "{'x': 2}",
        "{'y': 1}",
        "{'x': 1, 'y': 1}",
        "1.0",
        "Object.a{b: 2}",
        "Object.a{c: 1}",
        "Object.c{b: 1}",
        "Object.a{}",
        "quantity('2Gi')",
    ];
    for a in equal {
        holds(&format!("Object{{a: {a}}} == Object{{a: {a}}}"));
        for b in unequal {
            holds(&format!("Object{{a: {a}}} != Object{{a: {b}}}"));
            holds(&format!("Object{{a: {b}}} != Object{{a: {a}}}"));
        }
    }
    // A CEL list never equals another list.
    holds("Object{a: [1]} != Object{a: [1]}");
    holds("Object{a: object.spec.list} != Object{a: object.spec.list}");
    holds("Object{a: {'x': object.spec}} == Object{a: {'x': object.spec}}");
    holds("dyn(Object{}) != dyn(1)");
}

#[test]
fn patches_with_equal_fields_are_equal() {
    let whole = "JSONPatch{op: 'add', path: '/a', from: '/b', value: 1}";
    holds(&format!("{whole} == {whole}"));
    for other in [
        "JSONPatch{op: 'test', path: '/a', from: '/b', value: 1}",
        "JSONPatch{op: 'add', path: '/c', from: '/b', value: 1}",
        "JSONPatch{op: 'add', path: '/a', from: '/c', value: 1}",
        "JSONPatch{op: 'add', path: '/a', from: '/b', value: 2}",
        "JSONPatch{op: 'add', path: '/a', from: '/b'}",
    ] {
        holds(&format!("{whole} != {other}"));
        holds(&format!("{other} != {whole}"));
    }
    holds("JSONPatch{} == JSONPatch{}");
    holds("dyn(JSONPatch{}) != dyn(1)");
    for field in ["op", "path", "from", "value"] {
        holds(&format!("has({whole}.{field})"));
        holds(&format!("!has(JSONPatch{{}}.{field})"));
    }
    holds(&format!("{whole}.op == 'add' && {whole}.path == '/a'"));
    holds(&format!("{whole}.from == '/b' && {whole}.value == 1"));
    holds("JSONPatch{}.value == null && JSONPatch{}.op == ''");
}

#[test]
fn mutation_values_have_go_types() {
    for (text, native, go_type, error) in [
        (
            "Object{}",
            "map[string]interface {}",
            "*dynamic.ObjectVal",
            "unsupported conversion into string",
        ),
        (
            "JSONPatch{}",
            "*mutation.JSONPatchVal",
            "*mutation.JSONPatchVal",
            "unsupported type: string",
        ),
    ] {
        let value = evaluated(text).unwrap();
        let Value::Opaque(opaque) = &value else {
            panic!("{value:?}");
        };
        assert_eq!((opaque.native_type(), opaque.go_type()), (native, go_type));
        let converted = opaque.convert_to(&Type::String).unwrap_err();
        assert_eq!(converted.message(), error);
    }
}

#[test]
fn names_of_object_types_are_recognized() {
    for (name, expected) in [
        ("Object", true),
        ("Object.spec", true),
        ("Objects", false),
        ("object", false),
        ("JSONPatch", false),
        ("", false),
    ] {
        assert_eq!(is_object(name), expected, "{name}");
    }
    assert_eq!(object_type().type_name(), "Object");
    assert_eq!(json_patch_type().type_name(), "JSONPatch");
}
