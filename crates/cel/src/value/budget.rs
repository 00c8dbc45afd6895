//! The steps and the memory that one evaluation may use besides its cost.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::EvalError;

/// Steps and bytes that one evaluation may use. Evaluations that belong together share a budget.
///
/// Upstream bounds an evaluation by its cost alone, and its costs do not measure two things. A comparison costs by the
/// lengths of its two sides, although a value that contains another twice, which contains another twice, and so on,
/// has exponentially many parts. A concatenation of `dyn` operands costs 1, however long the result is.
pub struct EvalBudget {
    /// Values that may still be visited by comparisons and cost functions.
    steps: AtomicU64,
    /// Bytes that may still be allocated.
    bytes: AtomicU64,
    /// The bytes that could be allocated at first.
    max_bytes: u64,
    /// Set by another thread to end the evaluation.
    is_cancelled: Option<Arc<AtomicBool>>,
    /// Work since the flag was last read.
    unpolled: AtomicU64,
}

/// Shows no state, so that values with different budgets have the same debug output.
impl fmt::Debug for EvalBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvalBudget").finish_non_exhaustive()
    }
}

/// Visited values. The comparisons that the cost of a policy allows need fewer. They take half a second.
const MAX_STEPS: u64 = 10_000_000;

/// Bytes. An object of a request has at most 3 MiB of JSON, and policies build short strings and lists from it.
const MAX_BYTES: u64 = 32 << 20;

/// Steps of work from one look at the cancellation to the next.
const STEPS_OF_POLL: u64 = 1_000;

const MIB: u64 = 1 << 20;

impl Default for EvalBudget {
    fn default() -> Self {
        Self::new(MAX_STEPS, MAX_BYTES)
    }
}

impl EvalBudget {
    /// A budget of `steps` visited values and `bytes` of memory.
    #[must_use]
    pub const fn new(steps: u64, bytes: u64) -> Self {
        Self {
            steps: AtomicU64::new(steps),
            bytes: AtomicU64::new(bytes),
            max_bytes: bytes,
            is_cancelled: None,
            unpolled: AtomicU64::new(0),
        }
    }

    /// The default budget of evaluations that end soon after `is_cancelled` is set.
    #[must_use]
    pub fn cancelled_by(is_cancelled: Option<Arc<AtomicBool>>) -> Self {
        Self {
            is_cancelled,
            ..Self::default()
        }
    }

    /// Counts `n_steps` of work, of which each takes some nanoseconds, and reads the flag that cancels the evaluation
    /// from time to time. Functions that may take long within one step of the evaluation call it.
    ///
    /// # Errors
    ///
    /// An error that ends the evaluation if it was cancelled.
    #[inline]
    pub fn poll(&self, n_steps: u64) -> Result<(), EvalError> {
        let Some(is_cancelled) = &self.is_cancelled else {
            return Ok(());
        };
        let n_steps = self
            .unpolled
            .load(Ordering::Relaxed)
            .saturating_add(n_steps);
        if n_steps < STEPS_OF_POLL {
            self.unpolled.store(n_steps, Ordering::Relaxed);
            return Ok(());
        }
        self.unpolled.store(0, Ordering::Relaxed);
        if is_cancelled.load(Ordering::Relaxed) {
            return Err(EvalError::cancelled("operation interrupted"));
        }
        Ok(())
    }

    /// Counts a visited value.
    ///
    /// # Errors
    ///
    /// An error that ends the evaluation if there are no steps left.
    pub fn step(&self) -> Result<(), EvalError> {
        let left = self.steps.load(Ordering::Relaxed);
        match left.checked_sub(1) {
            Some(left) => {
                self.steps.store(left, Ordering::Relaxed);
                self.poll(1)
            }
            None => Err(EvalError::cancelled("value is too large to be walked")),
        }
    }

    /// Counts `n_bytes` that are about to be allocated. Memory that is freed later is not given back.
    ///
    /// # Errors
    ///
    /// An error that ends the evaluation if fewer bytes are left; nothing must be allocated then.
    pub fn allocate(&self, n_bytes: usize) -> Result<(), EvalError> {
        let n_bytes = u64::try_from(n_bytes).unwrap_or(u64::MAX);
        let left = self.bytes.load(Ordering::Relaxed);
        match left.checked_sub(n_bytes) {
            Some(left) => {
                self.bytes.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(EvalError::cancelled(format!(
                "the evaluation needs more than {} MiB of memory",
                self.max_bytes / MIB
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn cancelled_budget_ends_comparisons_and_steps() {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let budget = EvalBudget::cancelled_by(Some(Arc::clone(&is_cancelled)));
        let compare = || {
            let mut results =
                (0..2_000).map(|n| Value::Int(n).equals_within(&Value::Null, &budget));
            results.find_map(Result::err)
        };
        assert!(compare().is_none());
        is_cancelled.store(true, Ordering::Relaxed);
        let error = compare().unwrap();
        assert_eq!(error.message(), "operation interrupted");
        assert!(error.ends_evaluation());
        assert!((0..2_000).any(|_| budget.step().is_err()));
        assert!(EvalBudget::default().poll(u64::MAX).is_ok());
    }
}
