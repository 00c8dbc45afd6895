//! Work that keeps a thread busy: checks, the parsing of schemas and probes, each with threads of its
//! own number, so that none of them starves another.

use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Kinds of work on a blocking thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Compiling and type-checking a policy.
    Check,
    /// Reading a document of schemas.
    Schemas,
    /// Running the probes of a policy.
    Probes,
}

/// How many threads each kind of work may keep busy.
const CHECK_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 2 };
const SCHEMA_THREADS: usize = if cfg!(test) { SHARED_BY_TESTS } else { 1 };
const PROBE_THREADS: usize = 2;

/// Tests whose time is paused must not wait for the threads of others: their time would go on meanwhile.
const SHARED_BY_TESTS: usize = 256;

/// How many threads there must be for blocking work: those of each kind, and a reserve for what the
/// runtime itself does there, such as looking up names.
pub const THREADS: usize = CHECK_THREADS + SCHEMA_THREADS + PROBE_THREADS + 3;

static CHECKS: Semaphore = Semaphore::const_new(CHECK_THREADS);
static SCHEMAS: Semaphore = Semaphore::const_new(SCHEMA_THREADS);
static PROBES: Semaphore = Semaphore::const_new(PROBE_THREADS);

/// Runs `work` on a thread of its kind, once one is free.
///
/// The thread stays taken until `work` has ended, also where nobody waits for it any more.
///
/// # Errors
/// Where `work` panics, or the process ends before it began.
pub(crate) async fn run<T: Send + 'static>(
    kind: Kind,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let semaphore = match kind {
        Kind::Check => &CHECKS,
        Kind::Schemas => &SCHEMAS,
        Kind::Probes => &PROBES,
    };
    // These are never closed; if one were, the work would be done all the same.
    let permit = semaphore.acquire().await.ok();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
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
    async fn a_panic_gives_the_thread_back() {
        for _ in 0..=CHECK_THREADS {
            let outcome = run(Kind::Check, || panic!("hostile")).await;
            assert!(outcome.unwrap_err().is_panic());
        }
    }
}
