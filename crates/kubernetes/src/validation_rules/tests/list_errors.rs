//! Tests of the keywords for list and map types.

use serde_json::{Value as Json, json};

use crate::validation_rules::field_error::FieldError;
use crate::validation_rules::keywords;
use crate::validation_rules::list_errors::faults;

#[track_caller]
fn check(schema: &Json, expected: &[&str]) {
    let faults = faults(schema.as_object().unwrap()).into_iter();
    let faults = faults.map(|(path, kind, value, detail)| {
        let field = path.join(".");
        FieldError {
            kind,
            field,
            value,
            detail,
        }
        .to_string()
    });
    assert_eq!(faults.collect::<Vec<_>>(), expected, "{schema}");
    let has_errors = keywords::has_errors(schema.as_object().unwrap(), true, false);
    assert_eq!(has_errors, !expected.is_empty(), "{schema}");
}

fn list(list_type: &str, items: &Json) -> Json {
    json!({"type": "array", "x-kubernetes-list-type": list_type, "items": items})
}

fn map_list(keys: &[&str], items: &Json) -> Json {
    let mut schema = list("map", items);
    schema["x-kubernetes-list-map-keys"] = json!(keys);
    schema
}

#[test]
fn map_type_outside_of_object_is_an_error() {
    let typed =
        |type_: &str, map_type: &str| json!({"type": type_, "x-kubernetes-map-type": map_type});
    check(&json!({"type": "object"}), &[]);
    check(&typed("object", "atomic"), &[]);
    check(&typed("object", "granular"), &[]);
    check(
        &typed("string", "atomic"),
        &["type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified"],
    );
    check(
        &json!({"x-kubernetes-map-type": "atomic"}),
        &["type: Required value: must be object if x-kubernetes-map-type is specified"],
    );
    check(
        &typed("object", "set"),
        &[
            "x-kubernetes-map-type: Unsupported value: \"set\": supported values: \"atomic\", \"granular\"",
        ],
    );
}

#[test]
fn list_type_outside_of_list_is_an_error() {
    let string = json!({"type": "string"});
    check(&json!({"type": "array"}), &[]);
    check(&list("atomic", &string), &[]);
    check(&list("set", &string), &[]);
    check(
        &json!({"type": "object", "x-kubernetes-list-type": "atomic"}),
        &["type: Invalid value: \"object\": must be array if x-kubernetes-list-type is specified"],
    );
    check(
        &json!({"x-kubernetes-list-type": "atomic"}),
        &["type: Required value: must be array if x-kubernetes-list-type is specified"],
    );
    check(
        &list("granular", &string),
        &[
            "x-kubernetes-list-type: Unsupported value: \"granular\": supported values: \
           \"atomic\", \"map\", \"set\"",
        ],
    );
}

#[test]
fn list_map_keys_require_list_type_map() {
    let items =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    check(&map_list(&["a"], &items), &[]);
    let mut schema = list("atomic", &items);
    schema["x-kubernetes-list-map-keys"] = json!(["a"]);
    check(
        &schema,
        &[
            "x-kubernetes-list-type: Invalid value: \"atomic\": must be map if \
           x-kubernetes-list-map-keys is non-empty",
        ],
    );
    check(
        &json!({"type": "array", "items": items, "x-kubernetes-list-map-keys": ["a"]}),
        &[
            "x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    );
    check(
        &json!({"type": "array", "items": items, "x-kubernetes-list-map-keys": []}),
        &[],
    );
}

#[test]
fn set_of_items_that_are_not_atomic_is_an_error() {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    check(
        &list(
            "set",
            &json!({"type": "object", "x-kubernetes-map-type": "atomic"}),
        ),
        &[],
    );
    check(
        &list(
            "set",
            &json!({"type": "array", "x-kubernetes-list-type": "atomic"}),
        ),
        &[],
    );
    check(&list("set", &json!({"type": "array"})), &[]);
    check(
        &json!({"type": "array", "x-kubernetes-list-type": "set"}),
        &[],
    );
    check(&list("atomic", &json!({"type": "object"})), &[]);
    check(
        &list("set", &json!({"type": "object"})),
        &[&format!(
            "items.x-kubernetes-map-type: Invalid value: null: {detail}"
        )],
    );
    check(
        &list(
            "set",
            &json!({"type": "array", "x-kubernetes-list-type": "set"}),
        ),
        &[&format!(
            "items.x-kubernetes-list-type: Invalid value: \"set\": {detail}"
        )],
    );
}

#[test]
fn nullable_items_of_set_or_map_are_an_error() {
    let nullable = json!({"type": "string", "nullable": true});
    let error = "items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is";
    check(&list("atomic", &nullable), &[]);
    check(&list("set", &nullable), &[&format!("{error} set")]);
    let items = json!({
        "type": "object", "nullable": true, "required": ["a"], "properties": {"a": {"type": "string"}},
    });
    check(&map_list(&["a"], &items), &[&format!("{error} map")]);
}

#[test]
fn list_type_map_requires_keys_and_object_items() {
    let object =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    check(
        &list("map", &object),
        &[
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    check(
        &json!({"type": "array", "x-kubernetes-list-type": "map"}),
        &[
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            "items: Required value: must have a schema if x-kubernetes-list-type is map",
        ],
    );
    check(
        &map_list(&["a"], &json!({"type": "string"})),
        &[
            "items.type: Invalid value: \"string\": must be object if parent array's \
           x-kubernetes-list-type is map",
        ],
    );
}

#[test]
fn map_keys_that_do_not_identify_items_are_an_error() {
    let items = |property: Json| json!({"type": "object", "properties": {"a": property}});
    let check_key =
        |property: Json, expected: &[&str]| check(&map_list(&["a"], &items(property)), expected);
    check_key(json!({"type": "string", "default": "x"}), &[]);
    let needs_default = "items.properties.a.default: Required value: this property is in \
                         x-kubernetes-list-map-keys, so it must have a default or be a required property";
    check_key(json!({"type": "string"}), &[needs_default]);
    check_key(json!({"type": "string", "default": null}), &[needs_default]);
    check_key(
        json!({"type": "string", "default": "x", "nullable": true}),
        &[
            "items.properties.a.nullable: Forbidden: this property is in x-kubernetes-list-map-keys, \
           so it cannot be nullable",
        ],
    );
    for type_ in ["array", "object"] {
        check_key(
            json!({"type": type_, "default": "x"}),
            &[
                "items.properties.a.type: Invalid value: \"object\": must be a scalar type if parent \
               array's x-kubernetes-list-type is map",
            ],
        );
    }
    let two = json!({
        "type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    });
    check(&map_list(&["a", "b"], &two), &[]);
    check(
        &map_list(&["a", "b", "a"], &two),
        &[
            "x-kubernetes-list-map-keys: Invalid value: [\"a\",\"b\",\"a\"]: must not contain duplicate entries",
        ],
    );
    check(
        &map_list(&["a", "c"], &two),
        &[
            "x-kubernetes-list-map-keys: Invalid value: [\"a\",\"c\"]: entries must all be names of item properties",
        ],
    );
}
