//! Validates the CEL rules of CRDs (`x-kubernetes-validations`), and validates objects against these rules.
//!
//! - [`validate_rules`]: validates the rules of a new CRD like the API server. Returns the errors and the estimated
//!   cost of each rule.
//! - [`has_rules`]: returns true if a CRD contains rules.
//! - [`validate`]: validates a new or updated object against the rules of a CRD. Use this function to test CRDs
//!   generated from Rust types, such as with the derive macro of `kube`.
//! - [`Validator`]: validates many objects with the same schema.
//!
//! Only rules are validated, not other keywords. Objects are neither pruned nor defaulted.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/cel`, `pkg/apis/apiextensions/validation`.

mod compile;
mod context;
pub(crate) mod correlation;
mod cost;
pub(crate) mod definition;
mod field_error;
mod field_path;
mod keywords;
mod list_errors;
pub(crate) mod path;
mod rule;
mod schema_errors;
mod spec_errors;
#[cfg(test)]
mod tests;
mod validator;
mod walk;

use serde_json::Value as Json;

pub use compile::{ExpressionError, ExpressionErrorKind, rule_env};
pub use cost::{STATIC_ESTIMATED_COST_LIMIT, STATIC_ESTIMATED_CRD_COST_LIMIT};
pub use definition::{
    DefinitionCause, DefinitionError, DefinitionVerdict, RuleCost, has_rules, validate_rules,
};
pub use field_error::{FieldError, FieldErrorKind};
pub use path::PathStep;
pub use rule::ValidationRule;
pub(crate) use schema_errors::each_schema_of;
pub use schema_errors::{KEYWORDS, schema_errors};
pub use spec_errors::definition_errors;
pub use validator::{ValidationResult, Validator};
pub use walk::{ObservedRule, RuleObserver};

use crate::schema::SchemaError;
use crate::version::KubernetesVersion;
use cel::value::Exceeded;

/// An error that prevents the validation of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// The CRD has no version with this name, or the version has no schema.
    #[error("the CustomResourceDefinition has no schema for version `{0}`")]
    NoVersion(String),
    /// The schema exceeds a limit of this crate.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The evaluation of the rules exceeds a limit of this crate, so the errors of the object are unknown.
    #[error("{0}")]
    Exceeded(Exceeded),
}

/// Validates `object` against the rules of a CRD. Returns the errors that an API server of the version `kubernetes`
/// reports, or an empty list if all rules hold.
///
/// `definition` must be a CustomResourceDefinition of `apiextensions.k8s.io/v1`. The `apiVersion` of the object
/// determines the version. For an update, `before` is the old object.
///
/// # Errors
/// Returns an error if the version has no schema, if the schema is too deep or too large, or if the rules exceed their
/// budget.
///
/// # Example
/// ```
/// use kubernetes::validation_rules::validate;
/// use kubernetes::version::KubernetesVersion;
/// use serde_json::json;
///
/// // With `kube`: `serde_json::to_value(MyResource::crd())`.
/// let crd = json!({"spec": {"group": "example.com", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
///     "type": "object",
///     "properties": {"spec": {
///         "type": "object",
///         "properties": {"class": {"type": "string"}},
///         "x-kubernetes-validations": [{
///             "rule": "self.class == oldSelf.class",
///             "message": "is immutable",
///             "fieldPath": ".class",
///             "reason": "FieldValueForbidden",
///         }],
///     }},
/// }}}]}});
/// let object = |class| json!({"apiVersion": "example.com/v1", "kind": "Disk", "spec": {"class": class}});
///
/// let kubernetes = KubernetesVersion::DEFAULT;
/// assert_eq!(validate(&crd, &object("fast"), None, kubernetes)?, []);
/// let errors = validate(&crd, &object("slow"), Some(&object("fast")), kubernetes)?;
/// assert_eq!(errors[0].to_string(), "spec.class: Forbidden: is immutable");
/// # Ok::<(), kubernetes::validation_rules::ValidateError>(())
/// ```
pub fn validate(
    definition: &Json,
    object: &Json,
    before: Option<&Json>,
    kubernetes: KubernetesVersion,
) -> Result<Vec<FieldError>, ValidateError> {
    let api_version = object.get("apiVersion").and_then(Json::as_str);
    let version = api_version.unwrap_or_default().rsplit('/').next();
    let version = version.unwrap_or_default();
    let versions = definition.pointer("/spec/versions");
    let schema = versions
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .find(|known| known.get("name").and_then(Json::as_str) == Some(version))
        .and_then(|version| version.pointer("/schema/openAPIV3Schema"))
        .ok_or_else(|| ValidateError::NoVersion(version.to_owned()))?;
    let result = Validator::new(schema, kubernetes)?.validate(object, before);
    match result.exceeded {
        None => Ok(result.errors),
        Some(exceeded) => Err(ValidateError::Exceeded(exceeded)),
    }
}

/// Formats a value for error messages.
///
/// Source: apimachinery `pkg/util/validation/field/errors.go`, `ErrorBody`.
pub(crate) fn shown(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => cel::value::go_quote(text),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => number.to_string(),
            None => cel::value::format_double(number.as_f64().unwrap_or_default()),
        },
        other => crate::go_json::to_text(other),
    }
}
