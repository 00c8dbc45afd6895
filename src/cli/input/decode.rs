//! Decodes API objects from JSON as Go does: null fields are absent, and the API server's defaults are set.

use goyaml::Node;
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value};

/// The version to which policies and bindings are converted. All versions have the same fields.
const V1: &str = "admissionregistration.k8s.io/v1";

/// Decodes a policy of any version as v1, with the API server's defaults.
///
/// # Errors
/// Returns an error if the value cannot be decoded.
pub fn policy(value: Value) -> Result<ValidatingAdmissionPolicy, serde_json::Error> {
    let mut policy: ValidatingAdmissionPolicy = serde_json::from_value(as_v1(value))?;
    let spec = policy.spec.get_or_insert_default();
    spec.failure_policy.get_or_insert_with(|| "Fail".to_owned());
    if let Some(constraints) = &mut spec.match_constraints {
        default_match_resources(constraints);
    }
    Ok(policy)
}

/// Returns the generation and the status of a policy that was read from a cluster. Returns 0 and `None` if they are
/// missing.
#[must_use]
pub fn generation_and_status(policy: &Node) -> (i64, Option<ValidatingAdmissionPolicyStatus>) {
    let fields = ["metadata", "status"].into_iter();
    let fields = fields.filter_map(|name| Some((name.to_owned(), policy.get(name)?.to_json())));
    let policy = serde_json::from_value(as_v1(Value::Object(fields.collect())));
    let policy: ValidatingAdmissionPolicy = policy.unwrap_or_default();
    let generation = policy.metadata.generation;
    (generation.unwrap_or_default(), policy.status)
}

/// Decodes a binding of any version as v1, with the API server's defaults.
///
/// # Errors
/// Returns an error if the value cannot be decoded.
pub fn binding(value: Value) -> Result<ValidatingAdmissionPolicyBinding, serde_json::Error> {
    let mut binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(as_v1(value))?;
    if let Some(resources) = &mut binding.spec.match_resources {
        default_match_resources(resources);
    }
    Ok(binding)
}

/// Decodes a mutating policy of any version as v1, with the API server's defaults.
///
/// # Errors
/// Returns an error if the value cannot be decoded.
pub fn mutating_policy(value: Value) -> Result<MutatingAdmissionPolicy, serde_json::Error> {
    let mut policy: MutatingAdmissionPolicy = serde_json::from_value(as_v1(value))?;
    let spec = policy.spec.get_or_insert_default();
    spec.failure_policy.get_or_insert_with(|| "Fail".to_owned());
    if let Some(constraints) = &mut spec.match_constraints {
        default_match_resources(constraints);
    }
    Ok(policy)
}

/// Decodes the binding of a mutating policy, in any version, as v1. Sets the API server's defaults.
///
/// # Errors
/// Returns an error if the value cannot be decoded.
pub fn mutating_binding(value: Value) -> Result<MutatingAdmissionPolicyBinding, serde_json::Error> {
    let mut binding: MutatingAdmissionPolicyBinding = serde_json::from_value(as_v1(value))?;
    let spec = binding.spec.get_or_insert_default();
    if let Some(resources) = &mut spec.match_resources {
        default_match_resources(resources);
    }
    Ok(binding)
}

fn as_v1(mut value: Value) -> Value {
    drop_nulls(&mut value);
    date_conditions(&mut value);
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), V1.into());
    }
    value
}

/// The names of fields that are lists of objects. A null item of such a list becomes an empty object. In other lists, a
/// null item becomes an empty string.
const OBJECT_LISTS: [&str; 12] = [
    "auditAnnotations",
    "conditions",
    "excludeResourceRules",
    "expressionWarnings",
    "matchConditions",
    "managedFields",
    "matchExpressions",
    "mutations",
    "ownerReferences",
    "resourceRules",
    "validations",
    "variables",
];

/// Replaces nulls as Go does: a null field is absent, and a null item is the empty value.
fn drop_nulls(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    fields.retain(|_, field| !field.is_null());
    for (name, field) in fields {
        if let Value::Array(items) = field {
            for item in items {
                if item.is_null() {
                    *item = if OBJECT_LISTS.contains(&name.as_str()) {
                        Value::Object(Map::new())
                    } else {
                        Value::from("")
                    };
                }
                drop_nulls(item);
            }
        } else {
            drop_nulls(field);
        }
    }
}

/// Adds missing fields to the conditions of a status. The Rust types require these fields, whereas Go accepts
/// conditions without them.
fn date_conditions(value: &mut Value) {
    let conditions = value
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    for condition in conditions
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        for (field, empty) in [
            ("lastTransitionTime", "1970-01-01T00:00:00Z"),
            ("message", ""),
            ("reason", ""),
            ("status", ""),
            ("type", ""),
        ] {
            condition.entry(field).or_insert_with(|| empty.into());
        }
    }
}

/// Sets the API server's defaults.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/v1/defaults.go`, `SetDefaults_MatchResources`.
fn default_match_resources(resources: &mut MatchResources) {
    resources
        .match_policy
        .get_or_insert_with(|| "Equivalent".to_owned());
    resources
        .namespace_selector
        .get_or_insert_with(LabelSelector::default);
    resources
        .object_selector
        .get_or_insert_with(LabelSelector::default);
    for rule in [
        &mut resources.resource_rules,
        &mut resources.exclude_resource_rules,
    ]
    .into_iter()
    .flatten()
    .flatten()
    {
        rule.scope.get_or_insert_with(|| "*".to_owned());
    }
}
