//! Tests of constructing `Object` and `JSONPatch`. The cases come from upstream's tests and code.

use std::sync::Arc;

use super::*;
use crate::library::runtime::KubernetesRuntime;
use cel::decls::Variable;
use cel::eval::{Limits, Program};
use cel::{checker, syntax};

fn env() -> Env {
    mutation_env().extend([Variable::new("object", Type::Dyn)])
}

/// Returns the errors of checking or planning the expression. If there are no errors, returns the
/// type of the expression.
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
