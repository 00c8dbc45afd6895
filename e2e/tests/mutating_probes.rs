//! Compares probes of mutating policies with a real API server. `kubectl vap test` must report the mutated object of a
//! dry run. A probe must pass if it expects the outcome of the dry run: the object or an error.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use e2e::control_plane::ControlPlane;
use e2e::controller::{binary, control_plane};
use e2e::response::Response;
use kube::Client;
use serde_json::{Value, json};
use vap_status_controller::cli::test::report::TestReport;
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;
use vap_status_controller::schema::Builtin;
use vap_status_controller::version::KubernetesVersion;

use dry_run::{TIMEOUT, create, documents, post, send, target};

#[path = "support/dry_run.rs"]
mod dry_run;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

/// Fields that the API server sets after the mutations.
const SET_AFTER: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Returns the policy and the binding of a case. Both apply only in the namespace of the case.
fn manifests(case: &Value) -> [Value; 2] {
    let name = case["name"].as_str().unwrap();
    let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]});
    let mut spec = case["spec"].clone();
    spec["matchConstraints"] = json!({
        "resourceRules": [rule("", "configmaps"), rule("apps", "deployments"), rule("batch", "cronjobs"),
            rule("rbac.authorization.k8s.io", "roles"), rule("networking.k8s.io", "networkpolicies")],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
    });
    if spec["reinvocationPolicy"].is_null() {
        spec["reinvocationPolicy"] = json!("Never");
    }
    let mut binding = json!({"policyName": name});
    if !case["paramKind"].is_null() {
        spec["paramKind"] = case["paramKind"].clone();
        binding["paramRef"] =
            json!({"name": "params", "namespace": name, "parameterNotFoundAction": "Deny"});
    }
    let object = |kind: &str, spec: &Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    [
        object("MutatingAdmissionPolicy", &spec),
        object("MutatingAdmissionPolicyBinding", &binding),
    ]
}

fn namespaced(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// Returns the param for cases with params.
fn param(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "params", "namespace": namespace},
        "data": {"replicas": "4"}})
}

/// Returns the parts of an object that mutations may change.
fn parts(object: &Value) -> Value {
    let mut parts = json!({"metadata": {
        "labels": object["metadata"]["labels"], "annotations": object["metadata"]["annotations"]}});
    for (name, field) in object.as_object().unwrap() {
        if !SET_AFTER.contains(&name.as_str()) {
            parts[name] = field.clone();
        }
    }
    parts
}

/// Returns an expectation that equals the response, and one that must fail.
fn expectations(response: &Response) -> (Value, Value) {
    if response.status < 300 {
        let expected = parts(&response.body);
        let mut other = expected.clone();
        other["metadata"]["labels"]["no-such-label"] = json!("x");
        // The response does not show an error that failurePolicy ignores. The case then specifies the result.
        return (json!({"object": expected}), json!({"object": other}));
    }
    let message = response.message();
    let cause = message.split_once("denied request: ").map(|(_, it)| it);
    let cause = cause.or_else(|| message.strip_prefix("Internal error occurred: "));
    let cause = cause.unwrap_or_else(|| panic!("{response:?}"));
    (
        json!({"error": {"contains": cause}}),
        json!({"object": {"metadata": {}}}),
    )
}

async fn installed(client: &Client, cases: &[Value]) {
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(client, "/api/v1/namespaces", &namespace).await;
        let objects = case["requests"].as_array().unwrap();
        let stored = objects.iter().map(|request| &request["old"]);
        let configs = format!("/api/v1/namespaces/{name}/configmaps");
        for old in stored.filter(|old| !old.is_null()) {
            create(client, &configs, &namespaced(old, name)).await;
        }
        if !case["paramKind"].is_null() {
            create(client, &configs, &param(name)).await;
        }
    }
    for case in cases {
        let [policy, binding] = manifests(case);
        create(client, POLICIES, &policy).await;
        create(client, BINDINGS, &binding).await;
    }
    let last = json!({"name": "last", "spec": {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration":
        {"expression": "Object{metadata: Object.metadata{labels: {\"mutated\": \"yes\"}}}"}}]}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "last"}});
    create(client, "/api/v1/namespaces", &namespace).await;
    let [policy, binding] = manifests(&last);
    create(client, POLICIES, &policy).await;
    create(client, BINDINGS, &binding).await;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let path = "/api/v1/namespaces/last/configmaps?dryRun=All";
        let response = post(client, path, &object).await;
        if response.body["metadata"]["labels"]["mutated"] == "yes" {
            return;
        }
        assert!(Instant::now() < deadline, "{response:?}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// Sends the requests of a case. Adds its policy, and a probe that expects the responses, to `files`. Returns the
/// numbers of requests and rejections.
async fn written(
    client: &Client,
    case: &Value,
    before: usize,
    files: &mut String,
) -> (usize, usize) {
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let mut add = |object: &Value| {
        let _ = write!(files, "---\n{object}\n");
    };
    let name = case["name"].as_str().unwrap();
    manifests(case).iter().for_each(&mut add);
    if !case["paramKind"].is_null() {
        add(&param(name));
    }
    let mut cases = Vec::new();
    let (mut n, mut n_denied) = (0, 0);
    for request in case["requests"].as_array().unwrap() {
        let object = namespaced(&request["object"], name);
        let target = target(builtin, &object);
        let path = target
            .path
            .replace("/namespaces/default/", &format!("/namespaces/{name}/"));
        let old = &request["old"];
        let mut asked = json!({"object": object, "userInfo": {"username": "admin", "groups": ["system:masters"]}});
        let response = if old.is_null() {
            post(client, &format!("{path}?dryRun=All"), &object).await
        } else {
            asked["operation"] = json!("UPDATE");
            asked["oldObject"] = namespaced(old, name);
            let of_object = object["metadata"]["name"].as_str().unwrap();
            send(
                client,
                "PUT",
                &format!("{path}/{of_object}?dryRun=All"),
                &object,
            )
            .await
        };
        n += 1;
        n_denied += usize::from(response.status >= 300);
        let (mut passing, mut failing) = expectations(&response);
        if name == "ignored" {
            for expect in [&mut passing, &mut failing] {
                expect["error"] = json!({"contains": "remove"});
            }
        }
        if name == "condition" && response.status < 300 && request["object"]["data"]["size"] == "3"
        {
            passing["applies"] = json!(false);
        }
        for (sort, expect) in [("passes", passing), ("fails", failing)] {
            let name = format!("{sort} {}", before + n);
            cases.push(json!({"name": name, "request": asked, "expect": expect}));
        }
    }
    add(
        &json!({"apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe", "metadata": {"name": name},
        "spec": {"target": {"kind": "MutatingAdmissionPolicy", "name": name}, "cases": cases}}),
    );
    (n, n_denied)
}

/// Returns the cases whose result differs from the result in their name.
fn other_than_expected(report: &TestReport) -> Vec<String> {
    let mut wrong = Vec::new();
    for probe in &report.probes {
        for case in &probe.cases {
            let expected = if case.name.starts_with("passes") {
                CaseOutcome::Passed
            } else {
                CaseOutcome::Failed
            };
            if case.outcome != expected {
                wrong.push(format!(
                    "{}, {}: {:?} {:?}\n{}",
                    probe.name,
                    case.name,
                    case.outcome,
                    case.difference,
                    case.diff.as_deref().unwrap_or_default()
                ));
            }
        }
    }
    wrong
}

/// Runs the plugin on a policy that exists only in the cluster.
fn found_in_the_cluster(control_plane: &ControlPlane, case: &Value) {
    let kubeconfig = control_plane.kubeconfig().unwrap();
    let live = |arguments: &[&str]| -> Value {
        let mut command = Command::new(binary("kubectl-vap").unwrap());
        let command = command.env("KUBECONFIG", &kubeconfig).args(arguments);
        let output = command.output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let object = control_plane.directory().join("object.yaml");
    let written = namespaced(&case["requests"][0]["object"], "label");
    std::fs::write(&object, written.to_string()).unwrap();
    let report = live(&[
        "eval",
        "--live",
        "--object",
        object.to_str().unwrap(),
        "-o",
        "json",
    ]);
    let verdict = |name: &str| {
        let mut policies = report["policies"].as_array().unwrap().iter();
        let of_name = policies.find(|it| it["name"] == name);
        of_name.map(|it| it["verdict"].clone())
    };
    assert_eq!(verdict("label"), Some(json!("Mutated")), "{report}");
    assert_eq!(verdict("sidecar"), Some(json!("NotMatched")), "{report}");
    assert_eq!(
        report["mutated"]["object"]["metadata"]["labels"]["team"],
        "label"
    );
    assert_eq!(report["decision"], "Allow", "{report}");
    let report = live(&["audit", "--live", "-o", "json"]);
    let mut policies = report["policies"].as_array().unwrap().iter();
    let keep = policies.find(|it| it["name"] == "keep").unwrap();
    assert_eq!(
        (&keep["matched"], &keep["changed"]),
        (&json!(1), &json!(1)),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_report_the_same_mutated_object_as_the_api_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutating/cases.yaml");
    let cases = documents(&path).remove(0);
    let cases = cases.as_array().unwrap();
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    installed(&client, cases).await;
    let mut files = String::new();
    let (mut n, mut n_denied) = (0, 0);
    for case in cases {
        let (of_case, denied) = written(&client, case, n, &mut files).await;
        n += of_case;
        n_denied += denied;
    }
    let mut stdin = files.as_bytes();
    let options = Options {
        paths: vec!["-".into()],
        // The version of the control plane.
        version: Some(KubernetesVersion::DEFAULT),
        ..Options::default()
    };
    let report = test::run(&options, &mut stdin).unwrap();
    assert_eq!(report.summary.errors, 0, "{:?}", report.findings);
    let wrong = other_than_expected(&report);
    println!(
        "{n} requests of {} mutating policies, {n_denied} rejected: {} cases, {} different from the server",
        cases.len(),
        report.summary.cases,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n >= 18 && n_denied >= 4, "{n} {n_denied}");
    found_in_the_cluster(&control_plane, &cases[0]);
}
