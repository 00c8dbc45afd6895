//! What kustomize and Helm render, as a real API server takes it: by server-side apply, as a dry run.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::ControlPlane;
use e2e::controller::repository;

/// What a command prints; what it complains of when it fails.
#[track_caller]
fn output(command: &mut Command) -> String {
    let outcome = command.output().unwrap();
    assert!(
        outcome.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&outcome.stderr)
    );
    String::from_utf8(outcome.stdout).unwrap()
}

fn kustomize(control_plane: &ControlPlane, folder: &Path) -> String {
    let mut kubectl = control_plane.kubectl().unwrap();
    output(kubectl.arg("kustomize").arg(folder))
}

/// The real Helm, of the Go module beside this one; hooks and CRDs are among what it renders.
fn helm(settings: &[&str]) -> String {
    let mut helm = Command::new("go");
    helm.current_dir(repository().join("e2e/helm"))
        .args(["tool", "helm", "template", "vap-status-controller"])
        .arg(repository().join("charts/vap-status-controller"))
        .args(["--namespace", "vap-status-system", "--include-crds"]);
    for setting in settings {
        helm.args(["--set", setting]);
    }
    output(&mut helm)
}

/// Applies as a dry run, and gives what the API server says of each object. It refuses unknown fields.
#[track_caller]
fn apply(control_plane: &ControlPlane, manifests: &str) -> Vec<String> {
    let mut kubectl = control_plane
        .kubectl()
        .unwrap()
        .args(["apply", "--server-side", "--dry-run=server"])
        .args(["--validate=strict", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = kubectl.stdin.take().unwrap();
    stdin.write_all(manifests.as_bytes()).unwrap();
    drop(stdin);
    let outcome = kubectl.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{complaints}");
    assert!(complaints.is_empty(), "a warning: {complaints}");
    let mut applied: Vec<_> = String::from_utf8(outcome.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    applied.sort();
    applied
}

#[tokio::test]
async fn an_api_server_takes_what_is_installed() {
    let control_plane = ControlPlane::builder().start().await.unwrap();
    // A dry run keeps nothing, so what the rest refers to is created before. The real namespace is used, so that
    // admission holds the pods to its standard.
    let config = repository().join("config");
    let namespace = config.join("controller/namespace.yaml");
    output(
        control_plane
            .kubectl()
            .unwrap()
            .args(["apply", "-f"])
            .arg(namespace),
    );

    let by_kustomize = apply(
        &control_plane,
        &kustomize(&control_plane, &config.join("default")),
    );
    assert!(
        by_kustomize.len() > 10,
        "few objects: {}",
        by_kustomize.join("\n")
    );
    let by_helm = apply(&control_plane, &helm(&["clear.enabled=false"]));
    // The chart has a pod for `helm test`; the namespace is Helm's caller's.
    let without = |list: &[String], name: &str| -> Vec<String> {
        let kept = list.iter().filter(|line| !line.contains(name));
        kept.cloned().collect()
    };
    assert_eq!(
        without(&by_helm, "pod/vap-status-controller-test"),
        without(&by_kustomize, "namespace/vap-status-system")
    );

    for folder in ["clear", "dashboards"] {
        let applied = apply(
            &control_plane,
            &kustomize(&control_plane, &config.join(folder)),
        );
        assert_eq!(applied.len(), 1, "{folder}: {}", applied.join("\n"));
    }
    let everything = helm(&[
        "subjectAccessReviews.enabled=true",
        "metrics.dashboard.enabled=true",
        "paramsRoles[0].apiGroup=rules.example.com",
        "paramsRoles[0].resources={replicalimits}",
        "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring",
    ]);
    let everything = apply(&control_plane, &everything);
    assert!(everything.len() > by_helm.len() + 4);
}

#[tokio::test]
async fn an_api_server_takes_the_components() {
    let control_plane = ControlPlane::builder().start().await.unwrap();
    for component in ["subject-access-reviews", "flow-schema"] {
        let folder = repository().join("config/components").join(component);
        let rendered = kustomize(&control_plane, &folder);
        let applied = apply(&control_plane, &rendered);
        assert!(applied.len() > 1, "{component}: {}", applied.join("\n"));
    }
}
