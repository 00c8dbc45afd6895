//! Tests that `check` does not silently skip policies, kinds or objects.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::manifest;
use crate::runtime_errors::policy;

/// Returns the rule and the message of each finding about `manifest`.
fn findings(manifest: &str) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let findings = manifest::findings(manifest, &[]);
    let findings = findings.iter();
    findings
        .map(|finding| (text(finding, "rule"), text(finding, "message")))
        .collect()
}

/// Returns the findings about `manifest` with one of `rules`.
fn findings_of(manifest: &str, rules: &[&str]) -> Vec<(String, String)> {
    let mut findings = findings(manifest);
    findings.retain(|(rule, _)| rules.contains(&&**rule));
    findings
}

fn validation(expression: &str) -> String {
    format!("  validations:\n  - expression: {}\n", json!(expression))
}

#[test]
fn failures_of_all_named_kinds_are_found() {
    let kinds = "deployments', 'replicasets', 'daemonsets', 'statefulsets";
    let rule =
        "    - {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}\n";
    let expression =
        "object.kind != 'Job' || object.spec.template.spec.volumes.all(v, !has(v.hostPath))";
    let spec = format!("{rule}{}", validation(expression));
    let found = findings_of(
        &policy(("apps", "v1", kinds), "CREATE", &spec),
        &["absent-field"],
    );
    let [(_, message)] = &found[..] else {
        panic!("{found:#?}")
    };
    assert!(message.contains("CREATE of a Job without"), "{message}");
}

#[test]
fn kinds_beyond_limit_are_reported() {
    let resources = [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
        "bindings",
    ];
    let spec = validation("object.metadata.name != 'a'");
    let rule = "    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}\n";
    let checked = policy(("", "v1", &resources.join("', '")), "CREATE", &spec);
    assert_eq!(findings_of(&checked, &["not-checked"]), []);
    let spec = format!("{rule}{spec}");
    let found = findings_of(
        &policy(("", "v1", &resources.join("', '")), "CREATE", &spec),
        &["not-checked"],
    );
    let [(_, message)] = &found[..] else {
        panic!("{found:#?}")
    };
    assert_eq!(
        message,
        "failing expressions were searched for 16 of the 17 kinds that the rules match by name"
    );
}

#[test]
fn namespaces_satisfy_namespace_selector_by_their_own_labels() {
    let rules = ["absent-object", "absent-key", "absent-field", "not-checked"];
    let spec = |selector: &str| {
        let first = validation("namespaceObject.metadata.name == 'y'");
        format!("    {selector}\n{first}  - expression: \"object.metadata.labels['x'] == 'y'\"\n")
    };
    for selector in [
        "namespaceSelector: {matchLabels: {env: prod}}",
        "namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod]}]}",
        "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: prod}}",
        "objectSelector: {matchLabels: {env: prod}}",
        "matchPolicy: Equivalent",
    ] {
        let manifest = policy(("", "v1", "namespaces"), "CREATE, UPDATE", &spec(selector));
        let found = findings_of(&manifest, &rules);
        let rules: Vec<&str> = found.iter().map(|(rule, _)| &**rule).collect();
        assert_eq!(
            rules,
            ["absent-object", "absent-key"],
            "{selector}: {found:#?}"
        );
    }
}

#[test]
fn policy_without_generated_request_is_reported() {
    let selector = "    objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}\n";
    let spec = format!(
        "{selector}{}",
        validation("object.metadata.labels['x'] == 'y'")
    );
    let found = findings_of(
        &policy(("", "v1", "pods"), "CREATE", &spec),
        &["not-checked"],
    );
    let [(_, message)] = &found[..] else {
        panic!("{found:#?}")
    };
    assert!(message.starts_with("no valid request"), "{message}");
}

#[test]
fn resource_of_crd_with_other_version_or_group_is_unserved() {
    let crd = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boxes.example.com}\n\
               spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: boxes, singular: box, kind: Box, listKind: BoxList}\n  \
               versions:\n  - name: v1alpha1\n    served: true\n    storage: true\n    subresources: {status: {}}\n    schema:\n      \
               openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}\n";
    let spec = validation("!has(object.spec) || !has(object.spec.sise)");
    let of = |resource: (&str, &str, &str)| {
        let findings =
            manifest::findings(&format!("{}{crd}", policy(resource, "UPDATE", &spec)), &[]);
        let text =
            |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        let shown = findings.iter().filter(|it| {
            ["unserved-resource", "unknown-resource", "undefined-field"]
                .contains(&it["rule"].as_str().unwrap())
        });
        let lines = shown.map(|it| {
            format!(
                "{} {}: {}",
                text(it, "severity"),
                text(it, "rule"),
                text(it, "help")
            )
        });
        lines.collect::<Vec<_>>()
    };
    for (resource, suggested) in [
        (("example.com", "v1", "boxes"), "example.com/v1alpha1 boxes"),
        (
            ("examples.com", "v1alpha1", "boxes"),
            "example.com/v1alpha1 boxes",
        ),
        (("example.com", "v1alpha1", "box"), "boxes"),
    ] {
        let found = of(resource);
        let [first, second] = &found[..] else {
            panic!("{resource:?}: {found:#?}")
        };
        let expected = format!("error unserved-resource: did you mean `{suggested}`?");
        assert!(first.starts_with(&expected), "{first}");
        assert!(first.contains("continuing as if"), "{first}");
        assert!(second.starts_with("warning undefined-field"), "{second}");
    }
    let found = of(("other.example.com", "v1", "crates"));
    assert!(found[0].starts_with("note unknown-resource"), "{found:#?}");
}
