//! The Go values inside CEL values, and their use as keys of Go maps.

use std::collections::HashSet;
use std::sync::Arc;

use cel::types::Type;
use cel::value::{EvalBudget, EvalError, List, Opaque, Value};

use super::preserved::Preserved;

/// Returns the Go type of a plain value.
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

/// A Go value that JSON cannot represent, such as a `time.Duration`. It occurs as an element of a list of plain values.
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
        self.equals_within(other, &EvalBudget::default())
    }

    fn equals_within(&self, other: &Value, budget: &EvalBudget) -> Result<bool, EvalError> {
        match other.downcast::<Self>() {
            // Go compares pointers by address. Two pointers that were converted separately always differ.
            Some(other) => Ok(self.go_type == other.go_type
                && !self.go_type.starts_with('*')
                && self.value.equals_within(&other.value, budget)?),
            None => Ok(false),
        }
    }

    fn native_type(&self) -> &'static str {
        self.go_type
    }
}

/// Returns the Go value inside the CEL value `value`. In upstream, sets, map keys and concatenated lists contain such
/// Go values.
///
/// # Errors
///
/// Returns an error if copying a list exceeds `budget`.
///
/// Source: cel-go `common/types/ref/reference.go`, `Val.Value`, of each type.
pub(super) fn unwrapped(value: &Value, budget: &EvalBudget) -> Result<Value, EvalError> {
    let foreign = |go_type| {
        Value::opaque(Foreign {
            value: value.clone(),
            go_type,
        })
    };
    Ok(match value {
        Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => value.clone(),
        Value::Null => foreign("structpb.NullValue"),
        Value::Uint(_) => foreign("uint64"),
        Value::Bytes(_) => foreign("[]uint8"),
        Value::Duration(_) => foreign("time.Duration"),
        Value::Timestamp(_) => foreign("time.Time"),
        Value::Type(of) => Value::from(of.type_name()),
        Value::Optional(optional) => match optional.get() {
            Some(held) => unwrapped(held, budget)?,
            None => Value::Null,
        },
        Value::List(list) if list.is_json() => value.clone(),
        Value::List(list) if list.is_joined() => {
            budget.allocate(list.len().saturating_mul(size_of::<Value>()))?;
            let elements = list.iter().map(|element| unwrapped(&element, budget));
            Value::List(List::from_json(elements.collect::<Result<_, _>>()?))
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
    })
}

/// Returns Go's panic message as an error if `raw` cannot be the key of a Go map.
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

/// The keys of a Go map, as a set of plain values.
#[derive(Debug, Default)]
pub(super) struct Members {
    scalars: HashSet<Scalar>,
    /// All keys except JSON scalars.
    others: Vec<Value>,
}

/// A JSON scalar in a hashable form.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// The bits of the double. Negative zero becomes zero, because the two are equal.
    Double(u64),
    String(Arc<str>),
}

impl Scalar {
    fn new(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Double(value) if !value.is_nan() => Some(Self::Double((*value + 0.0).to_bits())),
            Value::String(text) => Some(Self::String(Arc::clone(text))),
            _ => None,
        }
    }
}

impl Members {
    /// Adds `value` if it is not in the set. Returns true if it was added.
    pub(super) fn insert_new(&mut self, value: Value) -> bool {
        let is_new = !self.contains(&value);
        if is_new {
            self.insert(value);
        }
        is_new
    }

    pub(super) fn len(&self) -> usize {
        self.scalars.len().saturating_add(self.others.len())
    }

    pub(super) fn insert(&mut self, value: Value) {
        match Scalar::new(&value) {
            Some(scalar) => {
                self.scalars.insert(scalar);
            }
            None => self.others.push(value),
        }
    }

    /// Returns true if the set contains `value`, by Go's comparison of map keys.
    pub(super) fn contains(&self, value: &Value) -> bool {
        match Scalar::new(value) {
            Some(scalar) => self.scalars.contains(&scalar),
            None => self
                .others
                .iter()
                .any(|own| go_type(own) == go_type(value) && own.equals(value).unwrap_or(false)),
        }
    }
}
