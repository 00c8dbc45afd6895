//! Sends requests to an API server, mostly dry runs, and builds probes that expect the responses.

#![allow(dead_code, reason = "each test uses only a part of this module")]

use std::time::{Duration, Instant};

use e2e::response::Response;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use vap_status_controller::cli::input::values;
use vap_status_controller::schema::{Builtin, Gvk};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

pub(crate) const POLICIES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

pub(crate) const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Fields that an API server generates, or sets from its configuration.
const SET_BY_SERVER: [&str; 16] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "managedFields",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "nodePort",
    "healthCheckNodePort",
    "lastPhaseTransitionTime",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
    "time",
    "name",
    "batch.kubernetes.io/job-name",
];

pub(crate) fn documents(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    values(&text).into_iter().map(Result::unwrap).collect()
}

/// A kind, and the URL path of its objects.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) gvk: Gvk,
    pub(crate) resource: String,
    pub(crate) path: String,
}

/// Returns the kind and path for an object of a built-in kind.
pub(crate) fn target(builtin: &Builtin, object: &Value) -> Target {
    let gvk = gvk(object);
    let served = builtin
        .resources()
        .iter()
        .find(|served| served.gvk == gvk && !served.gvr.is_subresource())
        .unwrap_or_else(|| panic!("{gvk:?}"));
    target_of(gvk, &served.gvr.resource, served.namespaced)
}

pub(crate) fn gvk(object: &Value) -> Gvk {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Gvk::new(group, version, object["kind"].as_str().unwrap())
}

/// Returns the kind and path for a resource.
pub(crate) fn target_of(gvk: Gvk, resource: &str, namespaced: bool) -> Target {
    let root = if gvk.group.is_empty() { "api" } else { "apis" };
    let namespace = if namespaced {
        "/namespaces/default"
    } else {
        ""
    };
    Target {
        resource: resource.to_owned(),
        path: format!("/{root}/{}{namespace}/{resource}", gvk.api_version()),
        gvk,
    }
}

pub(crate) async fn send(client: &Client, verb: &str, path: &str, body: &Value) -> Response {
    send_as(client, verb, path, body, &[]).await
}

pub(crate) async fn send_as(
    client: &Client,
    verb: &str,
    path: &str,
    body: &Value,
    headers: &[(String, String)],
) -> Response {
    let mut request = Request::builder()
        .method(verb)
        .uri(path)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = request.body(kube::client::Body::from(body)).unwrap();
    Response::send(client, request).await.unwrap()
}

pub(crate) async fn served(client: &Client, path: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while send(client, "GET", path, &Value::Null).await.status != 200 {
        assert!(Instant::now() < deadline, "{path} is not served");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) async fn post(client: &Client, path: &str, object: &Value) -> Response {
    send(client, "POST", path, object).await
}

/// Creates an object, which must succeed. Returns the stored object.
pub(crate) async fn create(client: &Client, path: &str, object: &Value) -> Value {
    let response = post(client, path, object).await;
    assert_eq!(response.status, 201, "{} of {object}", response.message());
    response.body
}

pub(crate) async fn dry_run(client: &Client, target: &Target, object: &Value) -> Response {
    post(client, &format!("{}?dryRun=All", target.path), object).await
}

/// Converts the fields of an object to CEL equations, such as `object.spec.replicas == 3`.
pub(crate) fn facts(value: &Value, expression: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if !fields
                .keys()
                .any(|name| SET_BY_SERVER.contains(&name.as_str()))
            {
                out.push(format!("size({expression}) == {}", fields.len()));
            }
            for (name, value) in fields {
                if !SET_BY_SERVER.contains(&name.as_str()) {
                    facts(value, &format!("{expression}[{}]", json!(name)), out);
                }
            }
        }
        Value::Array(items) => {
            out.push(format!("size({expression}) == {}", items.len()));
            for (n, item) in items.iter().enumerate() {
                facts(item, &format!("{expression}[{n}]"), out);
            }
        }
        Value::Number(number) if number.is_f64() => {}
        scalar => out.push(format!("{expression} == {scalar}")),
    }
}

/// Returns an expectation that passes for a probe of `policy` if the decision equals `response`.
pub(crate) fn expectation(response: &Response, policy: &str) -> Value {
    let ours = format!("ValidatingAdmissionPolicy '{policy}'");
    // Warnings of other origins are ignored.
    let warnings: Vec<&String> = response
        .warnings
        .iter()
        .filter(|text| text.contains(&ours))
        .collect();
    let is_error = |text: &str| text.contains("' resulted in error: ");
    let mut expect = json!({"warnings": warnings});
    if warnings.iter().any(|text| is_error(text)) {
        expect["error"] = json!({"pattern": "(?s)."});
    }
    if response.status < 300 {
        expect["decision"] = json!("Allow");
        return expect;
    }
    let (_, cause) = response
        .message()
        .split_once("denied request: ")
        .unwrap_or_else(|| panic!("{policy}: {response:?}"));
    expect["decision"] = json!("Deny");
    expect["message"] = json!(cause);
    expect["reason"] = response.body["reason"].clone();
    if is_error(cause) {
        expect["error"] = json!({"text": cause});
    }
    expect
}

/// Waits until the API server enforces all existing policies and bindings.
///
/// The API server receives policies in the order of their creation. Therefore the function creates another policy,
/// `name`, and waits until it is enforced.
pub(crate) async fn all_enforced(client: &Client, name: &str) {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["leases"]}]},
            "validations": [{"expression": format!("object.metadata.name != '{name}'"), "message": "last"}],
        },
    });
    create(client, POLICIES, &policy).await;
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    create(client, BINDINGS, &binding).await;
    let object = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All";
        let response = post(client, path, &object).await;
        if response.message().contains("denied request: last") {
            return;
        }
        assert!(Instant::now() < deadline, "{name}: {response:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
