//! Equality of Go values.

use std::cmp::Ordering;

use super::map::{GoStruct, StructType};
use crate::defaulting::table::{Shape, Table, Type};
use crate::library::quantity::Quantity;
use cel::value::{EvalError, List, Map, Value};

/// Returns the error for comparing a Go value with `other`, a value of a different type. If `other` is an error,
/// returns that error.
///
/// Source: cel-go `common/types/err.go`, `MaybeNoSuchOverloadErr`.
pub(super) fn no_such_overload(other: &Value) -> EvalError {
    match other {
        Value::Error(error) => error.clone(),
        _ => EvalError::no_such_overload(),
    }
}

/// Compares an element of a Go value with another value. Comparing a Go value with null is an error here, unlike with
/// the operator `==`.
///
/// Source: cel-go `common/types`, `Equal` of each type.
pub(super) fn elements(own: &Value, other: &Value) -> Result<bool, EvalError> {
    let by_rule = match own {
        Value::List(list) => list.source().and_then(|source| source.equals(other)),
        Value::Map(map) => map.source().and_then(|source| source.equals(other)),
        _ => None,
    };
    by_rule.unwrap_or_else(|| own.equals(other))
}

/// Returns true if two maps have equal entries. Values that cannot be compared count as different.
pub(super) fn maps(own: &Map, other: &Map) -> bool {
    let own_entries = own.as_fields().unwrap_or_default();
    own.len() == other.len()
        && own_entries.iter().all(|(key, value)| {
            let entry = other.find(&Value::String(key.clone()));
            entry.is_ok_and(|entry| {
                entry.is_some_and(|entry| elements(value, &entry).unwrap_or(false))
            })
        })
}

/// Compares a struct with a map that is not a struct.
///
/// Upstream visits the fields in random order. Its result is therefore random if one field differs and another one
/// cannot be compared. Here, the order is alphabetical.
pub(super) fn struct_and_map(own: &GoStruct, other: &Map) -> Result<bool, EvalError> {
    if own.fields.len() != other.len() {
        return Ok(false);
    }
    for (key, value) in own.fields.as_fields().unwrap_or_default() {
        let Some(found) = other.find(&Value::String(key.clone()))? else {
            return Ok(false);
        };
        if !elements(value, &found)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if two structs have the same Go type and are semantically equal. Empty lists and maps are equal to
/// unset lists and maps. Quantities are equal if their amounts are equal.
///
/// Source: apimachinery `pkg/api/equality/semantic.go`, `Semantic`; `third_party/forked/golang/reflect/deep_equal.go`,
/// `Equalities.DeepEqual`.
pub(super) fn structs(own: &GoStruct, other: &GoStruct) -> bool {
    if own.type_ != other.type_ {
        return false;
    }
    match (own.type_, Table::get()) {
        (StructType::Table(n), Ok(table)) => fields(table, n, &own.fields, &other.fields),
        _ => {
            let names = own.fields.as_fields().unwrap_or_default().iter();
            own.fields.len() == other.fields.len()
                && names
                    .map(|(name, value)| (value, other.fields.field(name)))
                    .all(|(own, other)| {
                        other.is_some_and(|other| elements(own, other).unwrap_or(false))
                    })
        }
    }
}

fn fields(table: &Table, n: usize, own: &Map, other: &Map) -> bool {
    table.fields(n).iter().all(|field| {
        let (own, other) = (own.field(&field.0), other.field(&field.0));
        values(table, Type(&field.1), own, other)
    })
}

/// Compares two values of the same Go type. `None` is Go's zero value.
fn values(table: &Table, type_: Type<'_>, own: Option<&Value>, other: Option<&Value>) -> bool {
    let own = own.filter(|value| !matches!(value, Value::Null));
    let other = other.filter(|value| !matches!(value, Value::Null));
    match type_.shape() {
        Shape::Pointer(inner) => match (own, other) {
            (None, None) => true,
            (Some(_), Some(_)) => values(table, inner, own, other),
            (None, Some(_)) | (Some(_), None) => false,
        },
        Shape::List(inner) => {
            let empty = List::default();
            let list = |value: Option<&Value>| {
                let list = value.and_then(Value::as_list).unwrap_or(&empty);
                list.clone()
            };
            let (own, other) = (list(own), list(other));
            let mut pairs = own.iter().zip(other.iter());
            own.len() == other.len()
                && pairs.all(|(own, other)| values(table, inner, Some(&own), Some(&other)))
        }
        Shape::Map(inner) => {
            let entries = |value: Option<&Value>| {
                let map = value.and_then(Value::as_map);
                map.and_then(|map| map.entries().ok()).unwrap_or_default()
            };
            let (own, other_map) = (entries(own), other.and_then(Value::as_map));
            own.len() == other_map.map_or(0, Map::len)
                && own.iter().all(|(key, value)| {
                    let entry = other_map.and_then(|map| map.find(key).ok().flatten());
                    entry.is_some_and(|entry| values(table, inner, Some(value), Some(&entry)))
                })
        }
        Shape::Struct(n) => {
            let empty = Map::default();
            let own = own
                .and_then(GoStruct::downcast)
                .map_or(&empty, |own| &own.fields);
            let other = other
                .and_then(GoStruct::downcast)
                .map_or(&empty, |other| &other.fields);
            fields(table, n, own, other)
        }
        Shape::Quantity => quantities(own, other),
        Shape::Text | Shape::Bytes => {
            let text = |value: Option<&Value>| {
                value.and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            text(own) == text(other)
        }
        Shape::Bool => {
            own.and_then(Value::as_bool).unwrap_or_default()
                == other.and_then(Value::as_bool).unwrap_or_default()
        }
        Shape::Int | Shape::Float | Shape::IntOrString => {
            let zero = Value::Int(0);
            own.unwrap_or(&zero)
                .equals(other.unwrap_or(&zero))
                .unwrap_or(false)
        }
        Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Any => match (own, other) {
            (None, None) => true,
            (Some(own), Some(other)) => own.equals(other).unwrap_or(false),
            (None, Some(_)) | (Some(_), None) => false,
        },
    }
}

/// Source: apimachinery `pkg/api/resource/quantity.go`, `Quantity.Cmp`.
fn quantities(own: Option<&Value>, other: Option<&Value>) -> bool {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).unwrap_or("0");
        Quantity::parse(text)
    };
    match (text(own), text(other)) {
        (Ok(own), Ok(other)) => own.compare(&other).is_ok_and(Ordering::is_eq),
        _ => false,
    }
}
