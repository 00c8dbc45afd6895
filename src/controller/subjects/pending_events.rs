//! A bounded queue of Kubernetes Events that wait to be sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The maximum number of waiting Events.
pub(crate) const MAX_WAITING: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Events {
    state: Mutex<State>,
    has_work: Notify,
    /// Notified when no Event is waiting or being sent.
    is_idle: Notify,
    /// True while the process ends. Then the rate limit does not apply.
    is_ending: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<PendingEvent>,
    /// True while an Event is being sent.
    is_sending: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            has_work: Notify::new(),
            is_idle: Notify::new(),
            is_ending: watch::Sender::new(false),
        }
    }
}

/// The identity of an Event. Events with equal keys count as repetitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) regarding: String,
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    /// A hash of the condition's message.
    pub(crate) note: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct PendingEvent {
    pub(crate) key: Key,
    pub(crate) regarding: ObjectReference,
    pub(crate) condition: Condition,
}

impl Events {
    /// Adds an Event, unless an equal one is waiting. Returns false if the queue is full.
    pub(crate) fn add(&self, event: PendingEvent) -> bool {
        let mut state = self.lock();
        if state.waiting.iter().any(|other| other.key == event.key) {
            return true;
        }
        if state.waiting.len() >= MAX_WAITING {
            return false;
        }
        state.waiting.push_back(event);
        drop(state);
        self.has_work.notify_one();
        true
    }

    /// Waits for the next Event. The Event counts as being sent until the call of [`Events::sent`].
    pub(crate) async fn next(&self) -> PendingEvent {
        loop {
            {
                let mut state = self.lock();
                if let Some(event) = state.waiting.pop_front() {
                    state.is_sending = true;
                    return event;
                }
            }
            self.has_work.notified().await;
        }
    }

    /// Records that the Event from [`Events::next`] was sent or dropped.
    pub(crate) fn sent(&self) {
        let mut state = self.lock();
        state.is_sending = false;
        if state.waiting.is_empty() {
            self.is_idle.notify_one();
        }
    }

    /// Waits until the time `until`, or until the process ends.
    pub(crate) async fn pause(&self, until: Instant) {
        let mut is_ending = self.is_ending.subscribe();
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            // The wait cannot fail, since `self` owns the sender.
            _ = is_ending.wait_for(|is_ending| *is_ending) => {}
        }
    }

    fn is_over(&self) -> bool {
        let state = self.lock();
        state.waiting.is_empty() && !state.is_sending
    }

    /// Waits for at most `limit` until all Events are sent. The rate limit does not apply. Drops the remaining Events,
    /// and returns their number.
    pub(crate) async fn flush(&self, limit: Duration) -> usize {
        self.is_ending.send_replace(true);
        let all_sent = async {
            while !self.is_over() {
                self.is_idle.notified().await;
            }
        };
        drop(tokio::time::timeout(limit, all_sent).await);
        let mut state = self.lock();
        let n_left = state.waiting.len();
        state.waiting.clear();
        n_left
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
