//! Looking up values among many others by their equality.
//!
//! Upstream compares each with each. Equal values have the same hash here, so that only those of one hash
//! are compared.
//!
//! Source: cel-go `common/types/util.go`, `Equal`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::value::{EvalBudget, EvalError, Value};

/// How deep a value is looked at.
const MAX_DEPTH: u32 = 20;

/// A number that equal values have in common.
///
/// # Errors
///
/// If `budget` is exceeded by visiting the parts of the value.
fn hash_of(value: &Value, depth: u32, budget: &EvalBudget) -> Result<u64, EvalError> {
    budget.step()?;
    let mut hasher = DefaultHasher::new();
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers of different types are equal if they are as doubles"
    )]
    match value {
        Value::Int(value) => hash_double(*value as f64, &mut hasher),
        Value::Uint(value) => hash_double(*value as f64, &mut hasher),
        Value::Double(value) => hash_double(*value, &mut hasher),
        Value::Bool(value) => (1_u8, value).hash(&mut hasher),
        Value::String(value) => (2_u8, value).hash(&mut hasher),
        Value::Bytes(value) => (3_u8, value).hash(&mut hasher),
        Value::Duration(value) => (4_u8, value).hash(&mut hasher),
        Value::Timestamp(value) => (5_u8, value.instant()).hash(&mut hasher),
        Value::Null => 6_u8.hash(&mut hasher),
        Value::Type(of) => (7_u8, of.type_name()).hash(&mut hasher),
        // What refuses to be compared counts as equal within lists and maps, whatever it is.
        Value::Opaque(_) | Value::Optional(_) | Value::Error(_) => return Ok(0),
        Value::List(list) => {
            if depth >= MAX_DEPTH {
                return Ok(0);
            }
            (8_u8, list.len()).hash(&mut hasher);
            for element in list {
                match hash_of(&element, depth + 1, budget)? {
                    0 => return Ok(0),
                    hash => hash.hash(&mut hasher),
                }
            }
        }
        Value::Map(map) => {
            if depth >= MAX_DEPTH || !map.is_plain() {
                return Ok(0);
            }
            budget.reserve(map.len().saturating_mul(size_of::<(Value, Value)>()))?;
            let entries = map.entries().unwrap_or_default();
            (9_u8, entries.len()).hash(&mut hasher);
            let mut sum = 0_u64;
            for (key, value) in entries {
                let key = hash_of(&key, depth + 1, budget)?;
                let value = hash_of(&value, depth + 1, budget)?;
                if key == 0 || value == 0 {
                    return Ok(0);
                }
                sum = sum.wrapping_add(key.wrapping_mul(31) ^ value);
            }
            sum.hash(&mut hasher);
        }
    }
    // Zero is for values that may be equal to anything.
    Ok(hasher.finish().max(1))
}

fn hash_double(value: f64, hasher: &mut DefaultHasher) {
    // Both zeros are equal.
    let value = if value == 0.0 { 0.0 } else { value };
    (0_u8, value.to_bits()).hash(hasher);
}

/// Values among which others are looked up.
#[derive(Debug)]
pub(super) struct Values<'b> {
    budget: &'b EvalBudget,
    /// The bytes that were taken from the budget.
    n_bytes: usize,
    /// The place of the last value of each hash.
    by_hash: HashMap<u64, usize>,
    /// The places of values that may be equal to anything.
    odd: Vec<usize>,
    /// Each value, and the place of the one before it that has the same hash.
    all: Vec<(Value, Option<usize>)>,
}

/// The memory of a value among [`Values`], in bytes: each collection has room for twice as many.
const ENTRY: usize = 2 * (size_of::<(Value, Option<usize>)>() + size_of::<(u64, usize)>() + 8);

/// The memory is temporary, and given back.
impl Drop for Values<'_> {
    fn drop(&mut self) {
        self.budget.free(self.n_bytes);
    }
}

impl<'b> Values<'b> {
    /// No values; comparisons and memory use `budget`.
    pub(super) fn new(budget: &'b EvalBudget) -> Self {
        Self {
            budget,
            n_bytes: 0,
            by_hash: HashMap::new(),
            odd: Vec::new(),
            all: Vec::new(),
        }
    }

    /// Adds `value`.
    ///
    /// # Errors
    ///
    /// If the budget is exceeded.
    pub(super) fn insert(&mut self, value: Value) -> Result<(), EvalError> {
        self.budget.allocate(ENTRY)?;
        self.n_bytes = self.n_bytes.saturating_add(ENTRY);
        let place = self.all.len();
        let previous = match hash_of(&value, 0, self.budget)? {
            0 => {
                self.odd.push(place);
                None
            }
            hash => self.by_hash.insert(hash, place),
        };
        self.all.push((value, previous));
        Ok(())
    }

    /// Reports whether one of the values is equal to `value`, by the equality of `is_equal`.
    ///
    /// # Errors
    ///
    /// Errors that end the evaluation; others mean that two values are not equal.
    pub(super) fn contains(
        &self,
        value: &Value,
        is_equal: impl Fn(&Value, &Value) -> Result<bool, EvalError>,
    ) -> Result<bool, EvalError> {
        let is_found = |other: &Value| match is_equal(other, value) {
            Err(error) if error.ends_evaluation() => Err(error),
            equal => Ok(equal == Ok(true)),
        };
        let hash = hash_of(value, 0, self.budget)?;
        if hash == 0 {
            for (other, _) in &self.all {
                if is_found(other)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let mut place = self.by_hash.get(&hash).copied();
        while let Some((other, previous)) = place.and_then(|place| self.all.get(place)) {
            if is_found(other)? {
                return Ok(true);
            }
            place = *previous;
        }
        for (other, _) in self.odd.iter().filter_map(|place| self.all.get(*place)) {
            if is_found(other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_hashes() {
        let map =
            |value: Value| Value::map([("a".into(), value), ("b".into(), true.into())]).unwrap();
        let values = |number: fn(i64) -> Value| {
            [
                number(0),
                number(7),
                Value::list(vec![number(1), "x".into()]),
                map(number(3)),
            ]
        };
        let hash = |value: &Value| hash_of(value, 0, &EvalBudget::default()).unwrap();
        let ints = values(Value::Int);
        let uints = values(|n| Value::Uint(n.unsigned_abs()));
        #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
        let doubles = values(|n| Value::Double(-(n as f64) * -1.0));
        for ((a, b), c) in ints.iter().zip(&uints).zip(&doubles) {
            assert_eq!(hash(a), hash(b));
            assert_eq!(hash(a), hash(c));
        }
    }

    #[test]
    fn looking_up() {
        let budget = EvalBudget::default();
        let mut values = Values::new(&budget);
        for value in [Value::Int(1), "a".into(), f64::NAN.into(), Value::none()] {
            values.insert(value).unwrap();
        }
        let contains = |value: Value| values.contains(&value, Value::equals).unwrap();
        assert!(contains(Value::Double(1.0)) && contains("a".into()) && contains(Value::none()));
        assert!(!contains(f64::NAN.into()) && !contains(Value::Int(2)) && !contains(Value::Null));
    }
}
