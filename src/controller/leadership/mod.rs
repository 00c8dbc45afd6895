//! Decides whether this instance may write, and until when.
//!
//! A leader that cannot renew the Lease stops writing before the Lease expires, and its process ends. Each write of a
//! leader ends before another instance may start one. A leader that is asked to stop releases the Lease after its last
//! write. A standby does everything except the writes.
//!
//! Without an election there is no Lease, and this instance always leads.
//!
//! [`lease`] contains the rules of the election. The module `election` sends the requests.

pub(crate) mod lease;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::error::Error;
use crate::controller::leadership::lease::MAX_WRITE;

/// The role of this instance in the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// There is no election.
    Alone,
    /// Another instance may hold the Lease.
    Standby,
    /// This instance holds the Lease. No write starts after `last_start`.
    Leader { last_start: Instant },
    /// This instance must not start another write.
    Over,
}

/// State of this instance's leadership. Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    state: Arc<Mutex<State>>,
    n_writes: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    role: Role,
    write_limit: Duration,
    /// Why this instance could not read or acquire the Lease. `None` if there was no failure.
    problem: Option<String>,
}

impl Default for Leadership {
    fn default() -> Self {
        let state = State {
            role: Role::Alone,
            write_limit: MAX_WRITE,
            problem: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            n_writes: watch::Sender::new(0),
        }
    }
}

/// Permits one write until a deadline. The write counts as in progress until the permit is dropped.
#[derive(Debug)]
pub(crate) struct WritePermit {
    limit: Duration,
    pub(crate) end: Instant,
    n_writes: watch::Sender<usize>,
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        self.n_writes.send_modify(|n| *n = n.saturating_sub(1));
    }
}

impl WritePermit {
    /// Runs `write` within the deadline of the permit.
    ///
    /// # Errors
    /// Returns the error of the write, or [`Error::Timeout`].
    pub(crate) async fn within<T, E>(
        &self,
        write: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        match tokio::time::timeout_at(self.end, write).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(Error::Timeout(self.limit)),
        }
    }
}

impl Leadership {
    /// Returns a permit for one write. `None` if another instance may be writing. Must be called immediately before the
    /// write.
    pub(crate) fn may_write(&self) -> Option<WritePermit> {
        let state = self.lock();
        let now = Instant::now();
        let may = match state.role {
            Role::Alone => true,
            Role::Leader { last_start } => now <= last_start,
            Role::Standby | Role::Over => false,
        };
        // The write is counted while the lock is held, so that [`Self::close`] waits for every write.
        may.then(|| {
            self.n_writes.send_modify(|n| *n = n.saturating_add(1));
            WritePermit {
                limit: state.write_limit,
                end: now + state.write_limit,
                n_writes: self.n_writes.clone(),
            }
        })
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Forbids further writes, and waits for the end of the writes in progress.
    pub(crate) async fn close(&self) {
        self.end();
        let mut n_writes = self.n_writes.subscribe();
        // The wait ends, since each write has a deadline. The wait cannot fail, since `self` owns the sender.
        drop(n_writes.wait_for(|n| *n == 0).await);
    }

    pub(crate) fn stand_by(&self, write_limit: Duration) {
        let mut state = self.lock();
        state.role = Role::Standby;
        state.write_limit = write_limit;
    }

    /// Allows writes to start until `last_start`. Has no effect after [`Self::end`]. Returns true if this instance was
    /// a standby before.
    pub(crate) fn lead(&self, last_start: Instant) -> bool {
        let mut state = self.lock();
        let is_news = state.role == Role::Standby;
        if state.role != Role::Over {
            state.role = Role::Leader { last_start };
        }
        is_news
    }

    /// Forbids further writes, without waiting.
    pub(crate) fn end(&self) {
        self.lock().role = Role::Over;
    }

    pub(crate) fn set_problem(&self, problem: Option<String>) {
        self.lock().problem = problem;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
