//! Stack usage of evaluations.
//!
//! Plans are as deep as their expressions, and evaluations nest when variables refer to other variables. Most
//! evaluations are shallow, and starting a thread takes longer than most evaluations. Evaluations therefore measure
//! their stack usage by addresses, and only deep evaluations continue on a thread with a large stack.

use std::cell::Cell;
use std::hint::black_box;

/// Usable part of a thread's own stack, in bytes: a quarter of the default size.
const SHALLOW_BYTES: usize = 512 * 1024;

/// Usable part of a large stack, in bytes. Unlimited, because an evaluation cannot move to an even larger stack.
const DEEP_BYTES: usize = usize::MAX;

thread_local! {
    /// Stack of the evaluations in progress on this thread. `None` if there are none.
    static ENCLOSING: Cell<Option<Stack>> = const { Cell::new(None) };
}

/// The usable part of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    /// Address at which the stack begins. Stacks may grow in either direction.
    base: usize,
    n_bytes: usize,
}

impl Stack {
    /// Returns the stack of the enclosing evaluation on this thread. If there is none, returns a stack that starts
    /// here.
    pub(super) fn here() -> Self {
        ENCLOSING.get().unwrap_or_else(|| Self {
            base: address(),
            n_bytes: SHALLOW_BYTES,
        })
    }

    /// Returns the stack of the current thread, which must have been created with a large stack.
    pub(super) fn deep() -> Self {
        Self {
            base: address(),
            n_bytes: DEEP_BYTES,
        }
    }

    /// Runs `work`. Evaluations within `work` share this stack.
    pub(super) fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        let _restored = Restored(ENCLOSING.replace(Some(self)));
        work()
    }

    #[inline]
    pub(super) fn is_used_up(self) -> bool {
        address().abs_diff(self.base) > self.n_bytes
    }
}

/// Restores the previous stack when dropped, including after a panic.
struct Restored(Option<Stack>);

impl Drop for Restored {
    fn drop(&mut self) {
        ENCLOSING.set(self.0);
    }
}

/// Returns an address at the top of the stack.
#[inline]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(black_box(&here)).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of recursion levels until the stack is used up, but at most `max`.
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
    fn recursion_is_limited_on_shallow_but_not_on_deep_stack() {
        // Each level uses more than 256 bytes, so the stack is used up before `most` levels.
        let most = u32::try_from(SHALLOW_BYTES / 256).unwrap();
        let shallow = n_levels(Stack::here(), most);
        assert!((100..most).contains(&shallow), "{shallow}");
        assert_eq!(n_levels(Stack::deep(), shallow), shallow);
    }

    #[test]
    fn nested_evaluations_share_stack() {
        let stack = Stack::here();
        let within = stack.enter(Stack::here);
        assert_eq!(stack.base, within.base);
        assert!(ENCLOSING.get().is_none());
    }
}
