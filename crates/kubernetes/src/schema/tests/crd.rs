//! Tests of the types that the API server publishes for CustomResourceDefinitions.

use super::*;
use crate::schema::crd::Crd;

fn crd_type(schema: Value) -> Result<Arc<DeclType>, SchemaError> {
    let crd = json!({"kind": "CustomResourceDefinition", "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Test", "plural": "tests"},
        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    let types = Crd::from_value(&crd)
        .unwrap()
        .decl_types(&mut Interner::default());
    let entry = types.into_iter().find(|(gvk, _)| gvk.kind == "Test");
    entry.unwrap().1
}

/// Asserts that the schema is published unchanged if `expected` is true, or as an object without declared fields if
/// `expected` is false.
#[track_caller]
fn check_structural(schema: Value, expected: bool) {
    let type_ = crd_type(schema.clone()).unwrap();
    let is_bare = type_
        .field("metadata")
        .unwrap()
        .type_
        .field("labels")
        .is_none();
    assert_eq!(!is_bare, expected, "{schema}");
}

/// Same as [`check_structural`], but `schema` is the schema of a property of the root.
#[track_caller]
fn check_field(schema: Value, expected: bool) {
    check_structural(
        json!({"type": "object", "properties": {"field": schema}}),
        expected,
    );
}

#[test]
fn crd_metadata_without_schema_has_standard_types() {
    let type_ = crd_type(json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
    let type_ = type_.unwrap();
    check(&type_, "metadata.labels", "map(string, string)");
    check(&type_, "metadata.namespace", "string");
    check(&type_, "metadata.ownerReferences.[].controller", "bool");
    check(&type_, "metadata.managedFields.[].time", "timestamp");
    check(
        &type_,
        "metadata.managedFields.[].fieldsV1",
        "Test#.metadata.managedFields.@idx.fieldsV1",
    );
    check(&type_, "spec", "Test#.spec");
    check(&type_, "apiVersion", "string");
}

#[test]
fn embedded_resources_have_metadata_and_required_kind() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let type_ = crd_type(json!({"type": "object", "properties": {
        "one": embedded, "list": {"type": "array", "items": embedded},
        "map": {"type": "object", "additionalProperties": embedded}}}));
    let type_ = type_.unwrap();
    for path in ["one", "list.[]", "map.[]"] {
        check(
            &type_,
            &format!("{path}.metadata.labels"),
            "map(string, string)",
        );
        check(&type_, &format!("{path}.kind"), "string");
        check(&type_, &format!("{path}.spec"), "undefined");
    }
    assert!(
        type_
            .field("one")
            .unwrap()
            .type_
            .field("kind")
            .unwrap()
            .required
    );
}

#[test]
fn list_kind_has_type_with_items() {
    let crd = json!({"spec": {
        "group": "example.com", "names": {"kind": "Test", "plural": "tests", "listKind": "Tests"},
        "versions": [{"name": "v1", "served": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}],
    }});
    let types = Crd::from_value(&crd)
        .unwrap()
        .decl_types(&mut Interner::default());
    let list = types
        .iter()
        .find(|(gvk, _)| gvk.kind == "Tests")
        .unwrap()
        .1
        .clone()
        .unwrap();
    check(&list, "items.[].a", "int");
    check(&list, "items.[].metadata.labels", "map(string, string)");
    // List metadata has no field `name`, so upstream replaces it with minimal metadata.
    check(&list, "metadata.continue", "undefined");
    check(&list, "metadata.name", "string");
}

#[test]
fn missing_or_invalid_schema_has_no_fields() {
    for schema in [
        json!(null),
        json!({}),
        json!([]),
        json!("object"),
        json!({"type": "string"}),
    ] {
        check_structural(schema, false);
    }
}

#[test]
fn structural_schemas_are_published_unchanged() {
    check_structural(json!({"type": "object"}), true);
    check_field(
        json!({"type": "string", "description": "d", "title": "t", "pattern": "["}),
        true,
    );
    check_field(json!({"x-kubernetes-preserve-unknown-fields": true}), true);
    check_field(json!({"x-kubernetes-int-or-string": true}), true);
    check_field(
        json!({"type": "object", "additionalProperties": true}),
        true,
    );
    check_field(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        true,
    );
    check_field(json!({"type": "array", "items": {"type": "string"}}), true);
}

#[test]
fn schema_without_valid_type_is_not_structural() {
    check_field(json!({}), false);
    check_field(json!({"type": "strange"}), false);
    check_field(json!({"type": ""}), false);
    check_field(json!({"type": "array"}), false);
    check_field(json!({"type": "array", "items": {}}), false);
    check_field(
        json!({"type": "array", "items": [{"type": "string"}]}),
        false,
    );
    check_field(json!({"type": "object", "additionalProperties": {}}), false);
    check_structural(json!({"properties": {"a": {"type": "string"}}}), false);
    check_structural(
        json!({"type": "object", "additionalProperties": false}),
        false,
    );
}

#[test]
fn schema_with_unsupported_keyword_is_not_structural() {
    for (key, value) in [
        ("$ref", json!("#/definitions/x")),
        ("id", json!("x")),
        ("$schema", json!("x")),
        ("patternProperties", json!({"a": {}})),
        ("dependencies", json!({"a": []})),
        ("definitions", json!({"a": {}})),
        ("additionalItems", json!(false)),
        ("x-kubernetes-preserve-unknown-fields", json!(false)),
    ] {
        check_field(json!({"type": "string", key: value}), false);
    }
    for (key, value) in [
        ("$ref", json!("")),
        ("definitions", json!({})),
        ("id", json!(null)),
    ] {
        check_field(json!({"type": "string", key: value}), true);
    }
}

#[test]
fn schema_with_conflicting_extensions_is_not_structural() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    check_field(embedded, false);
    check_field(
        json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"a": {"type": "string"}}}),
        true,
    );
    check_field(
        json!({"x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}),
        false,
    );
    check_field(
        json!({"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}),
        false,
    );
}

#[test]
fn metadata_schema_may_only_restrict_names() {
    let with = |metadata: Value| json!({"type": "object", "properties": {"metadata": metadata}});
    let name = json!({"type": "string", "maxLength": 5});
    check_structural(with(json!({"type": "object"})), true);
    check_structural(
        with(json!({"type": "object", "properties": {"name": name}})),
        true,
    );
    check_structural(
        with(json!({"type": "object", "properties": {"labels": name}})),
        false,
    );
    check_structural(with(json!({"type": "object", "description": "d"})), false);
    check_structural(with(json!({"type": "object", "required": []})), false);
    check_structural(with(json!({"type": "object", "enum": []})), true);
    check_structural(with(json!({"type": "string"})), false);
    check_structural(
        json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
        false,
    );
    // In a nested schema, `metadata` is an ordinary property.
    check_field(with(json!({"type": "string"})), true);
}

#[test]
fn logical_junctors_must_not_declare_fields() {
    let field = |junctor: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [junctor]});
    check_field(field(json!({"properties": {"a": {"pattern": "x"}}})), true);
    check_field(field(json!({"type": "object"})), false);
    check_field(field(json!({"description": "d"})), false);
    check_field(field(json!({"default": {}})), false);
    check_field(field(json!({"nullable": true})), false);
    check_field(field(json!({"additionalProperties": true})), false);
    check_field(field(json!({"additionalProperties": false})), true);
    check_field(field(json!({"x-kubernetes-list-type": "set"})), false);
    check_field(
        field(json!({"x-kubernetes-validations": [{"rule": "true"}]})),
        false,
    );
    check_field(field(json!({"properties": {"metadata": {}}})), false);
    check_field(field(json!({"not": {"type": "object"}})), false);
    check_field(field(json!({"items": {"type": "object"}})), false);
    check_field(
        field(json!({"x-kubernetes-preserve-unknown-fields": false})),
        false,
    );
}

#[test]
fn logical_junctors_of_root_must_refer_to_declared_fields() {
    let root = |junctor: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [junctor]});
    check_structural(root(json!({"properties": {"a": {"enum": ["x"]}}})), true);
    check_structural(root(json!({"properties": {"b": {"enum": ["x"]}}})), false);
    check_structural(root(json!({"not": {"properties": {"b": {}}}})), false);
    check_structural(root(json!({"items": {}})), false);
    // Upstream requires declared fields only in the root's `not`, `allOf`, `anyOf` and `oneOf`.
    check_field(root(json!({"properties": {"b": {"enum": ["x"]}}})), true);
}

#[test]
fn int_or_string_allows_only_type_restriction_in_any_of() {
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    check_field(
        json!({"x-kubernetes-int-or-string": true, "anyOf": types}),
        true,
    );
    check_field(
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": types}]}),
        true,
    );
    check_field(
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"pattern": "x"}, {"anyOf": types}]}),
        false,
    );
    let swapped = json!([{"type": "string"}, {"type": "integer"}]);
    check_field(
        json!({"x-kubernetes-int-or-string": true, "anyOf": swapped}),
        false,
    );
    let more = json!([{"type": "integer", "minimum": 1}, {"type": "string"}]);
    check_field(
        json!({"x-kubernetes-int-or-string": true, "anyOf": more}),
        false,
    );
    check_field(
        json!({"x-kubernetes-int-or-string": true, "oneOf": types}),
        false,
    );
}

#[test]
fn crd_without_required_name_is_an_error() {
    for (crd, missing) in [
        (json!({}), "spec.names.kind"),
        (json!({"spec": {"names": {"kind": "T"}}}), "spec.group"),
        (
            json!({"spec": {"group": "g", "names": {"kind": "T"}}}),
            "spec.names.plural",
        ),
        (
            json!({"spec": {"group": "g", "names": {"kind": "T", "plural": "ts"},
                "versions": [{"served": true}]}}),
            "spec.versions[*].name",
        ),
    ] {
        let error = Crd::from_value(&crd).unwrap_err().to_string();
        assert!(error.contains(missing), "{error}");
    }
}

#[test]
fn too_deep_schema_is_an_error_of_its_version() {
    let mut schema = json!({"type": "string"});
    for _ in 0..200 {
        schema = json!({"type": "array", "items": schema});
    }
    let error = crd_type(json!({"type": "object", "properties": {"a": schema}})).unwrap_err();
    assert!(
        error.to_string().contains("nests deeper than 128 levels"),
        "{error}"
    );
}
