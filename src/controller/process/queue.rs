//! The work queue of subjects (policies and other checked objects) to reconcile. A subject is never processed
//! concurrently with itself.
//!
//! If a subject changes during its reconciliation, it is reconciled once more afterwards. A failed subject is retried
//! after a growing backoff.
//!
//! A policy is broad if its wildcard rules match hundreds of kinds. Its check takes as long as the checks of dozens of
//! other policies. So it has lower priority for a limited time.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::policy::subject::SubjectId;

/// The backoff after the first failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);

/// The maximum backoff, without jitter.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A policy is broad if its check needs at least this number of OpenAPI documents.
const BROAD: usize = 32;

/// How long a broad policy has lower priority.
const MAX_YIELD: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    has_work: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<SubjectId>,
    /// Subjects in the order in which they were queued with low priority. Subjects that no longer wait with low
    /// priority are skipped.
    broad: VecDeque<SubjectId>,
    /// The number of running subjects with normal priority.
    n_running: usize,
    items: HashMap<SubjectId, Item>,
    delayed: BTreeSet<(Instant, SubjectId)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Priority {
    #[default]
    Normal,
    /// These subjects are processed after the subjects with normal priority, but wait at most [`MAX_YIELD`].
    Low,
}

/// State of a subject that is waiting, running, in backoff, or has failed.
#[derive(Debug, Default)]
struct Item {
    is_waiting: bool,
    /// The priority of a waiting subject. For a running subject, the priority with which it waited.
    priority: Priority,
    is_running: bool,
    /// True if the subject changed while it was running.
    again: bool,
    delayed_until: Option<Instant>,
    n_failures: u32,
    waiting_since: Option<Instant>,
}

impl Queue {
    /// Queues a subject, unless it is waiting already.
    pub(crate) fn add(&self, id: &SubjectId) {
        self.add_as(id, Priority::Normal);
    }

    /// Queues a subject whose check needs `n_documents` OpenAPI documents, unless it is waiting already. A subject with
    /// many documents has low priority.
    pub(crate) fn add_of(&self, id: &SubjectId, n_documents: usize) {
        let is_broad = n_documents >= BROAD;
        self.add_as(
            id,
            if is_broad {
                Priority::Low
            } else {
                Priority::Normal
            },
        );
    }

    fn add_as(&self, id: &SubjectId, priority: Priority) {
        self.lock().add(id, priority);
        self.has_work.notify_one();
    }

    /// Waits for the next subject. The caller must pass it to [`Self::done`] or [`Self::failed`] afterwards.
    pub(crate) async fn next(&self) -> SubjectId {
        loop {
            let due = {
                let mut state = self.lock();
                let now = Instant::now();
                state.wake(now);
                if let Some(id) = state.pop(now) {
                    if !state.is_empty() {
                        self.has_work.notify_one();
                    }
                    return id;
                }
                let delayed = state.delayed.first().map(|(due, _)| *due);
                delayed.into_iter().chain(state.broad_due()).min()
            };
            let has_work = self.has_work.notified();
            match due {
                Some(due) => drop(tokio::time::timeout_at(due, has_work).await),
                None => has_work.await,
            }
        }
    }

    /// Marks a running subject as done. A subject that was queued while it was running waits again.
    pub(crate) fn done(&self, id: &SubjectId) {
        self.lock().finish(id, 0);
        self.has_work.notify_one();
    }

    /// Marks a running subject as failed. Returns the backoff after which the subject is retried. The backoff grows
    /// with each failure.
    ///
    /// `random`, from 0 to 1, spreads the retries of subjects that failed at the same time.
    pub(crate) fn failed(&self, id: &SubjectId, random: f64) -> Duration {
        let mut state = self.lock();
        let n_failures = state
            .items
            .get(id)
            .map_or(0, |item| item.n_failures)
            .saturating_add(1);
        let pause = pause(n_failures, random);
        state.finish(id, n_failures);
        state.delay(id, Instant::now() + pause);
        drop(state);
        self.has_work.notify_one();
        pause
    }

    /// Ends all backoffs, since the subjects may succeed now.
    pub(crate) fn flush_backoff(&self) {
        let mut state = self.lock();
        while let Some((_, id)) = state.delayed.pop_first() {
            if let Some(item) = state.items.get_mut(&id) {
                item.delayed_until = None;
            }
            state.add(&id, Priority::Normal);
        }
        drop(state);
        self.has_work.notify_one();
    }

    /// Returns the number of waiting subjects. Subjects in backoff are not counted.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        state.waiting.len() + state.n_broad()
    }

    /// Returns the number of waiting and running subjects.
    pub(crate) fn n_unfinished(&self) -> usize {
        let state = self.lock();
        let unfinished = |item: &&Item| item.is_waiting || item.is_running;
        state.items.values().filter(unfinished).count()
    }

    /// Returns the number of waiting subjects, and the longest waiting time in seconds.
    pub(crate) fn backlog(&self) -> (usize, f64) {
        let state = self.lock();
        // Both lists are in the order of arrival, so the oldest subject is at the front of one of them.
        let oldest = [state.waiting.front(), state.first_broad()];
        let oldest = oldest.into_iter().flatten();
        let since = oldest.filter_map(|id| state.items.get(id)?.waiting_since);
        let seconds = (since.min()).map_or(0.0, |since| since.elapsed().as_secs_f64());
        (state.waiting.len() + state.n_broad(), seconds)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the backoff after `n_failures` failures in a row. It doubles with each failure, and has a jitter of 25
/// percent.
fn pause(n_failures: u32, random: f64) -> Duration {
    let doublings = n_failures.saturating_sub(1).min(16);
    let pause = MIN_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
    pause.mul_f64(0.75 + random.clamp(0.0, 1.0) / 2.0)
}

impl State {
    fn add(&mut self, id: &SubjectId, priority: Priority) {
        let item = self.items.entry(id.clone()).or_default();
        let is_promoted = (item.priority, priority) == (Priority::Low, Priority::Normal);
        if item.is_running {
            item.again = true;
        } else if !item.is_waiting || is_promoted {
            item.is_waiting = true;
            item.priority = priority;
            item.waiting_since.get_or_insert_with(Instant::now);
            let waiting = match priority {
                Priority::Normal => &mut self.waiting,
                Priority::Low => &mut self.broad,
            };
            waiting.push_back(id.clone());
        }
    }

    fn pop(&mut self, now: Instant) -> Option<SubjectId> {
        let is_idle = self.waiting.is_empty() && self.n_running == 0;
        let id = if self.broad_due().is_some_and(|due| is_idle || due <= now) {
            self.pop_broad()?
        } else {
            self.waiting.pop_front()?
        };
        let item = self.items.entry(id.clone()).or_default();
        item.is_waiting = false;
        item.is_running = true;
        item.again = false;
        item.waiting_since = None;
        self.n_running += usize::from(item.priority == Priority::Normal);
        // This run replaces the retry after a backoff.
        if let Some(due) = item.delayed_until.take() {
            self.delayed.remove(&(due, id.clone()));
        }
        Some(id)
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.first_broad().is_none()
    }

    fn is_broad(&self, id: &SubjectId) -> bool {
        let item = self.items.get(id);
        item.is_some_and(|item| item.is_waiting && item.priority == Priority::Low)
    }

    fn n_broad(&self) -> usize {
        self.broad.iter().filter(|id| self.is_broad(id)).count()
    }

    fn first_broad(&self) -> Option<&SubjectId> {
        self.broad.iter().find(|id| self.is_broad(id))
    }

    /// Returns the time at which the low priority of the first broad subject ends. `None` if no broad subject waits.
    fn broad_due(&self) -> Option<Instant> {
        let first = self.items.get(self.first_broad()?)?;
        Some(first.waiting_since? + MAX_YIELD)
    }

    fn pop_broad(&mut self) -> Option<SubjectId> {
        loop {
            let id = self.broad.pop_front()?;
            if self.is_broad(&id) {
                return Some(id);
            }
        }
    }

    fn finish(&mut self, id: &SubjectId, n_failures: u32) {
        let Some(item) = self.items.get_mut(id) else {
            return;
        };
        if item.is_running {
            self.n_running = self
                .n_running
                .saturating_sub(usize::from(item.priority == Priority::Normal));
        }
        item.is_running = false;
        item.priority = Priority::Normal;
        item.n_failures = n_failures;
        if item.again {
            self.add(id, Priority::Normal);
        } else if n_failures == 0 {
            self.items.remove(id);
        }
    }

    fn delay(&mut self, id: &SubjectId, due: Instant) {
        let Some(item) = self.items.get_mut(id) else {
            return;
        };
        if !item.is_waiting {
            item.delayed_until = Some(due);
            self.delayed.insert((due, id.clone()));
        }
    }

    /// Queues the subjects whose backoff has ended.
    fn wake(&mut self, now: Instant) {
        while let Some((due, id)) = self.delayed.pop_first() {
            if due > now {
                self.delayed.insert((due, id));
                return;
            }
            if let Some(item) = self.items.get_mut(&id) {
                item.delayed_until = None;
            }
            self.add(&id, Priority::Normal);
        }
    }
}

/// Returns a number from 0 to 1 for jitter. It need not be cryptographically random.
pub(crate) fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish();
    f64::from(u16::try_from(bits & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::id;

    /// Returns the names of all subjects that the queue returns without waiting.
    async fn drain(queue: &Queue) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(name) = tokio::time::timeout(Duration::ZERO, queue.next()).await {
            names.push(name.to_string());
        }
        names
    }

    #[tokio::test(start_paused = true)]
    async fn adding_a_waiting_subject_has_no_effect() {
        let queue = Queue::default();
        for name in ["a", "b", "a", "a"] {
            queue.add(&id(name));
        }
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&queue).await, ["a", "b"]);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn broad_policy_yields_for_limited_time() {
        let queue = Queue::default();
        queue.add_of(&id("wide"), BROAD);
        queue.add_of(&id("wider"), BROAD);
        queue.add(&id("a"));
        queue.add(&id("b"));
        assert_eq!((queue.len(), queue.n_unfinished()), (4, 4));
        assert_eq!(drain(&queue).await, ["a", "b"]);
        queue.done(&id("a"));
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        queue.done(&id("b"));
        assert_eq!(drain(&queue).await, ["wide", "wider"]);
        queue.done(&id("wide"));
        queue.done(&id("wider"));
        assert!(queue.lock().items.is_empty());

        // After `MAX_YIELD`, the broad policy is processed even if other policies are running or waiting.
        queue.add_of(&id("wide"), BROAD);
        queue.add(&id("a"));
        assert_eq!(drain(&queue).await, ["a"]);
        let start = Instant::now();
        assert_eq!(queue.next().await, id("wide"));
        assert_eq!(start.elapsed(), MAX_YIELD);
        queue.add(&id("b"));
        queue.add_of(&id("wider"), BROAD);
        tokio::time::advance(MAX_YIELD).await;
        assert_eq!(drain(&queue).await, ["wider", "b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn broad_policy_that_changed_has_normal_priority() {
        let queue = Queue::default();
        queue.add(&id("a"));
        assert_eq!(queue.next().await, id("a"));
        queue.add_of(&id("wide"), BROAD);
        queue.add(&id("wide"));
        queue.add_of(&id("wide"), BROAD);
        assert_eq!(queue.len(), 1);
        assert_eq!(drain(&queue).await, ["wide"]);
        queue.done(&id("wide"));
        queue.done(&id("a"));
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        let state = queue.lock();
        assert!(state.items.is_empty() && state.n_running == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn running_subject_that_is_added_runs_again() {
        let queue = Queue::default();
        queue.add(&id("a"));
        assert_eq!(queue.next().await, id("a"));
        queue.add(&id("a"));
        queue.add(&id("a"));
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        queue.done(&id("a"));
        assert_eq!(drain(&queue).await, ["a"]);
        queue.done(&id("a"));
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        assert!(queue.lock().items.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn failed_subject_returns_after_growing_backoff() {
        let queue = Queue::default();
        queue.add(&id("a"));
        let start = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(queue.next().await, id("a"));
            pauses.push(queue.failed(&id("a"), 0.5).as_millis());
        }
        assert_eq!(
            pauses,
            [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
        );
        assert_eq!(
            start.elapsed().as_millis(),
            pauses[..8].iter().sum::<u128>()
        );
        // A success resets the backoff.
        assert_eq!(queue.next().await, id("a"));
        queue.done(&id("a"));
        queue.add(&id("a"));
        assert_eq!(queue.next().await, id("a"));
        assert_eq!(queue.failed(&id("a"), 0.5).as_millis(), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn adding_a_subject_ends_its_backoff() {
        let queue = Queue::default();
        queue.add(&id("a"));
        assert_eq!(queue.next().await, id("a"));
        queue.failed(&id("a"), 0.5);
        queue.add(&id("a"));
        assert_eq!(drain(&queue).await, ["a"]);
        queue.done(&id("a"));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        assert!(queue.lock().items.is_empty() && queue.lock().delayed.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn failed_subject_that_changed_runs_immediately() {
        let queue = Queue::default();
        queue.add(&id("a"));
        assert_eq!(queue.next().await, id("a"));
        queue.add(&id("a"));
        queue.failed(&id("a"), 0.5);
        assert_eq!(drain(&queue).await, ["a"]);
        assert!(queue.lock().delayed.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn flushing_the_backoff_keeps_failure_count() {
        let queue = Queue::default();
        for name in ["a", "b"] {
            queue.add(&id(name));
            assert_eq!(queue.next().await, id(name));
            queue.failed(&id(name), 0.5);
        }
        queue.flush_backoff();
        assert_eq!(drain(&queue).await, ["a", "b"]);
        assert!(queue.lock().delayed.is_empty());
        assert_eq!(queue.failed(&id("a"), 0.5).as_millis(), 1000);
    }

    #[test]
    fn backoff_has_jitter_and_is_bounded() {
        assert_eq!(pause(1, 0.0).as_millis(), 375);
        assert_eq!(pause(1, 1.0).as_millis(), 625);
        assert_eq!(pause(u32::MAX, 9.0).as_millis(), 75_000);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_get_different_subjects() {
        let queue = std::sync::Arc::new(Queue::default());
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.add(&id("a"));
        queue.add(&id("b"));
        let mut names = Vec::new();
        for waiter in waiters {
            names.push(waiter.await.unwrap().to_string());
        }
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }
}
