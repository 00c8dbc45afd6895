//! Validates each default in a structural schema against the schema that declares it.
//!
//! The API server rejects a CRD with an invalid default. It does not validate defaults of a resource's `apiVersion`,
//! `kind` and `metadata`.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/validation.go` (`ValidateDefaults`).

use serde_json::{Map, Value as Json};

use super::embedded;
use super::outcome::shown;
use super::schema::{Schema, any_below};
use super::value::{Place, Walk};
use crate::defaulting;
use crate::validation_rules::definition::validate_rules_with;
use crate::validation_rules::path::Path;
use crate::validation_rules::{
    DefinitionCause, DefinitionError, DefinitionVerdict, FieldError, FieldErrorKind, Validator,
};
use crate::version::{Behavior, CompileMode, KubernetesVersion};

/// Validates the defaults of a new CRD, and then its rules like
/// [`validate_rules`](crate::validation_rules::validate_rules). The API server uses the same order.
#[must_use]
pub fn validate_definition(definition: &Json, version: KubernetesVersion) -> DefinitionVerdict {
    let default_errors = |schema: &Json, path: &Path<'_>| default_errors(schema, path, version);
    validate_rules_with(definition, (version, CompileMode::New), &default_errors)
}

/// Returns the errors of the defaults in `schema`, the structural schema of a resource. The caller must limit the depth
/// of the schema.
fn default_errors(
    schema: &Json,
    path: &Path<'_>,
    version: KubernetesVersion,
) -> Vec<DefinitionError> {
    let mut errors = Vec::new();
    if any_below(schema, |schema| default_of(schema).is_some()) {
        walk(schema, path, (true, version), &mut errors);
    }
    errors
}

/// Returns the default of a schema. A null default counts as missing.
fn default_of(schema: &Json) -> Option<&Json> {
    schema.get("default").filter(|default| !default.is_null())
}

fn walk(
    schema: &Json,
    path: &Path<'_>,
    (is_root, version): (bool, KubernetesVersion),
    errors: &mut Vec<DefinitionError>,
) {
    let is_resource = is_root || embedded::is_embedded(schema);
    if let Some(default) = default_of(schema) {
        let path = path.field("default");
        let faults = faults(schema, default, is_resource, version);
        errors.extend(faults.into_iter().map(|fault| DefinitionError {
            error: FieldError {
                field: below(&path.text(), &fault.field),
                ..fault
            },
            place: path.steps(),
            cause: DefinitionCause::Other,
        }));
    }
    // The API server forbids defaults in `additionalProperties`, so these schemas are not visited.
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        walk(items, &path.field("items"), (false, version), errors);
    }
    let properties = schema.get("properties").and_then(Json::as_object);
    let of_metadata =
        |name: &str| is_resource && ["apiVersion", "kind", "metadata"].contains(&name);
    let path = path.field("properties");
    for (name, property) in properties.into_iter().flatten() {
        if !of_metadata(name) {
            walk(property, &path.key(name), (false, version), errors);
        }
    }
}

/// Returns the errors of a schema's default. The paths are relative to the default. `is_resource` is true if the schema
/// describes a resource.
fn faults(
    schema: &Json,
    default: &Json,
    is_resource: bool,
    version: KubernetesVersion,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if defaulting::has_unknown(default, schema, embedded::is_embedded(schema)) {
        errors.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: Path::ROOT.text(),
            value: Some(shown(default)),
            detail: "must not have unknown fields".to_owned(),
        });
    }
    let n_unknown = errors.len();
    embedded::validate(
        schema,
        default,
        &Path::ROOT,
        version.behavior(),
        &mut errors,
    );
    if errors.len() > n_unknown {
        return errors;
    }
    let empty = Map::new();
    // When upstream validates defaults, it does not remove unsupported formats from the schema.
    let behavior = Behavior {
        formats_depend_on_type: true,
        ..version.behavior()
    };
    let read = Schema::read(schema.as_object().unwrap_or(&empty), behavior);
    let outcome = Walk::new().value(&read, default, &Place::Root, None);
    if !outcome.faults.is_empty() {
        errors.extend(outcome.faults.into_iter().map(|fault| child(fault.error)));
        return errors;
    }
    // A rule that does not compile is ignored here. It is reported when the rules are validated.
    let Ok(rules) = Validator::from_part(schema, is_resource, version) else {
        return errors;
    };
    if rules.has_rules() {
        // Upstream validates the default twice: as an update that changes nothing and, if there are no errors, as a new
        // object.
        let mut rule_errors = rules.validate_unchanged(default).errors;
        if rule_errors.is_empty() {
            rule_errors = rules.validate(default, None).errors;
        }
        errors.append(&mut rule_errors);
    }
    errors
}

/// Adds a dot before an index at the start of the path, as in `.[1]`. Upstream does the same for errors inside a
/// default.
///
/// Source: apiextensions-apiserver `pkg/apiserver/validation/validation.go` (`kubeOpenAPIResultToFieldErrors`).
fn child(mut error: FieldError) -> FieldError {
    if error.field.starts_with('[') {
        error.field.insert(0, '.');
    }
    error
}

/// Appends the relative path `field` to `path`. `<nil>` denotes the value at `path` itself.
fn below(path: &str, field: &str) -> String {
    match field {
        "<nil>" => path.to_owned(),
        field if field.starts_with(['[', '.']) => format!("{path}{field}"),
        field => format!("{path}.{field}"),
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: &Json, expect: &[&str]) {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let definition = json!({"spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        let verdict = validate_definition(&definition, KubernetesVersion::DEFAULT);
        let below = "spec.validation.openAPIV3Schema.properties[spec]";
        let errors: Vec<_> = verdict
            .errors
            .iter()
            .map(|errors| errors.error.to_string().replace(below, "~"))
            .collect();
        assert_eq!(errors, expect);
    }

    /// Source: responses of a real API server, `e2e/tests/custom_resources.rs`.
    #[test]
    fn defaults_are_validated_against_schema_and_rules() {
        let rule = json!([{"rule": "self.n > 3", "message": "too few"}]);
        let integer = json!({"type": "integer"});
        check(
            &json!({"type": "object", "default": {"n": 4}, "properties": {"n": integer},
                "x-kubernetes-validations": rule}),
            &[],
        );
        check(
            &json!({"type": "object", "default": {"n": 1}, "properties": {"n": integer},
                "x-kubernetes-validations": rule}),
            &["~.default: Invalid value: too few"],
        );
        check(
            &json!({"type": "object", "default": {"m": 1}, "properties": {"n": integer}}),
            &["~.default: Invalid value: {\"m\":1}: must not have unknown fields"],
        );
        check(
            &json!({"type": "array", "default": ["a", 1], "items": {"type": "string"}}),
            &[
                "~.default.[1]: Invalid value: \"integer\": [1] in body must be of type string: \"integer\"",
            ],
        );
        check(
            &json!({"type": "array", "items": {"type": "object", "properties": {"a": {
                "type": "string", "maxLength": 1, "default": "ab"}}}}),
            &["~.items.properties[a].default: Too long: may not be more than 1 byte"],
        );
        // The default violates both rules, and both errors are reported.
        check(
            &json!({"type": "number", "default": 1e300, "x-kubernetes-validations": [
                {"rule": "int(self) > 2"}, {"rule": "self < 5.0", "message": "no"}]}),
            &[
                "~.default: Invalid value: \"number\": integer overflow evaluating rule: int(self) > 2",
                "~.default: Invalid value: 1e+300: no",
            ],
        );
        // The invalid rule `self +` is not reported, because a rejected default prevents the compilation of rules.
        check(
            &json!({"type": "string", "maxLength": 1, "default": "ab",
                "x-kubernetes-validations": [{"rule": "self +"}]}),
            &["~.default: Too long: may not be more than 1 byte"],
        );
    }
}
