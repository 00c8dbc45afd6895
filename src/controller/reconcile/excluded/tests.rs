//! Tests of excluded policies.

use http::Method;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use super::*;
use crate::cluster::testing::{ReceivedRequest, Reply};
use crate::controller::FIELD_MANAGER;
use crate::controller::reconcile::reconcile;
use crate::controller::tests::{context_with, healthy, id, settings};
use crate::status::exclusion::Exclusion;
use crate::telemetry::Metrics;

/// Returns a policy with `labels`. If `owns_status`, the controller owns fields of its status.
fn labelled(labels: &Value, version: &str, owns_status: bool) -> ValidatingAdmissionPolicy {
    let managed = if owns_status {
        json!([{"manager": FIELD_MANAGER, "operation": "Apply", "subresource": "status"}])
    } else {
        json!([{"manager": FIELD_MANAGER, "operation": "Apply"},
               {"manager": "kube-controller-manager", "subresource": "status"}])
    };
    let value = json!({
        "metadata": {"name": "a", "uid": "uid", "generation": 2, "resourceVersion": version,
                     "labels": labels, "managedFields": managed},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["deployments"]}]},
            "validations": [{"expression": "true"}],
        },
    });
    serde_json::from_value(value).unwrap()
}

fn series(metrics: &Metrics) -> usize {
    let text = metrics.encode().unwrap();
    text.lines()
        .filter(|line| line.contains("policy=\"a\""))
        .count()
}

#[tokio::test]
async fn status_of_excluded_policy_is_cleared_once() {
    let answer = |request: &ReceivedRequest| {
        if request.method == Method::PATCH && request.body.get("status").is_none() {
            let policy = labelled(&json!({"vendor": "x"}), "21", false);
            return Some(Reply::json(&serde_json::to_value(policy).unwrap()));
        }
        healthy(request)
    };
    let mut settings = settings();
    settings.exclusion = Exclusion::new(&[], Some(&"vendor".parse().unwrap()));
    let (context, log) = context_with(settings, "true", answer);
    let patches = || {
        let log = log.lock().unwrap();
        let patches = log.iter().filter(|seen| seen.method == Method::PATCH);
        patches.map(|seen| seen.body.clone()).collect::<Vec<_>>()
    };
    let outcome = |done: Result<ReconcileResult, ReconcileError>| done.unwrap();
    assert_eq!(
        outcome(reconcile(&context, &id("a")).await),
        ReconcileResult::Applied
    );
    assert!(series(&context.metrics) > 0);
    assert_eq!(context.store.n_excluded(), 0);

    // With the new label, the policy is excluded, and its status is cleared by exactly one write.
    let excluded = labelled(&json!({"vendor": "x"}), "20", true);
    assert!(context.store.put(excluded, EventSource::Watched));
    assert_eq!(context.store.n_excluded(), 1);
    assert_eq!(
        outcome(reconcile(&context, &id("a")).await),
        ReconcileResult::Applied
    );
    assert_eq!(series(&context.metrics), 0);
    let expect = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a", "uid": "uid", "resourceVersion": "20"},
    });
    assert_eq!(patches().last(), Some(&expect));
    assert_eq!(patches().len(), 2);
    assert_eq!(
        outcome(reconcile(&context, &id("a")).await),
        ReconcileResult::Skipped(Skipped::Excluded)
    );
    assert_eq!(patches().len(), 2);

    // Without the label, the policy is reconciled again.
    context
        .store
        .put(labelled(&json!({}), "30", false), EventSource::Watched);
    assert_eq!(
        outcome(reconcile(&context, &id("a")).await),
        ReconcileResult::Applied
    );
    assert!(series(&context.metrics) > 0);
    assert_eq!(patches().len(), 3);
}

#[tokio::test]
async fn excluded_policy_without_owned_status_is_not_written() {
    let mut settings = settings();
    settings.exclusion = Exclusion::new(&["a*".parse().unwrap()], None);
    let (context, log) = context_with(settings, "true", healthy);
    let done = reconcile(&context, &id("a")).await.unwrap();
    assert_eq!(done, ReconcileResult::Skipped(Skipped::Excluded));
    assert_eq!(series(&context.metrics), 0);
    assert_eq!(log.lock().unwrap().len(), 0);
    assert!(context.store.param_kinds().is_empty());
}
