//! Limits of searches.

/// Limits of a search: memory and interruption.
pub trait Limits {
    /// The reason why a search ends early.
    type Error;

    /// Counts `n_steps` steps of work and periodically checks for an interruption. A step takes a few nanoseconds.
    ///
    /// # Errors
    ///
    /// Returns an error if the search must end, for example after an interruption.
    fn work(&self, n_steps: usize) -> Result<(), Self::Error>;

    /// Counts `n_bytes` that the search is about to allocate.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory limit is exceeded. The caller must then not allocate the memory.
    fn allocate(&self, n_bytes: usize) -> Result<(), Self::Error>;

    /// Returns the error of a search that exceeds its memory limit.
    fn exceeded(&self) -> Self::Error;
}

/// Limits for searches outside of an evaluation. Memory is limited, but a search cannot be interrupted.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryLimit;

/// Maximum bytes that a search under [`MemoryLimit`] may allocate.
const MAX_BYTES: usize = 8 << 20;

/// The error of a search that exceeds its memory limit.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limit_is_eight_mebibytes() {
        assert_eq!(MemoryLimit.allocate(8 << 20), Ok(()));
        assert_eq!(MemoryLimit.allocate((8 << 20) + 1), Err(TooLarge));
        assert_eq!(MemoryLimit.work(usize::MAX), Ok(()));
    }
}
