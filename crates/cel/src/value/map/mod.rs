//! Maps: objects with named fields, maps with keys of any type, or maps with entries created on access.

mod entries;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::entries::Entries;
use super::footprint::size_of_new;
use super::{EvalError, Traits, Value};
use crate::types::Type;

pub(crate) use self::entries::Key;

/// A map whose values are created on access. Examples are objects with a schema, and variables that are evaluated on
/// first use.
pub trait MapSource: Any + fmt::Debug + Send + Sync {
    /// Returns the type: a map, or a specific object type.
    fn type_(&self) -> Type {
        Type::map(Type::Dyn, Type::Dyn)
    }

    /// Returns the traits, which determine the applicable operators.
    fn traits(&self) -> Traits {
        MAP_TRAITS
    }

    /// Returns the value under `key`. `None` if it is absent.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be created.
    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError>;

    /// Returns a map in memory with the same fields. Lookups of string keys use it instead of [`Self::find`], and do
    /// not copy the value. `None` if the values are created on access.
    fn held(&self) -> Option<&Map> {
        None
    }

    /// Returns the number of entries.
    fn len(&self) -> usize;

    /// Returns true if the map has no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys, over which a comprehension with one variable iterates.
    ///
    /// # Errors
    ///
    /// Returns an error if the keys cannot be created.
    fn keys(&self) -> Result<Vec<Value>, EvalError>;

    /// Returns the map without its schema, as after a conversion to a native Go value and back. `None` if the
    /// conversion does not change the map.
    fn native(&self) -> Option<Value> {
        None
    }

    /// Returns true if `other` is equal to this map. `None` if the map has no equality rule of its own.
    fn equals(&self, _other: &Value) -> Option<Result<bool, EvalError>> {
        None
    }

    /// Returns true if equality depends only on the entries, so that a hash of the entries is a hash of the map.
    fn is_compared_by_entries(&self) -> bool {
        true
    }

    /// Returns the error of a conversion to the Go type `to`. `None` if the map is converted like other maps.
    fn native_error(&self, _to: &str) -> Option<EvalError> {
        None
    }

    /// Returns true if the keys and values can be read without evaluating an expression.
    fn is_in_memory(&self) -> bool {
        false
    }

    /// Returns the name of the Go type that represents the map.
    fn go_type(&self) -> &'static str {
        match self.type_() {
            Type::Map(_) => "*common.unstructuredMap",
            _ => "*lazy.MapValue",
        }
    }
}

/// Traits of a map.
///
/// Source: cel-go `common/types/types.go`, `NewMapType`.
pub(super) const MAP_TRAITS: Traits = Traits::CONTAINER
    .and(Traits::INDEXER)
    .and(Traits::ITERABLE)
    .and(Traits::SIZER);

/// A map.
///
/// Source: cel-go `common/types/map.go`.
#[derive(Clone, Debug)]
pub struct Map(Repr);

#[derive(Clone, Debug)]
enum Repr {
    /// Named fields, sorted.
    Fields(Arc<Fields>),
    Entries(Arc<Entries>),
    Source(Arc<dyn MapSource>),
    /// The accumulator of a comprehension; entries are inserted in place.
    Mutable(Arc<MutableMap>),
}

/// A mutable map. Insertion modifies it for all references.
///
/// Source: cel-go `common/types/map.go`, `mutableMap`.
#[derive(Debug, Default)]
struct MutableMap(Mutex<Entries>);

impl MutableMap {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Entries are inserted one at a time, so the map remains valid after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Named fields, sorted by name. They are dropped without recursion.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(Arc<str>, Value)>);

/// Maximum number of fields that are searched linearly.
const MAX_SEARCHED: usize = 24;

impl Fields {
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Option<&Value> {
        if self.0.len() > MAX_SEARCHED {
            let position = self.0.binary_search_by(|(field, _)| (**field).cmp(name));
            return self.0.get(position.ok()?).map(|(_, value)| value);
        }
        // Compares lengths first, because most names differ in length. Names at the same address
        // are equal.
        let is_named = |field: &Arc<str>| {
            field.len() == name.len()
                && (std::ptr::addr_eq(Arc::as_ptr(field), name) || **field == *name)
        };
        let mut fields = self.0.iter();
        fields
            .find(|(field, _)| is_named(field))
            .map(|(_, value)| value)
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        if self.0.iter().any(|(_, value)| value.is_nested()) {
            super::release(self.0.drain(..).map(|(_, value)| value).collect());
        }
    }
}

impl Default for Map {
    fn default() -> Self {
        Self(Repr::Entries(Arc::default()))
    }
}

impl Map {
    /// Creates an object with the given fields. The last of several fields with the same name wins.
    #[must_use]
    pub fn from_fields(mut fields: Vec<(Arc<str>, Value)>) -> Self {
        if fields.is_sorted_by(|a, b| a.0 < b.0) {
            return Self(Repr::Fields(Arc::new(Fields(fields))));
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        // The sort is stable, so fields with the same name keep their order.
        let mut kept: Vec<(Arc<str>, Value)> = Vec::with_capacity(fields.len());
        for field in fields {
            match kept.last_mut() {
                Some(last) if last.0 == field.0 => *last = field,
                _ => kept.push(field),
            }
        }
        Self(Repr::Fields(Arc::new(Fields(kept))))
    }

    /// Creates a map whose values are created on access.
    #[must_use]
    pub fn from_source(source: Arc<dyn MapSource>) -> Self {
        Self(Repr::Source(source))
    }

    /// Returns the source of the values. `None` unless they are created on access.
    #[must_use]
    pub fn source(&self) -> Option<&Arc<dyn MapSource>> {
        match &self.0 {
            Repr::Source(source) => Some(source),
            Repr::Fields(_) | Repr::Entries(_) | Repr::Mutable(_) => None,
        }
    }

    /// Returns the fields, sorted by name. `None` unless the map is an object in memory.
    #[must_use]
    pub fn as_fields(&self) -> Option<&[(Arc<str>, Value)]> {
        match &self.0 {
            Repr::Fields(fields) => Some(&fields.0),
            Repr::Entries(_) | Repr::Source(_) | Repr::Mutable(_) => None,
        }
    }

    /// Returns the fields. `None` unless the map or its source is an object in memory.
    #[inline]
    pub(crate) fn held_fields(&self) -> Option<&Fields> {
        match &self.0 {
            Repr::Fields(fields) => Some(fields),
            Repr::Source(source) => source.held()?.held_fields(),
            Repr::Entries(_) | Repr::Mutable(_) => None,
        }
    }

    /// Returns the type: a map, or the object type of a source.
    #[must_use]
    pub fn type_(&self) -> Type {
        match &self.0 {
            Repr::Source(source) => source.type_(),
            Repr::Fields(_) | Repr::Entries(_) | Repr::Mutable(_) => {
                Type::map(Type::Dyn, Type::Dyn)
            }
        }
    }

    /// Returns true if the type is a map type, rather than an object type.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match &self.0 {
            Repr::Source(source) => matches!(source.type_(), Type::Map(_)),
            Repr::Fields(_) | Repr::Entries(_) | Repr::Mutable(_) => true,
        }
    }

    /// Returns true if this is a JSON object, rather than a map created by an expression.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self.0, Repr::Fields(_))
    }

    /// Returns true if the map is empty or its first entry has the types `key` and `value`.
    pub(super) fn first_is_of(&self, key: &Type, value: &Type) -> bool {
        let matches_all = |of: &Type| of.is_dyn() || matches!(of, Type::Param(_));
        if matches_all(key) && matches_all(value) {
            return true;
        }
        let first = self.keys().ok().and_then(|keys| keys.into_iter().next());
        first.is_none_or(|first| {
            first.is_of(key)
                && self
                    .find(&first)
                    .is_ok_and(|found| found.is_some_and(|found| found.is_of(value)))
        })
    }

    /// Returns the traits, which determine the applicable operators.
    #[must_use]
    pub fn traits(&self) -> Traits {
        match &self.0 {
            Repr::Source(source) => source.traits(),
            Repr::Fields(_) | Repr::Entries(_) | Repr::Mutable(_) => MAP_TRAITS,
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Fields(fields) => fields.0.len(),
            Repr::Entries(entries) => entries.entries.len(),
            Repr::Source(source) => source.len(),
            Repr::Mutable(growing) => growing.lock().entries.len(),
        }
    }

    /// Returns true if the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory owned exclusively by this map, in bytes, excluding its keys and values.
    /// Zero if the map is shared.
    ///
    /// Entries of a mutable map are counted when they are inserted.
    pub(super) fn own_size(&self) -> usize {
        match &self.0 {
            Repr::Fields(fields) => {
                let n_bytes = fields
                    .0
                    .capacity()
                    .saturating_mul(size_of::<(Arc<str>, Value)>());
                size_of_new(fields, n_bytes)
            }
            Repr::Entries(entries) => size_of_new(entries, entries.size()),
            Repr::Source(_) | Repr::Mutable(_) => 0,
        }
    }

    /// Returns the bytes that [`Map::frozen`] copies.
    pub(super) fn frozen_size(&self) -> usize {
        match &self.0 {
            Repr::Mutable(growing) if Arc::strong_count(growing) > 1 => growing.lock().size(),
            _ => 0,
        }
    }

    /// Returns the memory address, which identifies the map.
    pub(super) fn address(&self) -> usize {
        match &self.0 {
            Repr::Fields(fields) => Arc::as_ptr(fields).addr(),
            Repr::Entries(entries) => Arc::as_ptr(entries).addr(),
            Repr::Source(source) => Arc::as_ptr(source).cast::<()>().addr(),
            Repr::Mutable(growing) => Arc::as_ptr(growing).addr(),
        }
    }

    /// Returns the field `name` of an object in memory. `None` if it is absent, or if the map has a different
    /// representation.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        match &self.0 {
            Repr::Fields(fields) => fields.find(name),
            Repr::Entries(entries) => entries.find(&Value::from(name)).ok().flatten(),
            Repr::Source(_) | Repr::Mutable(_) => None,
        }
    }

    /// Returns the value under `key`, borrowed if it is in memory. `None` if the key is absent.
    ///
    /// # Errors
    ///
    /// See [`Map::find`].
    pub(crate) fn look_up(&self, key: &Value) -> Result<Option<Cow<'_, Value>>, EvalError> {
        if let Value::String(name) = key
            && let Some(fields) = self.held_fields()
        {
            return Ok(fields.find(name).map(Cow::Borrowed));
        }
        Ok(match &self.0 {
            Repr::Fields(_) => None,
            Repr::Entries(entries) => entries.find(key)?.map(Cow::Borrowed),
            Repr::Source(source) => source.find(key)?.map(Cow::Owned),
            Repr::Mutable(growing) => growing.lock().find(key)?.cloned().map(Cow::Owned),
        })
    }

    /// Returns the value under `key`. `None` if it is absent.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be created, or if `key` cannot be a key.
    ///
    /// Source: cel-go `common/types/map.go`, `mapAccessor.Find`.
    pub fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        Ok(self.look_up(key)?.map(Cow::into_owned))
    }

    /// Returns the value under `key`, or the error of a failed lookup as a value.
    ///
    /// Source: cel-go `common/types/map.go`, `baseMap.Get`.
    #[must_use]
    pub fn get(&self, key: &Value) -> Value {
        match self.find(key) {
            Ok(Some(value)) => value,
            Ok(None) => Value::Error(EvalError::no_such_key(key.to_go_string())),
            Err(error) => Value::Error(error),
        }
    }

    /// Returns the keys, over which a comprehension with one variable iterates.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot create the keys.
    pub fn keys(&self) -> Result<Vec<Value>, EvalError> {
        match &self.0 {
            Repr::Fields(fields) => Ok(fields
                .0
                .iter()
                .map(|(name, _)| Value::String(Arc::clone(name)))
                .collect()),
            Repr::Entries(entries) => {
                Ok(entries.entries.iter().map(|(key, _)| key.clone()).collect())
            }
            Repr::Source(source) => source.keys(),
            Repr::Mutable(growing) => Ok(growing
                .lock()
                .entries
                .iter()
                .map(|(key, _)| key.clone())
                .collect()),
        }
    }

    /// Returns the entries.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot create the entries.
    pub fn entries(&self) -> Result<Vec<(Value, Value)>, EvalError> {
        match &self.0 {
            Repr::Fields(fields) => Ok(fields
                .0
                .iter()
                .map(|(name, value)| (Value::String(Arc::clone(name)), value.clone()))
                .collect()),
            Repr::Entries(entries) => Ok(entries.entries.clone()),
            Repr::Mutable(growing) => Ok(growing.lock().entries.clone()),
            Repr::Source(source) => Ok(source
                .keys()?
                .into_iter()
                .map(|key| {
                    let value = self.get(&key);
                    (key, value)
                })
                .collect()),
        }
    }

    /// Creates an empty mutable map, for the accumulator of a comprehension.
    ///
    /// This map must not be part of another value. Otherwise it could come to contain itself: see [`Value::frozen`].
    #[must_use]
    pub(crate) fn growing() -> Self {
        Self(Repr::Mutable(Arc::default()))
    }

    pub(crate) fn is_mutable(&self) -> bool {
        matches!(self.0, Repr::Mutable(_))
    }

    /// Returns an immutable snapshot of the map.
    #[must_use]
    pub(crate) fn frozen(self) -> Self {
        match self.0 {
            Repr::Mutable(growing) => match Arc::try_unwrap(growing) {
                Ok(owned) => {
                    let entries = owned.0.into_inner().unwrap_or_else(PoisonError::into_inner);
                    Self(Repr::Entries(Arc::new(entries)))
                }
                Err(shared) => {
                    let copied = shared.lock().clone();
                    Self(Repr::Entries(Arc::new(copied)))
                }
            },
            _ => self,
        }
    }

    /// Inserts an entry, for macros that build maps.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is already present.
    ///
    /// Source: cel-go `common/types/map.go`, `InsertMapKeyValue`.
    pub(crate) fn with_entry(mut self, key: Value, value: Value) -> Result<Self, EvalError> {
        if self.look_up(&key)?.is_some() {
            return Err(EvalError::new(format!(
                "insert failed: key {} already exists",
                key.to_go_string()
            )));
        }
        match &self.0 {
            Repr::Mutable(growing) => growing.lock().insert(key, value)?,
            Repr::Fields(_) | Repr::Entries(_) | Repr::Source(_) => self.insert(key, value)?,
        }
        Ok(self)
    }

    /// Sets the value under `key`, in place if the map is not shared.
    ///
    /// # Errors
    ///
    /// Returns Go's error if `key` cannot be a key.
    pub fn insert(&mut self, key: Value, value: Value) -> Result<(), EvalError> {
        self.make_entries()?.insert(key, value)
    }

    /// Removes `key`, in place if the map is not shared.
    ///
    /// # Errors
    ///
    /// Returns Go's error if `key` cannot be a key.
    pub fn remove(&mut self, key: &Value) -> Result<(), EvalError> {
        self.make_entries()?.remove(key)
    }

    fn make_entries(&mut self) -> Result<&mut Entries, EvalError> {
        if !matches!(self.0, Repr::Entries(_)) {
            let mut copied = Entries::default();
            for (key, value) in self.entries()? {
                copied.insert(key, value)?;
            }
            self.0 = Repr::Entries(Arc::new(copied));
        }
        match &mut self.0 {
            Repr::Entries(entries) => Ok(Arc::make_mut(entries)),
            Repr::Fields(_) | Repr::Source(_) | Repr::Mutable(_) => {
                Err(EvalError::no_such_overload())
            }
        }
    }

    /// Moves nested values into `pending`, if the map is not shared.
    pub(super) fn release_into(self, pending: &mut Vec<Value>) {
        match self.0 {
            Repr::Fields(fields) => {
                if let Some(mut owned) = Arc::into_inner(fields) {
                    pending.extend(owned.0.drain(..).map(|(_, value)| value));
                }
            }
            Repr::Entries(entries) => {
                if let Some(mut owned) = Arc::into_inner(entries) {
                    pending.extend(
                        owned
                            .entries
                            .drain(..)
                            .flat_map(|(key, value)| [key, value]),
                    );
                }
            }
            Repr::Mutable(growing) => {
                if let Some(owned) = Arc::into_inner(growing) {
                    let mut owned = owned.0.into_inner().unwrap_or_else(PoisonError::into_inner);
                    pending.extend(
                        owned
                            .entries
                            .drain(..)
                            .flat_map(|(key, value)| [key, value]),
                    );
                }
            }
            Repr::Source(_) => {}
        }
    }
}
