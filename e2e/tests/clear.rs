//! Tests what the controller writes and removes on a real API server: the condition `Stalled`, the statuses of excluded
//! policies, and the effect of `clear`. Also tests that API servers never evaluate policies for exempt resources.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use e2e::ControlPlane;
use e2e::control_plane::User;
use e2e::controller::{
    Controller, SERVICE_ACCOUNT, binary, control_plane, grant_permissions, install_probes,
    service_account,
};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

fn policies(client: &Client) -> Api<ValidatingAdmissionPolicy> {
    Api::all(client.clone())
}

/// Creates a policy that evaluates `expression` on CREATE of a resource.
async fn create(client: &Client, name: &str, resource: (&str, &str), expression: &str) {
    let (group, resource) = resource;
    let policy = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": [resource],
            }]},
            "validations": [{"expression": expression}],
        },
    }));
    let params = PostParams::default();
    policies(client)
        .create(&params, &policy.unwrap())
        .await
        .unwrap();
}

const DEPLOYMENTS: (&str, &str) = ("apps", "deployments");

/// Formats the conditions of a policy as `Ready=True/Ready`.
fn conditions(policy: &ValidatingAdmissionPolicy) -> Vec<String> {
    let status = policy.status.iter();
    let conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions
        .map(|it| format!("{}={}/{}", it.type_, it.status, it.reason))
        .collect()
}

/// Waits until a policy has the condition `has` and does not have the condition `lacks`. Returns all conditions.
async fn wait_for(client: &Client, name: &str, has: &str, lacks: &str) -> Vec<String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let observed = conditions(&policies(client).get(name).await.unwrap());
        let is = |wanted: &str| observed.iter().any(|observed| observed.starts_with(wanted));
        if is(has) && !is(lacks) {
            return observed;
        }
        assert!(Instant::now() < deadline, "{name}: {observed:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs `clear` as a user. Returns its output, and its standard output as text.
fn clear(control_plane: &ControlPlane, user: &str, options: &[&str]) -> (Output, String) {
    let output = Command::new(binary("vap-status-controller").unwrap())
        .arg("clear")
        .args(options)
        .env("KUBECONFIG", control_plane.kubeconfig_for(user).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

/// Applies a status as the field manager `manager`.
async fn apply_as(client: &Client, name: &str, manager: &str, status: Value) {
    let applied = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "status": status,
    });
    let params = PatchParams::apply(manager).force();
    policies(client)
        .patch_status(name, &params, &Patch::Apply(&applied))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clear_command_removes_only_own_conditions() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    create(&client, "sound", DEPLOYMENTS, "object.spec.replicas <= 5").await;
    create(&client, "warned", DEPLOYMENTS, "object.spec.replicsa <= 5").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "vap-status.dev",
        "v1alpha1",
        "PolicyProbe",
    ));
    let probes: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let probe = json!({
        "apiVersion": "vap-status.dev/v1alpha1",
        "kind": "PolicyProbe",
        "metadata": {"name": "probe"},
        "spec": {"policyName": "sound", "samples": "Partial", "bindings": "Implied", "cases": [{
            "name": "few are allowed",
            "request": {"object": {
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "namespace": "default"}, "spec": {"replicas": 1}}},
            "expect": {"decision": "Allow"},
        }]},
    });
    let probe = serde_json::from_value(probe).unwrap();
    probes.create(&PostParams::default(), &probe).await.unwrap();

    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    wait_for(&client, "sound", "ProbesPassed=True", "Stalled").await;
    let observed = wait_for(&client, "warned", "Stalled=True/ExpressionWarnings", "-").await;
    assert!(observed.contains(&"Ready=False/ExpressionWarnings".to_owned()));
    // After the policy is fixed, the condition is removed instead of set to False.
    let fixed = json!({"spec": {"validations": [{"expression": "object.spec.replicas <= 5"}]}});
    let params = PatchParams::default();
    policies(&client)
        .patch("warned", &params, &Patch::Merge(&fixed))
        .await
        .unwrap();
    wait_for(&client, "warned", "Ready=True", "Stalled").await;
    controller.finish().await.unwrap();

    // Another field manager sets its own condition, and also a condition of the controller.
    let reviewed = json!({"conditions": [{
        "type": "example.com/Reviewed", "status": "True", "reason": "Reviewed", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    apply_as(&client, "sound", "reviewer", reviewed).await;
    let shared = json!({"observedGeneration": 1, "typeChecking": {"expressionWarnings": []}});
    apply_as(&client, "sound", "kube-controller-manager", shared).await;

    let (output, text) = clear(&control_plane, SERVICE_ACCOUNT, &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.ends_with("\n3 cleared, 0 had no fields of the controller\n"),
        "{text}"
    );
    let sound = policies(&client).get("sound").await.unwrap();
    assert_eq!(conditions(&sound), ["example.com/Reviewed=True/Reviewed"]);
    let status = sound.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, Some(1));
    assert!(status.type_checking.is_some());
    let warned = policies(&client).get("warned").await.unwrap();
    let status = warned.status.clone().unwrap_or_default();
    assert_eq!(conditions(&warned), Vec::<String>::new());
    assert_eq!(
        (status.observed_generation, status.type_checking),
        (None, None)
    );
    for policy in [&sound, &warned] {
        let managers = policy.metadata.managed_fields.iter().flatten();
        let mut managers = managers.filter_map(|entry| entry.manager.as_deref());
        assert!(managers.all(|manager| manager != "vap-status-controller"));
    }
    let probe = probes.get("probe").await.unwrap();
    let status = probe.data.get("status").cloned().unwrap_or_default();
    assert_eq!(status.get("conditions"), None, "{status}");

    let (output, text) = clear(&control_plane, SERVICE_ACCOUNT, &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text, "0 cleared, 3 had no fields of the controller\n");
}

/// Another user can become a co-owner of the controller's conditions, by clearing the managed fields or applying a copy
/// of the status. If the controller stops applying such a condition, server-side apply keeps the condition.
/// Nevertheless, the condition must not become outdated or permanent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_with_other_owners_stay_correct_and_are_cleared() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let misspelt = "object.spec.replicsa <= 5";
    for name in ["forgotten", "copied"] {
        create(&client, name, DEPLOYMENTS, misspelt).await;
    }
    create(&client, "sound", DEPLOYMENTS, "object.spec.replicas <= 5").await;
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    for name in ["forgotten", "copied"] {
        wait_for(&client, name, "Stalled=True/ExpressionWarnings", "-").await;
    }
    wait_for(&client, "sound", "Ready=True", "Stalled").await;
    let params = PatchParams::default();
    let unmanaged = json!({"metadata": {"managedFields": [{}]}});
    for name in ["forgotten", "sound"] {
        let patch = Patch::Merge(&unmanaged);
        policies(&client)
            .patch(name, &params, &patch)
            .await
            .unwrap();
    }
    let copied = policies(&client).get("copied").await.unwrap();
    let copy = json!({"conditions": copied.status.unwrap().conditions});
    apply_as(&client, "copied", "gitops", copy).await;
    // The controller becomes an owner again, even though the content of the condition was correct.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let sound = policies(&client).get("sound").await.unwrap();
        let managers = sound.metadata.managed_fields.unwrap_or_default();
        let ours = Some("vap-status-controller");
        if managers
            .iter()
            .any(|entry| entry.manager.as_deref() == ours)
        {
            break;
        }
        assert!(Instant::now() < deadline, "{managers:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let fixed = json!({"spec": {"validations": [{"expression": "object.spec.replicas <= 5"}]}});
    for name in ["forgotten", "copied"] {
        let patch = Patch::Merge(&fixed);
        policies(&client)
            .patch(name, &params, &patch)
            .await
            .unwrap();
        wait_for(&client, name, "Ready=True", "Stalled").await;
    }
    controller.finish().await.unwrap();

    let (output, text) = clear(&control_plane, SERVICE_ACCOUNT, &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.ends_with("\n3 cleared, 0 had no fields of the controller\n"),
        "{text}"
    );
    for name in ["forgotten", "copied", "sound"] {
        let policy = policies(&client).get(name).await.unwrap();
        assert_eq!(conditions(&policy), Vec::<String>::new(), "{name}");
    }
}

/// A running leader would restore a removed status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clear_command_with_running_leader_does_nothing() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    create(&client, "sound", DEPLOYMENTS, "object.spec.replicas <= 5").await;
    let controller = Controller::start(&control_plane, &["--leader-elect"])
        .await
        .unwrap();
    let before = wait_for(&client, "sound", "Ready=True", "Stalled").await;
    let (output, text) = clear(&control_plane, SERVICE_ACCOUNT, &[]);
    assert_eq!((output.status.code(), text.as_str()), (Some(1), ""));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        complaint.contains("nothing was cleared: the controller ")
            && complaint.contains(
                "scale deployment -l app.kubernetes.io/name=vap-status-controller --replicas=0"
            ),
        "{complaint}"
    );
    let sound = policies(&client).get("sound").await.unwrap();
    assert_eq!(conditions(&sound), before);

    // The controller releases the Lease when it stops gracefully, so `clear` does not wait until the Lease expires.
    controller.finish().await.unwrap();
    let (output, text) = clear(&control_plane, SERVICE_ACCOUNT, &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.ends_with("\n1 cleared, 0 had no fields of the controller\n"),
        "{text}"
    );
    let sound = policies(&client).get("sound").await.unwrap();
    assert_eq!(conditions(&sound), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clear_command_reports_missing_permission() {
    let control_plane = ControlPlane::builder()
        .user(User::new("nobody", &["system:authenticated"]))
        .start()
        .await
        .unwrap();
    let complaints = |options: &[&str]| {
        let (output, _) = clear(&control_plane, "nobody", options);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let unseen = complaints(&[]);
    assert!(
        unseen.contains("grant the permission to get leases.coordination.k8s.io")
            && unseen.contains("--force"),
        "{unseen}"
    );
    let complaints = complaints(&["--force"]);
    assert!(
        complaints.contains(
            "grant the permission to list validatingadmissionpolicies.admissionregistration.k8s.io"
        ),
        "{complaints}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn excluded_policies_are_not_written_if_kcm_runs() {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .status_controller()
        .start()
        .await
        .unwrap();
    grant_permissions(&control_plane).unwrap();
    let client = control_plane.client().await.unwrap();
    for name in ["vendor-a", "labelled", "ours"] {
        create(&client, name, DEPLOYMENTS, "object.spec.replicas <= 5").await;
    }
    let arguments = [
        "--exclude-names=vendor-*",
        "--exclude-selector=vendor in (x)",
    ];
    let controller = Controller::start(&control_plane, &arguments).await.unwrap();
    for name in ["labelled", "ours"] {
        wait_for(&client, name, "Ready=True", "-").await;
    }
    let label = json!({"metadata": {"labels": {"vendor": "x"}}});
    policies(&client)
        .patch("labelled", &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let labelled = policies(&client).get("labelled").await.unwrap();
        let (_, metrics) = controller.get("/metrics").await.unwrap();
        if conditions(&labelled).is_empty() && !metrics.contains("policy=\"labelled\"") {
            break;
        }
        assert!(Instant::now() < deadline, "{:?}", conditions(&labelled));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (_, metrics) = controller.get("/metrics").await.unwrap();
    assert!(metrics.contains("policy=\"ours\""));
    assert!(!metrics.contains("policy=\"vendor-a\""));
    let vendors = policies(&client).get("vendor-a").await.unwrap();
    assert_eq!(conditions(&vendors), Vec::<String>::new());
    let log = controller.log().unwrap();
    let start = log.lines().find(|line| line.contains("caches synced"));
    assert!(start.unwrap().contains("\"excluded\":1"), "{start:?}");
    // Without the label, the policy is not excluded.
    let label = json!({"metadata": {"labels": {"vendor": null}}});
    policies(&client)
        .patch("labelled", &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    wait_for(&client, "labelled", "Ready=True", "-").await;
    controller.finish().await.unwrap();
}

/// API servers never evaluate policies for exempt resources. A policy that would deny every binding and every review
/// therefore denies no request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_not_evaluated_for_exempt_resources() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let group = "admissionregistration.k8s.io";
    let exempt = (group, "validatingadmissionpolicybindings");
    create(&client, "exempt", exempt, "false").await;
    create(&client, "asked", ("", "configmaps"), "false").await;
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let bind = async |name: &str, policy: &str| {
        let binding = json!({
            "metadata": {"name": name},
            "spec": {"policyName": policy, "validationActions": ["Deny"]},
        });
        let binding = serde_json::from_value(binding).unwrap();
        bindings.create(&PostParams::default(), &binding).await
    };
    bind("exempt", "exempt").await.unwrap();
    bind("asked", "asked").await.unwrap();
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::default_namespaced(client.clone());
    let deadline = Instant::now() + TIMEOUT;
    for n in 0.. {
        let map = json!({"metadata": {"name": format!("m{n}")}});
        let map = serde_json::from_value(map).unwrap();
        // The API server loads both policies together. If this policy is enforced, the other policy is also enforced.
        match maps.create(&PostParams::default(), &map).await {
            Err(kube::Error::Api(status)) if status.code == 422 => break,
            Err(error) => panic!("{error}"),
            Ok(_) => assert!(Instant::now() < deadline),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bind("another", "asked").await.unwrap();

    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let observed = wait_for(&client, "exempt", "Stalled=True/ExemptResources", "-").await;
    assert!(observed.contains(&"ResourcesMatched=False/ExemptResources".to_owned()));
    wait_for(&client, "asked", "Ready=True", "Stalled").await;
    controller.finish().await.unwrap();
}
