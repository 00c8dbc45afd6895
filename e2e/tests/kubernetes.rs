//! Runs Kubernetes' own tests of policy type checking with this controller instead of the status controller in
//! kube-controller-manager.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::time::Duration;

use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, grant_permissions, service_account};
use e2e::kubernetes::{Outcomes, Tests};

/// The pattern of the tests to run.
const FOCUS: &str = "ValidatingAdmissionPolicy.*should type check";

/// All tests that match the pattern.
const NAMES: [&str; 2] = [
    "should type check a CRD",
    "should type check validation expressions",
];

/// The timeout of the tests. The machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The timeout of the tests if no status is written.
const PATIENCE: Duration = Duration::from_secs(5);

fn all(state: &str) -> Outcomes {
    NAMES.map(|name| (name.to_owned(), state.to_owned())).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn type_checking_tests_of_kubernetes_pass() {
    let control_plane = ControlPlane::builder()
        .user(service_account())
        // All controllers of kube-controller-manager run, except for the status controller.
        .kcm_controllers(&["*", "-validatingadmissionpolicy-status-controller"])
        .start()
        .await
        .unwrap();
    grant_permissions(&control_plane).unwrap();
    let tests = tokio::task::block_in_place(|| Tests::build(control_plane.directory())).unwrap();
    let run = |timeout| {
        tokio::task::block_in_place(|| tests.run(&control_plane, FOCUS, timeout)).unwrap()
    };

    // Without this controller, no status is written, so the tests must fail.
    let mut unanswered = run(PATIENCE);
    assert!(
        unanswered.values().all(|state| state != "passed"),
        "{unanswered:?}"
    );
    unanswered.retain(|_, state| state == "timedout");
    assert!(!unanswered.is_empty());

    for profile in ["truthful", "upstream"] {
        let argument = format!("--profile={profile}");
        let controller = Controller::start(&control_plane, &[&argument])
            .await
            .unwrap();
        assert_eq!(run(TIMEOUT), all("passed"), "profile {profile}");
        controller.finish().await.unwrap();
    }
}
