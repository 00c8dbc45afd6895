//! Tests of converting schemas to types, grouped by keyword.

use super::*;

fn field(schema: Value) -> Arc<DeclType> {
    let root = json!({"type": "object", "properties": {"field": schema}});
    let root = decl_type(root, &[]).unwrap();
    Arc::clone(&root.declared_field("field").unwrap().type_)
}

/// Asserts the type of a field, its maximum number of elements, and its minimum size in JSON, in bytes.
#[track_caller]
fn check_sizes(schema: Value, type_: &str, max_elements: i64, min_serialized_size: i64) {
    let field = field(schema);
    assert_eq!(field.cel_type("T").to_string(), type_);
    assert_eq!(
        (field.max_elements, field.min_serialized_size),
        (max_elements, min_serialized_size)
    );
}

const MAX: i64 = 3 * 1024 * 1024;

#[test]
fn sizes_of_scalar_types_depend_on_format_and_max_length() {
    check_sizes(json!({"type": "boolean"}), "bool", 0, 4);
    check_sizes(json!({"type": "integer", "format": "int32"}), "int", 0, 1);
    check_sizes(json!({"type": "number"}), "double", 0, 1);
    check_sizes(json!({"type": "string"}), "string", MAX - 2, 2);
    check_sizes(json!({"type": "string", "maxLength": 10}), "string", 40, 2);
    check_sizes(json!({"type": "string", "maxLength": -1}), "string", 0, 2);
    check_sizes(
        json!({"type": "string", "maxLength": 1_i64 << 62}),
        "string",
        i64::MAX,
        2,
    );
    check_sizes(
        json!({"type": "string", "format": "uuid"}),
        "string",
        MAX - 2,
        2,
    );
    check_sizes(
        json!({"type": "string", "format": "byte"}),
        "bytes",
        MAX - 2,
        2,
    );
    check_sizes(
        json!({"type": "string", "format": "byte", "maxLength": 10}),
        "bytes",
        10,
        2,
    );
    check_sizes(
        json!({"type": "string", "format": "duration"}),
        "duration",
        32,
        3,
    );
    check_sizes(
        json!({"type": "string", "format": "date"}),
        "timestamp",
        12,
        12,
    );
    check_sizes(
        json!({"type": "string", "format": "date-time"}),
        "timestamp",
        32,
        21,
    );
}

#[test]
fn enum_max_size_is_longest_value() {
    check_sizes(
        json!({"type": "string", "enum": ["a", "größe"]}),
        "string",
        7,
        2,
    );
    check_sizes(json!({"type": "string", "enum": [1, null]}), "string", 0, 2);
    check_sizes(json!({"type": "string", "enum": []}), "string", MAX - 2, 2);
    let enumerated = field(json!({"type": "string", "enum": ["a", "b"]}));
    assert_eq!(
        enumerated.enum_values.as_deref(),
        Some(&[json!("a"), json!("b")][..])
    );
}

#[test]
fn int_or_string_has_type_dyn() {
    check_sizes(
        json!({"x-kubernetes-int-or-string": true}),
        "dyn",
        MAX - 2,
        1,
    );
    check_sizes(
        json!({"format": "int-or-string", "maxLength": 3}),
        "dyn",
        12,
        1,
    );
    check_sizes(
        json!({"type": "object", "x-kubernetes-int-or-string": true}),
        "dyn",
        MAX - 2,
        1,
    );
    // The extension is ignored, because its value is not a boolean.
    check_sizes(
        json!({"type": "integer", "x-kubernetes-int-or-string": "true"}),
        "int",
        0,
        1,
    );
}

#[test]
fn lists_and_maps_have_maximum_number_of_elements() {
    let bools = json!({"type": "boolean"});
    check_sizes(
        json!({"type": "array", "items": bools}),
        "list(bool)",
        (MAX - 2) / 5,
        2,
    );
    check_sizes(
        json!({"type": "array", "items": bools, "maxItems": 7}),
        "list(bool)",
        7,
        2,
    );
    check_sizes(
        json!({"type": "array", "items": bools, "maxItems": -7}),
        "list(bool)",
        0,
        2,
    );
    let map = json!({"type": "object", "additionalProperties": bools});
    check_sizes(map.clone(), "map(string, bool)", (MAX - 2) / 10, 2);
    check_sizes(
        json!({"type": "array", "items": map}),
        "list(map(string, bool))",
        1_048_575,
        2,
    );
}

#[test]
fn required_properties_without_default_increase_min_size() {
    let properties = json!({
        "a": {"type": "integer"},
        "bb": {"type": "integer", "default": 0},
        "cc": {"type": "integer", "default": null},
        "dd": {},
        "no identifier": {"type": "boolean"},
    });
    let required = json!(["a", "bb", "cc", "dd", "no identifier"]);
    let object = json!({"type": "object", "properties": properties, "required": required});
    // The braces take 2 bytes. A required property adds the length of its name, 4 bytes of punctuation, and the size of
    // its value.
    check_sizes(object, "T", 0, 2 + 6 + 7 + 21);
}

#[test]
fn min_size_of_exponential_schema_does_not_overflow() {
    let mut schemas = vec![("s0".to_owned(), json!({"type": "integer"}))];
    for n in 1..100 {
        let below = json!({"$ref": format!("#/components/schemas/s{}", n - 1)});
        let object = json!({
            "type": "object",
            "properties": {"a": below, "b": below},
            "required": ["a", "b"],
        });
        schemas.push((format!("s{n}"), object));
    }
    let schemas: Vec<_> = schemas
        .iter()
        .map(|(name, schema)| (&**name, schema.clone()))
        .collect();
    let list = json!({"type": "array", "items": {"$ref": "#/components/schemas/s99"}});
    let root = json!({"type": "object", "properties": {"list": list}});
    let root = decl_type(root, &schemas).unwrap();
    assert_eq!(root.declared_field("list").unwrap().type_.max_elements, 0);
}

#[test]
fn type_names_contain_path_to_field() {
    let inner = json!({"type": "object", "properties": {"x": {"type": "object"}}});
    let root = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": inner},
            "map": {"type": "object", "additionalProperties": inner},
            "lists": {"type": "array", "items": {"type": "array", "items": inner}},
            "dash-ed": inner,
            "if": inner,
        }},
    }});
    let root = decl_type(root, &[]).unwrap();
    check(&root, "", "Test#");
    check(&root, "spec", "Test#.spec");
    check(&root, "spec.list", "list(Test#.spec.list.@idx)");
    check(&root, "spec.list.[].x", "Test#.spec.list.@idx.x");
    check(&root, "spec.map.[].x", "Test#.spec.map.@elem.x");
    check(&root, "spec.lists.[].[]", "Test#.spec.lists.@idx.@idx");
    check(
        &root,
        "spec.dash__dash__ed.x",
        "Test#.spec.dash__dash__ed.x",
    );
    check(&root, "spec.__if__", "Test#.spec.__if__");
    check(&root, "spec.if.x", "Test#.spec.__if__.x");
    check(&root, "spec.dashed", "undefined");
}

#[test]
fn manually_declared_types_keep_own_names() {
    let part = DeclType::object_of(None, Vec::new(), false, 2);
    let user = DeclType::object(
        "kubernetes.UserInfo",
        [
            DeclField::new(
                "groups",
                Arc::new(DeclType::list(Arc::new(text()), -1)),
                false,
            ),
            DeclField::new("part", Arc::new(part), false),
            DeclField::new("options", Arc::new(DeclType::dyn_()), false),
        ],
    );
    let request = DeclType::object(
        "kubernetes.Request",
        [DeclField::new("userInfo", user, true)],
    );
    assert_eq!(
        request.cel_type("ignored").to_string(),
        "kubernetes.Request"
    );
    check(&request, "userInfo", "kubernetes.UserInfo");
    check(&request, "userInfo.groups", "list(string)");
    check(&request, "userInfo.part", "kubernetes.UserInfo.part");
    check(&request, "userInfo.options", "dyn");
    assert_eq!(request.field_names(), ["userInfo"]);
}

fn text() -> DeclType {
    DeclType::scalar(DeclKind::String)
}

#[test]
fn untyped_fields_are_not_exposed() {
    let root = json!({"type": "object", "properties": {
        "anything": {"x-kubernetes-preserve-unknown-fields": true},
        "quantity": {"format": "int-or-string-and-quantity"},
        "list": {"type": "array"},
        "lists": {"type": "array", "items": {"type": "array", "items": {}}},
        "tuple": {"type": "array", "items": [{"type": "string"}]},
        "map": {"type": "object", "additionalProperties": {}},
        "odd": {"type": "strange"},
        "known": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"x": {"type": "integer"}}},
    }});
    let root = decl_type(root, &[]).unwrap();
    for hidden in [
        "anything", "quantity", "list", "lists", "tuple", "map", "odd",
    ] {
        check(&root, hidden, "undefined");
        assert!(
            !root.declared_field(hidden).unwrap().type_.is_exposed(),
            "{hidden}"
        );
    }
    check(&root, "known", "Test#.known");
    check(&root, "known.x", "int");
    check(&root, "known.y", "undefined");
    assert_eq!(
        root.field_names(),
        ["apiVersion", "kind", "known", "metadata"]
    );
}

#[test]
fn objects_are_open_if_schema_allows_undeclared_fields() {
    let is_open = |schema| field(schema).as_object().unwrap().is_open;
    let x = json!({"x": {"type": "integer"}});
    // A nested schema without properties is not open. A named schema without properties is open, because the type may
    // have unpublished fields.
    for silent in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
    ] {
        assert!(!is_open(silent.clone()));
        let of_named = json!({"type": "object", "properties": {"field": {"$ref": "#/components/schemas/Named"}}});
        let root = decl_type(of_named, &[("Named", silent)]).unwrap();
        let named = Arc::clone(&root.declared_field("field").unwrap().type_);
        assert!(named.as_object().unwrap().is_open);
    }
    assert!(is_open(
        json!({"type": "object", "additionalProperties": true, "properties": x})
    ));
    assert!(is_open(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": x})
    ));
    assert!(!is_open(
        json!({"type": "object", "additionalProperties": false})
    ));
    assert!(!is_open(json!({"type": "object", "properties": x})));
}

#[test]
fn root_without_complete_metadata_gets_minimal_metadata() {
    let bare = decl_type(json!({"type": "object"}), &[]).unwrap();
    check(&bare, "metadata.name", "string");
    check(&bare, "metadata.labels", "undefined");
    check(&bare, "metadata", "Test#.metadata");
    check(&bare, "apiVersion", "string");

    // If one field of the metadata does not have the expected type, the whole metadata is replaced.
    let name = json!({"type": "string"});
    let partly = json!({"type": "object", "properties": {
        "kind": {"type": "integer"},
        "apiVersion": name,
        "metadata": {"type": "object", "properties": {
            "name": name, "generateName": name, "labels": {"type": "object"}}},
    }});
    let partly = decl_type(partly, &[]).unwrap();
    check(&partly, "kind", "string");
    check(&partly, "metadata.labels", "undefined");

    let fully = json!({"type": "object", "properties": {
        "kind": {"type": ["null", "string"]},
        "apiVersion": name,
        "metadata": {"allOf": [{"$ref": "#/components/schemas/meta"}]},
    }});
    let meta = json!({"type": "object", "properties": {
        "name": name, "generateName": name, "labels": {"type": "object"}}});
    let fully = decl_type(fully, &[("meta", meta)]).unwrap();
    check(&fully, "metadata.labels", "Test#.metadata.labels");
    check(&fully, "kind", "undefined");
}

#[test]
fn embedded_resources_have_metadata() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "properties": {"spec": {"type": "integer"}}});
    let list = json!({"type": "array", "items": embedded});
    let root = json!({"type": "object", "properties": {"one": embedded, "list": list}});
    let root = decl_type(root, &[]).unwrap();
    check(&root, "one.metadata.name", "string");
    check(&root, "one.spec", "int");
    check(&root, "list.[].kind", "string");
}

#[test]
fn root_of_any_type_is_converted() {
    let list = decl_type(json!({"type": "array", "items": {"type": "object"}}), &[]).unwrap();
    check(&list, "", "list(Test#.@idx)");
    check(
        &decl_type(json!({"type": "string"}), &[]).unwrap(),
        "",
        "string",
    );
    check(&decl_type(json!({}), &[]).unwrap(), "", "dyn");
    let map = json!({"type": "object", "additionalProperties": {"type": "object"}});
    check(
        &decl_type(map, &[]).unwrap(),
        "",
        "map(string, Test#.@elem)",
    );
}

#[test]
fn keywords_nullable_and_default_and_required_are_converted() {
    let nullable = field(json!({"type": "string", "nullable": true, "default": "x"}));
    assert!(nullable.nullable && nullable.has_default);
    let plain = field(json!({"type": "string", "nullable": false, "default": null}));
    assert!(!plain.nullable && !plain.has_default);
    let root =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    assert!(decl_type(root, &[]).unwrap().field("a").unwrap().required);
}
