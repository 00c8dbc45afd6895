//! Validation rules of CustomResourceDefinitions (`x-kubernetes-validations`): judged as at creation, and held against
//! objects.
//!
//! - [`judge`]: what the API server says of the rules of a definition when it is created: errors in its words, and
//!   what each rule may cost.
//! - [`has_rules`]: whether there is anything to judge.
//! - [`validate`]: an object held against the rules of a definition, on creation or on an update: for tests of a
//!   definition that Rust types make, such as those of `kube`'s derive macro.
//! - [`Validator`]: the same for many objects of one schema.
//!
//! Nothing here prunes, defaults, or looks at anything that a schema says beside its rules.
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
mod validator;
mod walk;

use serde_json::Value as Json;

pub use compile::{ExpressionError, Trouble};
pub use cost::{STATIC_ESTIMATED_COST_LIMIT, STATIC_ESTIMATED_CRD_COST_LIMIT};
pub use definition::{
    DefinitionCause, DefinitionError, DefinitionVerdict, RuleCost, has_rules, judge,
};
pub use field_error::{FieldError, FieldErrorKind};
pub use path::PathStep;
pub use rule::ValidationRule;
pub use schema_errors::{KEYWORDS, schema_errors};
pub use spec_errors::definition_errors;
pub use validator::{ValidationResult, Validator};
pub use walk::{RuleWatcher, WatchedRule};

use crate::schema::SchemaError;
use cel::value::Exceeded;

/// The reason why an object could not be held against rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// The definition has no version of that name with a schema.
    #[error("the definition has no schema of version `{0}`")]
    NoVersion(String),
    /// The schema is beyond what is read.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The rules need more than they may use, so that the errors of the object are unknown.
    #[error("{0}")]
    Exceeded(Exceeded),
}

/// Holds `object` against the rules of `definition`, a CustomResourceDefinition of `apiextensions.k8s.io/v1`; on an
/// update with the object `before` it. The errors are those of the API server, in its words; none where the rules hold.
///
/// The version is that of the object's `apiVersion`.
///
/// # Errors
/// If the definition has no schema of that version, or one that nests too deeply.
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

/// A value as errors show it.
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
