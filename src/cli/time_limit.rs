//! Enforces time limits of evaluations: a thread cancels evaluations that exceed them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(not(target_family = "wasm"))]
use crate::cluster::duration;

#[cfg(not(target_family = "wasm"))]
/// The flag `--timeout`.
#[derive(Clone, Debug, clap::Args)]
pub struct Timeout {
    /// The time limit for the evaluation of one policy for one request (such as 500ms, 10s or 2m); an evaluation that
    /// exceeds it has no decision
    #[arg(
        long = "timeout",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = duration::parse
    )]
    timeout: Duration,
}

#[cfg(not(target_family = "wasm"))]
impl Timeout {
    pub(super) fn limit(&self) -> TimeLimit {
        TimeLimit(self.timeout)
    }
}

/// The time limit of one evaluation.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit(Duration);

/// The ratio of the time limit of a search to the time limit of an evaluation.
const SEARCH_FACTOR: u32 = 6;

/// The default time limit. Policies usually take milliseconds.
const DEFAULT: Duration = Duration::from_secs(10);

impl Default for TimeLimit {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl TimeLimit {
    /// Returns the limit for a search, which evaluates a policy for many requests.
    pub(super) fn for_search(self) -> Self {
        Self(self.0.saturating_mul(SEARCH_FACTOR))
    }

    /// Calls `evaluate` with a flag that is set at the time limit to cancel the evaluation. Returns an error if the
    /// flag was set.
    ///
    /// On a web page, neither a clock nor threads are available, so the page terminates its worker instead.
    pub(super) fn run<T>(self, evaluate: impl FnOnce(&Arc<AtomicBool>) -> T) -> Result<T, String> {
        if cfg!(target_family = "wasm") {
            return Ok(evaluate(&Arc::default()));
        }
        let evaluation = LimitedEvaluation::new(Instant::now() + self.0);
        let result = evaluate(&evaluation.is_cancelled);
        if evaluation.is_cancelled.load(Ordering::Relaxed) {
            return Err(format!(
                "the evaluation exceeded the time limit of {}",
                text(self.0)
            ));
        }
        Ok(result)
    }
}

fn text(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

/// An evaluation with a time limit. The watchdog monitors the evaluation until this value is dropped.
struct LimitedEvaluation {
    is_cancelled: Arc<AtomicBool>,
}

/// The deadlines of the running evaluations. `has_changed` wakes the thread when an evaluation starts.
#[derive(Default)]
struct Watchdog {
    deadlines: Mutex<Vec<(Instant, Arc<AtomicBool>)>>,
    has_changed: Condvar,
}

static WATCHDOG: LazyLock<Arc<Watchdog>> = LazyLock::new(|| {
    let watchdog = Arc::new(Watchdog::default());
    let running = Arc::clone(&watchdog);
    let thread = thread::Builder::new().name("time-limit".to_owned());
    // If the thread cannot be started, evaluations have no time limit.
    let _ = thread.spawn(move || running.run());
    watchdog
});

impl LimitedEvaluation {
    fn new(deadline: Instant) -> Self {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let mut deadlines = WATCHDOG.lock();
        deadlines.push((deadline, Arc::clone(&is_cancelled)));
        // The thread may be waiting for a later deadline than the new one.
        WATCHDOG.has_changed.notify_one();
        Self { is_cancelled }
    }
}

impl Drop for LimitedEvaluation {
    fn drop(&mut self) {
        let mut deadlines = WATCHDOG.lock();
        deadlines.retain(|(_, flag)| !Arc::ptr_eq(flag, &self.is_cancelled));
    }
}

impl Watchdog {
    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Arc<AtomicBool>)>> {
        self.deadlines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels evaluations at their deadlines, in an endless loop.
    fn run(&self) {
        let mut deadlines = self.lock();
        loop {
            let now = Instant::now();
            for (_, flag) in deadlines.iter().filter(|(deadline, _)| *deadline <= now) {
                flag.store(true, Ordering::Relaxed);
            }
            let pending = deadlines.iter().map(|(deadline, _)| *deadline);
            let next = pending.filter(|deadline| *deadline > now).min();
            deadlines = match next {
                Some(next) => {
                    let waited = self.has_changed.wait_timeout(deadlines, next - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.has_changed.wait(deadlines);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limit_cancels_evaluation_at_deadline() {
        let limit = TimeLimit(Duration::from_millis(100));
        let result = limit.run(|is_cancelled| {
            while !is_cancelled.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        let expected = "the evaluation exceeded the time limit of 100 ms";
        assert_eq!(result, Err(expected.to_owned()));
    }

    /// The thread waits for the deadline of the longer evaluation when the shorter one starts.
    #[test]
    fn shorter_time_limit_ends_first() {
        let limit = TimeLimit(Duration::from_millis(300));
        let result = limit.for_search().run(|_| {
            thread::sleep(Duration::from_millis(20));
            limit.run(|is_cancelled| {
                let start = Instant::now();
                while !is_cancelled.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                start.elapsed()
            })
        });
        assert!(result.unwrap_or_else(|why| panic!("{why}")).is_err());
    }

    #[test]
    fn work_within_time_limit_returns_its_result() {
        assert_eq!(TimeLimit::default().run(|_| 1), Ok(1));
        assert_eq!(text(DEFAULT), "10 s");
    }
}
