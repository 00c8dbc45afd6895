//! Work that keeps a thread busy: checks, the parsing of schemas, and probes. Each kind has its own number of threads, so
//! that none of them starves another.
//!
//! `run_within` bounds work by time. Work that does not stop in time is abandoned: its thread counts as
//! stuck, and another takes its place, up to `MAX_STUCK`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;

/// Kinds of work on a blocking thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Compiling and type-checking a policy.
    Check,
    /// Checking a policy that was interrupted before.
    DeferredCheck,
    /// Checking a policy that takes seconds.
    SlowCheck,
    /// Reading a document of schemas.
    Schemas,
    /// Running the probes of a policy.
    Probes,
}

/// The number of threads that each kind of work may keep busy.
const CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 2 };
const DEFERRED_CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const SLOW_CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const SCHEMA_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const PROBE_THREADS: usize = 2;

/// Tests whose time is paused must not wait for the threads of others: their time would go on meanwhile.
const SHARED_BY_TESTS: usize = 256;

/// The most stuck threads that are replaced. Beyond it a stuck thread keeps its place, until no check can start and
/// the workers make no progress.
const MAX_STUCK: usize = 4;

/// The number of threads for blocking work: those of each kind, replacements of stuck ones, and a reserve for the
/// runtime itself, which looks up names there.
pub const THREADS: usize = CHECK_THREADS
    + DEFERRED_CHECK_THREADS
    + SLOW_CHECK_THREADS
    + SCHEMA_THREADS
    + PROBE_THREADS
    + MAX_STUCK
    + 3;

static CHECKS: Semaphore = Semaphore::const_new(CHECK_THREADS);
static DEFERRED_CHECKS: Semaphore = Semaphore::const_new(DEFERRED_CHECK_THREADS);
static SLOW_CHECKS: Semaphore = Semaphore::const_new(SLOW_CHECK_THREADS);
static SCHEMAS: Semaphore = Semaphore::const_new(SCHEMA_THREADS);
static PROBES: Semaphore = Semaphore::const_new(PROBE_THREADS);

/// Stuck threads of the process.
static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Checks that wait for a thread of [`Kind::Check`].
static WAITING_CHECKS: AtomicUsize = AtomicUsize::new(0);
static WAITING_OTHERS: AtomicUsize = AtomicUsize::new(0);

fn semaphore(kind: Kind) -> &'static Semaphore {
    match kind {
        Kind::Check => &CHECKS,
        Kind::DeferredCheck => &DEFERRED_CHECKS,
        Kind::SlowCheck => &SLOW_CHECKS,
        Kind::Schemas => &SCHEMAS,
        Kind::Probes => &PROBES,
    }
}

/// Returns the number of threads whose work was abandoned and has not ended.
#[must_use]
pub fn n_stuck() -> usize {
    STUCK.load(Ordering::Relaxed)
}

/// Returns true if a check waits for a thread of [`Kind::Check`].
pub(crate) fn has_waiting_check() -> bool {
    WAITING_CHECKS.load(Ordering::Relaxed) > 0
}

/// Runs `work` on a thread of its kind, once one is free.
///
/// The thread stays taken until `work` has ended, also if the caller is dropped.
///
/// # Errors
/// If `work` panics, or the process ends before it began.
pub(crate) async fn run<T: Send + 'static>(
    kind: Kind,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // The semaphores are never closed. If one were, the work would still run.
    let permit = semaphore(kind).acquire().await.ok();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
}

/// Time limits of one piece of work, from the start of its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    /// The time after which other work that waits ends this.
    pub(crate) turn: Duration,
    /// The time after which the stop flag is set in any case.
    pub(crate) deadline: Duration,
    /// The time that it may take to stop.
    pub(crate) grace: Duration,
}

/// The interval of polls for waiting work.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Sets the stop flag when it is dropped, since no caller waits for the work any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Places for work of one kind, and the count of stuck threads.
#[derive(Clone, Copy)]
struct Places {
    semaphore: &'static Semaphore,
    n_waiting: &'static AtomicUsize,
    n_stuck: &'static AtomicUsize,
}

/// Counts a caller that waits for a place until it is dropped.
struct Waiting(&'static AtomicUsize);

impl Waiting {
    fn new(n_waiting: &'static AtomicUsize) -> Self {
        n_waiting.fetch_add(1, Ordering::Relaxed);
        Self(n_waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of a piece of work.
struct Place {
    n_stuck: &'static AtomicUsize,
    permit: Mutex<Option<SemaphorePermit<'static>>>,
    /// True once the work was abandoned.
    is_stuck: AtomicBool,
}

impl Place {
    /// Gives the place to other work, unless too many threads are stuck.
    fn abandon(&self) {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a permit the work has just ended.
        if permit.is_none() {
            return;
        }
        self.is_stuck.store(true, Ordering::Relaxed);
        if self.n_stuck.fetch_add(1, Ordering::Relaxed) < MAX_STUCK {
            permit.take();
        }
    }
}

/// Ends the use of a place when dropped, also by a panic.
struct Occupied(Arc<Place>);

impl Drop for Occupied {
    fn drop(&mut self) {
        let mut permit = self.0.permit.lock().unwrap_or_else(PoisonError::into_inner);
        permit.take();
        if self.0.is_stuck.load(Ordering::Relaxed) {
            self.0.n_stuck.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Runs `work` on a thread of its kind, once one is free, for a limited time.
///
/// `stop` is set at the deadline, or after a turn if `is_contended` returns true, or when the caller is dropped; `work`
/// is expected to end then. The result is `None` if it does not: the work is abandoned, and its thread is stuck.
///
/// # Errors
/// If `work` panics, or the process ends before it began.
pub(crate) async fn run_within<T: Send + 'static>(
    kind: Kind,
    limit: TimeLimit,
    stop: Arc<AtomicBool>,
    is_contended: impl Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, JoinError> {
    let places = Places {
        semaphore: semaphore(kind),
        n_waiting: match kind {
            Kind::Check => &WAITING_CHECKS,
            _ => &WAITING_OTHERS,
        },
        n_stuck: &STUCK,
    };
    run_in(places, limit, stop, is_contended, work).await
}

async fn run_in<T: Send + 'static>(
    places: Places,
    limit: TimeLimit,
    stop: Arc<AtomicBool>,
    is_contended: impl Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, JoinError> {
    let waiting = Waiting::new(places.n_waiting);
    // The semaphores are never closed. If one were, the work would still run.
    let permit = places.semaphore.acquire().await.ok();
    drop(waiting);
    let place = Arc::new(Place {
        n_stuck: places.n_stuck,
        permit: Mutex::new(permit),
        is_stuck: AtomicBool::new(false),
    });
    let stopping = StopOnDrop(stop);
    let (started, begun) = oneshot::channel();
    let occupied = Occupied(Arc::clone(&place));
    let mut work = tokio::task::spawn_blocking(move || {
        let _occupied = occupied;
        started.send(()).ok();
        work()
    });
    // The runtime may have no thread at once.
    drop(begun.await);
    let start = Instant::now();
    let deadline = start + limit.deadline;
    let mut next = (start + limit.turn).min(deadline);
    loop {
        if let Ok(outcome) = tokio::time::timeout_at(next, &mut work).await {
            return outcome.map(Some);
        }
        if next >= deadline || is_contended() {
            break;
        }
        next = (Instant::now() + POLL_INTERVAL).min(deadline);
    }
    drop(stopping);
    match tokio::time::timeout(limit.grace, &mut work).await {
        Ok(outcome) => outcome.map(Some),
        Err(_) => {
            place.abandon();
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn probes_that_hang_do_not_stop_checks() {
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = std::sync::Arc::new(std::sync::Mutex::new(blocked));
        let hung: Vec<_> = (0..PROBE_THREADS + 5)
            .map(|_| {
                let blocked = std::sync::Arc::clone(&blocked);
                let work = move || blocked.lock().unwrap().recv().is_ok();
                tokio::spawn(run(Kind::Probes, work))
            })
            .collect();
        while PROBES.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(run(Kind::Check, || 1).await.unwrap(), 1);
        assert_eq!(run(Kind::Schemas, || 2).await.unwrap(), 2);
        drop(release);
        for task in hung {
            task.await.unwrap().unwrap();
        }
        // All are given back; those of other tests too, in the end.
        let all = u32::try_from(PROBE_THREADS).unwrap();
        assert!(PROBES.acquire_many(all).await.is_ok());
    }

    #[tokio::test]
    async fn panic_releases_thread() {
        for _ in 0..=CHECK_THREADS {
            let outcome = run(Kind::Check, || panic!("hostile")).await;
            assert!(outcome.unwrap_err().is_panic());
        }
    }

    const LIMIT: TimeLimit = TimeLimit {
        turn: Duration::from_millis(10),
        deadline: Duration::from_millis(40),
        grace: Duration::from_millis(40),
    };

    /// Runs until `stop` is set.
    fn until(stop: &Arc<AtomicBool>) -> impl FnOnce() -> Duration + Send + 'static {
        let stop = Arc::clone(stop);
        move || {
            let start = std::time::Instant::now();
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            start.elapsed()
        }
    }

    #[tokio::test]
    async fn run_within_stops_work_at_its_deadline() {
        let stop = Arc::default();
        let work = until(&stop);
        let took = run_within(Kind::Check, LIMIT, stop, || false, work).await;
        let took = took.unwrap().unwrap();
        assert!(took >= LIMIT.deadline, "{took:?}");
    }

    #[tokio::test]
    async fn run_within_stops_work_after_its_turn_if_other_work_waits() {
        let limit = TimeLimit {
            deadline: Duration::from_secs(3600),
            ..LIMIT
        };
        let stop = Arc::default();
        let work = until(&stop);
        let took = run_within(Kind::Check, limit, stop, || true, work).await;
        assert!(took.unwrap().unwrap() >= limit.turn);
    }

    #[tokio::test]
    async fn run_within_stops_work_whose_caller_is_dropped() {
        let stop: Arc<AtomicBool> = Arc::default();
        let (ended, end) = oneshot::channel();
        let work = until(&stop);
        let limit = TimeLimit {
            turn: Duration::from_secs(3600),
            deadline: Duration::from_secs(3600),
            ..LIMIT
        };
        let run = run_within(
            Kind::Check,
            limit,
            Arc::clone(&stop),
            || false,
            move || {
                work();
                ended.send(()).ok();
            },
        );
        assert!(tokio::time::timeout(LIMIT.turn, run).await.is_err());
        end.await.unwrap();
    }

    #[tokio::test]
    async fn run_within_replaces_stuck_threads_up_to_a_bound() {
        static SEMAPHORE: Semaphore = Semaphore::const_new(1);
        static N_STUCK: AtomicUsize = AtomicUsize::new(0);
        const PLACES: Places = Places {
            semaphore: &SEMAPHORE,
            n_waiting: &WAITING_OTHERS,
            n_stuck: &N_STUCK,
        };
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let hang = || {
            let blocked = Arc::clone(&blocked);
            let work = move || blocked.lock().unwrap().recv().is_ok();
            run_in(PLACES, LIMIT, Arc::default(), || false, work)
        };
        let work = || run_in(PLACES, LIMIT, Arc::default(), || false, || 1);
        for n in 1..=MAX_STUCK {
            assert_eq!(hang().await.unwrap(), None);
            assert_eq!(N_STUCK.load(Ordering::Relaxed), n);
            // Another thread takes its place.
            assert_eq!(work().await.unwrap(), Some(1));
        }
        // The next one keeps its place.
        assert_eq!(hang().await.unwrap(), None);
        let waiting = tokio::time::timeout(LIMIT.deadline, work());
        assert!(waiting.await.is_err());
        drop(release);
        assert_eq!(work().await.unwrap(), Some(1));
        while N_STUCK.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    }
}
