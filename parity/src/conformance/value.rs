//! Reads the values in the conformance tests: values of variables, and expected results.
//!
//! Source: cel-spec `proto/cel/expr/value.proto`, `Value`; `proto/cel/expr/eval.proto`, `ExprValue`.

use anyhow::{Context as _, Result, bail};
use vap_status_controller::cel::types::Type;

use super::textproto::{self, Message};
use super::types::WELL_KNOWN;

/// A CEL value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// A `uint`.
    Uint(u64),
    /// A `double`.
    Double(f64),
    /// A `string`.
    String(String),
    /// A `bytes`.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// A map. The entries are in the order of the test.
    Map(Vec<(Value, Value)>),
    /// A type, as its name.
    Type(String),
    /// A duration.
    Duration(Span),
    /// A point in time, as the duration since 1970.
    Timestamp(Span),
    /// A value of an enumeration type. Enumeration types are distinct from `int`.
    Enum(String),
    /// A message that does not correspond to a built-in CEL value.
    Message(String),
}

/// Seconds and nanoseconds, like protobuf's durations and timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds. For a duration, they have the same sign as the seconds. For a timestamp, they are not negative.
    pub nanos: i32,
}

/// The binding of a test's variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// A value.
    Value(Value),
    /// An error.
    Error,
    /// An unknown value.
    Unknown,
}

impl Binding {
    /// Reads an `ExprValue`.
    ///
    /// # Errors
    /// Returns an error if the message is malformed.
    pub fn read(message: &Message) -> Result<Self> {
        let (kind, value) = only_field(message)?;
        match kind {
            "value" => Ok(Self::Value(Value::read(as_message(value)?)?)),
            "error" => Ok(Self::Error),
            "unknown" => Ok(Self::Unknown),
            other => bail!("an ExprValue of the kind `{other}`"),
        }
    }
}

impl Value {
    /// Reads a `Value`.
    ///
    /// # Errors
    /// Returns an error if the message is malformed.
    pub fn read(message: &Message) -> Result<Self> {
        let (kind, value) = only_field(message)?;
        Ok(match kind {
            "null_value" => Self::Null,
            "bool_value" => Self::Bool(value.flag()?),
            "int64_value" => Self::Int(i64::try_from(value.integer()?)?),
            "uint64_value" => Self::Uint(u64::try_from(value.integer()?)?),
            "double_value" => Self::Double(value.double()?),
            "string_value" => Self::String(value.text()?),
            "bytes_value" => Self::Bytes(bytes(value)?),
            "list_value" => {
                let elements = as_message(value)?.messages("values")?;
                Self::List(
                    elements
                        .into_iter()
                        .map(Self::read)
                        .collect::<Result<_>>()?,
                )
            }
            "map_value" => {
                let entries = as_message(value)?.messages("entries")?;
                Self::Map(entries.into_iter().map(entry).collect::<Result<_>>()?)
            }
            "type_value" => Self::Type(value.text()?),
            "enum_value" => Self::Enum(as_message(value)?.text("type")?),
            "object_value" => any(as_message(value)?)?,
            other => bail!("a Value of the kind `{other}`"),
        })
    }

    /// Returns true if an expression of the type `of` can have this value.
    ///
    /// Returns false for a value of an enumeration type, because the checker does not support enumeration types.
    #[must_use]
    pub fn is_of(&self, of: &Type) -> bool {
        match (self, of) {
            (_, Type::Dyn | Type::Any | Type::Param(_))
            | (Self::Null, Type::Null | Type::Wrapper(_))
            | (Self::Bool(_), Type::Bool)
            | (Self::Int(_), Type::Int)
            | (Self::Uint(_), Type::Uint)
            | (Self::Double(_), Type::Double)
            | (Self::String(_), Type::String)
            | (Self::Bytes(_), Type::Bytes)
            | (Self::Duration(_), Type::Duration)
            | (Self::Timestamp(_), Type::Timestamp)
            | (Self::Type(_), Type::Type(_)) => true,
            (_, Type::Wrapper(primitive)) => self.is_of(&primitive.unwrapped()),
            (Self::List(elements), Type::List(elem)) => {
                elements.iter().all(|element| element.is_of(elem))
            }
            (Self::Map(entries), Type::Map(types)) => entries
                .iter()
                .all(|(key, value)| key.is_of(&types.0) && value.is_of(&types.1)),
            (Self::Message(name), Type::Struct(object)) => **name == *object.name,
            _ => false,
        }
    }
}

fn entry(message: &Message) -> Result<(Value, Value)> {
    let part = |name| -> Result<Value> {
        Value::read(
            message
                .message(name)?
                .with_context(|| format!("no {name}"))?,
        )
    };
    Ok((part("key")?, part("value")?))
}

/// Returns the only field of a message. The message must have exactly one field.
fn only_field(message: &Message) -> Result<(&str, &textproto::Value)> {
    let mut fields = message.fields();
    let field = fields.next().context("a value without a kind")?;
    match fields.next() {
        None => Ok(field),
        Some((other, _)) => bail!("a value of two kinds, `{}` and `{other}`", field.0),
    }
}

fn as_message(value: &textproto::Value) -> Result<&Message> {
    match value {
        textproto::Value::Message(message) => Ok(message),
        textproto::Value::Bytes(_) | textproto::Value::Word(_) => bail!("not a message: {value:?}"),
    }
}

fn bytes(value: &textproto::Value) -> Result<Vec<u8>> {
    match value {
        textproto::Value::Bytes(bytes) => Ok(bytes.clone()),
        textproto::Value::Message(_) | textproto::Value::Word(_) => bail!("not bytes: {value:?}"),
    }
}

/// Converts the message in an `Any` to a CEL value.
fn any(message: &Message) -> Result<Value> {
    let (name, value) = only_field(message)?;
    let Some((_, name)) = name.rsplit_once('/') else {
        // The message has the fields `type_url` and `value`. The encoded bytes in `value` are not decoded.
        return Ok(Value::Message(message.text("type_url")?));
    };
    let inner = as_message(value)?;
    match name.strip_prefix(WELL_KNOWN) {
        Some("Duration") => Ok(Value::Duration(span(inner)?)),
        Some("Timestamp") => Ok(Value::Timestamp(span(inner)?)),
        Some("Struct") => json_object(inner),
        Some("ListValue") => json_list(inner),
        Some("Value") => json_value(inner),
        Some(name) if name.ends_with("Value") => wrapped(name, inner),
        _ => Ok(Value::Message(name.to_owned())),
    }
}

/// Returns the value of a wrapper message such as `Int32Value`. Returns zero if the message has no value.
fn wrapped(name: &str, message: &Message) -> Result<Value> {
    let value = message.all("value").last();
    let integer = || value.map_or(Ok(0), textproto::Value::integer);
    Ok(match name {
        "BoolValue" => Value::Bool(message.flag("value")?),
        "BytesValue" => Value::Bytes(value.map_or(Ok(Vec::new()), bytes)?),
        "DoubleValue" | "FloatValue" => {
            Value::Double(value.map_or(Ok(0.0), textproto::Value::double)?)
        }
        "Int32Value" | "Int64Value" => Value::Int(i64::try_from(integer()?)?),
        "StringValue" => Value::String(message.text("value")?),
        "UInt32Value" | "UInt64Value" => Value::Uint(u64::try_from(integer()?)?),
        other => Value::Message(format!("{WELL_KNOWN}{other}")),
    })
}

fn json_value(message: &Message) -> Result<Value> {
    let Some((kind, value)) = message.fields().next() else {
        return Ok(Value::Null);
    };
    match kind {
        "null_value" => Ok(Value::Null),
        "number_value" => Ok(Value::Double(value.double()?)),
        "string_value" => Ok(Value::String(value.text()?)),
        "bool_value" => Ok(Value::Bool(value.flag()?)),
        "struct_value" => json_object(as_message(value)?),
        "list_value" => json_list(as_message(value)?),
        other => bail!("a google.protobuf.Value of the kind `{other}`"),
    }
}

fn json_list(message: &Message) -> Result<Value> {
    let values = message.messages("values")?.into_iter().map(json_value);
    Ok(Value::List(values.collect::<Result<_>>()?))
}

fn json_object(message: &Message) -> Result<Value> {
    let mut entries = Vec::new();
    for field in message.messages("fields")? {
        let value = field
            .message("value")?
            .map_or(Ok(Value::Null), json_value)?;
        entries.push((Value::String(field.text("key")?), value));
    }
    Ok(Value::Map(entries))
}

fn span(message: &Message) -> Result<Span> {
    let number = |name: &str| match message.all(name).last() {
        None => Ok(0),
        Some(value) => value.integer(),
    };
    Ok(Span {
        seconds: i64::try_from(number("seconds")?)?,
        nanos: i32::try_from(number("nanos")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> Value {
        Value::read(&Message::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn conformance_values_of_all_kinds_are_read() {
        assert_eq!(read("null_value: NULL_VALUE"), Value::Null);
        assert_eq!(
            read("map_value { entries { key { bool_value: true } value { uint64_value: 7 } } }"),
            Value::Map(vec![(Value::Bool(true), Value::Uint(7))])
        );
        let time = "object_value { [type.googleapis.com/google.protobuf.Timestamp] { seconds: -5 nanos: 3 } }";
        let span = Span {
            seconds: -5,
            nanos: 3,
        };
        assert_eq!(read(time), Value::Timestamp(span));
        let wrapped = "object_value { [type.googleapis.com/google.protobuf.UInt32Value] {} }";
        assert_eq!(read(wrapped), Value::Uint(0));
        let json = "object_value { [type.googleapis.com/google.protobuf.Struct] {
            fields { key: 'a' value { list_value { values { number_value: 1 } values {} } } } } }";
        let list = Value::List(vec![Value::Double(1.0), Value::Null]);
        let entries = vec![(Value::String("a".into()), list)];
        assert_eq!(read(json), Value::Map(entries));
        let message = "object_value { [type.googleapis.com/a.B] { } }";
        assert_eq!(read(message), Value::Message("a.B".into()));
    }

    #[test]
    fn conformance_value_has_only_matching_types() {
        let list = read("list_value { values { int64_value: 1 } values { null_value: 0 } }");
        assert!(list.is_of(&Type::list(Type::Dyn)));
        assert!(!list.is_of(&Type::list(Type::Int)));
        assert!(!list.is_of(&Type::Int));
    }
}
