//! Map entries with keys of any type, and key identity.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::Type;
use crate::value::{self, EvalError, Hashed, Value};

/// Entries with keys of any type, in insertion order, dropped without recursion.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    pub(super) entries: Vec<(Value, Value)>,
    /// Index of each key in `entries`. `None` if there are few entries.
    index: Option<HashMap<Key, usize>>,
}

impl Drop for Entries {
    fn drop(&mut self) {
        if self
            .entries
            .iter()
            .any(|(key, value)| key.is_nested() || value.is_nested())
        {
            value::release(
                self.entries
                    .drain(..)
                    .flat_map(|(key, value)| [key, value])
                    .collect(),
            );
        }
    }
}

/// A key in a form that can be compared and hashed. Two keys are equal if upstream's values are equal under Go's `==`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// A double, by its bits. Negative zero is converted to zero.
    Double(u64),
    String(Arc<str>),
    Duration(i64),
    Timestamp(i64, u32, i32),
    Type(Arc<Type>),
    /// A value that is equal to the values of the same type with the same string.
    Opaque(&'static str, String),
    /// A value that is equal only to itself, identified by its address.
    Identity(usize),
    /// A value that is not equal to itself, such as NaN.
    Never,
}

impl Key {
    /// Creates the key for `value`.
    ///
    /// # Errors
    ///
    /// Returns Go's error for byte sequences and other values that hold a slice.
    pub(crate) fn new(value: &Value) -> Result<Self, EvalError> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Double(value) if value.is_nan() => Self::Never,
            Value::Double(value) => Self::Double((*value + 0.0).to_bits()),
            Value::String(text) => Self::String(Arc::clone(text)),
            Value::Duration(nanos) => Self::Duration(*nanos),
            Value::Timestamp(at) => Self::Timestamp(at.seconds, at.nanos, at.offset_seconds),
            Value::Type(of) => Self::Type(Arc::clone(of)),
            Value::List(list) => Self::Identity(list.address()),
            Value::Map(map) => Self::Identity(map.address()),
            Value::Optional(optional) => match optional.get() {
                Some(held) => Self::Identity(std::ptr::from_ref(held).addr()),
                None => Self::Identity(0),
            },
            Value::Opaque(opaque) => match opaque.hashed() {
                Hashed::ByAddress => Self::Identity(Arc::as_ptr(opaque).cast::<()>().addr()),
                Hashed::ByText(text) => Self::Opaque(opaque.go_type(), text),
                Hashed::Never => {
                    return Err(EvalError::internal(&format!(
                        "runtime error: hash of unhashable type {}",
                        opaque.go_type()
                    )));
                }
            },
            Value::Error(_) => Self::Never,
            Value::Bytes(_) => {
                return Err(EvalError::internal(
                    "runtime error: hash of unhashable type types.Bytes",
                ));
            }
        })
    }
}

/// Maps with more entries are indexed.
const FEW: usize = 8;

impl Entries {
    /// Returns the bytes of the entries and the index.
    pub(super) fn size(&self) -> usize {
        let n_bytes = self
            .entries
            .capacity()
            .saturating_mul(size_of::<(Value, Value)>());
        let n_indexed = self.index.as_ref().map_or(0, HashMap::capacity);
        n_bytes.saturating_add(n_indexed.saturating_mul(size_of::<(Key, usize)>() + 2))
    }

    fn position(&self, key: &Key) -> Option<usize> {
        if *key == Key::Never {
            return None;
        }
        match &self.index {
            Some(index) => index.get(key).copied(),
            None => self
                .entries
                .iter()
                .position(|(other, _)| Key::new(other).is_ok_and(|other| other == *key)),
        }
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Result<(), EvalError> {
        let identity = Key::new(&key)?;
        match self.position(&identity) {
            Some(position) => {
                if let Some(entry) = self.entries.get_mut(position) {
                    entry.1 = value;
                }
            }
            None => {
                let position = self.entries.len();
                self.entries.push((key, value));
                if let Some(index) = &mut self.index {
                    index.insert(identity, position);
                } else if position >= FEW {
                    self.build_index()?;
                }
            }
        }
        Ok(())
    }

    fn build_index(&mut self) -> Result<(), EvalError> {
        let mut index = HashMap::with_capacity(self.entries.len());
        for (position, (key, _)) in self.entries.iter().enumerate() {
            index.insert(Key::new(key)?, position);
        }
        self.index = Some(index);
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &Value) -> Result<(), EvalError> {
        if let Some(position) = self.position(&Key::new(key)?) {
            self.entries.remove(position);
            if self.index.take().is_some() {
                self.build_index()?;
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, key: &Value) -> Result<Option<&Value>, EvalError> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let lookup = |key: &Key| {
            let position = self.position(key)?;
            self.entries.get(position).map(|(_, value)| value)
        };
        if let Some(value) = lookup(&Key::new(key)?) {
            return Ok(Some(value));
        }
        // A number also matches an `int` or `uint` key of a different type with the same value. As in upstream, an
        // integer does not match a `double` key.
        let others = match key {
            Value::Double(value) => [
                value::double_to_int(*value).map(Key::Int),
                value::double_to_uint(*value).map(Key::Uint),
            ],
            Value::Int(value) => [u64::try_from(*value).ok().map(Key::Uint), None],
            Value::Uint(value) => [i64::try_from(*value).ok().map(Key::Int), None],
            _ => [None, None],
        };
        Ok(others.iter().flatten().find_map(lookup))
    }
}
