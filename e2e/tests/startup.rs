//! Tests the messages of a controller that cannot work. One line in the log must contain the required action.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use e2e::allowed_failures::{AllowedFailure, Event, Level};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, service_account};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for an error in the log for which `wanted` returns true.
async fn wait_for_error(controller: &Controller, wanted: impl Fn(&Event) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let log = controller.log().unwrap();
        let mut errors = log
            .lines()
            .filter_map(Event::read)
            .filter(|event| event.level == Some(Level::Error));
        if errors.any(|event| wanted(&event)) {
            return;
        }
        assert!(Instant::now() < deadline, "not in the log:\n{log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_is_reported_at_startup() {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .start()
        .await
        .unwrap();
    let controller = Controller::spawn(&control_plane, &[]).unwrap();
    controller.allow([
        AllowedFailure::error("in the ClusterRole vap-status-controller"),
        AllowedFailure::any_sync("forbidden").required(),
    ]);
    wait_for_error(&controller, |event| {
        event.has("validatingadmissionpolicies") && event.has("ClusterRole")
    })
    .await;
    controller.finish().await.unwrap();
}

/// The chart uses this address, so that pods also become ready in clusters that have only IPv6.
#[tokio::test(flavor = "multi_thread")]
async fn controller_responds_over_ipv6_and_ipv4() {
    let control_plane = e2e::controller::control_plane().await.unwrap();
    let free = TcpListener::bind("[::1]:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let listen = format!("--listen=[::]:{port}");
    let controller = Controller::start(&control_plane, &[&listen]).await.unwrap();
    let (status, metrics) = controller.get("/metrics").await.unwrap();
    assert_eq!(status, 200);
    assert!(metrics.contains("vap_build_info"), "{metrics}");
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_api_is_reported_at_startup() {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        .api_server_arg("--runtime-config=admissionregistration.k8s.io/v1=false")
        // These admission plugins would wait for the missing API, so the API server would not start.
        .api_server_arg(
            "--disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy,\
             ValidatingAdmissionWebhook,MutatingAdmissionWebhook",
        )
        .start()
        .await
        .unwrap();
    e2e::controller::grant_permissions(&control_plane).unwrap();
    let controller = Controller::spawn(&control_plane, &[]).unwrap();
    // The last message of an exiting process is not in the log format.
    controller.allow([
        AllowedFailure::fatal_line("does not serve validatingadmissionpolicies").required(),
    ]);
    let log_has_version = async || controller.log().unwrap().contains("1.30");
    let deadline = Instant::now() + TIMEOUT;
    while !log_has_version().await {
        assert!(Instant::now() < deadline, "{}", controller.log().unwrap());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let status = controller.await_exit(TIMEOUT).await.unwrap();
    assert_eq!(status.code(), Some(2));
}
