//! Tests of merging an applied object into a live object.

mod nodes;

use serde_json::{Value, json};

use super::{Applied, Error, Types, apply, undeclared};
use crate::schema::Gvk;

fn gvk() -> Gvk {
    Gvk::new("example.com", "v1", "Box")
}

fn types() -> Types {
    let string = json!({"type": "string"});
    let keyed = json!({"type": "object", "properties": {
        "k": string, "l": {"type": "integer", "default": 1}, "v": {"type": "integer"},
        "o": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"p": string}},
    }});
    let list = |type_: &str, keys: &Value, items: &Value| {
        json!({"type": "array", "x-kubernetes-list-type": type_, "x-kubernetes-list-map-keys": keys,
            "items": items})
    };
    let document = json!({"components": {"schemas": {
        "Box": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Box"}],
            "properties": {
                "apiVersion": string, "kind": string, "name": string, "count": {"type": "integer"},
                "on": {"type": "boolean"}, "date": {"type": "string", "format": "date"},
                "bytes": {"type": "string", "format": "byte"},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {}},
                "map": list("map", &json!(["k"]), &keyed),
                "map2": list("map", &json!(["k", "l"]), &keyed),
                "merged": {"type": "array", "items": keyed, "x-kubernetes-patch-strategy": "merge,retainKeys",
                    "x-kubernetes-patch-merge-key": "k"},
                "kept": {"type": "array", "items": string, "x-kubernetes-patch-strategy": "retainKeys"},
                "list": {"type": "array", "items": string},
                "free": {"type": "object"},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "closed": {"type": "object", "additionalProperties": false},
                "labels": {"type": "object", "additionalProperties": string},
                "part": {"allOf": [{"$ref": "#/components/schemas/Part"}], "x-kubernetes-map-type": "granular"},
                "whole": {"$ref": "#/components/schemas/Part"},
                "quantity": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
                "raw": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension"},
                "lost": {"$ref": "#/components/schemas/Lost"},
            },
        },
        "Part": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"p": string, "q": string}},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "object"},
        "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    }}});
    Types::from_document(document.to_string().as_bytes()).unwrap()
}

fn merged(live: &Value, applied: &Value) -> Result<Value, Error> {
    apply(&types(), &gvk(), live, &Applied::from(applied)).map(|mut merged| {
        let fields = merged.as_object_mut().unwrap();
        assert_eq!(fields.remove("apiVersion"), Some(json!("example.com/v1")));
        assert_eq!(fields.remove("kind"), Some(json!("Box")));
        merged
    })
}

#[track_caller]
fn check(live: &Value, applied: &Value, expected: &Value) {
    assert_eq!(
        merged(live, applied).as_ref(),
        Ok(expected),
        "{live} {applied}"
    );
}

/// Asserts the error of the applied object and the path of the invalid field.
#[track_caller]
fn check_error(applied: &Value, expected: &str, fields: &[&str]) {
    let error = merged(&json!({}), applied).unwrap_err();
    let text = error.to_string();
    let heading = "failed to convert patch object to typed object: ";
    assert_eq!(
        text.strip_prefix(heading),
        Some(expected),
        "{applied}: {text}"
    );
    assert_eq!(error.fields().unwrap(), fields, "{applied}");
}

#[test]
fn maps_and_scalars_are_merged() {
    check(&json!({}), &json!({"name": "a"}), &json!({"name": "a"}));
    check(
        &json!({"name": "a", "count": 1}),
        &json!({"count": 2}),
        &json!({"name": "a", "count": 2}),
    );
    check(
        &json!({"name": "a"}),
        &json!({"name": null}),
        &json!({"name": null}),
    );
    check(
        &json!({"labels": {"a": "1", "b": "2"}}),
        &json!({"labels": {"b": "3", "c": "4"}}),
        &json!({"labels": {"a": "1", "b": "3", "c": "4"}}),
    );
    check(
        &json!({"labels": {}}),
        &json!({"labels": {}}),
        &json!({"labels": {}}),
    );
    check(
        &json!({"list": ["a"]}),
        &json!({"name": "b"}),
        &json!({"list": ["a"], "name": "b"}),
    );
    check(
        &json!({"free": {"a": {"b": 1}}}),
        &json!({"free": {"a": {"c": 2}}}),
        &json!({"free": {"a": {"b": 1, "c": 2}}}),
    );
    check(
        &json!({"any": {"a": 1}}),
        &json!({"any": {"b": 2}}),
        &json!({"any": {"a": 1, "b": 2}}),
    );
    check(
        &json!({"any": 1}),
        &json!({"any": "x"}),
        &json!({"any": "x"}),
    );
    check(
        &json!({"any": {"a": 1}}),
        &json!({"any": 5}),
        &json!({"any": 5}),
    );
    check(
        &json!({"quantity": "1Gi"}),
        &json!({"quantity": 2}),
        &json!({"quantity": 2}),
    );
    check(
        &json!({"part": {"p": "1"}}),
        &json!({"part": {"q": "2"}}),
        &json!({"part": {"p": "1", "q": "2"}}),
    );
}

#[test]
fn sets_keep_order_of_applied_items() {
    let check = |live: Value, applied: Value, expected: Value| {
        check(
            &json!({"set": live}),
            &json!({"set": applied}),
            &json!({"set": expected}),
        );
    };
    check(json!(["a", "b"]), json!(["b", "c"]), json!(["a", "b", "c"]));
    check(json!(["a", "b"]), json!(["c", "b"]), json!(["a", "c", "b"]));
    check(
        json!(["a", "b", "c"]),
        json!(["c", "a"]),
        json!(["b", "c", "a"]),
    );
    check(json!(["a", "b", "c"]), json!(["c"]), json!(["a", "b", "c"]));
    check(json!([]), json!(["a"]), json!(["a"]));
    check(
        json!(["a", "l", "b"]),
        json!(["x", "y", "a", "b"]),
        json!(["x", "y", "a", "l", "b"]),
    );
    check(json!(["a", "l"]), json!(["x"]), json!(["a", "l", "x"]));
    check(json!(["l", "a"]), json!(["a", "x"]), json!(["l", "a", "x"]));
    check(json!(["a"]), json!([]), json!(["a"]));
    check(json!([]), json!([]), json!([]));
    check(json!([1, 2]), json!([2.0, 3]), json!([1, 2.0, 3]));
    check(
        json!([true, "a"]),
        json!([false]),
        json!([true, "a", false]),
    );
    // Items that occur twice in the live list are kept.
    check(json!(["a", "a"]), json!(["b"]), json!(["a", "a", "b"]));
}

#[test]
fn items_of_list_type_map_are_merged_by_key() {
    let check = |field: &str, live: Value, applied: Value, expected: Value| {
        check(
            &json!({field: live}),
            &json!({field: applied}),
            &json!({field: expected}),
        );
    };
    for field in ["map", "merged"] {
        check(
            field,
            json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]),
            json!([{"k": "b", "l": 3}, {"k": "c"}]),
            json!([{"k": "a", "v": 1}, {"k": "b", "v": 2, "l": 3}, {"k": "c"}]),
        );
    }
    // If the key field `l` is absent, its default is used.
    check(
        "map2",
        json!([{"k": "a", "v": 1}, {"k": "a", "l": 2, "v": 2}]),
        json!([{"k": "a", "l": 1, "v": 3}, {"k": "a", "l": 2, "v": 4}]),
        json!([{"k": "a", "l": 1, "v": 3}, {"k": "a", "l": 2, "v": 4}]),
    );
    check(
        "map2",
        json!([{"v": 1}]),
        json!([{"l": 1, "v": 2}]),
        json!([{"l": 1, "v": 2}]),
    );
}

#[test]
fn values_of_wrong_type_are_errors() {
    let of_type = |field: &str, value: Value, expected: &str| {
        check_error(
            &json!({field: value}),
            &format!(".{field}: {expected}"),
            &[field],
        );
    };
    let string = |value: Value, syntax: &str| {
        let expected = format!("expected string, got &value.valueUnstructured{{Value:{syntax}}}");
        of_type("name", value, &expected);
    };
    string(json!(5), "5");
    string(json!(true), "true");
    string(json!(1.5), "1.5");
    string(json!([]), "[]interface {}{}");
    string(json!(["a", 1]), "[]interface {}{\"a\", 1}");
    string(
        json!({"a": null, "b": "c"}),
        "map[string]interface {}{\"a\":interface {}(nil), \"b\":\"c\"}",
    );
    of_type(
        "bytes",
        json!(5),
        "expected string, got &value.valueUnstructured{Value:5}",
    );
    for (value, type_) in [
        (json!("x"), "string"),
        (json!(true), "bool"),
        (json!([]), "[]interface {}"),
        (json!({}), "map[string]interface {}"),
    ] {
        of_type(
            "count",
            value,
            &format!("expected numeric (int or float), got {type_}"),
        );
    }
    for (value, plain) in [
        (json!("x"), "x"),
        (json!(5), "5"),
        (json!(0.5), "0.5"),
        (json!([1, null, ["a"]]), "[1 <nil> [a]]"),
        (json!({"a": 1, "b": {"c": true}}), "map[a:1 b:map[c:true]]"),
    ] {
        of_type("on", value, &format!("expected boolean, got &{{{plain}}}"));
    }
    of_type("date", json!(["x"]), "expected any scalar, got &{[x]}");
    of_type(
        "quantity",
        json!({"a": "b"}),
        "expected any scalar, got &{map[a:b]}",
    );
    of_type("set", json!("x"), "expected list, got &{x}");
    of_type("labels", json!("x"), "expected map, got &{x}");
    check_error(
        &json!({"x": 1, "y": 2}),
        ".x: field not declared in schema",
        &["x"],
    );
    check_error(
        &json!({"map": [{"k": "a", "x": 1}]}),
        ".map[k=\"a\"].x: field not declared in schema",
        &["map", "x"],
    );
    check_error(
        &json!({"list": ["a", 5]}),
        ".list[1]: expected string, got &value.valueUnstructured{Value:5}",
        &["list"],
    );
    check_error(
        &json!({"count": "x", "on": 1}),
        "errors:\n  .count: expected numeric (int or float), got string\n  .on: expected boolean, got &{1}",
        &["count"],
    );
    check_error(
        &json!({"lost": 1}),
        ".lost: schema error: no type found matching: Lost",
        &["lost"],
    );
    for valid in [
        json!({"date": 5}),
        json!({"count": 1.5}),
        json!({"bytes": "x"}),
        json!({"on": null}),
    ] {
        check(&json!({}), &valid, &valid);
    }
}

#[test]
fn items_without_valid_key_are_errors() {
    let in_set = |item: Value, expected: &str| {
        check_error(
            &json!({"set": ["a", item]}),
            &format!(".set: element 1: {expected}"),
            &["set"],
        );
    };
    in_set(
        json!({}),
        "associative list without keys has an element that's a map type",
    );
    in_set(
        json!([]),
        "not supported: associative list with lists as elements",
    );
    in_set(
        json!(null),
        "associative list without keys has an element that's an explicit null",
    );
    let in_map = |item: Value, expected: &str| {
        check_error(
            &json!({"map": [item]}),
            &format!(".map: element 0: {expected}"),
            &["map"],
        );
    };
    in_map(
        json!(null),
        "associative list with keys may not have a null element",
    );
    in_map(
        json!("x"),
        "associative list with keys may not have non-map elements",
    );
    in_map(
        json!({"v": 1}),
        "associative list with keys has an element that omits all key fields [\"k\"] (and doesn't have default \
         values for any key fields)",
    );
    let repeated = |field: &str, items: Value, key: &str| {
        let expected = format!(".{field}: duplicate entries for key {key}");
        check_error(&json!({field: items}), &expected, &[field]);
    };
    repeated("set", json!(["a", "b", "a"]), "[=\"a\"]");
    repeated("set", json!([1, 1.0]), "[=1]");
    repeated("set", json!([true, true]), "[=true]");
    repeated("map", json!([{"k": "a"}, {"k": "a", "v": 1}]), "[k=\"a\"]");
    repeated(
        "map2",
        json!([{"k": "a"}, {"k": "a", "l": 1}]),
        "[k=\"a\",l=1]",
    );
}

#[test]
fn atomic_values_in_apply_configurations_are_errors() {
    let rejected = |applied: Value, paths: &[&str], fields: &[&str]| {
        let error = merged(&json!({}), &applied).unwrap_err();
        let expected = Error::Atomic {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        assert_eq!(error, expected, "{applied}");
        assert_eq!(error.fields().unwrap(), fields);
    };
    rejected(json!({"list": ["a"]}), &[".list"], &["list"]);
    rejected(json!({"list": []}), &[".list"], &["list"]);
    rejected(
        json!({"kept": ["a"], "list": []}),
        &[".kept", ".list"],
        &["kept"],
    );
    rejected(json!({"whole": {"p": "a"}}), &[".whole"], &["whole"]);
    rejected(
        json!({"map": [{"k": "a"}, {"k": "b", "o": {}}]}),
        &[".map[1].o"],
        &["map", "o"],
    );
    rejected(json!({"raw": {"a": 1}}), &[".raw"], &["raw"]);
    let error = merged(&json!({}), &json!({"list": [], "whole": {}})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .list, .whole"
    );
    assert!(
        merged(
            &json!({"list": ["a"], "whole": {"p": "b"}}),
            &json!({"name": "c"})
        )
        .is_ok()
    );
}

#[test]
fn live_object_of_wrong_type_is_an_error() {
    let error = merged(&json!({"count": "x"}), &json!({})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to convert original object to typed object: .count: expected numeric (int or float), got string"
    );
    assert_eq!(error.fields(), None);
}

#[test]
fn depth_of_both_objects_is_limited() {
    // The field `free` itself counts as a level.
    let nested = |n: usize| json!({"free": (2..n).fold(json!({}), |inner, _| json!({"a": inner}))});
    assert!(merged(&nested(256), &json!({})).is_ok());
    assert!(merged(&json!({}), &nested(256)).is_ok());
    assert_eq!(merged(&nested(257), &json!({})), Err(Error::TooDeep));
    assert_eq!(merged(&json!({}), &nested(257)), Err(Error::TooDeep));
}

#[test]
fn unknown_fields_are_listed_with_paths() {
    let check = |object: Value, expected: &[&str]| {
        assert_eq!(undeclared(&types(), &gvk(), &object), expected, "{object}");
    };
    check(
        json!({"name": "a", "labels": {"x": "y"}, "free": {"x": {"y": 1}}, "any": {"x": 1}}),
        &[],
    );
    check(json!({"x": 1, "name": 5, "y": {"z": 1}}), &["x", "y"]);
    check(
        json!({"map": [{"k": "a"}, {"k": "b", "x": 1, "o": {"q": 1}}], "part": {"r": 1}}),
        &["map[1].o.q", "map[1].x", "part.r"],
    );
    check(json!({"closed": {"x": 1}}), &["closed.x"]);
    let many: serde_json::Map<String, Value> =
        (0..150).map(|n| (format!("x{n}"), json!(n))).collect();
    assert_eq!(
        undeclared(&types(), &gvk(), &Value::Object(many)).len(),
        100
    );
    let other = Gvk::new("example.com", "v1", "Bag");
    assert!(undeclared(&types(), &other, &json!({"x": 1})).is_empty());
}

#[test]
fn document_types_are_found_by_kind() {
    let types = types();
    assert_eq!(types.kinds().collect::<Vec<_>>(), [&gvk()]);
    assert!(types.has(&gvk()) && !types.has(&Gvk::new("", "v1", "Box")));
    let empty = Types::from_document(b"{}").unwrap();
    assert_eq!(empty.kinds().count(), 0);
    let incomplete = json!({"components": {"schemas": {"A": {"type": "object",
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1"}, {"group": "", "version": "v1", "kind": ""}]}}}});
    let incomplete = Types::from_document(incomplete.to_string().as_bytes()).unwrap();
    assert_eq!(incomplete.kinds().count(), 0);
}

#[test]
fn unconvertible_schemas_are_errors() {
    let check = |schema: Value, expected: &str| {
        let document = json!({"components": {"schemas": {"Box": schema}}}).to_string();
        let error = Types::from_document(document.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with(&format!("failed to convert models to schema: {expected}")),
            "{error}"
        );
    };
    let list = |keywords: Value| {
        let mut list = keywords;
        list["type"] = json!("array");
        list["items"] = json!({});
        list
    };
    check(
        list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": "k"})),
        "Box: uninterpreted map keys: \"k\"",
    );
    check(
        list(json!({"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": 5})),
        "Box: uninterpreted merge key: 5",
    );
    check(
        list(json!({"x-kubernetes-patch-strategy": "replace"})),
        "Box: unknown patch strategy replace",
    );
    check(
        json!({"type": "array", "items": [{}]}),
        "Box: structural schema arrays must have exactly one member subtype",
    );
    check(
        json!({"type": "object", "x-kubernetes-map-type": 5}),
        "Box: unknown map type 5",
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "x"}}}),
        "inlined in Box: `items` must be specified on arrays\ninlined in Box: unrecognized type: 'x'",
    );
}
