//! The values of the live and the applied object.
//!
//! Source: structured-merge-diff `value/value.go` (`Value`, `Compare`, `ToString`).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use cel::go_text;
use cel::value::format_double;
use serde_json::Value;

use super::applied::{Applied, NonJson, json_double};

#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(&'a str),
    List(Vec<Node<'a>>),
    Map(BTreeMap<&'a str, Node<'a>>),
    NonJson(&'a NonJson),
}

impl<'a> Node<'a> {
    pub(super) fn from_json(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int(integer),
                None => Self::Double(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Value::Object(fields) => {
                let fields = fields.iter();
                Self::Map(
                    fields
                        .map(|(name, field)| (name.as_str(), Self::from_json(field)))
                        .collect(),
                )
            }
        }
    }

    pub(super) fn from_applied(value: &'a Applied) -> Self {
        match value {
            Applied::Null => Self::Null,
            Applied::Bool(value) => Self::Bool(*value),
            Applied::Int(value) => Self::Int(*value),
            Applied::Double(value) => Self::Double(*value),
            Applied::Text(text) => Self::Text(text),
            Applied::List(items) => Self::List(items.iter().map(Self::from_applied).collect()),
            Applied::Map(fields) => {
                let fields = fields.iter();
                Self::Map(
                    fields
                        .map(|(name, field)| (name.as_str(), Self::from_applied(field)))
                        .collect(),
                )
            }
            Applied::NonJson(other) => Self::NonJson(other),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Null | Self::NonJson(_) => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => (*value).into(),
            Self::Double(value) => json_double(*value),
            Self::Text(text) => (*text).into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(fields) => {
                let fields = fields.iter();
                fields
                    .map(|(name, field)| ((*name).to_owned(), field.to_json()))
                    .collect()
            }
        }
    }

    pub(super) fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Bool(_) | Self::Int(_) | Self::Double(_) | Self::Text(_)
        )
    }

    /// Formats the value as the key of a list item in a path.
    ///
    /// Source: structured-merge-diff `value/value.go`, `ToString`. Upstream's order of map entries is random.
    pub(super) fn path_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Double(value) => format_double(*value),
            Self::Text(text) => go_text::quote(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::path_text).collect();
                format!("[{}]", items.join(","))
            }
            Self::Map(fields) => {
                let mut text = String::new();
                for (name, field) in fields {
                    text.push_str(name);
                    text.push('=');
                    text.push_str(&field.path_text());
                }
                text
            }
            Self::NonJson(_) => "{{undefined}}".to_owned(),
        }
    }

    /// Compares two values of any types. Sets use this order to find equal items.
    ///
    /// Source: structured-merge-diff `value/value.go`, `Compare`.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        #[expect(
            clippy::cast_precision_loss,
            reason = "upstream converts the integer to a double"
        )]
        let double = |value: i64| value as f64;
        let doubles = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
        match (self, other) {
            (Self::Double(a), Self::Double(b)) => doubles(*a, *b),
            (Self::Double(a), Self::Int(b)) => doubles(*a, double(*b)),
            (Self::Int(a), Self::Double(b)) => doubles(double(*a), *b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => {
                let unlike = a.iter().zip(b).map(|(a, b)| a.compare(b));
                let unlike = unlike.into_iter().find(|order| order.is_ne());
                unlike.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Map(a), Self::Map(b)) => {
                let unlike = a.iter().zip(b).map(|((a_name, a), (b_name, b))| {
                    a_name.cmp(b_name).then_with(|| a.compare(b))
                });
                let unlike = unlike.into_iter().find(|order| order.is_ne());
                unlike.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    /// Returns the rank of the value's type. Values of different types are ordered by rank.
    fn rank(&self) -> u8 {
        match self {
            Self::Double(_) => 0,
            Self::Int(_) => 1,
            Self::Text(_) => 2,
            Self::Bool(_) => 3,
            Self::List(_) => 4,
            Self::Map(_) => 5,
            Self::Null => 6,
            Self::NonJson(_) => 7,
        }
    }
}
