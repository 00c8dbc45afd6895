//! Conversions of values to the native types of protobuf fields, with upstream's errors.
//!
//! The result of a conversion is again a [`Value`]. Conversions to JSON represent numbers as
//! doubles, and values of types without a JSON representation as strings.
//!
//! Source: cel-go `common/types`, `ConvertToNative` of each type.

use crate::base64;
use crate::value::civil::{format_rfc3339, format_seconds};
use crate::value::{ALLOCATION, EvalBudget, EvalError, GROWN_ENTRY, Map, Value};

/// Native type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Native {
    Bool,
    /// `[]uint8`.
    Bytes,
    /// An element of [`Native::Bytes`]; no value converts to it.
    Byte,
    Float32,
    Float64,
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    /// The number of an enum value.
    Enum,
    /// Any JSON value.
    Json,
    JsonList,
    JsonObject,
}

/// Largest integer that is converted to a JSON number. Larger integers are converted to strings.
///
/// Source: cel-go `common/types/json_value.go`, `maxIntJSON`.
const MAX_JSON_INT: u64 = (1 << 53) - 1;

impl Native {
    /// Returns Go's name of the type.
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Bytes => "[]uint8",
            Self::Byte => "uint8",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::String => "string",
            Self::Enum => "protoreflect.EnumNumber",
            Self::Json => "*structpb.Value",
            Self::JsonList => "*structpb.ListValue",
            Self::JsonObject => "*structpb.Struct",
        }
    }

    /// Converts `value` for an assignment to a field of this type.
    pub(super) fn convert(self, value: &Value, budget: &EvalBudget) -> Result<Value, EvalError> {
        match value {
            Value::Null => self.convert_null(),
            Value::Bool(_) => self.convert_bool(value),
            Value::Int(number) => self.convert_int(*number),
            Value::Uint(number) => self.convert_uint(*number),
            Value::Double(number) => self.convert_double(*number),
            Value::String(_) => self.convert_string(value),
            Value::Bytes(bytes) => {
                if self == Self::Json {
                    // Base64 encodes three bytes as four characters.
                    budget.allocate(bytes.len().saturating_mul(2))?;
                    budget.reserve(bytes.len().saturating_mul(2))?;
                }
                self.convert_bytes(value, bytes)
            }
            Value::Duration(nanos) if self == Self::Json => Ok(format_seconds(*nanos).into()),
            Value::Duration(_) => Err(self.no_conversion("'Duration'")),
            Value::Timestamp(at) if self == Self::Json => Ok(format_rfc3339(*at).into()),
            Value::Timestamp(_) => Err(self.no_conversion("'Timestamp'")),
            Value::List(list) => {
                if let Some(error) = list
                    .source()
                    .and_then(|source| source.native_error(self.name()))
                {
                    return Err(error);
                }
                let n_bytes = list.len().saturating_mul(size_of::<Value>());
                budget.allocate(n_bytes.saturating_add(ALLOCATION))?;
                self.convert_list(list.iter(), budget)
            }
            Value::Map(map) => {
                match map
                    .source()
                    .and_then(|source| source.native_error(self.name()))
                {
                    Some(error) => Err(error),
                    None => self.convert_map(map, budget),
                }
            }
            Value::Type(_) => Err(EvalError::fixed("type conversion not supported for 'type'")),
            Value::Optional(optional) => match optional.get() {
                Some(held) => self.convert(held, budget),
                None => Err(EvalError::fixed("optional.none() dereference")),
            },
            Value::Opaque(opaque) => match opaque.text() {
                Some(text) if self == Self::String => Ok(text.into()),
                _ => {
                    let name = opaque.type_().type_name();
                    let (_, name) = name.rsplit_once('.').unwrap_or(("", &name));
                    Err(self.no_conversion(&format!("'{name}'")))
                }
            },
            Value::Error(error) => Err(error.clone()),
        }
    }

    /// Returns the error for an unsupported conversion. Some source types have a different error. `from` is the
    /// source type as shown in the message.
    fn no_conversion(self, from: &str) -> EvalError {
        EvalError::new(format!(
            "type conversion error from {from} to '{}'",
            self.name()
        ))
    }

    /// Returns the error for an unsupported conversion of an integer. `from` is the source type as shown in the
    /// message.
    fn unsupported(self, from: &str) -> EvalError {
        EvalError::new(format!(
            "unsupported type conversion from '{from}' to {}",
            self.name()
        ))
    }

    fn convert_null(self) -> Result<Value, EvalError> {
        match self {
            Self::Json => Ok(Value::Null),
            _ => Err(self.no_conversion("'null_type'")),
        }
    }

    fn convert_bool(self, value: &Value) -> Result<Value, EvalError> {
        match self {
            Self::Bool | Self::Json => Ok(value.clone()),
            _ => Err(self.no_conversion("bool")),
        }
    }

    fn convert_int(self, number: i64) -> Result<Value, EvalError> {
        match self {
            Self::Int32 | Self::Enum if i32::try_from(number).is_err() => {
                Err(EvalError::fixed("integer overflow"))
            }
            Self::Int32 | Self::Int64 | Self::Enum => Ok(Value::Int(number)),
            Self::Json => Ok(json_number(
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "all numbers converted here are exact"
                )]
                {
                    number as f64
                },
                number.unsigned_abs(),
                || number.to_string(),
            )),
            _ => Err(self.unsupported("int")),
        }
    }

    fn convert_uint(self, number: u64) -> Result<Value, EvalError> {
        match self {
            Self::Uint32 if u32::try_from(number).is_err() => {
                Err(EvalError::fixed("unsigned integer overflow"))
            }
            Self::Uint32 | Self::Uint64 => Ok(Value::Uint(number)),
            Self::Json => Ok(json_number(
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "the result is only used if it is exact"
                )]
                {
                    number as f64
                },
                number,
                || number.to_string(),
            )),
            _ => Err(self.unsupported("uint")),
        }
    }

    fn convert_double(self, number: f64) -> Result<Value, EvalError> {
        match self {
            Self::Float64 | Self::Json => Ok(Value::Double(number)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the field has this precision"
            )]
            Self::Float32 => Ok(Value::Double(f64::from(number as f32))),
            _ => Err(self.no_conversion("Double")),
        }
    }

    fn convert_string(self, value: &Value) -> Result<Value, EvalError> {
        match self {
            Self::String | Self::Json => Ok(value.clone()),
            _ => Err(EvalError::new(format!(
                "unsupported native conversion from string to '{}'",
                self.name()
            ))),
        }
    }

    fn convert_bytes(self, value: &Value, bytes: &[u8]) -> Result<Value, EvalError> {
        match self {
            Self::Bytes => Ok(value.clone()),
            Self::Json => Ok(base64::encode(bytes).into()),
            _ => Err(self.no_conversion("Bytes")),
        }
    }

    fn convert_list(
        self,
        elements: impl Iterator<Item = Value>,
        budget: &EvalBudget,
    ) -> Result<Value, EvalError> {
        let elem = match self {
            Self::Json | Self::JsonList => Self::Json,
            Self::Bytes => Self::Byte,
            _ => return Err(self.no_conversion("list")),
        };
        let elements = elements.map(|element| elem.convert(&element, budget));
        let elements = elements.collect::<Result<Vec<_>, _>>()?;
        if self == Self::Bytes {
            // Only an empty list reaches this point, because no value converts to a byte.
            return Ok(Value::bytes(Vec::new()));
        }
        Ok(Value::list(elements))
    }

    fn convert_map(self, map: &Map, budget: &EvalBudget) -> Result<Value, EvalError> {
        match self {
            Self::Json | Self::JsonObject => json_object(map, budget),
            Self::JsonList => match map.keys()?.first() {
                // Upstream interprets the map keys as field names of the message.
                Some(key) => Err(EvalError::new(format!(
                    "type conversion error, no such field '{}' in type 'structpb.ListValue'",
                    upper_camel_case(&key.to_go_string())
                ))),
                None => Ok(Value::list([])),
            },
            _ => Err(self.no_conversion("map")),
        }
    }
}

pub(super) fn json_object(map: &Map, budget: &EvalBudget) -> Result<Value, EvalError> {
    budget.allocate(
        map.len()
            .saturating_mul(GROWN_ENTRY)
            .saturating_add(ALLOCATION),
    )?;
    let entries = map.entries()?.into_iter().map(|(key, value)| {
        let key = Native::String.convert(&key, budget)?;
        Ok((key, Native::Json.convert(&value, budget)?))
    });
    Value::map(entries.collect::<Result<Vec<_>, EvalError>>()?)
}

fn json_number(number: f64, magnitude: u64, text: impl Fn() -> String) -> Value {
    if magnitude <= MAX_JSON_INT {
        Value::Double(number)
    } else {
        text().into()
    }
}

/// Source: github.com/stoewer/go-strcase `camel.go`, `UpperCamelCase`, for names of one word.
fn upper_camel_case(name: &str) -> String {
    let mut chars = name.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_base64() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"a", "YQ=="),
            (b"ab", "YWI="),
            (b"abc", "YWJj"),
            (b"\xff\xfe\xfd\xfc", "//79/A=="),
        ] {
            assert_eq!(base64::encode(bytes), text);
        }
    }

    #[test]
    fn native_conversion_of_value_out_of_range_fails() {
        let error = |native: Native, value: Value| {
            native
                .convert(&value, &EvalBudget::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(Native::Int32, Value::Int(1 << 31)),
            "integer overflow"
        );
        assert_eq!(
            error(Native::Float32, Value::from("a")),
            "unsupported native conversion from string to 'float32'"
        );
        assert_eq!(
            error(Native::Bytes, Value::list([Value::Int(1)])),
            "unsupported type conversion from 'int' to uint8"
        );
    }
}
