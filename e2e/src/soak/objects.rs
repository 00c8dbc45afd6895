//! Creates, changes and deletes the objects of a soak, as an administrator.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::cluster_state::{
    Change, Edition, Expectation, NotFound, Reference, Shape, Slot, Variant,
};

/// The timeout until the API server serves a new kind or has deleted a CRD.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The API group of widgets.
const WIDGETS: &str = "soak.example.com";

/// The API group of limits.
const LIMITS: &str = "params.soak.example.com";

/// The namespace of the config map params.
const NAMESPACE: &str = "default";

/// Makes a change. Waits until the API server has applied it.
///
/// # Errors
/// Returns an error if the API server rejects the change.
pub(super) async fn make(client: &Client, change: Change) -> Result<()> {
    let (path, object) = object(change);
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let outcome = match &object {
            Some(object) => apply(client, &path, object).await,
            None => delete(client, &path).await,
        };
        let is_crd = matches!(change, Change::Widgets(_) | Change::Limits(_));
        let check_no_leader = async || object.is_some() || !is_crd || !exists(client, &path).await;
        match outcome {
            Ok(()) if check_no_leader().await => return Ok(()),
            Ok(()) => {}
            // The API server does not serve a new kind immediately.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => bail!("{path}: {error}"),
        }
        if Instant::now() > deadline {
            bail!("{path}: the API server takes too long");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Changes an annotation, so that all watches receive the object again. Ignores a missing object.
///
/// # Errors
/// Returns an error if the API server rejects the change.
pub(super) async fn touch(client: &Client, path: &str, n: u64) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"soak.example.com/touched": n.to_string()}}});
    let request = Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes())?;
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => bail!("{path}: {error}"),
    }
}

/// Registers an aggregated API without a server. Waits until the API server reports the API as unavailable.
///
/// # Errors
/// Returns an error if the registration is rejected, or if the API is not reported as unavailable in time.
pub(super) async fn register_a_dead_api(client: &Client) -> Result<()> {
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.dead.soak.example.com";
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.dead.soak.example.com"},
        "spec": {"group": "dead.soak.example.com", "version": "v1", "groupPriorityMinimum": 100,
                 "versionPriority": 100, "insecureSkipTLSVerify": true,
                 "service": {"name": "dead", "namespace": NAMESPACE}},
    });
    apply(client, path, &object).await?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let request = Request::get(path).body(Vec::new())?;
        let api_service: Value = client.request(request).await?;
        let mut conditions = api_service
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let conditions = conditions
            .iter_mut()
            .flat_map(|conditions| conditions.iter());
        let is_down = |condition: &Value| {
            condition.get("type") == Some(&json!("Available"))
                && condition.get("status") == Some(&json!("False"))
        };
        if conditions.into_iter().any(is_down) {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{path} is not found to be down: {api_service}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn apply(client: &Client, path: &str, object: &Value) -> kube::Result<()> {
    let request = Request::patch(format!("{path}?fieldManager=soak&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(object.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

async fn delete(client: &Client, path: &str) -> kube::Result<()> {
    let request = Request::delete(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    match client.request_text(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        outcome => outcome.map(drop),
    }
}

async fn exists(client: &Client, path: &str) -> bool {
    let request = Request::get(path).body(Vec::new());
    match request {
        Ok(request) => !matches!(
            client.request_text(request).await,
            Err(kube::Error::Api(status)) if status.code == 404
        ),
        Err(_) => true,
    }
}

/// Returns the URL path and the manifest of the changed object. Without a manifest, the object is deleted.
fn object(change: Change) -> (String, Option<Value>) {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
    match change {
        Change::Policy(slot, edition) => (
            format!(
                "{POLICIES}/{}admissionpolicies/{}",
                verb(slot).to_lowercase(),
                slot.name()
            ),
            edition.map(|edition| policy(slot, edition)),
        ),
        Change::Binding(slot, reference) => (
            format!(
                "{POLICIES}/{}admissionpolicybindings/{}",
                verb(slot).to_lowercase(),
                slot.name()
            ),
            reference.map(|reference| binding(slot, reference)),
        ),
        Change::Probe(slot, expectation) => (
            format!("/apis/vap-status.dev/v1alpha1/policyprobes/{}", slot.name()),
            expectation.map(|expectation| probe(slot, expectation)),
        ),
        Change::Widgets(variant) => crd(WIDGETS, "Widget", variant),
        Change::Limits(variant) => crd(LIMITS, "Limit", variant),
        Change::ConfigMapParam(n, number) => (
            format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", param(n)),
            number.map(|number| {
                json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": param(n), "labels": {"soak": "param"}},
                    "data": {"max": number.to_string()},
                })
            }),
        ),
        Change::LimitParam(n, number) => (
            format!("/apis/{LIMITS}/v1/limits/{}", param(n)),
            number.map(|number| {
                // Without `spec.replicas`, the object is valid for both types of this field.
                json!({
                    "apiVersion": format!("{LIMITS}/v1"), "kind": "Limit",
                    "metadata": {"name": param(n),
                                 "labels": {"soak": "param", "number": number.to_string()}},
                })
            }),
        ),
        Change::Namespace(n, label) => (
            format!("/api/v1/namespaces/soak-{n}"),
            Some(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": format!("soak-{n}"), "labels": {"soak": label.to_string()}},
            })),
        ),
    }
}

fn param(n: usize) -> String {
    format!("soak-{n}")
}

/// Returns the prefix of the kinds of a policy and its binding.
const fn verb(slot: Slot) -> &'static str {
    if slot.is_mutating {
        "Mutating"
    } else {
        "Validating"
    }
}

fn policy(slot: Slot, edition: Edition) -> Value {
    let field = if edition.is_misspelled {
        "object.spec.replicsa"
    } else {
        "object.spec.replicas"
    };
    let number = edition.number;
    let (group, version, resource) = match slot.shape {
        Shape::Widgets => (WIDGETS, "v1", "widgets"),
        Shape::Wildcard => (WIDGETS, "*", "*"),
        Shape::Deployments | Shape::ConfigMaps | Shape::Limits => ("apps", "v1", "deployments"),
    };
    let (param_kind, limit) = match slot.shape {
        Shape::ConfigMaps => (
            Some(json!({"apiVersion": "v1", "kind": "ConfigMap"})),
            format!("int(params.data.max) + {number}"),
        ),
        Shape::Limits => (
            Some(json!({"apiVersion": format!("{LIMITS}/v1"), "kind": "Limit"})),
            format!("params.spec.replicas + {number}"),
        ),
        Shape::Deployments | Shape::Widgets | Shape::Wildcard => (None, number.to_string()),
    };
    let mut spec = json!({
        "failurePolicy": if slot.fails_closed { "Fail" } else { "Ignore" },
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"],
            "resources": [resource]}]},
    });
    if let Some(spec) = spec.as_object_mut() {
        if slot.is_mutating {
            let patch = format!(
                "[JSONPatch{{op: 'replace', path: '/spec/replicas', value: {field} + {limit}}}]"
            );
            spec.insert("reinvocationPolicy".to_owned(), json!("Never"));
            spec.insert(
                "mutations".to_owned(),
                json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]),
            );
        } else {
            spec.insert(
                "validations".to_owned(),
                json!([{"expression": format!("{field} <= {limit}")}]),
            );
        }
        if let Some(param_kind) = param_kind {
            spec.insert("paramKind".to_owned(), param_kind);
        }
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{}AdmissionPolicy", verb(slot)),
        "metadata": {"name": slot.name()}, "spec": spec,
    })
}

fn binding(slot: Slot, reference: Reference) -> Value {
    let mut spec = json!({"policyName": slot.name(),
        // The namespace selector matches no namespace. Otherwise, the policy would affect the soak's own requests.
        "matchResources": {"namespaceSelector": {"matchLabels": {"soak": "nowhere"}}}});
    if let (false, Some(spec)) = (slot.is_mutating, spec.as_object_mut()) {
        spec.insert("validationActions".to_owned(), json!(["Deny"]));
    }
    let action = |not_found| match not_found {
        NotFound::Allow => "Allow",
        NotFound::Deny => "Deny",
    };
    let param_ref = match reference {
        Reference::None => None,
        Reference::Named(n, not_found) => {
            Some(json!({"name": param(n), "parameterNotFoundAction": action(not_found)}))
        }
        Reference::Selected(not_found) => Some(json!({
            "selector": {"matchLabels": {"soak": "param"}},
            "parameterNotFoundAction": action(not_found)})),
    };
    if let (Some(mut param_ref), Some(spec)) = (param_ref, spec.as_object_mut()) {
        if let (Shape::ConfigMaps, Some(fields)) = (slot.shape, param_ref.as_object_mut()) {
            fields.insert("namespace".to_owned(), json!(NAMESPACE));
        }
        spec.insert("paramRef".to_owned(), param_ref);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{}AdmissionPolicyBinding", verb(slot)),
        "metadata": {"name": slot.name()}, "spec": spec,
    })
}

fn probe(slot: Slot, expectation: Expectation) -> Value {
    let expect = match (expectation, slot.shape) {
        (Expectation::Allow, Shape::Widgets | Shape::Wildcard) => json!({"applies": false}),
        (Expectation::Allow, _) => json!({"decision": "Allow"}),
        (Expectation::Deny, _) => json!({"decision": "Deny"}),
    };
    let mut spec = json!({
        "policyName": slot.name(), "samples": "Partial", "bindings": "Implied",
        "cases": [{
            "name": "many", "expect": expect,
            "request": {"object": {
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "d", "namespace": NAMESPACE}, "spec": {"replicas": 100}}},
        }],
    });
    let inline = match slot.shape {
        Shape::ConfigMaps => Some(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "inline", "namespace": NAMESPACE}, "data": {"max": "5"}})),
        Shape::Limits => Some(
            json!({"apiVersion": format!("{LIMITS}/v1"), "kind": "Limit",
            "metadata": {"name": "inline"}, "spec": {"replicas": 5}}),
        ),
        Shape::Deployments | Shape::Widgets | Shape::Wildcard => None,
    };
    if let (Some(inline), Some(spec)) = (inline, spec.as_object_mut()) {
        spec.insert("params".to_owned(), json!("Inline"));
        spec.insert("inlineParams".to_owned(), json!([inline]));
    }
    json!({
        "apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
        "metadata": {"name": slot.name()}, "spec": spec,
    })
}

/// Returns the URL path and the manifest of a CRD with the field `spec.replicas`.
fn crd(group: &str, kind: &str, variant: Option<Variant>) -> (String, Option<Value>) {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let name = format!("{plural}.{group}");
    let manifest = variant.map(|variant| {
        let type_ = match variant {
            Variant::Integer => "integer",
            Variant::String => "string",
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {
                "group": group, "scope": "Cluster",
                "names": {"plural": plural, "singular": singular, "kind": kind,
                          "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                        "type": "object", "properties": {"replicas": {"type": type_}}}}}}}],
            },
        })
    });
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    (path, manifest)
}
