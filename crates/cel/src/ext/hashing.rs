//! A hash table of values that compares them with CEL's equality.
//!
//! Upstream compares all pairs. Here, equal values have equal hashes, and only values with the same hash are
//! compared.
//!
//! Source: cel-go `common/types/util.go`, `Equal`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::value::{EvalBudget, EvalError, MapSource, Value};

/// Maximum nesting depth of hashed values.
const MAX_DEPTH: u32 = 20;

/// Returns a hash that is the same for equal values. Returns 0 for a value that may be equal to values with any hash.
///
/// # Errors
///
/// Returns an error if visiting the elements of the value exceeds `budget`.
fn hash_of(value: &Value, depth: u32, budget: &EvalBudget) -> Result<u64, EvalError> {
    budget.step()?;
    let mut hasher = DefaultHasher::new();
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers of different types are compared as doubles"
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
        // These values may be incomparable. As elements of lists and maps, incomparable values count as equal.
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
            let is_hashable = |source: &Arc<dyn MapSource>| source.is_compared_by_entries();
            if depth >= MAX_DEPTH || !map.is_plain() || !map.source().is_none_or(is_hashable) {
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
    // Zero is reserved for values that may be equal to any value.
    Ok(hasher.finish().max(1))
}

fn hash_double(value: f64, hasher: &mut DefaultHasher) {
    // Positive and negative zero are equal.
    let value = if value == 0.0 { 0.0 } else { value };
    (0_u8, value.to_bits()).hash(hasher);
}

#[derive(Debug)]
pub(super) struct Values<'b> {
    budget: &'b EvalBudget,
    /// Bytes allocated from the budget.
    n_bytes: usize,
    /// Index of the last value with each hash.
    by_hash: HashMap<u64, usize>,
    /// Indices of the values with hash 0, which may be equal to any value.
    odd: Vec<usize>,
    /// Each value, with the index of the previous value with the same hash.
    all: Vec<(Value, Option<usize>)>,
}

/// Memory per value, in bytes. Each collection may have twice the required capacity.
const ENTRY: usize = 2 * (size_of::<(Value, Option<usize>)>() + size_of::<(u64, usize)>() + 8);

/// Releases the temporary memory.
impl Drop for Values<'_> {
    fn drop(&mut self) {
        self.budget.free(self.n_bytes);
    }
}

impl<'b> Values<'b> {
    /// Creates an empty table. Comparisons and memory are charged to `budget`.
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
    /// Returns an error if the budget is exceeded.
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

    /// Returns true if the table contains a value equal to `value` according to `is_equal`.
    ///
    /// # Errors
    ///
    /// Returns errors that end the evaluation. Other errors of `is_equal` count as inequality.
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
    fn inserted_value_is_found_by_equal_value() {
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
