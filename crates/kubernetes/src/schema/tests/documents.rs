//! Tests of parsing OpenAPI documents: references, kinds, and tolerance of malformed schemas.

use super::*;

const PREFIX: &str = "#/components/schemas/";

fn to(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn reference_replaces_the_schema_that_contains_it() {
    let part = json!({"type": "string", "maxLength": 3});
    let root = object(json!({
        "plain": to("part"),
        "wrapped": {"allOf": [to("part")], "type": "integer", "default": {}},
        "twice": {"allOf": [{"type": "integer"}, {"allOf": [to("part")]}]},
        "both": {"$ref": format!("{PREFIX}part"), "allOf": [to("absent")]},
        "bare": {"$ref": "part"},
        "not_chased": to("alias"),
    }));
    let root = decl_type(root, &[("part", part), ("alias", to("part"))]).unwrap();
    for field in ["plain", "wrapped", "twice", "both", "bare"] {
        check(&root, field, "string");
        let type_ = &root.field(field).unwrap().type_;
        assert!(type_.max_elements == 12 && !type_.has_default, "{field}");
    }
    // Upstream resolves only one reference. If the target is also a reference, the second reference is ignored.
    check(&root, "not_chased", "undefined");
}

#[test]
fn root_reference_is_resolved() {
    let root = decl_type(
        to("real"),
        &[("real", object(json!({"a": {"type": "integer"}})))],
    );
    check(&root.unwrap(), "a", "int");
}

#[test]
fn dangling_reference_is_always_an_error() {
    let error = |root| decl_type(root, &[]).unwrap_err();
    let unresolved = SchemaError::UnresolvedRef(format!("{PREFIX}absent").into());
    assert_eq!(error(object(json!({"a": to("absent")}))), unresolved);
    // Upstream resolves references in `items` even if the type is not a list.
    assert_eq!(
        error(object(
            json!({"a": {"type": "integer", "items": to("absent")}})
        )),
        unresolved
    );
    assert_eq!(
        error(object(json!({"a": {"$ref": ""}}))),
        SchemaError::UnresolvedRef("".into())
    );
    // A dangling reference without the prefix causes the same error.
    assert_eq!(
        error(json!({"$ref": "absent"})),
        SchemaError::UnresolvedRef("absent".into())
    );
}

#[test]
fn cycles_are_truncated_at_repetition() {
    // The root's id is its name, without the prefix of references. A reference to the root is therefore resolved once.
    let root = decl_type(
        object(json!({"self": to("test"), "other": to("other")})),
        &[(
            "other",
            object(json!({"test": to("test"), "x": {"type": "integer"}})),
        )],
    );
    let root = root.unwrap();
    check(&root, "self.self", "Test#.self.self");
    check(&root, "self.self.self", "undefined");
    check(&root, "self.other.x", "int");
    check(&root, "self.other.test", "Test#.self.other.test");
    check(&root, "self.other.test.other", "undefined");
    check(&root, "other.test.other", "Test#.other.test.other");
    check(&root, "other.test.other.x", "undefined");
    check(&root, "other.test.self.self", "undefined");
}

#[test]
fn cycle_conversion_depends_on_entry_point() {
    let a = object(json!({"b": to("b"), "in_a": {"type": "string"}}));
    let b = object(json!({"a": to("a"), "in_b": {"type": "string"}}));
    // The conversion of the second property must not use types that were cached for the first property. Both orders are
    // tested.
    for names in [["a", "b"], ["b", "a"]] {
        let root = object(json!({names[0]: to(names[0]), names[1]: to(names[1])}));
        let root = decl_type(root, &[("a", a.clone()), ("b", b.clone())]).unwrap();
        check(&root, "a.in_a", "string");
        check(&root, "a.b.in_b", "string");
        check(&root, "a.b.a", "Test#.a.b.a");
        check(&root, "a.b.a.in_a", "undefined");
        check(&root, "b.a.in_a", "string");
        check(&root, "b.a.b.in_b", "undefined");
    }
}

#[test]
fn root_may_be_referenced_by_its_bare_name() {
    let bare = json!({"$ref": "test"});
    let part = object(json!({"back": bare, "x": {"type": "integer"}}));
    let root = decl_type(to("part"), &[("part", part.clone())]).unwrap();
    check(&root, "x", "int");
    check(&root, "back", "Test#.back");
    check(&root, "back.metadata", "undefined");
    // A root that is a reference to itself has only the common fields of resources.
    let itself = decl_type(bare, &[("part", part)]).unwrap();
    check(&itself, "x", "undefined");
    check(&itself, "metadata.name", "string");
}

#[test]
fn cycles_in_lists_and_maps_are_truncated() {
    let node = object(json!({
        "children": {"type": "array", "items": to("node")},
        "named": {"type": "object", "additionalProperties": to("node")},
    }));
    let root = decl_type(object(json!({"tree": to("node")})), &[("node", node)]).unwrap();
    check(&root, "tree.children", "list(Test#.tree.children.@idx)");
    check(&root, "tree.children.[].children", "undefined");
    check(&root, "tree.named.[]", "Test#.tree.named.@elem");
    let cut = select(&root, "tree.named.[]").unwrap();
    let Type::Struct(cut) = cut else {
        panic!("{cut}")
    };
    assert!(cut.fields.unwrap().field_names().is_empty());
}

#[test]
fn equal_types_are_shared() {
    let part = object(json!({"x": {"type": "integer"}}));
    let root = object(json!({"a": to("part"), "b": to("part"), "c": part.clone()}));
    let root = decl_type(root, &[("part", part)]).unwrap();
    let type_ = |name| &root.field(name).unwrap().type_;
    assert!(Arc::ptr_eq(type_("a"), type_("b")));
    assert!(Arc::ptr_eq(type_("a"), type_("c")));
}

#[test]
fn interner_shares_types_across_documents_until_purged() {
    let mut interner = Interner::default();
    let schema = object(json!({"a": {"type": "array", "items": {"type": "string"}}}));
    let first = document(schema.clone(), &[]).decl_types(&mut interner);
    let count = interner.len();
    let second = document(schema, &[]).decl_types(&mut interner);
    assert!(Arc::ptr_eq(
        first[0].1.as_ref().unwrap(),
        second[0].1.as_ref().unwrap()
    ));
    assert_eq!(interner.len(), count);
    interner.purge();
    assert_eq!(interner.len(), count);
    drop((first, second));
    interner.purge();
    assert!(interner.is_empty());
}

#[test]
fn types_with_different_keywords_are_not_shared() {
    let root = object(json!({
        "a": {"type": "string"}, "b": {"type": "string", "nullable": true},
        "c": {"type": "string", "enum": ["xx"]}, "d": {"type": "string", "enum": ["yy"]},
        "e": {"type": "object"}, "f": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }));
    let root = decl_type(root, &[]).unwrap();
    let type_ = |name| &root.field(name).unwrap().type_;
    for (one, other) in [("a", "b"), ("c", "d"), ("e", "f")] {
        assert!(!Arc::ptr_eq(type_(one), type_(other)), "{one} {other}");
    }
}

#[test]
fn malformed_keywords_affect_only_their_schema() {
    let root = object(json!({
        "good": {"type": "string", "unknown": {"a": [1]}, "not": {}, "oneOf": [{}], "format": null},
        "type": {"type": 5},
        "types": {"type": ["string", 5]},
        "format": {"type": "string", "format": {}},
        "nullable": {"type": "string", "nullable": "yes"},
        "length": {"type": "string", "maxLength": "5"},
        "float": {"type": "string", "maxLength": 5.5},
        "enum": {"type": "string", "enum": "a"},
        "required": {"type": "object", "required": true},
        "names": {"type": "object", "required": [1]},
        "properties": {"type": "object", "properties": []},
        "items": {"type": "array", "items": "string"},
        "additional": {"type": "object", "additionalProperties": 1},
        "all": {"type": "object", "allOf": {}},
        "number": 5,
        "boolean": true,
        "text": "string",
        "list": [{"type": "string"}],
        "null": null,
    }));
    let root = decl_type(root, &[]).unwrap();
    check(&root, "good", "string");
    for field in root.declared_fields() {
        if !["good", "apiVersion", "kind", "metadata"].contains(&&*field.name) {
            assert!(!field.type_.is_exposed(), "{}", field.name);
        }
    }
    assert_eq!(root.declared_fields().len(), 18 + 4);
}

#[test]
fn integer_keywords_accept_zero_fraction() {
    let root = decl_type(
        object(json!({"a": {"type": "string", "maxLength": 5.0}})),
        &[],
    )
    .unwrap();
    assert_eq!(root.field("a").unwrap().type_.max_elements, 20);
}

#[test]
fn last_duplicate_of_keyword_or_property_is_used() {
    let text = br#"{"components": {"schemas": {"t": {
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "T"}],
        "type": "string", "type": "object",
        "properties": {"b": {}, "a": {"type": "integer"}, "a": {"type": "string"}},
        "required": ["a", "a"]}}}}"#;
    let document = OpenApiDocument::parse(text).unwrap();
    let type_ = document.decl_type(&Gvk::new("", "v1", "T")).unwrap();
    check(&type_, "a", "string");
    assert_eq!(type_.min_serialized_size, 2 + 1 + 2 + 4);
}

#[test]
fn kinds_are_sorted_and_first_schema_of_kind_is_used() {
    let gvk = |kind| json!({"group": "g", "version": "v1", "kind": kind});
    let text = json!({"components": {"schemas": {
        "a": {"type": "string", "x-kubernetes-group-version-kind": [gvk("A"), gvk("B")]},
        "b": {"type": "integer", "x-kubernetes-group-version-kind": [gvk("B"), 5, {"kind": 1}, {}]},
        "c": {"type": "integer", "x-kubernetes-group-version-kind": {"group": "g"}},
        "d": {"type": "integer", "x-kubernetes-group-version-kind": [{"version": "v1", "kind": "D"}]},
    }}});
    let document = OpenApiDocument::parse(text.to_string().as_bytes()).unwrap();
    let kinds: Vec<_> = document.kinds().map(ToString::to_string).collect();
    assert_eq!(kinds, ["/v1, Kind=D", "g/v1, Kind=A", "g/v1, Kind=B"]);
    check(
        &document.decl_type(&Gvk::new("g", "v1", "B")).unwrap(),
        "",
        "string",
    );
    let unknown = document.decl_type(&Gvk::new("g", "v2", "B")).unwrap_err();
    assert_eq!(unknown, SchemaError::UnknownKind);
}

#[test]
fn invalid_utf8_in_description_is_accepted() {
    let mut text = br#"{"components": {"schemas": {"t": {"description": "caf"#.to_vec();
    text.push(0xe9);
    text.extend_from_slice(
        br#"", "type": "string",
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "T"}]}}}}"#,
    );
    let document = OpenApiDocument::parse(&text).unwrap();
    check(
        &document.decl_type(&Gvk::new("", "v1", "T")).unwrap(),
        "",
        "string",
    );
}

#[test]
fn empty_documents_parse_and_malformed_documents_fail() {
    for empty in [
        "{}",
        r#"{"components": null}"#,
        r#"{"components": {"schemas": null}}"#,
    ] {
        assert_eq!(
            OpenApiDocument::parse(empty.as_bytes())
                .unwrap()
                .kinds()
                .count(),
            0
        );
    }
    for broken in [
        "",
        "[]",
        "5",
        "{",
        r#"{"components": 5}"#,
        r#"{"components": {"schemas": 5}}"#,
    ] {
        let error = OpenApiDocument::parse(broken.as_bytes()).unwrap_err();
        assert!(matches!(error, SchemaError::Document(_)), "{broken}");
    }
}
