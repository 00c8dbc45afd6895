//! Object literals of well-known protobuf messages, which evaluate to values of the language.
//!
//! Source: cel-go `common/types/provider.go`, `Registry.NewValue`; `common/types/pb/type.go`,
//! `unwrap`.

use std::fmt::Write as _;
use std::sync::Arc;

use super::native::{Native, json_object};
use crate::types::{OPTIONAL_TYPE, StructType, Type};
use crate::value::{EvalBudget, EvalError, Map, Opaque, Timestamp, Value};

/// A message type that a literal can construct.
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
    /// A wrapper message, by its name and the type of its value.
    Wrapper(&'static str, Native),
}

const WRAPPERS: [(&str, Native); 9] = [
    ("google.protobuf.BoolValue", Native::Bool),
    ("google.protobuf.BytesValue", Native::Bytes),
    ("google.protobuf.DoubleValue", Native::Float64),
    ("google.protobuf.FloatValue", Native::Float32),
    ("google.protobuf.Int32Value", Native::Int32),
    ("google.protobuf.Int64Value", Native::Int64),
    ("google.protobuf.StringValue", Native::String),
    ("google.protobuf.UInt32Value", Native::Uint32),
    ("google.protobuf.UInt64Value", Native::Uint64),
];

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The fields of a literal, in their order in the source. The names are distinct.
struct Fields<'a> {
    message: &'static str,
    values: &'a [(&'a str, Value)],
    budget: &'a EvalBudget,
}

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        let mut fields = self.values.iter();
        fields
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    }

    /// Source: cel-go `common/types/provider.go`, `fieldTypeConversionError`.
    fn conversion_error(&self, field: &str, error: &EvalError) -> EvalError {
        if error.ends_evaluation() {
            return error.clone();
        }
        EvalError::new(format!(
            "field type conversion error for {}.{field} value type: {}",
            self.message,
            error.message()
        ))
    }

    /// Source: cel-go `common/types/provider.go`, `unsupportedTypeConversionError`.
    fn unsupported(&self, field: &str, value: &Value) -> EvalError {
        let type_ = match value {
            Value::Optional(_) => OPTIONAL_TYPE.to_owned(),
            other => other.type_().declared_string(),
        };
        let message = self.message;
        EvalError::new(format!(
            "unsupported field type for {message}.{field}: {type_}"
        ))
    }

    fn convert(&self, field: &str, value: &Value, native: Native) -> Result<Value, EvalError> {
        native
            .convert(value, self.budget)
            .map_err(|error| self.conversion_error(field, &error))
    }

    fn int(&self, name: &str, native: Native) -> Result<i64, EvalError> {
        match self.get(name) {
            None => Ok(0),
            Some(value) => Ok(self.convert(name, value, native)?.as_int().unwrap_or(0)),
        }
    }
}

impl Message {
    pub(super) fn new(name: &str) -> Option<Self> {
        let wrapper = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name);
        if let Some((name, native)) = wrapper {
            return Some(Self::Wrapper(name, *native));
        }
        Some(match name.strip_prefix("google.protobuf.")? {
            "Any" => Self::Any,
            "Duration" => Self::Duration,
            "Timestamp" => Self::Timestamp,
            "Empty" => Self::Empty,
            "Struct" => Self::Struct,
            "Struct.FieldsEntry" => Self::StructEntry,
            "Value" => Self::Value,
            "ListValue" => Self::List,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "google.protobuf.Any",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Empty => "google.protobuf.Empty",
            Self::Struct => "google.protobuf.Struct",
            Self::StructEntry => "google.protobuf.Struct.FieldsEntry",
            Self::Value => "google.protobuf.Value",
            Self::List => "google.protobuf.ListValue",
            Self::Wrapper(name, _) => name,
        }
    }

    /// Converts the message with the given fields to a value.
    pub(super) fn make(
        self,
        fields: &[(&str, Value)],
        budget: &EvalBudget,
    ) -> Result<Value, EvalError> {
        let fields = Fields {
            message: self.name(),
            values: fields,
            budget,
        };
        match self {
            Self::Wrapper(_, native) => match fields.get("value") {
                None => Ok(zero(native)),
                Some(value) => fields.convert("value", value, native),
            },
            Self::List => match fields.get("values") {
                None => Ok(Value::list([])),
                // Upstream converts the elements one by one.
                Some(Value::List(list)) if list.source().is_some() => {
                    let values = Value::list(list.iter().collect::<Vec<_>>());
                    fields.convert("values", &values, Native::JsonList)
                }
                Some(values @ Value::List(_)) => fields.convert("values", values, Native::JsonList),
                Some(other) => Err(fields.unsupported("values", other)),
            },
            Self::Struct => match fields.get("fields") {
                None => Ok(Value::Map(Map::default())),
                Some(Value::Map(map)) => json_object(map, budget)
                    .map_err(|error| fields.conversion_error("fields", &error)),
                Some(other) => Err(fields.unsupported("fields", other)),
            },
            Self::Value => {
                // The fields belong to a oneof: if the literal sets several of them, the last one wins.
                let mut json = Value::Null;
                for (name, value) in fields.values {
                    json = fields.convert(name, value, json_kind(name))?;
                    if *name == "null_value" {
                        json = Value::Null;
                    }
                }
                Ok(json)
            }
            Self::Duration => {
                let seconds = fields.int("seconds", Native::Int64)?;
                let nanos = fields.int("nanos", Native::Int32)?;
                Ok(Value::Duration(saturated_nanos(seconds, nanos)))
            }
            Self::Timestamp => {
                let seconds = fields.int("seconds", Native::Int64)?;
                let nanos = fields.int("nanos", Native::Int32)?;
                let whole = nanos.div_euclid(NANOS_PER_SECOND);
                let rest = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND));
                let seconds = seconds.checked_add(whole);
                Ok(Value::Timestamp(Timestamp {
                    seconds: seconds.ok_or_else(|| EvalError::fixed("timestamp overflow"))?,
                    nanos: rest.unwrap_or(0),
                    offset_seconds: 0,
                }))
            }
            Self::Any => Err(any_error(&fields)?),
            Self::Empty => Ok(Value::opaque(Plain("google.protobuf.Empty"))),
            Self::StructEntry => Ok(Value::opaque(Plain("google.protobuf.Struct.FieldsEntry"))),
        }
    }
}

/// Returns the value of a wrapper whose field is unset.
fn zero(native: Native) -> Value {
    match native {
        Native::Bool => Value::Bool(false),
        Native::Bytes | Native::Byte => Value::bytes(Vec::new()),
        Native::Float32 | Native::Float64 => Value::Double(0.0),
        Native::Int32 | Native::Int64 | Native::Enum => Value::Int(0),
        Native::String => Value::from(""),
        Native::Uint32 | Native::Uint64 => Value::Uint(0),
        Native::Json | Native::JsonList | Native::JsonObject => Value::Null,
    }
}

/// Returns the type of a field of `google.protobuf.Value`.
fn json_kind(field: &str) -> Native {
    match field {
        "bool_value" => Native::Bool,
        "list_value" => Native::JsonList,
        "null_value" => Native::Enum,
        "number_value" => Native::Float64,
        "string_value" => Native::String,
        _ => Native::JsonObject,
    }
}

/// Returns a duration in nanoseconds, saturated at the bounds of `i64`.
///
/// Source: google.golang.org/protobuf `types/known/durationpb`, `Duration.AsDuration`.
fn saturated_nanos(seconds: i64, nanos: i64) -> i64 {
    let all = i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nanos);
    i64::try_from(all).unwrap_or(if seconds < 0 { i64::MIN } else { i64::MAX })
}

/// Returns the error for a literal of the type `Any`. No environment of the API server can decode
/// the contents of an `Any`.
///
/// Source: cel-go `common/types/provider.go`, `Registry.NativeToValue`.
fn any_error(fields: &Fields<'_>) -> Result<EvalError, EvalError> {
    let mut text = String::from("unsupported conversion to ref.Val: (*dynamicpb.Message)");
    for (name, native) in [("type_url", Native::String), ("value", Native::Bytes)] {
        let Some(value) = fields.get(name) else {
            continue;
        };
        let shown = match fields.convert(name, value, native)? {
            Value::String(url) => url.to_string(),
            Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => continue,
        };
        if shown.is_empty() {
            continue;
        }
        // Escaping a character produces at most ten characters.
        fields.budget.reserve(shown.len().saturating_mul(10))?;
        if text.ends_with('"') {
            text.push(' ');
        }
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{name}:{shown:?}");
    }
    Ok(EvalError::new(text))
}

/// A message that is printed without fields.
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

    fn through_native(&self, _budget: &EvalBudget) -> Result<Option<Value>, EvalError> {
        Ok(None)
    }
}
