//! Tests errors of values, and the decoding of objects.

use serde_json::{Value as Json, json};

use crate::custom_resource::number::{is_converted, is_whole, type_of};
use crate::custom_resource::read::type_text;
use crate::custom_resource::{Error, Validator};

fn definition(properties: &Json) -> Json {
    json!({"spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"kind": "Disk", "plural": "disks"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}],
    }})
}

fn object(fields: &Json) -> Json {
    let mut object =
        json!({"apiVersion": "example.com/v1", "kind": "Disk", "metadata": {"name": "a"}});
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
    object
}

#[track_caller]
fn check_in(definition: &Json, fields: &Json, expected: &[&str]) {
    let validator = Validator::new(definition, "v1").unwrap();
    let verdict = validator.validate(&object(fields), None, "").unwrap();
    let errors: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{fields}");
}

/// Asserts the errors of an object whose field `a` has the given schema and value.
#[track_caller]
fn check(schema: &Json, value: &Json, expected: &[&str]) {
    check_in(
        &definition(&json!({"a": schema})),
        &json!({"a": value}),
        expected,
    );
}

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
fn type_of_follows_go() {
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
fn is_whole_ignores_rounding_errors() {
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
fn is_converted_compares_as_type_of_enum_value() {
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
fn type_text_formats_as_go() {
    for (value, expected) in [
        (json!(null), "<nil> is of the type <nil>"),
        (json!(true), "true is of the type bool"),
        (json!(5), "5 is of the type int64"),
        (json!(1.5), "1.5 is of the type float64"),
        (json!("x"), "x is of the type string"),
        (
            json!(["a", 1, null]),
            "[a 1 <nil>] is of the type []interface {}",
        ),
        (
            json!({"b": [true], "a": {"c": "d"}}),
            "map[a:map[c:d] b:[true]] is of the type map[string]interface {}",
        ),
    ] {
        assert_eq!(type_text(&value), expected);
    }
}

#[test]
fn undecodable_object_is_an_error() {
    let validator = Validator::new(&definition(&json!({})), "v1").unwrap();
    let check = |object: Json, expected: &str| {
        let error = validator.validate(&object, None, "").unwrap_err();
        assert_eq!(error, Error::Undecodable(expected.to_owned()));
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({"kind": 1}),
        ".kind accessor error: 1 is of the type int64, expected string",
    );
    check(
        json!({"kind": "Disk", "apiVersion": true}),
        ".apiVersion accessor error: true is of the type bool, expected string",
    );
    check(json!([]), "the object is not a JSON object");
    let nested = |n: usize| (0..n).fold(json!(1), |inner, _| json!({"a": inner}));
    check(nested(128), "the object nests deeper than 128 levels");
    assert!(validator.validate(&nested(127), None, "").is_ok());
    let missing = Validator::new(&definition(&json!({})), "v2").unwrap_err();
    assert_eq!(missing, Error::NoVersion("v2".to_owned()));
}

#[test]
fn wrong_kind_or_version_has_error() {
    let definition = definition(&json!({}));
    check_in(
        &definition,
        &json!({"kind": "Disc"}),
        &["kind: Invalid value: \"Disc\": must be Disk"],
    );
    check_in(
        &definition,
        &json!({"apiVersion": "example.com/v2"}),
        &["apiVersion: Invalid value: \"example.com/v2\": must be example.com/v1"],
    );
}

#[test]
fn scale_fields_are_validated() {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut definition =
        definition(&json!({"status": any, "spec": {"x-kubernetes-preserve-unknown-fields": true}}));
    definition["spec"]["versions"][0]["subresources"] = json!({"scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }});
    let check = |fields: Json, expected: &[&str]| check_in(&definition, &fields, expected);
    check(json!({}), &[]);
    check(json!({"spec": {}, "status": {"selector": "a=b"}}), &[]);
    check(
        json!({"spec": {"replicas": 0}, "status": {"replicas": 2_147_483_647}}),
        &[],
    );
    check(
        json!({"spec": {"replicas": -1}}),
        &[".spec.replicas: Invalid value: -1: should be a non-negative integer"],
    );
    check(
        json!({"status": {"replicas": 2_147_483_648_i64}}),
        &[
            ".status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647",
        ],
    );
    check(
        json!({"spec": {"replicas": "x"}}),
        &[
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
        ],
    );
    check(
        json!({"spec": [1]}),
        &[
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: [1] is of the type []interface {}, \
           expected map[string]interface{}",
        ],
    );
    check(
        json!({"status": {"selector": 5}}),
        &[
            ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the type int64, \
           expected string",
        ],
    );
}

#[test]
fn duplicates_of_lists_have_errors() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {
        "x-kubernetes-preserve-unknown-fields": true}});
    check(&set, &json!(["x", "y", 1, 1.5]), &[]);
    check(
        &set,
        &json!(["x", "y", "x", "x"]),
        &["a[2]: Duplicate value: \"x\""],
    );
    check(&set, &json!([1, 1]), &["a[1]: Duplicate value: 1"]);
    check(
        &set,
        &json!([{"k": 1}, {"k": 1}]),
        &["a[1]: Duplicate value: {\"k\":1}"],
    );
    let atomic = json!({"type": "array", "items": {"type": "string"}});
    check(&atomic, &json!(["x", "x"]), &[]);
    check(
        &json!({"type": "object", "additionalProperties": set}),
        &json!({"m": ["x", "x"], "l": ["y", "y"]}),
        &[
            "a[l][1]: Duplicate value: \"y\"",
            "a[m][1]: Duplicate value: \"x\"",
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "object", "properties": {"s": set}}}),
        &json!([{}, {"s": ["x", "x"]}]),
        &["a[1].s[1]: Duplicate value: \"x\""],
    );
    let map = |keys: &[&str]| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "l": {"type": "integer"}, "v": {"type": "string"}}}})
    };
    check(
        &map(&["k"]),
        &json!([{"k": "a", "v": "1"}, {"k": "b", "v": "1"}, {}]),
        &[],
    );
    check(
        &map(&["k"]),
        &json!([{"k": "a", "v": "1"}, {"k": "a", "v": "2"}]),
        &["a[1]: Duplicate value: {\"k\":\"a\"}"],
    );
    check(
        &map(&["k"]),
        &json!([{}, {"v": "1"}]),
        &["a[1]: Duplicate value: {}"],
    );
    check(
        &map(&["k", "l"]),
        &json!([{"k": "a", "l": 1}, {"k": "a", "l": 2}, {"k": "a"}]),
        &[],
    );
    check(
        &map(&["k", "l"]),
        &json!([{"k": "a", "l": 1}, {"l": 1, "k": "a"}]),
        &["a[1]: Duplicate value: {\"k\":\"a\",\"l\":1}"],
    );
}

#[test]
fn embedded_resources_are_validated() {
    let resource = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let whole = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    let with = |name: &str, value: Json| {
        let mut object = whole.clone();
        object[name] = value;
        object
    };
    check(&resource, &whole, &[]);
    check(
        &resource,
        &json!({}),
        &["a.apiVersion: Required value", "a.kind: Required value"],
    );
    check(
        &resource,
        &with("apiVersion", json!("")),
        &["a.apiVersion: Invalid value: \"\": must not be empty"],
    );
    check(
        &resource,
        &with("apiVersion", json!("a/b/c")),
        &["a.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"],
    );
    check(
        &resource,
        &with("kind", json!("")),
        &["a.kind: Invalid value: \"\": must not be empty"],
    );
    check(
        &resource,
        &with("kind", json!("a_b")),
        &[
            "a.kind: Invalid value: \"a_b\": may have mixed case, but should otherwise match: a DNS-1035 label must \
           consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an \
           alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
           '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ],
    );
    check(
        &resource,
        &with("metadata", json!({"labels": {"a": "b"}})),
        &[],
    );
    check(
        &resource,
        &with("metadata", json!({"name": "a/b"})),
        &["a.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    );
    check(&resource, &with("metadata", json!({"namespace": "n"})), &[]);
    let list = json!({"type": "array", "items": resource});
    check(
        &list,
        &json!([whole, {"kind": "A"}]),
        &["a[1].apiVersion: Required value"],
    );
    let map = json!({"type": "object", "additionalProperties": resource});
    check(
        &map,
        &json!({"x": {"kind": "A"}}),
        &["a[x].apiVersion: Required value"],
    );
}

#[test]
fn created_object_gets_metadata_of_server() {
    let mut definition = definition(&json!({"status": {"type": "object",
        "properties": {"x": {"type": "integer"}}}, "a": {"type": "integer"}}));
    let create = |definition: &Json, metadata: Json| {
        let validator = Validator::new(definition, "v1").unwrap();
        let object = object(&json!({"metadata": metadata, "status": {"x": 1}}));
        validator.validate(&object, None, "team").unwrap()
    };
    let created = create(
        &definition,
        json!({"generateName": "d-", "generation": 5, "selfLink": "x",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}),
    );
    assert_eq!(created.errors, []);
    let metadata = &created.object["metadata"];
    assert_eq!(
        (&metadata["name"], &metadata["namespace"]),
        (&json!("d-x7x7x"), &json!("team"))
    );
    assert_eq!(metadata["generation"], json!(1));
    for name in [
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        assert_eq!(metadata.get(name), None);
    }
    assert!(metadata["uid"].is_string() && metadata["creationTimestamp"].is_string());
    assert_eq!(created.object["status"], json!({"x": 1}));
    let long = create(&definition, json!({"generateName": "d".repeat(70)}));
    assert_eq!(
        long.object["metadata"]["name"],
        json!(format!("{}x7x7x", "d".repeat(58)))
    );
    let named = create(
        &definition,
        json!({"generateName": "d-", "name": "e", "namespace": "own"}),
    );
    assert_eq!(named.object["metadata"]["name"], json!("e"));
    assert_eq!(named.object["metadata"]["namespace"], json!("own"));
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let without_status = create(&definition, json!({"name": "e"}));
    assert_eq!(without_status.object.get("status"), None);
    definition["spec"]["scope"] = json!("Cluster");
    let cluster = create(&definition, json!({"name": "e", "namespace": "own"}));
    assert_eq!(cluster.object["metadata"].get("namespace"), None);
}

#[test]
fn updated_object_keeps_status_and_counts_generation() {
    let mut definition = definition(&json!({"status": {"type": "object",
        "properties": {"x": {"type": "integer"}}}, "a": {"type": "integer"}}));
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let validator = Validator::new(&definition, "v1").unwrap();
    let update = |new: Json, old: Json| {
        validator
            .validate(&object(&new), Some(&object(&old)), "")
            .unwrap()
    };
    let old = || {
        json!({"a": 1, "status": {"x": 1}, "metadata": {"name": "a", "generation": 7, "uid": "u",
        "creationTimestamp": "2001-01-01T00:00:00Z", "resourceVersion": "9"}})
    };
    let changed = update(json!({"a": 2, "status": {"x": 2}}), old());
    assert_eq!(changed.errors, []);
    assert_eq!(changed.object["status"], json!({"x": 1}));
    let metadata = &changed.object["metadata"];
    assert_eq!(metadata["generation"], json!(8));
    assert_eq!(
        (&metadata["uid"], &metadata["resourceVersion"]),
        (&json!("u"), &json!("9"))
    );
    assert_eq!(metadata["creationTimestamp"], json!("2001-01-01T00:00:00Z"));
    let unchanged = update(
        json!({"a": 1, "metadata": {"name": "a", "labels": {"l": "m"}}}),
        old(),
    );
    assert_eq!(unchanged.object["metadata"]["generation"], json!(7));
    let fewer = update(json!({}), old());
    assert_eq!(fewer.object["metadata"]["generation"], json!(8));
    let without_status = update(json!({"a": 1, "status": {"x": 2}}), json!({"a": 1}));
    assert_eq!(without_status.object.get("status"), None);
}

#[test]
fn strings_have_length_and_pattern() {
    let error = |text: &str| format!("a: Invalid value: {text}");
    let max = |n: u32| json!({"type": "string", "maxLength": n});
    check(&max(2), &json!("ab"), &[]);
    // The limit counts characters.
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
fn lists_and_maps_have_bounds() {
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
fn values_are_enumerated_and_typed() {
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
