//! Compares the evaluator with a real API server. Each probe must have the same result as a dry run of its request.

#![allow(
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::time::{Duration, Instant};

use e2e::controller::{
    Controller, control_plane, grant_access_reviews, grant_params, install_probes, repository,
};
use e2e::response::Response;
use http::Request;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};
use vap_status_controller::cli::input::values;
use vap_status_controller::probe::api::{CaseOutcome, Decision, PolicyProbe};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The minimum numbers of requests and policies. Without them, the test would pass even if requests were dropped.
const LEAST: (usize, usize) = (60, 20);

#[derive(Debug, Deserialize)]
struct Group {
    name: String,
    spec: Value,
    #[serde(default)]
    bindings: Vec<Value>,
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    authorizer: Option<String>,
    requests: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct Sample {
    name: String,
    #[serde(default = "create")]
    operation: String,
    object: Value,
}

fn create() -> String {
    "CREATE".to_owned()
}

fn groups() -> Vec<Group> {
    let path = repository().join("e2e/admission/cases.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    values(&text)
        .into_iter()
        .map(|document| serde_json::from_value(document.unwrap()).unwrap())
        .collect()
}

impl Group {
    fn namespace(&self) -> String {
        format!("of-{}", self.name)
    }

    fn config_map(&self, object: &Value) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("ConfigMap");
        object["metadata"]["namespace"] = json!(self.namespace());
        object
    }

    fn policy(&self) -> ValidatingAdmissionPolicy {
        let mut spec = self.spec.clone();
        if spec.get("matchConstraints").is_none() {
            spec["matchConstraints"] = json!({"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["configmaps"]}]});
        }
        serde_json::from_value(json!({"metadata": {"name": self.name}, "spec": spec})).unwrap()
    }

    fn bindings(&self) -> Vec<ValidatingAdmissionPolicyBinding> {
        let mut specs = self.bindings.clone();
        if specs.is_empty() {
            specs.push(json!({"validationActions": ["Deny"]}));
        }
        let binding = |(n, mut spec): (usize, Value)| {
            spec["policyName"] = json!(self.name);
            spec["matchResources"]["namespaceSelector"] =
                json!({"matchLabels": {"kubernetes.io/metadata.name": self.namespace()}});
            let name = format!("{}-{n}", self.name);
            let annotations = json!({"vap-status.dev/probe-inputs": "FromCluster"});
            let metadata = json!({"name": name, "annotations": annotations});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        specs.into_iter().enumerate().map(binding).collect()
    }
}

/// Returns true if the policy under test denied the request.
fn is_denied(response: &Response) -> bool {
    let message = response.message();
    message.contains("denied request: ") || message.contains("failed to configure")
}

async fn dry_run(client: &Client, group: &Group, sample: &Sample) -> Response {
    let object = group.config_map(&sample.object);
    let of = format!("/api/v1/namespaces/{}/configmaps", group.namespace());
    let name = object["metadata"]["name"].as_str().unwrap();
    let (method, path, body) = match sample.operation.as_str() {
        "CREATE" => ("POST", of, object.to_string()),
        "UPDATE" => ("PUT", format!("{of}/{name}"), object.to_string()),
        "DELETE" => ("DELETE", format!("{of}/{name}"), String::new()),
        other => panic!("{other}"),
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("{path}?dryRun=All"))
        .header("content-type", "application/json")
        .body(kube::client::Body::from(body.into_bytes()))
        .unwrap();
    Response::send(client, request).await.unwrap()
}

/// Parts of the API server's messages that indicate an error of the API server or of an expression.
const ERRORS: [&str; 7] = [
    "resulted in error: ",
    "failed to configure ",
    "no params found for policy binding",
    "running out of cost budget",
    "compilation error",
    "unsupported return type",
    "failed messageExpression",
];

fn expectation(response: &Response) -> Value {
    if !is_denied(response) {
        assert!(response.status < 300, "{response:?}");
        return json!({"decision": "Allow", "warnings": response.warnings});
    }
    let message = response.message();
    let cause = message
        .split_once("denied request: ")
        .map_or(message, |(_, cause)| cause);
    let mut expectation = json!({
        "decision": "Deny",
        "message": cause,
        "reason": response.body["reason"],
        "warnings": response.warnings,
    });
    if ERRORS.iter().any(|error| message.contains(error)) {
        expectation["error"] = json!({"contains": cause});
    }
    expectation
}

async fn probe(
    client: &Client,
    group: &Group,
    user: &Value,
    responses: &[(usize, Response)],
) -> PolicyProbe {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &group.namespace());
    let mut cases = Vec::new();
    for (n, response) in responses {
        let sample = &group.requests[*n];
        let object = group.config_map(&sample.object);
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut request = json!({
            "operation": sample.operation,
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "dryRun": true,
            "namespace": group.namespace(),
            "userInfo": user,
        });
        if sample.operation != "CREATE" {
            let mut old = serde_json::to_value(maps.get(name).await.unwrap()).unwrap();
            old["apiVersion"] = json!("v1");
            old["kind"] = json!("ConfigMap");
            request["oldObject"] = old;
            request["name"] = json!(name);
        }
        if sample.operation != "DELETE" {
            request["object"] = object;
        }
        cases.push(json!({
            "name": sample.name, "request": request, "expect": expectation(response),
        }));
    }
    let mut spec = json!({"policyName": group.name, "cases": cases});
    if let Some(authorizer) = &group.authorizer {
        spec["authorizer"] = json!(authorizer);
    }
    serde_json::from_value(json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
        "metadata": {"name": group.name}, "spec": spec,
    }))
    .unwrap()
}

async fn user(client: &Client) -> Value {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .unwrap();
    let response: Value = client.request(request).await.unwrap();
    let mut user = response["status"]["userInfo"].clone();
    user.as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    user
}

async fn install(client: &Client, group: &Group) {
    let create = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace =
        serde_json::from_value(json!({"metadata": {"name": group.namespace()}})).unwrap();
    namespaces.create(&create, &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &group.namespace());
    for object in &group.objects {
        let object = serde_json::from_value(group.config_map(object)).unwrap();
        maps.create(&create, &object).await.unwrap();
    }
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    policies.create(&create, &group.policy()).await.unwrap();
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    for binding in group.bindings() {
        bindings.create(&create, &binding).await.unwrap();
    }
}

/// Waits until the API server enforces the policy: a request is denied or has a warning.
async fn enforced(client: &Client, group: &Group) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        for sample in &group.requests {
            let response = dry_run(client, group, sample).await;
            let is_settled = !response.message().contains("not yet synced");
            if is_settled && (is_denied(&response) || !response.warnings.is_empty()) {
                return;
            }
        }
        assert!(
            Instant::now() < deadline,
            "{}: no request is denied or warned about",
            group.name
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Returns the responses to all requests after they are unchanged for more than a second. The API server polls bindings
/// and params once per second.
async fn settled(client: &Client, group: &Group) -> Vec<(usize, Response)> {
    let deadline = Instant::now() + TIMEOUT;
    let mut before = None;
    loop {
        let mut responses = Vec::new();
        for (n, sample) in group.requests.iter().enumerate() {
            responses.push((n, dry_run(client, group, sample).await));
        }
        // The UID is not compared, because it differs in each dry run.
        let decided = responses.iter().map(|(_, response)| {
            (
                response.status,
                response.message().to_owned(),
                response.warnings.clone(),
            )
        });
        let decided: Vec<_> = decided.collect();
        if before.as_ref() == Some(&decided) {
            return responses;
        }
        assert!(
            Instant::now() < deadline,
            "{}: the responses keep changing: {responses:?}",
            group.name
        );
        before = Some(decided);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_decide_like_the_api_server() {
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    install_probes(&client).await.unwrap();
    grant_params(&control_plane).unwrap();
    grant_access_reviews(&control_plane).unwrap();
    let controller = Controller::start(&control_plane, &[]).await.unwrap();
    let user = user(&client).await;

    let groups = groups();
    let n_requests: usize = groups.iter().map(|group| group.requests.len()).sum();
    assert!(
        n_requests >= LEAST.0 && groups.len() >= LEAST.1,
        "{n_requests} requests over {} policies",
        groups.len()
    );
    for group in &groups {
        install(&client, group).await;
    }
    let probes: Api<PolicyProbe> = Api::all(client.clone());
    let mut n_denied = 0;
    for group in &groups {
        enforced(&client, group).await;
        let responses = settled(&client, group).await;
        n_denied += responses
            .iter()
            .filter(|(_, response)| is_denied(response))
            .count();
        let probe = probe(&client, group, &user, &responses).await;
        probes.create(&PostParams::default(), &probe).await.unwrap();
    }
    assert!(n_denied > 30, "only {n_denied} requests are denied");

    let mut differences = Vec::new();
    for group in &groups {
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            let probe = probes.get(&group.name).await.unwrap();
            if let Some(status) = probe.status
                && !status
                    .cases
                    .iter()
                    .any(|case| case.outcome == CaseOutcome::Pending)
            {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "{}: not evaluated: {:?}",
                group.name,
                probes.get(&group.name).await.unwrap().status
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert_eq!(status.cases.len(), group.requests.len());
        for case in status.cases {
            // The response does not show whether the policy applied, or whether failurePolicy ignored an error.
            let difference = case.difference.as_deref().unwrap_or_default();
            let is_not_shown = case.decision == Some(Decision::Allow)
                && (difference.starts_with("the policy does not apply")
                    || difference.starts_with("the policy failed, but the request is not denied"));
            if case.outcome != CaseOutcome::Passed && !is_not_shown {
                differences.push(format!(
                    "{}, {:?}: {:?}",
                    group.name, case.name, case.difference
                ));
            }
        }
    }
    println!(
        "{n_requests} requests over {} policies, {n_denied} denied, {} decided otherwise",
        groups.len(),
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    controller.finish().await.unwrap();
}
