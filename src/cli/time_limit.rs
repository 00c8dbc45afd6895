//! Time limits of evaluations: a thread cancels those that take longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::duration;

/// The flag of the time limit.
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

impl Timeout {
    /// Returns the time limit.
    pub(super) fn limit(&self) -> TimeLimit {
        TimeLimit(self.timeout)
    }
}

/// The time that one evaluation may take.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit(Duration);

/// The limit where none is set: policies take milliseconds.
const DEFAULT: Duration = Duration::from_secs(10);

impl Default for TimeLimit {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl TimeLimit {
    /// Calls `evaluate`, and sets the flag that it receives when the time is over, which is an error then.
    pub(super) fn run<T>(self, evaluate: impl FnOnce(&Arc<AtomicBool>) -> T) -> Result<T, String> {
        let watched = Watched::new(Instant::now() + self.0);
        let result = evaluate(&watched.is_cancelled);
        if watched.is_cancelled.load(Ordering::Relaxed) {
            return Err(format!("the evaluation takes longer than {}", text(self.0)));
        }
        Ok(result)
    }
}

/// A duration as it is written for a flag.
fn text(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

/// An evaluation that is watched until the value is dropped.
struct Watched {
    is_cancelled: Arc<AtomicBool>,
}

/// The evaluations under way, with their deadlines, and a signal for the first of them.
#[derive(Default)]
struct Watch {
    deadlines: Mutex<Vec<(Instant, Arc<AtomicBool>)>>,
    has_some: Condvar,
}

static WATCH: LazyLock<Arc<Watch>> = LazyLock::new(|| {
    let watch = Arc::new(Watch::default());
    let watching = Arc::clone(&watch);
    let thread = thread::Builder::new().name("time-limit".to_owned());
    // Without the thread evaluations have no limit.
    let _ = thread.spawn(move || watching.run());
    watch
});

impl Watched {
    fn new(deadline: Instant) -> Self {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let mut deadlines = WATCH.lock();
        deadlines.push((deadline, Arc::clone(&is_cancelled)));
        if deadlines.len() == 1 {
            WATCH.has_some.notify_one();
        }
        Self { is_cancelled }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut deadlines = WATCH.lock();
        deadlines.retain(|(_, flag)| !Arc::ptr_eq(flag, &self.is_cancelled));
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Arc<AtomicBool>)>> {
        self.deadlines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels evaluations at their deadlines, for ever.
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
                // Time limits of a process are the same, so that no later evaluation ends before.
                Some(next) => {
                    let waited = self.has_some.wait_timeout(deadlines, next - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.has_some.wait(deadlines);
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
    fn run_cancels_evaluation_at_deadline() {
        let limit = TimeLimit(Duration::from_millis(100));
        let result = limit.run(|is_cancelled| {
            while !is_cancelled.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        let expected = "the evaluation takes longer than 100 ms";
        assert_eq!(result, Err(expected.to_owned()));
    }

    #[test]
    fn run_returns_result_in_time() {
        assert_eq!(TimeLimit::default().run(|_| 1), Ok(1));
        assert_eq!(text(DEFAULT), "10 s");
    }
}
