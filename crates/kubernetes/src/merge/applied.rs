//! Applied objects: what an expression has made, with values that no JSON has.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

/// A value that is applied.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// A null of JSON. The null of an expression is a [`Foreign`] value to the API server.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Applied>),
    /// A map or an object.
    Map(BTreeMap<String, Applied>),
    /// Anything else, which no schema takes.
    Foreign(Foreign),
}

/// A value that is none of JSON to the API server, as its messages show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreign {
    /// The value's Go type, as `%T` writes it.
    pub go_type: String,
    /// The value within a pointer to a struct, as `%v` writes it.
    pub plain: String,
    /// The value as `%#v` writes it.
    pub syntax: String,
}

impl From<&Value> for Applied {
    /// An integer that does not fit 64 bits is a double.
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
    /// Reports whether the value has at most `depth` levels.
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

/// The number of JSON; null for one that JSON does not have.
pub(super) fn json_double(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
