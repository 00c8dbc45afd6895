//! The number of a quantity as a scaled 64-bit integer ([`ScaledInt`]), and the canonical forms of numbers.
//!
//! If a number does not fit into a 64-bit integer times a power of ten, it is a [`Decimal`]. Expressions can observe
//! the difference: for a [`Decimal`], `isInteger` returns false and `asInteger` fails.
//!
//! Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `math.go`.

use std::cmp::Ordering;

use super::decimal::{Decimal, TooLong};

/// An integer times a power of ten.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `int64Amount`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScaledInt {
    pub(super) value: i64,
    pub(super) scale: i32,
}

impl ScaledInt {
    pub(super) fn to_decimal(self) -> Decimal {
        Decimal::new(self.value, self.scale.wrapping_neg())
    }

    /// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `int64Amount.AsInt64`.
    pub(super) fn to_int(self) -> Option<i64> {
        match self.scale {
            ..0 => None,
            scale => times_power_of_ten(self.value, scale),
        }
    }

    /// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `int64Amount.Cmp`.
    pub(super) fn compare(self, other: Self) -> Result<Ordering, TooLong> {
        let by_value = || self.to_decimal().compare(&other.to_decimal());
        let Some(difference) = self.scale.checked_sub(other.scale) else {
            return by_value();
        };
        Ok(match difference.cmp(&0) {
            Ordering::Equal => self.value.cmp(&other.value),
            Ordering::Greater => match divided_by_power_of_ten(other.value, difference) {
                Some((quotient, remainder)) => {
                    self.value.cmp(&quotient).then_with(|| 0.cmp(&remainder))
                }
                None => by_value()?,
            },
            Ordering::Less => match divided_by_power_of_ten(self.value, -difference) {
                Some((quotient, remainder)) => {
                    quotient.cmp(&other.value).then_with(|| remainder.cmp(&0))
                }
                None => by_value()?,
            },
        })
    }

    /// Returns the sum. Returns `None` on overflow.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `int64Amount.Add`.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        if other.value == 0 {
            return Some(self);
        }
        if self.value == 0 {
            return Some(other);
        }
        let scale = self.scale.min(other.scale);
        let at_scale = |part: Self| times_power_of_ten(part.value, part.scale.wrapping_sub(scale));
        let value = at_scale(self)?.checked_add(at_scale(other)?)?;
        Some(Self { value, scale })
    }

    /// Returns the difference. Returns `None` on overflow.
    pub(super) fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self {
            value: other.value.wrapping_neg(),
            ..other
        })
    }

    pub(super) fn is_whole(self) -> bool {
        self.scale >= 0 || rounded_up(self.value, self.scale.unsigned_abs()).1
    }

    /// Returns the canonical form: its digits, and an exponent of ten that is a multiple of three.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `int64Amount.AsCanonicalBytes`.
    pub(super) fn canonical(self) -> (String, i32) {
        let (value, times) = without_factors(self.value, 10);
        let exponent = self.scale.wrapping_add(times);
        let n_zeros = exponent.rem_euclid(3);
        match times_power_of_ten(value, n_zeros) {
            Some(value) => (value.to_string(), exponent.wrapping_sub(n_zeros)),
            None => canonical(self.to_decimal()),
        }
    }

    /// Returns the canonical form with a binary suffix: its digits, and an exponent of the base 1024.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `int64Amount.AsCanonicalBase1024Bytes`.
    pub(super) fn canonical_of_1024(self) -> Result<(String, i32), TooLong> {
        let value = match self.scale {
            ..0 => Some(rounded_up(self.value, self.scale.unsigned_abs()).0),
            scale => times_power_of_ten(self.value, scale),
        };
        match value {
            Some(value) => {
                let (value, times) = without_factors(value, 1024);
                Ok((value.to_string(), times))
            }
            None => canonical_of_1024(&self.to_decimal()),
        }
    }
}

/// Returns the canonical form: its digits, and an exponent of ten that is a multiple of three.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `infDecAmount.AsCanonicalBytes`.
pub(super) fn canonical(number: Decimal) -> (String, i32) {
    let exponent = number.scale().wrapping_neg();
    let (number, times) = number.without_factors_of_10();
    let mut exponent = exponent.wrapping_add(times);
    let mut n_zeros = 0;
    while exponent % 3 != 0 {
        exponent = exponent.wrapping_sub(1);
        n_zeros += 1;
    }
    (number.with_zeros(n_zeros).unscaled_text(), exponent)
}

/// Returns the canonical form with a binary suffix: its digits, and an exponent of the base 1024.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/amount.go`, `infDecAmount.AsCanonicalBase1024Bytes`.
pub(super) fn canonical_of_1024(number: &Decimal) -> Result<(String, i32), TooLong> {
    let (number, times) = number.rounded_up(0)?.without_factors_of_1024();
    Ok((number.unscaled_text(), times))
}

/// Returns `value` times ten to the power of `exponent`. Returns `None` on overflow. `exponent` must not be negative.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/math.go`, `positiveScaleInt64`.
fn times_power_of_ten(value: i64, exponent: i32) -> Option<i64> {
    if value == 0 {
        return Some(0);
    }
    value.checked_mul(10_i64.checked_pow(u32::try_from(exponent).ok()?)?)
}

/// Divides `value` by ten to the power of `exponent`. Returns the quotient and remainder, or `None` if upstream does
/// not support the exponent.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/math.go`, `divideByScaleInt64`.
fn divided_by_power_of_ten(value: i64, exponent: i32) -> Option<(i64, i64)> {
    let divisor = match exponent {
        0..18 => 10_i64.checked_pow(exponent.unsigned_abs())?,
        _ => return None,
    };
    Some((value / divisor, value % divisor))
}

/// Divides `value` by ten to the power of `exponent`, and rounds away from zero. The flag is true if the division is
/// exact.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/math.go`, `negativeScaleInt64`.
fn rounded_up(value: i64, exponent: u32) -> (i64, bool) {
    let Some(divisor) = 10_i64.checked_pow(exponent) else {
        return (value.signum(), value == 0);
    };
    let (quotient, remainder) = (value / divisor, value % divisor);
    (quotient + remainder.signum(), remainder == 0)
}

/// Divides `value` by `base` as long as there is no remainder. Returns the result and the number of divisions.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/math.go`, `removeInt64Factors`.
fn without_factors(mut value: i64, base: i64) -> (i64, i32) {
    let mut times = 0;
    // Upstream negates a negative value first. The minimum integer has no negation, so upstream does not divide it.
    while value != i64::MIN && value.abs() >= base && value % base == 0 {
        value /= base;
        times += 1;
    }
    (value, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn scaled(value: i64, scale: i32) -> ScaledInt {
        ScaledInt { value, scale }
    }

    #[test]
    fn numbers_of_different_scale_are_ordered() {
        for (left, right, expected) in [
            (scaled(1, 0), scaled(1000, -3), Ordering::Equal),
            (scaled(1, 0), scaled(1001, -3), Ordering::Less),
            (scaled(-1, 0), scaled(-1001, -3), Ordering::Greater),
            (scaled(1, 300), scaled(i64::MAX, 0), Ordering::Greater),
            (scaled(0, i32::MAX), scaled(0, -9), Ordering::Equal),
            (scaled(1, i32::MAX), scaled(-1, -9), Ordering::Greater),
        ] {
            assert_eq!(left.compare(right), Ok(expected), "{left:?} {right:?}");
            assert_eq!(right.compare(left), Ok(expected.reverse()));
        }
        assert_eq!(scaled(1, i32::MAX).compare(scaled(1, 0)), Err(TooLong));
    }

    #[test]
    fn sum_and_difference_are_none_on_overflow() {
        assert_eq!(scaled(1, 0).plus(scaled(1, -3)), Some(scaled(1001, -3)));
        assert_eq!(scaled(1, 3).plus(scaled(-1, 0)), Some(scaled(999, 0)));
        assert_eq!(scaled(i64::MAX, 0).plus(scaled(1, 0)), None);
        assert_eq!(scaled(1, 19).plus(scaled(1, 0)), None);
        assert_eq!(scaled(0, 0).minus(scaled(1, 5)), Some(scaled(-1, 5)));
        assert_eq!(
            scaled(5, 0).minus(scaled(i64::MIN, 0)),
            Some(scaled(i64::MIN + 5, 0)),
            "the negation of the minimum integer overflows to itself"
        );
    }

    #[test]
    fn canonical_form_has_digits_and_exponent() {
        let canonical = |number: ScaledInt| number.canonical();
        assert_eq!(canonical(scaled(1500, 0)), ("1500".into(), 0));
        assert_eq!(canonical(scaled(1, 5)), ("100".into(), 3));
        assert_eq!(canonical(scaled(1, -4)), ("100".into(), -6));
        assert_eq!(
            canonical(scaled(i64::MAX, 1)),
            ("92233720368547758070".into(), 0)
        );
        let canonical = |number: ScaledInt| number.canonical_of_1024().unwrap();
        assert_eq!(canonical(scaled(1 << 20, 0)), ("1".into(), 2));
        assert_eq!(canonical(scaled(1025, -1)), ("103".into(), 0));
        assert_eq!(canonical(scaled(1025, -30)), ("1".into(), 0));
    }
}
