//! Tests the controller's log and statuses during restarts of the API server and without permissions.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use e2e::allowed_failures::{AllowedFailure, outage};
use e2e::conditions::wait_for_policy;
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, PARAMS_ROLE, control_plane, grant_params, install_probes};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(90);

/// The maximum time from a restart of the API server until all watches recover. The backoff of a watch is up to 10 s.
/// It occurs twice if the API server responds before it serves the kinds of CRDs.
const RECOVERED_AFTER: Duration = Duration::from_secs(25);

async fn cluster() -> ControlPlane {
    let control_plane = control_plane().await.unwrap();
    install_probes(&control_plane.client().await.unwrap())
        .await
        .unwrap();
    control_plane
}

/// Returns the sources whose last sync is before `since`.
async fn behind(controller: &Controller, since: f64) -> Vec<String> {
    let (_, text) = controller.get("/metrics").await.unwrap();
    let samples = text
        .lines()
        .filter_map(|line| line.strip_prefix("vap_last_sync_timestamp_seconds{source=\""));
    samples
        .filter_map(|line| line.split_once("\"} "))
        .filter(|(_, time)| time.parse::<f64>().unwrap() < since)
        .map(|(source, _)| source.to_owned())
        .collect()
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_recovers_from_api_server_restart() {
    let mut control_plane = cluster().await;
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while !controller.log().unwrap().contains("reconciling") {
        let log = controller.log().unwrap();
        assert!(Instant::now() < deadline, "nothing is reconciled: {log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let n_lines = controller.log().unwrap().lines().count();

    controller.allow(outage());
    control_plane.kill_api_server();
    for _ in 0..50 {
        assert_eq!(controller.get("/readyz").await.unwrap().0, 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // A watch may restart before the API server is ready, and then receive no events for a while.
    let back = now();
    control_plane.start_api_server_again().await.unwrap();
    let started = Instant::now();
    let mut unready = Vec::new();
    let recovered = loop {
        let (status, body) = controller.get("/readyz").await.unwrap();
        if status != 200 {
            unready.push((started.elapsed(), body));
        }
        let behind = behind(&controller, back).await;
        if behind.is_empty() {
            break started.elapsed();
        }
        assert!(
            started.elapsed() < RECOVERED_AFTER,
            "not watched again: {behind:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    println!("all watches have recovered after {recovered:?}");
    assert!(unready.is_empty(), "{unready:?}");

    let log = controller.log().unwrap();
    let lines: Vec<&str> = log.lines().skip(n_lines).collect();
    assert!(
        lines.len() < 20,
        "{} lines:\n{}",
        lines.len(),
        lines.join("\n")
    );
    assert!(
        !lines.iter().any(|line| line.contains("grant")),
        "the start of the API server is reported as a missing permission:\n{}",
        lines.join("\n")
    );
    controller.finish().await.unwrap();
}

/// Creates a policy with config maps as params, and a binding that selects all of them.
async fn create_limited(client: &Client) {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let create = PostParams::default();
    let policy = json!({
        "metadata": {"name": "limited"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["deployments"]}]},
            "validations": [{"expression": "params == null || object.spec.replicas <= 5"}],
        },
    });
    api.create(&create, &serde_json::from_value(policy).unwrap())
        .await
        .unwrap();
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let binding = json!({
        "metadata": {"name": "limited"},
        "spec": {"policyName": "limited", "validationActions": ["Deny"],
                 "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}},
    });
    bindings
        .create(&create, &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn status_reports_revoked_permissions() {
    let mut control_plane = cluster().await;
    grant_params(&control_plane).unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let client = control_plane.client().await.unwrap();
    let wait_for = async |type_, wanted| {
        wait_for_policy(&client, "limited", type_, wanted, TIMEOUT)
            .await
            .unwrap()
    };
    let create = PostParams::default();
    create_limited(&client).await;
    wait_for("Bound", "True/").await;
    wait_for("ParamsResolved", "True/").await;

    let roles: Api<ClusterRole> = Api::all(client.clone());
    let of_params: Api<ClusterRoleBinding> = Api::all(client.clone());
    let whole = roles.get("vap-status-controller").await.unwrap().rules;
    let mut less = whole.clone().unwrap();
    less.retain(|rule| {
        let resources = rule.resources.as_deref().unwrap_or_default();
        !resources.contains(&"validatingadmissionpolicybindings".to_owned())
    });
    let grant = |rules| Patch::Merge(json!({"rules": rules}));
    let name = "vap-status-controller";
    let params = PatchParams::default();
    roles
        .patch(name, &params, &grant(serde_json::to_value(less).unwrap()))
        .await
        .unwrap();
    of_params
        .delete(PARAMS_ROLE, &DeleteParams::default())
        .await
        .unwrap();
    controller.allow(outage());
    controller.allow([
        AllowedFailure::error("cannot watch validatingadmissionpolicybindings").required(),
        AllowedFailure::error("listing configmaps is not allowed: grant get, list and watch")
            .required(),
        AllowedFailure::sync("bindings", "forbidden").required(),
        AllowedFailure::sync("params", "forbidden").required(),
    ]);
    // The API server authorizes a watch only at its start. A restart ends the watch.
    control_plane.kill_api_server();
    control_plane.start_api_server_again().await.unwrap();

    let unknown = wait_for("Bound", "Unknown/NotPermitted").await;
    assert!(
        unknown.contains("validatingadmissionpolicybindings")
            && unknown.contains("grant it `list` and `watch`"),
        "{unknown}"
    );
    let (status, body) = controller.get("/readyz").await.unwrap();
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("[-]bindings failed"), "{body}");
    // Another task logs this line, possibly after the status is written.
    let n_lines = || {
        let log = controller.log().unwrap();
        let of_bindings = log
            .lines()
            .filter(|line| line.contains("cannot watch validatingadmissionpolicybindings"));
        of_bindings.filter(|line| line.contains("grant")).count()
    };
    let deadline = Instant::now() + TIMEOUT;
    while n_lines() == 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = controller.log().unwrap();
    assert!((1..=2).contains(&n_lines()), "{} times:\n{log}", n_lines());

    roles
        .patch(name, &params, &grant(serde_json::to_value(whole).unwrap()))
        .await
        .unwrap();
    wait_for("Bound", "True/").await;
    let unknown = wait_for("ParamsResolved", "Unknown/NotPermitted").await;
    assert!(
        unknown.contains("grant get, list and watch on configmaps"),
        "{unknown}"
    );
    assert_eq!(controller.get("/readyz").await.unwrap().0, 200);

    of_params
        .create(
            &create,
            &serde_json::from_value(json!({
                "metadata": {"name": PARAMS_ROLE},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": PARAMS_ROLE},
                "subjects": [{"kind": "ServiceAccount", "name": "vap-status-controller",
                              "namespace": "vap-status-system"}],
            }))
            .unwrap(),
        )
        .await
        .unwrap();
    wait_for("ParamsResolved", "True/").await;
    controller.finish().await.unwrap();
}
