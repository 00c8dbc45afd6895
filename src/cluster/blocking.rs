//! Runs CPU-bound work on blocking threads: checks, parsing of schemas, and probes. Each kind of work has its own
//! thread limit, so that one kind cannot use up the threads of another kind.
//!
//! `run_within` limits the duration of work. If the work does not stop in time, its result is abandoned and its
//! thread counts as stuck. At most `MAX_STUCK` stuck threads are replaced by additional threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Compiles and type-checks a policy.
    Check,
    /// Continues a check that was interrupted.
    DeferredCheck,
    /// Runs a check that takes seconds.
    SlowCheck,
    /// Parses an OpenAPI or discovery document.
    Schemas,
    /// Runs the probes of a policy.
    Probes,
}

const CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 2 };
const DEFERRED_CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const SLOW_CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const SCHEMA_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const PROBE_THREADS: usize = 2;

/// The number of threads for each kind of work in tests. The number is so large that no test waits for the threads of
/// another test. In a test with paused time, such a wait would advance the time.
const SHARED_BY_TESTS: usize = 256;

/// The maximum number of stuck threads that are replaced by additional threads. Each further stuck thread reduces the
/// number of usable threads. If none is left for checks, no check can start.
const MAX_STUCK: usize = 4;

/// The maximum number of blocking threads: the threads for each kind of work, the replacements of stuck threads, and
/// some threads on which the async runtime resolves host names.
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

static STUCK: AtomicUsize = AtomicUsize::new(0);

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

/// Returns the number of threads that still run abandoned work.
#[must_use]
pub fn n_stuck() -> usize {
    STUCK.load(Ordering::Relaxed)
}

/// Returns true if a check waits for a thread for [`Kind::Check`].
pub(crate) fn has_waiting_check() -> bool {
    WAITING_CHECKS.load(Ordering::Relaxed) > 0
}

/// Runs `work` on a blocking thread. Waits until the number of threads for `kind` allows it.
///
/// The thread stays occupied until `work` has ended, even if the returned future is dropped earlier.
///
/// # Errors
/// Returns an error if `work` panics, or if the runtime shuts down before `work` starts.
pub(crate) async fn run<T: Send + 'static>(
    kind: Kind,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // The semaphores are never closed. If one were closed, `work` would run without a permit.
    let permit = semaphore(kind).acquire().await.ok();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
}

/// The time limits of one call of [`run_within`]. `turn` and `deadline` are measured from the start of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    /// The time after which the work is stopped if other work waits for a thread.
    pub(crate) turn: Duration,
    /// The time after which the work is stopped in any case.
    pub(crate) deadline: Duration,
    /// The maximum time between the stop and the end of the work. Work that takes longer is abandoned.
    pub(crate) grace: Duration,
}

/// The interval at which [`run_within`] checks whether other work waits for a thread.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A guard that stops the work when dropped. If the caller drops the future of the work, the result is not needed.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
struct ThreadPool {
    semaphore: &'static Semaphore,
    n_waiting: &'static AtomicUsize,
    n_stuck: &'static AtomicUsize,
}

/// A guard that counts a waiting caller until dropped.
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

struct ThreadSlot {
    n_stuck: &'static AtomicUsize,
    permit: Mutex<Option<SemaphorePermit<'static>>>,
    is_stuck: AtomicBool,
}

impl ThreadSlot {
    /// Releases the thread's permit to other work, unless too many threads are stuck.
    fn abandon(&self) {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        // If there is no permit, the work has ended in the meantime.
        if permit.is_none() {
            return;
        }
        self.is_stuck.store(true, Ordering::Relaxed);
        if self.n_stuck.fetch_add(1, Ordering::Relaxed) < MAX_STUCK {
            permit.take();
        }
    }
}

/// A guard that releases the thread's permit when the work ends or panics.
struct Occupied(Arc<ThreadSlot>);

impl Drop for Occupied {
    fn drop(&mut self) {
        let mut permit = self.0.permit.lock().unwrap_or_else(PoisonError::into_inner);
        permit.take();
        if self.0.is_stuck.load(Ordering::Relaxed) {
            self.0.n_stuck.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Runs `work` on a blocking thread for a limited time. Waits until the number of threads for `kind` allows it.
///
/// `work` must end soon after `stop` becomes true. `stop` becomes true in these cases:
///
/// - `limit.deadline` has passed.
/// - `limit.turn` has passed and `is_contended` returns true.
/// - The returned future is dropped.
///
/// If `work` does not end within `limit.grace` after that, it is abandoned and its thread counts as stuck. The result
/// is then `None`.
///
/// # Errors
/// Returns an error if `work` panics, or if the runtime shuts down before `work` starts.
pub(crate) async fn run_within<T: Send + 'static>(
    kind: Kind,
    limit: TimeLimit,
    stop: Arc<AtomicBool>,
    is_contended: impl Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, JoinError> {
    let pool = ThreadPool {
        semaphore: semaphore(kind),
        n_waiting: match kind {
            Kind::Check => &WAITING_CHECKS,
            _ => &WAITING_OTHERS,
        },
        n_stuck: &STUCK,
    };
    run_in(pool, limit, stop, is_contended, work).await
}

async fn run_in<T: Send + 'static>(
    pool: ThreadPool,
    limit: TimeLimit,
    stop: Arc<AtomicBool>,
    is_contended: impl Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, JoinError> {
    let waiting = Waiting::new(pool.n_waiting);
    // The semaphores are never closed. If one were closed, `work` would run without a permit.
    let permit = pool.semaphore.acquire().await.ok();
    drop(waiting);
    let slot = Arc::new(ThreadSlot {
        n_stuck: pool.n_stuck,
        permit: Mutex::new(permit),
        is_stuck: AtomicBool::new(false),
    });
    let stopping = StopOnDrop(stop);
    let (started, begun) = oneshot::channel();
    let occupied = Occupied(Arc::clone(&slot));
    let mut work = tokio::task::spawn_blocking(move || {
        let _occupied = occupied;
        started.send(()).ok();
        work()
    });
    // The time limits are measured from the start of the work, which may have to wait for a free thread of the runtime.
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
            slot.abandon();
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn hanging_probes_do_not_block_checks() {
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
        // Waits until other tests have released their threads.
        let all = u32::try_from(PROBE_THREADS).unwrap();
        assert!(PROBES.acquire_many(all).await.is_ok());
    }

    #[tokio::test]
    async fn blocking_work_that_panics_releases_thread() {
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

    /// Returns work that runs until `stop` is true and then returns its duration.
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
    async fn work_is_stopped_at_its_deadline() {
        let stop = Arc::default();
        let work = until(&stop);
        let took = run_within(Kind::Check, LIMIT, stop, || false, work).await;
        let took = took.unwrap().unwrap();
        assert!(took >= LIMIT.deadline, "{took:?}");
    }

    #[tokio::test]
    async fn work_is_stopped_after_its_turn_if_other_work_waits() {
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
    async fn work_is_stopped_if_its_caller_is_dropped() {
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
    async fn stuck_threads_are_replaced_up_to_limit() {
        static SEMAPHORE: Semaphore = Semaphore::const_new(1);
        static N_STUCK: AtomicUsize = AtomicUsize::new(0);
        const POOL: ThreadPool = ThreadPool {
            semaphore: &SEMAPHORE,
            n_waiting: &WAITING_OTHERS,
            n_stuck: &N_STUCK,
        };
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let hang = || {
            let blocked = Arc::clone(&blocked);
            let work = move || blocked.lock().unwrap().recv().is_ok();
            run_in(POOL, LIMIT, Arc::default(), || false, work)
        };
        let work = || run_in(POOL, LIMIT, Arc::default(), || false, || 1);
        for n in 1..=MAX_STUCK {
            assert_eq!(hang().await.unwrap(), None);
            assert_eq!(N_STUCK.load(Ordering::Relaxed), n);
            // An additional thread replaces the stuck thread.
            assert_eq!(work().await.unwrap(), Some(1));
        }
        // This stuck thread exceeds `MAX_STUCK`, so it is not replaced.
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
