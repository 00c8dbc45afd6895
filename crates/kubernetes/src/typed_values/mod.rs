//! CEL values with a schema. Nested values are converted to the types of the schema when they are accessed.
//!
//! [`typed()`] combines a plain value and a [`ValueSchema`]. The fields and elements of the result have the types that
//! the schema declares, such as timestamps, durations, bytes, and lists of type `map` or `set`. The CEL rules of CRDs
//! operate on such values. Policies operate on plain values.
//!
//! Source: apiserver `pkg/cel/common/valuesunstructured.go`.

mod go_time;
mod keyed;
mod lazy;
mod list;
mod map;
mod preserved;
mod raw;
#[cfg(test)]
mod tests;
mod value_schema;

use std::sync::Arc;

use cel::base64;
use cel::value::{EvalBudget, EvalError, Map, Value};

pub(crate) use lazy::Lazy;
use list::{ListKind, TypedList};
use map::TypedMap;
use preserved::Preserved;
use raw::go_type;
pub use value_schema::ValueSchema;

/// Returns true if the string is a duration: in Go's format (`1h30m`), or numbers with unit names (`2 days`).
#[must_use]
pub(crate) fn is_duration(text: &str) -> bool {
    go_time::duration(text).is_ok()
}

fn invalid(message: impl Into<String>) -> Value {
    Value::Error(EvalError::new(message))
}

/// Converts the plain value `raw` to the type in `schema`. An invalid value becomes an error value.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `UnstructuredToVal`.
#[must_use]
pub fn typed(raw: &Value, schema: &Arc<ValueSchema>) -> Value {
    typed_within(raw, schema, &Arc::default())
}

/// Same as [`typed()`]. Comparing and concatenating the result consumes `budget`.
#[must_use]
pub fn typed_within(raw: &Value, schema: &Arc<ValueSchema>, budget: &Arc<EvalBudget>) -> Value {
    let got = |expected: &str| {
        invalid(format!(
            "invalid data, expected {expected}, got {}",
            go_type(raw)
        ))
    };
    if matches!(raw, Value::Null) {
        return if schema.nullable {
            Value::Null
        } else {
            invalid("invalid data, got null for schema with nullable=false")
        };
    }
    if schema.int_or_string {
        return match raw {
            Value::String(_) | Value::Int(_) => raw.clone(),
            _ => invalid(
                "invalid data, expected XIntOrString value to be either a string or integer",
            ),
        };
    }
    match &*schema.type_ {
        "object" => match raw {
            Value::Map(map) => Value::Map(Map::from_source(Arc::new(TypedMap {
                raw: map.clone(),
                schema: Arc::clone(schema),
                budget: Arc::clone(budget),
            }))),
            _ => invalid("invalid data, expected a map for the provided schema with type=object"),
        },
        "array" => typed_list(raw, schema, budget),
        "string" => match raw {
            Value::String(text) => typed_string(text, schema, budget),
            _ => got("string"),
        },
        "number" => match raw {
            #[expect(
                clippy::cast_precision_loss,
                reason = "an integer is a double if the schema has the type `number`"
            )]
            Value::Int(value) => Value::Double(*value as f64),
            Value::Double(_) => raw.clone(),
            _ => got("float"),
        },
        "integer" => match raw {
            Value::Int(_) => raw.clone(),
            _ => got("int"),
        },
        "boolean" => match raw {
            Value::Bool(_) => raw.clone(),
            _ => got("bool"),
        },
        _ if schema.preserve_unknown_fields => Value::opaque(Preserved(raw.clone())),
        other => invalid(format!(
            "invalid type, expected object, array, number, integer, boolean or string, or no type with \
             x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {other}"
        )),
    }
}

fn typed_list(raw: &Value, schema: &Arc<ValueSchema>, budget: &Arc<EvalBudget>) -> Value {
    let Value::List(list) = raw else {
        return invalid("invalid data, expected an array for the provided schema with type=array");
    };
    let Some(items) = &schema.items else {
        return invalid("invalid array type, expected Items with a non-empty Schema");
    };
    let kind = match &*schema.list_type {
        "" | "atomic" => ListKind::Atomic,
        "map" => ListKind::Map,
        "set" => ListKind::Set,
        other => {
            return invalid(format!(
                "invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got {other}"
            ));
        }
    };
    TypedList::value(list.clone(), (items, kind), schema, budget)
}

fn typed_string(text: &Arc<str>, schema: &ValueSchema, budget: &EvalBudget) -> Value {
    let read =
        match &*schema.format {
            "duration" => go_time::duration(text)
                .map(Value::Duration)
                .map_err(|error| format!("Invalid duration {text}: {error}")),
            "date" => go_time::date(text)
                .map(Value::Timestamp)
                .map_err(|error| format!("Invalid date formatted string {text}: {error}")),
            "date-time" => go_time::date_time(text)
                .map(Value::Timestamp)
                .map_err(|error| format!("Invalid date-time formatted string {text}: {error}")),
            // Upstream decodes base64 with the URL alphabet, although the format requires the standard alphabet.
            "byte" => {
                // The string is decoded again on each access, so each access counts its memory.
                let room = budget
                    .allocate(text.len())
                    .and_then(|()| budget.reserve(text.len()));
                if let Err(error) = room {
                    return Value::Error(error);
                }
                base64::decode_url(text).map(Value::bytes).map_err(|at| {
            format!("Invalid byte formatted string {text}: illegal base64 data at input byte {at}")
        })
            }
            _ => Ok(Value::String(Arc::clone(text))),
        };
    read.unwrap_or_else(invalid)
}

/// Compares a nested value with `other`. If `own` is a typed list or map and `other` is null, the result is an error.
fn part_equals(own: &Value, other: &Value, budget: &EvalBudget) -> Result<bool, EvalError> {
    budget.step()?;
    let by_rule = match own {
        Value::List(list) => list.source().and_then(|source| source.equals(other)),
        Value::Map(map) => map.source().and_then(|source| source.equals(other)),
        _ => None,
    };
    by_rule.unwrap_or_else(|| own.equals_within(other, budget))
}

/// Returns the error for comparing or concatenating a list or map with `other`, a value of a different type. If `other`
/// is an error value, returns its error.
///
/// Source: cel-go `common/types/err.go`, `MaybeNoSuchOverloadErr`.
fn no_such_overload(other: &Value) -> EvalError {
    match other {
        Value::Error(error) => error.clone(),
        _ => EvalError::no_such_overload(),
    }
}
