//! Tests the plugin with a real API server. Policies in the cluster and in files are checked with the schemas of the
//! API server. Statuses are shown, evaluated and watched.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use e2e::controller::{Controller, control_plane};
use serde_json::Value;

#[path = "support/plugin.rs"]
mod support;
use support::{Bench, TIMEOUT, plugins, policy, rules};

#[tokio::test(flavor = "multi_thread")]
async fn live_check_uses_schemas_of_the_cluster() {
    let bench = Bench::start().await;
    bench.install_crd();
    let file = bench.file(
        "policy.yaml",
        &policy("of-file", "object.spec.colour != 'red'"),
    );
    let file = file.to_str().unwrap();
    let kubeconfig = bench.control_plane.kubeconfig().unwrap();

    // Without `--live`, the kind is unknown, even if `KUBECONFIG` is set.
    let offline: Value =
        serde_json::from_str(&bench.check(&["check", file, "-o", "json"], 0)).unwrap();
    assert!(
        rules(&offline).contains(&format!("note unknown-resource {file}")),
        "{offline}"
    );

    for flags in [
        &["--live"][..],
        &["--kubeconfig", kubeconfig.to_str().unwrap()],
    ] {
        let arguments = [&["check", file, "-o", "json"], flags].concat();
        let report: Value = serde_json::from_str(&bench.check(&arguments, 1)).unwrap();
        assert!(
            rules(&report).contains(&format!("warning undefined-field {file}")),
            "{report}"
        );
        assert_eq!(report["kubernetes"], "1.36");
        assert_eq!(report["cluster"], bench.control_plane.url().as_str());
        assert_eq!(
            report["policies"][0]["checkedKinds"][0],
            "live.example.com/v1 Widget"
        );
    }

    // The API server sets defaults before policies are evaluated, so a field with a default exists. Other fields may be
    // absent.
    let default = bench.file(
        "default.yaml",
        &policy(
            "default",
            "object.spec.size <= 5 && object.spec.color != ''",
        ),
    );
    let report = bench.check(
        &["check", default.to_str().unwrap(), "--live", "-o", "json"],
        1,
    );
    let report: Value = serde_json::from_str(&report).unwrap();
    let absent = report["findings"].as_array().unwrap().iter();
    let absent: Vec<_> = absent
        .filter(|found| found["rule"] == "absent-field")
        .collect();
    assert_eq!(absent.len(), 1, "{report}");
    assert!(
        absent[0]["message"].as_str().unwrap().contains("color"),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn live_check_reads_policies_of_the_cluster() {
    let bench = Bench::start().await;
    bench.install_crd();
    bench.apply(&policy("sound", "object.spec.size <= 5"));
    bench.apply(&policy("misspelt", "object.spec.sise <= 5"));
    // All policies are checked, then policies by name and by label, and a missing policy.
    let all: Value =
        serde_json::from_str(&bench.check(&["check", "--live", "-o", "json"], 1)).unwrap();
    assert_eq!(all["summary"]["policies"], 2, "{all}");
    assert!(
        rules(&all)
            .contains(&"warning undefined-field validatingadmissionpolicy/misspelt".to_owned()),
        "{all}"
    );
    assert!(
        !rules(&all)
            .iter()
            .any(|rule| rule.contains("invalid-value")),
        "{all}"
    );
    let sound = bench.check(&["check", "vap/sound"], 0);
    assert!(
        sound.contains("1 policy checked for Kubernetes 1.36 at https://"),
        "{sound}"
    );
    bench.check(&["check", "validatingadmissionpolicies", "sound"], 0);
    bench.check(&["check", "-l", "team=sound"], 0);
    let text = bench.check(&["check", "-l", "team=misspelt"], 1);
    assert!(
        text.contains("--> validatingadmissionpolicy/misspelt:"),
        "{text}"
    );
    let some = bench.check(&["check", "vap/sound", "vap/nowhere"], 2);
    assert!(
        some.contains("the cluster has no ValidatingAdmissionPolicy `nowhere`"),
        "{some}"
    );
    let none = bench.vap(&["check", "vap/nowhere"]);
    assert_eq!(none.status.code(), Some(2), "{none:?}");

    // Locations in findings refer to the output of `kubectl get -o yaml`.
    let shown = bench.control_plane.kubectl().unwrap();
    let shown = { shown }
        .args(["get", "validatingadmissionpolicy/misspelt", "-o", "yaml"])
        .output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    let findings = all["findings"].as_array().unwrap().iter();
    let findings = findings
        .into_iter()
        .find(|finding| finding["rule"] == "undefined-field")
        .unwrap();
    let line = usize::try_from(findings["line"].as_u64().unwrap()).unwrap();
    assert!(
        shown
            .lines()
            .nth(line - 1)
            .unwrap()
            .contains("object.spec.sise"),
        "{line}: {shown}"
    );

    // The file contains only a binding. The policy of the binding exists only in the cluster.
    let binding = bench.file(
        "binding.yaml",
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
         metadata: {name: b}\nspec: {policyName: sound, validationActions: [Deny]}\n",
    );
    let binding = binding.to_str().unwrap();
    let report = bench.check(&["check", binding, "--live", "-o", "json"], 0);
    assert!(!report.contains("unknown-policy"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn live_check_reports_forbidden_and_unavailable_reads() {
    let bench = Bench::start().await;
    bench.apply(&policy("sound", "object.spec.size <= 5"));

    let refused = bench.vap_by("ann", &["check", "--live"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("permissions `get` and `list`"), "{text}");
    let refused = bench.vap(&["check", "--as", "ann"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");

    // User ann is allowed to read policies, but not bindings.
    bench.let_ann_read_policies();
    let file = bench.file("p.yaml", &policy("of-file", "object.spec.size <= 5"));
    let report = bench.output_for_ann(&["check", "--live", "-o", "json"]);
    assert_eq!(report.status.code(), Some(2), "{report:?}");
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let server = bench.control_plane.url();
    assert!(
        rules(&report).contains(&format!("error cluster-read-failed {server}")),
        "{report}"
    );
    assert!(
        report
            .to_string()
            .contains("bindings of the cluster cannot be read"),
        "{report}"
    );

    bench.apply(
        "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.live.example.com}\n\
         spec: {group: live.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100,\n\
         insecureSkipTLSVerify: true, service: {name: down, namespace: default}}\n",
    );
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let output = bench.vap(&["check", file.to_str().unwrap(), "--live"]);
        let text = String::from_utf8(output.stdout).unwrap();
        if text.contains("the resources of live.example.com/v1 are unknown") {
            assert_eq!(output.status.code(), Some(2), "{text}");
            break;
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // A policy that does not depend on the aggregated API is still checked.
    let other = policy("other", "object.spec.replicas <= 5").replace("live.example.com", "apps");
    let other = bench.file("other.yaml", &other.replace("widgets", "deployments"));
    bench.check(&["check", other.to_str().unwrap(), "--live"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_evaluated_by_status_command_without_controller() {
    let bench = Bench::start().await;
    bench.install_crd();
    bench.apply(&policy("sound", "object.spec.size <= 5"));
    bench.apply(&policy("misspelt", "object.spec.sise <= 5"));
    let text = bench.check(&["status"], 1);
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        row("misspelt")[1..4],
        ["False", "ExpressionWarnings", "kubectl-vap"],
        "{text}"
    );
    assert_eq!(
        row("sound")[1..4],
        ["True", "Ready", "kubectl-vap"],
        "{text}"
    );
    assert!(
        text.contains("2 policies were evaluated by kubectl vap"),
        "{text}"
    );

    bench.check(&["status", "vap/sound"], 0);
    bench.check(&["status", "sound", "vap/misspelt"], 1);
    bench.check(&["status", "-l", "team=sound"], 0);
    assert!(
        bench
            .check(
                &[
                    "status",
                    "sound",
                    "-n",
                    "default",
                    "--request-timeout",
                    "20s"
                ],
                0
            )
            .contains("Evaluated by")
    );
    let rows = bench.check(&["status", "--no-headers"], 1);
    assert_eq!(rows.lines().count(), 2, "{rows}");
    let written = bench.check(&["status", "--no-check", "-o", "json"], 1);
    assert!(written.contains("\"state\": \"NoStatus\""), "{written}");
    let json: Value = serde_json::from_str(&bench.check(&["status", "-o", "json"], 1)).unwrap();
    assert_eq!(json["policies"][0]["checkedBy"], "kubectl-vap");
    assert_eq!(json["policies"][0]["writtenState"], "NoStatus");
    assert_eq!(json["summary"]["checkedByPlugin"], 2);
    let bound = json["policies"][1]["conditions"].as_array().unwrap().iter();
    let bound = bound
        .into_iter()
        .find(|condition| condition["type"] == "Bound")
        .unwrap();
    assert_eq!(bound["reason"], "NoBindings");

    bench.let_ann_read_policies();
    let output = bench.output_for_ann(&["status"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("error: the bindings of the cluster cannot be read"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn status_of_plugin_equals_status_of_controller() {
    let control_plane = control_plane().await.unwrap();
    let bench = Bench { control_plane };
    bench.install_crd();
    bench.apply(&policy("sound", "object.spec.size <= 5"));
    bench.apply(&policy("misspelt", "object.spec.sise <= 5"));
    bench.apply(&policy("lost", "params.data.x == 'a'").replace(
        "spec:\n",
        "spec:\n  paramKind: {apiVersion: v1, kind: Limit}\n",
    ));
    bench.apply(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
         metadata: {name: b}\nspec: {policyName: sound, validationActions: [Deny]}\n",
    );
    bench.apply(&policy("other-version", "params.spec.size <= 5").replace(
        "spec:\n",
        "spec:\n  paramKind: {apiVersion: live.example.com/v2, kind: Widget}\n",
    ));
    let conditions = |report: &Value| -> Vec<String> {
        let policies = report["policies"].as_array().unwrap().iter();
        let conditions = policies.flat_map(|policy| {
            let conditions = policy["conditions"].as_array().unwrap().iter();
            conditions
                .filter(|it| it["type"] != "ProbesPassed" && it["type"] != "Stalled")
                .map(|it| {
                    let text = |name: &str| it[name].as_str().unwrap().to_owned();
                    format!(
                        "{} {} {} {}",
                        policy["name"],
                        text("type"),
                        text("reason"),
                        text("message")
                    )
                })
        });
        conditions.collect()
    };
    let report: Value = serde_json::from_str(&bench.check(&["status", "-o", "json"], 1)).unwrap();
    let by_plugin = conditions(&report);
    assert!(by_plugin.len() >= 15, "{by_plugin:?}");
    let controller = Controller::start(&bench.control_plane, &[]).await.unwrap();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let report: Value =
            serde_json::from_str(&bench.check(&["status", "-o", "json"], 1)).unwrap();
        let by_controller = report["policies"].as_array().unwrap().iter();
        if { by_controller }.all(|policy| policy["checkedBy"] == "controller") {
            assert_eq!(conditions(&report), by_plugin);
            break;
        }
        assert!(Instant::now() < deadline, "{report}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let text = bench.check(&["status"], 1);
    assert!(!text.contains("kubectl-vap"), "{text}");
    controller.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_runs_the_plugin_and_completes_its_arguments() {
    let bench = Bench::start().await;
    bench.apply(&policy("sound", "object.spec.size <= 5"));
    let folder = plugins(bench.control_plane.directory());
    let kubectl = |arguments: &[&str]| {
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = bench.control_plane.kubectl().unwrap();
        command.env("PATH", path).args(arguments).output().unwrap()
    };
    let completed = kubectl(&["__complete", "vap", "status", "--no-h"]);
    let text = String::from_utf8(completed.stdout).unwrap();
    assert!(
        text.starts_with("--no-headers\t") && text.trim_end().ends_with(":4"),
        "{text}"
    );
    let completed = kubectl(&["__complete", "vap", "ch"]);
    let text = String::from_utf8(completed.stdout).unwrap();
    assert!(text.starts_with("check\t"), "{text}");
    for (words, expect) in [
        (&["vap", "status", ""][..], "sound\n:4"),
        (&["vap", "check", "vap/so"], "vap/sound\n:0"),
        (&["vap", "explain", "undefined-fi"], "undefined-field\t"),
        // An unreachable API server provides no names for completion.
        (
            &["vap", "status", "--server", "https://127.0.0.1:1", ""],
            ":4",
        ),
    ] {
        let completed = kubectl(&[&["__complete"], words].concat());
        let text = String::from_utf8(completed.stdout).unwrap();
        assert!(text.starts_with(expect), "{words:?}: {text}");
    }
    let status = kubectl(&["vap", "status", "vap/sound", "--no-headers"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.starts_with("sound "), "{text}");
    let listed = kubectl(&["plugin", "list"]);
    assert!(
        String::from_utf8(listed.stdout)
            .unwrap()
            .contains("/kubectl-vap\n")
    );
}

/// Each flag for a server or a user has an effect: the selected API server responds, or rejects the user.
#[tokio::test(flavor = "multi_thread")]
async fn kubectl_flags_select_server_and_user() {
    let bench = Bench::start().await;
    bench.apply(&policy("sound", "object.spec.size <= 5"));
    let kubeconfig = bench.control_plane.kubeconfig().unwrap();
    let text = fs::read_to_string(&kubeconfig).unwrap();
    let text: Value = serde_json::from_str(&text).unwrap();
    let cluster = &text["clusters"][0]["cluster"];
    let server = cluster["server"].as_str().unwrap();
    let ca = cluster["certificate-authority"].as_str().unwrap();
    let token = text["users"][0]["user"]["token"].as_str().unwrap();
    let other = rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap();
    let other_ca = bench.file("other.pem", &other.cert.pem());
    let other_ca = other_ca.to_str().unwrap();
    let none = bench.control_plane.directory().join("no-such-kubeconfig");
    let port = server.rsplit(':').next().unwrap();
    let by_name = format!("https://localhost:{port}");
    let given = |arguments: &[&str]| {
        let arguments = [
            &["status", "--no-check", "--request-timeout", "20s"],
            arguments,
        ]
        .concat();
        let output = bench.command(&none, &arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
        )
    };
    let base = ["--server", server, "--token", token];
    let with = |more: &[&str]| given(&[&base, more].concat());
    for (arguments, expect) in [
        (&["--certificate-authority", ca][..], "sound "),
        (&["--insecure-skip-tls-verify"], "sound "),
        (
            &["--insecure-skip-tls-verify=false"],
            "cannot reach the API server",
        ),
        (
            &["--certificate-authority", other_ca],
            "cannot reach the API server",
        ),
        (
            &["--certificate-authority", "no-such-file"],
            "certificate authority",
        ),
        (
            &[
                "--certificate-authority",
                ca,
                "--tls-server-name",
                "kubernetes.invalid",
            ],
            "cannot reach the API server",
        ),
        (
            &[
                "--certificate-authority",
                ca,
                "--as",
                "ann",
                "--as-group",
                "system:masters",
                "--as-uid",
                "7",
            ],
            "sound ",
        ),
        (
            &["--certificate-authority", ca, "--as", "ann"],
            "User \"ann\" cannot",
        ),
        (&["--certificate-authority", ca, "--as-uid", "7"], "--as"),
        (
            &["--certificate-authority", ca, "--client-certificate", ca],
            "certificate has no key",
        ),
        (&["--client-key", ca], "key has no certificate"),
        (
            &["--insecure-skip-tls-verify", "--certificate-authority", ca],
            "cannot be used with",
        ),
    ] {
        let (status, text) = with(arguments);
        assert!(text.contains(expect), "{arguments:?}: {status:?} {text}");
        assert_eq!(status == Some(2), !text.contains("sound "), "{text}");
    }
    let (_, text) = given(&[
        "-s",
        &by_name,
        "--token",
        "wrong",
        "--insecure-skip-tls-verify",
    ]);
    assert!(text.contains("rejects the credentials"), "{text}");
    let admin = kubeconfig.display().to_string();
    let (_, text) = given(&["--kubeconfig", &admin]);
    assert!(text.contains("sound "), "{text}");
    let (_, text) = given(&["--kubeconfig", &admin, "--token", "wrong"]);
    assert!(text.contains("rejects the credentials"), "{text}");
    let (_, text) = given(&["--kubeconfig", &admin, "--user", "nobody"]);
    assert!(text.contains("no user `nobody`"), "{text}");
}

/// Returns a channel for the output lines of a program.
fn lines(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in output.lines() {
            if send.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    lines
}

#[track_caller]
fn await_line(lines: &Receiver<String>, begin: &str) -> String {
    let deadline = Instant::now() + TIMEOUT;
    let mut seen = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) if line.starts_with(begin) => return line,
            Ok(line) => seen.push(line),
            Err(error) => panic!("no line `{begin}`: {error}; {seen:#?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_command_prints_changes_until_stopped() {
    let mut bench = Bench::start().await;
    bench.install_crd();
    bench.apply(&policy("sound", "object.spec.size <= 5"));
    let kubeconfig = bench.control_plane.kubeconfig().unwrap();
    let mut command = bench.command(&kubeconfig, &["status", "-w"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let seen = lines(&mut child);
    await_line(&seen, "sound ");
    await_line(&seen, "1 policy was evaluated");
    bench.apply(&policy("sound", "object.spec.sise <= 5"));
    assert!(await_line(&seen, "sound ").contains("False"));
    bench.apply(&policy("other", "object.spec.size <= 5"));
    assert!(await_line(&seen, "other ").contains("True"));

    bench.control_plane.kill_api_server();
    bench.control_plane.start_api_server_again().await.unwrap();
    bench.kubectl(&["delete", "validatingadmissionpolicies", "other"]);
    assert!(await_line(&seen, "other ").contains("Deleted"));
    bench.apply(&policy("sound", "object.spec.size <= 7"));
    assert!(await_line(&seen, "sound ").contains("True"));

    let pid = child.id().to_string();
    let interrupt = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));

    // If the reader of the output has closed the pipe, the command exits at the next line.
    let mut command = bench.command(&kubeconfig, &["status", "-w", "--no-headers"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("sound "), "{line}");
    drop(output);
    bench.apply(&policy("sound", "object.spec.sise <= 5"));
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(
            Instant::now() < deadline,
            "the command keeps running without a reader"
        );
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(1));
}
