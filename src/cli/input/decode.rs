//! API objects out of JSON, as Go decodes them: what is null is as good as left out, and a policy has
//! the API server's defaults.

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value};

/// The version that policies and bindings of all versions are read as; they share their fields.
const V1: &str = "admissionregistration.k8s.io/v1";

/// A policy of any version as v1, with the API server's defaults.
///
/// # Errors
/// If it does not have the shape of a policy.
pub fn policy(value: Value) -> Result<ValidatingAdmissionPolicy, serde_json::Error> {
    let mut policy: ValidatingAdmissionPolicy = serde_json::from_value(as_v1(value))?;
    let spec = policy.spec.get_or_insert_default();
    spec.failure_policy.get_or_insert_with(|| "Fail".to_owned());
    if let Some(constraints) = &mut spec.match_constraints {
        default_match_resources(constraints);
    }
    Ok(policy)
}

/// A binding of any version as v1, with the API server's defaults.
///
/// # Errors
/// If it does not have the shape of a binding.
pub fn binding(value: Value) -> Result<ValidatingAdmissionPolicyBinding, serde_json::Error> {
    let mut binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(as_v1(value))?;
    if let Some(resources) = &mut binding.spec.match_resources {
        default_match_resources(resources);
    }
    Ok(binding)
}

/// A mutating policy of any version as v1, with the API server's defaults.
///
/// # Errors
/// If it does not have the shape of a mutating policy.
pub fn mutating_policy(value: Value) -> Result<MutatingAdmissionPolicy, serde_json::Error> {
    let mut policy: MutatingAdmissionPolicy = serde_json::from_value(as_v1(value))?;
    let spec = policy.spec.get_or_insert_default();
    spec.failure_policy.get_or_insert_with(|| "Fail".to_owned());
    if let Some(constraints) = &mut spec.match_constraints {
        default_match_resources(constraints);
    }
    Ok(policy)
}

/// A binding of a mutating policy, of any version as v1, with the API server's defaults.
///
/// # Errors
/// If it does not have the shape of such a binding.
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

/// Lists whose items are objects, where null is an empty object and not an empty string.
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

/// Reads null as Go does: a field that is null is as good as left out, and an item that is null is
/// the empty one.
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

/// Gives the conditions of a status a date, which Go does not ask for and our types do.
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

/// Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/v1/defaults.go`,
/// `SetDefaults_MatchResources`.
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
