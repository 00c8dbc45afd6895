//! Objects and maps with a schema.

use std::sync::Arc;

use crate::schema::escape::{escape, unescape};
use cel::value::{EvalBudget, EvalError, Map, MapSource, Value};

use super::{ValueSchema, no_such_overload, part_equals, typed_within};

/// An object or a map with a schema. Values are converted when they are accessed.
///
/// Source: apiserver `pkg/cel/common/valuesunstructured.go`, `unstructuredMap`.
#[derive(Debug)]
pub(super) struct TypedMap {
    pub(super) raw: Map,
    pub(super) schema: Arc<ValueSchema>,
    pub(super) budget: Arc<EvalBudget>,
}

impl TypedMap {
    fn keys_of(&self) -> Vec<Value> {
        self.raw.keys().unwrap_or_default()
    }
}

impl MapSource for TypedMap {
    fn find(&self, key: &Value) -> Result<Option<Value>, EvalError> {
        let Value::String(name) = key else {
            return Err(EvalError::no_such_overload());
        };
        let is_object = self.schema.is_object();
        let name = if is_object {
            match unescape(name) {
                Some(name) => name,
                None => return Ok(None),
            }
        } else {
            name.as_ref().into()
        };
        let raw = match self.raw.as_fields() {
            Some(_) => self.raw.field(&name).cloned(),
            None => self.raw.find(&Value::from(&*name))?,
        };
        // In an object, a null field counts as absent.
        let Some(raw) = raw.filter(|raw| !is_object || !matches!(raw, Value::Null)) else {
            return Ok(None);
        };
        let part = self.schema.part(&name);
        match part.map(|schema| typed_within(&raw, schema, &self.budget)) {
            Some(Value::Error(error)) => Err(error),
            found => Ok(found),
        }
    }

    fn len(&self) -> usize {
        self.raw.len()
    }

    fn keys(&self) -> Result<Vec<Value>, EvalError> {
        let is_object = self.schema.is_object();
        let all = self.keys_of();
        let n_all = all.len();
        let mut keys: Vec<Value> = all
            .into_iter()
            .filter(|key| {
                key.as_str()
                    .is_some_and(|name| self.schema.part(name).is_some())
            })
            .map(|key| match key.as_str().and_then(escape) {
                Some(escaped) if is_object => Value::from(&*escaped),
                _ => key,
            })
            .collect();
        // Upstream's list of keys ends with one null for each key without a schema.
        keys.resize(n_all, Value::Null);
        Ok(keys)
    }

    fn native(&self) -> Option<Value> {
        Some(Value::Map(self.raw.clone()))
    }

    fn equals(&self, other: &Value) -> Option<Result<bool, EvalError>> {
        Some(self.is_equal(other))
    }
}

impl TypedMap {
    fn is_equal(&self, other: &Value) -> Result<bool, EvalError> {
        let Value::Map(other_map) = other else {
            return Err(no_such_overload(other));
        };
        if self.len() != other_map.len() {
            return Ok(false);
        }
        for key in self.keys_of() {
            let is_known = key
                .as_str()
                .is_some_and(|name| self.schema.part(name).is_some());
            if is_known {
                let own = self.find(&key)?;
                // If the other map's value is an error, the values differ, and the error is not reported.
                let others = match other_map.find(&key) {
                    Err(error) if !error.ends_evaluation() => Some(Value::Error(error)),
                    found => found?,
                };
                match (own, others) {
                    (None, None) => {}
                    (Some(own), Some(others)) => {
                        if !part_equals(&own, &others, &self.budget)? {
                            return Ok(false);
                        }
                    }
                    (None, Some(_)) | (Some(_), None) => return Ok(false),
                }
            } else {
                let Some(Value::Map(others)) =
                    other_map.source().and_then(|source| source.native())
                else {
                    return Err(EvalError::no_such_overload());
                };
                if let (Some(own), Some(other)) = (self.raw.find(&key)?, others.find(&key)?)
                    && !own.equals_within(&other, &self.budget)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
