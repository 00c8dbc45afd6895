//! Lists of type `set` or `map` with CEL values as elements. Since 1.37, the concatenation of lists with a schema is
//! such a list.
//!
//! Source: apiserver 0.37 `pkg/cel/common/valuesreflect.go`, `refValSetList`, `refValMapList`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::schema::escape::escape;
use cel::value::{EvalBudget, EvalError, List, ListSource, Value};

use super::raw::{Members, go_type, unwrapped};
use super::{ValueSchema, no_such_overload, part_equals};

/// The memory of a set element, or of a key without its characters, in bytes.
pub(super) const MEMBER: usize = 96;

/// The source of the keys of a list's elements.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    /// An element is its own key.
    Set,
    /// The schema of the list declares the key fields.
    Map(Arc<ValueSchema>),
}

/// A list of type `set` or `map` with CEL values as elements.
#[derive(Debug)]
pub(super) struct KeyedList {
    elements: Vec<Value>,
    keys: Keys,
    budget: Arc<EvalBudget>,
}

/// Returns the key of an element of a set. Returns an error for lists and maps, which have no key.
///
/// Source: apiserver 0.37 `pkg/cel/common/valuesreflect.go`, `setElementKey`.
fn set_key(element: &Value, budget: &EvalBudget) -> Result<Value, EvalError> {
    match element {
        Value::List(_) | Value::Map(_) => Err(EvalError::new(
            "listSet operations are only supported on lists of scalar values",
        )),
        scalar => unwrapped(scalar, budget),
    }
}

fn members(
    elements: impl Iterator<Item = Value>,
    budget: &EvalBudget,
) -> Result<Members, EvalError> {
    let mut members = Members::default();
    for element in elements {
        budget.step()?;
        budget.allocate(MEMBER)?;
        members.insert_new(set_key(&element, budget)?);
    }
    Ok(members)
}

/// Returns true if two lists of type `set` have the same distinct elements. Elements may repeat, but both lists must
/// have the same length.
///
/// Source: apiserver 0.37 `pkg/cel/common/valuesunstructured.go`, `unstructuredSetList.Equal`.
pub(super) fn are_equal_sets(
    own: impl Iterator<Item = Value>,
    other: &List,
    budget: &EvalBudget,
) -> Result<bool, EvalError> {
    let own = members(own, budget)?;
    let mut seen = Members::default();
    for other in other {
        budget.step()?;
        budget.allocate(MEMBER)?;
        let key = set_key(&other, budget)?;
        if !own.contains(&key) {
            return Ok(false);
        }
        seen.insert_new(key);
    }
    Ok(seen.len() == own.len())
}

/// Combines the key fields of an element into a string. A missing field counts as null, and so does a field whose value
/// is an error.
///
/// Source: apiserver 0.37 `pkg/cel/common/valuesreflect.go`, `refValMapKey`.
fn map_key(element: &Value, schema: &ValueSchema) -> Result<String, EvalError> {
    let mut text = String::new();
    for name in &schema.list_map_keys {
        let escaped = escape(name).unwrap_or(name.into());
        let field = match element {
            Value::Map(map) => match map.find(&Value::from(&*escaped)) {
                Err(error) if error.ends_evaluation() => return Err(error),
                found => found.ok().flatten(),
            },
            _ => None,
        };
        let part = match field {
            None | Some(Value::Error(_)) => "none".to_owned(),
            Some(value) => format!("{} {}", go_type(&value), value.to_go_string()),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{}:{part},", part.len());
    }
    Ok(text)
}

impl KeyedList {
    /// Adds the elements of `other` that are not in `elements`. In a list of type `map`, an element of `other` replaces
    /// an element with the same key.
    ///
    /// Source: apiserver 0.37 `pkg/cel/common/valuesreflect.go`, `addToSetList`, `addToMapList`.
    pub(super) fn concatenated(
        mut elements: Vec<Value>,
        other: &List,
        keys: Keys,
        budget: &Arc<EvalBudget>,
    ) -> Result<Value, EvalError> {
        match &keys {
            Keys::Set => {
                let mut members = members(elements.iter().cloned(), budget)?;
                for other in other {
                    if members.insert_new(set_key(&other, budget)?) {
                        elements.push(other);
                    }
                }
            }
            Keys::Map(schema) => {
                let indices = indices_by_key(&elements, schema, budget)?;
                for other in other {
                    let index = indices.get(&map_key(&other, schema)?);
                    match index.and_then(|index| elements.get_mut(*index)) {
                        Some(slot) => *slot = other,
                        None => elements.push(other),
                    }
                }
            }
        }
        Ok(Value::List(List::from_source(Arc::new(Self {
            elements,
            keys,
            budget: Arc::clone(budget),
        }))))
    }

    fn is_equal(&self, other: &Value) -> Result<bool, EvalError> {
        let Value::List(other) = other else {
            return Err(no_such_overload(other));
        };
        if self.elements.len() != other.len() {
            return Ok(false);
        }
        let schema = match &self.keys {
            Keys::Set => return are_equal_sets(self.elements.iter().cloned(), other, &self.budget),
            Keys::Map(schema) => schema,
        };
        let indices = indices_by_key(&self.elements, schema, &self.budget)?;
        let mut seen = HashSet::new();
        for other in other {
            let key = map_key(&other, schema)?;
            match indices
                .get(&key)
                .and_then(|index| self.elements.get(*index))
            {
                None => return Ok(false),
                Some(Value::Error(error)) => return Err(error.clone()),
                Some(own) if !part_equals(own, &other, &self.budget)? => return Ok(false),
                Some(_) => seen.insert(key),
            };
        }
        Ok(seen.len() == indices.len())
    }
}

/// Returns the index of each key in a list of type `map`. If several elements have the same key, the last index is
/// returned.
fn indices_by_key(
    elements: &[Value],
    schema: &ValueSchema,
    budget: &EvalBudget,
) -> Result<HashMap<String, usize>, EvalError> {
    let mut indices = HashMap::new();
    for (index, element) in elements.iter().enumerate() {
        budget.step()?;
        let key = map_key(element, schema)?;
        budget.allocate(key.len().saturating_add(MEMBER))?;
        indices.insert(key, index);
    }
    Ok(indices)
}

impl ListSource for KeyedList {
    fn len(&self) -> usize {
        self.elements.len()
    }

    fn get(&self, index: usize) -> Option<Value> {
        self.elements.get(index).cloned()
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(self.is_equal(other))
    }

    fn add(&self, other: &Value, _: &EvalBudget) -> Option<Result<Value, EvalError>> {
        let Value::List(other) = other else {
            return Some(Err(no_such_overload(other)));
        };
        let n_bytes = self
            .elements
            .len()
            .saturating_add(other.len())
            .saturating_mul(size_of::<Value>());
        let concatenated = |()| {
            let (elements, keys) = (self.elements.clone(), self.keys.clone());
            Self::concatenated(elements, other, keys, &self.budget)
        };
        Some(self.budget.allocate(n_bytes).and_then(concatenated))
    }

    fn go_type(&self) -> &'static str {
        match self.keys {
            Keys::Set => "*common.refValSetList",
            Keys::Map(_) => "*common.refValMapList",
        }
    }
}
