//! Validates the rules of CustomResourceDefinitions (`x-kubernetes-validations`), and objects against these rules.
//!
//! - [`validate_rules`]: validates the rules of a CRD like the API server when it is created. Returns errors and the
//!   estimated cost of each rule.
//! - [`has_rules`]: returns true if a CRD contains rules.
//! - [`validate`]: validates an object against the rules of a CRD, on creation or update. Use it to test CRDs generated
//!   from Rust types, such as those of `kube`'s derive macro.
//! - [`Validator`]: validates many objects of one schema.
//!
//! Objects are not pruned or defaulted, and only rules are validated, no other keywords.
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

pub use compile::{ExpressionError, ExpressionErrorKind};
pub use cost::{STATIC_ESTIMATED_COST_LIMIT, STATIC_ESTIMATED_CRD_COST_LIMIT};
pub use definition::{
    DefinitionCause, DefinitionError, DefinitionVerdict, RuleCost, has_rules, validate_rules,
};
pub use field_error::{FieldError, FieldErrorKind};
pub use path::PathStep;
pub use rule::ValidationRule;
pub use schema_errors::{KEYWORDS, schema_errors};
pub use spec_errors::definition_errors;
pub use validator::{ValidationResult, Validator};
pub use walk::{ObservedRule, RuleObserver};

use crate::schema::SchemaError;
use cel::value::Exceeded;

/// Failure to validate an object against rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// The CRD has no version with this name, or that version has no schema.
    #[error("the CustomResourceDefinition has no schema for version `{0}`")]
    NoVersion(String),
    /// The schema exceeds the limits of this crate.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The evaluation of the rules exceeds its budget, so the errors of the object are unknown.
    #[error("{0}")]
    Exceeded(Exceeded),
}

/// Validates `object` against the rules of `definition`, a CustomResourceDefinition of `apiextensions.k8s.io/v1`. If
/// `before` is set, it is the old object of an update. Returns the API server's errors, or an empty list if all rules
/// hold.
///
/// The CRD version is taken from the object's `apiVersion`.
///
/// # Errors
/// Returns an error if the CRD has no schema for that version, if the schema nests too deeply or is too large, or if
/// the rules exceed their budget.
///
/// # Example
/// ```
/// use kubernetes::validation_rules::validate;
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
/// assert_eq!(validate(&crd, &object("fast"), None)?, []);
/// let errors = validate(&crd, &object("slow"), Some(&object("fast")))?;
/// assert_eq!(errors[0].to_string(), "spec.class: Forbidden: is immutable");
/// # Ok::<(), kubernetes::validation_rules::ValidateError>(())
/// ```
pub fn validate(
    definition: &Json,
    object: &Json,
    before: Option<&Json>,
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
    let result = Validator::new(schema)?.validate(object, before);
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
