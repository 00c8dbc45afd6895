//! Go's text format and type names of values, used in messages.
//!
//! Source: Go `fmt` (`%v`, `%T`) applied to the types of cel-go `common/types`.

use std::fmt::Write as _;

use super::civil;
use super::error::{MAX_MESSAGE, cut};
use super::{MAX_PRINTED_DEPTH, Value};

impl Value {
    /// Formats the value as Go's `%v`.
    ///
    /// Map entries are printed in the order of this implementation; Go's order is random. Output longer than 256 KiB
    /// is truncated.
    #[must_use]
    pub fn to_go_string(&self) -> String {
        let mut text = String::new();
        write_value(&mut text, self, 0);
        if text.len() > MAX_MESSAGE {
            cut(&mut text, MAX_MESSAGE);
        }
        text
    }

    /// Returns the name of the Go type that represents the value, as `%T` prints it.
    #[must_use]
    pub fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            Self::List(list) if list.is_mutable() => "*types.mutableList",
            Self::List(list) if list.is_joined() => "*types.concatList",
            Self::List(list) => list
                .source()
                .map_or("*types.baseList", |source| source.go_type()),
            Self::Map(map) if map.is_mutable() => "*types.mutableMap",
            Self::Map(map) => map
                .source()
                .map_or("*types.baseMap", |source| source.go_type()),
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(opaque) => opaque.go_type(),
            Self::Error(_) => "*types.Err",
        }
    }

    /// Returns the name of the Go type of the wrapped native value, as `%T` prints it.
    ///
    /// Source: cel-go `common/types`, `Value` of each type.
    #[must_use]
    pub fn wrapped_go_type(&self) -> &'static str {
        match self {
            Self::Null => "structpb.NullValue",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Uint(_) => "uint64",
            Self::Double(_) => "float64",
            Self::String(_) | Self::Type(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::Duration(_) => "time.Duration",
            Self::Timestamp(_) => "time.Time",
            Self::List(list) if list.is_json() || list.source().is_some() || list.is_joined() => {
                "[]interface {}"
            }
            Self::List(_) => "[]ref.Val",
            Self::Map(map) if map.as_fields().is_some() || map.source().is_some() => {
                "map[string]interface {}"
            }
            Self::Map(_) => "map[ref.Val]ref.Val",
            Self::Optional(optional) => optional.get().map_or("<nil>", Self::wrapped_go_type),
            Self::Opaque(opaque) => opaque.native_type(),
            Self::Error(_) => "*types.Err",
        }
    }
}

fn write_value(text: &mut String, value: &Value, depth: u32) {
    if depth > MAX_PRINTED_DEPTH {
        text.push_str("...");
        return;
    }
    // The caller truncates longer output, so nothing is added except for the closing brackets of enclosing lists and
    // maps.
    if text.len() > MAX_MESSAGE {
        return;
    }
    let depth = depth.saturating_add(1);
    // Writing to a `String` cannot fail.
    let _ = match value {
        Value::Null => write!(text, "0"),
        Value::Bool(value) => write!(text, "{value}"),
        Value::Int(value) => write!(text, "{value}"),
        Value::Uint(value) => write!(text, "{value}"),
        Value::Double(value) => {
            text.push_str(&format_double(*value));
            Ok(())
        }
        Value::String(value) => {
            text.push_str(start_of(value));
            Ok(())
        }
        Value::Bytes(bytes) => {
            text.push('[');
            for (n, byte) in bytes.iter().enumerate() {
                if text.len() > MAX_MESSAGE {
                    break;
                }
                let space = if n > 0 { " " } else { "" };
                let _ = write!(text, "{space}{byte}");
            }
            text.push(']');
            Ok(())
        }
        Value::Duration(nanos) => write!(text, "{}", civil::format_go_duration(*nanos)),
        Value::Timestamp(at) => write!(text, "{}", civil::format_go_time(*at)),
        Value::List(list) => {
            text.push('[');
            for (n, element) in list.iter().enumerate() {
                if text.len() > MAX_MESSAGE {
                    break;
                }
                if n > 0 {
                    text.push_str(", ");
                }
                write_value(text, &element, depth);
            }
            text.push(']');
            Ok(())
        }
        Value::Map(map) => {
            text.push('{');
            for (n, (key, value)) in map.entries().unwrap_or_default().into_iter().enumerate() {
                if text.len() > MAX_MESSAGE {
                    break;
                }
                if n > 0 {
                    text.push_str(", ");
                }
                write_value(text, &key, depth);
                text.push_str(": ");
                write_value(text, &value, depth);
            }
            text.push('}');
            Ok(())
        }
        Value::Type(of) => write!(text, "{}", of.declared_string()),
        Value::Optional(optional) => {
            match optional.get() {
                None => text.push_str("optional.none()"),
                Some(held) => {
                    text.push_str("optional(");
                    write_value(text, held, depth);
                    text.push(')');
                }
            }
            Ok(())
        }
        Value::Opaque(opaque) => write!(text, "{}", opaque.text().unwrap_or_default()),
        Value::Error(error) => write!(text, "{error}"),
    };
}

/// Returns the start of a string. The start of a long string is longer than a message may be, so the caller truncates
/// the message.
fn start_of(text: &str) -> &str {
    let mut end = MAX_MESSAGE.saturating_add(1);
    while end < text.len() && !text.is_char_boundary(end) {
        end = end.saturating_add(1);
    }
    text.get(..end).unwrap_or(text)
}

/// Formats a double like Go's `%g` and `%v`: the shortest digits that round-trip, in scientific notation if the
/// exponent is less than -4 or at least 6.
///
/// Source: Go `strconv/ftoa.go`, `formatDigits` for `'g'` and the shortest precision.
#[must_use]
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.into();
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Quotes a string as Go's `%q`.
#[must_use]
pub fn go_quote(text: &str) -> String {
    crate::go_text::quote(text)
}
