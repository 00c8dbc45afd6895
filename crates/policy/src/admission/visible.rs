//! Builds the CEL variables `request`, `namespaceObject` and `authorizer`.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (`CreateAdmissionRequest`,
//! `CreateNamespaceObject`); `k8s.io/api` `admission/v1/types.go`, `authentication/v1/types.go`, `core/v1/types.go` and
//! apimachinery `pkg/apis/meta/v1/types.go` (fields with `omitempty`).

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Map as JsonMap, Value as Json};

use super::request::{AdmissionRequest, Operation, UserInfo};
use cel::value::{Map, Value};
use kubernetes::go_values;
use kubernetes::library::{
    self,
    authz::{Authorizer, AuthorizerValue},
};
use kubernetes::schema::{Gvk, Gvr};

/// The fields of an object under construction.
#[derive(Default)]
struct Fields(Vec<(Arc<str>, Value)>);

impl Fields {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.into(), value.into()));
    }

    /// Sets the field `name` if `text` is not empty.
    fn set_text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.set(name, text);
        }
    }

    fn into_value(self) -> Value {
        Value::Map(Map::from_fields(self.0))
    }

    /// Returns a struct of the Go type `go_type` if `go` is true, and an unstructured object otherwise.
    fn into_struct(self, go_type: &'static str, go: bool) -> Value {
        if go {
            go_values::structure(go_type, self.0)
        } else {
            self.into_value()
        }
    }
}

/// Returns the value of `request` for a policy that matched the resource `gvr` and the kind `gvk`. If `go` is true, the
/// value is a Go struct.
pub(super) fn request(request: &AdmissionRequest, gvr: &Gvr, gvk: &Gvk, go: bool) -> Value {
    let mut fields = Fields::default();
    // The API server generates a uid only for webhook calls.
    fields.set("uid", "");
    fields.set("kind", kind(gvk, go));
    fields.set("resource", resource(gvr, go));
    fields.set_text("subResource", &request.subresource);
    fields.set("requestKind", kind(&request.gvk, go));
    fields.set("requestResource", resource(&request.gvr, go));
    fields.set_text("requestSubResource", &request.subresource);
    fields.set_text("name", &request.name);
    fields.set_text("namespace", &request.namespace);
    fields.set("operation", request.operation.as_str());
    fields.set("userInfo", user_info(&request.user_info, go));
    // Expressions read the objects from the variables `object` and `oldObject` instead.
    fields.set("object", Value::Null);
    fields.set("oldObject", Value::Null);
    fields.set("dryRun", request.dry_run);
    // The Go type of this field, `runtime.RawExtension`, has its own JSON encoding, so the value is unstructured.
    fields.set("options", options(request));
    fields.into_struct("v1.AdmissionRequest", go)
}

/// Returns the values of `authorizer` and `authorizer.requestResource`.
///
/// Source: `k8s.io/apiserver` `pkg/cel/library/authz.go`, `NewAuthorizerVal`, `NewResourceAuthorizerVal`.
pub(super) fn authorizer(
    request: &AdmissionRequest,
    authorizer: &Arc<dyn Authorizer>,
) -> (Value, Value) {
    let user = &request.user_info;
    let extra = user.extra.iter();
    let extra = extra.map(|(key, values)| (key.clone(), values.clone().unwrap_or_default()));
    let user = library::authz::UserInfo {
        name: user.username.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: extra.collect(),
    };
    let authorizer = AuthorizerValue::new(user, Arc::clone(authorizer));
    let mut resource = authorizer.resource(&request.gvr.group, &request.gvr.resource);
    resource.subresource.clone_from(&request.subresource);
    resource.namespace.clone_from(&request.namespace);
    resource.name.clone_from(&request.name);
    (Value::opaque(authorizer), Value::opaque(resource))
}

fn kind(gvk: &Gvk, go: bool) -> Value {
    let mut fields = Fields::default();
    fields.set("group", &*gvk.group);
    fields.set("version", &*gvk.version);
    fields.set("kind", &*gvk.kind);
    fields.into_struct("v1.GroupVersionKind", go)
}

fn resource(gvr: &Gvr, go: bool) -> Value {
    let mut fields = Fields::default();
    fields.set("group", &*gvr.group);
    fields.set("version", &*gvr.version);
    fields.set("resource", &*gvr.resource);
    fields.into_struct("v1.GroupVersionResource", go)
}

/// Returns the list `texts`, which is a Go slice if `go` is true.
fn texts(texts: &[String], go: bool) -> Value {
    let texts: Vec<_> = texts.iter().map(|text| Value::from(&**text)).collect();
    if go {
        go_values::list(texts)
    } else {
        Value::list(texts)
    }
}

fn user_info(user: &UserInfo, go: bool) -> Value {
    let mut fields = Fields::default();
    fields.set_text("username", &user.username);
    fields.set_text("uid", &user.uid);
    if !user.groups.is_empty() {
        fields.set("groups", texts(&user.groups, go));
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter();
        let extra = extra.map(|(key, values)| {
            let slice = |values: &[String]| texts(values, go);
            let values = values.as_deref().map_or(Value::Null, slice);
            (Arc::from(&**key), values)
        });
        let extra = extra.collect();
        fields.set(
            "extra",
            if go {
                go_values::map(extra)
            } else {
                Value::object(extra)
            },
        );
    }
    fields.into_struct("v1.UserInfo", go)
}

/// The type of a field in `request.options`. The type determines when the field is omitted.
enum Field {
    /// A string. Omitted if empty.
    Text,
    /// A list of strings. Omitted if empty.
    Texts,
    /// Any other value. Omitted if null.
    Pointer,
}

const WRITE_OPTIONS: [(&str, Field); 3] = [
    ("dryRun", Field::Texts),
    ("fieldManager", Field::Text),
    ("fieldValidation", Field::Text),
];

const DELETE_OPTIONS: [(&str, Field); 6] = [
    ("gracePeriodSeconds", Field::Pointer),
    ("preconditions", Field::Pointer),
    ("orphanDependents", Field::Pointer),
    ("propagationPolicy", Field::Pointer),
    ("dryRun", Field::Texts),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        Field::Pointer,
    ),
];

/// Returns the value of `request.options`, limited to the fields of its Go type.
///
/// Source: apimachinery `pkg/apis/meta/v1/types.go`, `CreateOptions`, `UpdateOptions`, `DeleteOptions`.
fn options(request: &AdmissionRequest) -> Value {
    let Some(options_kind) = request.operation.options_kind() else {
        return Value::Null;
    };
    let option_fields: &[_] = match request.operation {
        Operation::Delete => &DELETE_OPTIONS,
        Operation::Create | Operation::Update | Operation::Connect => &WRITE_OPTIONS,
    };
    let given = request.options.as_ref().map(super::object::Object::value);
    let given = given.and_then(Value::as_map);
    let mut fields = Fields::default();
    fields.set("kind", options_kind);
    fields.set("apiVersion", "meta.k8s.io/v1");
    for (name, field) in option_fields {
        let Some(value) = given.and_then(|given| given.field(name)) else {
            continue;
        };
        let is_there = match field {
            Field::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Field::Texts => value.as_list().is_some_and(|list| !list.is_empty()),
            Field::Pointer => !matches!(value, Value::Null),
        };
        if !is_there {
            continue;
        }
        if *name == "preconditions" {
            fields.set(name, preconditions(value));
        } else {
            fields.set(name, value.clone());
        }
    }
    fields.into_value()
}

fn preconditions(value: &Value) -> Value {
    let mut fields = Fields::default();
    for name in ["uid", "resourceVersion"] {
        let given = value.as_map().and_then(|given| given.field(name));
        if let Some(text) = given.and_then(Value::as_str) {
            fields.set(name, text);
        }
    }
    fields.into_value()
}

/// Returns the value of `namespaceObject`. If `whole` is true, it includes the metadata that only audit annotations can
/// read. If `omit_zero_times` is false, a missing creation time is null.
///
/// Source: `validator.go`, `Validate` (validations and messages get the result of `CreateNamespaceObject`, audit
/// annotations get the namespace itself).
pub(super) fn namespace(namespace: &Json, whole: bool, omit_zero_times: bool) -> Value {
    let part = |name| namespace.get(name).and_then(Json::as_object);
    let mut fields = Fields::default();
    let metadata = part("metadata").map(|given| metadata(given, whole));
    let mut metadata = metadata.unwrap_or_default();
    if !omit_zero_times && !has_creation_time(namespace) {
        metadata.set("creationTimestamp", Value::Null);
    }
    fields.set("metadata", metadata.into_value());
    let mut spec = Fields::default();
    if let Some(given) = part("spec") {
        set_list(&mut spec, given, "finalizers");
    }
    fields.set("spec", spec.into_value());
    let mut status = Fields::default();
    if let Some(given) = part("status") {
        set_given_text(&mut status, given, "phase");
        let conditions = given.get("conditions").and_then(Json::as_array);
        if let Some(conditions) = conditions.filter(|list| !list.is_empty()) {
            let conditions: Vec<_> = conditions.iter().map(condition).collect();
            status.set("conditions", Value::list(conditions));
        }
    }
    fields.set("status", status.into_value());
    fields.into_value()
}

pub(super) fn has_creation_time(namespace: &Json) -> bool {
    namespace
        .pointer("/metadata/creationTimestamp")
        .is_some_and(Json::is_string)
}

fn metadata(given: &JsonMap<String, Json>, whole: bool) -> Fields {
    let mut fields = Fields::default();
    for name in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
    ] {
        set_given_text(&mut fields, given, name);
    }
    match given.get("generation").and_then(Json::as_i64) {
        None | Some(0) => {}
        Some(generation) => fields.set("generation", generation),
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(time) = given.get(name).and_then(Json::as_str) {
            fields.set(name, &*time_text(time));
        }
    }
    if let Some(seconds) = given
        .get("deletionGracePeriodSeconds")
        .and_then(Json::as_i64)
    {
        fields.set("deletionGracePeriodSeconds", seconds);
    }
    for name in ["labels", "annotations"] {
        let map = given
            .get(name)
            .filter(|map| map.as_object().is_some_and(|map| !map.is_empty()));
        if let Some(map) = map {
            fields.set(name, Value::from(map));
        }
    }
    set_list(&mut fields, given, "finalizers");
    if whole {
        set_given_text(&mut fields, given, "selfLink");
        set_list(&mut fields, given, "ownerReferences");
        set_list(&mut fields, given, "managedFields");
    }
    fields
}

fn condition(given: &Json) -> Value {
    let text = |name| given.get(name).and_then(Json::as_str).unwrap_or_default();
    let mut fields = Fields::default();
    fields.set("type", text("type"));
    fields.set("status", text("status"));
    match text("lastTransitionTime") {
        "" => fields.set("lastTransitionTime", Value::Null),
        time => fields.set("lastTransitionTime", &*time_text(time)),
    }
    fields.set_text("reason", text("reason"));
    fields.set_text("message", text("message"));
    fields.into_value()
}

fn set_given_text(fields: &mut Fields, given: &JsonMap<String, Json>, name: &str) {
    fields.set_text(
        name,
        given.get(name).and_then(Json::as_str).unwrap_or_default(),
    );
}

fn set_list(fields: &mut Fields, given: &JsonMap<String, Json>, name: &str) {
    let list = given.get(name);
    if let Some(list) = list.filter(|list| list.as_array().is_some_and(|list| !list.is_empty())) {
        fields.set(name, Value::from(list));
    }
}

/// Formats a time in UTC with a precision of one second, as the API server does.
///
/// Source: apimachinery `pkg/apis/meta/v1/time.go`, `Time.ToUnstructured`.
fn time_text(text: &str) -> String {
    let seconds = text.parse::<Timestamp>().map(Timestamp::as_second);
    let whole = seconds.and_then(Timestamp::from_second);
    whole.map_or_else(|_| text.to_owned(), |time| time.to_string())
}
