//! Validates the parts of a new CustomResourceDefinition outside of its schemas: names, group, scope, versions, printer
//! columns and conversion.
//!
//! Not validated: labels, annotations, the status, JSON paths, selectable fields, and the addresses of webhooks.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
//! (`ValidateCustomResourceDefinition`, `validateCustomResourceDefinitionSpec`,
//! `ValidateCustomResourceDefinitionNames`, `ValidateCustomResourceColumnDefinition`,
//! `validateCustomResourceConversion`, `validateAPIApproval`, `validatePreserveUnknownFields`),
//! `pkg/apis/apiextensions/v1/defaults.go`.

use serde_json::Value as Json;

use super::definition::{DefinitionCause, DefinitionError};
use super::field_error::{FieldError, FieldErrorKind};
use super::path::{PathStep, written};
use crate::library::format::validation::{dns1035_label, dns1123_subdomain};
use cel::value::go_quote;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// The annotation that is required for groups of the Kubernetes project.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Returns the errors outside of the schemas of a CRD. `definition` must be a CustomResourceDefinition of
/// `apiextensions.k8s.io/v1`.
#[must_use]
pub fn definition_errors(definition: &Json) -> Vec<DefinitionError> {
    let mut faults = Faults(Vec::new());
    let Some(spec) = definition.get("spec") else {
        return faults.0;
    };
    let group = text(spec, "/group");
    faults.metadata(definition, spec, group);
    if group.is_empty() {
        faults.required("spec.group", "");
    } else if let Some(wrong) = joined(&dns1123_subdomain(group.as_bytes())) {
        faults.invalid("spec.group", group, &wrong);
    } else if !group.contains('.') {
        faults.invalid(
            "spec.group",
            group,
            "should be a domain with at least one dot",
        );
    }
    faults.one_of(
        "spec.scope",
        text(spec, "/scope"),
        &["Cluster", "Namespaced"],
    );
    faults.names(spec);
    faults.versions(spec);
    faults.conversion(spec);
    if spec.get("preserveUnknownFields") == Some(&Json::Bool(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        faults.add(
            "spec.preserveUnknownFields",
            FieldErrorKind::Invalid,
            Some("true".to_owned()),
            detail,
        );
    }
    faults.0
}

fn text<'a>(value: &'a Json, pointer: &str) -> &'a str {
    let value = value.pointer(pointer).and_then(Json::as_str);
    value.unwrap_or_default()
}

fn list<'a>(value: &'a Json, name: &str) -> &'a [Json] {
    let value = value.get(name).and_then(Json::as_array);
    value.map_or(&[], Vec::as_slice)
}

/// Joins the messages for one string with commas, like the API server.
fn joined(wrong: &[String]) -> Option<String> {
    (!wrong.is_empty()).then(|| wrong.join(","))
}

struct Faults(Vec<DefinitionError>);

impl Faults {
    /// Adds an error for the field at `path`, such as `spec.versions[0].name`.
    fn add(&mut self, path: &str, kind: FieldErrorKind, value: Option<String>, detail: &str) {
        let place = steps(path);
        self.0.push(DefinitionError {
            error: FieldError {
                kind,
                field: written(&place),
                value,
                detail: detail.to_owned(),
            },
            place,
            cause: DefinitionCause::Other,
        });
    }

    fn required(&mut self, path: &str, detail: &str) {
        self.add(path, FieldErrorKind::Required, None, detail);
    }

    fn invalid(&mut self, path: &str, value: &str, detail: &str) {
        self.add(path, FieldErrorKind::Invalid, Some(go_quote(value)), detail);
    }

    fn one_of(&mut self, path: &str, value: &str, supported: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else if !supported.contains(&value) {
            let supported: Vec<String> = supported.iter().map(|value| go_quote(value)).collect();
            let detail = format!("supported values: {}", supported.join(", "));
            self.add(
                path,
                FieldErrorKind::NotSupported,
                Some(go_quote(value)),
                &detail,
            );
        }
    }

    fn label(&mut self, path: &str, value: &str, before: &str) {
        let checked = if before.is_empty() {
            value.to_owned()
        } else {
            value.to_lowercase()
        };
        if !value.is_empty()
            && let Some(wrong) = joined(&dns1035_label(checked.as_bytes()))
        {
            self.invalid(path, value, &format!("{before}{wrong}"));
        }
    }

    fn metadata(&mut self, definition: &Json, spec: &Json, group: &str) {
        let name = text(definition, "/metadata/name");
        let is_generated = !text(definition, "/metadata/generateName").is_empty();
        let plural = text(spec, "/names/plural");
        if name.is_empty() && !is_generated {
            self.required("metadata.name", "name or generateName is required");
        } else if !name.is_empty() && name != format!("{plural}.{group}") {
            self.invalid(
                "metadata.name",
                name,
                "must be spec.names.plural+\".\"+spec.group",
            );
        }
        let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|own| {
            group
                .strip_suffix(own)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        let annotations = definition.pointer("/metadata/annotations");
        let is_approved = annotations.is_some_and(|it| it.get(APPROVED).is_some());
        if is_protected && !is_approved {
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVED}\", see \
                 https://github.com/kubernetes/enhancements/pull/1111"
            );
            self.required("metadata.annotations", &detail);
        }
    }

    fn names(&mut self, spec: &Json) {
        let plural = text(spec, "/names/plural");
        let (kind, list_kind) = (text(spec, "/names/kind"), text(spec, "/names/listKind"));
        for (name, value) in [("plural", plural), ("kind", kind)] {
            if value.is_empty() {
                self.required(&format!("spec.names.{name}"), "");
            }
        }
        self.label("spec.names.plural", plural, "");
        self.label("spec.names.singular", text(spec, "/names/singular"), "");
        let mixed = "may have mixed case, but should otherwise match: ";
        self.label("spec.names.kind", kind, mixed);
        self.label("spec.names.listKind", list_kind, mixed);
        let Some(names) = spec.get("names") else {
            return;
        };
        for of in ["shortNames", "categories"] {
            for (n, name) in list(names, of).iter().enumerate() {
                let name = name.as_str().unwrap_or_default();
                let path = format!("spec.names.{of}[{n}]");
                if let Some(wrong) = joined(&dns1035_label(name.as_bytes())) {
                    self.invalid(&path, name, &wrong);
                }
            }
        }
        if !kind.is_empty() && kind == list_kind {
            let detail = "kind and listKind may not be the same";
            self.invalid("spec.names.listKind", list_kind, detail);
        }
    }

    fn versions(&mut self, spec: &Json) {
        let versions = list(spec, "versions");
        let names: Vec<&str> = versions
            .iter()
            .map(|version| text(version, "/name"))
            .collect();
        for (n, version) in versions.iter().enumerate() {
            let path = format!("spec.versions[{n}]");
            let name = text(version, "/name");
            if let Some(wrong) = joined(&dns1035_label(name.as_bytes())) {
                self.invalid(&format!("{path}.name"), name, &wrong);
            }
            let schema = version.pointer("/schema/openAPIV3Schema");
            if schema.is_none_or(Json::is_null) {
                self.required(&format!("{path}.schema.openAPIV3Schema"), "");
            }
            for (n, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
                self.column(column, &format!("{path}.additionalPrinterColumns[{n}]"));
            }
        }
        // The API server's message contains all versions as the invalid value. This value is omitted here, because it
        // adds no information.
        let whole = |faults: &mut Self, detail: &str| {
            faults.add("spec.versions", FieldErrorKind::Invalid, None, detail);
        };
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != names.len() {
            whole(self, "must contain unique version names");
        }
        let is_stored = |version: &&Json| version.get("storage") == Some(&Json::Bool(true));
        if versions.iter().filter(is_stored).count() != 1 {
            whole(
                self,
                "must have exactly one version marked as storage version",
            );
        }
    }

    fn column(&mut self, column: &Json, path: &str) {
        for (name, pointer) in [("name", "/name"), ("jsonPath", "/jsonPath")] {
            if text(column, pointer).is_empty() {
                self.required(&format!("{path}.{name}"), "");
            }
        }
        let wanted = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text(column, "/type") {
            "" => self.required(&format!("{path}.type"), &wanted),
            type_ if !COLUMN_TYPES.contains(&type_) => {
                self.invalid(&format!("{path}.type"), type_, &wanted);
            }
            _ => {}
        }
        let format = text(column, "/format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let wanted = format!("must be one of {}", COLUMN_FORMATS.join(","));
            self.invalid(&format!("{path}.format"), format, &wanted);
        }
    }

    fn conversion(&mut self, spec: &Json) {
        let Some(conversion) = spec.get("conversion").filter(|it| !it.is_null()) else {
            return;
        };
        let strategy = text(conversion, "/strategy");
        self.one_of("spec.conversion.strategy", strategy, &["None", "Webhook"]);
        let client = conversion.pointer("/webhook/clientConfig");
        let client = client.filter(|it| !it.is_null());
        if strategy == "Webhook" {
            let is_set = |name: &str| {
                let field = client.and_then(|client| client.get(name));
                field.is_some_and(|field| !field.is_null())
            };
            let path = "spec.conversion.webhook.clientConfig";
            if client.is_none() {
                self.required(path, "required when strategy is set to Webhook");
            } else if is_set("url") == is_set("service") {
                self.required(path, "exactly one of url or service is required");
            }
            self.reviews(conversion);
        } else if client.is_some() {
            let detail = "should not be set when strategy is not set to Webhook";
            let path = "spec.conversion.webhook.clientConfig";
            self.add(path, FieldErrorKind::Forbidden, None, detail);
        }
    }

    fn reviews(&mut self, conversion: &Json) {
        let path = "spec.conversion.webhook.conversionReviewVersions";
        let versions = conversion.get("webhook");
        let versions =
            versions.map_or(&[][..], |webhook| list(webhook, "conversionReviewVersions"));
        if versions.is_empty() {
            self.required(path, "");
        } else if !versions
            .iter()
            .any(|version| version == "v1" || version == "v1beta1")
        {
            let value = Json::Array(versions.to_vec()).to_string();
            let detail = "must include at least one of v1, v1beta1";
            self.add(path, FieldErrorKind::Invalid, Some(value), detail);
        }
    }
}

/// Parses a path that consists of fields and list indices.
fn steps(path: &str) -> Vec<PathStep> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let mut parts = part.split('[');
        let name = parts.next().unwrap_or_default();
        steps.push(PathStep::Field(name.to_owned()));
        let indices = parts.filter_map(|index| index.trim_end_matches(']').parse().ok());
        steps.extend(indices.map(PathStep::Index));
    }
    steps
}
