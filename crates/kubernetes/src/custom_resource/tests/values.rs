//! Tests of errors in values.

use serde_json::{Value as Json, json};

use super::{check, definition, object};
use crate::custom_resource::Validator;
use crate::custom_resource::number::{is_converted, is_whole, type_of};
use crate::version::KubernetesVersion;

#[test]
fn number_beyond_bound_has_error() {
    let bounded = |type_: &str, keywords: Json| {
        let mut schema = keywords;
        schema["type"] = json!(type_);
        schema
    };
    let error =
        |shown: &str, than: &str| format!("a: Invalid value: {shown}: a in body should be {than}");
    for (keywords, accepted, rejected, than) in [
        (json!({"minimum": 5}), 5, 4, "greater than or equal to 5"),
        (
            json!({"minimum": 5, "exclusiveMinimum": true}),
            6,
            5,
            "greater than 5",
        ),
        (json!({"maximum": 5}), 5, 6, "less than or equal to 5"),
        (
            json!({"maximum": 5, "exclusiveMaximum": true}),
            4,
            5,
            "less than 5",
        ),
        (json!({"multipleOf": 5}), -10, 4, "a multiple of 5"),
    ] {
        for type_ in ["integer", "number"] {
            let schema = bounded(type_, keywords.clone());
            check(&schema, &json!(accepted), &[]);
            check(
                &schema,
                &json!(rejected),
                &[&error(&rejected.to_string(), than)],
            );
        }
    }
    let number = |keywords: Json| bounded("number", keywords);
    check(&number(json!({"minimum": 0.5})), &json!(0.5), &[]);
    check(
        &number(json!({"minimum": 0.5})),
        &json!(0.25),
        &[&error("0.25", "greater than or equal to 0.5")],
    );
    check(&number(json!({"multipleOf": 0.5})), &json!(1.5), &[]);
    check(&number(json!({"multipleOf": 0.1})), &json!(0.3), &[]);
    check(&number(json!({"multipleOf": 2.5})), &json!(7.5), &[]);
    check(
        &number(json!({"multipleOf": 2.5})),
        &json!(7.25),
        &[&error("7.25", "a multiple of 2.5")],
    );
    check(
        &number(json!({"multipleOf": 0.5})),
        &json!(0.75),
        &[&error("0.75", "a multiple of 0.5")],
    );
    check(
        &bounded("integer", json!({"multipleOf": -2})),
        &json!(4),
        &["a: Invalid value: -2: factor MultipleOf declared for a must be positive: -2"],
    );
    check(
        &number(json!({"multipleOf": -0.5})),
        &json!(0.5),
        &["a: Invalid value: -0.5: factor MultipleOf declared for a must be positive: -0.5"],
    );
}

#[test]
fn number_out_of_range_of_format_has_error() {
    let out_of_range = |what: &str, of: &str| {
        format!("<nil>: Invalid value: \"\": {what} value must be of type {of} in a")
    };
    let int32 = json!({"type": "integer", "format": "int32"});
    check(&int32, &json!(2_147_483_647), &[]);
    check(&int32, &json!(-2_147_483_648_i64), &[]);
    check(
        &int32,
        &json!(2_147_483_648_i64),
        &[&out_of_range("Checked", "integer with format int32")],
    );
    check(&json!({"type": "integer"}), &json!(2_147_483_648_i64), &[]);
    let float = json!({"type": "number", "format": "float"});
    check(&float, &json!(3.4e38), &[]);
    check(
        &float,
        &json!(3.5e38),
        &[&out_of_range("Checked", "number with format float")],
    );
    check(&json!({"type": "number"}), &json!(3.5e38), &[]);
    let bounds = |keyword: &str| {
        let mut schema = int32.clone();
        schema[keyword] = json!(5e9);
        schema
    };
    check(
        &bounds("maximum"),
        &json!(1),
        &[&out_of_range(
            "Maximum boundary",
            "integer with format int32",
        )],
    );
    check(
        &bounds("minimum"),
        &json!(1),
        &[
            &out_of_range("Minimum boundary", "integer with format int32"),
            "a: Invalid value: 1: a in body should be greater than or equal to 5e+09",
        ],
    );
}

#[test]
fn type_names_of_values_agree_with_go() {
    for (value, type_) in [
        (json!(null), ("null", "")),
        (json!(true), ("boolean", "")),
        (json!("x"), ("string", "")),
        (json!(1), ("integer", "int64")),
        (json!(1.0), ("number", "float64")),
        (json!(u64::MAX), ("number", "float64")),
        (json!([]), ("array", "")),
        (json!({}), ("object", "")),
    ] {
        assert_eq!(type_of(&value), type_, "{value}");
    }
}

#[test]
fn whole_numbers_may_have_rounding_errors() {
    for (value, expected) in [
        (json!(1), true),
        (json!(0), true),
        (json!(-3.0), true),
        (json!(1.5), false),
        (json!(0.1), false),
        (json!(-0.1), false),
        (json!(2.000_000_000_1), true),
        (json!(2.000_001), false),
        (json!(9_007_199_254_740_991.0), true),
        (json!(9_007_199_254_740_992.0), false),
        (json!("1"), false),
    ] {
        assert_eq!(is_whole(&value), expected, "{value}");
    }
}

#[test]
fn value_is_compared_after_conversion_to_type_of_enum_value() {
    for (data, value, expected) in [
        (json!(null), json!(null), false),
        (json!(1), json!(1), true),
        (json!(1), json!(2), false),
        (json!(1.9), json!(1), true),
        (json!(-1.9), json!(-1), true),
        (json!(2.1), json!(1), false),
        (json!(1e300), json!(i64::MIN), true),
        (json!(1), json!(1.0), true),
        (json!(1.5), json!(1.5), true),
        (json!(1), json!(1.5), false),
        (json!(65), json!("A"), true),
        (json!(65), json!("AB"), false),
        (json!(65), json!("B"), false),
        (json!(-1), json!("\u{fffd}"), true),
        (json!(65.5), json!("A"), false),
        (json!("x"), json!("x"), true),
        (json!("x"), json!("y"), false),
        (json!(true), json!(true), true),
        (json!(true), json!(1), false),
        (json!([1, 2]), json!([1, 2]), true),
        (json!([1, 2]), json!([2, 1]), false),
        (json!({"a": 1}), json!({"a": 1}), true),
    ] {
        assert_eq!(is_converted(&data, &value), expected, "{data} {value}");
    }
}

#[test]
fn length_and_pattern_of_strings_are_validated() {
    let error = |text: &str| format!("a: Invalid value: {text}");
    let max = |n: u32| json!({"type": "string", "maxLength": n});
    check(&max(2), &json!("ab"), &[]);
    // `maxLength` limits the number of characters, not bytes.
    check(&max(2), &json!("\u{e9}\u{e9}"), &[]);
    check(
        &max(2),
        &json!("abc"),
        &["a: Too long: may not be more than 2 bytes"],
    );
    check(
        &max(1),
        &json!("ab"),
        &["a: Too long: may not be more than 1 byte"],
    );
    check(
        &max(0),
        &json!("a"),
        &["a: Too long: may not be more than 0 bytes"],
    );
    let min = json!({"type": "string", "minLength": 2});
    check(&min, &json!("ab"), &[]);
    check(
        &min,
        &json!("a"),
        &[&error("\"a\": a in body should be at least 2 chars long")],
    );
    let pattern = json!({"type": "string", "pattern": "^a+$"});
    check(&pattern, &json!("aa"), &[]);
    check(
        &pattern,
        &json!("ab"),
        &[&error("\"ab\": a in body should match '^a+$'")],
    );
    let date = json!({"type": "string", "format": "date"});
    check(&date, &json!("2001-01-01"), &[]);
    check(
        &date,
        &json!("x"),
        &[&error("\"x\": a in body must be of type date: \"x\"")],
    );
}

#[test]
fn bounds_of_lists_and_maps_are_validated() {
    let list = |keyword: &str| json!({"type": "array", "items": {"type": "integer"}, keyword: 2});
    check(&list("maxItems"), &json!([1, 2]), &[]);
    check(
        &list("maxItems"),
        &json!([1, 2, 3]),
        &["a: Too many: 3: must have at most 2 items"],
    );
    check(&list("minItems"), &json!([1, 2]), &[]);
    check(
        &list("minItems"),
        &json!([1]),
        &["a: Invalid value: 1: a in body should have at least 2 items"],
    );
    check(
        &list("maxItems"),
        &json!(["x"]),
        &["a[0]: Invalid value: \"string\": a[0] in body must be of type integer: \"string\""],
    );
    let map = |keyword: &str| json!({"type": "object", "additionalProperties": {"type": "integer"}, keyword: 2});
    check(&map("maxProperties"), &json!({"x": 1, "y": 2}), &[]);
    check(
        &map("maxProperties"),
        &json!({"x": 1, "y": 2, "z": 3}),
        &["a: Too many: 3: must have at most 2 items"],
    );
    check(&map("minProperties"), &json!({"x": 1, "y": 2}), &[]);
    check(
        &map("minProperties"),
        &json!({"x": 1}),
        &["a: Invalid value: 1: a in body should have at least 2 properties"],
    );
    check(
        &map("maxProperties"),
        &json!({"x": true}),
        &["a.x: Invalid value: \"boolean\": a.x in body must be of type integer: \"boolean\""],
    );
    let required =
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}});
    check(&required, &json!({"x": 1}), &[]);
    check(&required, &json!({}), &["a.x: Required value"]);
}

#[test]
fn enumerations_and_types_of_values_are_validated() {
    let enumerated = json!({"type": "string", "enum": ["x", "y"]});
    check(&enumerated, &json!("y"), &[]);
    check(
        &enumerated,
        &json!("z"),
        &["a: Unsupported value: \"z\": supported values: \"x\", \"y\""],
    );
    let numbers = json!({"type": "integer", "enum": [1, 2]});
    check(&numbers, &json!(2), &[]);
    check(
        &numbers,
        &json!(3),
        &["a: Unsupported value: 3: supported values: \"1\", \"2\""],
    );
    for (type_, value, actual) in [
        ("string", json!(1), "integer"),
        ("integer", json!("x"), "string"),
        ("boolean", json!(1), "integer"),
        ("number", json!(true), "boolean"),
        ("array", json!({}), "object"),
        ("object", json!([]), "array"),
    ] {
        let mut schema = json!({"type": type_});
        if type_ == "array" {
            schema["items"] = json!({"type": "string"});
        }
        let expected = format!(
            "a: Invalid value: \"{actual}\": a in body must be of type {type_}: \"{actual}\""
        );
        check(&schema, &value, &[&expected]);
    }
    check(&json!({"type": "integer"}), &json!(2.0), &[]);
    check(
        &json!({"type": "integer"}),
        &json!(1.5),
        &[
            "a: Invalid value: \"number\": a in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in a",
        ],
    );
    check(&json!({"type": "number"}), &json!(2), &[]);
    check(
        &json!({"type": "string", "nullable": true}),
        &json!(null),
        &[],
    );
}

/// Source: apiextensions-apiserver 0.34, 0.35 and 0.36 `pkg/apiserver/validation/formats.go`.
#[test]
fn formats_depend_on_version() {
    let int32 =
        "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in a";
    let name = |format: &str| {
        format!("a: Invalid value: \"-\": a in body must be of type {format}: \"-\"")
    };
    for (schema, value, since, error) in [
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            36,
            int32.to_owned(),
        ),
        (
            json!({"type": "string", "format": "k8s-short-name"}),
            json!("-"),
            35,
            name("k8s-short-name"),
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("-"),
            30,
            name("ipv4"),
        ),
    ] {
        for version in KubernetesVersion::supported() {
            let definition = definition(&json!({"a": schema}));
            let validator = Validator::new(&definition, "v1", version).unwrap();
            let verdict = validator.validate(&object(&json!({"a": value})), None, "");
            let errors = verdict.unwrap().errors;
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: &[String] = if version.minor >= since {
                std::slice::from_ref(&error)
            } else {
                &[]
            };
            assert_eq!(errors, expected, "{version}: {schema}");
        }
    }
}
