//! Quantities: parsing, arithmetic and canonical form.
//!
//! Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `suffix.go`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::amount::{ScaledInt, canonical, canonical_of_1024};
use super::decimal::{Decimal, TooLong};

/// An error that occurs when a quantity is parsed or used in a computation.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go` (`ErrFormatWrong`, `ErrNumeric`,
/// `ErrSuffix`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The input does not have the syntax of a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The input contains no number.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number has too many digits. Upstream has no such limit, so a computation may take hours.
    #[error("quantity has too many digits")]
    TooLong,
}

impl From<TooLong> for QuantityError {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

/// The format of a quantity.
///
/// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// With an exponent of ten, as in `12e6`.
    DecimalExponent,
    /// With a binary suffix, as in `12Mi`.
    BinarySi,
    /// With a decimal suffix, as in `12M`.
    DecimalSi,
}

/// The number of a quantity.
#[derive(Clone, Debug)]
enum Amount {
    Scaled(ScaledInt),
    /// A decimal number that several quantities can share. In upstream, an addition changes the number of the left
    /// operand in place, and the sum shares this number.
    Decimal(Arc<Mutex<Decimal>>),
}

impl Amount {
    fn from_decimal(number: Decimal) -> Self {
        Self::Decimal(Arc::new(Mutex::new(number)))
    }

    fn to_decimal(&self) -> Decimal {
        match self {
            Self::Scaled(number) => number.to_decimal(),
            Self::Decimal(shared) => shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        }
    }

    fn sign(&self) -> i64 {
        match self {
            Self::Scaled(number) => number.value.signum(),
            Self::Decimal(_) => self.to_decimal().sign(),
        }
    }

    fn compare(&self, other: &Self) -> Result<Ordering, TooLong> {
        match (self, other) {
            (Self::Scaled(left), Self::Scaled(right)) => left.compare(*right),
            _ => self.to_decimal().compare(&other.to_decimal()),
        }
    }
}

#[derive(Clone, Debug)]
struct State {
    amount: Amount,
    notation: Notation,
    /// The parsed string, if it was already in canonical form.
    text: Option<Box<str>>,
}

/// A quantity such as `1.5Gi`.
///
/// Clones share their number, as in upstream. This is visible in two cases:
///
/// - If the right operand of a comparison is in the decimal representation, the left operand is converted to this
///   representation.
/// - An addition changes the number of the left operand if it is in the decimal representation.
#[derive(Clone, Debug)]
pub struct Quantity {
    state: Arc<Mutex<State>>,
    is_sum: bool,
}

impl Quantity {
    /// Returns the memory of the digits and the input, in bytes.
    pub(in crate::library) fn heap_size(&self) -> usize {
        let state = self.state();
        let of_digits = match &state.amount {
            Amount::Scaled(_) => 0,
            Amount::Decimal(number) => {
                let number = number.lock().unwrap_or_else(PoisonError::into_inner);
                number.n_digits().saturating_add(size_of::<Decimal>())
            }
        };
        let of_text = state.text.as_ref().map_or(0, |text| text.len());
        of_digits
            .saturating_add(of_text)
            .saturating_add(size_of::<State>())
    }

    fn new(amount: Amount, notation: Notation, text: Option<&str>) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                amount,
                notation,
                text: text.map(Into::into),
            })),
            is_sum: false,
        }
    }

    /// Parses a quantity such as `1.5Gi`.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not a quantity or has too many digits.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `ParseQuantity`.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        if text == "0" {
            let zero = Amount::Scaled(ScaledInt::default());
            return Ok(Self::new(zero, Notation::DecimalSi, Some(text)));
        }
        let parts = Parts::split(text)?;
        let suffix = Suffix::parse(parts.suffix).ok_or(QuantityError::Suffix)?;
        match parse_scaled(text, &parts, suffix)? {
            Some(quantity) => Ok(quantity),
            None => parse_decimal(&parts, suffix),
        }
    }

    fn state(&self) -> State {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns true if the quantity is a sum or difference. Upstream's equality does not accept such a quantity as the
    /// right operand.
    #[must_use]
    pub fn is_sum(&self) -> bool {
        self.is_sum
    }

    /// Returns -1 for a negative quantity, 0 for zero, and 1 for a positive quantity.
    #[must_use]
    pub fn sign(&self) -> i64 {
        self.state().amount.sign()
    }

    /// Returns the quantity as an integer. Returns `None` for a fraction and for the decimal representation.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Quantity.AsInt64`.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.state().amount {
            Amount::Scaled(number) => number.to_int(),
            Amount::Decimal(_) => None,
        }
    }

    /// Returns the nearest double. The result may be inexact.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Quantity.AsApproximateFloat64`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the result is approximate")]
    pub fn as_approximate_float(&self) -> f64 {
        let (base, exponent) = match self.state().amount {
            Amount::Scaled(number) => (number.value as f64, number.scale),
            amount @ Amount::Decimal(_) => {
                let number = amount.to_decimal();
                (number.unscaled_double(), number.scale().wrapping_neg())
            }
        };
        match exponent {
            0 => base,
            exponent => base * power_of_ten(exponent),
        }
    }

    /// Compares two quantities.
    ///
    /// If `other` is in the decimal representation, this quantity is converted to the same representation.
    ///
    /// # Errors
    ///
    /// Returns an error if the comparison needs too many digits.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Quantity.Cmp`.
    pub fn compare(&self, other: &Self) -> Result<Ordering, QuantityError> {
        let other = other.state().amount;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let order = state.amount.compare(&other)?;
        if let (Amount::Scaled(number), Amount::Decimal(_)) = (&state.amount, &other) {
            state.amount = Amount::from_decimal(number.to_decimal());
        }
        Ok(order)
    }

    /// Returns true if both quantities have the same value.
    ///
    /// # Errors
    ///
    /// Returns an error if the comparison needs too many digits.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Quantity.Equal`.
    pub fn is_equal(&self, other: &Self) -> Result<bool, QuantityError> {
        let order = self.state().amount.compare(&other.state().amount)?;
        Ok(order.is_eq())
    }

    /// Returns the sum of both quantities.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has too many digits.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/library/quantity.go`, `quantityAdd`.
    pub fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        self.state().copied().plus(&other.state(), false)
    }

    /// Returns the sum of both quantities. If `self` is in the decimal representation, `self` is also set to the sum.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has too many digits.
    ///
    /// Source: k8s.io/apiserver 0.36 `pkg/cel/library/quantity.go`, `quantityAdd`, which copies the quantity, but not the
    /// number to which it points.
    pub fn plus_in_place(&self, other: &Self) -> Result<Self, QuantityError> {
        self.state().plus(&other.state(), false)
    }

    /// Returns the difference of both quantities.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has too many digits.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/library/quantity.go`, `quantitySub`.
    pub fn minus(&self, other: &Self) -> Result<Self, QuantityError> {
        self.state().copied().plus(&other.state(), true)
    }

    /// Returns the difference of both quantities. If `self` is in the decimal representation, `self` is also set to the
    /// difference.
    ///
    /// # Errors
    ///
    /// Returns an error if the result has too many digits.
    ///
    /// Source: k8s.io/apiserver 0.36 `pkg/cel/library/quantity.go`, `quantitySub`.
    pub fn minus_in_place(&self, other: &Self) -> Result<Self, QuantityError> {
        self.state().plus(&other.state(), true)
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        let amount = Amount::Scaled(ScaledInt { value, scale: 0 });
        Self::new(amount, Notation::DecimalExponent, None)
    }
}

impl State {
    /// Returns a copy that does not share its number with `self`.
    fn copied(self) -> Self {
        let amount = match &self.amount {
            Amount::Decimal(_) => Amount::from_decimal(self.amount.to_decimal()),
            Amount::Scaled(_) => self.amount,
        };
        Self { amount, ..self }
    }

    /// Adds `other`, or subtracts `other` if `negate` is true. The result has the notation of the left operand, or of
    /// the right operand if the left operand is zero.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Quantity.Add`, `Quantity.Sub`.
    fn plus(self, other: &Self, negate: bool) -> Result<Quantity, QuantityError> {
        let notation = if self.amount.sign() == 0 {
            other.notation
        } else {
            self.notation
        };
        let fitting = match (&self.amount, &other.amount) {
            (Amount::Scaled(left), Amount::Scaled(right)) if negate => left.minus(*right),
            (Amount::Scaled(left), Amount::Scaled(right)) => left.plus(*right),
            _ => None,
        };
        let amount = if let Some(number) = fitting {
            Amount::Scaled(number)
        } else {
            let right = other.amount.to_decimal();
            let right = if negate { right.negated() } else { right };
            let sum = self.amount.to_decimal().plus(&right)?;
            match self.amount {
                Amount::Decimal(shared) => {
                    *shared.lock().unwrap_or_else(PoisonError::into_inner) = sum;
                    Amount::Decimal(shared)
                }
                Amount::Scaled(_) => Amount::from_decimal(sum),
            }
        };
        let sum = Quantity::new(amount, notation, None);
        Ok(Quantity {
            is_sum: true,
            ..sum
        })
    }

    /// Returns the digits and the suffix of the canonical form.
    ///
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `Quantity.CanonicalizeBytes`.
    fn canonical(&self) -> Result<(String, String), TooLong> {
        if self.amount.sign() == 0 {
            return Ok(("0".to_owned(), String::new()));
        }
        if self.notation == Notation::BinarySi
            && let Some((digits, exponent)) = self.canonical_binary()?
        {
            return Ok((digits, binary_suffix(exponent).to_owned()));
        }
        let (digits, exponent) = match &self.amount {
            Amount::Scaled(number) => number.canonical(),
            amount @ Amount::Decimal(_) => canonical(amount.to_decimal()),
        };
        let suffix = match self.notation {
            Notation::DecimalExponent if exponent == 0 => String::new(),
            Notation::DecimalExponent => format!("e{exponent}"),
            Notation::BinarySi | Notation::DecimalSi => decimal_suffix(exponent).to_owned(),
        };
        Ok((digits, suffix))
    }

    /// Returns the digits and the exponent of 1024. Returns `None` for a fraction, and for a magnitude below 1024,
    /// because these have no binary suffix.
    fn canonical_binary(&self) -> Result<Option<(String, i32)>, TooLong> {
        let limit = |value| Amount::Scaled(ScaledInt { value, scale: 0 });
        if self.amount.compare(&limit(-1024))?.is_gt() && self.amount.compare(&limit(1024))?.is_lt()
        {
            return Ok(None);
        }
        match &self.amount {
            Amount::Scaled(number) if number.is_whole() => number.canonical_of_1024().map(Some),
            Amount::Scaled(_) => Ok(None),
            amount @ Amount::Decimal(_) => {
                let number = amount.to_decimal();
                if number.rounded_up(0)?.compare(&number)?.is_ne() {
                    return Ok(None);
                }
                canonical_of_1024(&number).map(Some)
            }
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        if let Some(text) = &state.text {
            return f.write_str(text);
        }
        match state.canonical() {
            Ok((digits, suffix)) => write!(f, "{digits}{suffix}"),
            Err(TooLong) => write!(f, "{}", QuantityError::TooLong),
        }
    }
}

/// Returns ten to the power of `exponent`, with the same rounding errors as Go's `math.Pow10`.
///
/// Source: Go `math/pow10.go`, `Pow10`.
fn power_of_ten(exponent: i32) -> f64 {
    let exactly = |exponent: u32| format!("1e{exponent}").parse().unwrap_or(f64::INFINITY);
    let n = exponent.unsigned_abs();
    match exponent {
        0..=308 => exactly(n / 32 * 32) * exactly(n % 32),
        -323..0 => {
            let coarse: f64 = format!("1e-{}", n / 32 * 32).parse().unwrap_or(0.0);
            coarse / exactly(n % 32)
        }
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

/// The components of a quantity's text.
struct Parts<'a> {
    negative: bool,
    value: &'a str,
    /// The digits before the decimal point, without leading zeros.
    whole: &'a str,
    /// The digits after the decimal point.
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    /// Source: k8s.io/apimachinery `pkg/api/resource/quantity.go`, `parseQuantityString`.
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        let is_digit = |c: char| c.is_ascii_digit();
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let negative = text.starts_with('-');
        let significant = unsigned.trim_start_matches('0');
        if significant.is_empty() {
            // As in upstream, a sign without digits is zero.
            return Ok(Self {
                negative,
                value: "0",
                whole: "0",
                fraction: "",
                suffix: "",
            });
        }
        let rest = significant.trim_start_matches(is_digit);
        let whole = before(significant, rest);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => {
                let suffix = after.trim_start_matches(is_digit);
                (before(after, suffix), suffix)
            }
            None => ("", rest),
        };
        let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if !exponent.chars().all(is_digit) {
            return Err(QuantityError::Format);
        }
        Ok(Self {
            negative,
            value: before(text, suffix),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
        })
    }

    fn n_digits(&self) -> usize {
        self.whole.len().saturating_add(self.fraction.len())
    }
}

/// Removes the suffix `end` if `text` has this suffix.
fn before<'a>(text: &'a str, end: &str) -> &'a str {
    text.strip_suffix(end).unwrap_or(text)
}

/// A parsed suffix, such as `Mi`.
#[derive(Clone, Copy)]
struct Suffix {
    notation: Notation,
    /// The exponent of two of a binary suffix, or the exponent of ten of a decimal suffix.
    exponent: i32,
}

const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY_SUFFIXES: [(&str, i32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// Returns the suffix for an exponent of ten. Returns an empty string if no suffix exists, which drops the exponent as
/// in upstream.
fn decimal_suffix(exponent: i32) -> &'static str {
    DECIMAL_SUFFIXES
        .iter()
        .find(|(_, of)| *of == exponent)
        .map_or("", |(suffix, _)| suffix)
}

fn binary_suffix(exponent: i32) -> &'static str {
    BINARY_SUFFIXES
        .iter()
        .find(|(_, of)| *of == exponent.saturating_mul(10))
        .map_or("", |(suffix, _)| suffix)
}

impl Suffix {
    /// Source: k8s.io/apimachinery `pkg/api/resource/suffix.go`, `suffixHandler.interpret`.
    fn parse(text: &str) -> Option<Self> {
        let find = |table: &[(&str, i32)], notation| {
            let (_, exponent) = *table.iter().find(|(suffix, _)| *suffix == text)?;
            Some(Self { notation, exponent })
        };
        if let Some(suffix) = find(&DECIMAL_SUFFIXES, Notation::DecimalSi) {
            return Some(suffix);
        }
        if let Some(suffix) = find(&BINARY_SUFFIXES, Notation::BinarySi) {
            return Some(suffix);
        }
        let exponent: i64 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "upstream lets the exponent wrap at 32 bits"
        )]
        let exponent = exponent as i32;
        Some(Self {
            notation: Notation::DecimalExponent,
            exponent,
        })
    }
}

/// Creates the quantity as a scaled 64-bit integer. Returns `None` if the number does not fit into this form.
fn parse_scaled(
    text: &str,
    parts: &Parts<'_>,
    suffix: Suffix,
) -> Result<Option<Quantity>, QuantityError> {
    let binary = suffix.notation == Notation::BinarySi;
    let (scale, factor, max_digits) = if !binary {
        (suffix.exponent, 1, 18)
    } else if parts.fraction.is_empty() {
        (0, 1_i64 << suffix.exponent, 14 - suffix.exponent * 3 / 10)
    } else {
        return Ok(None);
    };
    let Ok(n_digits) = i32::try_from(parts.n_digits()) else {
        return Ok(None);
    };
    if n_digits > max_digits {
        return Ok(None);
    }
    let scale = scale.wrapping_sub(i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX));
    if scale < NANO {
        return Ok(None);
    }
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let value: i64 = digits.parse().map_err(|_| QuantityError::Numeric)?;
    let Some(product) = value.checked_mul(factor) else {
        return Ok(None);
    };
    let is_canonical = if binary {
        value & 7 != 0
    } else {
        scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
    };
    let amount = Amount::Scaled(ScaledInt {
        value: if parts.negative { -product } else { product },
        scale,
    });
    let text = is_canonical.then_some(text);
    Ok(Some(Quantity::new(amount, suffix.notation, text)))
}

/// The smallest exponent of ten. More precise numbers are rounded up.
const NANO: i32 = -9;

fn parse_decimal(parts: &Parts<'_>, suffix: Suffix) -> Result<Quantity, QuantityError> {
    let number = Decimal::parse(parts.value)?.ok_or(QuantityError::Numeric)?;
    let negative = number.sign() < 0;
    let mut notation = suffix.notation;
    let scale = number.scale();
    let number = number.abs();
    let mut number = if notation == Notation::BinarySi {
        number.shifted_left(suffix.exponent.unsigned_abs())?
    } else {
        number.with_scale(scale.wrapping_add(suffix.exponent.wrapping_neg()))
    };
    if number.sign() != 0 {
        number = number.rounded_up(-NANO)?;
    }
    if notation == Notation::BinarySi {
        let greatest = Decimal::new(i64::MAX, 0);
        if number.compare(&greatest)?.is_gt() {
            number = greatest;
        }
        if number.sign() > 0 && number.compare(&Decimal::new(1, 0))?.is_lt() {
            notation = Notation::DecimalSi;
        }
    }
    let number = if negative { number.negated() } else { number };
    Ok(Quantity::new(Amount::from_decimal(number), notation, None))
}
