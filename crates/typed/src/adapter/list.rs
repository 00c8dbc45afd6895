//! Lists with a schema, which may be maps or sets.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cel::value::{EvalError, List, ListSource, Value};
use kubernetes::schema::escape::escape;

use super::raw::{contains_same, hashable, unwrapped};
use super::{ValueSchema, part_equals, typed};

/// Keys of so many fields are arrays of Go.
const MAX_HASHED_KEYS: usize = 3;

/// What equality and joining of a list go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    Atomic,
    Map,
    Set,
}

/// A list with a schema.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredList`, `unstructuredMapList`,
/// `unstructuredSetList`.
#[derive(Debug)]
pub(super) struct TypedList {
    raw: Vec<Value>,
    items: Arc<ValueSchema>,
    kind: ListKind,
    /// The schema of the list, for the keys of its elements.
    schema: Arc<ValueSchema>,
    /// What was joined to a list that is a set, which is taken to be in it from then on.
    added: Mutex<Vec<Value>>,
}

impl TypedList {
    pub(super) fn value(
        raw: Vec<Value>,
        items: &Arc<ValueSchema>,
        kind: ListKind,
        schema: &Arc<ValueSchema>,
    ) -> Value {
        Value::List(List::from_source(Arc::new(Self {
            raw,
            items: Arc::clone(items),
            kind,
            schema: Arc::clone(schema),
            added: Mutex::default(),
        })))
    }

    /// What was joined to this set before.
    fn added(&self) -> MutexGuard<'_, Vec<Value>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values of the key fields of an element of a list that is a map, as a text; `None` for what is no
    /// object, whose key is like no other.
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
                    // More than three keys are printed, and what is printed can be hashed.
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

    /// The elements of a list that is a map, by their keys; of several of one key the last.
    fn places(&self) -> Result<HashMap<String, usize>, EvalError> {
        let mut places = HashMap::new();
        for (at, own) in self.raw.iter().enumerate() {
            if let Some(key) = self.key_of(own)? {
                places.insert(key, at);
            }
        }
        Ok(places)
    }

    fn is_equal(&self, other: &Value) -> Result<bool, EvalError> {
        let Value::List(other) = other else {
            return Err(EvalError::no_such_overload());
        };
        if self.raw.len() != other.len() {
            return Ok(false);
        }
        match self.kind {
            ListKind::Atomic => {
                for (own, other) in self.raw.iter().zip(other) {
                    match typed(own, &self.items) {
                        Value::Error(error) => return Err(error),
                        own if !part_equals(&own, &other)? => return Ok(false),
                        _ => {}
                    }
                }
            }
            ListKind::Map => {
                let places = self.places()?;
                for other in other {
                    let at = self
                        .key_of(&unwrapped(&other))?
                        .and_then(|key| places.get(&key));
                    let Some(own) = at.and_then(|at| self.raw.get(*at)) else {
                        return Ok(false);
                    };
                    match typed(own, &self.items) {
                        Value::Error(error) => return Err(error),
                        own if !part_equals(&own, &other)? => return Ok(false),
                        _ => {}
                    }
                }
            }
            ListKind::Set => {
                self.raw.iter().try_for_each(hashable)?;
                for other in other {
                    let other = unwrapped(&other);
                    hashable(&other)?;
                    if !contains_same(&self.raw, &other) && !contains_same(&self.added(), &other) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn joined(&self, other: &Value) -> Result<Value, EvalError> {
        let Value::List(other) = other else {
            return Err(EvalError::no_such_overload());
        };
        let mut raw = self.raw.clone();
        let others = other.iter().map(|element| unwrapped(&element));
        match self.kind {
            ListKind::Atomic => raw.extend(others),
            ListKind::Set => {
                raw.iter().try_for_each(hashable)?;
                for element in others {
                    hashable(&element)?;
                    let mut added = self.added();
                    if !contains_same(&self.raw, &element) && !contains_same(&added, &element) {
                        added.push(element.clone());
                        raw.push(element);
                    }
                }
            }
            ListKind::Map => {
                let places = self.places()?;
                for element in others {
                    let at = self.key_of(&element)?.and_then(|key| places.get(&key));
                    match at.and_then(|at| raw.get_mut(*at)) {
                        Some(slot) => *slot = element,
                        None => raw.push(element),
                    }
                }
            }
        }
        Ok(Self::value(raw, &self.items, self.kind, &self.schema))
    }
}

impl ListSource for TypedList {
    fn len(&self) -> usize {
        self.raw.len()
    }

    fn get(&self, index: usize) -> Option<Value> {
        self.raw.get(index).map(|raw| typed(raw, &self.items))
    }

    fn native(&self) -> Option<Value> {
        Some(Value::List(List::of_json(self.raw.clone())))
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(self.is_equal(other))
    }

    fn contains(&self, element: &Value) -> Option<Result<bool, EvalError>> {
        let mut failed = None;
        for raw in &self.raw {
            let equal = match typed(raw, &self.items) {
                Value::Error(error) => Err(error),
                own => part_equals(&own, element),
            };
            match equal {
                Ok(true) => return Some(Ok(true)),
                Ok(false) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Some(failed.map_or(Ok(false), Err))
    }

    fn add(&self, other: &Value) -> Option<Result<Value, EvalError>> {
        Some(self.joined(other))
    }
}
