//! Decodes objects into Go types and encodes them again. Unknown fields are pruned. Empty fields are omitted or added
//! like in Go.
//!
//! A decoded object is in *compact* form: fields with Go's zero value are absent.
//!
//! Source: apimachinery `pkg/runtime/converter.go` (`ToUnstructured`), `sigs.k8s.io/json`.

use serde_json::{Map, Number, Value};

use jiff::Timestamp;

use super::Error;
use super::table::{Shape, Table, Type};
use crate::library::quantity::Quantity;

/// The maximum number of nested levels in an object.
const MAX_DEPTH: usize = 128;

/// Decodes `value` as a Go type. Returns `None` for null and for Go's zero value. A pointer to a zero value is not
/// `None`.
pub(super) fn read(
    table: &Table,
    value: &Value,
    type_: Type<'_>,
    path: &str,
    depth: usize,
) -> Result<Option<Value>, Error> {
    let wrong = |expected: &str| Error::Type {
        path: path.to_owned(),
        expected: expected.to_owned(),
    };
    if depth > MAX_DEPTH {
        return Err(Error::Type {
            path: path.to_owned(),
            expected: "nested less deeply".to_owned(),
        });
    }
    if value.is_null() {
        return Ok(None);
    }
    let read_inner = |value: &Value, inner: Type<'_>, path: &str| {
        let read = read(table, value, inner, path, depth.saturating_add(1))?;
        Ok::<_, Error>(read.unwrap_or_else(|| zero(inner)))
    };
    Ok(match type_.shape() {
        Shape::Text => {
            let text = value.as_str().ok_or_else(|| wrong("a string"))?;
            (!text.is_empty()).then(|| value.clone())
        }
        Shape::Bool => {
            let is_true = value.as_bool().ok_or_else(|| wrong("a boolean"))?;
            is_true.then_some(Value::Bool(true))
        }
        Shape::Int => {
            let number = value.as_i64().ok_or_else(|| wrong("an integer"))?;
            (number != 0).then(|| value.clone())
        }
        Shape::Float => {
            let number = value.as_f64().ok_or_else(|| wrong("a number"))?;
            (number != 0.0).then(|| value.clone())
        }
        Shape::Bytes => {
            let text = value.as_str().ok_or_else(|| wrong("a string in base64"))?;
            Some(text.into())
        }
        Shape::Quantity => {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return Err(wrong("a quantity")),
            };
            let quantity = Quantity::parse(&text).map_err(|_| wrong("a quantity"))?;
            Some(quantity.to_string().into())
        }
        Shape::Time | Shape::MicroTime => {
            let text = value.as_str().ok_or_else(|| wrong("a time"))?;
            let time: Timestamp = text.parse().map_err(|_| wrong("a time"))?;
            let is_micro = matches!(type_.shape(), Shape::MicroTime);
            let precise = if is_micro {
                format!("{time:.6}")
            } else {
                Timestamp::from_second(time.as_second())
                    .map_err(|_| wrong("a time"))?
                    .to_string()
            };
            Some(precise.into())
        }
        Shape::Duration => Some(value.as_str().ok_or_else(|| wrong("a duration"))?.into()),
        Shape::IntOrString => match value {
            Value::Number(number) if number.is_i64() => Some(value.clone()),
            Value::String(_) => Some(value.clone()),
            _ => return Err(wrong("an integer or a string")),
        },
        Shape::Any => Some(value.clone()),
        Shape::Pointer(inner) => Some(read_inner(value, inner, path)?),
        Shape::List(inner) => {
            let items = value.as_array().ok_or_else(|| wrong("a list"))?;
            let items = items
                .iter()
                .enumerate()
                .map(|(n, item)| read_inner(item, inner, &format!("{path}[{n}]")));
            Some(Value::Array(items.collect::<Result<_, _>>()?))
        }
        Shape::Map(inner) => {
            let entries = value.as_object().ok_or_else(|| wrong("a map"))?;
            let entries = entries.iter().map(|(key, value)| {
                let value = read_inner(value, inner, &format!("{path}.{key}"))?;
                Ok::<_, Error>((key.clone(), value))
            });
            Some(Value::Object(entries.collect::<Result<_, _>>()?))
        }
        Shape::Struct(n) => {
            let fields = read_struct(table, value, n, path, depth)?;
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
    })
}

pub(super) fn read_struct(
    table: &Table,
    value: &Value,
    n: usize,
    path: &str,
    depth: usize,
) -> Result<Map<String, Value>, Error> {
    let given = value.as_object().ok_or_else(|| Error::Type {
        path: path.to_owned(),
        expected: "an object".to_owned(),
    })?;
    let mut fields = Map::new();
    for field in table.fields(n) {
        let Some(value) = given.get(&field.0) else {
            continue;
        };
        let path = if path.is_empty() {
            field.0.clone()
        } else {
            format!("{path}.{}", field.0)
        };
        let depth = depth.saturating_add(1);
        if let Some(value) = read(table, value, Type(&field.1), &path, depth)? {
            fields.insert(field.0.clone(), value);
        }
    }
    Ok(fields)
}

/// Returns Go's zero value in compact form.
pub(super) fn zero(type_: Type<'_>) -> Value {
    match type_.shape() {
        Shape::Text => "".into(),
        Shape::Bool => false.into(),
        Shape::Int | Shape::IntOrString | Shape::Float => Value::Number(Number::from(0)),
        Shape::Quantity => "0".into(),
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Any
        | Shape::Pointer(_)
        | Shape::List(_)
        | Shape::Map(_) => Value::Null,
    }
}

/// Returns true if Go's `omitempty` omits this value.
fn is_empty(value: Option<&Value>, type_: Type<'_>) -> bool {
    match type_.shape() {
        Shape::Text | Shape::Bool | Shape::Int | Shape::Float | Shape::Pointer(_) => {
            value.is_none_or(Value::is_null)
        }
        Shape::Bytes => value.and_then(Value::as_str).is_none_or(str::is_empty),
        Shape::List(_) => value.and_then(Value::as_array).is_none_or(Vec::is_empty),
        Shape::Map(_) => value.and_then(Value::as_object).is_none_or(Map::is_empty),
        Shape::Quantity
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::IntOrString
        | Shape::Any
        | Shape::Struct(_) => false,
    }
}

/// An encoder that returns values in the form that policies see.
#[derive(Clone, Copy)]
pub(super) struct Encoder<'a> {
    pub(super) table: &'a Table,
    /// See [`crate::version::Behavior::omits_zero_times`].
    pub(super) omits_zero_times: bool,
}

impl<'a> Encoder<'a> {
    /// Creates an encoder for the newest Kubernetes version.
    pub(super) const fn new(table: &'a Table) -> Self {
        Self {
            table,
            omits_zero_times: true,
        }
    }

    /// Encodes `value`, which is in compact form.
    pub(super) fn write(self, value: Option<&Value>, type_: Type<'_>) -> Value {
        let value = value.filter(|value| !value.is_null());
        match (type_.shape(), value) {
            (Shape::Struct(n), value) => self.write_struct(value, n),
            (Shape::Pointer(inner), Some(value)) => self.write(Some(value), inner),
            (Shape::List(inner), Some(Value::Array(items))) => items
                .iter()
                .map(|item| self.write(Some(item), inner))
                .collect(),
            (Shape::Map(inner), Some(Value::Object(entries))) => {
                let entries = entries.iter();
                entries
                    .map(|(key, value)| (key.clone(), self.write(Some(value), inner)))
                    .collect()
            }
            (_, Some(value)) => value.clone(),
            (_, None) => zero(type_),
        }
    }

    pub(super) fn write_struct(self, value: Option<&Value>, n: usize) -> Value {
        let given = value.and_then(Value::as_object);
        let mut fields = Map::new();
        for field in self.table.fields(n) {
            let value = given.and_then(|given| given.get(&field.0));
            let type_ = Type(&field.1);
            let is_omitted = match field.2 {
                0 => false,
                1 => is_empty(value, type_),
                _ => {
                    self.omits_zero_times && value.is_none_or(Value::is_null)
                        || is_empty(value, type_)
                }
            };
            if !is_omitted {
                fields.insert(field.0.clone(), self.write(value, type_));
            }
        }
        Value::Object(fields)
    }
}
