//! What comparisons may look at.

use std::sync::atomic::{AtomicU64, Ordering};

use super::EvalError;

/// How many values all comparisons of one evaluation may look at together.
///
/// Upstream counts a comparison by the lengths of its two sides alone. Objects of a request are small beside
/// this; but a value that holds another twice, which holds another twice, and so on, is walked forever, and
/// upstream does walk it.
#[derive(Debug)]
pub struct Work(AtomicU64);

/// The most that comparisons come to within the cost of a policy, and half a second of work.
const MAX_STEPS: u64 = 10_000_000;

impl Default for Work {
    fn default() -> Self {
        Self(AtomicU64::new(MAX_STEPS))
    }
}

impl Work {
    /// Counts a value.
    ///
    /// # Errors
    ///
    /// When too many were looked at, which ends the evaluation.
    pub(super) fn step(&self) -> Result<(), EvalError> {
        let left = self.0.load(Ordering::Relaxed);
        match left.checked_sub(1) {
            Some(left) => {
                self.0.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(EvalError::cancelled("value is too large to be compared")),
        }
    }
}
