//! Validates the schema keywords for list and map types, such as `x-kubernetes-list-type`.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
//! (`ValidateCustomResourceDefinitionOpenAPISchema`, `validateMapListKeysMapSet`).

use serde_json::{Map, Value as Json};

use super::field_error::FieldErrorKind;
use super::keywords::{flag, text};
use cel::value::go_quote;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

/// An error: the path of the keyword in the schema, the kind, the formatted value, and the message detail.
pub(super) type Fault<'a> = (Vec<&'a str>, FieldErrorKind, Option<String>, String);

type Schema = Map<String, Json>;

/// Returns the errors of one schema. Errors in the schema of the items are not included.
pub(super) fn faults(schema: &Schema) -> Vec<Fault<'_>> {
    let mut faults = Vec::new();
    let map_type = schema.get(MAP_TYPE).and_then(Json::as_str);
    if map_type.is_some() && text(schema, "type") != "object" {
        let detail = "must be object if x-kubernetes-map-type is specified";
        faults.push(wrong_type(schema, detail));
    }
    if let Some(map_type) = map_type.filter(|it| !["atomic", "granular"].contains(it)) {
        faults.push(unsupported(MAP_TYPE, map_type, "\"atomic\", \"granular\""));
    }
    let list_type = schema.get(LIST_TYPE).and_then(Json::as_str);
    if list_type.is_some() && text(schema, "type") != "array" {
        let detail = "must be array if x-kubernetes-list-type is specified";
        faults.push(wrong_type(schema, detail));
    }
    if let Some(list_type) = list_type.filter(|it| !["atomic", "set", "map"].contains(it)) {
        faults.push(unsupported(
            LIST_TYPE,
            list_type,
            "\"atomic\", \"map\", \"set\"",
        ));
    }
    if !keys(schema).is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let (kind, value) = match list_type {
            None => (FieldErrorKind::Required, None),
            Some(list_type) => (FieldErrorKind::Invalid, Some(go_quote(list_type))),
        };
        faults.push((vec![LIST_TYPE], kind, value, detail.to_owned()));
    }
    let items = schema.get("items").and_then(Json::as_object);
    match (list_type, items) {
        (Some("set"), Some(items)) => faults.extend(set_error(items)),
        (Some("map"), _) => add_map_errors(schema, items, &mut faults),
        _ => {}
    }
    if let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, items)
        && flag(items, "nullable")
    {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        faults.push((
            vec!["items", "nullable"],
            FieldErrorKind::Forbidden,
            None,
            detail,
        ));
    }
    faults
}

fn keys(schema: &Schema) -> &[Json] {
    let keys = schema.get(MAP_KEYS).and_then(Json::as_array);
    keys.map_or(&[], Vec::as_slice)
}

fn wrong_type<'a>(schema: &Schema, detail: &str) -> Fault<'a> {
    let (kind, value) = match text(schema, "type") {
        "" => (FieldErrorKind::Required, None),
        type_ => (FieldErrorKind::Invalid, Some(go_quote(type_))),
    };
    (vec!["type"], kind, value, detail.to_owned())
}

fn unsupported<'a>(keyword: &'a str, value: &str, supported: &str) -> Fault<'a> {
    let detail = format!("supported values: {supported}");
    (
        vec![keyword],
        FieldErrorKind::NotSupported,
        Some(go_quote(value)),
        detail,
    )
}

/// Returns an error if a set has items that are not atomic.
fn set_error(items: &Schema) -> Option<Fault<'_>> {
    let wanted = |keyword: &'static str, value: Option<String>| {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let value = Some(value.unwrap_or_else(|| "null".to_owned()));
        (
            vec!["items", keyword],
            FieldErrorKind::Invalid,
            value,
            detail.to_owned(),
        )
    };
    match text(items, "type") {
        "array" => {
            let list_type = items.get(LIST_TYPE).and_then(Json::as_str)?;
            (list_type != "atomic").then(|| wanted(LIST_TYPE, Some(go_quote(list_type))))
        }
        "object" if text(items, MAP_TYPE) != "atomic" => Some(wanted(MAP_TYPE, None)),
        _ => None,
    }
}

/// Adds the errors of a list schema of type `map`.
fn add_map_errors<'a>(schema: &'a Schema, items: Option<&'a Schema>, faults: &mut Vec<Fault<'a>>) {
    if keys(schema).is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        faults.push((
            vec![MAP_KEYS],
            FieldErrorKind::Required,
            None,
            detail.to_owned(),
        ));
    }
    let Some(items) = items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        faults.push((
            vec!["items"],
            FieldErrorKind::Required,
            None,
            detail.to_owned(),
        ));
        return;
    };
    if text(items, "type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let value = Some(go_quote(text(items, "type")));
        faults.push((
            vec!["items", "type"],
            FieldErrorKind::Invalid,
            value,
            detail.to_owned(),
        ));
        return;
    }
    let list = Json::Array(keys(schema).to_vec()).to_string();
    let of_keys = |detail: &str| {
        let value = Some(list.clone());
        (
            vec![MAP_KEYS],
            FieldErrorKind::Invalid,
            value,
            detail.to_owned(),
        )
    };
    let required = items.get("required").and_then(Json::as_array);
    for (n, key) in keys(schema).iter().enumerate() {
        if keys(schema).iter().take(n).any(|before| before == key) {
            faults.push(of_keys("must not contain duplicate entries"));
        }
        let name = key.as_str().unwrap_or_default();
        let property = items.get("properties").and_then(|of| of.get(name));
        let Some(property) = property.and_then(Json::as_object) else {
            faults.push(of_keys("entries must all be names of item properties"));
            continue;
        };
        let place = |keyword: &'static str| vec!["items", "properties", name, keyword];
        if matches!(text(property, "type"), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            // As in upstream, the error contains the type of the items instead of the type of the property.
            let value = Some(go_quote("object"));
            faults.push((
                place("type"),
                FieldErrorKind::Invalid,
                value,
                detail.to_owned(),
            ));
        }
        let is_required = required.is_some_and(|required| required.contains(key));
        if !is_required && property.get("default").is_none_or(Json::is_null) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            faults.push((
                place("default"),
                FieldErrorKind::Required,
                None,
                detail.to_owned(),
            ));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            faults.push((
                place("nullable"),
                FieldErrorKind::Forbidden,
                None,
                detail.to_owned(),
            ));
        }
    }
}
