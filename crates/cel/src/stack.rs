//! Threads with a large stack, for what recurses over deeply nested texts, trees and values.
//!
//! How deep each may nest is bounded elsewhere. Most are shallow, and a thread takes longer to start than
//! most expressions to check, so that a caller says whether its input is deep. Knows nothing of the work.

use std::cell::Cell;

use super::interrupt;

/// The stack of such a thread, in bytes.
const DEEP_STACK_BYTES: usize = 256 * 1024 * 1024;

/// Texts that nest deeper than this are parsed on a thread with a large stack.
pub(crate) const SHALLOW_NESTING: u32 = 40;

/// Trees deeper than this are walked on a thread with a large stack.
pub const SHALLOW_DEPTH: u32 = 60;

/// Values that nest deeper than this are compared on a thread with a large stack.
pub(crate) const SHALLOW_VALUE_DEPTH: u32 = 100;

thread_local! {
    /// True on a thread with a large stack.
    static IS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, on a thread with a large stack if `deep` and this is none.
///
/// Where no thread can be started, the work is done in place. A caller with many inputs calls this around
/// all of them.
pub fn run_on_deep_stack<T: Send>(deep: bool, work: impl FnOnce() -> T + Send) -> T {
    if !deep || IS_DEEP.get() {
        return work();
    }
    let interrupt = interrupt::current();
    // Left in place by a thread that does not start.
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
            reason = "a thread that took the work gives its value"
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
    fn only_deep_work_leaves_the_thread() {
        let here = name();
        assert_eq!(run_on_deep_stack(false, name), here);
        assert_eq!(run_on_deep_stack(true, name).as_deref(), Some("deep"));
    }

    #[test]
    fn a_deep_thread_is_used_again() {
        let thread = || std::thread::current().id();
        let (outer, inner) =
            run_on_deep_stack(true, || (thread(), run_on_deep_stack(true, thread)));
        assert_eq!(outer, inner);
    }

    #[test]
    fn work_may_change_and_consume_what_it_borrows() {
        let (mut n, text) = (1, String::from("moved"));
        let length = run_on_deep_stack(true, || {
            n += 1;
            text.into_bytes().len()
        });
        assert_eq!((n, length), (2, 5));
    }

    #[test]
    fn a_panic_is_passed_on() {
        let caught = std::panic::catch_unwind(|| run_on_deep_stack(true, || panic!("lost")));
        assert!(caught.is_err());
    }
}
