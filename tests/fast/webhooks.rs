//! Tests `kubectl vap check` for webhook configurations. Their match conditions are checked like those of policies.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::path::PathBuf;

use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, Options};

/// Returns a configuration. Its second webhook has a rule for `resource`, and the match conditions `conditions`.
fn configuration(kind: &str, resource: (&str, &str), conditions: &[&str]) -> String {
    let conditions = conditions.iter().enumerate();
    let conditions: Vec<String> = conditions
        .map(|(n, expression)| format!("  - name: c{n}\n    expression: {}\n", json!(expression)))
        .collect();
    let (group, resource) = resource;
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata: {{name: hooks}}\nwebhooks:\n\
         - name: first.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  clientConfig: {{url: \
         'https://example.com'}}\n- name: second.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  \
         clientConfig: {{url: 'https://example.com'}}\n  rules:\n  - apiGroups: [{group}]\n    apiVersions: [v1]\n    \
         operations: [CREATE, DELETE]\n    resources: [{resource}]\n  matchConditions:\n{}",
        conditions.concat()
    )
}

fn report(manifest: &str) -> Value {
    let options = Options {
        paths: vec![PathBuf::from("-")],
        ..Options::default()
    };
    let report = check::run(&options, &mut manifest.as_bytes()).unwrap();
    serde_json::to_value(report).unwrap()
}

/// Returns the rule, field and marked source of each finding, except notes. The boolean is true if the API server
/// rejects the configuration.
fn findings(manifest: &str) -> Vec<(String, bool, String, String)> {
    let report = report(manifest);
    let actual = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let number =
        |finding: &Value, name: &str| usize::try_from(finding[name].as_u64().unwrap()).unwrap();
    let actual = actual.filter(|finding| finding["severity"] != "note");
    actual
        .map(|finding| {
            assert_eq!(finding["webhook"], "second.example.com", "{finding}");
            let line = manifest.lines().nth(number(finding, "line") - 1).unwrap();
            let marked = line.chars().skip(number(finding, "column") - 1);
            let marked = marked.take(number(finding, "endColumn") - number(finding, "column"));
            (
                text(finding, "rule"),
                finding["rejected"] == true,
                text(finding, "fieldRef"),
                marked.collect(),
            )
        })
        .collect()
}

#[track_caller]
fn finds(resource: (&str, &str), conditions: &[&str], wanted: &[(&str, bool, &str, &str)]) {
    for kind in [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ] {
        let findings = findings(&configuration(kind, resource, conditions));
        let wanted = wanted.iter();
        let wanted: Vec<_> = wanted
            .map(|(rule, refused, field, marked)| {
                let field = format!("webhooks[1].{field}");
                ((*rule).to_owned(), *refused, field, (*marked).to_owned())
            })
            .collect();
        assert_eq!(findings, wanted, "{kind}");
    }
}

#[test]
fn sound_webhooks_have_no_findings() {
    let sound = "request.operation == 'DELETE' || object.spec.replicas < 5";
    finds(("apps", "deployments"), &[sound], &[]);
    let manifest = configuration(
        "ValidatingWebhookConfiguration",
        ("apps", "deployments"),
        &[sound],
    );
    assert_eq!(report(&manifest)["summary"]["webhooks"], 2);
    assert_eq!(report(&manifest)["findings"], json!([]));
}

#[test]
fn rule_that_does_not_compile_is_rejected() {
    let field = "matchConditions[1].expression";
    for (expression, rule, marked) in [
        ("object.a ==", "syntax", ""),
        (
            "request.operaton == 'CREATE'",
            "undefined-field",
            "operaton",
        ),
        ("params.a == 'b'", "undeclared-reference", "params"),
        ("variables.a", "undeclared-reference", "variables"),
        ("'a'", "result-type", "'a'"),
    ] {
        let findings = findings(&configuration(
            "ValidatingWebhookConfiguration",
            ("apps", "deployments"),
            &["true", expression],
        ));
        let [(of, refused, at, text), ..] = &findings[..] else {
            panic!("{expression}: {findings:#?}")
        };
        assert_eq!(
            (of.as_str(), *refused, at.as_str()),
            (rule, true, &*format!("webhooks[1].{field}"))
        );
        assert!(text.contains(marked), "{expression}: {text}");
    }
}

/// Match conditions are checked for the kinds that the rules match. A finding about an absent field must have a
/// witness.
#[test]
fn types_and_absent_fields_are_checked() {
    let field = "matchConditions[0].expression";
    finds(
        ("apps", "deployments"),
        &["request.operation == 'DELETE' || object.spec.replica < 5"],
        &[("undefined-field", false, field, ".replica")],
    );
    finds(
        ("apps", "deployments"),
        &["object.metadata.namespace != 'kube-system'"],
        &[("absent-object", false, field, ".metadata")],
    );
    let manifest = configuration(
        "ValidatingWebhookConfiguration",
        ("apps", "deployments"),
        &["object.metadata.namespace != 'kube-system'"],
    );
    let findings = &report(&manifest)["findings"][0];
    assert_eq!(
        findings["witness"]["request"]["operation"], "DELETE",
        "{findings}"
    );
    assert_eq!(findings["consequence"]["id"], "denied");
}

#[test]
fn rules_without_match_are_reported() {
    finds(
        ("apps", "deployment"),
        &["true"],
        &[("unserved-resource", false, "rules[0]", "deployment")],
    );
    finds(
        ("admissionregistration.k8s.io", "'*'"),
        &["true"],
        &[("exempt-resource", false, "rules[0]", "'*'")],
    );
    finds(
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
        ),
        &["true"],
        &[(
            "exempt-resource",
            false,
            "rules[0]",
            "validatingwebhookconfigurations",
        )],
    );
}

/// Since 1.37, API servers never call webhooks for access reviews.
#[test]
fn webhook_rules_for_access_reviews_are_reported() {
    finds(
        ("authentication.k8s.io", "tokenreviews"),
        &["true"],
        &[("exempt-resource", false, "rules[0]", "tokenreviews")],
    );
    finds(("'*'", "'*'"), &["true"], &[]);
}

/// One webhook makes the configuration invalid. The other webhooks are still checked.
#[test]
fn mistyped_fields_are_rejected() {
    for (webhooks, rule) in [
        ("webhooks: 5", "invalid-object"),
        ("webhooks: [5]", "invalid-object"),
        (
            "webhooks: [{name: a.b.c, matchConditions: 5}]",
            "invalid-object",
        ),
        ("webhooks: [{nam: a.b.c}]", "unknown-field"),
        ("webhook: []", "unknown-field"),
        (
            "webhooks: [{name: a.b.c, timeoutSeconds: 9999999999}]",
            "invalid-object",
        ),
        (
            "webhooks: [{name: a.b.c, clientConfig: {url: 'https://a.b', caBundle: 'no base64!'}}]",
            "invalid-object",
        ),
        (
            "webhooks: [{name: a.b.c, clientConfig: {url: 'https://a.b', caBundle: [1, 256]}}]",
            "invalid-object",
        ),
        (
            "webhooks: [{name: a.b.c, rules: [{resourceNames: [a]}]}]",
            "unknown-field",
        ),
        (
            "webhooks: [{name: a.b.c, reinvocationPolicy: Never}]",
            "unknown-field",
        ),
    ] {
        let manifest = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: \
             hooks}}\n{webhooks}\n"
        );
        let report = report(&manifest);
        let findings = report["findings"].as_array().unwrap();
        let mut refused = findings
            .iter()
            .filter(|finding| finding["rejected"] == true);
        assert!(
            refused.any(|finding| finding["rule"] == rule),
            "{webhooks}: {findings:#?}"
        );
    }
    // A null field counts as absent.
    let manifest = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: \
                    hooks}\nwebhooks: null\n";
    assert_eq!(report(manifest)["findings"], json!([]));
}
