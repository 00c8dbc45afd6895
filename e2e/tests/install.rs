//! Sends the output of kustomize and Helm to a real API server: a server-side apply as a dry run. Also runs the
//! commands of alerts and runbooks, after replacing placeholders.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by a panic")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::ControlPlane;
use e2e::controller::repository;

/// Returns the output of a command. If the command fails, panics with its standard error.
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

/// Renders the chart, including hooks. Helm is a tool of the Go module in `e2e/helm`.
fn helm(settings: &[&str]) -> String {
    let mut helm = Command::new("go");
    helm.current_dir(repository().join("e2e/helm"))
        .args(["tool", "helm", "template", "vap-status-controller"])
        .arg(repository().join("charts/vap-status-controller"))
        .args(["--namespace", "vap-status-system"]);
    for setting in settings {
        helm.args(["--set", setting]);
    }
    output(&mut helm)
}

/// Applies `manifests` as a dry run with strict field validation. Returns the API server's message for each object.
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
async fn manifests_are_accepted_by_the_api_server() {
    let control_plane = ControlPlane::builder().start().await.unwrap();
    // A dry run stores nothing, so the namespace is created first. Its pod security standard then applies to the pods.
    let config = repository().join("config");
    let namespace = config.join("controller/namespace.yaml");
    output(
        control_plane
            .kubectl()
            .unwrap()
            .args(["apply", "--server-side", "-f"])
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
    // The chart also contains a pod for `helm test`, and a network policy for this pod. The chart contains no
    // namespace, because Helm creates the namespace.
    let without = |list: &[String], name: &str| -> Vec<String> {
        let kept = list.iter().filter(|line| !line.contains(name));
        kept.cloned().collect()
    };
    assert_eq!(
        without(&by_helm, "/vap-status-controller-test"),
        without(&by_kustomize, "namespace/vap-status-system")
    );

    for (folder, n_objects) in [("clear", 2), ("dashboards", 1)] {
        let applied = apply(
            &control_plane,
            &kustomize(&control_plane, &config.join(folder)),
        );
        assert_eq!(applied.len(), n_objects, "{folder}: {}", applied.join("\n"));
    }
    let everything = helm(&[
        "flowSchema.enabled=true",
        "rbac.aggregateToEdit=true",
        "service.ipFamilyPolicy=PreferDualStack",
        "extraEnv[0].name=RUST_LOG",
        "extraEnv[0].value=info",
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
async fn kustomize_components_are_accepted_by_the_api_server() {
    let control_plane = ControlPlane::builder().start().await.unwrap();
    for component in ["subject-access-reviews", "flow-schema", "aggregate-to-edit"] {
        let folder = repository().join("config/components").join(component);
        let rendered = kustomize(&control_plane, &folder);
        let applied = apply(&control_plane, &rendered);
        assert!(!applied.is_empty(), "{component}");
    }
}

/// Objects to which the commands refer: NAME, BINDING and PROBE in the runbooks, and the Lease of a leader.
const SUBJECTS: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limits}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 50
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limits-binding}
spec: {policyName: limits, validationActions: [Audit]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: limits}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{spec: Object.spec{replicas: 1}}'}
---
apiVersion: vap-status.dev/v1alpha1
kind: MutatingAdmissionPolicyStatus
metadata: {name: limits}
---
apiVersion: vap-status.dev/v1alpha1
kind: CustomResourceDefinitionStatus
metadata: {name: limits}
---
apiVersion: vap-status.dev/v1alpha1
kind: MutatingWebhookConfigurationStatus
metadata: {name: limits}
---
apiVersion: vap-status.dev/v1alpha1
kind: ValidatingWebhookConfigurationStatus
metadata: {name: limits}
---
apiVersion: vap-status.dev/v1alpha1
kind: PolicyProbe
metadata: {name: limits-probe}
spec:
  policyName: limits
  samples: Partial
  cases:
  - name: nobody
    request: {object: {apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}}
    expect: {decision: Allow}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: vap-status-controller
  namespace: vap-status-system
  annotations: {vap-status.dev/in-sync-at: '2026-01-01T00:00:00Z'}
spec: {holderIdentity: vap-status-controller-0-abcde}
";

/// The opt-in kinds. Only the first is a policy.
const FOLLOWED: [&str; 4] = [
    "mutatingadmissionpolicy",
    "mutatingwebhookconfiguration",
    "validatingwebhookconfiguration",
    "customresourcedefinition",
];

/// Returns the commands in the `sh` blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_in_block = false;
    for line in page.lines().map(str::trim) {
        if line.starts_with("```") {
            is_in_block = line == "```sh";
        } else if is_in_block && !line.is_empty() {
            commands.push(line.to_owned());
        }
    }
    commands
}

/// Returns the commands in backticks in the annotations of alerts.
fn commands_of_alerts(rules: &str) -> Vec<String> {
    let words: Vec<_> = rules.split_whitespace().collect();
    let text = words.join(" ").replace("{{ $labels.policy }}", "NAME");
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter(|code| code.starts_with("kubectl "))
        .flat_map(commands_by_kind)
        .collect()
}

/// Expands a command of an alert to one command per kind. Opt-in kinds have status objects. A patch of policy fields is
/// possible only for policies.
fn commands_by_kind(command: &str) -> Vec<String> {
    const KIND: &str = "{{ $labels.kind | toLower }}";
    const STATUS: &str = "{{ if ne $labels.kind \"ValidatingAdmissionPolicy\" }}status{{ end }}";
    let of_any_kind = format!("{KIND}{STATUS}");
    let with = |subject: &str, names: &[&str]| -> Vec<String> {
        let names = names.iter();
        names.map(|name| command.replace(subject, name)).collect()
    };
    if command.contains(&of_any_kind) {
        let mut commands = with(&of_any_kind, &["validatingadmissionpolicy"]);
        let statuses = FOLLOWED.map(|kind| format!("{kind}status"));
        commands.extend(with(&of_any_kind, &statuses.each_ref().map(String::as_str)));
        commands
    } else if command.contains(&format!("{KIND}status")) {
        with(KIND, &FOLLOWED[1..])
    } else if command.contains(KIND) {
        with(KIND, &["validatingadmissionpolicy", FOLLOWED[0]])
    } else {
        vec![command.to_owned()]
    }
}

#[tokio::test]
async fn commands_of_alerts_and_runbooks_succeed() {
    let control_plane = ControlPlane::builder().start().await.unwrap();
    let config = repository().join("config");
    let apply = |manifests: &str| {
        let mut shell = shell(&control_plane, "kubectl apply -f - >/dev/null");
        let mut kubectl = shell.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = kubectl.stdin.take().unwrap();
        stdin.write_all(manifests.as_bytes()).unwrap();
        drop(stdin);
        assert!(kubectl.wait().unwrap().success());
    };
    apply(&kustomize(&control_plane, &config.join("default")));
    output(&mut shell(
        &control_plane,
        "kubectl wait --for=condition=Established crd/policyprobes.vap-status.dev --timeout=60s",
    ));

    let rules = std::fs::read_to_string(config.join("alerts/rules.yaml")).unwrap();
    let mut pages = vec![("rules.yaml".to_owned(), commands_of_alerts(&rules))];
    for entry in std::fs::read_dir(repository().join("docs/runbooks")).unwrap() {
        let path = entry.unwrap().path();
        let page = std::fs::read_to_string(&path).unwrap();
        let documented = commands(&page);
        assert!(!documented.is_empty(), "{} has no command", path.display());
        pages.push((path.display().to_string(), documented));
    }
    let mut n_run = 0;
    for (page, commands) in pages {
        apply(SUBJECTS);
        for command in commands {
            // There are no pods, so commands for pods are skipped. `grep` and `tail` may find nothing, so only the
            // command before the pipe is run.
            if command.contains("POD") || command.contains("rollout status") {
                continue;
            }
            let searched = [" | grep", " | tail"].map(|filter| command.split(filter).next());
            let command = searched.into_iter().flatten().min_by_key(|part| part.len());
            let mut command = command
                .unwrap()
                .replace("BINDING.yaml", "binding.yaml")
                .replace(
                    "validatingadmissionpolicybinding BINDING",
                    "validatingadmissionpolicybinding limits-binding",
                )
                .replace("policyprobe PROBE", "policyprobe limits-probe")
                .replace("apiservice NAME", "apiservice v2.autoscaling")
                .replace("=GROUP", "=apps");
            for kind in FOLLOWED.into_iter().chain(["validatingadmissionpolicy"]) {
                for suffix in ["", "status"] {
                    let subject = format!("{kind}{suffix}");
                    command =
                        command.replace(&format!("{subject} NAME"), &format!("{subject} limits"));
                }
            }
            let outcome = shell(&control_plane, &command).output().unwrap();
            let complaints = String::from_utf8_lossy(&outcome.stderr);
            assert!(outcome.status.success(), "{page}: {command}: {complaints}");
            n_run += 1;
        }
    }
    assert!(n_run > 50, "only {n_run} commands were run");
}

/// Returns a shell in the directory of the control plane, with its kubectl in `PATH`.
fn shell(control_plane: &ControlPlane, command: &str) -> Command {
    let kubectl = control_plane.kubectl().unwrap();
    let program = Path::new(kubectl.get_program()).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(control_plane.directory())
        .env("PATH", format!("{}:{path}", program.display()));
    for (name, value) in kubectl.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell
}
