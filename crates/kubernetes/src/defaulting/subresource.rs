//! Converts the objects of subresource requests to the form in which policies see them.
//!
//! Source: `k8s.io/kubernetes` `pkg/registry/apps/deployment/storage/storage.go` (`scaleFromDeployment`,
//! `scaleUpdatedObjectInfo`), `pkg/registry/core/pod/storage/eviction.go` (`propagateDryRun`),
//! `pkg/registry/core/serviceaccount/storage/token.go` (`TokenREST.Create`),
//! `pkg/apis/authentication/v1/defaults.go`
//! (`SetDefaults_TokenRequestSpec`); `k8s.io/apiextensions-apiserver` `pkg/registry/customresource/etcd.go`
//! (`scaleFromCustomResource`).

use serde_json::{Map, Value, json};

use super::prepare::manage;
use super::{NOW, PreparedObjects, UID};
use crate::schema::Gvk;

/// The default lifetime of a requested token, in seconds.
const TOKEN_SECONDS: i64 = 3600;

/// A request for a subresource.
#[derive(Clone, Copy, Debug)]
pub struct SubresourceRequest<'a> {
    /// The kind of the object and the old object.
    pub gvk: &'a Gvk,
    /// The object name in the URL.
    pub name: &'a str,
    /// The namespace in the URL. Empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// True for a dry-run request.
    pub dry_run: bool,
    /// The new object.
    pub object: Option<&'a Value>,
    /// The object that was stored before the request.
    pub old_object: Option<&'a Value>,
}

/// Converts the objects of a request to the objects that the API server passes to policies. Returns `None` if the kind
/// needs no conversion.
#[must_use]
pub fn subresource(request: &SubresourceRequest<'_>) -> Option<PreparedObjects> {
    let kind = (&*request.gvk.group, &*request.gvk.kind);
    match kind {
        ("autoscaling", "Scale") => Some(scale(request)),
        ("policy", "Eviction") => Some(prepared(eviction(request))),
        ("authentication.k8s.io", "TokenRequest") => Some(prepared(token(request))),
        ("", "PodExecOptions" | "PodAttachOptions") => Some(prepared(streams(request))),
        _ => None,
    }
}

/// Sets the defaults in a subresource's object after a mutation. Returns `None` if this module does not support the
/// kind.
#[must_use]
pub fn complete_subresource(gvk: &Gvk, object: &Value) -> Option<Value> {
    let kind = (&*gvk.group, &*gvk.version, &*gvk.kind);
    let spec = || fields(object.get("spec"));
    let spec = match kind {
        ("autoscaling", "v1", "Scale") => {
            let mut spec = spec();
            spec.retain(|name, value| {
                name != "replicas" || !matches!(value, Value::Null) && *value != json!(0)
            });
            spec
        }
        ("authentication.k8s.io", "v1", "TokenRequest") => {
            let mut spec = spec();
            let seconds = spec.entry("expirationSeconds").or_insert(Value::Null);
            if seconds.is_null() {
                *seconds = TOKEN_SECONDS.into();
            }
            spec
        }
        ("policy", "v1", "Eviction") | ("", "v1", "Binding") => return Some(object.clone()),
        _ => return None,
    };
    let mut object = object.clone();
    object
        .as_object_mut()?
        .insert("spec".to_owned(), Value::Object(spec));
    Some(object)
}

/// Returns true if the kind is used only by subresources of a different API group. The OpenAPI document of the kind's
/// own group then lacks the kind, so the API server has no type for it and rejects apply configurations.
///
/// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/typeconverter.go`; apimachinery
/// `pkg/util/managedfields/internal/typeconverter.go` (`indexModels`).
#[must_use]
pub fn is_published_elsewhere(gvk: &Gvk) -> bool {
    matches!(
        (&*gvk.group, &*gvk.version, &*gvk.kind),
        ("autoscaling", "v1", "Scale")
            | ("policy", "v1", "Eviction")
            | ("authentication.k8s.io", "v1", "TokenRequest")
    )
}

fn prepared(object: Option<Value>) -> PreparedObjects {
    PreparedObjects {
        object,
        old_object: None,
    }
}

fn fields(value: Option<&Value>) -> Map<String, Value> {
    value
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// Prepares a Scale. The API server builds it from the scaled object, so a request can change only the number of
/// replicas.
fn scale(request: &SubresourceRequest<'_>) -> PreparedObjects {
    let old = request.old_object.and_then(Value::as_object);
    let given = |field: &str| fields(old.and_then(|old| old.get(field)));
    let of_old = given("metadata");
    let mut metadata = Map::new();
    for (field, value) in [
        ("name", request.name),
        ("namespace", request.namespace),
        ("uid", UID),
        ("resourceVersion", "1"),
        ("creationTimestamp", NOW),
    ] {
        let old_value = of_old.get(field).filter(|value| !value.is_null());
        let value = old_value.cloned().unwrap_or_else(|| value.into());
        metadata.insert(field.to_owned(), value);
    }
    let mut status = given("status");
    status.entry("replicas").or_insert_with(|| 0.into());
    let convert = |object: Option<&Value>| {
        let mut spec = fields(object.and_then(|object| object.get("spec")));
        spec.retain(|name, value| name == "replicas" && *value != json!(0));
        json!({
            "apiVersion": request.gvk.api_version(), "kind": "Scale", "metadata": metadata, "spec": spec,
            "status": status,
        })
    };
    PreparedObjects {
        object: request.object.map(|object| convert(Some(object))),
        old_object: request.old_object.map(|object| convert(Some(object))),
    }
}

fn eviction(request: &SubresourceRequest<'_>) -> Option<Value> {
    let mut object = fields(request.object);
    let mut metadata = fields(object.get("metadata"));
    identify(&mut metadata, request);
    // The API server does not add `managedFields` if the request sets no fields.
    let options = object.get("deleteOptions").and_then(Value::as_object);
    if options.is_some_and(|options| !options.is_empty()) {
        manage(&mut metadata, request.gvk);
    }
    object.insert("metadata".to_owned(), Value::Object(metadata));
    if let Some(options) = object
        .get_mut("deleteOptions")
        .and_then(Value::as_object_mut)
        && request.dry_run
        && !options.contains_key("dryRun")
    {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
    request.object.map(|_| Value::Object(object))
}

fn token(request: &SubresourceRequest<'_>) -> Option<Value> {
    let mut object = fields(request.object);
    let mut metadata = fields(object.get("metadata"));
    identify(&mut metadata, request);
    metadata.entry("uid").or_insert_with(|| UID.into());
    metadata.insert("creationTimestamp".to_owned(), NOW.into());
    let mut spec = fields(object.get("spec"));
    if !spec.is_empty() {
        manage(&mut metadata, request.gvk);
    }
    object.insert("metadata".to_owned(), Value::Object(metadata));
    spec.entry("expirationSeconds")
        .or_insert_with(|| TOKEN_SECONDS.into());
    spec.entry("audiences").or_insert(Value::Null);
    spec.entry("boundObjectRef").or_insert(Value::Null);
    object.insert("spec".to_owned(), Value::Object(spec));
    let status = json!({"token": "", "expirationTimestamp": null});
    object.insert("status".to_owned(), status);
    request.object.map(|_| Value::Object(object))
}

/// Prepares the options of `exec` and `attach`. The API server reads these options from URL parameters, so flags that
/// are false are absent.
fn streams(request: &SubresourceRequest<'_>) -> Option<Value> {
    let mut object = fields(request.object);
    object.retain(|_, value| *value != Value::Bool(false));
    if request.gvk.kind == "PodExecOptions" {
        object.entry("command").or_insert(Value::Null);
    }
    request.object.map(|_| Value::Object(object))
}

/// Sets the name and the namespace from the URL if the object lacks them.
fn identify(metadata: &mut Map<String, Value>, request: &SubresourceRequest<'_>) {
    for (field, value) in [("name", request.name), ("namespace", request.namespace)] {
        let is_there = metadata.get(field).and_then(Value::as_str);
        if is_there.is_none_or(str::is_empty) && !value.is_empty() {
            metadata.insert(field.to_owned(), value.into());
        }
    }
}
