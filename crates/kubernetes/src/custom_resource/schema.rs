//! Decodes the schema keywords that restrict values.
//!
//! Keywords with a value of the wrong type are ignored, because no API server stores such a schema.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/validation/validation.go` (`ConvertJSONSchemaPropsWithPostProcess`),
//! `formats.go` (`StripUnsupportedFormatsPostProcessorForVersion`).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use regexp::{EngineBudget, Program};
use serde_json::{Map, Value as Json};

use super::format::Format;
use crate::version::{Behavior, LengthErrors};

#[derive(Debug, Default)]
pub(super) struct Schema {
    /// The allowed types. If empty, all types are allowed.
    pub(super) types: Vec<Box<str>>,
    pub(super) nullable: bool,
    /// The name of the format. `None` if the schema has no format, or if the API server ignores the format.
    pub(super) format: Option<Box<str>>,
    /// The check of strings against `format`. `None` if `format` is not a format of strings.
    pub(super) text_format: Option<Format>,
    pub(super) maximum: Option<Bound>,
    pub(super) minimum: Option<Bound>,
    pub(super) multiple_of: Option<f64>,
    pub(super) max_length: Option<i64>,
    /// The wording of errors about `max_length`.
    pub(super) length_errors: LengthErrors,
    pub(super) min_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) max_items: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) required: Vec<Box<str>>,
    pub(super) values: Vec<Json>,
    pub(super) properties: BTreeMap<Box<str>, Self>,
    /// True if `additionalProperties: false` forbids undeclared fields.
    pub(super) is_closed: bool,
    pub(super) additional: Option<Box<Self>>,
    pub(super) items: Option<Box<Self>>,
    pub(super) all_of: Vec<Self>,
    pub(super) any_of: Vec<Self>,
    pub(super) one_of: Vec<Self>,
    pub(super) not: Option<Box<Self>>,
}

/// A `minimum` or `maximum`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) at: f64,
    pub(super) is_exclusive: bool,
}

/// A regular expression: its source, and the compiled program or Go's error message.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) source: Box<str>,
    pub(super) program: Result<Program, String>,
}

/// The memory budget for the compiled patterns of all CRDs.
static ENGINES: LazyLock<Arc<EngineBudget>> = LazyLock::new(Arc::default);

impl Schema {
    /// Decodes `schema` for API servers with `behavior`. The function is recursive, so the caller must limit the depth.
    pub(super) fn read(schema: &Map<String, Json>, behavior: Behavior) -> Self {
        let read = |schema| Self::read(schema, behavior);
        let get = |key: &str| schema.get(key).filter(|value| !value.is_null());
        let text = |key: &str| {
            get(key)
                .and_then(Json::as_str)
                .filter(|text| !text.is_empty())
        };
        let flag = |key: &str| get(key) == Some(&Json::Bool(true));
        let number = |key: &str| get(key).and_then(Json::as_f64);
        let whole = |key: &str| get(key).and_then(Json::as_i64);
        let inner = |key: &str| get(key).and_then(Json::as_object).map(read);
        let list = |key: &str| -> Vec<Self> {
            let list = get(key).and_then(Json::as_array);
            let list = list.into_iter().flatten();
            list.filter_map(Json::as_object).map(read).collect()
        };
        let bound = |key: &str, exclusive: &str| {
            number(key).map(|at| Bound {
                at,
                is_exclusive: flag(exclusive),
            })
        };
        let types: Vec<Box<str>> = if flag("x-kubernetes-int-or-string") {
            vec!["integer".into(), "string".into()]
        } else {
            text("type").map(Box::from).into_iter().collect()
        };
        let format = text("format").filter(|name| is_enforced(name, &types, behavior));
        let pattern = text("pattern").map(|source| Pattern {
            source: source.into(),
            program: Program::within(source, &ENGINES).map_err(|error| error.to_string()),
        });
        let required = get("required").and_then(Json::as_array);
        let required = required.into_iter().flatten();
        let values = get("enum").and_then(Json::as_array);
        let properties = get("properties").and_then(Json::as_object);
        let properties = properties.into_iter().flatten();
        let properties = properties
            .filter_map(|(name, schema)| Some((name.as_str().into(), read(schema.as_object()?))));
        Self {
            nullable: flag("nullable"),
            text_format: format.and_then(Format::named),
            format: format.map(Box::from),
            types,
            maximum: bound("maximum", "exclusiveMaximum"),
            minimum: bound("minimum", "exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: whole("maxLength"),
            length_errors: behavior.length_errors,
            min_length: whole("minLength"),
            pattern,
            max_items: whole("maxItems"),
            min_items: whole("minItems"),
            unique_items: flag("uniqueItems"),
            max_properties: whole("maxProperties"),
            min_properties: whole("minProperties"),
            required: required.filter_map(Json::as_str).map(Box::from).collect(),
            values: values.cloned().unwrap_or_default(),
            properties: properties.collect(),
            is_closed: get("additionalProperties") == Some(&Json::Bool(false)),
            additional: inner("additionalProperties").map(Box::new),
            items: inner("items").map(Box::new),
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: inner("not").map(Box::new),
        }
    }

    pub(super) fn has_type(&self, name: &str) -> bool {
        self.types.iter().any(|type_| **type_ == *name)
    }

    /// Returns the type if the schema has exactly one type. Otherwise returns an empty string.
    pub(super) fn only_type(&self) -> &str {
        match self.types.as_slice() {
            [type_] => type_,
            _ => "",
        }
    }
}

/// Returns true if `has` returns true for `schema` or for any schema nested in its fields, map values or items.
pub(super) fn any_below(schema: &Json, has: fn(&Json) -> bool) -> bool {
    let below = ["additionalProperties", "items"].into_iter();
    let mut below = below.filter_map(|key| schema.get(key));
    let properties = schema.get("properties").and_then(Json::as_object);
    let mut properties = properties.into_iter().flat_map(Map::values);
    has(schema)
        || below.any(|inner| any_below(inner, has))
        || properties.any(|inner| any_below(inner, has))
}

/// Returns true if API servers with `behavior` enforce the format `name` for values of `types`.
fn is_enforced(name: &str, types: &[Box<str>], behavior: Behavior) -> bool {
    let is_string_format = || {
        Format::named(name).is_some()
            && (behavior.enforces_name_formats || !name.replace('-', "").starts_with("k8s"))
    };
    if !behavior.formats_depend_on_type {
        return is_string_format();
    }
    let type_ = match types {
        [type_] => type_,
        _ => "",
    };
    match type_ {
        "" | "string" => is_string_format(),
        "integer" => matches!(name, "int32" | "int64"),
        "number" => matches!(name, "float" | "double"),
        _ => false,
    }
}
