//! Tests the controller with an API server that cannot list all resources, temporarily or permanently.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::time::{Duration, Instant};

use e2e::allowed_failures::outage;
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, control_plane};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, DeleteParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

async fn create<K>(control_plane: &ControlPlane, manifest: Value)
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize,
    K: std::fmt::Debug,
{
    let api: Api<K> = Api::all(control_plane.client().await.unwrap());
    let object = serde_json::from_value(manifest).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn create_policy(control_plane: &ControlPlane, name: &str, group: &str) {
    let manifest = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "paramKind": {"apiVersion": format!("{group}/v1"), "kind": "Widget"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["widgets"]}]},
            "validations": [{"expression": "object.spec.replicas <= params.spec.replicas"}],
        },
    });
    create::<ValidatingAdmissionPolicy>(control_plane, manifest).await;
}

/// Formats the conditions as `Ready=True/Ready`, in order.
fn conditions(policy: &ValidatingAdmissionPolicy) -> Vec<String> {
    let status = policy.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default().into_iter();
    conditions
        .filter(|condition| !["ProbesPassed", "Bound"].contains(&condition.type_.as_str()))
        .map(|condition| {
            format!(
                "{}={}/{}",
                condition.type_, condition.status, condition.reason
            )
        })
        .collect()
}

/// Waits until the policy has these conditions. Returns the policy.
async fn wait_for(
    control_plane: &ControlPlane,
    name: &str,
    expect: &[&str],
) -> ValidatingAdmissionPolicy {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await.unwrap());
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let policy = api.get(name).await.unwrap();
        if conditions(&policy) == expect {
            return policy;
        }
        assert!(Instant::now() < deadline, "{name}: {:#?}", policy.status);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the messages of the conditions in `expect`, and of no others, end with `note`.
async fn wait_for_notes(control_plane: &ControlPlane, name: &str, note: &str, expect: &[&str]) {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await.unwrap());
    let deadline = Instant::now() + 2 * TIMEOUT;
    loop {
        let policy = api.get(name).await.unwrap();
        let conditions = policy.status.unwrap_or_default().conditions;
        let conditions = conditions.unwrap_or_default();
        let noted = conditions.iter().filter(|of| of.message.ends_with(note));
        let noted: Vec<&str> = noted.map(|of| of.type_.as_str()).collect();
        if noted == expect {
            return;
        }
        assert!(Instant::now() < deadline, "{name}: {conditions:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_kept_while_aggregated_api_is_down() {
    let control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let group = "down.example.com";
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 100,
                 "versionPriority": 100, "insecureSkipTLSVerify": true,
                 "service": {"name": "down", "namespace": "default"}},
    });
    create_policy(&control_plane, "on-down", group).await;
    let unserved = [
        "Ready=False/NoServedResources",
        "Compiled=True/AllExpressionsCompile",
        "ResourcesMatched=False/NoServedResources",
        "ParamsResolved=False/ParamKindNotFound",
        "TypeChecked=Unknown/NoTypesToCheck",
    ];
    wait_for(&control_plane, "on-down", &unserved).await;
    create::<APIService>(&control_plane, api_service).await;
    // The controller has not discovered the group version since its start, so the conditions of this generation are
    // retained.
    tokio::time::sleep(Duration::from_secs(3)).await;
    wait_for(&control_plane, "on-down", &unserved).await;
    // A policy without a status has no conditions to retain.
    create_policy(&control_plane, "new-on-down", group).await;
    let unknown = [
        "Ready=Unknown/Pending",
        "Compiled=True/AllExpressionsCompile",
        "ResourcesMatched=Unknown/DiscoveryIncomplete",
        "ParamsResolved=Unknown/DiscoveryIncomplete",
        "TypeChecked=Unknown/NoTypesToCheck",
    ];
    wait_for(&control_plane, "new-on-down", &unknown).await;
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    assert!(
        metrics.contains("vap_discovery_stale_groups 1\n"),
        "{metrics}"
    );
    // After one minute, a note is appended to the retained conditions.
    let note = "; may be out of date: down.example.com/v1 cannot be discovered";
    let noted = ["Ready", "ResourcesMatched", "ParamsResolved"];
    wait_for_notes(&control_plane, "on-down", note, &noted).await;
    wait_for(&control_plane, "on-down", &unserved).await;
    wait_for_notes(&control_plane, "new-on-down", note, &[]).await;
    // A restarted controller does not change the conditions.
    let api: Api<ValidatingAdmissionPolicy> = Api::all(control_plane.client().await.unwrap());
    let before = api.get("on-down").await.unwrap().metadata.resource_version;
    controller.finish().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = api.get("on-down").await.unwrap().metadata.resource_version;
    assert_eq!(after, before);
    // The notes are removed after the APIService is deleted.
    let api_services: Api<APIService> = Api::all(control_plane.client().await.unwrap());
    let name = format!("v1.{group}");
    api_services
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    wait_for_notes(&control_plane, "on-down", note, &[]).await;
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn status_for_policy_of_crd_is_not_written_during_api_server_restart() {
    let mut control_plane = control_plane().await.unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let properties = json!({"spec": {
        "type": "object", "properties": {"replicas": {"type": "integer"}}}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e2e.example.com"},
        "spec": {
            "group": "e2e.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": properties}}}],
        },
    });
    create_policy(&control_plane, "on-widgets", "e2e.example.com").await;
    create::<CustomResourceDefinition>(&control_plane, crd).await;
    let sound = [
        "Ready=True/Ready",
        "Compiled=True/AllExpressionsCompile",
        "ResourcesMatched=True/ResourcesServed",
        "ParamsResolved=True/ParamKindServed",
        "TypeChecked=True/NoWarnings",
    ];
    let before = wait_for(&control_plane, "on-widgets", &sound).await;
    controller.allow(outage());
    control_plane.kill_api_server();
    tokio::time::sleep(Duration::from_secs(2)).await;
    control_plane.start_api_server_again().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let after = wait_for(&control_plane, "on-widgets", &sound).await;
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
    // The controller is connected to the new API server only after it has refreshed discovery and is ready. A starting
    // API server rejects requests for a moment, and a watch without events takes a while to show that it works again.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let (status, text) = controller.get("/readyz?verbose").await.unwrap();
        if status == 200 {
            break;
        }
        assert!(Instant::now() < deadline, "{text}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    create_policy(&control_plane, "another", "e2e.example.com").await;
    wait_for(&control_plane, "another", &sound).await;
    controller.finish().await.unwrap();
}
