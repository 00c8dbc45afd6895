//! Equality of values.

use std::cmp::Ordering;

use super::compare::{double_to_int_order, double_to_uint_order, int_to_uint_order};
use super::{EvalBudget, EvalError, Exceeded, List, MAX_DEPTH, Map, Value};
use crate::stack::{SHALLOW_VALUE_DEPTH, run_on_deep_stack};
use crate::types::Type;

#[derive(Clone, Copy)]
struct Walk<'a> {
    depth: u32,
    budget: &'a EvalBudget,
}

impl Value {
    /// Returns true if two values are equal, across types.
    ///
    /// # Errors
    ///
    /// Returns an error if opaque values cannot be compared. As in upstream, list elements and map values whose
    /// comparison fails count as equal.
    ///
    /// Source: cel-go `common/types/util.go`, `Equal`; `Equal` of each type.
    pub fn equals(&self, other: &Self) -> Result<bool, EvalError> {
        self.equals_within(other, &EvalBudget::default())
    }

    /// Returns true if two values are equal, like [`Self::equals`], within `budget`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::equals`], and an error if `budget` is exhausted.
    pub fn equals_within(&self, other: &Self, budget: &EvalBudget) -> Result<bool, EvalError> {
        budget.poll(1)?;
        equals(self, other, Walk { depth: 0, budget })
    }
}

fn equals(left: &Value, right: &Value, walk: Walk<'_>) -> Result<bool, EvalError> {
    if walk.depth == SHALLOW_VALUE_DEPTH {
        return run_on_deep_stack(true, || equals_at(left, right, walk));
    }
    equals_at(left, right, walk)
}

fn equals_at(left: &Value, right: &Value, walk: Walk<'_>) -> Result<bool, EvalError> {
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        #[expect(clippy::float_cmp, reason = "equality of doubles is exact in CEL")]
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::Int(a), Value::Uint(b)) | (Value::Uint(b), Value::Int(a)) => {
            int_to_uint_order(*a, *b) == Ordering::Equal
        }
        (Value::Int(a), Value::Double(b)) | (Value::Double(b), Value::Int(a)) => {
            double_to_int_order(*b, *a) == Some(Ordering::Equal)
        }
        (Value::Uint(a), Value::Double(b)) | (Value::Double(b), Value::Uint(a)) => {
            double_to_uint_order(*b, *a) == Some(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => same_type_name(a, b),
        (Value::List(a), Value::List(b)) => return lists_equal(a, b, right, walk),
        (Value::Map(a), Value::Map(b)) => return maps_equal(a, b, right, walk),
        (Value::Optional(a), Value::Optional(b)) => match (a.get(), b.get()) {
            (None, None) => true,
            (Some(a), Some(b)) => return equals(a, b, walk.deeper()?),
            (None, Some(_)) | (Some(_), None) => false,
        },
        (Value::Opaque(a), _) => return a.equals_within(right, walk.budget),
        (Value::Error(error), _) => return Err(error.clone()),
        (Value::List(a), _) => {
            return a
                .source()
                .and_then(|source| source.equals(right))
                .unwrap_or(Ok(false));
        }
        (Value::Map(a), _) => {
            return a
                .source()
                .and_then(|source| source.equals(right))
                .unwrap_or(Ok(false));
        }
        _ => false,
    })
}

/// Returns true if two types have the same name, regardless of their parameters.
///
/// Source: cel-go `common/types/types.go`, `Type.Equal`.
fn same_type_name(left: &Type, right: &Type) -> bool {
    left.type_name() == right.type_name()
}

impl Walk<'_> {
    /// Returns the state for comparing the elements of a value, which are one level deeper.
    fn deeper(self) -> Result<Self, EvalError> {
        if self.depth >= MAX_DEPTH {
            return Err(Exceeded::ValueDepth.into());
        }
        Ok(Self {
            depth: self.depth.saturating_add(1),
            ..self
        })
    }
}

/// Source: cel-go `common/types/list.go`, `baseList.Equal`, `concatList.Equal`.
fn lists_equal(
    left: &List,
    right: &List,
    value: &Value,
    walk: Walk<'_>,
) -> Result<bool, EvalError> {
    if let Some(own) = left.source().and_then(|source| source.equals(value)) {
        return own;
    }
    if left.len() != right.len() {
        return Ok(false);
    }
    let walk = walk.deeper()?;
    let mut first_error = None;
    for (a, b) in left.iter().zip(right.iter()) {
        walk.budget.step()?;
        match equals(&a, &b, walk) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) if error.ends_evaluation() => return Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) if left.is_joined() => Err(error),
        _ => Ok(true),
    }
}

/// Source: cel-go `common/types/map.go`, `baseMap.Equal`.
fn maps_equal(left: &Map, right: &Map, value: &Value, walk: Walk<'_>) -> Result<bool, EvalError> {
    if let Some(own) = left.source().and_then(|source| source.equals(value)) {
        return own;
    }
    if left.len() != right.len() {
        return Ok(false);
    }
    let walk = walk.deeper()?;
    for (key, a) in left.entries()? {
        let b = match right.find(&key) {
            Ok(Some(b)) => b,
            Ok(None) => return Ok(false),
            Err(error) if error.ends_evaluation() => return Err(error),
            // Upstream treats the error as a value that is not equal to any other value.
            Err(error) => Value::Error(error),
        };
        walk.budget.step()?;
        match equals(&a, &b, walk) {
            Ok(false) => return Ok(false),
            Err(error) if error.ends_evaluation() => return Err(error),
            Ok(true) | Err(_) => {}
        }
    }
    Ok(true)
}
