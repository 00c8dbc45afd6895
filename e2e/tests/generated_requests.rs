//! Sends the requests that `kubectl vap test init` generates to a real API server. Each request reaches its policy and
//! gets the expected decision.
//!
//! All policies are installed together. Each policy applies only to users with the name of the policy in their `extra`.
//! `./dev corpus` also replays the requests for the policies of the corpus. A few of these decisions may differ,
//! because some policies depend on facts that requests do not contain.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use e2e::ControlPlane;
use e2e::controller::repository;
use e2e::response::Response;
use kube::Client;
use parity::corpus;
use serde_json::{Value, json};
use vap_status_controller::cli::test::{Options, init};
use vap_status_controller::schema::Builtin;
use vap_status_controller::version::KubernetesVersion;

use dry_run::{BINDINGS, POLICIES, all_enforced, create, gvk, post, send, send_as, target_of};

#[path = "support/dry_run.rs"]
mod dry_run;

/// The key in the user's `extra`. The value is the name of the policy.
const EXTRA: &str = "vap-replay";

/// The maximum percentage of the corpus's requests whose result is unexpected: the request is rejected before policies
/// are evaluated, or the decision differs.
const MAX_DIFFERENT_PERCENT: usize = 3;

/// The numbers of requests by result.
#[derive(Debug, Default)]
struct Counts {
    agreed: usize,
    /// Requests that a client cannot send unchanged. Examples are subresources, kinds that are not served, terminating
    /// namespaces, and objects that already exist.
    not_sendable: usize,
    rejected: Vec<String>,
    different: Vec<String>,
}

/// A probe and its policy. The name is unique.
struct Replay {
    name: String,
    probe: Value,
}

async fn control_plane() -> ControlPlane {
    let builder = ControlPlane::builder().api_server_arg("--allow-privileged=true");
    let control_plane = builder.start().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let priority = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "example"},
        "value": 0});
    create(
        &client,
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        &priority,
    )
    .await;
    let runtime = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "example"},
        "handler": "example"});
    create(&client, "/apis/node.k8s.io/v1/runtimeclasses", &runtime).await;
    control_plane
}

/// Removes fields that the API server sets.
fn sent(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for set in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(set);
        }
    }
    object
}

/// Returns the policies with a unique name and without a paramKind, by name.
fn policies(paths: &[PathBuf]) -> BTreeMap<String, Value> {
    let mut by_name: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for path in paths {
        for policy in corpus::policies(path).unwrap() {
            let policy = serde_json::to_value(&policy).unwrap();
            let name = policy["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            by_name.entry(name).or_default().push(policy);
        }
    }
    let single = by_name.into_iter().filter(|(_, all)| all.len() == 1);
    let single = single.map(|(name, mut all)| (name, all.remove(0)));
    single
        .filter(|(_, policy)| policy["spec"]["paramKind"].is_null())
        .collect()
}

/// Installs the policies of the probes. Policies that the API server rejects are omitted.
async fn install(
    client: &Client,
    probes: &[Value],
    policies: &BTreeMap<String, Value>,
) -> Vec<Replay> {
    let mut replays = Vec::new();
    for (n, probe) in probes.iter().enumerate() {
        let Some(policy) = policies.get(probe["spec"]["policyName"].as_str().unwrap()) else {
            continue;
        };
        let name = format!("replay-{n}");
        let mut policy = policy.clone();
        policy["apiVersion"] = json!("admissionregistration.k8s.io/v1");
        policy["kind"] = json!("ValidatingAdmissionPolicy");
        policy["metadata"] = json!({"name": name});
        policy.as_object_mut().unwrap().remove("status");
        let mut conditions = policy["spec"]["matchConditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions.push(json!({"name": EXTRA, "expression": format!(
            "has(request.userInfo.extra) && '{EXTRA}' in request.userInfo.extra && '{name}' in \
             request.userInfo.extra['{EXTRA}']")}));
        policy["spec"]["matchConditions"] = json!(conditions);
        if post(client, POLICIES, &policy).await.status != 201 {
            continue;
        }
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        });
        create(client, BINDINGS, &binding).await;
        replays.push(Replay {
            name,
            probe: probe.clone(),
        });
    }
    all_enforced(client, "replay-all").await;
    replays
}

/// Sets the labels and annotations of a namespace to those in the case.
async fn namespace(client: &Client, name: &str, given: &Value) {
    let path = format!("/api/v1/namespaces/{name}");
    let mut current = send(client, "GET", &path, &Value::Null).await.body;
    if current["kind"] != "Namespace" {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        current = create(client, "/api/v1/namespaces", &object).await;
    } else if given.is_null() {
        return;
    }
    for field in ["labels", "annotations"] {
        current["metadata"][field] = given["metadata"][field].clone();
    }
    current["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    send(client, "PUT", &path, &current).await;
    // The API server reads namespaces from a watch cache with a delay.
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// Returns headers that impersonate the user of a request. The `extra` contains the policy, so that only this policy
/// applies.
fn user(replay: &Replay, request: &Value) -> Vec<(String, String)> {
    let info = &request["userInfo"];
    let name = info["username"].as_str().unwrap_or("example");
    let mut headers = vec![
        ("impersonate-user".to_owned(), name.to_owned()),
        ("impersonate-group".to_owned(), "system:masters".to_owned()),
        (format!("impersonate-extra-{EXTRA}"), replay.name.clone()),
    ];
    for group in info["groups"].as_array().into_iter().flatten() {
        headers.push((
            "impersonate-group".to_owned(),
            group.as_str().unwrap().to_owned(),
        ));
    }
    headers
}

/// Creates the object `one` at `path`. Ephemeral containers are added afterwards through their subresource, because a
/// new Pod must not have any.
async fn stored(client: &Client, (path, one): (&str, &str), mut object: Value) -> Response {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let ephemeral = spec.and_then(|spec| spec.remove("ephemeralContainers"));
    let created = post(client, path, &object).await;
    let Some(ephemeral) = ephemeral.filter(|_| created.status == 201) else {
        return created;
    };
    let mut pod = created.body;
    pod["spec"]["ephemeralContainers"] = ephemeral;
    send(client, "PUT", &format!("{one}/ephemeralcontainers"), &pod).await
}

/// Sends the request of a case. Returns `None` if a client cannot send the request unchanged.
async fn ask(
    client: &Client,
    builtin: &Builtin,
    replay: &Replay,
    case: &Value,
) -> Option<Response> {
    let request = &case["request"];
    let operation = request["operation"].as_str().unwrap_or("CREATE");
    let (object, old) = (&request["object"], &request["oldObject"]);
    let main = if object.is_null() { old } else { object };
    // All namespaces in this test are active, so requests that need a different phase cannot be sent.
    let phase = request["namespaceObject"]["status"]["phase"].as_str();
    if phase.is_some_and(|phase| phase != "Active") {
        return None;
    }
    if operation == "CONNECT" || !request["subResource"].is_null() || main.is_null() {
        return None;
    }
    let gvk = gvk(main);
    let mut resources = builtin.resources().iter();
    let served = resources.find(|it| it.gvk == gvk && !it.gvr.is_subresource())?;
    let target = target_of(gvk, &served.gvr.resource, served.namespaced);
    let mut path = target.path.clone();
    // If the request creates a Namespace, the Namespace must not exist yet.
    if served.namespaced {
        let name = main["metadata"]["namespace"].as_str().unwrap_or("default");
        namespace(client, name, &request["namespaceObject"]).await;
        path = path.replace("/namespaces/default/", &format!("/namespaces/{name}/"));
    }
    let query = "fieldValidation=Strict&dryRun=All";
    let headers = user(replay, request);
    if operation == "CREATE" {
        let response = send_as(
            client,
            "POST",
            &format!("{path}?{query}"),
            &sent(object),
            &headers,
        )
        .await;
        return (response.status != 409).then_some(response);
    }
    let one = format!("{path}/{}", old["metadata"]["name"].as_str().unwrap());
    let created = stored(client, (&path, &one), sent(old)).await;
    if created.status == 409 {
        return None;
    } else if ![200, 201].contains(&created.status) {
        return Some(created);
    }
    let response = if operation == "DELETE" {
        send_as(
            client,
            "DELETE",
            &format!("{one}?dryRun=All"),
            &Value::Null,
            &headers,
        )
        .await
    } else {
        let mut object = sent(object);
        object["metadata"]["resourceVersion"] = created.body["metadata"]["resourceVersion"].clone();
        send_as(client, "PUT", &format!("{one}?{query}"), &object, &headers).await
    };
    let now = format!("{one}?gracePeriodSeconds=0&propagationPolicy=Background");
    send(client, "DELETE", &now, &Value::Null).await;
    Some(response)
}

async fn replay(paths: Vec<PathBuf>, crds: Vec<PathBuf>) -> Counts {
    let control_plane = control_plane().await;
    let client = control_plane.client().await.unwrap();
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let policies = policies(&paths);
    let options = Options {
        paths,
        crds,
        ..Options::default()
    };
    let report = init::run(&options, &mut std::io::empty()).unwrap();
    let replays = install(&client, &report.probes, &policies).await;
    let mut counts = Counts::default();
    for replay in &replays {
        for case in replay.probe["spec"]["cases"].as_array().unwrap() {
            let Some(response) = ask(&client, builtin, replay, case).await else {
                counts.not_sendable += 1;
                continue;
            };
            let policy = &replay.probe["spec"]["policyName"];
            let text = format!(
                "{policy} {}: {} {}",
                case["name"],
                response.status,
                response.message()
            );
            let is_denied = response.message().contains(&format!("'{}'", replay.name));
            if !response.is_decided() {
                counts.rejected.push(text);
            } else if is_denied == (case["expect"]["decision"] == "Deny") {
                counts.agreed += 1;
            } else {
                counts.different.push(text);
            }
        }
    }
    println!(
        "{} policies; requests: {} decided as the cases expect, {} rejected before the evaluation of policies, {} decided differently, {} \
         passed over\n{}\n{}",
        replays.len(),
        counts.agreed,
        counts.rejected.len(),
        counts.different.len(),
        counts.not_sendable,
        counts.rejected.join("\n"),
        counts.different.join("\n")
    );
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_requests_reach_policies_of_the_repository() {
    let folder = repository();
    let paths = ["config/samples", "parity/policies"].map(|name| folder.join(name));
    let counts = replay(paths.to_vec(), Vec::new()).await;
    assert!(counts.rejected.is_empty(), "{:#?}", counts.rejected);
    assert!(counts.different.is_empty(), "{:#?}", counts.different);
    assert!(counts.agreed >= 10, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "requires the corpus in VAP_CORPUS_DIR; `./dev corpus` runs this test"]
async fn generated_requests_reach_policies_of_the_corpus() {
    let corpus = corpus::directory().unwrap();
    let counts = replay(vec![corpus.join("policies")], vec![corpus.join("crds")]).await;
    let n_different = counts.rejected.len() + counts.different.len();
    assert!(counts.agreed >= 100, "{counts:?}");
    assert!(
        n_different * 100 <= (counts.agreed + n_different) * MAX_DIFFERENT_PERCENT,
        "{counts:#?}"
    );
}
