//! Events that wait to be sent, in a bounded queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How many events may wait.
pub(crate) const MAX_WAITING: usize = 1_000;

/// The events that wait to be sent.
#[derive(Debug)]
pub(crate) struct Events {
    state: Mutex<State>,
    has_work: Notify,
    /// Notifies when the last one was sent.
    is_idle: Notify,
    /// True while the process ends, so that waiting events are sent without pauses.
    is_ending: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<PendingEvent>,
    /// True if one was taken out and is not sent yet.
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

/// Identity of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) regarding: String,
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    /// The hash of the note.
    pub(crate) note: u64,
}

/// An event that is to be sent.
#[derive(Clone, Debug)]
pub(crate) struct PendingEvent {
    pub(crate) key: Key,
    pub(crate) regarding: ObjectReference,
    pub(crate) condition: Condition,
}

impl Events {
    /// Puts in an event; whether there was room for it. One that waits already is not put in again.
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

    /// The next event, which counts as being sent until [`Events::sent`].
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

    /// Notes that the event taken last was sent or given up.
    pub(crate) fn sent(&self) {
        let mut state = self.lock();
        state.is_sending = false;
        if state.waiting.is_empty() {
            self.is_idle.notify_one();
        }
    }

    /// Waits until an event may be sent; at the end of the process nothing is waited for.
    pub(crate) async fn pause(&self, until: Instant) {
        let mut is_ending = self.is_ending.subscribe();
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            // The sender lives as long as `self`.
            _ = is_ending.wait_for(|is_ending| *is_ending) => {}
        }
    }

    fn is_over(&self) -> bool {
        let state = self.lock();
        state.waiting.is_empty() && !state.is_sending
    }

    /// Lets what waits be sent at once, and gives up what was not begun within `limit`: how many that are.
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
