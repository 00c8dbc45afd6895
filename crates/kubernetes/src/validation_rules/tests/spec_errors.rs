//! Tests of errors in the parts of a CRD outside of its schemas.

use serde_json::{Value as Json, json};

use crate::validation_rules::{PathStep, definition_errors};

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn definition() -> Json {
    json!({
        "metadata": {"name": "disks.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "disks", "singular": "disk", "kind": "Disk", "listKind": "DiskList"},
            "versions": [
                {"name": "v1", "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        },
    })
}

/// Changes a valid CRD at the given JSON pointers and asserts the errors. Null removes a field.
#[track_caller]
fn check(changes: &[(&str, Json)], expected: &[String]) {
    let mut definition = definition();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = definition.pointer_mut(parent).unwrap();
        let parent = parent.as_object_mut().unwrap();
        if value.is_null() {
            parent.remove(name);
        } else {
            parent.insert(name.to_owned(), value.clone());
        }
    }
    let errors = definition_errors(&definition);
    let errors: Vec<String> = errors.iter().map(|error| error.error.to_string()).collect();
    assert_eq!(errors, expected, "{changes:?}");
}

#[test]
fn valid_definition_has_no_errors() {
    check(&[], &[]);
    check(&[("/spec", json!(null))], &[]);
    check(&[("/spec/scope", json!("Cluster"))], &[]);
    check(&[("/metadata", json!({"generateName": "disks-"}))], &[]);
    check(&[("/spec/preserveUnknownFields", json!(false))], &[]);
    check(&[("/spec/names/shortNames", json!(["d", "dk"]))], &[]);
    check(&[("/spec/names/categories", json!(["all"]))], &[]);
    check(&[("/spec/names/singular", json!(null))], &[]);
    check(&[("/spec/names/listKind", json!(null))], &[]);
}

#[test]
fn invalid_metadata_or_group_has_errors() {
    let name = "metadata.name: Invalid value: \"disks.example.com\": must be spec.names.plural+\".\"+spec.group";
    check(
        &[("/metadata", json!({}))],
        &["metadata.name: Required value: name or generateName is required".into()],
    );
    check(
        &[("/metadata/name", json!("disk.example.com"))],
        &[name.replace("disks", "disk")],
    );
    check(
        &[("/metadata", json!({"name": "x", "generateName": "y"}))],
        &[name.replace("disks.example.com", "x")],
    );
    check(
        &[("/spec/group", json!("local"))],
        &[
            name.to_owned(),
            "spec.group: Invalid value: \"local\": should be a domain with at least one dot".into(),
        ],
    );
    check(
        &[("/spec/group", json!("Example.com"))],
        &[
            name.to_owned(),
            format!("spec.group: Invalid value: \"Example.com\": {SUBDOMAIN}"),
        ],
    );
    check(
        &[("/spec/group", json!(null))],
        &[name.to_owned(), "spec.group: Required value".into()],
    );
}

#[test]
fn protected_group_requires_approval() {
    let error = "metadata.annotations: Required value: protected groups must have approval annotation \
                 \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    for (group, is_protected) in [
        ("k8s.io", true),
        ("kubernetes.io", true),
        ("storage.k8s.io", true),
        ("apps.kubernetes.io", true),
        ("x-k8s.io", false),
        ("mykubernetes.io", false),
        ("k8s.io.example.com", false),
    ] {
        let name = json!(format!("disks.{group}"));
        let changes = [("/spec/group", json!(group)), ("/metadata/name", name)];
        let expected: &[String] = if is_protected {
            &[error.to_owned()]
        } else {
            &[]
        };
        check(&changes, expected);
        let approved = json!({"api-approved.kubernetes.io": "https://example.com"});
        let [group, name] = changes;
        check(&[group, name, ("/metadata/annotations", approved)], &[]);
    }
    let changes = [
        ("/spec/group", json!("k8s.io")),
        ("/metadata/name", json!("disks.k8s.io")),
        ("/metadata/annotations", json!({"note": "x"})),
    ];
    check(&changes, &[error.to_owned()]);
}

#[test]
fn invalid_scope_or_names_have_errors() {
    check(
        &[("/spec/scope", json!(null))],
        &["spec.scope: Required value".into()],
    );
    check(
        &[("/spec/scope", json!("cluster"))],
        &[
            "spec.scope: Unsupported value: \"cluster\": supported values: \"Cluster\", \"Namespaced\""
                .into(),
        ],
    );
    check(
        &[
            ("/spec/names/plural", json!(null)),
            ("/metadata/name", json!(".example.com")),
        ],
        &["spec.names.plural: Required value".into()],
    );
    check(
        &[("/spec/names/kind", json!(null))],
        &["spec.names.kind: Required value".into()],
    );
    check(
        &[
            ("/spec/names/plural", json!("Disks")),
            ("/metadata/name", json!("Disks.example.com")),
        ],
        &[format!(
            "spec.names.plural: Invalid value: \"Disks\": {LABEL}"
        )],
    );
    check(
        &[("/spec/names/singular", json!("Disk"))],
        &[format!(
            "spec.names.singular: Invalid value: \"Disk\": {LABEL}"
        )],
    );
    let mixed = "may have mixed case, but should otherwise match: ";
    check(
        &[("/spec/names/kind", json!("9Disk"))],
        &[format!(
            "spec.names.kind: Invalid value: \"9Disk\": {mixed}{LABEL}"
        )],
    );
    check(
        &[("/spec/names/listKind", json!("Disk_List"))],
        &[format!(
            "spec.names.listKind: Invalid value: \"Disk_List\": {mixed}{LABEL}"
        )],
    );
    check(
        &[("/spec/names/listKind", json!("Disk"))],
        &[
            "spec.names.listKind: Invalid value: \"Disk\": kind and listKind may not be the same"
                .into(),
        ],
    );
    check(
        &[("/spec/names/shortNames", json!(["d", "D"]))],
        &[format!(
            "spec.names.shortNames[1]: Invalid value: \"D\": {LABEL}"
        )],
    );
    check(
        &[("/spec/names/categories", json!(["-", "all"]))],
        &[format!(
            "spec.names.categories[0]: Invalid value: \"-\": {LABEL}"
        )],
    );
    let no_names = [
        "metadata.name: Invalid value: \"disks.example.com\": must be spec.names.plural+\".\"+spec.group",
        "spec.names.plural: Required value",
        "spec.names.kind: Required value",
    ];
    check(
        &[("/spec/names", json!(null))],
        &no_names.map(str::to_owned),
    );
}

#[test]
fn too_long_label_has_error() {
    let check_length = |n: usize, expected: &[String]| {
        let plural = "a".repeat(n);
        let name = json!(format!("{plural}.example.com"));
        let changes = [
            ("/spec/names/plural", json!(plural)),
            ("/metadata/name", name),
        ];
        check(&changes, expected);
    };
    check_length(63, &[]);
    let long = "a".repeat(64);
    check_length(
        64,
        &[format!(
            "spec.names.plural: Invalid value: \"{long}\": must be no more than 63 characters"
        )],
    );
}

#[test]
fn invalid_versions_have_errors() {
    let version = |name: &str, is_stored: bool| json!({"name": name, "storage": is_stored, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let stored =
        "spec.versions: Invalid value: must have exactly one version marked as storage version";
    let repeated = "spec.versions: Invalid value: must contain unique version names";
    let versions = "/spec/versions";
    check(
        &[(versions, json!([version("v1", true), version("v2", false)]))],
        &[],
    );
    check(&[(versions, json!(null))], &[stored.into()]);
    check(
        &[(versions, json!([version("v1", false)]))],
        &[stored.into()],
    );
    check(
        &[(versions, json!([version("v1", true), version("v2", true)]))],
        &[stored.into()],
    );
    check(
        &[(
            versions,
            json!([
                version("v1", true),
                version("v2", false),
                version("v1", false)
            ]),
        )],
        &[repeated.into()],
    );
    check(
        &[(versions, json!([version("v1", true), version("V2", false)]))],
        &[format!(
            "spec.versions[1].name: Invalid value: \"V2\": {LABEL}"
        )],
    );
    let schema = "spec.versions[0].schema.openAPIV3Schema: Required value";
    check(
        &[(versions, json!([{"name": "v1", "storage": true}]))],
        &[schema.into()],
    );
    check(
        &[(
            versions,
            json!([{"name": "v1", "storage": true, "schema": {"openAPIV3Schema": null}}]),
        )],
        &[schema.into()],
    );
}

#[test]
fn invalid_columns_have_errors() {
    let check_column = |column: Json, expected: &[&str]| {
        let valid =
            json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
        let versions = json!([{
            "name": "v1", "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            "additionalPrinterColumns": [valid, column],
        }]);
        let of_column =
            |text: &&str| format!("spec.versions[0].additionalPrinterColumns[1].{text}");
        let expected: Vec<String> = expected.iter().map(of_column).collect();
        check(&[("/spec/versions", versions)], &expected);
    };
    let types = "must be one of boolean,date,integer,number,string";
    check_column(
        json!({"name": "a", "type": "string", "jsonPath": ".a"}),
        &[],
    );
    check_column(
        json!({"name": "a", "type": "integer", "format": "int32", "jsonPath": ".a"}),
        &[],
    );
    check_column(
        json!({}),
        &[
            "name: Required value",
            "jsonPath: Required value",
            &format!("type: Required value: {types}"),
        ],
    );
    check_column(
        json!({"name": "a", "type": "int", "jsonPath": ".a"}),
        &[&format!("type: Invalid value: \"int\": {types}")],
    );
    check_column(
        json!({"name": "a", "type": "string", "format": "uuid", "jsonPath": ".a"}),
        &["format: Invalid value: \"uuid\": must be one of \
           byte,date,date-time,double,float,int32,int64,password"],
    );
}

#[test]
fn invalid_conversion_has_errors() {
    let check_conversion = |conversion: Json, expected: &[&str]| {
        let of_conversion = |text: &&str| format!("spec.conversion.{text}");
        let expected: Vec<String> = expected.iter().map(of_conversion).collect();
        check(&[("/spec/conversion", conversion)], &expected);
    };
    check_conversion(json!({"strategy": "None"}), &[]);
    check_conversion(
        json!({"strategy": "None", "webhook": {"clientConfig": null}}),
        &[],
    );
    let versions = json!(["v1"]);
    for client in [
        json!({"url": "https://a"}),
        json!({"service": {}}),
        json!({"url": "https://a", "service": null}),
    ] {
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": versions});
        check_conversion(json!({"strategy": "Webhook", "webhook": webhook}), &[]);
    }
    check_conversion(
        json!({"strategy": "none"}),
        &["strategy: Unsupported value: \"none\": supported values: \"None\", \"Webhook\""],
    );
    check_conversion(json!({}), &["strategy: Required value"]);
    check_conversion(
        json!({"strategy": "None", "webhook": {"clientConfig": {}}}),
        &["webhook.clientConfig: Forbidden: should not be set when strategy is not set to Webhook"],
    );
    check_conversion(
        json!({"strategy": "Webhook"}),
        &[
            "webhook.clientConfig: Required value: required when strategy is set to Webhook",
            "webhook.conversionReviewVersions: Required value",
        ],
    );
    for client in [json!({}), json!({"url": "https://a", "service": {}})] {
        let webhook =
            json!({"clientConfig": client, "conversionReviewVersions": ["v2", "v1beta1"]});
        check_conversion(
            json!({"strategy": "Webhook", "webhook": webhook}),
            &["webhook.clientConfig: Required value: exactly one of url or service is required"],
        );
    }
    check_conversion(
        json!({"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v2", "v3"],
        }}),
        &[
            "webhook.conversionReviewVersions: Invalid value: [\"v2\",\"v3\"]: \
           must include at least one of v1, v1beta1",
        ],
    );
}

#[test]
fn definition_that_preserves_unknown_fields_has_error() {
    check(
        &[("/spec/preserveUnknownFields", json!(true))],
        &[
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                .into(),
        ],
    );
}

#[test]
fn definition_error_path_contains_indices() {
    let mut definition = definition();
    definition["spec"]["names"]["shortNames"] = json!(["d", "D"]);
    let errors = definition_errors(&definition);
    let field = |name: &str| PathStep::Field(name.to_owned());
    let expected = [
        field("spec"),
        field("names"),
        field("shortNames"),
        PathStep::Index(1),
    ];
    assert_eq!(errors[0].place, expected);
}
