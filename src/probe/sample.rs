//! Validates sample objects against their schemas. The API server rejects invalid objects before it evaluates policies.
//! Detected errors are unknown fields, missing fields and wrong types. Rules that involve several fields are not
//! checked.
//!
//! Source: `k8s.io/apimachinery` `pkg/runtime/serializer/json` (strict decoding), `k8s.io/apiextensions-apiserver`
//! `pkg/apiserver/validation`.

use kubernetes::object_meta::{Field, METADATA, Type};
use serde_json::{Map, Value as Json};

use super::api::Samples;
use super::validation::{Violation, type_name};
use crate::cel::base64;
use crate::policy::nearest::is_near;
use crate::schema::Gvk;
use crate::schema::decl_type::{DeclKind, DeclType};
use crate::schema::escape::{escape, unescape};
use crate::schema::resolver::{Resolution, SchemaResolver};

/// The maximum number of reported violations per object.
const MAX_VIOLATIONS: usize = 10;

/// The message about a missing required field.
pub const REQUIRED: &str = "is required";

/// The prefix of the message about an unknown field.
pub const UNKNOWN: &str = "unknown field";

/// Deeper values are not validated.
const MAX_DEPTH: usize = 128;

/// The API groups of Kubernetes itself that end in `.k8s.io`. This suffix is omitted.
///
/// Source: `k8s.io/kubernetes` `pkg/controlplane/instance.go`, and the groups of `k8s.io/api`, of
/// apiextensions-apiserver and of kube-aggregator.
const OWN_GROUPS: [&str; 19] = [
    "admissionregistration",
    "apiextensions",
    "apiregistration",
    "authentication",
    "authorization",
    "certificates",
    "coordination",
    "discovery",
    "events",
    "flowcontrol.apiserver",
    "internal.apiserver",
    "networking",
    "node",
    "rbac.authorization",
    "resource",
    "scheduling",
    "storage",
    "storagemigration",
    "imagepolicy",
];

/// Fields that the schemas of built-in kinds require, although the API server does not. Booleans are not listed,
/// because an absent boolean is false.
const NOT_REQUIRED: [&str; 10] = [
    "rules",
    "podSelector",
    "endpoints",
    "limits",
    "drivers",
    "subjects",
    "scopes",
    "status",
    "value",
    "revision",
];

/// A metadata field of earlier Kubernetes versions.
const CLUSTER_NAME: Field = ("clusterName", Type::Text("string"));

/// Returns the violations of `object`. Returns no violations if the kind `gvk` has no schema. Reported fields begin
/// with `path`.
#[must_use]
pub fn violations(
    object: &Json,
    gvk: &Gvk,
    schemas: &dyn SchemaResolver,
    samples: Samples,
    path: &str,
) -> Vec<Violation> {
    let Resolution::Found(type_) = schemas.resolve(gvk) else {
        return Vec::new();
    };
    let mut walk = Walk {
        found: Vec::new(),
        max: MAX_VIOLATIONS,
        is_whole: samples == Samples::Whole,
        is_own: is_own_group(&gvk.group),
    };
    let Json::Object(fields) = object else {
        walk.mismatch("object", object, path);
        return walk.found;
    };
    walk.resource(fields, &type_, path, 0);
    walk.found
}

/// Returns the unknown fields of `object`, which has the kind `gvk`. The API server prunes such fields. If the client
/// requests strict decoding, as kubectl does, the API server rejects the request instead.
#[must_use]
pub(super) fn unknown_fields(
    object: &Json,
    gvk: &Gvk,
    schemas: &dyn SchemaResolver,
    path: &str,
) -> Vec<Violation> {
    let mut unknown = violations(object, gvk, schemas, Samples::Partial, path);
    unknown.retain(|violation| violation.message.starts_with(UNKNOWN));
    unknown
}

/// Returns the paths of missing required fields, at most 1,000.
#[must_use]
pub fn missing(object: &Json, gvk: &Gvk, schemas: &dyn SchemaResolver) -> Vec<String> {
    let (Resolution::Found(type_), Json::Object(fields)) = (schemas.resolve(gvk), object) else {
        return Vec::new();
    };
    let mut walk = Walk {
        found: Vec::new(),
        max: 1_000,
        is_whole: true,
        is_own: is_own_group(&gvk.group),
    };
    walk.resource(fields, &type_, "", 0);
    let violations = walk.found.into_iter();
    let missing = violations.filter(|violation| violation.message == REQUIRED);
    missing.map(|violation| violation.field_ref).collect()
}

/// Returns true if the group belongs to Kubernetes itself. Its schemas then change only with the version of Kubernetes.
#[must_use]
pub fn is_own_group(group: &str) -> bool {
    let own = |name: &str| OWN_GROUPS.contains(&name);
    !group.contains('.') || group.strip_suffix(".k8s.io").is_some_and(own)
}

struct Walk {
    found: Vec<Violation>,
    max: usize,
    is_whole: bool,
    is_own: bool,
}

impl Walk {
    fn add(&mut self, path: &str, message: String) {
        if self.found.len() < self.max {
            self.found.push(Violation {
                field_ref: path.to_owned(),
                message,
            });
        }
    }

    fn mismatch(&mut self, expected: &str, value: &Json, path: &str) {
        let actual = type_name(value);
        self.add(path, format!("must be of type {expected}, but is {actual}"));
    }

    /// Validates an object with `apiVersion`, `kind` and `metadata`.
    fn resource(&mut self, fields: &Map<String, Json>, type_: &DeclType, path: &str, depth: usize) {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = fields.get(name)
                && !value.is_string()
            {
                self.mismatch("string", value, &format!("{path}.{name}"));
            }
        }
        match fields.get("metadata") {
            None | Some(Json::Null) => {}
            Some(Json::Object(metadata)) => self.metadata(metadata, &format!("{path}.metadata")),
            Some(other) => self.mismatch("object", other, &format!("{path}.metadata")),
        }
        self.fields(fields, type_, path, (depth, true));
    }

    fn metadata(&mut self, fields: &Map<String, Json>, path: &str) {
        for (name, value) in fields {
            let path = format!("{path}.{name}");
            let fields = METADATA.iter().chain([&CLUSTER_NAME]);
            let Some((_, type_)) = fields.clone().find(|(field, _)| field == name) else {
                self.unknown(name, fields.map(|(name, _)| *name), &path);
                continue;
            };
            match (type_, value) {
                (_, Json::Null)
                | (Type::Text(_) | Type::Time, Json::String(_))
                | (Type::Int, Json::Number(_)) => {}
                (Type::Texts, Json::Object(entries)) => {
                    for (key, value) in entries {
                        if !value.is_string() && !value.is_null() {
                            self.mismatch("string", value, &format!("{path}.{key}"));
                        }
                    }
                }
                (Type::List | Type::Structs(..), Json::Array(items)) => {
                    for (n, item) in items.iter().enumerate() {
                        let path = format!("{path}[{n}]");
                        match (type_, item) {
                            (Type::List, Json::String(_))
                            | (Type::Structs(..), Json::Object(_)) => {}
                            (Type::List, other) => self.mismatch("string", other, &path),
                            (_, other) => self.mismatch("object", other, &path),
                        }
                    }
                }
                (type_, other) => {
                    let expected = match type_ {
                        Type::Text(_) | Type::Time => "string",
                        Type::Int => "integer",
                        Type::Bool => "boolean",
                        Type::Texts | Type::Raw => "object",
                        Type::List | Type::Structs(..) => "array",
                    };
                    self.mismatch(expected, other, &path);
                }
            }
        }
    }

    /// Validates the fields of an object. If `is_resource` is true, skips `apiVersion`, `kind` and `metadata`.
    fn fields(
        &mut self,
        fields: &Map<String, Json>,
        type_: &DeclType,
        path: &str,
        (depth, is_resource): (usize, bool),
    ) {
        let DeclKind::Object(object) = &type_.kind else {
            return;
        };
        for (name, value) in fields {
            if is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            let path = format!("{path}.{name}");
            let escaped = escape(name);
            match escaped.as_ref().and_then(|name| type_.declared_field(name)) {
                Some(field) => {
                    // Clients do not send the status, so it may be incomplete in a sample.
                    let is_whole = self.is_whole;
                    self.is_whole &= !(is_resource && name == "status");
                    self.value(value, &field.type_, &path, depth + 1);
                    self.is_whole = is_whole;
                }
                None if object.is_open || escaped.is_none() => {}
                None => {
                    let names: Vec<String> = object
                        .fields()
                        .iter()
                        .filter_map(|field| unescape(&field.name))
                        .map(|name| name.to_string())
                        .collect();
                    self.unknown(name, names.iter().map(String::as_str), &path);
                }
            }
        }
        if !self.is_whole {
            return;
        }
        for field in object.fields() {
            let Some(name) = unescape(&field.name) else {
                continue;
            };
            let is_present = fields.get(&*name).is_some_and(|value| !value.is_null());
            let is_resource_field =
                is_resource && ["apiVersion", "kind", "metadata", "status"].contains(&&*name);
            let is_zero = self.is_own
                && (matches!(field.type_.kind, DeclKind::Bool) || NOT_REQUIRED.contains(&&*name));
            // In schemas of built-in kinds, defaults are zero values of Go. The API server does not apply them.
            let has_default = !self.is_own && (field.has_default || field.type_.has_default);
            let is_optional = has_default || field.type_.nullable;
            if field.required && !is_present && !is_optional && !is_resource_field && !is_zero {
                self.add(&format!("{path}.{name}"), REQUIRED.to_owned());
            }
        }
    }

    fn value(&mut self, value: &Json, type_: &DeclType, path: &str, depth: usize) {
        if depth > MAX_DEPTH || self.found.len() >= self.max || value.is_null() {
            return;
        }
        match (&type_.kind, value) {
            (DeclKind::Unknown | DeclKind::Cel(_), _)
            | (DeclKind::Bool, Json::Bool(_))
            | (DeclKind::Double, Json::Number(_))
            | (DeclKind::Quantity, Json::String(_) | Json::Number(_))
            | (DeclKind::Duration | DeclKind::Timestamp, Json::String(_)) => {}
            (DeclKind::Int | DeclKind::IntOrString, Json::Number(number)) => {
                let is_whole = |number: f64| number.fract() == 0.0;
                if !number.is_i64() && !number.is_u64() && !number.as_f64().is_some_and(is_whole) {
                    self.mismatch("integer", value, path);
                }
            }
            (DeclKind::String | DeclKind::IntOrString, Json::String(text)) => {
                let allowed = type_.enum_values.as_deref().unwrap_or_default();
                if !text.is_empty() && !allowed.is_empty() && !allowed.contains(value) {
                    let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
                    let allowed = allowed.join(", ");
                    self.add(path, format!("is {text:?}, but must be one of {allowed}"));
                }
            }
            (DeclKind::Bytes, Json::String(text)) => {
                if base64::decode(text).is_err() {
                    self.add(path, "must be base64".to_owned());
                }
            }
            (DeclKind::List(elem), Json::Array(items)) => {
                for (n, item) in items.iter().enumerate() {
                    self.value(item, elem, &format!("{path}[{n}]"), depth + 1);
                }
            }
            (DeclKind::Map(of), Json::Object(entries)) => {
                for (name, value) in entries {
                    self.value(value, of, &format!("{path}.{name}"), depth + 1);
                }
            }
            (DeclKind::Object(_), Json::Object(fields)) if type_.embedded_resource => {
                self.resource(fields, type_, path, depth);
            }
            (DeclKind::Object(_), Json::Object(fields)) => {
                self.fields(fields, type_, path, (depth, false));
            }
            (kind, value) => self.mismatch(expected_type(kind), value, path),
        }
    }

    fn unknown<'a>(&mut self, name: &str, mut names: impl Iterator<Item = &'a str>, path: &str) {
        let folded = name.to_lowercase();
        let similar = names.find(|other| is_near(&folded, &other.to_lowercase()));
        let hint = similar.map(|similar| format!(", did you mean `{similar}`?"));
        self.add(path, format!("{UNKNOWN}{}", hint.unwrap_or_default()));
    }
}

fn expected_type(kind: &DeclKind) -> &'static str {
    match kind {
        DeclKind::Bool => "boolean",
        DeclKind::Int => "integer",
        DeclKind::Double => "number",
        DeclKind::IntOrString => "integer or string",
        DeclKind::List(_) => "array",
        DeclKind::Map(_) | DeclKind::Object(_) => "object",
        DeclKind::Quantity => "quantity",
        DeclKind::String
        | DeclKind::Bytes
        | DeclKind::Duration
        | DeclKind::Timestamp
        | DeclKind::Cel(_)
        | DeclKind::Unknown => "string",
    }
}
