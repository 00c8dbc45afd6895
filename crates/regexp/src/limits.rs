//! Bounds of a search.

/// Bounds of a search: its memory, and an interruption.
pub trait Limits {
    /// Reason why a search ends early.
    type Error;

    /// Counts `n_steps` of work, each of some nanoseconds, and checks for an interruption from time to time.
    ///
    /// # Errors
    ///
    /// An error ends the search.
    fn work(&self, n_steps: usize) -> Result<(), Self::Error>;

    /// Counts `n_bytes` that are about to be allocated for this search.
    ///
    /// # Errors
    ///
    /// An error ends the search; nothing is allocated then.
    fn allocate(&self, n_bytes: usize) -> Result<(), Self::Error>;

    /// The error of a search that needs more memory than it may use.
    fn exceeded(&self) -> Self::Error;
}

/// Limits of searches that belong to no evaluation: memory alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryLimit;

/// Bytes that a search under [`MemoryLimit`] may allocate for itself.
const MAX_BYTES: usize = 8 << 20;

/// The pattern needs more memory than a search may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the regular expression needs more than {} MiB of memory", MAX_BYTES >> 20)]
pub struct TooLarge;

impl Limits for MemoryLimit {
    type Error = TooLarge;

    fn work(&self, _: usize) -> Result<(), TooLarge> {
        Ok(())
    }

    fn allocate(&self, n_bytes: usize) -> Result<(), TooLarge> {
        if n_bytes > MAX_BYTES {
            Err(TooLarge)
        } else {
            Ok(())
        }
    }

    fn exceeded(&self) -> TooLarge {
        TooLarge
    }
}
