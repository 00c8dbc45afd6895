//! Ranges of costs and sizes, with arithmetic that saturates at 2^64-1.
//!
//! Source: cel-go `checker/cost.go` (`CostEstimate`, `SizeEstimate`, `addUint64NoOverflow`,
//! `multiplyUint64NoOverflow`, `multiplyByCostFactor`).

use std::fmt;

/// A range of costs, in cost units. `u64::MAX` means an unlimited cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CostEstimate {
    /// The minimum cost of an evaluation.
    pub min: u64,
    /// The maximum cost of an evaluation.
    pub max: u64,
}

/// A range of sizes. The unit depends on the type: code points of a string, bytes, elements of a list, or entries of a
/// map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SizeEstimate {
    /// The minimum size.
    pub min: u64,
    /// The maximum size.
    pub max: u64,
}

impl CostEstimate {
    /// Creates the range from `min` to `max`.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// Creates a known cost.
    #[must_use]
    pub const fn fixed(cost: u64) -> Self {
        Self::new(cost, cost)
    }

    /// Returns the sum of both ranges.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::new(
            self.min.saturating_add(other.min),
            self.max.saturating_add(other.max),
        )
    }

    /// Returns the product of both ranges.
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        Self::new(
            self.min.saturating_mul(other.min),
            self.max.saturating_mul(other.max),
        )
    }

    /// Multiplies the bounds by `factor`, rounding up.
    #[must_use]
    pub fn by_factor(self, factor: f64) -> Self {
        Self::new(scaled(self.min, factor), scaled(self.max, factor))
    }

    /// Returns the smallest range that contains both ranges.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self::new(self.min.min(other.min), self.max.max(other.max))
    }
}

impl fmt::Display for CostEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.min, self.max)
    }
}

impl SizeEstimate {
    /// An unknown size.
    pub const UNKNOWN: Self = Self::new(0, u64::MAX);

    /// Creates the range from `min` to `max`.
    #[must_use]
    pub const fn new(min: u64, max: u64) -> Self {
        Self { min, max }
    }

    /// Creates a known size.
    #[must_use]
    pub const fn fixed(size: u64) -> Self {
        Self::new(size, size)
    }

    /// Returns the sum of both ranges.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::new(
            self.min.saturating_add(other.min),
            self.max.saturating_add(other.max),
        )
    }

    /// Returns the product of both ranges.
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        Self::new(
            self.min.saturating_mul(other.min),
            self.max.saturating_mul(other.max),
        )
    }

    /// Returns the cost of `self` operations that each have the given cost.
    #[must_use]
    pub const fn times_cost(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate::new(self.min, self.max).times(cost)
    }

    /// Returns the cost of `self` operations that cost `cost_per_unit` each, rounded up.
    #[must_use]
    pub fn by_factor(self, cost_per_unit: f64) -> CostEstimate {
        CostEstimate::new(self.min, self.max).by_factor(cost_per_unit)
    }

    /// Returns the smallest range that contains both ranges.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self::new(self.min.min(other.min), self.max.max(other.max))
    }
}

/// Converts `n` to the nearest double.
#[expect(
    clippy::cast_precision_loss,
    reason = "the estimates are defined on the nearest float"
)]
pub(crate) const fn to_f64(n: u64) -> f64 {
    n as f64
}

/// Returns `n` times `factor`, rounded up and saturated at 2^64-1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion of a float saturates, and factors are positive"
)]
fn scaled(n: u64, factor: f64) -> u64 {
    let n = to_f64(n);
    if n > 0.0 && factor > 0.0 && n > to_f64(u64::MAX) / factor {
        return u64::MAX;
    }
    (n * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_multiplied_by_factor_is_rounded_up_and_saturates() {
        let size = |min, max| SizeEstimate::new(min, max);
        assert_eq!(size(1, 11).by_factor(0.1), CostEstimate::new(1, 2));
        assert_eq!(size(0, 10).by_factor(0.1), CostEstimate::new(0, 1));
        assert_eq!(
            SizeEstimate::UNKNOWN.by_factor(0.1),
            CostEstimate::new(0, 1_844_674_407_370_955_264)
        );
        assert_eq!(
            SizeEstimate::UNKNOWN.by_factor(2.0),
            CostEstimate::new(0, u64::MAX)
        );
        assert_eq!(
            SizeEstimate::UNKNOWN.by_factor(1.0),
            CostEstimate::new(0, u64::MAX)
        );
    }

    #[test]
    fn sums_and_products_of_costs_saturate() {
        let big = CostEstimate::new(2, u64::MAX - 1);
        assert_eq!(
            big.plus(CostEstimate::fixed(2)),
            CostEstimate::new(4, u64::MAX)
        );
        assert_eq!(
            big.times(CostEstimate::fixed(2)),
            CostEstimate::new(4, u64::MAX)
        );
        assert_eq!(big.times(CostEstimate::fixed(0)), CostEstimate::fixed(0));
        assert_eq!(
            SizeEstimate::UNKNOWN.times_cost(CostEstimate::fixed(3)),
            CostEstimate::new(0, u64::MAX)
        );
    }

    #[test]
    fn union_of_costs_contains_both_ranges() {
        let union = CostEstimate::new(3, 4).union(CostEstimate::new(1, 2));
        assert_eq!(union, CostEstimate::new(1, 4));
    }
    #[test]
    fn cost_is_displayed_with_both_bounds() {
        assert_eq!(CostEstimate::new(1, 20).to_string(), "1..20");
    }
}
