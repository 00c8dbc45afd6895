//! Validates that lists of type `set` have no duplicate elements, and lists of type `map` have no duplicate keys.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/listtype/validation.go`.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

use super::outcome::shown;
use super::value::{identity, sorted};
use crate::validation_rules::path::Path;
use crate::validation_rules::{FieldError, FieldErrorKind};

/// Adds an error for each duplicate in the lists of type `set` and `map` in `fields`, at any depth.
pub(super) fn validate(
    schema: &Json,
    fields: &Map<String, Json>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(values) = schema
        .get("additionalProperties")
        .filter(|values| values.is_object())
    {
        for (name, field) in sorted(fields) {
            value(values, field, &path.key(name), errors);
        }
    }
    let Some(properties) = schema.get("properties").and_then(Json::as_object) else {
        return;
    };
    for (name, field) in sorted(fields) {
        if let Some(property) = properties.get(name) {
            value(property, field, &path.field(name), errors);
        }
    }
}

pub(super) fn is_keyed(schema: &Json) -> bool {
    let kind = schema.get("x-kubernetes-list-type").and_then(Json::as_str);
    matches!(kind, Some("set" | "map"))
}

fn value(schema: &Json, data: &Json, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match data {
        Json::Object(fields) => validate(schema, fields, path, errors),
        Json::Array(items) => {
            match schema.get("x-kubernetes-list-type").and_then(Json::as_str) {
                Some("set") => set(items, path, errors),
                Some("map") => map(schema, items, path, errors),
                _ => {}
            }
            if let Some(inner) = schema.get("items").filter(|items| items.is_object()) {
                for (n, item) in items.iter().enumerate() {
                    value(inner, item, &path.index(n), errors);
                }
            }
        }
        _ => {}
    }
}

fn error(kind: FieldErrorKind, path: &Path<'_>, value: String, detail: &str) -> FieldError {
    FieldError {
        kind,
        field: path.text(),
        value: Some(value),
        detail: detail.to_owned(),
    }
}

fn set(items: &[Json], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (n, item) in repeated(items.iter().map(set_identity)).zip_items(items) {
        errors.push(error(
            FieldErrorKind::Duplicate,
            &path.index(n),
            shown(item),
            "",
        ));
    }
}

fn map(schema: &Json, items: &[Json], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let stranger = items
        .iter()
        .position(|item| !item.is_null() && !item.is_object());
    if let Some((n, item)) = stranger.and_then(|n| Some((n, items.get(n)?))) {
        let detail = "must be an object for an array of list-type map";
        errors.push(error(
            FieldErrorKind::Invalid,
            &path.index(n),
            shown(item),
            detail,
        ));
        return;
    }
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Json::as_array);
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let n_keys = keys.len();
    let keys: Vec<Json> = items
        .iter()
        .map(|item| {
            let fields = keys
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
            Json::Object(fields.collect())
        })
        .collect();
    let identities =
        keys.iter().map(
            |key| match key.as_object().map(|fields| fields.values().next()) {
                // If the list has a single key field, the field's value identifies an item. All items without the field
                // have the same identity.
                Some(value) if n_keys == 1 => value.map(set_identity).unwrap_or_default(),
                _ => set_identity(key),
            },
        );
    for (n, key) in repeated(identities).zip_items(&keys) {
        errors.push(error(
            FieldErrorKind::Duplicate,
            &path.index(n),
            shown(key),
            "",
        ));
    }
}

/// Returns the same string for equal elements of a set. Inside lists and objects, numbers are equal if Go's JSON
/// encoder formats them identically.
fn set_identity(item: &Json) -> String {
    match item {
        Json::Array(_) | Json::Object(_) => crate::go_json::to_text(item),
        scalar => identity(scalar),
    }
}

/// The indices of duplicate elements. For an element that occurs more than twice, only the second occurrence is
/// included.
struct Duplicates(Vec<usize>);

impl Duplicates {
    fn zip_items(self, items: &[Json]) -> impl Iterator<Item = (usize, &Json)> {
        self.0
            .into_iter()
            .filter_map(move |n| Some((n, items.get(n)?)))
    }
}

fn repeated(identities: impl Iterator<Item = String>) -> Duplicates {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut duplicates = Vec::new();
    for (n, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_default();
        if *times == 1 {
            duplicates.push(n);
        }
        *times = times.saturating_add(1);
    }
    Duplicates(duplicates)
}
