//! Accessors for schema keywords, and a check for schemas that the API server rejects.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
//! (`ValidateCustomResourceDefinitionOpenAPISchema`, `specStandardValidatorV3.validate`,
//! `validateMapListKeysMapSet`), `cel_validation.go` (`extractMaxElements`).

use serde_json::{Map, Value as Json};

type Schema = Map<String, Json>;

/// Returns the value of the keyword `key`. Returns `None` if it is absent or null.
fn get<'a>(schema: &'a Schema, key: &str) -> Option<&'a Json> {
    schema.get(key).filter(|value| !value.is_null())
}

pub(super) fn text<'a>(schema: &'a Schema, key: &str) -> &'a str {
    get(schema, key).and_then(Json::as_str).unwrap_or_default()
}

pub(super) fn flag(schema: &Schema, key: &str) -> bool {
    get(schema, key) == Some(&Json::Bool(true))
}

/// Returns the schemas in a map such as `properties`, sorted by name.
pub(super) fn schemas_of<'a>(
    schema: &'a Schema,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a Schema)> {
    let schemas = get(schema, key).and_then(Json::as_object);
    let mut schemas: Vec<_> = schemas
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.as_str(), schema.as_object()?)))
        .collect();
    schemas.sort_unstable_by_key(|(name, _)| *name);
    schemas.into_iter()
}

fn list<'a>(schema: &'a Schema, key: &str) -> &'a [Json] {
    let list = get(schema, key).and_then(Json::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Returns the schemas in `not`, `allOf`, `oneOf` and `anyOf`. Each result contains the keyword, the index of the
/// schema if the keyword's value is a list, and the schema.
pub(super) fn junctors(
    schema: &Schema,
) -> impl Iterator<Item = (&'static str, Option<usize>, &Schema)> {
    let not = get(schema, "not").and_then(Json::as_object);
    let not = not.into_iter().map(|nested| ("not", None, nested));
    let lists = ["allOf", "oneOf", "anyOf"].into_iter();
    let lists = lists.flat_map(move |keyword| {
        let nested = list(schema, keyword).iter().enumerate();
        nested.filter_map(move |(n, nested)| Some((keyword, Some(n), nested.as_object()?)))
    });
    not.chain(lists)
}

/// Returns the maximum number of elements or entries. Returns `None` if there is no maximum.
pub(super) fn max_elements(schema: &Schema) -> Option<u64> {
    let bound = |key: &str| {
        let max = get(schema, key).and_then(|max| {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the API server stores no bound with a fraction"
            )]
            max.as_i64().or_else(|| max.as_f64().map(|max| max as i64))
        })?;
        Some(max.max(0).unsigned_abs())
    };
    match text(schema, "type") {
        "object" if get(schema, "additionalProperties").is_some() => bound("maxProperties"),
        "array" => bound("maxItems"),
        _ => Some(1),
    }
}

/// Returns true if fields of an object can be matched with fields of the old object.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/cel/validation.go`, `MapIsCorrelatable`.
pub(super) fn is_map_correlatable(schema: &Schema) -> bool {
    matches!(
        get(schema, "x-kubernetes-map-type").and_then(Json::as_str),
        None | Some("granular" | "atomic")
    )
}

/// Returns true if the API server rejects `schema`. Ignores errors in nested schemas and in rules.
pub(super) fn has_errors(schema: &Schema, allows_defaults: bool, in_metadata: bool) -> bool {
    has_unsupported(schema)
        || (get(schema, "default").is_some() && !allows_defaults)
        || (in_metadata && flag(schema, "x-kubernetes-embedded-resource"))
        || flag(schema, "uniqueItems")
        || has_properties_of_both_sorts(schema)
        || get(schema, "x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(false))
        || has_wrong_map_type(schema)
        || has_wrong_list_type(schema)
        || has_wrong_keys(schema)
}

fn has_unsupported(schema: &Schema) -> bool {
    const TYPES: [&str; 7] = [
        "", "array", "boolean", "integer", "number", "object", "string",
    ];
    let is_filled = |key: &str| {
        get(schema, key)
            .and_then(Json::as_object)
            .is_some_and(|map| !map.is_empty())
    };
    !TYPES.contains(&text(schema, "type"))
        || !text(schema, "id").is_empty()
        || get(schema, "additionalItems").is_some()
        || is_filled("patternProperties")
        || is_filled("definitions")
        || get(schema, "dependencies").is_some()
        || get(schema, "$ref").is_some()
        || !list(schema, "items").is_empty()
}

fn has_properties_of_both_sorts(schema: &Schema) -> bool {
    schemas_of(schema, "properties").next().is_some()
        && matches!(
            get(schema, "additionalProperties"),
            Some(Json::Object(_) | Json::Bool(false))
        )
}

fn has_wrong_map_type(schema: &Schema) -> bool {
    let map_type = get(schema, "x-kubernetes-map-type").and_then(Json::as_str);
    map_type.is_some_and(|map_type| {
        text(schema, "type") != "object" || !matches!(map_type, "atomic" | "granular")
    })
}

fn has_wrong_list_type(schema: &Schema) -> bool {
    let Some(list_type) = get(schema, "x-kubernetes-list-type").and_then(Json::as_str) else {
        return !list(schema, "x-kubernetes-list-map-keys").is_empty();
    };
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let items = get(schema, "items").and_then(Json::as_object);
    let is_set_of_parts = list_type == "set"
        && items.is_some_and(|items| match text(items, "type") {
            "array" => !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic"),
            "object" => text(items, "x-kubernetes-map-type") != "atomic",
            _ => false,
        });
    text(schema, "type") != "array"
        || !matches!(list_type, "atomic" | "set" | "map")
        || is_set_of_parts
        || (!keys.is_empty() && list_type != "map")
        || (list_type == "map"
            && (keys.is_empty() || items.is_none_or(|items| text(items, "type") != "object")))
        || (list_type != "atomic" && items.is_some_and(|items| flag(items, "nullable")))
}

/// Returns true if a list of type `map` has an invalid `x-kubernetes-list-map-keys`.
fn has_wrong_keys(schema: &Schema) -> bool {
    if text(schema, "x-kubernetes-list-type") != "map" {
        return false;
    }
    let Some(items) = get(schema, "items").and_then(Json::as_object) else {
        return true;
    };
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let required = list(items, "required");
    let is_wrong = |(n, key): (usize, &Json)| {
        let name = key.as_str().unwrap_or_default();
        let properties = get(items, "properties");
        let Some(property) = properties
            .and_then(|properties| properties.get(name))
            .and_then(Json::as_object)
        else {
            return true;
        };
        matches!(text(property, "type"), "array" | "object")
            || keys.iter().take(n).any(|before| before == key)
            || (!required.contains(key) && get(property, "default").is_none())
            || flag(property, "nullable")
    };
    keys.iter().enumerate().any(is_wrong)
}

/// Returns true if upstream can convert `schema` to a structural schema. The schema and its nested schemas must not
/// contain unsupported keywords.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/convert.go`, `NewStructural`, `validateUnsupportedFields`.
pub(super) fn is_convertible(schema: &Schema) -> bool {
    let is_filled = |key: &str| {
        get(schema, key)
            .and_then(Json::as_object)
            .is_some_and(|map| !map.is_empty())
    };
    let has_unsupported = !text(schema, "id").is_empty()
        || !text(schema, "$schema").is_empty()
        || !text(schema, "$ref").is_empty()
        || ["patternProperties", "dependencies", "definitions"]
            .into_iter()
            .any(is_filled)
        || get(schema, "additionalItems").is_some()
        || get(schema, "x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(false))
        || !list(schema, "items").is_empty();
    let below = ["items", "additionalProperties"].into_iter();
    let mut below = below.filter_map(|key| schema.get(key)?.as_object());
    !has_unsupported
        && below.all(is_convertible)
        && schemas_of(schema, "properties").all(|(_, property)| is_convertible(property))
        && junctors(schema).all(|(_, _, nested)| is_convertible(nested))
}
