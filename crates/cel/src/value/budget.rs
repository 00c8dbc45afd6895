//! Work and memory limits of an evaluation, in addition to its cost limit.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::EvalError;

/// Work steps and bytes that an evaluation may use. Related evaluations share a budget.
///
/// Upstream limits an evaluation only by cost, which does not bound its time and memory. The cost of a comparison
/// depends on the lengths of its operands, but not on the number of their nested elements. If each nested value
/// contains the next one twice, this number is exponential in the depth. The cost of a concatenation of `dyn` operands
/// is 1, regardless of the length of the result.
///
/// A limit remains exceeded: [`EvalBudget::exceeded`] returns the limit even if a variable or a failure policy
/// absorbs the error.
pub struct EvalBudget {
    /// Number of values that comparisons and cost functions may still visit.
    steps: AtomicU64,
    /// Number of bytes that may still be allocated.
    bytes: AtomicU64,
    max_steps: u64,
    max_bytes: u64,
    /// Number of bytes of the values that are still needed after the step that allocated them.
    retained: AtomicU64,
    exceeded: OnceLock<Exceeded>,
    /// Set by another thread to end the evaluation.
    is_cancelled: Option<Arc<AtomicBool>>,
    /// Work done since `is_cancelled` was last read.
    unpolled: AtomicU64,
}

/// A snapshot of the memory use of an [`EvalBudget`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    left: u64,
    retained: u64,
}

/// A limit of this implementation that the API server does not have. Its `Display` output is shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The memory limit, in bytes.
    Memory(u64),
    /// The maximum number of visited values.
    Steps(u64),
    /// The maximum nesting depth of variables that refer to other variables.
    VariableDepth,
    /// The maximum nesting depth of compared values.
    ValueDepth,
    /// The maximum number of digits of a quantity.
    QuantityDigits,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(max) if max.is_multiple_of(MIB) => {
                write!(
                    f,
                    "the evaluation needs more than {} MiB of memory",
                    max / MIB
                )
            }
            Self::Memory(max) => write!(f, "the evaluation needs more than {max} bytes of memory"),
            Self::Steps(max) if max.is_multiple_of(MILLION) => {
                write!(
                    f,
                    "the evaluation compares more than {} million values",
                    max / MILLION
                )
            }
            Self::Steps(max) => write!(f, "the evaluation compares more than {max} values"),
            Self::VariableDepth => {
                f.write_str("variables that refer to other variables are nested too deeply")
            }
            Self::ValueDepth => f.write_str("value is nested too deeply to be compared"),
            Self::QuantityDigits => f.write_str("quantity has too many digits"),
        }
    }
}

/// Omits the state, so that the debug output of values does not depend on their budgets.
impl fmt::Debug for EvalBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvalBudget").finish_non_exhaustive()
    }
}

/// Maximum number of visited values, about half a second of work. Comparisons within the cost limit of a policy visit
/// fewer values.
const MAX_STEPS: u64 = 10_000_000;

/// Maximum memory in bytes. A request object has at most 3 MiB of JSON, from which policies build short
/// strings and lists.
const MAX_BYTES: u64 = 32 << 20;

/// Steps between two reads of the cancellation flag.
const STEPS_OF_POLL: u64 = 1_000;

const MIB: u64 = 1 << 20;

const MILLION: u64 = 1_000_000;

impl Default for EvalBudget {
    fn default() -> Self {
        Self::new(MAX_STEPS, MAX_BYTES)
    }
}

impl EvalBudget {
    /// Creates a budget of `steps` visited values and `bytes` of memory.
    #[must_use]
    pub const fn new(steps: u64, bytes: u64) -> Self {
        Self {
            steps: AtomicU64::new(steps),
            bytes: AtomicU64::new(bytes),
            max_steps: steps,
            max_bytes: bytes,
            retained: AtomicU64::new(0),
            exceeded: OnceLock::new(),
            is_cancelled: None,
            unpolled: AtomicU64::new(0),
        }
    }

    /// Returns the first limit that was exceeded. `None` if no limit was exceeded.
    #[must_use]
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get().copied()
    }

    /// Records that the evaluation has exceeded `limit`. Only the first limit is kept.
    pub fn exceed(&self, limit: Exceeded) {
        self.exceeded.get_or_init(|| limit);
    }

    /// Creates a default budget. Evaluations with this budget end soon after `is_cancelled` is set.
    #[must_use]
    pub fn cancelled_by(is_cancelled: Option<Arc<AtomicBool>>) -> Self {
        Self {
            is_cancelled,
            ..Self::default()
        }
    }

    /// Counts `n_steps` units of work, each of some nanoseconds, and periodically reads the cancellation flag. Must
    /// be called during function calls that may run for a long time.
    ///
    /// # Errors
    ///
    /// Returns an error if the evaluation was cancelled. The error ends the evaluation.
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
    /// Returns an error that ends the evaluation if there are no steps left.
    #[inline]
    pub fn step(&self) -> Result<(), EvalError> {
        let left = self.steps.load(Ordering::Relaxed);
        match left.checked_sub(1) {
            Some(left) => {
                self.steps.store(left, Ordering::Relaxed);
                self.poll(1)
            }
            None => {
                let exceeded = Exceeded::Steps(self.max_steps);
                self.exceed(exceeded);
                Err(exceeded.into())
            }
        }
    }

    /// Counts `n_bytes` that are about to be allocated. [`EvalBudget::release`] releases temporary memory.
    ///
    /// # Errors
    ///
    /// Returns an error that ends the evaluation if fewer bytes are left. The caller must then not allocate.
    #[inline]
    pub fn allocate(&self, n_bytes: usize) -> Result<(), EvalError> {
        let left = self.bytes.load(Ordering::Relaxed);
        match left.checked_sub(widened(n_bytes)) {
            Some(left) => {
                self.bytes.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => Err(self.out_of_bytes()),
        }
    }

    /// Checks that `n_bytes` can be allocated, without counting them. Used for temporary memory, and before creating
    /// a large result. The evaluator counts the result itself later.
    ///
    /// # Errors
    ///
    /// Returns an error that ends the evaluation if fewer bytes are left. The caller must then not allocate.
    #[inline]
    pub fn reserve(&self, n_bytes: usize) -> Result<(), EvalError> {
        if self.bytes.load(Ordering::Relaxed) < widened(n_bytes) {
            return Err(self.out_of_bytes());
        }
        Ok(())
    }

    /// Checks that a string or byte sequence of `len` bytes can be created and copied once.
    ///
    /// # Errors
    ///
    /// See [`EvalBudget::reserve`].
    pub fn reserve_text(&self, len: usize) -> Result<(), EvalError> {
        self.reserve(len.saturating_mul(2))
    }

    /// Checks that a list of `len` elements can be created, excluding memory owned by the elements.
    ///
    /// # Errors
    ///
    /// See [`EvalBudget::reserve`].
    pub fn reserve_list(&self, len: usize) -> Result<(), EvalError> {
        self.reserve(len.saturating_mul(size_of::<super::Value>()))
    }

    /// Returns a snapshot of the memory use, for [`EvalBudget::release`] and [`EvalBudget::retain`].
    #[inline]
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            left: self.bytes.load(Ordering::Relaxed),
            retained: self.retained.load(Ordering::Relaxed),
        }
    }

    /// Returns true if memory use has increased since `mark`.
    #[inline]
    #[must_use]
    pub fn is_used_since(&self, mark: Mark) -> bool {
        self.bytes.load(Ordering::Relaxed) < mark.left
    }

    /// Releases memory allocated since `mark`, except `n_kept` bytes of the result. Retained memory is not released.
    #[inline]
    pub fn release(&self, mark: Mark, n_kept: usize) {
        let left = self.bytes.load(Ordering::Relaxed);
        if left >= mark.left || self.exceeded().is_some() {
            return;
        }
        let retained = self
            .retained
            .load(Ordering::Relaxed)
            .saturating_sub(mark.retained);
        let kept = retained.saturating_add(widened(n_kept));
        let released = mark.left.saturating_sub(kept).max(left);
        self.bytes.store(released, Ordering::Relaxed);
    }

    /// Marks the memory allocated since `mark` as still needed after the current step. An example is the value of a
    /// variable.
    pub fn retain(&self, mark: Mark) {
        let used = mark.left.saturating_sub(self.bytes.load(Ordering::Relaxed));
        self.retained
            .store(mark.retained.saturating_add(used), Ordering::Relaxed);
    }

    /// Releases `n_bytes` that were allocated for a temporary value.
    pub fn free(&self, n_bytes: usize) {
        let left = self.bytes.load(Ordering::Relaxed);
        let left = left.saturating_add(widened(n_bytes)).min(self.max_bytes);
        self.bytes.store(left, Ordering::Relaxed);
    }

    /// Returns the bytes that may still be allocated.
    #[must_use]
    pub fn bytes_left(&self) -> usize {
        usize::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    #[cold]
    fn out_of_bytes(&self) -> EvalError {
        let exceeded = Exceeded::Memory(self.max_bytes);
        self.exceed(exceeded);
        self.bytes.store(0, Ordering::Relaxed);
        exceeded.into()
    }
}

fn widened(n_bytes: usize) -> u64 {
    u64::try_from(n_bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn budget_stays_exceeded_after_allocation_beyond_limit() {
        let budget = EvalBudget::new(1, 1 << 20);
        assert_eq!(budget.allocate(1000), Ok(()));
        assert_eq!(budget.exceeded(), None);
        let error = budget.allocate(1 << 20).unwrap_err();
        assert_eq!(
            error.message(),
            "the evaluation needs more than 1 MiB of memory"
        );
        assert!(error.ends_evaluation());
        assert_eq!(budget.exceeded(), Some(Exceeded::Memory(1 << 20)));
        budget.allocate(1).unwrap_err();
    }

    #[test]
    fn reservation_uses_no_bytes_and_fails_beyond_limit() {
        let budget = EvalBudget::new(1, 100);
        budget.reserve(100).unwrap();
        budget.reserve_text(50).unwrap();
        budget.allocate(100).unwrap();
        budget.free(60);
        assert_eq!(budget.bytes_left(), 60);
        budget.reserve(61).unwrap_err();
    }

    #[test]
    fn release_frees_all_bytes_except_those_of_result_and_retained_values() {
        let budget = EvalBudget::new(1, 1_000);
        let outer = budget.mark();
        budget.allocate(100).unwrap();
        let variable = budget.mark();
        budget.allocate(200).unwrap();
        budget.retain(variable);
        budget.allocate(300).unwrap();
        budget.release(outer, 50);
        assert_eq!(budget.bytes_left(), 1_000 - 200 - 50);
        budget.release(outer, 900);
        assert_eq!(budget.bytes_left(), 750);
        budget.allocate(751).unwrap_err();
        budget.release(outer, 0);
        assert_eq!(budget.bytes_left(), 0);
    }

    #[test]
    fn budget_stays_exceeded_after_step_beyond_limit() {
        let budget = EvalBudget::new(1, 1);
        budget.step().unwrap();
        let error = budget.step().unwrap_err();
        assert_eq!(
            error.message(),
            "the evaluation compares more than 1 values"
        );
        assert_eq!(budget.exceeded(), Some(Exceeded::Steps(1)));
    }

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
