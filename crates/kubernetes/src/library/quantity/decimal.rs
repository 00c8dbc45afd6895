//! Decimal numbers of arbitrary length, for quantities that do not fit into 64 bits.
//!
//! Upstream does not limit the length, so a short input can cause hours of computation. Here, a number with more than
//! [`MAX_DIGITS`] digits is an error.
//!
//! Source: gopkg.in/inf.v0 `dec.go` (`Dec`), `rounder.go` (`RoundUp`).

use std::cmp::Ordering;

/// The maximum number of digits of a number.
///
/// Differs: upstream has no limit.
pub(super) const MAX_DIGITS: usize = 10_000;

/// The error for a number with more than [`MAX_DIGITS`] digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// A decimal number: an integer (the unscaled value) divided by ten to the power of `scale`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// The decimal digits of the unscaled value, each from 0 to 9, most significant digit first. The first digit is not
    /// zero.
    digits: Vec<u8>,
    /// The number of digits after the decimal point. A negative scale adds zeros at the end.
    scale: i32,
}

impl Decimal {
    /// Returns the number of stored digits. Each digit takes one byte.
    pub(super) fn n_digits(&self) -> usize {
        self.digits.len()
    }

    /// Creates the number `unscaled` divided by ten to the power of `scale`.
    pub(super) fn new(unscaled: i64, scale: i32) -> Self {
        let text = unscaled.unsigned_abs().to_string();
        Self::from_parts(
            unscaled < 0,
            text.bytes().map(|digit| digit - b'0').collect(),
            scale,
        )
    }

    fn from_parts(negative: bool, mut digits: Vec<u8>, scale: i32) -> Self {
        let n_zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..n_zeros);
        Self {
            negative: negative && !digits.is_empty(),
            digits,
            scale,
        }
    }

    /// Parses digits with an optional sign and decimal point. Returns `None` on a syntax error.
    ///
    /// Source: gopkg.in/inf.v0 `dec.go`, `Dec.SetString`.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, TooLong> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
            return Ok(None);
        }
        let significant = whole.trim_start_matches('0');
        if significant.len() + fraction.len() > MAX_DIGITS {
            return Err(TooLong);
        }
        let digits = significant.bytes().chain(fraction.bytes());
        let scale = i32::try_from(fraction.len()).map_err(|_| TooLong)?;
        Ok(Some(Self::from_parts(
            negative,
            digits.map(|digit| digit - b'0').collect(),
            scale,
        )))
    }

    /// Returns -1 for a negative number, 0 for zero, and 1 for a positive number.
    pub(super) fn sign(&self) -> i64 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    pub(super) fn scale(&self) -> i32 {
        self.scale
    }

    pub(super) fn with_scale(self, scale: i32) -> Self {
        Self { scale, ..self }
    }

    pub(super) fn negated(self) -> Self {
        let negative = !self.negative && !self.digits.is_empty();
        Self { negative, ..self }
    }

    pub(super) fn abs(self) -> Self {
        Self {
            negative: false,
            ..self
        }
    }

    /// Formats the unscaled value with its sign.
    pub(super) fn unscaled_text(&self) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        let sign = self.negative.then_some('-');
        sign.into_iter()
            .chain(self.digits.iter().map(|digit| char::from(digit + b'0')))
            .collect()
    }

    /// Returns the double nearest to the unscaled value.
    pub(super) fn unscaled_double(&self) -> f64 {
        // The standard library rounds decimal numbers of any length correctly.
        self.unscaled_text().parse().unwrap_or(f64::NAN)
    }

    /// Rounds the number away from zero to `scale` digits after the decimal point.
    pub(super) fn rounded_up(&self, scale: i32) -> Result<Self, TooLong> {
        let n_cut = i64::from(self.scale) - i64::from(scale);
        let Ok(n_cut) = usize::try_from(n_cut) else {
            return self.rescaled(scale);
        };
        let kept = self.digits.len().saturating_sub(n_cut);
        let (kept, cut) = self.digits.split_at_checked(kept).unwrap_or_default();
        let mut digits = kept.to_vec();
        if cut.iter().any(|digit| *digit != 0) {
            increment(&mut digits);
        }
        Ok(Self::from_parts(self.negative, digits, scale))
    }

    /// Changes the number of digits after the decimal point to `scale`, without rounding. Returns an error if this
    /// would remove digits, or if the result has too many digits.
    fn rescaled(&self, scale: i32) -> Result<Self, TooLong> {
        let n_zeros = i64::from(scale) - i64::from(self.scale);
        let n_zeros = usize::try_from(n_zeros).map_err(|_| TooLong)?;
        let mut digits = self.digits.clone();
        if !digits.is_empty() {
            if digits.len().saturating_add(n_zeros) > MAX_DIGITS {
                return Err(TooLong);
            }
            digits.resize(digits.len() + n_zeros, 0);
        }
        Ok(Self {
            digits,
            scale,
            ..*self
        })
    }

    /// Returns both numbers with the same number of digits after the decimal point.
    fn aligned(&self, other: &Self) -> Result<(Self, Self), TooLong> {
        let scale = self.scale.max(other.scale);
        Ok((self.rescaled(scale)?, other.rescaled(scale)?))
    }

    pub(super) fn compare(&self, other: &Self) -> Result<Ordering, TooLong> {
        match self.sign().cmp(&other.sign()) {
            Ordering::Equal => {}
            unequal => return Ok(unequal),
        }
        let (left, right) = self.aligned(other)?;
        let magnitudes = compare_digits(&left.digits, &right.digits);
        Ok(if self.negative {
            magnitudes.reverse()
        } else {
            magnitudes
        })
    }

    pub(super) fn plus(&self, other: &Self) -> Result<Self, TooLong> {
        let (left, right) = self.aligned(other)?;
        let scale = left.scale;
        if left.negative == right.negative {
            let digits = add_digits(&left.digits, &right.digits);
            if digits.len() > MAX_DIGITS {
                return Err(TooLong);
            }
            return Ok(Self::from_parts(left.negative, digits, scale));
        }
        Ok(match compare_digits(&left.digits, &right.digits) {
            Ordering::Less => {
                let digits = subtract_digits(&right.digits, &left.digits);
                Self::from_parts(right.negative, digits, scale)
            }
            _ => {
                let digits = subtract_digits(&left.digits, &right.digits);
                Self::from_parts(left.negative, digits, scale)
            }
        })
    }

    /// Multiplies the unscaled value by two to the power of `exponent`.
    pub(super) fn shifted_left(&self, exponent: u32) -> Result<Self, TooLong> {
        let mut digits = self.digits.clone();
        for _ in 0..exponent {
            digits = add_digits(&digits, &digits);
        }
        if digits.len() > MAX_DIGITS {
            return Err(TooLong);
        }
        Ok(Self::from_parts(self.negative, digits, self.scale))
    }

    /// Divides the unscaled value by ten as long as there is no remainder. Returns the result and the number of
    /// divisions.
    pub(super) fn without_factors_of_10(mut self) -> (Self, i32) {
        let n_zeros = self
            .digits
            .iter()
            .rev()
            .take_while(|digit| **digit == 0)
            .count();
        self.digits.truncate(self.digits.len() - n_zeros);
        (self, i32::try_from(n_zeros).unwrap_or(i32::MAX))
    }

    /// Divides the unscaled value by 1024 as long as there is no remainder. Returns the result and the number of
    /// divisions.
    pub(super) fn without_factors_of_1024(mut self) -> (Self, i32) {
        let mut times = 0;
        while !self.digits.is_empty()
            && let Some(quotient) = divided_by_1024(&self.digits)
        {
            self.digits = quotient;
            times += 1;
        }
        (self, times)
    }

    /// Appends `n` zeros to the unscaled value.
    pub(super) fn with_zeros(mut self, n: usize) -> Self {
        self.digits.resize(self.digits.len() + n, 0);
        self
    }
}

fn compare_digits(left: &[u8], right: &[u8]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Adds one to the integer with these digits.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

fn add_digits(left: &[u8], right: &[u8]) -> Vec<u8> {
    let (mut left, mut right) = (left.iter().rev(), right.iter().rev());
    let mut sum = Vec::with_capacity(left.len().max(right.len()) + 1);
    let mut carry = 0;
    loop {
        let digits = (left.next(), right.next());
        if digits == (None, None) {
            break;
        }
        let digit = digits.0.unwrap_or(&0) + digits.1.unwrap_or(&0) + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    if carry > 0 {
        sum.push(carry);
    }
    sum.reverse();
    sum
}

/// Returns `left` minus `right`. `left` must not be less than `right`.
fn subtract_digits(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut right = right.iter().rev();
    let mut borrow = 0;
    let mut difference: Vec<u8> = left
        .iter()
        .rev()
        .map(|digit| {
            let taken = right.next().unwrap_or(&0) + borrow;
            borrow = u8::from(*digit < taken);
            digit + borrow * 10 - taken
        })
        .collect();
    difference.reverse();
    difference
}

/// Divides by 1024. Returns `None` if there is a remainder.
fn divided_by_1024(digits: &[u8]) -> Option<Vec<u8>> {
    let mut remainder = 0_u32;
    let mut quotient = Vec::with_capacity(digits.len());
    for digit in digits {
        let dividend = remainder * 10 + u32::from(*digit);
        remainder = dividend % 1024;
        let digit = u8::try_from(dividend / 1024).unwrap_or_default();
        if digit > 0 || !quotient.is_empty() {
            quotient.push(digit);
        }
    }
    (remainder == 0).then_some(quotient)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap().unwrap()
    }

    #[test]
    fn decimals_with_sign_and_point_are_parsed_within_digit_limit() {
        for (text, unscaled, scale) in [
            ("0", "0", 0),
            ("-0.00", "0", 2),
            ("00120.50", "12050", 2),
            ("+.5", "5", 1),
            ("-5.", "-5", 0),
        ] {
            let number = decimal(text);
            assert_eq!(number.unscaled_text(), unscaled, "{text}");
            assert_eq!(number.scale(), scale, "{text}");
        }
        for text in ["", "-", ".", "+.", "1.2.3", "1e3", "--1", "１"] {
            assert_eq!(Decimal::parse(text), Ok(None), "{text}");
        }
        assert_eq!(Decimal::parse(&"9".repeat(MAX_DIGITS + 1)), Err(TooLong));
    }

    #[test]
    fn sum_aligns_scales_within_digit_limit() {
        let sum = |left, right| decimal(left).plus(&decimal(right)).unwrap();
        assert_eq!(sum("999", "0.001"), decimal("999.001"));
        assert_eq!(sum("99.9", "0.1"), decimal("100.0"));
        assert_eq!(sum("1", "-1.00"), decimal("0.00"));
        assert_eq!(sum("1", "-10"), decimal("-9"));
        assert_eq!(sum("-10", "1"), decimal("-9"));
        assert_eq!(sum("1000", "-1"), decimal("999"));
        let huge = Decimal::new(1, -1_000_000);
        assert_eq!(huge.plus(&Decimal::new(1, 0)), Err(TooLong));
    }

    #[test]
    fn decimals_are_rounded_away_from_zero() {
        let rounded = |text, scale| decimal(text).rounded_up(scale).unwrap();
        assert_eq!(rounded("1.001", 2), decimal("1.01"));
        assert_eq!(rounded("-1.001", 2), decimal("-1.01"));
        assert_eq!(rounded("9.99", 0), decimal("10"));
        assert_eq!(rounded("1.50", 1), decimal("1.5"));
        assert_eq!(rounded("0.0001", 1), decimal("0.1"));
        assert_eq!(rounded("7", 2), decimal("7.00"));
        assert_eq!(rounded("0", 2), decimal("0.00"));
    }

    #[test]
    fn comparison_ignores_scale_and_sign_of_zero() {
        for (left, right, expected) in [
            ("1", "1.000", Ordering::Equal),
            ("-1", "-2", Ordering::Greater),
            ("-1", "0.1", Ordering::Less),
            ("10", "9", Ordering::Greater),
            ("0", "-0.0", Ordering::Equal),
        ] {
            assert_eq!(decimal(left).compare(&decimal(right)), Ok(expected));
        }
    }

    #[test]
    fn removed_factors_of_1024_and_10_are_counted() {
        let shifted = decimal("-3").shifted_left(40).unwrap();
        assert_eq!(shifted.unscaled_text(), (-3_i64 << 40).to_string());
        let (odd, times) = shifted.without_factors_of_1024();
        assert_eq!((odd.unscaled_text().as_str(), times), ("-3", 4));
        let (odd, times) = decimal("120000").without_factors_of_10();
        assert_eq!((odd.unscaled_text().as_str(), times), ("12", 4));
        assert_eq!(decimal("0").without_factors_of_1024().1, 0);
    }
}
