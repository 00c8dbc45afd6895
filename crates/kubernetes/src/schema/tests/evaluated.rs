//! Compares the types of values in evaluated expressions with the declared types.

use super::*;

/// Asserts the declared type and the evaluated type at `path`. The root has a property `field` with the schema
/// `schema`.
#[track_caller]
fn check_both(schema: Value, path: &str, declared: &str, evaluated: &str) {
    let root = decl_type(
        json!({"type": "object", "properties": {"field": schema}}),
        &[],
    )
    .unwrap();
    check(&root, path, declared);
    let type_ = select_from(root.evaluated_type("Test#"), path);
    let type_ = type_.map_or_else(|| "undefined".into(), |type_| type_.to_string());
    assert_eq!(type_, evaluated, "{path}");
}

#[test]
fn formatted_strings_are_evaluated_as_strings() {
    let string = |format: &str| json!({"type": "string", "format": format});
    check_both(string("date-time"), "field", "timestamp", "string");
    check_both(string("date"), "field", "timestamp", "string");
    check_both(string("duration"), "field", "duration", "string");
    check_both(string("byte"), "field", "bytes", "string");
    check_both(string("uuid"), "field", "string", "string");
}

#[test]
fn doubles_are_evaluated_as_dyn() {
    check_both(json!({"type": "number"}), "field", "double", "dyn");
    check_both(json!({"type": "integer"}), "field", "int", "int");
    check_both(json!({"type": "boolean"}), "field", "bool", "bool");
}

#[test]
fn untyped_fields_are_evaluated_as_dyn() {
    check_both(json!({}), "field", "undefined", "dyn");
    check_both(
        json!({"type": "array", "items": {}}),
        "field",
        "undefined",
        "list(dyn)",
    );
    let quantities = json!({"type": "object", "additionalProperties": {}});
    check_both(quantities, "field", "undefined", "map(string, dyn)");
}

#[test]
fn undeclared_fields_of_open_objects_are_evaluated_as_dyn() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"a": {"type": "integer"}}});
    check_both(open.clone(), "field.a", "int", "int");
    check_both(open, "field.b", "undefined", "dyn");
    let closed = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    check_both(closed, "field.b", "undefined", "undefined");
}

#[test]
fn evaluated_type_names_equal_declared_names() {
    let inner =
        json!({"type": "object", "properties": {"x": {"type": "string", "format": "date"}}});
    let list = json!({"type": "array", "items": inner});
    check_both(
        list.clone(),
        "field.[]",
        "Test#.field.@idx",
        "Test#.field.@idx",
    );
    check_both(list, "field.[].x", "timestamp", "string");
}
