//! Tests of finding schemas that the API server rejects.

use serde_json::{Value as Json, json};

use crate::validation_rules::keywords::{
    has_errors, is_convertible, is_map_correlatable, max_elements,
};

#[test]
fn unsupported_keywords_are_errors() {
    let check = |schema: Json, expected: bool| {
        let schema = schema.as_object().unwrap();
        assert_eq!(has_errors(schema, true, false), expected, "{schema:?}");
    };
    let string = json!({"type": "string"});
    for type_ in ["array", "boolean", "integer", "number", "object", "string"] {
        check(json!({"type": type_}), false);
    }
    check(json!({}), false);
    check(json!({"type": "file"}), true);
    check(json!({"id": "x"}), true);
    check(json!({"id": ""}), false);
    check(json!({"additionalItems": true}), true);
    check(json!({"patternProperties": {"a": {}}}), true);
    check(json!({"patternProperties": {}}), false);
    check(json!({"definitions": {"a": {}}}), true);
    check(json!({"dependencies": {}}), true);
    check(json!({"$ref": "#/a"}), true);
    check(json!({"$ref": null}), false);
    check(json!({"items": [{}]}), true);
    check(json!({"items": {}}), false);
    check(json!({"uniqueItems": true}), true);
    check(json!({"uniqueItems": false}), false);
    check(json!({"x-kubernetes-preserve-unknown-fields": false}), true);
    check(json!({"x-kubernetes-preserve-unknown-fields": true}), false);
    check(
        json!({"properties": {"a": string}, "additionalProperties": string}),
        true,
    );
    check(
        json!({"properties": {"a": string}, "additionalProperties": false}),
        true,
    );
    check(
        json!({"properties": {"a": string}, "additionalProperties": true}),
        false,
    );
    check(
        json!({"properties": {}, "additionalProperties": string}),
        false,
    );
}

#[test]
fn errors_of_keywords_depend_on_position() {
    let with_default = json!({"type": "string", "default": "x"});
    let schema = with_default.as_object().unwrap();
    assert!(has_errors(schema, false, false) && !has_errors(schema, true, false));
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    let schema = embedded.as_object().unwrap();
    assert!(has_errors(schema, true, true) && !has_errors(schema, true, false));
    let plain = json!({"type": "object", "default": null});
    assert!(!has_errors(plain.as_object().unwrap(), false, true));
}

#[test]
fn schema_with_unsupported_keyword_at_any_depth_is_not_convertible() {
    let check = |schema: &Json, expected: bool| {
        for around in [
            schema.clone(),
            json!({"items": schema}),
            json!({"additionalProperties": schema}),
            json!({"properties": {"a": {}, "b": schema}}),
            json!({"allOf": [{}, schema]}),
            json!({"not": schema}),
        ] {
            assert_eq!(
                is_convertible(around.as_object().unwrap()),
                expected,
                "{around}"
            );
        }
    };
    check(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        true,
    );
    for unsupported in [
        json!({"id": "x"}),
        json!({"$schema": "x"}),
        json!({"$ref": "x"}),
        json!({"patternProperties": {"a": {}}}),
        json!({"dependencies": {"a": {}}}),
        json!({"definitions": {"a": {}}}),
        json!({"additionalItems": false}),
        json!({"x-kubernetes-preserve-unknown-fields": false}),
        json!({"items": [{}]}),
    ] {
        check(&unsupported, false);
    }
}

#[test]
fn maximum_number_of_elements_depends_on_type() {
    for (schema, expected) in [
        (json!({"type": "string", "maxLength": 5}), Some(1)),
        (json!({"type": "object", "maxProperties": 5}), Some(1)),
        (
            json!({"type": "object", "additionalProperties": {}, "maxProperties": 5}),
            Some(5),
        ),
        (json!({"type": "object", "additionalProperties": {}}), None),
        (json!({"type": "array", "maxItems": 7}), Some(7)),
        (json!({"type": "array", "maxItems": 7.0}), Some(7)),
        (json!({"type": "array", "maxItems": -7}), Some(0)),
        (json!({"type": "array", "maxItems": null}), None),
        (json!({"type": "array", "maxProperties": 3}), None),
    ] {
        assert_eq!(
            max_elements(schema.as_object().unwrap()),
            expected,
            "{schema}"
        );
    }
}

#[test]
fn maps_of_known_map_types_are_correlatable() {
    for (schema, expected) in [
        (json!({}), true),
        (json!({"x-kubernetes-map-type": "granular"}), true),
        (json!({"x-kubernetes-map-type": "atomic"}), true),
        (json!({"x-kubernetes-map-type": "other"}), false),
    ] {
        assert_eq!(
            is_map_correlatable(schema.as_object().unwrap()),
            expected,
            "{schema}"
        );
    }
}
