//! How much of the stack an evaluation may use before it goes on elsewhere.
//!
//! Plans nest as deep as expressions do, and evaluations nest in one another where variables read each
//! other. Most are shallow, and a thread takes longer to start than most expressions to evaluate. So it is
//! the stack that is measured, by the addresses of what lies on it, and only what really is deep goes on on
//! a thread with a large stack.

use std::cell::Cell;
use std::hint::black_box;

/// How much of a thread's own stack may be used, in bytes: a fourth of what threads have by default.
const SHALLOW_BYTES: usize = 512 * 1024;

/// How much of a large stack may be used, in bytes: all that there is, as nothing is larger.
const DEEP_BYTES: usize = usize::MAX;

thread_local! {
    /// The stack of the evaluations that this thread is in the midst of.
    static AROUND: Cell<Option<Stack>> = const { Cell::new(None) };
}

/// The part of a thread's stack that may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    /// An address where it begins; stacks grow down, or up.
    base: usize,
    n_bytes: usize,
}

impl Stack {
    /// The stack of this thread, from here on, or from where the evaluation around this one began.
    pub(super) fn here() -> Self {
        AROUND.get().unwrap_or_else(|| Self {
            base: address(),
            n_bytes: SHALLOW_BYTES,
        })
    }

    /// The stack of a thread that was made for its large stack.
    pub(super) fn deep() -> Self {
        Self {
            base: address(),
            n_bytes: DEEP_BYTES,
        }
    }

    /// Runs `work`; evaluations within it share this stack.
    pub(super) fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        let _restored = Restored(AROUND.replace(Some(self)));
        work()
    }

    /// Whether no more of it should be used.
    #[inline]
    pub(super) fn is_used_up(self) -> bool {
        address().abs_diff(self.base) > self.n_bytes
    }
}

/// What is put back at the end, also after a panic.
struct Restored(Option<Stack>);

impl Drop for Restored {
    fn drop(&mut self) {
        AROUND.set(self.0);
    }
}

/// The address of what lies on top of the stack.
#[inline]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(black_box(&here)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many levels of recursion there are until the stack is used up, or else `max`.
    fn n_levels(stack: Stack, max: u32) -> u32 {
        let room = black_box([0_u8; 256]);
        let n_deeper = if max == 0 || stack.is_used_up() {
            0
        } else {
            n_levels(stack, max - 1) + 1
        };
        black_box(room);
        n_deeper
    }

    #[test]
    fn what_is_used_is_measured() {
        // A level takes more than its room.
        let most = u32::try_from(SHALLOW_BYTES / 256).unwrap();
        let shallow = n_levels(Stack::here(), most);
        assert!((100..most).contains(&shallow), "{shallow}");
        assert_eq!(n_levels(Stack::deep(), shallow), shallow);
    }

    #[test]
    fn evaluations_within_share_the_stack() {
        let stack = Stack::here();
        let within = stack.enter(Stack::here);
        assert_eq!(stack.base, within.base);
        assert!(AROUND.get().is_none());
    }
}
