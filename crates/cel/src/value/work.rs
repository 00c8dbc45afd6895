//! How many values an evaluation may look at.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::EvalError;

/// How many values one evaluation may look at where it compares them, or counts what they cost.
///
/// Upstream counts a comparison by the lengths of its two sides alone. Objects of a request are small beside
/// this; but a value that holds another twice, which holds another twice, and so on, is walked forever, and
/// upstream does walk it.
pub struct Work(AtomicU64);

/// Shows no state: values that are equal look alike, whatever was done with them.
impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

/// More than comparisons come to within the cost of a policy, and half a second of work.
const MAX_STEPS: u64 = 10_000_000;

impl Default for Work {
    fn default() -> Self {
        Self::of(MAX_STEPS)
    }
}

impl Work {
    /// Work on no more values than these.
    #[must_use]
    pub const fn of(n_values: u64) -> Self {
        Self(AtomicU64::new(n_values))
    }

    /// Counts a value.
    ///
    /// # Errors
    ///
    /// When too many were looked at, which ends the evaluation.
    pub fn step(&self) -> Result<(), EvalError> {
        let left = self.0.load(Ordering::Relaxed);
        match left.checked_sub(1) {
            Some(left) => {
                self.0.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(EvalError::cancelled("value is too large to be walked")),
        }
    }
}
