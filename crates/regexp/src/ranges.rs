//! Sets of code points as sorted ranges.

/// The greatest code point.
pub(super) const MAX_RUNE: u32 = 0x10_ffff;

/// Code points as ranges, sorted, with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(pub(super) Vec<(u32, u32)>);

impl Ranges {
    /// The ranges that cover `ranges`, which may be in any order and overlap.
    #[must_use]
    pub fn new(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, previous| {
            let touches = next.0 <= previous.1.saturating_add(1);
            if touches {
                previous.1 = previous.1.max(next.1);
            }
            touches
        });
        Self(ranges)
    }

    /// The ranges, each from its first to its last code point; surrogates may be among them.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// All other code points.
    #[must_use]
    pub fn negated(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(lo, hi) in &self.0 {
            if next < lo {
                gaps.push((next, lo - 1));
            }
            next = hi + 1;
        }
        if next <= MAX_RUNE {
            gaps.push((next, MAX_RUNE));
        }
        Self(gaps)
    }

    /// Reports whether `rune` is in one of the ranges.
    #[must_use]
    pub fn contains(&self, rune: u32) -> bool {
        let after = self.0.partition_point(|&(lo, _)| lo <= rune);
        after
            .checked_sub(1)
            .and_then(|n| self.0.get(n))
            .is_some_and(|&(_, hi)| rune <= hi)
    }
}
