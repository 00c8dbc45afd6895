//! Tests of decoding and validating whole objects.

use serde_json::{Value as Json, json};

use super::{check, check_in, definition, object};
use crate::custom_resource::read::type_text;
use crate::custom_resource::{Error, Validator};
use crate::version::KubernetesVersion;

#[test]
fn value_and_its_type_are_shown_as_in_go() {
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
    let validator =
        Validator::new(&definition(&json!({})), "v1", KubernetesVersion::DEFAULT).unwrap();
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
    let missing =
        Validator::new(&definition(&json!({})), "v2", KubernetesVersion::DEFAULT).unwrap_err();
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
fn duplicates_in_lists_have_errors() {
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
fn created_object_gets_metadata_from_server() {
    let mut definition = definition(&json!({"status": {"type": "object",
        "properties": {"x": {"type": "integer"}}}, "a": {"type": "integer"}}));
    let create = |definition: &Json, metadata: Json| {
        let validator = Validator::new(definition, "v1", KubernetesVersion::DEFAULT).unwrap();
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
fn updated_object_keeps_status_and_increments_generation() {
    let mut definition = definition(&json!({"status": {"type": "object",
        "properties": {"x": {"type": "integer"}}}, "a": {"type": "integer"}}));
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let validator = Validator::new(&definition, "v1", KubernetesVersion::DEFAULT).unwrap();
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
