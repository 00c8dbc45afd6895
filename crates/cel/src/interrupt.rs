//! Interruption of work whose input is untrusted: parsing, checking, planning, cost estimates and analysis.
//!
//! [`Interrupt::run`] installs an [`Interrupt`] for the current thread. Loops and recursions over untrusted input
//! call [`checkpoint`], which polls the interrupt. If the interrupt fires, the checkpoint unwinds the stack to
//! [`Interrupt::run`]. As in rust-analyzer's `salsa`, the unwinding carries a private payload and does not call the
//! panic hook.
//!
//! The functions in between need no error type for an interruption, and cannot mistake a partial result for a
//! complete one. The crate reads no clock: the caller supplies the condition. Without an interrupt, a checkpoint only
//! decrements a counter.
//!
//! INVARIANT: the initializer of a `LazyLock` never reaches a checkpoint, because unwinding would poison the
//! lock. Such an initializer runs in [`shielded`] if it parses or checks anything.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// Checkpoints between two polls of the condition. A checkpoint represents less than 10 µs of work.
const CHECKPOINTS_PER_POLL: u32 = 128;

/// A condition that ends work early. Also stores the field being processed. Clones share their state.
#[derive(Clone)]
pub struct Interrupt(Arc<Shared>);

struct Shared {
    should_stop: Box<dyn Fn() -> bool + Send + Sync>,
    /// The field being processed, or an empty string.
    field: Mutex<String>,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt")
            .field("field", &self.field())
            .finish_non_exhaustive()
    }
}

/// Error for work that was interrupted before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The field being processed, such as `spec.validations[0].expression`. `None` if it is unknown.
    pub field: Option<String>,
}

/// Panic payload that marks an interruption.
struct Unwind;

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
    static COUNTDOWN: Cell<u32> = const { Cell::new(CHECKPOINTS_PER_POLL) };
}

impl Interrupt {
    /// Creates an interrupt that fires as soon as `should_stop` returns true. `should_stop` is called often, from
    /// several threads.
    #[must_use]
    pub fn new(should_stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            should_stop: Box::new(should_stop),
            field: Mutex::default(),
        }))
    }

    /// Runs `work` on this thread until its end, or until the interrupt fires.
    ///
    /// # Errors
    ///
    /// Returns the field being processed if the interrupt fired before the end of `work`.
    ///
    /// # Example
    /// ```
    /// use cel::interrupt::{Interrupt, checkpoint, working_on};
    ///
    /// let endless = || {
    ///     working_on("spec.validations[0].expression");
    ///     loop {
    ///         checkpoint();
    ///     }
    /// };
    /// let interrupted = Interrupt::new(|| true).run(endless).unwrap_err();
    /// assert_eq!(interrupted.field.as_deref(), Some("spec.validations[0].expression"));
    /// ```
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T, Interrupted> {
        let outcome = {
            let _restored = Installed::new(Some(self.clone()));
            catch_unwind(AssertUnwindSafe(work))
        };
        outcome.map_err(|payload| {
            if is_interruption(payload.as_ref()) {
                Interrupted {
                    field: self.field(),
                }
            } else {
                resume_unwind(payload)
            }
        })
    }

    /// Returns the field being processed. `None` if it is unknown.
    #[must_use]
    pub fn field(&self) -> Option<String> {
        let field = self.0.field.lock().unwrap_or_else(PoisonError::into_inner);
        (!field.is_empty()).then(|| field.clone())
    }

    fn set_field(&self, name: &str) {
        let mut field = self.0.field.lock().unwrap_or_else(PoisonError::into_inner);
        field.clear();
        field.push_str(name);
    }
}

/// Returns true if the panic payload `payload` marks an interruption.
#[must_use]
pub fn is_interruption(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Unwind>()
}

/// Ends the work if the interrupt of this thread has fired. Work of unbounded length must call this at least
/// once per 10 µs.
#[inline]
pub fn checkpoint() {
    checkpoint_of(1);
}

/// Counts as `n` calls of [`checkpoint`], for a step with as much work as `n` checkpoints represent.
#[inline]
pub fn checkpoint_of(n: usize) {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    // `Cell::set` of a `LocalKey` is not inlined; `with` is.
    let is_due = COUNTDOWN.with(|countdown| match countdown.get().checked_sub(n) {
        Some(left) => {
            countdown.set(left);
            false
        }
        None => true,
    });
    if is_due {
        poll();
    }
}

/// Sets the field whose expression is being processed.
pub fn working_on(field: &str) {
    CURRENT.with_borrow(|current| {
        if let Some(interrupt) = current {
            interrupt.set_field(field);
        }
    });
}

/// Runs `work`, which must be short, without interruptions.
pub fn shielded<T>(work: impl FnOnce() -> T) -> T {
    let _restored = Installed::new(None);
    work()
}

#[cold]
fn poll() {
    COUNTDOWN.set(CHECKPOINTS_PER_POLL);
    let fires = CURRENT.with_borrow(|current| {
        let interrupt = current.as_ref();
        interrupt.is_some_and(|interrupt| (interrupt.0.should_stop)())
    });
    // A second unwinding during the first would abort the process.
    if fires && !std::thread::panicking() {
        resume_unwind(Box::new(Unwind));
    }
}

/// Returns the interrupt of this thread, for another thread that continues the work of this thread.
pub(crate) fn current() -> Option<Interrupt> {
    CURRENT.with_borrow(Clone::clone)
}

/// Restores the interrupt of the thread when dropped.
pub(crate) struct Installed(Option<Interrupt>);

impl Installed {
    pub(crate) fn new(interrupt: Option<Interrupt>) -> Self {
        Self(CURRENT.replace(interrupt))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        CURRENT.replace(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::stack::run_on_deep_stack;

    fn endless() -> u32 {
        loop {
            checkpoint();
        }
    }

    #[test]
    fn work_is_interrupted_once_condition_is_true() {
        let n_polls = Arc::new(AtomicU32::new(0));
        let polls = Arc::clone(&n_polls);
        let interrupt = Interrupt::new(move || polls.fetch_add(1, Ordering::Relaxed) == 9);
        assert_eq!(interrupt.run(endless), Err(Interrupted { field: None }));
        assert_eq!(n_polls.load(Ordering::Relaxed), 10);
    }

    #[test]
    fn finished_work_returns_its_value() {
        assert_eq!(Interrupt::new(|| false).run(|| 7), Ok(7));
        // The interrupt is no longer installed.
        assert!(current().is_none());
        (0..1_000).for_each(|_| checkpoint());
    }

    #[test]
    fn interruption_error_contains_latest_field() {
        let work = || {
            working_on("spec.variables[0].expression");
            working_on("spec.validations[1].expression");
            endless()
        };
        let field = Interrupt::new(|| true).run(work).unwrap_err().field;
        assert_eq!(field.as_deref(), Some("spec.validations[1].expression"));
    }

    #[test]
    fn work_on_deep_stack_is_interrupted() {
        let interrupt = Interrupt::new(|| true);
        let outcome = interrupt.run(|| run_on_deep_stack(true, endless));
        outcome.unwrap_err();
    }

    #[test]
    fn panic_of_interruptible_work_is_propagated() {
        let interrupt = Interrupt::new(|| false);
        let work = || interrupt.run(|| -> u32 { panic!("a bug") });
        let payload = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
        assert!(!is_interruption(payload.as_ref()));
        assert!(current().is_none());
    }

    #[test]
    fn shielded_work_is_not_interrupted() {
        let work = || shielded(|| (0..1_000).for_each(|_| checkpoint()));
        assert_eq!(Interrupt::new(|| true).run(work), Ok(()));
    }
}
