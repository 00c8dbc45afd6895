//! What the controller says where it cannot work: one clear line with what to do.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::process::Command;
use std::time::{Duration, Instant};

use e2e::control_plane::{ControlPlane, Process};
use e2e::controller::{SERVICE_ACCOUNT, binary, service_account};

const TIMEOUT: Duration = Duration::from_secs(60);

fn start(control_plane: &ControlPlane) -> Process {
    let mut command = Command::new(binary("vap-status-controller").unwrap());
    command.args(["run", "--listen", "127.0.0.1:0"]).env(
        "KUBECONFIG",
        control_plane.kubeconfig_for(SERVICE_ACCOUNT).unwrap(),
    );
    control_plane.spawn("controller", command).unwrap()
}

/// Waits for a line of the log that `wanted` accepts.
async fn wait_for_line(process: &Process, wanted: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let log = std::fs::read_to_string(process.log_path()).unwrap();
        if let Some(line) = log.lines().find(|line| wanted(line)) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "not in the log:\n{log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named() {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .start()
        .await
        .unwrap();
    let process = start(&control_plane);
    wait_for_line(&process, |line| {
        line.contains("validatingadmissionpolicies") && line.contains("ClusterRole")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_api_is_named() {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .api_server_arg("--runtime-config=admissionregistration.k8s.io/v1=false")
        // These would wait for the API that is missing, and the API server for them.
        .api_server_arg(
            "--disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy,\
             ValidatingAdmissionWebhook,MutatingAdmissionWebhook",
        )
        .start()
        .await
        .unwrap();
    e2e::controller::grant_rights(&control_plane).unwrap();
    let process = start(&control_plane);
    wait_for_line(&process, |line| {
        line.contains("does not serve validatingadmissionpolicies") && line.contains("1.30")
    })
    .await;
}
