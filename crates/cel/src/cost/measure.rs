//! Arithmetic of measured costs.
//!
//! Products are computed as doubles, as in cel-go, so that the results are equal.
//!
//! Source: cel-go `interpreter/runtimecost.go`.

use super::factors::STRING_TRAVERSAL_COST_FACTOR;
use crate::value::Value;

/// Rounds the non-negative `number` up to an integer.
///
/// Avoids `f64::ceil`, which calls into the system library.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the truncated part is handled below"
)]
#[inline]
#[must_use]
pub fn round_up(number: f64) -> u64 {
    let whole = number as u64;
    if (whole as f64) < number {
        whole.saturating_add(1)
    } else {
        whole
    }
}

/// Returns `size` times `factor`, rounded up.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the product is computed as a double"
)]
#[inline]
pub fn scaled_up(size: u64, factor: f64) -> u64 {
    round_up(size as f64 * factor)
}

/// Returns `size` times `factor`, rounded toward zero. A negative result wraps around.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as in upstream, the product is computed as a double"
)]
pub fn scaled(size: u64, factor: f64) -> u64 {
    let product = size as f64 * factor;
    if product < 0.0 {
        (product as i64).cast_unsigned()
    } else {
        product as u64
    }
}

/// Returns the cost of traversing a string or list of the given size.
#[must_use]
#[inline]
pub fn string_traversal_cost(size: u64) -> u64 {
    scaled_up(size, STRING_TRAVERSAL_COST_FACTOR)
}

/// Returns the cost of matching a string of size `text` with a regular expression of size `pattern`.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "as in upstream, the product is computed as a double"
)]
pub fn matching_cost(text: u64, pattern: u64) -> u64 {
    use super::factors::REGEX_STRING_LENGTH_COST_FACTOR;
    // Adds 1, as in upstream, so that matching an empty string is not free.
    let text = round_up((1.0 + text as f64) * STRING_TRAVERSAL_COST_FACTOR);
    text.wrapping_mul(scaled_up(pattern, REGEX_STRING_LENGTH_COST_FACTOR))
}

/// Returns the size of a value, or 1 if the value has no size.
///
/// Source: cel-go `ext/sets.go`, `actualSize`.
#[must_use]
pub fn size_of(value: &Value) -> u64 {
    value
        .size()
        .map_or(1, |size| u64::try_from(size).unwrap_or(u64::MAX))
}

/// Returns the size of the argument with index `n`.
#[must_use]
pub fn size_at(args: &[Value], n: usize) -> u64 {
    args.get(n).map_or(1, size_of)
}
