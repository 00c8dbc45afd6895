//! Sets of code points as sorted ranges.

/// The largest code point.
pub(super) const MAX_RUNE: u32 = 0x10_ffff;

/// A set of code points as sorted, non-adjacent ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(pub(super) Vec<(u32, u32)>);

impl Ranges {
    /// Creates the union of `ranges`. They may overlap, and need not be sorted.
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

    /// Returns the ranges. Each pair is the first and the last code point of a range. The ranges may include
    /// surrogates.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Returns the complement.
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

    /// Returns true if the set contains `rune`.
    #[must_use]
    pub fn contains(&self, rune: u32) -> bool {
        let after = self.0.partition_point(|&(lo, _)| lo <= rune);
        after
            .checked_sub(1)
            .and_then(|n| self.0.get(n))
            .is_some_and(|&(_, hi)| rune <= hi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_and_overlapping_ranges_are_merged() {
        for (ranges, expected) in [
            (vec![(5, 6), (1, 2)], vec![(1, 2), (5, 6)]),
            (vec![(1, 2), (3, 4)], vec![(1, 4)]),
            (vec![(1, 2), (4, 4)], vec![(1, 2), (4, 4)]),
            (vec![(1, 9), (2, 3)], vec![(1, 9)]),
            (vec![(2, 3), (1, 2), (1, 5)], vec![(1, 5)]),
            (vec![], vec![]),
        ] {
            assert_eq!(Ranges::new(ranges).as_slice(), expected);
        }
    }

    #[test]
    fn negated_ranges_contain_all_other_characters() {
        for (ranges, expected) in [
            (vec![], vec![(0, MAX_RUNE)]),
            (vec![(0, MAX_RUNE)], vec![]),
            (vec![(0, 1)], vec![(2, MAX_RUNE)]),
            (vec![(1, MAX_RUNE)], vec![(0, 0)]),
            (
                vec![(1, 1), (3, MAX_RUNE - 1)],
                vec![(0, 0), (2, 2), (MAX_RUNE, MAX_RUNE)],
            ),
        ] {
            let ranges = Ranges(ranges);
            let negated = ranges.negated();
            assert_eq!(negated.as_slice(), expected);
            assert_eq!(negated.negated(), ranges);
            for rune in [0, 1, 2, 3, 4, MAX_RUNE - 1, MAX_RUNE] {
                assert_ne!(ranges.contains(rune), negated.contains(rune), "{rune}");
            }
        }
    }
}
