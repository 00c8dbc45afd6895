//! Tests of errors in metadata.

use serde_json::{Value as Json, json};

use crate::custom_resource::metadata::{Errors, Metadata, path_segment, subdomain};
use crate::validation_rules::path::Path;
use crate::version::{Behavior, KubernetesVersion};

const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn behavior() -> Behavior {
    KubernetesVersion::DEFAULT.behavior()
}

fn metadata(fields: &Json) -> Metadata<'_> {
    Metadata(fields.as_object())
}

/// Asserts the errors of a new namespaced object with the metadata `fields`. By default, the object has a name and a
/// namespace.
#[track_caller]
fn check_new(fields: &Json, expected: &[&str]) {
    let mut whole = json!({"name": "a", "namespace": "n"});
    for (name, value) in fields.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let mut list = Vec::new();
    let mut errors = Errors::new(behavior(), &mut list);
    errors.validate_object(metadata(&whole), true, subdomain, &Path::ROOT);
    let errors: Vec<String> = list.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{fields}");
}

#[track_caller]
fn check_update(new: &Json, old: &Json, expected: &[&str]) {
    let with_version = |fields: &Json| {
        let mut whole = json!({"resourceVersion": "1"});
        for (name, value) in fields.as_object().unwrap() {
            whole[name] = value.clone();
        }
        whole
    };
    let (new, old) = (with_version(new), with_version(old));
    let mut list = Vec::new();
    let mut errors = Errors::new(behavior(), &mut list);
    errors.validate_update(metadata(&new), metadata(&old), &Path::ROOT);
    let errors: Vec<String> = list.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{new}");
}

#[test]
fn names_of_new_object_are_validated() {
    check_new(&json!({}), &[]);
    check_new(
        &json!({"name": null}),
        &["name: Required value: name or generateName is required"],
    );
    check_new(&json!({"generateName": "a-"}), &[]);
    let wrong = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                 must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    check_new(
        &json!({"name": "a-"}),
        &[&format!("name: Invalid value: \"a-\": {wrong}")],
    );
    check_new(
        &json!({"generateName": "AB-"}),
        &[&format!("generateName: Invalid value: \"AB-\": {wrong}")],
    );
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                 start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    check_new(
        &json!({"namespace": "N"}),
        &[&format!("namespace: Invalid value: \"N\": {label}")],
    );
    check_new(&json!({"namespace": ""}), &["namespace: Required value"]);
    check_new(
        &json!({"generation": -1}),
        &["generation: Invalid value: -1: must be greater than or equal to 0"],
    );
    check_new(&json!({"generation": 0}), &[]);
}

#[test]
fn namespace_of_cluster_scoped_object_is_forbidden() {
    for (namespace, expected) in [("", 0), ("n", 1)] {
        let mut list = Vec::new();
        let whole = json!({"name": "a", "namespace": namespace});
        let mut errors = Errors::new(behavior(), &mut list);
        errors.validate_object(metadata(&whole), false, subdomain, &Path::ROOT);
        assert_eq!(list.len(), expected);
        if let Some(error) = list.first() {
            assert_eq!(
                error.to_string(),
                "namespace: Forbidden: not allowed on this type"
            );
        }
    }
}

#[test]
fn path_segment_rejects_dots_and_separators() {
    for (name, is_prefix, expected) in [
        ("a", false, &[][..]),
        ("...", false, &[]),
        (".", false, &["may not be '.'"]),
        ("..", false, &["may not be '..'"]),
        (".", true, &[]),
        ("a/b", false, &["may not contain '/'"]),
        ("a%b", true, &["may not contain '%'"]),
        ("%/", false, &["may not contain '/'", "may not contain '%'"]),
    ] {
        assert_eq!(path_segment(name, is_prefix), expected, "{name}");
    }
}

#[test]
fn labels_and_annotations_are_validated() {
    check_new(&json!({"labels": {"a/b": "c", "d": ""}}), &[]);
    check_new(
        &json!({"labels": {"-": "c"}}),
        &[&format!("labels: Invalid value: \"-\": {QUALIFIED}")],
    );
    check_new(
        &json!({"labels": {"a": "-"}}),
        &[
            "labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric \
           characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
           'my_value',  or '12345', regex used for validation is \
           '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
    );
    check_new(
        &json!({"annotations": {"A.example.com/B": "anything goes"}}),
        &[],
    );
    check_new(
        &json!({"annotations": {"-": "x"}}),
        &[&format!("annotations: Invalid value: \"-\": {QUALIFIED}")],
    );
    // Keys and values together have at most 256 KiB.
    check_new(
        &json!({"annotations": {"a": "x".repeat((256 << 10) - 1)}}),
        &[],
    );
    check_new(
        &json!({"annotations": {"a": "x".repeat((256 << 10) - 3), "bc": "y"}}),
        &["annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn owner_references_are_validated() {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1"});
    let with = |name: &str, value: Json| {
        let mut owner = owner.clone();
        owner[name] = value;
        owner
    };
    let check = |owners: Json, expected: &[&str]| {
        let expected: Vec<String> = expected
            .iter()
            .map(|text| format!("ownerReferences{text}"))
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check_new(&json!({"ownerReferences": owners}), &expected);
    };
    check(json!([owner, owner]), &[]);
    for (name, value) in [("name", ""), ("uid", ""), ("kind", "")] {
        check(
            json!([with(name, json!(value))]),
            &[&format!(".{name}: Invalid value: \"\": must not be empty")],
        );
    }
    for version in ["", "a/b/c", "apps/"] {
        check(
            json!([with("apiVersion", json!(version))]),
            &[&format!(
                ".apiVersion: Invalid value: \"{version}\": version must not be empty"
            )],
        );
    }
    let mut event = json!({"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"});
    let event_error = ": Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"1\"}: \
                       /v1, Kind=Event is disallowed from being an owner";
    check(json!([event]), &[event_error]);
    for version in ["events.k8s.io/v1", "v2"] {
        event["apiVersion"] = json!(version);
        check(json!([event]), &[]);
    }
    let controller = with("controller", json!(true));
    let mut other = with("controller", json!(true));
    other["name"] = json!("b");
    other["blockOwnerDeletion"] = json!(false);
    check(
        json!([controller, owner, with("controller", json!(false))]),
        &[],
    );
    let shown = |name: &str, flags: &str| {
        format!(
            "{{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"{name}\",\"uid\":\"1\"{flags}}}"
        )
    };
    let value = format!(
        "[{},{}]",
        shown("a", ",\"controller\":true"),
        shown("b", ",\"controller\":true,\"blockOwnerDeletion\":false")
    );
    check(
        json!([controller, other]),
        &[&format!(
            ": Invalid value: {value}: Only one reference can have Controller set to true. Found \"true\" in \
             references for ReplicaSet/a and ReplicaSet/b"
        )],
    );
}

/// Source: the differences between apimachinery 0.36 and 0.37, `pkg/api/validation/objectmeta.go`.
#[test]
fn empty_metadata_field_has_required_value_error_since_1_37() {
    let owner = |name: &str, value: &str| {
        let mut owner =
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "1"});
        owner[name] = json!(value);
        json!({"ownerReferences": [owner]})
    };
    let managed = |operation: &str| json!({"managedFields": [{"operation": operation}]});
    let event = json!({"ownerReferences": [
        {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"}]});
    for (fields, before, since) in [
        (
            owner("name", ""),
            "ownerReferences.name: Invalid value: \"\": must not be empty",
            "ownerReferences[0].name: Required value: must not be empty",
        ),
        (
            owner("apiVersion", ""),
            "ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
            "ownerReferences[0].apiVersion: Required value: must not be empty",
        ),
        (
            owner("apiVersion", "a/b/c"),
            "ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
            "ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>",
        ),
        (
            event,
            "ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"1\"}: \
             /v1, Kind=Event is disallowed from being an owner",
            "ownerReferences[0]: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"e\",\"uid\":\"1\"}: \
             /v1, Kind=Event is disallowed from being an owner",
        ),
        (
            managed(""),
            "managedFields[0].operation: Invalid value: \"\": must be `Apply` or `Update`",
            "managedFields[0].operation: Required value: must not be empty",
        ),
        (
            managed("Patch"),
            "managedFields[0].operation: Invalid value: \"Patch\": must be `Apply` or `Update`",
            "managedFields[0].operation: Unsupported value: \"Patch\": supported values: \"Apply\", \"Update\"",
        ),
    ] {
        for (minor, expected) in [(36, before), (37, since)] {
            let behavior = KubernetesVersion::new(minor).behavior();
            let mut whole = fields.clone();
            whole["name"] = json!("a");
            let mut list = Vec::new();
            let mut errors = Errors::new(behavior, &mut list);
            errors.validate_object(metadata(&whole), false, subdomain, &Path::ROOT);
            let errors: Vec<String> = list.iter().map(ToString::to_string).collect();
            assert_eq!(errors, [expected], "1.{minor}: {fields}");
        }
    }
}

/// Source: the differences between apimachinery 0.31, 0.32, 0.33 and 0.34, `pkg/api/validation/objectmeta.go`,
/// `pkg/util/validation/field/errors.go`.
#[test]
fn metadata_messages_depend_on_version() {
    let owner = json!({"name": "a", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "", "uid": "1"}]});
    let long = json!({"name": "a", "annotations": {"a": "a".repeat(262_144)}});
    let old_name = "ownerReferences.name: Invalid value: \"\": name must not be empty";
    let name = "ownerReferences.name: Invalid value: \"\": must not be empty";
    let old_limit = "annotations: Too long: must have at most 262144 bytes";
    let limit = "annotations: Too long: may not be more than 262144 bytes";
    for (minor, fields, expected) in [
        (33, &owner, old_name),
        (34, &owner, name),
        (31, &long, old_limit),
        (32, &long, limit),
        (36, &long, limit),
    ] {
        let mut list = Vec::new();
        let mut errors = Errors::new(KubernetesVersion::new(minor).behavior(), &mut list);
        errors.validate_object(metadata(fields), false, subdomain, &Path::ROOT);
        let errors: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [expected], "1.{minor}");
    }
}

/// Source: the differences between apimachinery 0.36 and 0.37, `pkg/api/validation/objectmeta.go`.
#[test]
fn negative_generation_in_update_is_an_error_since_1_37() {
    let fields = json!({"resourceVersion": "1", "generation": -1});
    for (minor, expected) in [
        (36, &[][..]),
        (
            37,
            &["generation: Invalid value: -1: must be greater than or equal to 0"],
        ),
    ] {
        let mut list = Vec::new();
        let mut errors = Errors::new(KubernetesVersion::new(minor).behavior(), &mut list);
        errors.validate_update(metadata(&fields), metadata(&fields), &Path::ROOT);
        let errors: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "1.{minor}");
    }
}

#[test]
fn finalizers_are_validated() {
    check_new(&json!({"finalizers": ["example.com/a", "orphan"]}), &[]);
    check_new(&json!({"finalizers": ["foregroundDeletion"]}), &[]);
    check_new(
        &json!({"finalizers": ["a", "-"]}),
        &[&format!("finalizers: Invalid value: \"-\": {QUALIFIED}")],
    );
    check_new(
        &json!({"finalizers": ["orphan", "foregroundDeletion"]}),
        &[
            "finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
           foregroundDeletion cannot be both set",
        ],
    );
}

#[test]
fn managed_fields_are_validated() {
    let check = |entry: Json, expected: &[&str]| {
        let mut whole = json!({"operation": "Update"});
        for (name, value) in entry.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let expected: Vec<String> = expected
            .iter()
            .map(|text| format!("managedFields[0].{text}"))
            .collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let fields = json!({"managedFields": [whole]});
        check_new(&fields, &expected);
        assert_eq!(
            metadata(&fields).valid_managed_fields(behavior()).is_some(),
            expected.is_empty()
        );
    };
    check(json!({}), &[]);
    check(
        json!({"operation": "Apply", "fieldsType": "FieldsV1", "manager": "kubectl é"}),
        &[],
    );
    check(
        json!({"operation": "Patch"}),
        &["operation: Invalid value: \"Patch\": must be `Apply` or `Update`"],
    );
    check(
        json!({"fieldsType": "FieldsV2"}),
        &["fieldsType: Invalid value: \"FieldsV2\": must be `FieldsV1`"],
    );
    check(json!({"manager": "m".repeat(128)}), &[]);
    check(
        json!({"manager": "m".repeat(129)}),
        &["manager: Too long: may not be more than 128 bytes"],
    );
    check(
        json!({"manager": "ab\nc"}),
        &["manager: Invalid value: \"ab\\nc\": invalid character U+000A (at position 2)"],
    );
    check(json!({"subresource": "s".repeat(256)}), &[]);
    check(
        json!({"subresource": "s".repeat(257)}),
        &["subresource: Too long: may not be more than 256 bytes"],
    );
}

#[test]
fn update_must_not_change_identity() {
    let old = json!({
        "name": "a", "namespace": "n", "uid": "1", "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5, "generation": 3,
    });
    check_update(&old, &old, &[]);
    let with = |name: &str, value: Json| {
        let mut new = old.clone();
        new[name] = value;
        new
    };
    for (name, value, shown) in [
        ("name", json!("b"), "\"b\""),
        ("namespace", json!("m"), "\"m\""),
        ("uid", json!("2"), "\"2\""),
        ("uid", json!(null), "\"\""),
        ("name", json!(null), "\"\""),
        (
            "creationTimestamp",
            json!("2002-01-01T00:00:00Z"),
            "\"2002-01-01T00:00:00Z\"",
        ),
        ("creationTimestamp", json!(null), "null"),
        (
            "deletionTimestamp",
            json!("2002-01-01T00:00:00Z"),
            "\"2002-01-01T00:00:00Z\"",
        ),
        ("deletionGracePeriodSeconds", json!(6), "6"),
    ] {
        let expected = format!("{name}: Invalid value: {shown}: field is immutable");
        check_update(&with(name, value), &old, &[&expected]);
    }
    check_update(&json!({"name": ""}), &json!({}), &[]);
    check_update(
        &with("generation", json!(2)),
        &old,
        &["generation: Invalid value: 2: must not be decremented"],
    );
    check_update(&with("generation", json!(4)), &old, &[]);
    check_update(
        &with("resourceVersion", json!("")),
        &old,
        &["resourceVersion: Invalid value: \"\": must be specified for an update"],
    );
    check_update(
        &with("labels", json!({"-": "c"})),
        &old,
        &[&format!("labels: Invalid value: \"-\": {QUALIFIED}")],
    );
    check_update(
        &with("managedFields", json!([{"operation": "x"}])),
        &old,
        &["managedFields[0].operation: Invalid value: \"x\": must be `Apply` or `Update`"],
    );
}

#[test]
fn update_of_deleted_object_must_not_add_finalizers() {
    let deleted = |finalizers: Json| json!({"deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": finalizers});
    check_update(&deleted(json!(["a"])), &deleted(json!(["b", "a"])), &[]);
    check_update(&json!({"finalizers": ["b"]}), &json!({}), &[]);
    check_update(
        &deleted(json!(["c", "a", "b"])),
        &deleted(json!(["a"])),
        &[
            "finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
           finalizers []string{\"b\", \"c\"}",
        ],
    );
}
