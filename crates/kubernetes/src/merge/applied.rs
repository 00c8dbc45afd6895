//! Applied objects: results of expressions, with values that JSON does not have.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

/// A value of an applied object.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// A JSON null. The API server treats the null of an expression as a [`NonJson`] value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Applied>),
    /// A map or an object.
    Map(BTreeMap<String, Applied>),
    /// Any other value, which no schema accepts.
    NonJson(NonJson),
}

/// A value that is not JSON in the API server, with its representations in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonJson {
    /// The value's Go type, formatted with `%T`.
    pub go_type: String,
    /// The value in a pointer to a struct, formatted with `%v`.
    pub plain: String,
    /// The value formatted with `%#v`.
    pub syntax: String,
}

impl From<&Value> for Applied {
    /// An integer that does not fit 64 bits becomes a double.
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
    /// Returns true if the value has at most `depth` levels.
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

/// Returns the JSON number, or null for NaN and infinities.
pub(super) fn json_double(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
