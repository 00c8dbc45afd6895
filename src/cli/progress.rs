//! The progress of a long command, as one line on standard error that is overwritten.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::terminal;

/// The time after which the first line is written. Short commands write none.
const DELAY: Duration = Duration::from_secs(1);

/// The minimum time between two lines.
const INTERVAL: Duration = Duration::from_millis(100);

struct State {
    /// The number of finished items.
    n: usize,
    /// The earliest time at which the next line is written.
    due: Instant,
    was_shown: bool,
}

/// The progress of a command. If standard error is not a terminal, nothing is written.
pub(super) struct Progress {
    state: Mutex<State>,
    total: usize,
    noun: &'static str,
    is_shown: bool,
}

impl Progress {
    /// Starts the progress of `total` items. `noun` follows the numbers in the line, such as `policies compared`.
    pub(super) fn new(total: usize, noun: &'static str) -> Self {
        Self {
            state: State::starting_at(Instant::now()),
            total,
            noun,
            is_shown: terminal::is_stderr_terminal(),
        }
    }

    /// Counts one item, and updates the line.
    pub(super) fn step(&self) {
        if self.is_shown
            && let Some(line) = self.line_at(Instant::now())
        {
            // Errors while writing the progress are ignored.
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r{line}").and_then(|()| err.flush());
        }
    }

    /// Counts one item. Returns the line if it is due at `now`.
    fn line_at(&self, now: Instant) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n += 1;
        (now >= state.due).then(|| {
            state.due = now + INTERVAL;
            state.was_shown = true;
            format!("{} of {} {}", state.n, self.total, self.noun)
        })
    }
}

impl State {
    fn starting_at(start: Instant) -> Mutex<Self> {
        Mutex::new(Self {
            n: 0,
            due: start + DELAY,
            was_shown: false,
        })
    }
}

/// Removes the line.
impl Drop for Progress {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.is_shown && state.was_shown {
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\u{1b}[K").and_then(|()| err.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_starts_late_and_is_limited_in_time() {
        let start = Instant::now();
        let progress = Progress {
            state: State::starting_at(start),
            total: 9,
            noun: "policies compared",
            is_shown: false,
        };
        let at = |after: u64| progress.line_at(start + Duration::from_millis(after));
        assert_eq!(at(999), None);
        assert_eq!(at(1_000).as_deref(), Some("2 of 9 policies compared"));
        assert_eq!(at(1_099), None);
        assert_eq!(at(1_100).as_deref(), Some("4 of 9 policies compared"));
    }
}
