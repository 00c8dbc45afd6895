//! Ordering of values.

use std::cmp::Ordering;

use super::{EvalError, Value};

/// Returns the `int` that is equal to `value`. `None` if no `int` has this value.
///
/// Source: cel-go `common/types/overflow.go`, `doubleToInt64Lossless`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "a value within the range is converted and compared with the original"
)]
pub(crate) fn double_to_int(value: f64) -> Option<i64> {
    let limit = i64::MAX as f64;
    if !value.is_finite() || value <= -limit || value >= limit {
        return None;
    }
    let converted = value as i64;
    (converted as f64 == value).then_some(converted)
}

/// Returns the `uint` that is equal to `value`. `None` if no `uint` has this value.
///
/// Source: cel-go `common/types/overflow.go`, `doubleToUint64Lossless`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "a value within the range is converted and compared with the original"
)]
pub(crate) fn double_to_uint(value: f64) -> Option<u64> {
    let limit = u64::MAX as f64;
    if !value.is_finite() || value < 0.0 || value >= limit {
        return None;
    }
    let converted = value as u64;
    (converted as f64 == value).then_some(converted)
}

/// Compares a double with an `int`. `None` for NaN.
///
/// Source: cel-go `common/types/compare.go`, `compareDoubleInt`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the int is converted to a double"
)]
pub(super) fn double_to_int_order(left: f64, right: i64) -> Option<Ordering> {
    if left < i64::MIN as f64 {
        return Some(Ordering::Less);
    }
    if left > i64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    left.partial_cmp(&(right as f64))
}

/// Compares a double with a `uint`. `None` for NaN.
///
/// Source: cel-go `common/types/compare.go`, `compareDoubleUint`.
#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the uint is converted to a double"
)]
pub(super) fn double_to_uint_order(left: f64, right: u64) -> Option<Ordering> {
    if left < 0.0 {
        return Some(Ordering::Less);
    }
    if left > u64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    left.partial_cmp(&(right as f64))
}

/// Compares an `int` with a `uint`.
///
/// Source: cel-go `common/types/compare.go`, `compareIntUint`.
pub(super) fn int_to_uint_order(left: i64, right: u64) -> Ordering {
    match u64::try_from(left) {
        Ok(left) => left.cmp(&right),
        Err(_) => Ordering::Less,
    }
}

impl Value {
    /// Compares two values. The type of `self` must support ordering.
    ///
    /// # Errors
    ///
    /// Returns `no such overload` if the types are incomparable, and an error for NaN.
    ///
    /// Source: cel-go `common/types`, `Compare` of each type.
    pub fn compare(&self, other: &Self) -> Result<Ordering, EvalError> {
        const NAN: EvalError = EvalError::fixed("NaN values cannot be ordered");
        match (self, other) {
            (Self::Double(a), _) if a.is_nan() => Err(NAN),
            (Self::Bool(a), Self::Bool(b)) => Ok(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) | (Self::Duration(a), Self::Duration(b)) => Ok(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Ok(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b).ok_or(NAN),
            (Self::Int(a), Self::Uint(b)) => Ok(int_to_uint_order(*a, *b)),
            (Self::Uint(a), Self::Int(b)) => Ok(int_to_uint_order(*b, *a).reverse()),
            (Self::Int(a), Self::Double(b)) => double_to_int_order(*b, *a)
                .map(Ordering::reverse)
                .ok_or(NAN),
            (Self::Double(a), Self::Int(b)) => double_to_int_order(*a, *b).ok_or(NAN),
            (Self::Uint(a), Self::Double(b)) => double_to_uint_order(*b, *a)
                .map(Ordering::reverse)
                .ok_or(NAN),
            (Self::Double(a), Self::Uint(b)) => double_to_uint_order(*a, *b).ok_or(NAN),
            (Self::String(a), Self::String(b)) => Ok(a.as_bytes().cmp(b.as_bytes())),
            (Self::Bytes(a), Self::Bytes(b)) => Ok(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Ok(a.instant().cmp(&b.instant())),
            (Self::Opaque(a), _) => a.compare(other),
            _ => Err(EvalError::no_such_overload()),
        }
    }
}
