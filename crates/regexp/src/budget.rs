//! Memory accounting of engines: budgets, and memory reservations. Dropping an engine releases its reservation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Maximum total bytes of the engines that all budgets retain.
pub const MAX_KEPT_BYTES: usize = 12 << 20;

/// Maximum bytes of the engines that one [`EngineBudget`] retains. A budget belongs to a policy or an expression.
pub const MAX_OWNER_BYTES: usize = 2 << 20;

/// Maximum bytes of the engines in the shared cache.
pub const MAX_CACHE_BYTES: usize = 4 << 20;

/// Total bytes of the engines that all budgets retain.
static KEPT: Counter = Counter::new(MAX_KEPT_BYTES);

static CACHED: Counter = Counter::new(MAX_CACHE_BYTES);

static BUILT: AtomicU64 = AtomicU64::new(0);

/// Current memory use of engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineBytes {
    /// Total bytes of the engines that all budgets retain, at most [`MAX_KEPT_BYTES`].
    pub kept: usize,
    /// Bytes of the engines in the shared cache, at most [`MAX_CACHE_BYTES`].
    pub cached: usize,
}

/// Returns the current memory use of engines.
#[must_use]
pub fn engine_bytes() -> EngineBytes {
    EngineBytes {
        kept: KEPT.used(),
        cached: CACHED.used(),
    }
}

/// Returns the number of engines built since the process started.
#[must_use]
pub fn n_engines_built() -> u64 {
    BUILT.load(Ordering::Relaxed)
}

pub(super) fn count_built() {
    BUILT.fetch_add(1, Ordering::Relaxed);
}

/// A byte counter with a limit.
#[derive(Debug)]
struct Counter {
    used: AtomicUsize,
    max: usize,
}

impl Counter {
    const fn new(max: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max,
        }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Adds `n_bytes` and returns true. If the sum would exceed the limit, adds nothing and returns false.
    fn add(&self, n_bytes: usize) -> bool {
        let added = |used: usize| {
            let sum = used.checked_add(n_bytes)?;
            (sum <= self.max).then_some(sum)
        };
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        self.used.fetch_update(set, get, added).is_ok()
    }

    fn subtract(&self, n_bytes: usize) {
        self.used.fetch_sub(n_bytes, Ordering::Relaxed);
    }
}

/// Memory limit of the engines of one owner, such as a policy.
#[derive(Debug)]
pub struct EngineBudget {
    counter: Counter,
    is_trial: bool,
}

impl Default for EngineBudget {
    fn default() -> Self {
        Self {
            counter: Counter::new(MAX_OWNER_BYTES),
            is_trial: false,
        }
    }
}

impl EngineBudget {
    /// Creates a budget for an analysis that uses each pattern for only a few searches. The budget retains no engine.
    ///
    /// Each search builds a temporary machine. A search returns an error if its pattern has more than
    /// [`MAX_TRIAL_INSTRUCTIONS`](super::MAX_TRIAL_INSTRUCTIONS) instructions.
    #[must_use]
    pub const fn for_trials() -> Self {
        Self {
            counter: Counter::new(0),
            is_trial: true,
        }
    }

    /// Returns true if the budget retains no engine.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Returns the bytes that the owner's engines currently use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.counter.used()
    }
}

/// Reserved bytes, released when the reservation is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    bytes: AtomicUsize,
    account: Account,
}

/// The counters that a reservation increases.
#[derive(Debug)]
enum Account {
    /// The counter of the engine's owner and the counter of all owners.
    Kept(Arc<EngineBudget>),
    /// The counter of the shared cache.
    Cached,
    /// No counter, because the engine exists for one search only.
    Transient,
}

impl Reservation {
    /// Reserves `n_bytes` for an engine that `owner` retains. Returns `None` if a limit would be exceeded.
    pub(super) fn kept(owner: &Arc<EngineBudget>, n_bytes: usize) -> Option<Self> {
        Self::new(Account::Kept(Arc::clone(owner)), n_bytes)
    }

    /// Reserves `n_bytes` for an engine in the shared cache. Returns `None` if the limit of the cache would be
    /// exceeded.
    pub(super) fn cached(n_bytes: usize) -> Option<Self> {
        Self::new(Account::Cached, n_bytes)
    }

    /// Creates an empty reservation for an engine that exists for one search. The caller counts the engine's memory.
    pub(super) const fn transient() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            account: Account::Transient,
        }
    }

    fn new(account: Account, n_bytes: usize) -> Option<Self> {
        let reservation = Self {
            bytes: AtomicUsize::new(0),
            account,
        };
        reservation.grow(n_bytes).then_some(reservation)
    }

    /// Reserves `n_bytes` more and returns true. If a limit would be exceeded, reserves nothing and returns false.
    pub(super) fn grow(&self, n_bytes: usize) -> bool {
        let is_reserved = match &self.account {
            Account::Kept(owner) => {
                let is_owned = owner.counter.add(n_bytes);
                let is_reserved = is_owned && KEPT.add(n_bytes);
                if is_owned && !is_reserved {
                    owner.counter.subtract(n_bytes);
                }
                is_reserved
            }
            Account::Cached => CACHED.add(n_bytes),
            Account::Transient => true,
        };
        if is_reserved {
            self.bytes.fetch_add(n_bytes, Ordering::Relaxed);
        }
        is_reserved
    }

    pub(super) fn shrink(&self, n_bytes: usize) {
        self.bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        self.release(n_bytes);
    }

    fn release(&self, n_bytes: usize) {
        match &self.account {
            Account::Kept(owner) => {
                owner.counter.subtract(n_bytes);
                KEPT.subtract(n_bytes);
            }
            Account::Cached => CACHED.subtract(n_bytes),
            Account::Transient => {}
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let n_bytes = *self.bytes.get_mut();
        self.release(n_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addition_beyond_counter_limit_fails() {
        let counter = Counter::new(10);
        assert!(counter.add(4) && counter.add(6) && counter.add(0));
        assert!(!counter.add(1) && !counter.add(usize::MAX));
        assert_eq!(counter.used(), 10);
        counter.subtract(3);
        assert_eq!(counter.used(), 7);
        assert!(!counter.add(4) && counter.add(3));
    }

    #[test]
    fn retained_reservation_is_charged_to_its_owner() {
        let owner = Arc::new(EngineBudget::default());
        assert!(!owner.is_trial());
        assert!(Reservation::kept(&owner, MAX_OWNER_BYTES + 1).is_none());
        assert_eq!(owner.used(), 0);
        let reservation = Reservation::kept(&owner, 1_000).unwrap();
        let other = Reservation::kept(&owner, 10).unwrap();
        assert_eq!(owner.used(), 1_010);
        assert!(engine_bytes().kept >= 1_010);
        assert!(reservation.grow(500) && !reservation.grow(MAX_OWNER_BYTES));
        assert_eq!(owner.used(), 1_510);
        reservation.shrink(300);
        assert_eq!(owner.used(), 1_210);
        drop(reservation);
        assert_eq!(owner.used(), 10);
        drop(other);
        assert_eq!(owner.used(), 0);
    }

    #[test]
    fn trial_budget_retains_nothing() {
        let owner = Arc::new(EngineBudget::for_trials());
        assert!(owner.is_trial());
        assert!(Reservation::kept(&owner, 1).is_none());
        assert!(Reservation::transient().grow(usize::MAX));
    }

    #[test]
    fn cached_reservation_increases_cached_bytes() {
        assert!(Reservation::cached(MAX_CACHE_BYTES + 1).is_none());
        let reservation = crate::cache::reserve(5_000).unwrap();
        assert!(engine_bytes().cached >= 5_000);
        drop(reservation);
    }
}
