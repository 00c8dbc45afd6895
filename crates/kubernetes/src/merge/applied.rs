//! Results of `applyConfiguration` expressions. They may contain values that JSON cannot represent.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

/// A value of an `applyConfiguration` object.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// A JSON null. A CEL null is not a JSON null, but a [`NonJson`] value, as in the API server.
    Null,
    /// A JSON boolean.
    Bool(bool),
    /// A 64-bit signed integer.
    Int(i64),
    /// A double. It may be NaN or infinite.
    Double(f64),
    /// A JSON string.
    Text(String),
    /// A list of values.
    List(Vec<Applied>),
    /// A map or an object.
    Map(BTreeMap<String, Applied>),
    /// A CEL value that JSON cannot represent. Such a value matches no schema.
    NonJson(NonJson),
}

/// A CEL value that JSON cannot represent, in the forms in which Go formats it in error messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonJson {
    /// The Go type, formatted with `%T`.
    pub go_type: String,
    /// The value formatted with `%v`, as a part of a pointer to a struct.
    pub plain: String,
    /// The value, formatted with `%#v`.
    pub syntax: String,
}

impl From<&Value> for Applied {
    /// Converts JSON. An integer that does not fit into 64 bits becomes a double.
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int(integer),
                None => Self::Double(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, field)| (name.clone(), Self::from(field)));
                Self::Map(fields.collect())
            }
        }
    }
}

impl Applied {
    pub(super) fn is_shallower(&self, depth: usize) -> bool {
        let mut open = vec![(self, 1_usize)];
        while let Some((value, level)) = open.pop() {
            if level > depth {
                return false;
            }
            let next = level.saturating_add(1);
            match value {
                Self::List(items) => open.extend(items.iter().map(|item| (item, next))),
                Self::Map(fields) => open.extend(fields.values().map(|field| (field, next))),
                _ => {}
            }
        }
        true
    }
}

/// Converts a double to JSON. NaN and infinities become null.
pub(super) fn json_double(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
