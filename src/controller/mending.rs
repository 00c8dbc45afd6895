//! How a watch goes on after a failure, and how it is told that it works again.
//!
//! A watch on which nothing happens gives no sign that it was taken up again. So once it has been quiet
//! for a moment after a failure, the API server is asked for one object of the kind: where it answers,
//! the watch is in step.

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::api::{Api, ListParams};
use kube_runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use super::error::within;
use super::readiness::Readiness;
use crate::telemetry::metrics::ErrorReason;

/// The pause after the first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// How long a watch is quiet before it is asked whether it works, the first time and the longest.
const QUIET: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// The least time between two attempts, although the API server was found to answer in between.
const LEAST: Duration = Duration::from_secs(1);

/// How long the API server may take to answer whether it works.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What a watch says.
#[derive(Debug)]
pub(super) enum Sign<K> {
    /// Something happened.
    Event(Event<K>),
    /// It failed, and tries again when it is asked for its next sign.
    Failed(watcher::Error),
    /// It works again, and nothing has happened.
    Mended,
    /// It ended, which it does not do.
    Ended,
}

/// Whether a watch works, and how long it rests before it tries again.
#[derive(Debug)]
pub(super) struct Mending {
    is_failing: bool,
    pause: Duration,
}

impl Default for Mending {
    fn default() -> Self {
        Self {
            is_failing: false,
            pause: PAUSES.0,
        }
    }
}

impl Mending {
    /// The next sign of the watch `events`; `works` tells whether the API server answers for its kind.
    pub(super) async fn next<K, S, A>(&mut self, events: &mut S, works: impl Fn() -> A) -> Sign<K>
    where
        S: Stream<Item = watcher::Result<Event<K>>> + Unpin,
        A: Future<Output = bool>,
    {
        let mut quiet = QUIET.0;
        loop {
            let patience = if self.is_failing {
                quiet
            } else {
                Duration::MAX
            };
            match timeout(patience, events.next()).await {
                Ok(Some(Ok(event))) => {
                    if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
                        *self = Self::default();
                    }
                    return Sign::Event(event);
                }
                Ok(Some(Err(error))) => {
                    self.is_failing = true;
                    return Sign::Failed(error);
                }
                Ok(None) => return Sign::Ended,
                Err(_) if works().await => {
                    *self = Self::default();
                    return Sign::Mended;
                }
                Err(_) => quiet = (quiet * 2).min(QUIET.1),
            }
        }
    }

    /// Rests after a failure, longer each time, but not longer than until another source of facts is
    /// found to work again.
    pub(super) async fn rest(&mut self, readiness: &Readiness) {
        let mut recoveries = readiness.recoveries();
        let end = Instant::now() + self.pause;
        tokio::time::sleep(self.pause.min(LEAST)).await;
        // The sender lives as long as `readiness`.
        drop(tokio::time::timeout_at(end, recoveries.changed()).await);
        self.pause = (self.pause * 2).min(PAUSES.1);
    }
}

/// Whether the API server lists objects of the kind of `api`.
pub(super) async fn is_listed<K>(api: &Api<K>) -> bool
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let one = ListParams::default().limit(1);
    match within(TIMEOUT, api.list_metadata(&one)).await {
        Ok(_) => true,
        // That we cannot read the object is another matter.
        Err(error) => error.reason() == ErrorReason::Decode,
    }
}
