//! Lists with a schema, including the list types `map` and `set`.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::schema::escape::escape;
use cel::value::{EvalBudget, EvalError, List, ListSource, Value};

use super::keyed::{KeyedList, Keys, MEMBER, are_equal_sets};
use super::raw::{Members, hashable, unwrapped};
use super::{ValueSchema, no_such_overload, part_equals, typed_within};

/// The maximum number of key fields that upstream compares by value. If a list has more key fields, upstream converts
/// their values to strings.
const MAX_HASHED_KEYS: usize = 3;

/// The list type. It determines how lists are compared and concatenated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    Atomic,
    Map,
    Set,
}

/// A list with a schema. Elements are converted when they are accessed.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredList`, `unstructuredMapList`,
/// `unstructuredSetList`.
pub(super) struct TypedList {
    raw: List,
    items: Arc<ValueSchema>,
    kind: ListKind,
    /// The schema of the list. It declares the key fields.
    schema: Arc<ValueSchema>,
    /// The elements of a list of type `set`, computed on first use. Also contains the elements of lists that were
    /// concatenated with this list, because upstream adds them to the same Go map.
    members: Mutex<Option<Members>>,
    budget: Arc<EvalBudget>,
}

/// Omits the computed members and the budget.
impl fmt::Debug for TypedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TypedList");
        shown.field("raw", &self.raw).field("kind", &self.kind);
        shown.field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl TypedList {
    pub(super) fn value(
        raw: List,
        (items, kind): (&Arc<ValueSchema>, ListKind),
        schema: &Arc<ValueSchema>,
        budget: &Arc<EvalBudget>,
    ) -> Value {
        Value::List(List::from_source(Arc::new(Self {
            raw,
            items: Arc::clone(items),
            kind,
            schema: Arc::clone(schema),
            members: Mutex::default(),
            budget: Arc::clone(budget),
        })))
    }

    fn typed(&self, raw: &Value) -> Value {
        typed_within(raw, &self.items, &self.budget)
    }

    /// Returns the result of `ask` for the set of this list's elements. The set is computed on first use.
    fn with_members<T>(&self, ask: impl FnOnce(&mut Members) -> T) -> Result<T, EvalError> {
        let mut held: MutexGuard<'_, Option<Members>> =
            self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            let mut members = Members::default();
            for own in &self.raw {
                self.budget.step()?;
                self.budget.allocate(MEMBER)?;
                hashable(&own)?;
                members.insert(own);
            }
            *held = Some(members);
        }
        Ok(ask(held.get_or_insert_default()))
    }

    /// Combines the key fields of an element of a list of type `map` into a string. Returns `None` if the element is
    /// not an object. Such an element equals no other element.
    ///
    /// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredMapList.toMapKey`.
    fn key_of(&self, raw: &Value) -> Result<Option<String>, EvalError> {
        let Value::Map(map) = raw else {
            return Ok(None);
        };
        let names = &self.schema.list_map_keys;
        let mut text = String::new();
        for name in names {
            let escaped = escape(name).unwrap_or(name.into());
            let part = match map.field(&escaped) {
                None | Some(Value::Null) => "none".to_owned(),
                Some(value) => {
                    // Upstream uses up to three key values as the key of a Go map, so the values must be hashable. If
                    // there are more key values, upstream converts them to a string.
                    if names.len() <= MAX_HASHED_KEYS {
                        hashable(value)?;
                    }
                    format!("{} {}", value.go_type(), value.to_go_string())
                }
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "{}:{part},", part.len());
        }
        Ok(Some(text))
    }

    /// Returns the index of each key in a list of type `map`, and the number of different keys. If several elements
    /// have the same key, the last index is returned. Each element that is not an object counts as a different key.
    fn indices_by_key(&self) -> Result<(HashMap<String, usize>, usize), EvalError> {
        let mut indices = HashMap::new();
        let mut n_others: usize = 0;
        for (at, own) in self.raw.iter().enumerate() {
            self.budget.step()?;
            if let Some(key) = self.key_of(&own)? {
                self.budget.allocate(key.len().saturating_add(MEMBER))?;
                indices.insert(key, at);
            } else {
                n_others = n_others.saturating_add(1);
            }
        }
        let n_keys = indices.len().saturating_add(n_others);
        Ok((indices, n_keys))
    }

    fn is_equal(&self, other: &Value) -> Result<bool, EvalError> {
        let Value::List(other) = other else {
            return Err(no_such_overload(other));
        };
        if self.raw.len() != other.len() {
            return Ok(false);
        }
        match self.kind {
            ListKind::Atomic => {
                for (own, other) in self.raw.iter().zip(other) {
                    match self.typed(&own) {
                        Value::Error(error) => return Err(error),
                        own if !part_equals(&own, &other, &self.budget)? => return Ok(false),
                        _ => {}
                    }
                }
            }
            ListKind::Map => {
                let (indices, n_keys) = self.indices_by_key()?;
                let mut seen: HashSet<usize> = HashSet::new();
                for other in other {
                    let position = self
                        .key_of(&unwrapped(&other, &self.budget)?)?
                        .and_then(|key| indices.get(&key));
                    seen.extend(position);
                    let Some(own) = position.and_then(|position| self.raw.get(*position)) else {
                        return Ok(false);
                    };
                    match self.typed(&own) {
                        Value::Error(error) => return Err(error),
                        own if !part_equals(&own, &other, &self.budget)? => return Ok(false),
                        _ => {}
                    }
                }
                return Ok(!self.schema.lists_hold_cel_values || seen.len() == n_keys);
            }
            ListKind::Set if self.schema.lists_hold_cel_values => {
                let own = self.raw.iter().map(|raw| self.typed(&raw));
                return are_equal_sets(own, other, &self.budget);
            }
            ListKind::Set => {
                self.with_members(|_| ())?;
                for other in other {
                    let other = unwrapped(&other, &self.budget)?;
                    hashable(&other)?;
                    self.budget.step()?;
                    if !self.with_members(|members| members.contains(&other))? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn joined(&self, other: &Value) -> Result<Value, EvalError> {
        let Value::List(other) = other else {
            return Err(no_such_overload(other));
        };
        for _ in 0..self.raw.len().saturating_add(other.len()) {
            self.budget.step()?;
        }
        let len = self.raw.len().saturating_add(other.len());
        self.budget
            .allocate(len.saturating_mul(size_of::<Value>()))?;
        if self.schema.lists_hold_cel_values {
            let own = self.raw.iter().map(|raw| self.typed(&raw));
            let keys = match self.kind {
                ListKind::Atomic => return Ok(Value::List(own.chain(other).collect())),
                ListKind::Map => Keys::Map(Arc::clone(&self.schema)),
                ListKind::Set => Keys::Set,
            };
            return KeyedList::concatenated(own.collect(), other, keys, &self.budget);
        }
        let mut raw: Vec<Value> = Vec::with_capacity(len);
        raw.extend(self.raw.iter());
        let others = other
            .iter()
            .map(|element| unwrapped(&element, &self.budget));
        match self.kind {
            ListKind::Atomic => {
                for element in others {
                    raw.push(element?);
                }
            }
            ListKind::Set => {
                self.with_members(|_| ())?;
                for element in others {
                    let element = element?;
                    hashable(&element)?;
                    let is_new = self.with_members(|members| {
                        let is_new = !members.contains(&element);
                        if is_new {
                            members.insert(element.clone());
                        }
                        is_new
                    })?;
                    if is_new {
                        raw.push(element);
                    }
                }
            }
            ListKind::Map => {
                let (indices, _) = self.indices_by_key()?;
                for element in others {
                    let element = element?;
                    let position = self.key_of(&element)?.and_then(|key| indices.get(&key));
                    match position.and_then(|position| raw.get_mut(*position)) {
                        Some(slot) => *slot = element,
                        None => raw.push(element),
                    }
                }
            }
        }
        let raw = List::from_json(raw);
        let (items, schema) = (&self.items, &self.schema);
        Ok(Self::value(raw, (items, self.kind), schema, &self.budget))
    }
}

impl ListSource for TypedList {
    fn len(&self) -> usize {
        self.raw.len()
    }

    fn get(&self, index: usize) -> Option<Value> {
        self.raw.get(index).map(|raw| self.typed(&raw))
    }

    fn native(&self) -> Option<Value> {
        Some(Value::List(self.raw.clone()))
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(self.is_equal(other))
    }

    fn contains(&self, element: &Value) -> Option<Result<bool, EvalError>> {
        let mut failed = None;
        for raw in &self.raw {
            let equal = match self.typed(&raw) {
                Value::Error(error) => Err(error),
                own => part_equals(&own, element, &self.budget),
            };
            match equal {
                Ok(true) => return Some(Ok(true)),
                Ok(false) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Some(failed.map_or(Ok(false), Err))
    }

    fn add(&self, other: &Value, _: &EvalBudget) -> Option<Result<Value, EvalError>> {
        Some(self.joined(other))
    }
}
