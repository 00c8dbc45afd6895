//! Tests the check and the evaluation of texts in memory, which the playground uses.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::{Value, json};
use vap_status_controller::cli::in_memory::{self, RequestTexts, Text};

fn texts() -> [Text; 1] {
    [Text {
        name: "policies.yaml".to_owned(),
        text: include_str!("../../docs/examples/replica-limit.yaml").to_owned(),
    }]
}

/// Evaluates the example for the request. Asserts the decision, and that the report contains the
/// request `expected`. If `decision` is `error`, `expected` is the error message.
#[track_caller]
fn check(request: Value, decision: &str, expected: &Value) {
    let request: RequestTexts = serde_json::from_value(request).unwrap();
    let report = in_memory::eval(&texts(), &request, None);
    let report = report.map(|report| serde_json::to_value(report).unwrap());
    let request = |report: &Value| {
        let of_request = |field: &str| report.pointer(&format!("/request/{field}")).cloned();
        json!([
            of_request("operation"),
            of_request("namespace"),
            of_request("user")
        ])
    };
    match report {
        Ok(report) => {
            assert_eq!(report.pointer("/decision").unwrap(), decision);
            assert_eq!(&request(&report), expected);
        }
        Err(error) => assert_eq!((&json!(error), "error"), (expected, decision)),
    }
}

#[test]
fn request_is_built_from_texts_of_its_parts() {
    let object = include_str!("../../docs/examples/web.yaml");
    check(
        json!({"object": object}),
        "Deny",
        &json!(["CREATE", "shop", "system:anonymous"]),
    );
    check(
        json!({"object": object, "oldObject": object, "user": "ann", "groups": ["operators"]}),
        "Allow",
        &json!(["UPDATE", "shop", "ann"]),
    );
    check(
        json!({"request": json!({"userInfo": {"username": "bob"}, "object": {}}).to_string(), "object": object,
            "operation": "UPDATE", "namespace": "shop", "groups": ["operators"]}),
        "Allow",
        &json!(["UPDATE", "shop", "bob"]),
    );
}

#[test]
fn invalid_request_is_an_error() {
    check(
        json!({"object": " \n"}),
        "error",
        &json!("no request: enter an object or an old object"),
    );
    check(
        json!({"object": "a"}),
        "error",
        &json!("the object: does not contain an object"),
    );
    check(
        json!({"request": "kind: Pod"}),
        "error",
        &json!(
            "the request: is not an AdmissionReview, and `kind` is not a field of a request; to evaluate an object, use --object"
        ),
    );
}

#[test]
fn texts_are_checked_like_files() {
    let report = in_memory::check(&texts(), None).unwrap();
    let summary = (report.summary.files, report.summary.policies);
    assert_eq!(summary, (1, 1));
    let files = report.findings.iter().map(|it| it.location.file.as_str());
    assert!(!report.findings.is_empty());
    assert!(files.into_iter().all(|file| file == "policies.yaml"));
}

#[test]
fn probes_are_counted_but_not_validated() {
    let probe = "apiVersion: vap-status.dev/v1alpha1\nkind: PolicyProbe\nmetadata: {name: a}\nspec:\n  policyName: unknown\n  \
                 cases: []\n";
    let text = Text {
        name: "probe.yaml".to_owned(),
        text: probe.to_owned(),
    };
    let report = in_memory::check(&[text], None).unwrap();
    assert_eq!(report.summary.probes, 1);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
