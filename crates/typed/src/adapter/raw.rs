//! Plain values below a schema: what a value wraps in Go, and what Go's maps make of it.

use cel::types::Type;
use cel::value::{EvalError, List, Opaque, Value};

use super::preserved::Preserved;

/// The name of the Go type of a plain value.
pub(super) fn go_type(raw: &Value) -> &'static str {
    match raw {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Double(_) => "float64",
        Value::String(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        Value::Opaque(_) => raw
            .downcast::<Foreign>()
            .map_or_else(|| raw.go_type(), |foreign| foreign.go_type),
        other => other.go_type(),
    }
}

/// A value that no JSON has, among the raw elements of a list: what the language's value wraps.
#[derive(Debug)]
struct Foreign {
    value: Value,
    go_type: &'static str,
}

impl Opaque for Foreign {
    fn type_(&self) -> Type {
        self.value.type_()
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        match other.downcast::<Self>() {
            // Pointers are as unlike as the values that they were made for.
            Some(other) => Ok(self.go_type == other.go_type
                && !self.go_type.starts_with('*')
                && self.value.equals(&other.value)?),
            None => Ok(false),
        }
    }

    fn native_type(&self) -> &'static str {
        self.go_type
    }
}

/// What `value` wraps in Go, which is what joined lists keep, and what keys and elements of sets are.
///
/// Source: cel-go `common/types/ref/reference.go`, `Val.Value`, of each type.
pub(super) fn unwrapped(value: &Value) -> Value {
    let foreign = |go_type| {
        Value::opaque(Foreign {
            value: value.clone(),
            go_type,
        })
    };
    match value {
        Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => value.clone(),
        Value::Null => foreign("structpb.NullValue"),
        Value::Uint(_) => foreign("uint64"),
        Value::Bytes(_) => foreign("[]uint8"),
        Value::Duration(_) => foreign("time.Duration"),
        Value::Timestamp(_) => foreign("time.Time"),
        Value::Type(of) => Value::from(of.type_name()),
        Value::Optional(optional) => optional.get().map_or(Value::Null, unwrapped),
        Value::List(list) if list.is_json() => value.clone(),
        Value::List(list) if list.is_joined() => {
            let elements = list.iter().map(|element| unwrapped(&element)).collect();
            Value::List(List::of_json(elements))
        }
        Value::List(list) => list
            .source()
            .and_then(|source| source.native())
            .unwrap_or_else(|| foreign("[]ref.Val")),
        Value::Map(map) if map.is_json() => value.clone(),
        Value::Map(map) => map
            .source()
            .and_then(|source| source.native())
            .unwrap_or_else(|| foreign("map[ref.Val]ref.Val")),
        Value::Opaque(opaque) => match value.downcast::<Preserved>() {
            Some(preserved) => preserved.0.clone(),
            None => foreign(opaque.native_type()),
        },
        Value::Error(_) => foreign("*errors.errorString"),
    }
}

/// Go's panic for what can be no key of a map.
pub(super) fn hashable(raw: &Value) -> Result<(), EvalError> {
    let go_type = go_type(raw);
    let is_hashable = !go_type.starts_with("[]")
        && !go_type.starts_with("map[")
        && !matches!(go_type, "semver.Version");
    if is_hashable {
        return Ok(());
    }
    Err(EvalError::internal(&format!(
        "runtime error: hash of unhashable type {go_type}"
    )))
}

/// Whether a scalar is among `elements`, as a key of a Go map is.
pub(super) fn contains_same(elements: &[Value], element: &Value) -> bool {
    elements
        .iter()
        .any(|own| go_type(own) == go_type(element) && own.equals(element).unwrap_or(false))
}
