//! Replays external suites and recorded decisions, which are not in the repository. `./dev suites` runs these tests,
//! and plain `cargo test` excludes them. A test fails if its variable is not set.
//!
//! `VAP_SUITES_DIR` is a directory with copies of repositories: kaptest, kat, Kyverno and gatekeeper-library, or some
//! of them. Each case of a suite is sent to an API server, as a dry run if possible. The converted probe must have the
//! same result as the API server, even if the suite expects a different result. Each deviation from the suite must have
//! a known reason.
//!
//! `VAP_DECISIONS` is a file with decisions of an API server, one per line.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use e2e::controller::control_plane;
use e2e::response::Response;
use kube::Client;
use serde_json::{Value, json};
use vap_status_controller::cli::input::values;
use vap_status_controller::cli::test::convert::{self, ConvertOptions};
use vap_status_controller::cli::test::report::{CaseReport, TestReport};
use vap_status_controller::cli::test::{self, Options};
use vap_status_controller::probe::api::CaseOutcome;
use vap_status_controller::schema::Builtin;
use vap_status_controller::version::KubernetesVersion;

use dry_run::{BINDINGS, POLICIES, TIMEOUT, all_enforced, post, send, send_as, target};

#[path = "support/dry_run.rs"]
mod dry_run;

fn variable(name: &str) -> PathBuf {
    let value = std::env::var_os(name);
    PathBuf::from(value.unwrap_or_else(|| panic!("set {name}")))
}

fn tested(text: &str) -> TestReport {
    let options = Options {
        paths: vec![PathBuf::from("-")],
        // The version of the control plane.
        version: Some(KubernetesVersion::DEFAULT),
        ..Options::default()
    };
    test::run(&options, &mut text.as_bytes()).unwrap()
}

/// Collects the suites in a directory recursively, in alphabetical order.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let is_suite = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["kaptest.yaml", "kyverno-test.yaml", "suite.yaml"].contains(&&*name)
    };
    let has_policy = paths.iter().any(|path| path.ends_with("policy.yaml"));
    if has_policy && paths.iter().any(|path| path.ends_with("tests")) {
        found.push(folder.to_owned());
        return;
    }
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') {
            below(&path, found);
        } else if is_suite(&path) {
            found.push(path);
        }
    }
}

/// The result of comparing the expectation of a suite with the API server's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The API server and the probe have the result that the suite expects.
    AsStated,
    /// The API server rejects the policy, a binding or a param.
    PolicyRefused,
    /// The API server rejects the object, but not because of a policy.
    ObjectRefused,
    /// The decision of the API server differs from the expectation.
    DecidedOtherwise,
    /// The API server's response is as expected, but the API server does not evaluate the policy. The probe reports
    /// that the policy does not apply.
    DoesNotApply,
    /// The request cannot be sent, because its kind is not served or its operation is CONNECT.
    NotAsked,
}

struct Suite {
    name: String,
    documents: Vec<Value>,
    report: TestReport,
}

fn converted(path: &Path, root: &Path) -> Option<Suite> {
    let options = ConvertOptions {
        suite: path.to_owned(),
        with_policies: true,
        ..ConvertOptions::default()
    };
    let converted = convert::run(&options).unwrap();
    let name = path.strip_prefix(root).unwrap().display().to_string();
    assert!(
        converted.problem.is_none(),
        "{name}: {:?}",
        converted.problem
    );
    for line in converted.diagnostics() {
        if line.starts_with("warning") {
            println!(
                "not said: {}",
                line.replace(&root.display().to_string(), "")
            );
        }
    }
    if converted.probes.is_empty() {
        return None;
    }
    let text = converted.yaml().unwrap();
    let documents = values(&text)
        .into_iter()
        .map(Result::unwrap)
        .filter(|document: &Value| document.is_object())
        .collect();
    Some(Suite {
        name,
        documents,
        report: tested(&text),
    })
}

/// Renames the policy of a suite, and the references to the policy. The new name is unique among all suites.
fn renamed(suite: &Suite, number: usize) -> (Vec<Value>, Vec<Value>) {
    let name = |given: &str| format!("s{number}-{given}");
    let (mut objects, mut probes) = (Vec::new(), Vec::new());
    for document in &suite.documents {
        let mut document = document.clone();
        let given = document["metadata"]["name"].as_str().unwrap_or_default();
        let given = name(given);
        let policy = document["spec"]["policyName"].as_str().map(name);
        match document["kind"].as_str().unwrap_or_default() {
            "ValidatingAdmissionPolicy" => {
                document["metadata"]["name"] = json!(given);
                objects.push(document);
            }
            "ValidatingAdmissionPolicyBinding" => {
                document["metadata"]["name"] = json!(given);
                document["spec"]["policyName"] = json!(policy.unwrap());
                objects.push(document);
            }
            "PolicyProbe" => {
                document["spec"]["policyName"] = json!(policy.unwrap());
                probes.push(document);
            }
            _ => {}
        }
    }
    (objects, probes)
}

/// Returns the HTTP method, the path and the body for a request of a probe.
fn sent(builtin: &Builtin, request: &Value) -> Option<(&'static str, String, Value)> {
    let operation = request["operation"].as_str().unwrap_or("CREATE");
    if operation == "CONNECT" {
        return None;
    }
    let object = if operation == "DELETE" {
        &request["oldObject"]
    } else {
        &request["object"]
    };
    let api_version = object["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_served = builtin.resources().iter().any(|served| {
        &*served.gvk.group == group
            && &*served.gvk.version == version
            && served.gvk.kind == object["kind"].as_str().unwrap_or_default()
    });
    if !is_served {
        return None;
    }
    let target = target(builtin, object);
    let namespace = request["namespace"].as_str();
    let namespace = namespace.or(object["metadata"]["namespace"].as_str());
    let path = target.path.replace(
        "/namespaces/default",
        &format!("/namespaces/{}", namespace.unwrap_or("default")),
    );
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match operation {
        "CREATE" => Some(("POST", format!("{path}?dryRun=All"), object.clone())),
        "UPDATE" => Some(("PUT", format!("{path}/{name}?dryRun=All"), object.clone())),
        _ => Some(("DELETE", format!("{path}/{name}?dryRun=All"), Value::Null)),
    }
}

/// The apiVersion of Gatekeeper constraints.
const CONSTRAINTS: &str = "constraints.gatekeeper.sh/v1beta1";

/// Installs the CRD of a constraint kind, as Gatekeeper does. Returns the URL path of the constraints.
async fn served(client: &Client, kind: &str) -> String {
    let plural = kind.to_lowercase();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.constraints.gatekeeper.sh")},
        "spec": {
            "group": "constraints.gatekeeper.sh", "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    post(
        client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &crd,
    )
    .await;
    let path = format!("/apis/{CONSTRAINTS}/{plural}");
    let deadline = Instant::now() + TIMEOUT;
    while send(client, "GET", &path, &Value::Null).await.status != 200 {
        assert!(Instant::now() < deadline, "{path}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    path
}

/// Creates the objects that a request requires: its namespace with labels, and the old object.
async fn prepare(client: &Client, builtin: &Builtin, request: &Value) {
    let namespace = &request["namespaceObject"];
    let object = request.get("object").or(request.get("oldObject")).unwrap();
    let name = request["namespace"].as_str();
    let name = name
        .or(object["metadata"]["namespace"].as_str())
        .unwrap_or("default");
    let mut wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    for field in ["labels", "annotations"] {
        if let Some(value) = namespace["metadata"].get(field) {
            wanted["metadata"][field] = value.clone();
        }
    }
    let path = "/api/v1/namespaces";
    if post(client, path, &wanted).await.status == 409 {
        let response = send(client, "PUT", &format!("{path}/{name}"), &wanted).await;
        assert!(response.status < 300, "{response:?}");
    }
    if let Some(old) = request.get("oldObject") {
        let create = json!({"operation": "CREATE", "object": old, "namespace": name});
        if let Some((_, path, body)) = sent(builtin, &create) {
            let path = path.trim_end_matches("?dryRun=All");
            if post(client, path, &body).await.status == 409 {
                // An earlier case created the object with different fields.
                let name = old["metadata"]["name"].as_str().unwrap();
                let named = format!("{path}/{name}");
                if old["kind"] == "Namespace" {
                    send(client, "PUT", &named, &body).await;
                } else {
                    send(client, "DELETE", &named, &Value::Null).await;
                    post(client, path, &body).await;
                }
            }
        }
    }
}

/// Returns headers that impersonate the user of a request.
fn user(request: &Value) -> Vec<(String, String)> {
    let user = &request["userInfo"];
    let Some(name) = user["username"].as_str() else {
        return Vec::new();
    };
    let mut headers = vec![("Impersonate-User".to_owned(), name.to_owned())];
    // With all permissions, authorization never rejects the request before policies are evaluated.
    let groups = user["groups"].as_array().into_iter().flatten();
    let groups = groups.filter_map(Value::as_str).chain(["system:masters"]);
    headers.extend(groups.map(|group| ("Impersonate-Group".to_owned(), group.to_owned())));
    headers
}

/// Returns true if the response is the one that the case expects.
fn is_met(expect: &Value, response: &Response, policy: &str) -> bool {
    let is_ours = response.message().contains(&format!("'{policy}'"));
    let is_error = is_ours
        && (response.message().contains("resulted in error")
            || response.message().contains("failed to configure"));
    let is_denied = is_ours && !is_error;
    if expect.get("error").is_some() {
        return is_error;
    }
    let message = expect["message"].as_str();
    match expect["decision"].as_str() {
        Some("Deny") => is_denied && message.is_none_or(|text| response.message().contains(text)),
        _ => response.status < 300,
    }
}

/// For each case of each suite, the probe has the same result as the API server.
#[tokio::test(flavor = "multi_thread")]
async fn suites_decide_like_the_api_server() {
    let root = variable("VAP_SUITES_DIR");
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let mut paths = Vec::new();
    below(&root, &mut paths);
    let mut verdicts: BTreeMap<(String, Verdict), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let suites: Vec<Suite> = paths
        .iter()
        .filter_map(|path| converted(path, &root))
        .collect();
    for document in suites.iter().flat_map(|suite| &suite.documents) {
        let kind = &document["spec"]["paramKind"];
        if kind["apiVersion"] == CONSTRAINTS {
            served(&client, kind["kind"].as_str().unwrap()).await;
        }
    }
    for (number, suite) in suites.iter().enumerate() {
        let of = suite.name.split('/').next().unwrap().to_owned();
        let (objects, probes) = renamed(suite, number);
        let mut cases: Vec<&CaseReport> = suite
            .report
            .probes
            .iter()
            .flat_map(|it| &it.cases)
            .collect();
        cases.reverse();
        for (n, probe) in probes.iter().enumerate() {
            let policy = probe["spec"]["policyName"].as_str().unwrap();
            let is_of_policy = |object: &&Value| {
                object["metadata"]["name"] == json!(policy)
                    || object["spec"]["policyName"] == json!(policy)
            };
            let mut created: Vec<(String, String)> = Vec::new();
            let mut is_rejected = false;
            let mut all: Vec<Value> = objects.iter().filter(is_of_policy).cloned().collect();
            let specs = match probe["spec"]["bindings"].as_str() {
                Some("Inline") => probe["spec"]["inlineBindings"].as_array().cloned().unwrap(),
                Some("Implied") => vec![json!({"validationActions": ["Deny"]})],
                _ => Vec::new(),
            };
            if !specs.is_empty() {
                all.retain(|object| object["kind"] == "ValidatingAdmissionPolicy");
            }
            for (k, mut spec) in specs.into_iter().enumerate() {
                spec["policyName"] = json!(policy);
                all.push(json!({"apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "ValidatingAdmissionPolicyBinding",
                    "metadata": {"name": format!("{policy}-{n}-{k}")}, "spec": spec}));
            }
            let param_kind = all.iter().find_map(|it| it["spec"].get("paramKind"));
            let constraints = param_kind
                .filter(|it| it["apiVersion"] == CONSTRAINTS)
                .cloned();
            // Other custom params have no CRD, so they cannot be served.
            let is_custom =
                constraints.is_none() && param_kind.is_some_and(|it| it["kind"] != "ConfigMap");
            for param in probe["spec"]["inlineParams"]
                .as_array()
                .into_iter()
                .flatten()
            {
                if is_custom {
                    break;
                }
                let request = json!({"object": param});
                let (path, body) = if let Some(kind) = &constraints {
                    (
                        served(&client, kind["kind"].as_str().unwrap()).await,
                        param.clone(),
                    )
                } else {
                    prepare(&client, builtin, &request).await;
                    let (_, path, body) = sent(builtin, &request).unwrap();
                    (path.trim_end_matches("?dryRun=All").to_owned(), body)
                };
                let response = post(&client, &path, &body).await;
                is_rejected |= response.status >= 300 && response.status != 409;
                let name = param["metadata"]["name"].as_str().unwrap().to_owned();
                created.push((path, name));
            }
            for object in &all {
                let path = if object["kind"] == "ValidatingAdmissionPolicy" {
                    POLICIES
                } else {
                    BINDINGS
                };
                let mut object = object.clone();
                object["apiVersion"] = json!("admissionregistration.k8s.io/v1");
                let response = post(&client, path, &object).await;
                is_rejected |= response.status >= 300;
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                created.push((path.to_owned(), name));
            }
            if !is_rejected {
                all_enforced(&client, &format!("last-{number}-{n}")).await;
            }
            for case in probe["spec"]["cases"].as_array().unwrap() {
                let case_result = cases.pop().unwrap();
                let request = &case["request"];
                let passed = case_result.outcome == CaseOutcome::Passed;
                let to = sent(builtin, request);
                let verdict = if is_rejected {
                    Verdict::PolicyRefused
                } else if is_custom {
                    Verdict::NotAsked
                } else if let Some((verb, path, body)) = to {
                    prepare(&client, builtin, request).await;
                    let deadline = Instant::now() + TIMEOUT;
                    let response = loop {
                        let response = send_as(&client, verb, &path, &body, &user(request)).await;
                        // The API server discovers a new paramKind with a delay.
                        let message = response.message();
                        let is_early =
                            message.contains("paramKind") || message.contains("not yet synced");
                        if !is_early || Instant::now() > deadline {
                            break response;
                        }
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    };
                    if !response.is_decided() {
                        Verdict::ObjectRefused
                    } else if is_met(&case["expect"], &response, policy) {
                        let why = case_result.difference.as_deref().unwrap_or_default();
                        let is_asked = !why.starts_with("the policy does not apply");
                        if is_asked || response.status >= 300 {
                            Verdict::AsStated
                        } else {
                            Verdict::DoesNotApply
                        }
                    } else {
                        Verdict::DecidedOtherwise
                    }
                } else {
                    Verdict::NotAsked
                };
                let is_right = match verdict {
                    Verdict::AsStated => passed,
                    Verdict::PolicyRefused | Verdict::DecidedOtherwise | Verdict::DoesNotApply => {
                        !passed
                    }
                    // The API server made no decision. The probe decides even about incomplete objects, so there is
                    // nothing to compare.
                    Verdict::ObjectRefused | Verdict::NotAsked => true,
                };
                let line = format!(
                    "{} {}: {verdict:?}, {:?} {:?}",
                    suite.name, case_result.name, case_result.outcome, case_result.difference
                );
                if !is_right {
                    wrong.push(line);
                } else if verdict != Verdict::AsStated {
                    println!("{line}");
                }
                let stated = if passed { "as stated" } else { "otherwise" };
                *verdicts
                    .entry((format!("{of}, probe {stated}"), verdict))
                    .or_default() += 1;
            }
            for (path, name) in created {
                send(&client, "DELETE", &format!("{path}/{name}"), &Value::Null).await;
            }
        }
    }
    for ((of, verdict), n) in &verdicts {
        println!("{n:4} {of}, API server {verdict:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(verdicts.values().sum::<usize>() >= 50);
}

/// Reproduces the decisions in a file. A line has the form `{name, operation, policy, binding, object, oldObject,
/// status, message}`. The decisions are from dry runs of the user `ann`.
#[test]
fn recorded_decisions_are_reproduced() {
    let text = std::fs::read_to_string(variable("VAP_DECISIONS")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    let decisions: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut n = 0;
    let mut wrong = Vec::new();
    for decision in &decisions {
        let line = decision.to_string();
        // All policies were enforced during the recording. The message contains the policy that made the decision.
        let message = decision["message"].as_str().unwrap_or_default();
        let is_asked = |it: &&Value| {
            let name = it["policy"]["metadata"]["name"].as_str().unwrap();
            message.contains(&format!("ValidatingAdmissionPolicy '{name}'"))
        };
        let asked = decisions.iter().find(is_asked).unwrap_or(decision);
        let policy = &asked["policy"];
        let name = &policy["metadata"]["name"];
        let mut binding = asked["binding"].clone();
        binding["policyName"] = name.clone();
        let mut request = json!({"operation": decision["operation"], "dryRun": true,
            "userInfo": {"username": "ann"}});
        for field in ["object", "oldObject"] {
            if !decision[field].is_null() {
                request[field] = decision[field].clone();
            }
        }
        let cause = message
            .split_once("denied request: ")
            .map(|(_, cause)| cause);
        let expect = match cause {
            Some(cause) if cause.contains("' resulted in error: ") => {
                json!({"decision": "Deny", "error": {"text": cause}})
            }
            Some(cause) => json!({"decision": "Deny", "message": cause}),
            None => json!({"decision": "Allow"}),
        };
        let allows = decision["status"].as_u64().unwrap() < 300;
        assert_eq!(allows, cause.is_none(), "{line}");
        let probe = json!({"apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
            "metadata": {"name": name}, "spec": {"policyName": name, "bindings": "Inline",
            "inlineBindings": [binding], "cases": [{"name": "as it was", "request": request, "expect": expect}]}});
        let report = tested(&format!("{policy}\n---\n{probe}"));
        let cases: Vec<&CaseReport> = report.probes.iter().flat_map(|it| &it.cases).collect();
        // `cause` is `None` if the API server allowed the request, possibly because the policy does not match it. If
        // so, the probe fails even if its decision is the same. Therefore the decision is compared.
        let is_met = |case: &&CaseReport| match cause {
            Some(_) => case.outcome == CaseOutcome::Passed,
            None => case.decision == Some("Allow") && case.errors.is_empty(),
        };
        let passed = cases.len() == 1 && cases.iter().all(is_met);
        n += 1;
        if !passed {
            wrong.push(format!(
                "{name}: {:?} {:?}",
                report.findings,
                cases.first().map(|it| &it.difference)
            ));
        }
    }
    println!("{n} decisions, {} of them not reproduced", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n > 0);
}
