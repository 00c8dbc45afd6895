//! The work queue: which policies are to be reconciled, each at most once at a time.
//!
//! A policy that changes while it is worked on is worked on once more afterwards. One that failed
//! comes back after a growing pause.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The pause after the first failure.
const MIN_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The queue. Names are those of policies.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    has_work: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<String>,
    items: HashMap<String, Item>,
    delayed: BTreeSet<(Instant, String)>,
}

/// What is known of a name that waits, is worked on, is delayed or has failed.
#[derive(Debug, Default)]
struct Item {
    is_waiting: bool,
    is_running: bool,
    /// Whether it is to be worked on again.
    again: bool,
    delayed_until: Option<Instant>,
    n_failures: u32,
    /// Since when it waits.
    waiting_since: Option<Instant>,
}

impl Queue {
    /// Puts a name in, unless it waits already.
    pub(crate) fn add(&self, name: &str) {
        self.lock().add(name);
        self.has_work.notify_one();
    }

    /// The next name, when there is one. It must be given back to [`Self::done`] or
    /// [`Self::failed`].
    pub(crate) async fn next(&self) -> String {
        loop {
            let due = {
                let mut state = self.lock();
                state.wake(Instant::now());
                if let Some(name) = state.pop() {
                    if !state.waiting.is_empty() {
                        self.has_work.notify_one();
                    }
                    return name;
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            let has_work = self.has_work.notified();
            match due {
                Some(due) => drop(tokio::time::timeout_at(due, has_work).await),
                None => has_work.await,
            }
        }
    }

    /// Ends the work on a name.
    pub(crate) fn done(&self, name: &str) {
        self.lock().finish(name, 0);
        self.has_work.notify_one();
    }

    /// Ends the work on a name that has to be tried again, after a pause that grows with each failure.
    ///
    /// `random` spreads the pauses of many that failed together; it is from 0 to 1.
    pub(crate) fn failed(&self, name: &str, random: f64) -> Duration {
        let mut state = self.lock();
        let n_failures = state
            .items
            .get(name)
            .map_or(0, |item| item.n_failures)
            .saturating_add(1);
        let pause = pause(n_failures, random);
        state.finish(name, n_failures);
        state.delay(name, Instant::now() + pause);
        drop(state);
        self.has_work.notify_one();
        pause
    }

    /// Ends all pauses: what failed may work now.
    pub(crate) fn hurry(&self) {
        let mut state = self.lock();
        while let Some((_, name)) = state.delayed.pop_first() {
            if let Some(item) = state.items.get_mut(&name) {
                item.delayed_until = None;
            }
            state.add(&name);
        }
        drop(state);
        self.has_work.notify_one();
    }

    /// How many names wait, those after a failure not counted.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// How many names wait or are worked on.
    pub(crate) fn n_unfinished(&self) -> usize {
        let state = self.lock();
        let unfinished = |item: &&Item| item.is_waiting || item.is_running;
        state.items.values().filter(unfinished).count()
    }

    /// How many names wait, and for how many seconds the one that has waited longest has.
    pub(crate) fn backlog(&self) -> (usize, f64) {
        let state = self.lock();
        // Names are worked on in the order in which they came.
        let oldest = state.waiting.front();
        let since = oldest.and_then(|name| state.items.get(name)?.waiting_since);
        let seconds = since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        (state.waiting.len(), seconds)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause after so many failures in a row: doubled each time, three quarters to five quarters of it.
fn pause(n_failures: u32, random: f64) -> Duration {
    let doublings = n_failures.saturating_sub(1).min(16);
    let pause = MIN_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
    pause.mul_f64(0.75 + random.clamp(0.0, 1.0) / 2.0)
}

impl State {
    fn add(&mut self, name: &str) {
        let item = self.items.entry(name.to_owned()).or_default();
        if item.is_running {
            item.again = true;
        } else if !item.is_waiting {
            item.is_waiting = true;
            item.waiting_since = Some(Instant::now());
            self.waiting.push_back(name.to_owned());
        }
    }

    fn pop(&mut self) -> Option<String> {
        let name = self.waiting.pop_front()?;
        let item = self.items.entry(name.clone()).or_default();
        item.is_waiting = false;
        item.is_running = true;
        item.again = false;
        // Whatever was to be tried again later is tried now.
        if let Some(due) = item.delayed_until.take() {
            self.delayed.remove(&(due, name.clone()));
        }
        Some(name)
    }

    fn finish(&mut self, name: &str, n_failures: u32) {
        let Some(item) = self.items.get_mut(name) else {
            return;
        };
        item.is_running = false;
        item.n_failures = n_failures;
        if item.again {
            self.add(name);
        } else if n_failures == 0 {
            self.items.remove(name);
        }
    }

    fn delay(&mut self, name: &str, due: Instant) {
        let Some(item) = self.items.get_mut(name) else {
            return;
        };
        if !item.is_waiting {
            item.delayed_until = Some(due);
            self.delayed.insert((due, name.to_owned()));
        }
    }

    /// Puts in what is due.
    fn wake(&mut self, now: Instant) {
        while let Some((due, name)) = self.delayed.pop_first() {
            if due > now {
                self.delayed.insert((due, name));
                return;
            }
            if let Some(item) = self.items.get_mut(&name) {
                item.delayed_until = None;
            }
            self.add(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that can be had without waiting.
    async fn drain(queue: &Queue) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(name) = tokio::time::timeout(Duration::ZERO, queue.next()).await {
            names.push(name);
        }
        names
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_waits_once() {
        let queue = Queue::default();
        for name in ["a", "b", "a", "a"] {
            queue.add(name);
        }
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&queue).await, ["a", "b"]);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_during_the_work_is_work_afterwards() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("a");
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        queue.done("a");
        assert_eq!(drain(&queue).await, ["a"]);
        queue.done("a");
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        assert!(queue.lock().items.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_come_back_after_a_growing_pause() {
        let queue = Queue::default();
        queue.add("a");
        let start = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(queue.next().await, "a");
            pauses.push(queue.failed("a", 0.5).as_millis());
        }
        assert_eq!(
            pauses,
            [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
        );
        assert_eq!(
            start.elapsed().as_millis(),
            pauses[..8].iter().sum::<u128>()
        );
        // A success forgets them.
        assert_eq!(queue.next().await, "a");
        queue.done("a");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.failed("a", 0.5).as_millis(), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_ends_the_pause() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.failed("a", 0.5);
        queue.add("a");
        assert_eq!(drain(&queue).await, ["a"]);
        queue.done("a");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(drain(&queue).await, Vec::<String>::new());
        assert!(queue.lock().items.is_empty() && queue.lock().delayed.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_of_what_changed_meanwhile_is_tried_at_once() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.failed("a", 0.5);
        assert_eq!(drain(&queue).await, ["a"]);
        assert!(queue.lock().delayed.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_is_hurried_and_its_failures_are_not_forgotten() {
        let queue = Queue::default();
        for name in ["a", "b"] {
            queue.add(name);
            assert_eq!(queue.next().await, name);
            queue.failed(name, 0.5);
        }
        queue.hurry();
        assert_eq!(drain(&queue).await, ["a", "b"]);
        assert!(queue.lock().delayed.is_empty());
        assert_eq!(queue.failed("a", 0.5).as_millis(), 1000);
    }

    #[test]
    fn pauses_are_spread_and_bounded() {
        assert_eq!(pause(1, 0.0).as_millis(), 375);
        assert_eq!(pause(1, 1.0).as_millis(), 625);
        assert_eq!(pause(u32::MAX, 9.0).as_millis(), 75_000);
    }

    #[tokio::test(start_paused = true)]
    async fn several_who_wait_get_one_each() {
        let queue = std::sync::Arc::new(Queue::default());
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.add("a");
        queue.add("b");
        let mut names = Vec::new();
        for waiter in waiters {
            names.push(waiter.await.unwrap());
        }
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }
}
