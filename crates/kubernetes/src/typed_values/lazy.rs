//! Converts a JSON value with a schema to CEL on demand. Only the fields that an expression selects are converted.
//!
//! The whole value is converted if a selected field cannot be converted, or if a selection is not a simple field
//! access. The evaluator then reports errors.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Map, Value as Json};

use cel::eval::Part;
use cel::value::{EvalBudget, Value};

use super::{ValueSchema, typed_within};
use crate::schema::escape::unescape;

pub(crate) struct Lazy<'a> {
    json: &'a Json,
    schema: &'a Arc<ValueSchema>,
    budget: &'a Arc<EvalBudget>,
    whole: OnceLock<Value>,
    /// The converted objects and lists, each with the address of its JSON value.
    parts: Mutex<Vec<(usize, Value)>>,
}

impl<'a> Lazy<'a> {
    pub(crate) fn new(
        json: &'a Json,
        schema: &'a Arc<ValueSchema>,
        budget: &'a Arc<EvalBudget>,
    ) -> Self {
        Self {
            json,
            schema,
            budget,
            whole: OnceLock::new(),
            parts: Mutex::default(),
        }
    }

    pub(crate) fn whole(&self) -> &Value {
        let make = || typed_within(&Value::from(self.json), self.schema, self.budget);
        self.whole.get_or_init(make)
    }

    /// Selects the nested value at the path `keys`. If `is_test` is true, only tests whether the last key is present.
    /// Returns `None` if the caller must evaluate the selection on [`Self::whole`] instead.
    pub(crate) fn part(&self, keys: &[Arc<str>], is_test: bool) -> Option<Part<'static>> {
        let (mut json, mut schema) = (self.json, self.schema);
        for (n, key) in keys.iter().enumerate() {
            let Some(fields) = fields_of(json, schema) else {
                let value = self.converted(json, schema)?;
                return (n > 0).then_some(Part::Value(n, Cow::Owned(value)));
            };
            let Some((raw, part)) = field(fields, schema, key) else {
                return Some(Part::Absent(n));
            };
            (json, schema) = (raw, part);
        }
        let value = if is_test && (fields_of(json, schema).is_some() || is_list(json, schema)) {
            Value::Bool(true)
        } else {
            self.converted(json, schema)?
        };
        Some(Part::Value(keys.len(), Cow::Owned(value)))
    }

    fn converted(&self, json: &Json, schema: &Arc<ValueSchema>) -> Option<Value> {
        let make = || match typed_within(&Value::from(json), schema, self.budget) {
            Value::Error(_) => None,
            value => Some(value),
        };
        if !json.is_array() && !json.is_object() {
            return make();
        }
        let place = std::ptr::from_ref(json).addr();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, part)) = parts.iter().find(|(address, _)| *address == place) {
            return Some(part.clone());
        }
        let value = make()?;
        parts.push((place, value.clone()));
        Some(value)
    }
}

/// Returns the fields of `json` if `json` and its schema are objects.
fn fields_of<'j>(json: &'j Json, schema: &ValueSchema) -> Option<&'j Map<String, Json>> {
    let is_map = schema.type_ == "object" && !schema.int_or_string;
    json.as_object().filter(|_| is_map)
}

fn is_list(json: &Json, schema: &ValueSchema) -> bool {
    let is_known = matches!(&*schema.list_type, "" | "atomic" | "map" | "set");
    json.is_array()
        && schema.type_ == "array"
        && !schema.int_or_string
        && schema.items.is_some()
        && is_known
}

/// Returns the field or map entry `key` and its schema. Returns `None` if the field is absent or not declared in the
/// schema.
///
/// Source: same as `TypedMap::find`.
fn field<'j, 's>(
    fields: &'j Map<String, Json>,
    schema: &'s ValueSchema,
    key: &str,
) -> Option<(&'j Json, &'s Arc<ValueSchema>)> {
    if !schema.is_object() {
        return Some((fields.get(key)?, schema.part(key)?));
    }
    let name = unescape(key)?;
    // In an object, a null field counts as absent.
    let raw = fields.get(&*name).filter(|raw| !raw.is_null())?;
    Some((raw, schema.part(&name)?))
}
