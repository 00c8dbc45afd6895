//! Saying once what goes wrong again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::telemetry::metrics::{ErrorReason, Source};

/// How long the same complaint stays unsaid.
const SILENCE: Duration = Duration::from_secs(60);

/// When what was said last.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    said: Mutex<HashMap<String, Instant>>,
}

impl Complaints {
    /// Reports whether to log the message known by `key` now: the first time, and then once a minute.
    pub(crate) fn are_due(&self, key: &str) -> bool {
        let now = Instant::now();
        let mut said = self.lock();
        said.retain(|_, last| now < *last + SILENCE);
        if said.contains_key(key) {
            return false;
        }
        said.insert(key.to_owned(), now);
        true
    }

    /// Forgets what was said by `key`, since it is over; whether anything was said.
    pub(crate) fn end(&self, key: &str) -> bool {
        self.lock().remove(key).is_some()
    }

    /// Says that `source` cannot be followed, unless it was said a short while ago.
    ///
    /// An API server that does not answer is one trouble and not one for each source.
    pub(crate) fn trouble(&self, source: Source, reason: ErrorReason, text: &str) {
        if is_of_the_connection(reason) {
            if self.are_due(reason.as_str()) {
                tracing::warn!("{text}; retrying; similar failures are not logged");
            }
        } else if self.are_due(source.as_str()) {
            tracing::warn!("{text}; retrying");
        }
    }

    /// Says that `source` cannot be followed until somebody grants a permission, unless it was said a short
    /// while ago.
    pub(crate) fn refused(&self, source: Source, text: &str) {
        if self.are_due(&refusal(source)) {
            tracing::error!("{text}; retrying until then");
        }
    }

    /// Says that `source` is followed again, if it was said that it is not.
    pub(crate) fn is_over(&self, source: Source) {
        let of_source = [self.end(source.as_str()), self.end(&refusal(source))];
        if of_source.contains(&true) {
            tracing::info!(what = source.as_str(), "watch recovered");
        }
        let of_connection =
            [ErrorReason::Connection, ErrorReason::Timeout].map(|reason| self.end(reason.as_str()));
        if of_connection.contains(&true) {
            tracing::info!("the API server is reachable again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_of_the_connection(reason: ErrorReason) -> bool {
    matches!(reason, ErrorReason::Connection | ErrorReason::Timeout)
}

fn refusal(source: Source) -> String {
    format!("{} refused", source.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_said_once_a_minute() {
        let complaints = Complaints::default();
        assert!(complaints.are_due("a"));
        assert!(!complaints.are_due("a"));
        assert!(complaints.are_due("b"));
        tokio::time::advance(SILENCE).await;
        assert!(complaints.are_due("a"));
        assert!(complaints.end("a"));
        assert!(!complaints.end("a"));
        assert!(complaints.are_due("a"));
    }
}
