//! Validates the schemas of a new CustomResourceDefinition, except for rules and defaults.
//!
//! Errors about unknown or unsupported keywords, missing or unknown types, and invalid patterns have the API server's
//! path and message. If a schema is not structural for another reason, the whole schema has a single error.
//!
//! [`crate::custom_resource::validate_definition`] validates defaults. [`super::spec_errors`] validates the fields
//! outside of schemas.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
//! (`ValidateCustomResourceDefinitionOpenAPISchema`, `specStandardValidatorV3.validate`),
//! `pkg/apiserver/schema/validation.go` (`ValidateStructural`), `pkg/apis/apiextensions/v1/types_jsonschema.go`
//! (`JSONSchemaProps`).

use serde_json::{Map, Value as Json};

use super::definition::{DefinitionCause, DefinitionError};
use super::field_error::{FieldError, FieldErrorKind};
use super::list_errors;
use super::path::{Path, PathStep, written};
use crate::schema::crd::{MAX_JSON_DEPTH, is_shallower};
use crate::schema::extensions::{INT_OR_STRING, PRESERVE_UNKNOWN_FIELDS};
use crate::schema::structural::is_structural;
use cel::interrupt::checkpoint;
use cel::value::go_quote;

/// The maximum number of reported errors.
const MAX_ERRORS: usize = 50;

/// The message for a keyword that does not exist in CRD schemas.
const UNKNOWN_KEYWORD: &str =
    "schemas have no such keyword: the API server drops it, and kubectl rejects it";

/// The keywords of CRD schemas, sorted.
pub const KEYWORDS: [&str; 44] = [
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "definitions",
    "dependencies",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The keywords that the API server decodes but does not support.
const UNSUPPORTED: [&str; 6] = [
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
];

/// The position of a schema. The message for a missing type depends on the position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
    /// In `not`, `allOf`, `anyOf` or `oneOf`.
    Junctor,
}

/// Returns the errors in the schemas of a CRD. `definition` must be a CustomResourceDefinition of
/// `apiextensions.k8s.io/v1`.
#[must_use]
pub fn schema_errors(definition: &Json) -> Vec<DefinitionError> {
    let mut errors = Vec::new();
    each_version(definition, &mut |schema, path| {
        let before = errors.len();
        each_schema(schema, path, Level::Root, &mut |schema, path, level| {
            let is_open = errors.len() < MAX_ERRORS;
            if is_open {
                unknown_keywords(schema, path, &mut errors);
                keywords(schema, path, level, &mut errors);
            }
            is_open
        });
        if errors.len() == before && !is_structural(schema) {
            let detail = "the schema is not structural: schemas in `not`, `allOf`, `anyOf` and `oneOf` may \
                          only restrict fields declared outside of them, and the root must have type object";
            add(&mut errors, path, FieldErrorKind::Forbidden, None, detail);
        }
        errors.len() < MAX_ERRORS
    });
    errors.truncate(MAX_ERRORS);
    errors
}

/// Calls `visit` with the content and the path of each schema of a CRD, including nested schemas. Stops when `visit`
/// returns false.
pub(crate) fn each_schema_of(
    definition: &Json,
    visit: &mut dyn FnMut(&Map<String, Json>, &Path<'_>) -> bool,
) {
    each_version(definition, &mut |schema, path| {
        let mut is_open = true;
        each_schema(schema, path, Level::Root, &mut |schema, path, _| {
            is_open = is_open && visit(schema, path);
            is_open
        });
        is_open
    });
}

/// Calls `visit` with the schema of each version of a CRD. Stops when `visit` returns false.
fn each_version(definition: &Json, visit: &mut dyn FnMut(&Map<String, Json>, &Path<'_>) -> bool) {
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Json::as_array);
    let spec = Path::ROOT.field("spec");
    let versions_path = spec.field("versions");
    for (n, version) in versions.into_iter().flatten().enumerate() {
        let schema = version.pointer("/schema/openAPIV3Schema");
        let Some(schema) = schema.filter(|schema| is_shallower(schema, MAX_JSON_DEPTH)) else {
            continue;
        };
        let Some(schema) = schema.as_object() else {
            continue;
        };
        let path = versions_path.index(n);
        let path = path.field("schema");
        let path = path.field("openAPIV3Schema");
        if !visit(schema, &path) {
            break;
        }
    }
}

fn add(
    errors: &mut Vec<DefinitionError>,
    path: &Path<'_>,
    kind: FieldErrorKind,
    value: Option<&str>,
    detail: impl Into<String>,
) {
    errors.push(DefinitionError {
        error: FieldError {
            kind,
            field: path.text(),
            value: value.map(go_quote),
            detail: detail.into(),
        },
        place: path.steps(),
        cause: DefinitionCause::Other,
    });
}

fn unknown_keywords(
    schema: &Map<String, Json>,
    path: &Path<'_>,
    errors: &mut Vec<DefinitionError>,
) {
    for keyword in schema.keys() {
        if KEYWORDS.binary_search(&keyword.as_str()).is_err() {
            let path = path.field(keyword);
            let kind = FieldErrorKind::Invalid;
            add(errors, &path, kind, None, UNKNOWN_KEYWORD);
            if let Some(added) = errors.last_mut() {
                added.cause = DefinitionCause::UnknownKeyword;
            }
        }
    }
}

/// A function that is called with a schema, its path and its position. If it returns false, the schemas nested in this
/// schema are skipped.
type VisitSchema<'v> = dyn FnMut(&Map<String, Json>, &Path<'_>, Level) -> bool + 'v;

/// Calls `visit` with a schema and all nested schemas. If `visit` returns false, skips the schemas nested in its
/// argument.
fn each_schema(
    schema: &Map<String, Json>,
    path: &Path<'_>,
    level: Level,
    visit: &mut VisitSchema<'_>,
) {
    checkpoint();
    if !visit(schema, path, level) {
        return;
    }
    let object = |key: &str| schema.get(key).and_then(Json::as_object);
    let below = if level == Level::Junctor {
        [Level::Junctor; 2]
    } else {
        [Level::Item, Level::Field]
    };
    if let Some(items) = object("items") {
        each_schema(items, &path.field("items"), below[0], visit);
    }
    if let Some(values) = object("additionalProperties") {
        each_schema(values, &path.field("additionalProperties"), below[1], visit);
    }
    let properties = path.field("properties");
    for (name, property) in object("properties").into_iter().flatten() {
        if let Some(property) = property.as_object() {
            each_schema(property, &properties.key(name), below[1], visit);
        }
    }
    if let Some(not) = object("not") {
        each_schema(not, &path.field("not"), Level::Junctor, visit);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let nested = schema.get(key).and_then(Json::as_array);
        let path = path.field(key);
        for (n, nested) in nested.into_iter().flatten().enumerate() {
            if let Some(nested) = nested.as_object() {
                each_schema(nested, &path.index(n), Level::Junctor, visit);
            }
        }
    }
}

/// Adds the errors in the keywords of one schema, without nested schemas.
fn keywords(
    schema: &Map<String, Json>,
    path: &Path<'_>,
    level: Level,
    errors: &mut Vec<DefinitionError>,
) {
    let is_true = |key: &str| schema.get(key) == Some(&Json::Bool(true));
    for keyword in UNSUPPORTED {
        let is_set = schema.get(keyword).is_some_and(|value| match value {
            Json::Null => false,
            Json::String(text) => !text.is_empty() || keyword == "$ref",
            Json::Object(map) => !map.is_empty() || keyword == "additionalItems",
            _ => true,
        });
        if is_set {
            let path = path.field(keyword);
            let detail = format!("{keyword} is not supported");
            add(errors, &path, FieldErrorKind::Forbidden, None, detail);
        }
    }
    if is_true("uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        add(
            errors,
            &path.field("uniqueItems"),
            FieldErrorKind::Forbidden,
            None,
            detail,
        );
    }
    if let Some(pattern) = schema.get("pattern").and_then(Json::as_str)
        && let Err(error) = regexp::parse(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        add(
            errors,
            &path.field("pattern"),
            FieldErrorKind::Invalid,
            Some(pattern),
            detail,
        );
    }
    types(schema, path, level, errors);
    if level == Level::Junctor {
        return;
    }
    for (fields, kind, value, detail) in list_errors::faults(schema) {
        let mut steps = path.steps();
        let is_named = |n: usize| n > 0 && fields.get(n - 1) == Some(&"properties");
        steps.extend(fields.iter().enumerate().map(|(n, field)| {
            let field = (*field).to_owned();
            if is_named(n) {
                PathStep::Key(field)
            } else {
                PathStep::Field(field)
            }
        }));
        // Skip a missing type that is already reported.
        let field = written(&steps);
        if kind == FieldErrorKind::Required && errors.iter().any(|it| it.error.field == field) {
            continue;
        }
        let error = FieldError {
            kind,
            field,
            value,
            detail,
        };
        errors.push(DefinitionError {
            error,
            place: steps,
            cause: DefinitionCause::Other,
        });
    }
}

/// Adds the errors in the `type` of one schema and in the keywords that depend on the type.
fn types(
    schema: &Map<String, Json>,
    path: &Path<'_>,
    level: Level,
    errors: &mut Vec<DefinitionError>,
) {
    let is_true = |key: &str| schema.get(key) == Some(&Json::Bool(true));
    let type_ = schema
        .get("type")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let type_path = path.field("type");
    if !type_.is_empty() && !TYPES.contains(&type_) {
        let types: Vec<String> = TYPES.iter().map(|type_| format!("\"{type_}\"")).collect();
        let detail = format!("supported values: {}", types.join(", "));
        add(
            errors,
            &type_path,
            FieldErrorKind::NotSupported,
            Some(type_),
            detail,
        );
    }
    if level == Level::Junctor {
        return;
    }
    let is_untyped =
        type_.is_empty() && !is_true(INT_OR_STRING) && !is_true(PRESERVE_UNKNOWN_FIELDS);
    if is_untyped && !is_true("x-kubernetes-embedded-resource") {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field | Level::Junctor => "must not be empty for specified object fields",
        };
        add(errors, &type_path, FieldErrorKind::Required, None, detail);
    }
    if level == Level::Root && TYPES.contains(&type_) && type_ != "object" {
        let detail = "must be object at the root";
        add(
            errors,
            &type_path,
            FieldErrorKind::Invalid,
            Some(type_),
            detail,
        );
    }
    if type_ == "array" && schema.get("items").is_none_or(Json::is_null) {
        add(
            errors,
            &path.field("items"),
            FieldErrorKind::Required,
            None,
            "must be specified",
        );
    }
    let has_properties = schema
        .get("properties")
        .and_then(Json::as_object)
        .is_some_and(|properties| !properties.is_empty());
    let additional = schema
        .get("additionalProperties")
        .filter(|it| !it.is_null());
    if has_properties && additional.is_some_and(|additional| *additional != Json::Bool(true)) {
        let detail = "additionalProperties and properties are mutual exclusive";
        add(
            errors,
            &path.field("additionalProperties"),
            FieldErrorKind::Forbidden,
            None,
            detail,
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(schema: &Json) -> Vec<String> {
        let definition =
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        let prefix = "spec.versions[0].schema.openAPIV3Schema";
        let errors = schema_errors(&definition).into_iter();
        let texts = errors.map(|error| error.error.to_string());
        texts
            .map(|text| text.strip_prefix(prefix).unwrap().to_owned())
            .collect()
    }

    /// Asserts the errors of a schema that has only the property `a`.
    #[track_caller]
    fn check(property: &Json, expect: &[&str]) {
        let errors = messages(&json!({"type": "object", "properties": {"a": property}}));
        let expect: Vec<_> = expect
            .iter()
            .map(|text| format!(".properties[a]{text}"))
            .collect();
        assert_eq!(errors, expect, "{property}");
    }

    #[test]
    fn schema_keywords_table_is_sorted() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn schema_errors_have_path_of_keyword_and_upstream_message() {
        check(&json!({"type": "string"}), &[]);
        check(
            &json!({}),
            &[".type: Required value: must not be empty for specified object fields"],
        );
        check(&json!({"x-kubernetes-int-or-string": true}), &[]);
        check(&json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
        check(
            &json!({"type": "strng"}),
            &[
                ".type: Unsupported value: \"strng\": supported values: \"array\", \"boolean\", \"integer\", \
               \"number\", \"object\", \"string\"",
            ],
        );
        check(
            &json!({"type": "string", "maxLenght": 3}),
            &[&format!(".maxLenght: Invalid value: {UNKNOWN_KEYWORD}")],
        );
        check(
            &json!({"type": "array"}),
            &[".items: Required value: must be specified"],
        );
        check(
            &json!({"type": "array", "items": {}}),
            &[".items.type: Required value: must not be empty for specified array items"],
        );
        check(
            &json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            &[
                ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        );
        check(
            &json!({"type": "object", "$ref": "#/a"}),
            &[".$ref: Forbidden: $ref is not supported"],
        );
        check(
            &json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            &[
                ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ],
        );
        let pattern = messages(
            &json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)a["}}}),
        );
        assert!(pattern[0].starts_with(".properties[a].pattern: Invalid value: \"(?=x)a[\": must be a valid regular expression"), "{pattern:?}");
        assert_eq!(
            messages(&json!({"properties": {}})),
            [".type: Required value: must not be empty at the root"]
        );
        assert_eq!(
            messages(&json!({"type": "array", "items": {"type": "string"}})),
            [".type: Invalid value: \"array\": must be object at the root",]
        );
    }

    #[test]
    fn schema_that_is_not_structural_has_one_error() {
        let errors = messages(
            &json!({"type": "object", "properties": {"a": {"type": "string"}},
            "oneOf": [{"properties": {"b": {"minLength": 1}}}]}),
        );
        assert_eq!(errors.len(), 1);
        assert!(
            errors[0].starts_with(": Forbidden: the schema is not structural"),
            "{errors:?}"
        );
        let typed = messages(
            &json!({"type": "object", "properties": {"a": {"type": "string"}},
            "oneOf": [{"properties": {"a": {"type": "string"}}}]}),
        );
        assert_eq!(typed.len(), 1);
    }
}
