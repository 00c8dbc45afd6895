//! Random choices of a generator, from a seed or from the bytes of a fuzzer.

#[derive(Clone, Debug)]
pub(crate) enum Choices<'a> {
    /// An endless sequence of choices from a seed.
    Seeded(u64),
    /// Choices from bytes. After the last byte, each choice is the first alternative.
    Bytes(&'a [u8]),
}

impl Choices<'_> {
    /// Returns a number less than `n`. `n` must be positive.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        match self {
            // Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
            Self::Seeded(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                usize::try_from((mixed ^ (mixed >> 31)) >> 33).unwrap_or(0) % n
            }
            Self::Bytes(bytes) => {
                let Some((first, rest)) = bytes.split_first() else {
                    return 0;
                };
                *bytes = rest;
                usize::from(*first) % n
            }
        }
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// Returns a random item. `items` must not be empty.
    pub(crate) fn pick<'t, T: ?Sized>(&mut self, items: &[&'t T]) -> &'t T {
        items[self.below(items.len())]
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        matches!(self, Self::Bytes([]))
    }
}
