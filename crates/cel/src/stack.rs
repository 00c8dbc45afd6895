//! Threads with a large stack, for recursion over deeply nested sources, trees and values.
//!
//! Other modules bound the nesting depth. Most inputs are shallow, and starting a thread takes longer than most
//! checks. The caller therefore decides whether its input is deep.

use std::cell::Cell;

use super::interrupt;

/// Stack size of a thread with a large stack, in bytes.
const DEEP_STACK_BYTES: usize = 256 * 1024 * 1024;

/// Nesting depth above which sources are parsed on a thread with a large stack.
pub(crate) const SHALLOW_NESTING: u32 = 40;

/// Depth above which trees are traversed on a thread with a large stack.
pub const SHALLOW_DEPTH: u32 = 60;

/// Nesting depth above which values are compared on a thread with a large stack.
pub(crate) const SHALLOW_VALUE_DEPTH: u32 = 100;

thread_local! {
    /// True on a thread with a large stack.
    static IS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`. If `deep` is true and the current thread has no large stack, runs `work` on a new thread with a large
/// stack.
///
/// If no thread can be started, `work` runs in place. Callers with many inputs should enclose all of them in
/// one call.
pub fn run_on_deep_stack<T: Send>(deep: bool, work: impl FnOnce() -> T + Send) -> T {
    if !deep || IS_DEEP.get() {
        return work();
    }
    let interrupt = interrupt::current();
    // `pending` still contains the work if the thread does not start.
    let mut pending = Some(work);
    let outcome = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("deep".into())
            .stack_size(DEEP_STACK_BYTES)
            .spawn_scoped(scope, || {
                IS_DEEP.set(true);
                let _installed = interrupt::Installed::new(interrupt);
                pending.take().map(|work| work())
            })
            .ok()
            .map(std::thread::ScopedJoinHandle::join)
    });
    match (outcome, pending) {
        (Some(Ok(Some(value))), _) => value,
        (Some(Err(panic)), _) => std::panic::resume_unwind(panic),
        (_, Some(work)) => work(),
        #[expect(
            clippy::unreachable,
            reason = "a thread that took the work returns its value"
        )]
        (_, None) => unreachable!("work that was started has a value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Option<String> {
        std::thread::current().name().map(str::to_owned)
    }

    #[test]
    fn shallow_work_stays_on_its_thread() {
        let here = name();
        assert_eq!(run_on_deep_stack(false, name), here);
        assert_eq!(run_on_deep_stack(true, name).as_deref(), Some("deep"));
    }

    #[test]
    fn nested_work_on_deep_stack_reuses_thread() {
        let thread = || std::thread::current().id();
        let (outer, inner) =
            run_on_deep_stack(true, || (thread(), run_on_deep_stack(true, thread)));
        assert_eq!(outer, inner);
    }

    #[test]
    fn work_on_deep_stack_may_mutate_and_move_captures() {
        let (mut n, text) = (1, String::from("moved"));
        let length = run_on_deep_stack(true, || {
            n += 1;
            text.into_bytes().len()
        });
        assert_eq!((n, length), (2, 5));
    }

    #[test]
    fn panic_of_work_on_deep_stack_is_propagated() {
        let caught = std::panic::catch_unwind(|| run_on_deep_stack(true, || panic!("lost")));
        assert!(caught.is_err());
    }
}
