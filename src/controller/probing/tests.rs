//! When the probes of a policy are evaluated again, and what is made anew for that.

use std::sync::Arc;

use http::Method;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::origin::Origin;
use super::super::probe::Probe;
use super::super::reconcile::reconcile;
use super::super::testing::{Log, Reply, Seen};
use super::super::tests::{context, healthy, policy};
use super::super::world::tests::world;
use crate::probe::api::PolicyProbe;

const AT_MOST_FIVE: &str = "object.spec.replicas <= 5";

/// A probe with one deployment that must be denied.
fn probe(generation: i64, replicas: i64, bindings: &str) -> Probe {
    let probe: PolicyProbe = serde_json::from_value(json!({
        "apiVersion": "vap-status.dev/v1alpha1",
        "kind": "PolicyProbe",
        "metadata": {"name": "p", "generation": generation, "resourceVersion": generation.to_string()},
        "spec": {"policyName": "a", "bindings": bindings, "cases": [{
            "name": "many",
            "request": {
                "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                           "spec": {"replicas": replicas}},
                "namespaceObject": {"metadata": {"name": "default"}},
            },
            "expect": {"decision": "Deny"},
        }]},
    }))
    .unwrap();
    probe.into()
}

fn binding() -> ValidatingAdmissionPolicyBinding {
    serde_json::from_value(json!({
        "metadata": {"name": "b"},
        "spec": {"policyName": "a", "validationActions": ["Deny"]},
    }))
    .unwrap()
}

/// An API server that takes the statuses of probes too.
fn answer(request: &Seen) -> Option<Reply> {
    if request.method == Method::PATCH && request.path.contains("/policyprobes/p/status") {
        // It is late: the watch has told of this state, or of a later one.
        let mut probe = serde_json::to_value(&*probe(1, 6, "FromCluster")).unwrap();
        probe["status"] = request.body["status"].clone();
        return Some(Reply::json(&probe));
    }
    if request.method == Method::PATCH {
        let mut policy = serde_json::to_value(policy(AT_MOST_FIVE)).unwrap();
        policy["metadata"]["resourceVersion"] = json!("8");
        policy["status"] = request.body["status"].clone();
        return Some(Reply::json(&policy));
    }
    if request.path.contains("/namespaces/") {
        return Some(Reply::failure(404, "not found"));
    }
    healthy(request)
}

/// The outcomes that were written to the probe, in order.
fn outcomes(log: &Log) -> Vec<Value> {
    let log = log.lock().unwrap();
    log.iter()
        .filter(|seen| seen.method == Method::PATCH && seen.path.contains("/policyprobes/"))
        .map(|seen| seen.body["status"]["cases"][0]["outcome"].clone())
        .collect()
}

#[track_caller]
fn assert_compiled(context: &Context, n_times: usize) {
    let text = context.metrics.encode().unwrap();
    let line = format!("vap_policy_compilations_total {n_times}\n");
    assert!(text.contains(&line), "not {n_times}:\n{text}");
}

fn put(context: &Context, policy: ValidatingAdmissionPolicy) {
    assert!(context.store.put(policy, Origin::Watched));
}

#[tokio::test]
async fn a_generation_is_compiled_once_whatever_else_changes() {
    let (context, log) = context(AT_MOST_FIVE, answer);
    context
        .probes
        .put(probe(1, 6, "FromCluster"), Origin::Watched);
    reconcile(&context, "a").await.unwrap();
    // Nothing binds the policy, so that nothing is denied.
    assert_eq!(outcomes(&log), ["Failed"]);
    assert_compiled(&context, 1);
    let first = context.admissions.get(&policy(AT_MOST_FIVE)).unwrap();

    context.bindings.put(binding(), Origin::Watched);
    reconcile(&context, "a").await.unwrap();
    assert_eq!(outcomes(&log), ["Failed", "Passed"]);
    context
        .probes
        .put(probe(2, 5, "FromCluster"), Origin::Watched);
    reconcile(&context, "a").await.unwrap();
    assert_eq!(outcomes(&log), ["Failed", "Passed", "Failed"]);
    context.probes.put(probe(3, 7, "Implied"), Origin::Watched);
    reconcile(&context, "a").await.unwrap();
    assert_eq!(outcomes(&log), ["Failed", "Passed", "Failed", "Passed"]);
    assert_compiled(&context, 1);

    // Another schema: the check is made anew, and what the probes are evaluated with is not.
    context.set_world(world(
        &[("apps/v1", "deployments", "Deployment")],
        &[("apps/v1", "/openapi/v3/apis/apps/v1?hash=2")],
    ));
    reconcile(&context, "a").await.unwrap();
    assert_compiled(&context, 2);
    let now = context.admissions.get(&policy(AT_MOST_FIVE)).unwrap();
    assert!(Arc::ptr_eq(&first, &now));

    let mut changed = policy("object.spec.replicas <= 9");
    changed.metadata.generation = Some(3);
    changed.metadata.resource_version = Some("99".to_owned());
    put(&context, changed.clone());
    reconcile(&context, "a").await.unwrap();
    assert_eq!(outcomes(&log).last().unwrap(), "Failed");
    assert_compiled(&context, 3);
    assert!(context.admissions.get(&policy(AT_MOST_FIVE)).is_none());
    assert!(context.admissions.get(&changed).is_some());
}

#[tokio::test]
async fn a_first_probe_is_what_a_policy_is_made_ready_for() {
    let (context, log) = context(AT_MOST_FIVE, answer);
    reconcile(&context, "a").await.unwrap();
    assert_compiled(&context, 1);
    assert!(context.admissions.get(&policy(AT_MOST_FIVE)).is_none());

    context.probes.put(probe(1, 6, "Implied"), Origin::Watched);
    reconcile(&context, "a").await.unwrap();
    assert_eq!(outcomes(&log), ["Passed"], "{:#?}", log.lock().unwrap());
    assert_compiled(&context, 2);
    assert!(context.admissions.get(&policy(AT_MOST_FIVE)).is_some());

    context.probes.remove("p");
    reconcile(&context, "a").await.unwrap();
    assert!(context.admissions.get(&policy(AT_MOST_FIVE)).is_none());

    context.probes.put(probe(1, 6, "Implied"), Origin::Watched);
    reconcile(&context, "a").await.unwrap();
    assert!(context.admissions.get(&policy(AT_MOST_FIVE)).is_some());
    context.store.remove("a");
    reconcile(&context, "a").await.unwrap();
    assert!(context.admissions.get(&policy(AT_MOST_FIVE)).is_none());
}
