//! Random numbers from a seed. The same seed gives the same numbers on every machine.

use std::hash::Hasher;
use std::time::Duration;

/// A generator of random numbers.
///
/// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a generator for the `n`th event of the type `key`. The numbers do not depend on other events.
    #[must_use]
    pub fn for_event(seed: u64, key: &str, n: u64) -> Self {
        let mut hasher = Fnv(seed ^ 0xcbf2_9ce4_8422_2325);
        hasher.write(key.as_bytes());
        hasher.write(&n.to_le_bytes());
        Self(hasher.finish())
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`. Returns zero if `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number().checked_rem(n).unwrap_or_default()
    }

    /// Returns true with a probability of `permille` / 1000.
    pub fn permille(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// Returns one of `choices`. Returns `None` if `choices` is empty.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let n = self.below(choices.len().try_into().unwrap_or_default());
        choices.get(usize::try_from(n).unwrap_or_default())
    }

    /// Returns a random duration between zero and `most`.
    pub fn duration(&mut self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(micros.saturating_add(1)))
    }
}

/// The FNV-1a hash. It is the same in all versions of Rust, unlike the hash of the standard library.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Parses a number in an environment variable. Returns `default` if the variable is not set.
///
/// # Errors
/// Returns an error if the variable is not a number.
pub fn from_environment(variable: &str, default: u64) -> anyhow::Result<u64> {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .map_err(|error| anyhow::anyhow!("{variable}={text}: {error}")),
        Err(_) => Ok(default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_of_same_seed_are_equal() {
        let numbers =
            |mut random: Random| -> Vec<u64> { (0..8).map(|_| random.number()).collect() };
        assert_eq!(numbers(Random::new(1)), numbers(Random::new(1)));
        assert_ne!(numbers(Random::new(1)), numbers(Random::new(2)));
        let of = |key, n| numbers(Random::for_event(1, key, n));
        assert_eq!(of("a", 0), of("a", 0));
        assert_ne!(of("a", 0), of("a", 1));
        assert_ne!(of("a", 0), of("b", 0));
    }

    #[test]
    fn random_numbers_are_spread_evenly() {
        let mut random = Random::new(7);
        let n_true = (0..10_000).filter(|_| random.permille(100)).count();
        assert!((800..1200).contains(&n_true), "{n_true}");
        let most = Duration::from_millis(60);
        assert!((0..1000).all(|_| random.duration(most) <= most));
        let seen: std::collections::BTreeSet<_> = (0..100).map(|_| random.below(5)).collect();
        assert_eq!(seen.len(), 5);
        assert_eq!(random.choose::<u8>(&[]), None);
        assert_eq!(random.below(0), 0);
    }
}
