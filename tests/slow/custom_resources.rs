//! Tests requests for custom resources: recorded requests with upstream's results, and definitions and objects whose
//! validation is expensive. `./dev record-custom-resources` records the requests.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use vap_status_controller::custom_resource::{Error, FieldError, Validator, validate};
use vap_status_controller::version::KubernetesVersion;

fn causes(errors: &[FieldError]) -> Value {
    let causes = errors.iter().map(
        |error| json!({"field": error.field, "reason": error.kind.name(), "message": error.body()}),
    );
    causes.collect()
}

#[test]
fn custom_resource_errors_match_upstream() {
    let text = std::fs::read_to_string("tests/golden/custom_resources.jsonl").unwrap();
    let (mut n, mut n_refused) = (0, 0);
    for line in text.lines() {
        let group: Value = serde_json::from_str(line).unwrap();
        let validator = Validator::new(
            &group["crd"],
            group["version"].as_str().unwrap(),
            KubernetesVersion::DEFAULT,
        )
        .unwrap();
        for request in group["objects"].as_array().unwrap() {
            let namespace = request["namespace"].as_str().unwrap();
            n += 1;
            match validator.validate(&request["object"], request.get("old"), namespace) {
                Ok(verdict) => {
                    assert_eq!(
                        causes(&verdict.errors),
                        request["causes"],
                        "{request} of {line}"
                    );
                    n_refused += usize::from(!verdict.errors.is_empty());
                }
                Err(Error::Undecodable(why)) => {
                    let expected = request["unread"].as_str().unwrap_or_default();
                    let expected = expected.strip_prefix("old: ").unwrap_or(expected);
                    assert_eq!(why, expected, "{request}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(n > 150 && n_refused > 50, "{n} {n_refused}");
}

fn definition(spec: &Value) -> Value {
    json!({"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Box", "plural": "boxes"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": spec})
}

#[track_caller]
fn check(schema: &Value, spec: &Value, expected: &[&str]) {
    let errors = validate(
        &definition(schema),
        &object(spec),
        None,
        KubernetesVersion::DEFAULT,
    )
    .unwrap();
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{schema} {spec}");
}

#[test]
fn values_are_validated_by_keywords() {
    check(
        &json!({"type": "string", "format": "ipv4", "maxLength": 3}),
        &json!("host"),
        &[
            "spec: Too long: may not be more than 3 bytes",
            "spec: Invalid value: \"host\": spec in body must be of type ipv4: \"host\"",
        ],
    );
    // The value consists of two characters, each with several bytes.
    check(
        &json!({"type": "string", "maxLength": 2, "minLength": 2}),
        &json!("\u{1f600}\u{e4}"),
        &[],
    );
    check(
        &json!({"type": "integer", "format": "int32", "maximum": 5, "exclusiveMaximum": true, "multipleOf": 2}),
        &json!(5),
        &[
            "spec: Invalid value: 5: spec in body should be a multiple of 2",
            "spec: Invalid value: 5: spec in body should be less than 5",
        ],
    );
    check(
        &json!({"type": "integer", "format": "int32"}),
        &json!(3_000_000_000_i64),
        &[
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec",
        ],
    );
    check(
        &json!({"x-kubernetes-int-or-string": true}),
        &json!(1.5),
        &[
            "spec: Invalid value: \"number\": spec in body must be of type integer,string: \"number\"",
        ],
    );
    check(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "not": {"required": ["c"]}, "x-kubernetes-preserve-unknown-fields": true}),
        &json!({"a": "x", "b": 1, "c": 2}),
        &[
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)",
        ],
    );
    check(
        &json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}),
        &json!([1, 2, 1, 1]),
        &["spec[2]: Duplicate value: 1"],
    );
    check(
        &json!({"type": "string", "enum": ["a", "b\""]}),
        &json!("c"),
        &["spec: Unsupported value: \"c\": supported values: \"a\", \"b\\\"\""],
    );
}

/// Tests `metadata.generation`. A generation of 0 counts as absent.
///
/// Source: apimachinery `pkg/apis/meta/v1/unstructured/unstructured.go` (`SetGeneration`).
#[test]
fn generation_increases_with_changes() {
    let validator = Validator::new(
        &definition(&json!({"type": "integer"})),
        "v1",
        KubernetesVersion::DEFAULT,
    )
    .unwrap();
    let generation = |before: i64, spec: i64| {
        let mut old = object(&json!(1));
        old["metadata"]["generation"] = before.into();
        let verdict = validator.validate(&object(&json!(spec)), Some(&old), "default");
        verdict.unwrap().object["metadata"]["generation"].clone()
    };
    assert_eq!(generation(3, 1), json!(3));
    assert_eq!(generation(3, 2), json!(4));
    assert_eq!(generation(-1, 2), Value::Null);
}

/// In an update without changes, `self` equals `oldSelf`, including the fields that the API server preserves, such as
/// `managedFields`.
///
/// Source: a real API server v1.36.3, `./dev custom-resources 2000 9`.
#[test]
fn unchanged_object_equals_old_self() {
    let mut of_root = definition(&json!({"type": "integer"}));
    of_root["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": "self == oldSelf"}]);
    let mut before = object(&json!(1));
    before["metadata"]["managedFields"] = json!([{
        "manager": "unknown", "operation": "Update", "apiVersion": "example.com/v1",
        "time": "2026-11-24T13:25:35Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]);
    let n_errors = |spec: i64| {
        let errors = validate(
            &of_root,
            &object(&json!(spec)),
            Some(&before),
            KubernetesVersion::DEFAULT,
        )
        .unwrap();
        errors.len()
    };
    assert_eq!(n_errors(1), 0);
    assert_eq!(n_errors(2), 1);
}

/// Objects whose validation would take the API server minutes result in an error.
#[test]
fn exceeded_work_limit_is_an_error() {
    let alternatives: Vec<Value> = (0..5_000)
        .map(|n| json!({"items": {"pattern": format!("^{n}$")}}))
        .collect();
    let schema = json!({"type": "array", "items": {"type": "string"}, "anyOf": alternatives});
    let items: Vec<Value> = (0..50_000).map(|_| json!("x")).collect();
    let began = Instant::now();
    let errors = validate(
        &definition(&schema),
        &object(&json!(items)),
        None,
        KubernetesVersion::DEFAULT,
    )
    .unwrap();
    assert!(
        errors
            .iter()
            .any(|error| error.detail.contains("too large"))
    );
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn deep_objects_and_schemas_are_errors() {
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({"a": deep});
    }
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert!(matches!(
        validate(
            &definition(&open),
            &object(&deep),
            None,
            KubernetesVersion::DEFAULT
        ),
        Err(Error::Undecodable(_))
    ));
    let mut schema = json!({"type": "object"});
    for _ in 0..300 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let error = validate(
        &definition(&schema),
        &object(&json!({})),
        None,
        KubernetesVersion::DEFAULT,
    );
    assert!(matches!(error, Err(Error::Schema(_))));
}

#[test]
fn broken_definitions_do_not_panic() {
    for odd in [
        json!(null),
        json!([]),
        json!({"spec": 1}),
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": []}}]}}),
    ] {
        assert!(validate(&odd, &object(&json!({})), None, KubernetesVersion::DEFAULT).is_err());
    }
    for keyword in [
        "type",
        "enum",
        "required",
        "properties",
        "items",
        "anyOf",
        "not",
        "pattern",
        "maximum",
        "format",
        "maxLength",
    ] {
        for odd in [
            json!(null),
            json!(1),
            json!("("),
            json!([1]),
            json!({"a": 1}),
            json!(true),
        ] {
            let schema = json!({"type": "object", keyword: odd});
            validate(
                &definition(&schema),
                &object(&json!({"a": [1, "b"]})),
                None,
                KubernetesVersion::DEFAULT,
            )
            .unwrap();
        }
    }
    let open = json!({"type": "object"});
    for odd in [json!(null), json!(1), json!([]), json!({})] {
        assert!(validate(&definition(&open), &odd, None, KubernetesVersion::DEFAULT).is_err());
    }
}
