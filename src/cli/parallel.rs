//! Runs independent work on several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const MAX_THREADS: usize = 8;

/// The stack size of a thread, in bytes. The main thread usually has this size.
pub(super) const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Maps `items` with `f` on several threads. The results have the order of `items`.
pub(super) fn map<T: Sync, R: Send + Sync>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let n_threads = processors.min(MAX_THREADS).min(items.len());
    if n_threads <= 1 {
        return items.iter().map(f).collect();
    }
    let results: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let (Some(item), Some(result)) = (items.get(n), results.get(n)) else {
                return;
            };
            // Each index is used once, so `set` cannot fail.
            let _ = result.set(f(item));
        }
    };
    thread::scope(|scope| {
        let mut others = Vec::new();
        for _ in 1..n_threads {
            // If a thread cannot be created, the other threads do its work.
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            others.extend(thread.spawn_scoped(scope, work));
        }
        work();
        for other in others {
            if let Err(panic) = other.join() {
                resume_unwind(panic);
            }
        }
    });
    results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

/// Runs `one` and `other` in parallel, and returns both results.
pub(super) fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, &other);
        let one = one();
        let other = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // If the thread cannot be created, `other` runs on this thread.
            Err(_) => other(),
        };
        (one, other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_map_keeps_order_of_items() {
        let items: Vec<usize> = (0..1_000).collect();
        let doubled: Vec<usize> = items.iter().map(|n| n * 2).collect();
        assert_eq!(map(&items, |n| n * 2), doubled);
        assert!(map(&[], |n: &usize| *n).is_empty());
        assert_eq!(both(|| 1, || "a"), (1, "a"));
    }

    #[test]
    #[should_panic(expected = "item 7")]
    fn parallel_map_propagates_panic() {
        let items: Vec<usize> = (0..100).collect();
        let f = |n: &usize| assert!(*n != 7, "item {n}");
        map(&items, f);
    }
}
