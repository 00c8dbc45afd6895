//! Object literals: the well-known protobuf messages, which are values of the language.
//!
//! Source: cel-go `common/types/provider.go`, `Registry.NewValue`; `common/types/pb/type.go`,
//! `unwrap`.

use std::sync::Arc;

use crate::cel::types::{StructType, Type};
use crate::cel::value::{EvalError, Map, Opaque, Timestamp, Value};

/// A message that a literal makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Any,
    Duration,
    Timestamp,
    Empty,
    Struct,
    StructEntry,
    Value,
    List,
    Bool,
    Bytes,
    Double,
    Int,
    String,
    Uint,
}

fn take<'a>(fields: &'a [(&str, Value)], name: &str) -> Option<&'a Value> {
    fields
        .iter()
        .find(|(field, _)| *field == name)
        .map(|(_, value)| value)
}

fn int(fields: &[(&str, Value)], name: &str) -> i64 {
    take(fields, name).and_then(Value::as_int).unwrap_or(0)
}

impl Message {
    pub(super) fn new(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("google.protobuf.")? {
            "Any" => Self::Any,
            "Duration" => Self::Duration,
            "Timestamp" => Self::Timestamp,
            "Empty" => Self::Empty,
            "Struct" => Self::Struct,
            "Struct.FieldsEntry" => Self::StructEntry,
            "Value" => Self::Value,
            "ListValue" => Self::List,
            "BoolValue" => Self::Bool,
            "BytesValue" => Self::Bytes,
            "DoubleValue" | "FloatValue" => Self::Double,
            "Int32Value" | "Int64Value" => Self::Int,
            "StringValue" => Self::String,
            "UInt32Value" | "UInt64Value" => Self::Uint,
            _ => return None,
        })
    }

    /// The value that the message with the fields `fields` is.
    pub(super) fn make(self, fields: &[(&str, Value)]) -> Result<Value, EvalError> {
        let value = |default: Value| match take(fields, "value") {
            None | Some(Value::Null) => default,
            Some(value) => value.clone(),
        };
        Ok(match self {
            Self::Bool => value(Value::Bool(false)),
            Self::Bytes => value(Value::bytes(Vec::new())),
            Self::Double => value(Value::Double(0.0)),
            Self::Int => value(Value::Int(0)),
            Self::String => value(Value::from("")),
            Self::Uint => value(Value::Uint(0)),
            Self::List => take(fields, "values")
                .cloned()
                .unwrap_or_else(|| Value::list([])),
            Self::Struct => take(fields, "fields")
                .cloned()
                .unwrap_or_else(|| Value::Map(Map::default())),
            Self::Value => fields.last().map_or(Value::Null, |(name, value)| {
                if *name == "null_value" {
                    Value::Null
                } else {
                    value.clone()
                }
            }),
            Self::Duration => {
                let nanos = int(fields, "seconds")
                    .checked_mul(1_000_000_000)
                    .and_then(|nanos| nanos.checked_add(int(fields, "nanos")));
                Value::Duration(nanos.ok_or_else(|| EvalError::fixed("duration overflow"))?)
            }
            Self::Timestamp => {
                let nanos = int(fields, "nanos");
                let seconds = int(fields, "seconds").checked_add(nanos.div_euclid(1_000_000_000));
                Value::Timestamp(Timestamp {
                    seconds: seconds.ok_or_else(|| EvalError::fixed("timestamp overflow"))?,
                    nanos: u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
                    offset_seconds: 0,
                })
            }
            Self::Any => {
                return Err(EvalError::fixed("conversion error: got nil or empty Any"));
            }
            Self::Empty => Value::opaque(Plain("google.protobuf.Empty")),
            Self::StructEntry => Value::opaque(Plain("google.protobuf.Struct.FieldsEntry")),
        })
    }
}

/// A message without fields that can be seen.
#[derive(Debug)]
struct Plain(&'static str);

impl Opaque for Plain {
    fn type_(&self) -> Type {
        Type::Struct(StructType::undeclared(Arc::<str>::from(self.0)))
    }

    fn equals(&self, other: &Value) -> Result<bool, EvalError> {
        Ok(other
            .downcast::<Self>()
            .is_some_and(|other| other.0 == self.0))
    }

    fn text(&self) -> Option<String> {
        Some(String::new())
    }

    fn native_type(&self) -> &'static str {
        "proto.Message"
    }

    fn through_native(&self) -> Result<(), EvalError> {
        Ok(())
    }
}
