//! Type conversions.
//!
//! Source: cel-go `common/types`, `ConvertToType` of each type.

use std::sync::Arc;

use super::civil;
use super::{EvalError, Timestamp, Value, go};
use crate::temporal::{self, TimestampError, is_unix_seconds};
use crate::types::Type;

const INT_OVERFLOW: EvalError = EvalError::fixed("integer overflow");
const UINT_OVERFLOW: EvalError = EvalError::fixed("unsigned integer overflow");
const TIMESTAMP_OVERFLOW: EvalError = EvalError::fixed("timestamp overflow");

impl Value {
    /// Converts the value to the type `to`.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversion does not exist, or if the value is out of range.
    pub fn convert_to(&self, to: &Type) -> Result<Self, EvalError> {
        if matches!(to, Type::Type(_)) {
            return Ok(Self::Type(Arc::new(self.type_())));
        }
        let failed = || EvalError::conversion(&self.type_(), to);
        match (self, to) {
            (Self::Int(value), _) => int_to(*value, to).unwrap_or_else(|| Err(failed())),
            (Self::Uint(value), _) => uint_to(*value, to).unwrap_or_else(|| Err(failed())),
            (Self::Double(value), _) => double_to(*value, to).unwrap_or_else(|| Err(failed())),
            (Self::String(text), _) => string_to(text, to).unwrap_or_else(|| Err(failed())),
            (Self::Bool(value), Type::String) => Ok(Self::from(value.to_string())),
            (Self::Bytes(bytes), Type::String) => std::str::from_utf8(bytes)
                .map(Self::from)
                .map_err(|_| EvalError::fixed("invalid UTF-8 in bytes, cannot convert to string")),
            (Self::Duration(nanos), Type::String) => Ok(Self::from(civil::format_seconds(*nanos))),
            (Self::Duration(nanos), Type::Int) => Ok(Self::Int(*nanos)),
            (Self::Timestamp(at), Type::String) => Ok(Self::from(civil::format_rfc3339(*at))),
            (Self::Timestamp(at), Type::Int) => Ok(Self::Int(at.seconds)),
            (Self::Null, Type::String) => Ok(Self::from("null")),
            (Self::Type(of), Type::String) => Ok(Self::from(of.type_name())),
            (Self::Opaque(opaque), _) => opaque.convert_to(to),
            (Self::Bool(_), Type::Bool)
            | (Self::Bytes(_), Type::Bytes)
            | (Self::Duration(_), Type::Duration)
            | (Self::Timestamp(_), Type::Timestamp)
            | (Self::Null, Type::Null)
            | (Self::List(_), Type::List(_))
            | (Self::Map(_), Type::Map(_)) => Ok(self.clone()),
            _ => Err(failed()),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the conversion to double may lose precision"
)]
fn int_to(value: i64, to: &Type) -> Option<Result<Value, EvalError>> {
    Some(match to {
        Type::Int => Ok(Value::Int(value)),
        Type::Uint => u64::try_from(value)
            .map(Value::Uint)
            .map_err(|_| UINT_OVERFLOW),
        Type::Double => Ok(Value::Double(value as f64)),
        Type::String => Ok(Value::from(value.to_string())),
        Type::Timestamp if is_unix_seconds(value) => Ok(Value::Timestamp(Timestamp {
            seconds: value,
            nanos: 0,
            offset_seconds: 0,
        })),
        Type::Timestamp => Err(TIMESTAMP_OVERFLOW),
        _ => return None,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the conversion to double may lose precision"
)]
fn uint_to(value: u64, to: &Type) -> Option<Result<Value, EvalError>> {
    Some(match to {
        Type::Int => i64::try_from(value)
            .map(Value::Int)
            .map_err(|_| INT_OVERFLOW),
        Type::Uint => Ok(Value::Uint(value)),
        Type::Double => Ok(Value::Double(value as f64)),
        Type::String => Ok(Value::from(value.to_string())),
        _ => return None,
    })
}

/// Source: cel-go `common/types/overflow.go`, `doubleToInt64Checked`, `doubleToUint64Checked`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "values out of range are rejected first"
)]
fn double_to(value: f64, to: &Type) -> Option<Result<Value, EvalError>> {
    let is_int = value > i64::MIN as f64 && value < i64::MAX as f64;
    let is_uint = value >= 0.0 && value < u64::MAX as f64;
    Some(match to {
        Type::Int if is_int => Ok(Value::Int(value as i64)),
        Type::Int => Err(INT_OVERFLOW),
        Type::Uint if is_uint => Ok(Value::Uint(value as u64)),
        Type::Uint => Err(UINT_OVERFLOW),
        Type::Double => Ok(Value::Double(value)),
        Type::String => Ok(Value::from(go::format_double(value))),
        _ => return None,
    })
}

fn string_to(text: &Arc<str>, to: &Type) -> Option<Result<Value, EvalError>> {
    Some(match to {
        Type::Int => Ok(Value::Int(text.parse().ok()?)),
        // Rust accepts a plus sign here, but Go does not.
        Type::Uint if !text.starts_with('+') => Ok(Value::Uint(text.parse().ok()?)),
        Type::Double => Ok(Value::Double(parse_double(text)?)),
        Type::Bool => Ok(Value::Bool(match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            _ => return None,
        })),
        Type::Bytes => Ok(Value::bytes(text.as_bytes())),
        Type::Duration => Ok(Value::Duration(temporal::parse_duration(text)?)),
        Type::Timestamp => match temporal::parse_timestamp(text) {
            Ok(at) => Ok(Value::Timestamp(Timestamp {
                seconds: at.seconds,
                nanos: at.nanos,
                offset_seconds: at.offset_seconds,
            })),
            Err(TimestampError::OutOfRange) => Err(TIMESTAMP_OVERFLOW),
            Err(TimestampError::Malformed) => return None,
        },
        Type::String => Ok(Value::String(Arc::clone(text))),
        _ => return None,
    })
}

/// Parses a double as Go does: decimal or hexadecimal, with underscores between digits.
///
/// Source: Go `strconv/atof.go`, `ParseFloat`, `special`, `readFloat`, `underscoreOK`.
#[must_use]
pub fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_hex = unsigned.len() > 2 && unsigned.is_char_boundary(2) && {
        let (prefix, _) = unsigned.split_at(2);
        prefix.eq_ignore_ascii_case("0x")
    };
    if unsigned.eq_ignore_ascii_case("nan") {
        return (unsigned.len() == text.len()).then_some(f64::NAN);
    }
    if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        return text.parse().ok();
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let plain;
    let digits = if text.contains('_') {
        if !underscores_part_digits(unsigned, is_hex) {
            return None;
        }
        plain = text.replace('_', "");
        &plain
    } else {
        text
    };
    let value: f64 = if is_hex {
        parse_hex_double(digits)?
    } else {
        digits.parse().ok()?
    };
    value.is_finite().then_some(value)
}

fn underscores_part_digits(unsigned: &str, is_hex: bool) -> bool {
    let mut saw = if is_hex { '0' } else { '^' };
    for c in unsigned.chars().skip(if is_hex { 2 } else { 0 }) {
        let is_digit = c.is_ascii_digit() || is_hex && c.is_ascii_hexdigit();
        match (is_digit, c) {
            (true, _) => saw = '0',
            (false, '_') if saw == '0' => saw = '_',
            (false, '_') => return false,
            (false, _) if saw == '_' => return false,
            (false, _) => saw = '!',
        }
    }
    saw != '_'
}

/// Parses a hexadecimal number with a binary exponent, rounding to nearest, ties to even.
fn parse_hex_double(text: &str) -> Option<f64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest
        .strip_prefix("0x")
        .or_else(|| rest.strip_prefix("0X"))?;
    let (digits, exponent) = rest.split_once(['p', 'P'])?;
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if exponent_digits.is_empty() || !exponent_digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // An exponent that overflows `i64` is far out of the range of doubles.
    let mut exponent: i64 = exponent.parse().unwrap_or(if exponent.starts_with('-') {
        -1_000_000
    } else {
        1_000_000
    });
    exponent = exponent.clamp(-1_000_000, 1_000_000);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut sticky) = (0_u64, false);
    let fraction_digits = fraction.chars().map(|c| (c, true));
    for (c, is_fraction) in whole.chars().map(|c| (c, false)).chain(fraction_digits) {
        let digit = u64::from(c.to_digit(16)?);
        if mantissa >> 59 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if is_fraction { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            exponent += if is_fraction { 0 } else { 4 };
        }
    }
    let value = scale(mantissa, sticky, exponent)?;
    Some(if negative { -value } else { value })
}

/// Computes `mantissa` times two to the power of `exponent`. `None` on overflow.
fn scale(mut mantissa: u64, mut sticky: bool, mut exponent: i64) -> Option<f64> {
    if mantissa == 0 {
        return Some(0.0);
    }
    let shift = i64::from(mantissa.leading_zeros());
    mantissa <<= shift;
    exponent -= shift;
    // The value is mantissa / 2^63 * 2^(exponent + 63).
    let binary = exponent + 63;
    if binary > 1023 {
        return None;
    }
    let n_bits = if binary >= -1022 {
        53
    } else {
        53 - (-1022 - binary)
    };
    if n_bits < 0 {
        return Some(0.0);
    }
    let dropped = u32::try_from(64 - n_bits).ok()?;
    let kept = mantissa.checked_shr(dropped).unwrap_or(0);
    let half = 1_u64 << (dropped - 1);
    let rest = mantissa & (half - 1);
    sticky |= rest != 0;
    let round_up = mantissa & half != 0 && (sticky || kept & 1 == 1);
    let rounded = kept + u64::from(round_up);
    // The bit patterns of doubles are consecutive across exponents, so a carry from rounding is correct.
    let bits = if binary >= -1022 {
        u64::try_from(binary + 1022).ok()? << 52
    } else {
        0
    };
    let value = f64::from_bits(bits + rounded);
    value.is_finite().then_some(value)
}
