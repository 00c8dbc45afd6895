//! Looking up values among many others by their equality.
//!
//! Upstream compares each with each. Equal values have the same hash here, so that only those of one hash
//! are compared.
//!
//! Source: cel-go `common/types/util.go`, `Equal`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::value::{EvalError, Value};

/// How deep a value is looked at.
const MAX_DEPTH: u32 = 20;

/// A number that equal values have in common.
fn hash_of(value: &Value, depth: u32) -> u64 {
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
        Value::Opaque(_) | Value::Optional(_) | Value::Error(_) => return 0,
        Value::List(list) => {
            if depth >= MAX_DEPTH {
                return 0;
            }
            (8_u8, list.len()).hash(&mut hasher);
            let parts: Option<Vec<u64>> = list
                .iter()
                .map(|element| Some(hash_of(&element, depth + 1)).filter(|hash| *hash != 0))
                .collect();
            match parts {
                Some(parts) => parts.hash(&mut hasher),
                None => return 0,
            }
        }
        Value::Map(map) => {
            let entries = map.entries().unwrap_or_default();
            if depth >= MAX_DEPTH || !map.is_plain() {
                return 0;
            }
            (9_u8, entries.len()).hash(&mut hasher);
            let mut sum = 0_u64;
            for (key, value) in entries {
                let (key, value) = (hash_of(&key, depth + 1), hash_of(&value, depth + 1));
                if key == 0 || value == 0 {
                    return 0;
                }
                sum = sum.wrapping_add(key.wrapping_mul(31) ^ value);
            }
            sum.hash(&mut hasher);
        }
    }
    // Zero is for values that may be equal to anything.
    hasher.finish().max(1)
}

fn hash_double(value: f64, hasher: &mut DefaultHasher) {
    // Both zeros are equal.
    let value = if value == 0.0 { 0.0 } else { value };
    (0_u8, value.to_bits()).hash(hasher);
}

/// Values among which others are looked up.
#[derive(Debug, Default)]
pub(super) struct Values {
    by_hash: HashMap<u64, Vec<Value>>,
    /// Those that may be equal to anything.
    odd: Vec<Value>,
    all: Vec<Value>,
}

impl Values {
    /// Adds `value`.
    pub(super) fn insert(&mut self, value: Value) {
        match hash_of(&value, 0) {
            0 => self.odd.push(value.clone()),
            hash => self.by_hash.entry(hash).or_default().push(value.clone()),
        }
        self.all.push(value);
    }

    /// Whether one of the values is equal to `value`, by the equality of `is_equal`.
    ///
    /// # Errors
    ///
    /// Errors that end the evaluation; others mean that two values are not equal.
    pub(super) fn contains(
        &self,
        value: &Value,
        is_equal: impl Fn(&Value, &Value) -> Result<bool, EvalError>,
    ) -> Result<bool, EvalError> {
        let hash = hash_of(value, 0);
        let candidates: [&[Value]; 2] = if hash == 0 {
            [&self.all, &[]]
        } else {
            [
                self.by_hash.get(&hash).map_or(&[], Vec::as_slice),
                &self.odd,
            ]
        };
        for other in candidates.into_iter().flatten() {
            match is_equal(other, value) {
                Ok(true) => return Ok(true),
                Err(error) if error.ends_evaluation() => return Err(error),
                Ok(false) | Err(_) => {}
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
        let ints = values(Value::Int);
        let uints = values(|n| Value::Uint(n.unsigned_abs()));
        #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
        let doubles = values(|n| Value::Double(-(n as f64) * -1.0));
        for ((a, b), c) in ints.iter().zip(&uints).zip(&doubles) {
            assert_eq!(hash_of(a, 0), hash_of(b, 0));
            assert_eq!(hash_of(a, 0), hash_of(c, 0));
        }
    }

    #[test]
    fn looking_up() {
        let mut values = Values::default();
        for value in [Value::Int(1), "a".into(), f64::NAN.into(), Value::none()] {
            values.insert(value);
        }
        let contains = |value: Value| values.contains(&value, Value::equals).unwrap();
        assert!(contains(Value::Double(1.0)) && contains("a".into()) && contains(Value::none()));
        assert!(!contains(f64::NAN.into()) && !contains(Value::Int(2)) && !contains(Value::Null));
    }
}
