//! Validates object metadata like `ValidateObjectMeta` and `ValidateObjectMetaUpdate`.
//!
//! Callers must first check the types of metadata fields. A field of the wrong type is treated as empty.
//!
//! Source: apimachinery `pkg/api/validation/objectmeta.go`, `pkg/apis/meta/v1/validation/validation.go`,
//! `pkg/api/validate/content`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::outcome::shown;
use super::value::sorted;
use crate::go_json;
use crate::library::format::validation;
use crate::schema::GroupVersion;
use crate::validation_rules::path::Path;
use crate::validation_rules::{FieldError, FieldErrorKind};
use crate::version::Behavior;
use cel::value::go_quote;
use regexp::is_printable;

/// Validates a name and returns error messages. The flag is true if the name is a prefix (`generateName`).
pub(super) type NameCheck = fn(&str, bool) -> Vec<String>;

/// The `metadata` of an object. `None` if the object has no metadata.
#[derive(Clone, Copy)]
pub(super) struct Metadata<'a>(pub(super) Option<&'a Map<String, Json>>);

/// The maximum total size of an object's annotations, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

impl<'a> Metadata<'a> {
    pub(super) fn new(object: &'a Json) -> Self {
        Self(object.get("metadata").and_then(Json::as_object))
    }

    fn get(self, name: &str) -> Option<&'a Json> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// Returns `managedFields`. Returns `None` if the field is missing or invalid. An API server does not store invalid
    /// `managedFields`.
    pub(super) fn valid_managed_fields(self, behavior: Behavior) -> Option<&'a Json> {
        let mut list = Vec::new();
        let mut errors = Errors::new(behavior, &mut list);
        errors.managed_fields(self, &Path::ROOT);
        self.get("managedFields").filter(|_| list.is_empty())
    }

    pub(super) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Json::as_str).unwrap_or_default()
    }

    pub(super) fn number(self, name: &str) -> i64 {
        self.get(name).and_then(Json::as_i64).unwrap_or_default()
    }

    fn list(self, name: &str) -> &'a [Json] {
        let list = self.get(name).and_then(Json::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    fn texts(self, name: &str) -> Vec<(&'a str, &'a str)> {
        let fields = self.get(name).and_then(Json::as_object).map(sorted);
        let fields = fields.unwrap_or_default().into_iter();
        fields
            .map(|(name, value)| (name, value.as_str().unwrap_or_default()))
            .collect()
    }
}

pub(super) fn subdomain(name: &str, is_prefix: bool) -> Vec<String> {
    if is_prefix {
        validation::dns1123_subdomain(&validation::without_trailing_dash(name.as_bytes()))
    } else {
        validation::dns1123_subdomain(name.as_bytes())
    }
}

/// Validates a name as one segment of a URL path.
pub(super) fn path_segment(name: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let illegal = ["/", "%"].into_iter().filter(|part| name.contains(part));
    illegal
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Validates metadata like API servers with `behavior`, and adds errors to `list`.
pub(super) struct Errors<'e> {
    behavior: Behavior,
    list: &'e mut Vec<FieldError>,
}

impl<'e> Errors<'e> {
    pub(super) const fn new(behavior: Behavior, list: &'e mut Vec<FieldError>) -> Self {
        Self { behavior, list }
    }

    fn push(
        &mut self,
        kind: FieldErrorKind,
        path: &Path<'_>,
        value: Option<String>,
        detail: String,
    ) {
        self.list.push(FieldError {
            kind,
            field: path.text(),
            value,
            detail,
        });
    }

    fn invalid(&mut self, path: &Path<'_>, value: &str, detail: impl Into<String>) {
        self.push(
            FieldErrorKind::Invalid,
            path,
            Some(go_quote(value)),
            detail.into(),
        );
    }

    fn too_long(&mut self, path: &Path<'_>, max: usize) {
        let detail = self.behavior.length_errors.metadata_text(max);
        self.push(FieldErrorKind::TooLong, path, None, detail);
    }

    /// Source: apimachinery `pkg/api/validation/objectmeta.go`, `ValidateObjectMetaAccessor`.
    pub(super) fn validate_object(
        &mut self,
        metadata: Metadata<'_>,
        is_namespaced: bool,
        name_check: NameCheck,
        path: &Path<'_>,
    ) {
        let prefix = metadata.text("generateName");
        if !prefix.is_empty() {
            for message in name_check(prefix, true) {
                self.invalid(&path.field("generateName"), prefix, message);
            }
        }
        let name = metadata.text("name");
        if name.is_empty() {
            let detail = "name or generateName is required".to_owned();
            self.push(FieldErrorKind::Required, &path.field("name"), None, detail);
        } else {
            for message in name_check(name, false) {
                self.invalid(&path.field("name"), name, message);
            }
        }
        let namespace = metadata.text("namespace");
        let namespace_path = path.field("namespace");
        match (is_namespaced, namespace) {
            (true, "") => self.push(
                FieldErrorKind::Required,
                &namespace_path,
                None,
                String::new(),
            ),
            (true, namespace) => {
                for message in validation::dns1123_label(namespace.as_bytes()) {
                    self.invalid(&namespace_path, namespace, message);
                }
            }
            (false, "") => {}
            (false, _) => {
                let detail = "not allowed on this type".to_owned();
                self.push(FieldErrorKind::Forbidden, &namespace_path, None, detail);
            }
        }
        self.generation(metadata, &path.field("generation"));
        self.labels_to_owners(metadata, path);
        self.finalizers(metadata, &path.field("finalizers"));
        self.managed_fields(metadata, &path.field("managedFields"));
    }

    fn generation(&mut self, metadata: Metadata<'_>, path: &Path<'_>) {
        let generation = metadata.number("generation");
        if generation < 0 {
            let detail = "must be greater than or equal to 0".to_owned();
            let value = Some(generation.to_string());
            self.push(FieldErrorKind::Invalid, path, value, detail);
        }
    }

    fn labels_to_owners(&mut self, metadata: Metadata<'_>, path: &Path<'_>) {
        let labels = path.field("labels");
        for (key, value) in metadata.texts("labels") {
            for message in validation::qualified_name(key.as_bytes()) {
                self.invalid(&labels, key, message);
            }
            for message in validation::label_value(value.as_bytes()) {
                self.invalid(&labels, value, message);
            }
        }
        let annotations = path.field("annotations");
        let mut size: usize = 0;
        for (key, value) in metadata.texts("annotations") {
            size = size.saturating_add(key.len()).saturating_add(value.len());
            let lower: String = key
                .chars()
                .map(|c| c.to_lowercase().next().unwrap_or(c))
                .collect();
            for message in validation::qualified_name(lower.as_bytes()) {
                self.invalid(&annotations, key, message);
            }
        }
        if size > MAX_ANNOTATIONS {
            self.too_long(&annotations, MAX_ANNOTATIONS);
        }
        self.owners(metadata, &path.field("ownerReferences"));
    }

    fn owners(&mut self, metadata: Metadata<'_>, path: &Path<'_>) {
        let mut controller = String::new();
        let owners = metadata.list("ownerReferences");
        for (n, owner) in owners.iter().enumerate() {
            let text = |name: &str| owner.get(name).and_then(Json::as_str).unwrap_or_default();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = GroupVersion::split_valid(api_version).unwrap_or_default();
            let item = path.index(n);
            let reports_missing = self.behavior.reports_missing_metadata_fields;
            let owner_path = if reports_missing { &item } else { path };
            if reports_missing && !api_version.is_empty() {
                if version.is_empty() {
                    let detail = "must be <group>/<version> or <version>";
                    self.invalid(&owner_path.field("apiVersion"), api_version, detail);
                }
            } else if version.is_empty() {
                let detail = "version must not be empty";
                self.empty(&owner_path.field("apiVersion"), api_version, detail);
            }
            for name in ["kind", "name", "uid"] {
                if text(name).is_empty() {
                    let detail = if self.behavior.names_empty_owner_fields {
                        &format!("{name} must not be empty")
                    } else {
                        "must not be empty"
                    };
                    self.empty(&owner_path.field(name), "", detail);
                }
            }
            if (group, version, kind) == ("", "v1", "Event") {
                let detail = "/v1, Kind=Event is disallowed from being an owner".to_owned();
                let value = Some(owner_text(owner));
                self.push(FieldErrorKind::Invalid, owner_path, value, detail);
            }
            if owner.get("controller") == Some(&Json::Bool(true)) {
                let this = format!("{kind}/{}", text("name"));
                if controller.is_empty() {
                    controller = this;
                } else {
                    let owners: Vec<String> = owners.iter().map(owner_text).collect();
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {controller} and {this}"
                    );
                    let value = Some(format!("[{}]", owners.join(",")));
                    self.push(FieldErrorKind::Invalid, path, value, detail);
                }
            }
        }
    }

    /// Reports an empty field. Since 1.37, the error type is `Required`. In older versions, it is `Invalid`, with the
    /// message `detail`.
    fn empty(&mut self, path: &Path<'_>, value: &str, detail: &str) {
        if self.behavior.reports_missing_metadata_fields {
            let detail = "must not be empty".to_owned();
            self.push(FieldErrorKind::Required, path, None, detail);
        } else {
            self.invalid(path, value, detail);
        }
    }

    fn finalizers(&mut self, metadata: Metadata<'_>, path: &Path<'_>) {
        let finalizers = metadata.list("finalizers");
        for finalizer in finalizers.iter().filter_map(Json::as_str) {
            for message in validation::qualified_name(finalizer.as_bytes()) {
                self.invalid(path, finalizer, message);
            }
        }
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        if has("orphan") && has("foregroundDeletion") {
            let detail = "finalizer orphan and foregroundDeletion cannot be both set".to_owned();
            let value = Some(go_json::to_text(&json!(finalizers)));
            self.push(FieldErrorKind::Invalid, path, value, detail);
        }
    }

    fn managed_fields(&mut self, metadata: Metadata<'_>, path: &Path<'_>) {
        for (n, entry) in metadata.list("managedFields").iter().enumerate() {
            let path = path.index(n);
            let text = |name: &str| entry.get(name).and_then(Json::as_str).unwrap_or_default();
            let operation_path = path.field("operation");
            match text("operation") {
                "Apply" | "Update" => {}
                operation
                    if self.behavior.reports_missing_metadata_fields && !operation.is_empty() =>
                {
                    let value = Some(go_json::string_text(operation));
                    let detail = "supported values: \"Apply\", \"Update\"".to_owned();
                    self.push(FieldErrorKind::NotSupported, &operation_path, value, detail);
                }
                operation => self.empty(&operation_path, operation, "must be `Apply` or `Update`"),
            }
            if !matches!(text("fieldsType"), "" | "FieldsV1") {
                self.invalid(
                    &path.field("fieldsType"),
                    text("fieldsType"),
                    "must be `FieldsV1`",
                );
            }
            let manager = text("manager");
            let manager_path = path.field("manager");
            if manager.len() > 128 {
                self.too_long(&manager_path, 128);
            }
            for (at, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
                let detail = format!(
                    "invalid character U+{:04X} (at position {at})",
                    u32::from(c)
                );
                self.invalid(&manager_path, manager, detail);
            }
            if text("subresource").len() > 256 {
                self.too_long(&path.field("subresource"), 256);
            }
        }
    }

    /// Source: apimachinery `pkg/api/validation/objectmeta.go`, `ValidateObjectMetaAccessorUpdate`.
    pub(super) fn validate_update(
        &mut self,
        new: Metadata<'_>,
        old: Metadata<'_>,
        path: &Path<'_>,
    ) {
        if old.get("deletionTimestamp").is_some() {
            self.no_new_finalizers(new, old, &path.field("finalizers"));
        }
        if new.text("resourceVersion").is_empty() {
            self.invalid(
                &path.field("resourceVersion"),
                "",
                "must be specified for an update",
            );
        }
        if self.behavior.reports_missing_metadata_fields {
            self.generation(new, &path.field("generation"));
        }
        let generation = new.number("generation");
        if generation < old.number("generation") {
            let value = Some(generation.to_string());
            let detail = "must not be decremented".to_owned();
            self.push(
                FieldErrorKind::Invalid,
                &path.field("generation"),
                value,
                detail,
            );
        }
        for name in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            let empty = Json::String(String::new());
            let value_of = |metadata: Metadata<'_>| {
                metadata.get(name).filter(|value| **value != empty).cloned()
            };
            let (new, old) = (value_of(new), value_of(old));
            if new != old {
                let is_text = matches!(name, "name" | "namespace" | "uid");
                let value = match new {
                    Some(value) => shown(&value),
                    None if is_text => go_quote(""),
                    None => "null".to_owned(),
                };
                let detail = "field is immutable".to_owned();
                self.push(
                    FieldErrorKind::Invalid,
                    &path.field(name),
                    Some(value),
                    detail,
                );
            }
        }
        self.labels_to_owners(new, path);
        self.managed_fields(new, &path.field("managedFields"));
    }

    fn no_new_finalizers(&mut self, new: Metadata<'_>, old: Metadata<'_>, path: &Path<'_>) {
        let value_of = |metadata: Metadata<'_>| -> BTreeSet<String> {
            let finalizers = metadata.list("finalizers").iter();
            finalizers
                .filter_map(Json::as_str)
                .map(str::to_owned)
                .collect()
        };
        let (new, old) = (value_of(new), value_of(old));
        let added: Vec<String> = new.difference(&old).map(|name| go_quote(name)).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            self.push(FieldErrorKind::Forbidden, path, None, detail);
        }
    }
}

/// Formats an owner reference like Go's JSON encoder.
fn owner_text(owner: &Json) -> String {
    let text = |name: &str| {
        let text = owner.get(name).and_then(Json::as_str).unwrap_or_default();
        go_json::string_text(text)
    };
    let mut written = format!(
        "{{\"apiVersion\":{},\"kind\":{},\"name\":{},\"uid\":{}",
        text("apiVersion"),
        text("kind"),
        text("name"),
        text("uid")
    );
    for name in ["controller", "blockOwnerDeletion"] {
        if let Some(Json::Bool(value)) = owner.get(name) {
            // Writing to a string cannot fail.
            let _ = write!(written, ",\"{name}\":{value}");
        }
    }
    written.push('}');
    written
}
