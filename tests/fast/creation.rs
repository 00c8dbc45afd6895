//! Tests findings of `kubectl vap check` about objects that an API server rejects on creation, and about objects that
//! it accepts but cannot evaluate.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::PathBuf;

use serde_json::{Value, json};
use vap_status_controller::cli::check::finding::{Finding, Severity};
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::rule::Rule;
use vap_status_controller::version::KubernetesVersion;

fn findings(text: &str) -> Vec<Finding> {
    findings_in(None, text)
}

fn findings_in(version: Option<KubernetesVersion>, text: &str) -> Vec<Finding> {
    let options = Options {
        paths: vec![PathBuf::from("-")],
        crds: Vec::new(),
        profile: Profile::Truthful,
        version,
        ..Options::default()
    };
    let report = check::run(&options, &mut text.as_bytes()).unwrap();
    report.findings
}

/// Returns the findings except notes. The boolean is true if the API server rejects the object.
fn reported_findings(text: &str) -> Vec<(String, bool)> {
    let findings = findings(text).into_iter();
    let findings = findings.filter(|finding| finding.severity != Severity::Note);
    let reported = findings.map(|finding| {
        (
            format!("{} {}", finding.rule.id(), finding.message),
            finding.rejected,
        )
    });
    reported.collect()
}

fn mutating(expression: &str) -> String {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    })
    .to_string()
}

#[track_caller]
fn check_panic(value: &str, type_: Option<&str>) {
    let expression =
        format!("[JSONPatch{{op: 'add', path: '/spec/containers/0/env', value: {value}}}]");
    let is_unsafe = |finding: &Finding| finding.rule == Rule::UnsafeExpression;
    let fixed = KubernetesVersion::new(36).with_patch(5);
    let in_fixed = findings_in(Some(fixed), &mutating(&expression));
    assert!(!in_fixed.iter().any(is_unsafe), "{value}");
    let panicking = KubernetesVersion::new(36).with_patch(4);
    let findings = findings_in(Some(panicking), &mutating(&expression));
    let unsafe_ = findings.iter().find(|finding| is_unsafe(finding));
    match (unsafe_, type_) {
        (None, None) => {}
        (Some(findings), Some(type_)) => {
            assert!(
                findings
                    .message
                    .starts_with(&format!("`{type_}` is nested in")),
                "{}",
                findings.message
            );
            assert!(findings.severity == Severity::Error && !findings.rejected);
        }
        (findings, _) => panic!("{value}: {findings:?}"),
    }
}

#[test]
fn patch_that_makes_api_server_panic_is_reported() {
    let env = "Object.spec.containers.env";
    check_panic(&format!("[{env}{{name: 'A', value: 'b'}}]"), Some(env));
    check_panic(&format!("{{'a': {env}{{name: 'A'}}}}"), Some(env));
    check_panic(&format!("[[{env}{{name: 'A'}}]]"), Some(env));
    check_panic(&format!("dyn([{env}{{name: 'A'}}])"), Some(env));
    check_panic(&format!("['a', 'b'].map(n, {env}{{name: n}})"), Some(env));
    check_panic(
        &format!("has(object.spec.volumes) ? [{env}{{name: 'A'}}] : []"),
        Some(env),
    );
    check_panic(&format!("{env}{{name: 'A', value: 'b'}}"), None);
    check_panic(
        "Object.spec{containers: [Object.spec.containers{name: 'A'}]}",
        None,
    );
    check_panic("[{'name': 'A', 'value': 'b'}]", None);
}

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Box", "plural": "boxes"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": schema},
            }}}],
        },
    })
}

#[track_caller]
fn check_schema(schema: &Value, expect: &[&str]) {
    check_definition(&definition(schema), expect);
}

#[track_caller]
fn check_definition(definition: &Value, expect: &[&str]) {
    let findings = reported_findings(&definition.to_string());
    let texts: Vec<&str> = findings.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, expect, "{definition}");
    assert!(findings.iter().all(|(_, is_rejected)| *is_rejected));
}

#[test]
fn rules_in_crd_are_decoded_strictly() {
    let rules = |rules: Value| json!({"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": rules});
    let at = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations";
    let wrong = |field: &str, wanted: &str, found: &str| {
        format!("invalid-object `{at}{field}` must be {wanted}, but is {found}")
    };
    check_schema(
        &rules(
            json!([{"rule": "self.a != ''", "message": "m", "reason": "FieldValueInvalid", "fieldPath": ".a"}]),
        ),
        &[],
    );
    check_schema(
        &rules(json!({"rule": "true"})),
        &[&wrong("", "a list", "an object")],
    );
    check_schema(
        &rules(json!([{"rule": "true", "message": false}])),
        &[&wrong("[0].message", "a string", "a boolean")],
    );
    check_schema(
        &rules(json!([{"rule": "true", "message": 1}])),
        &[&wrong("[0].message", "a string", "a number")],
    );
    check_schema(
        &rules(json!([{"rule": true}])),
        &[&wrong("[0].rule", "a string", "a boolean")],
    );
    check_schema(
        &rules(json!([{"rule": "true", "fieldPath": [".a"]}])),
        &[&wrong("[0].fieldPath", "a string", "a list")],
    );
    check_schema(
        &rules(json!([{"rule": "true", "optionalOldSelf": "true"}])),
        &[&wrong("[0].optionalOldSelf", "a boolean", "a string")],
    );
    check_schema(
        &rules(json!([{"rule": "true", "severity": "high"}])),
        &[&format!("unknown-field unknown field `{at}[0].severity`")],
    );
}

#[test]
fn schemas_in_crd_are_decoded_strictly() {
    let spec = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
    check_schema(
        &json!({"type": "object", "properties": [{"a": {"type": "string"}}]}),
        &[&format!(
            "invalid-object `{spec}.properties` must be an object, but is a list"
        )],
    );
    check_schema(
        &json!({"type": "string", "maxLength": "3"}),
        &[&format!(
            "invalid-object `{spec}.maxLength` must be a number, but is a string"
        )],
    );
    check_schema(
        &json!({"type": ["object", "null"]}),
        &[&format!(
            "invalid-object `{spec}.type` must be a string, but is a list"
        )],
    );
    check_schema(
        &json!({"type": "object", "additionalProperties": "yes"}),
        &[&format!(
            "invalid-object `{spec}.additionalProperties` must be a boolean, but is a string"
        )],
    );
    check_schema(
        &json!({"type": "object", "additionalProperties": true}),
        &[],
    );
    check_schema(
        &json!({"type": "array", "items": {"type": "string", "enum": ["a", 1, null]}, "maximum": 1.5}),
        &[],
    );
}

#[test]
fn keys_of_map_lists_in_crd_are_checked() {
    let items = |items: Value, rest: Value| {
        let mut schema = json!({"type": "array", "items": items});
        let fields = schema.as_object_mut().unwrap();
        fields.extend(rest.as_object().unwrap().clone());
        schema
    };
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    check_schema(
        &items(object.clone(), json!({"x-kubernetes-list-type": "set"})),
        &[
            "invalid-value x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
           x-kubernetes-list-type=set",
        ],
    );
    check_schema(
        &items(object.clone(), json!({"x-kubernetes-list-type": "map"})),
        &[
            "required x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    check_schema(
        &items(
            object.clone(),
            json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        ),
        &[
            "required default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or \
           be a required property",
        ],
    );
    check_schema(
        &items(object, json!({"x-kubernetes-list-type": "bag"})),
        &[
            "invalid-value x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"map\", \"set\"",
        ],
    );
}

#[test]
fn fields_of_crd_are_checked() {
    let with = |pointer: &str, value: Value| {
        let mut changed = definition(&json!({"type": "object"}));
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    check_definition(&with("/metadata/name", json!("boxes.example.com")), &[]);
    check_definition(
        &with("/metadata/name", json!("box.example.com")),
        &[
            "invalid-value name: Invalid value: \"box.example.com\": must be spec.names.plural+\".\"+spec.group",
        ],
    );
    check_definition(
        &with("/spec/scope", json!("namespaced")),
        &[
            "invalid-value scope: Unsupported value: \"namespaced\": supported values: \"Cluster\", \"Namespaced\"",
        ],
    );
    check_definition(
        &with("/spec/versions/0/storage", json!(false)),
        &[
            "invalid-value versions: Invalid value: must have exactly one version marked as storage version",
        ],
    );
    check_definition(
        &with("/spec/versions/0/served", json!("yes")),
        &["invalid-object `spec.versions[0].served` must be a boolean, but is a string"],
    );
    let mut more = definition(&json!({"type": "object"}));
    let spec = more.pointer_mut("/spec").unwrap().as_object_mut().unwrap();
    spec.insert("validation".to_owned(), json!({}));
    spec.insert("preserveUnknownFields".to_owned(), json!(false));
    check_definition(&more, &["unknown-field unknown field `spec.validation`"]);
}

#[test]
fn unserved_versions_are_reported() {
    let object = |kind: &str, version: &str| {
        let spec = match kind {
            "CustomResourceDefinition" => definition(&json!({"type": "object"}))["spec"].clone(),
            kind if kind.ends_with("Binding") => {
                json!({"policyName": "p", "validationActions": ["Deny"]})
            }
            _ => json!({
                "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["pods"]}]},
                "validations": [{"expression": "object.metadata.name != 'a'"}],
            }),
        };
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "boxes.example.com"}, "spec": spec})
    };
    let of = |kind: &str, version: &str| {
        let findings = findings(&object(kind, version).to_string()).into_iter();
        findings
            .filter(|finding| finding.rule == Rule::OldVersion)
            .collect::<Vec<_>>()
    };
    let group = "admissionregistration.k8s.io";
    for (kind, version, is_optional) in [
        ("ValidatingAdmissionPolicy", "v1beta1", false),
        ("ValidatingAdmissionPolicy", "v1alpha1", false),
        ("ValidatingAdmissionPolicyBinding", "v1beta1", false),
        ("ValidatingAdmissionPolicyBinding", "v1alpha1", false),
        ("MutatingAdmissionPolicy", "v1beta1", true),
        ("MutatingAdmissionPolicy", "v1alpha1", true),
        ("MutatingAdmissionPolicyBinding", "v1beta1", true),
        ("MutatingAdmissionPolicyBinding", "v1alpha1", true),
    ] {
        let findings = of(kind, &format!("{group}/{version}"));
        let reported: Vec<_> = findings
            .iter()
            .map(|it| (it.severity, it.rejected))
            .collect();
        assert_eq!(reported, [(Severity::Warning, false)], "{kind} {version}");
        let is_told = findings
            .iter()
            .all(|it| it.message.contains("only if that version is enabled"));
        assert_eq!(is_told, is_optional, "{kind} {version}: {findings:?}");
        assert!(of(kind, &format!("{group}/v1")).is_empty());
    }
    let findings = of("CustomResourceDefinition", "apiextensions.k8s.io/v1beta1");
    let reported: Vec<_> = findings
        .iter()
        .map(|it| (it.severity, it.rejected))
        .collect();
    assert_eq!(reported, [(Severity::Error, true)]);
    assert!(of("CustomResourceDefinition", "apiextensions.k8s.io/v1").is_empty());
}

/// Source: observed with an API server 1.36.3. It rejects the first schema and accepts the other three.
#[test]
fn unknown_keys_in_schemas_of_items_and_map_values_are_only_warnings() {
    let of = |schema: serde_json::Value| {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Box", "plural": "boxes"},
                     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                         "type": "object", "properties": {"items": schema}}}}]},
        });
        let findings = findings(&definition.to_string()).into_iter();
        let unknown = findings.filter(|finding| finding.rule == Rule::UnknownField);
        unknown
            .map(|finding| (finding.severity, finding.rejected))
            .collect::<Vec<_>>()
    };
    let number = json!({"type": "integer", "foo": 1});
    assert_eq!(of(number.clone()), [(Severity::Error, true)]);
    let dropped = [(Severity::Warning, false)];
    assert_eq!(of(json!({"type": "array", "items": number})), dropped);
    assert_eq!(
        of(json!({"type": "object", "additionalProperties": number})),
        dropped
    );
    let rule = json!([{"rule": "self.x > 0", "foo": 1}]);
    let object = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "x-kubernetes-validations": rule});
    assert_eq!(of(json!({"type": "array", "items": object})), dropped);
}

#[test]
fn duplicates_of_merged_yaml_keys_are_reported() {
    let policy = |spec: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             matchConstraints:\n    resourceRules:\n    - {{apiGroups: [''], apiVersions: [v1], operations: [CREATE], \
             resources: [pods]}}\n  validations:\n{spec}"
        )
    };
    let base = "  - &v\n    expression: object.metadata.name != 'a'\n    message: a\n";
    let merged = policy(&format!("{base}  - <<: *v\n    message: b\n"));
    let twice = |text: &str| {
        let findings = findings(text).into_iter();
        findings
            .filter(|finding| finding.rule == Rule::DuplicateKey)
            .collect::<Vec<_>>()
    };
    assert_eq!(twice(&merged).len(), 1);
    let doubled = twice(&policy(&format!("{base}    message: b\n")));
    assert_eq!(doubled.len(), 1);
    assert!(doubled.iter().all(|it| {
        it.rejected
            && it
                .help
                .as_deref()
                .unwrap()
                .contains("kubectl silently sends only the last")
    }));
}

/// Returns a policy with the validation `expression` as YAML.
fn validating(expression: &str) -> String {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": expression}],
        },
    })
    .to_string()
}

#[track_caller]
fn check_help(expression: &str, help: &str) {
    let findings = findings(&validating(expression)).into_iter();
    let findings: Vec<_> = findings
        .filter(|it| it.severity != Severity::Note && !it.is_hidden)
        .collect();
    let [only] = &*findings else {
        panic!("{expression}: {findings:?}")
    };
    let reported = only.help.as_deref().unwrap_or_default();
    assert!(reported.contains(help), "{expression}: {reported}");
}

#[test]
fn operators_of_other_languages_get_suggestion() {
    check_help(
        "object.metadata.name != 'a' and true",
        "write `&&` for `and`",
    );
    check_help("object.metadata.name == 'a' OR true", "write `||` for `OR`");
    check_help(
        "not has(object.metadata.labels)",
        "write `!has(object.metadata.labels)`",
    );
    check_help("object.metadata.name <> 'a'", "write `!=` for `<>`");
    check_help("5.0 % 2.0 == 1.0", "`%` accepts two values of type `int`");
    check_help(
        "object.metadata.labels.app-name == 'x'",
        "write `['app-name']`",
    );
    check_help(
        "object.metadata.__namespace__ == 'a'",
        "did you mean `namespace`?",
    );
}

#[test]
fn misspelled_kinds_and_fields_get_suggestion() {
    let kind = |kind: &str| {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "p"}});
        let actual = findings(&object.to_string());
        actual
            .iter()
            .filter_map(|finding| finding.help.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(kind("ValidatingAdmissionBinding").contains("`ValidatingAdmissionPolicyBinding`"));
    let mut policy: Value =
        serde_json::from_str(&validating("object.metadata.name != 'a'")).unwrap();
    policy
        .pointer_mut("/spec")
        .unwrap()
        .as_object_mut()
        .unwrap()
        .insert("failurePolicy".to_owned(), json!(true));
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    let actual = findings(&format!("{policy}\n---\n{binding}"));
    let helps: Vec<_> = actual.iter().filter_map(|it| it.help.as_deref()).collect();
    assert!(
        helps
            .iter()
            .any(|help| help.contains("write `Fail` or `Ignore`")),
        "{helps:?}"
    );
    // The API server rejects the policy. The binding must not have a finding about an unknown policy.
    assert!(
        actual.iter().all(|it| it.rule != Rule::UnknownPolicy),
        "{actual:?}"
    );
    let log = validating("true").replace("\"pods\"", "\"pods/log\"");
    assert!(
        findings(&log)
            .iter()
            .any(|it| it.message.contains("can only be read"))
    );
}
