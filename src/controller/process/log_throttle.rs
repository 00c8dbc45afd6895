//! Throttles log messages about repeated failures.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::telemetry::metrics::{ErrorReason, Source};

/// The minimum time between two messages with the same key.
const PERIOD: Duration = Duration::from_secs(60);

/// The time of the last message for each key.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle {
    last_logged: Mutex<HashMap<String, Instant>>,
}

impl LogThrottle {
    /// Returns true if a message with `key` must be logged now. This is the case at most once per minute.
    pub(crate) fn is_due(&self, key: &str) -> bool {
        let now = Instant::now();
        let mut last_logged = self.lock();
        last_logged.retain(|_, last| now < *last + PERIOD);
        if last_logged.contains_key(key) {
            return false;
        }
        last_logged.insert(key.to_owned(), now);
        true
    }

    /// Forgets the message with `key` because the failure is over. Returns true if a message was logged.
    pub(crate) fn end(&self, key: &str) -> bool {
        self.lock().remove(key).is_some()
    }

    /// Logs that `source` cannot be watched, unless this was logged recently.
    ///
    /// If the API server is unreachable, one message is logged for all sources.
    pub(crate) fn watch_failed(&self, source: Source, reason: ErrorReason, text: &str) {
        if is_connection_failure(reason) {
            if self.is_due(reason.as_str()) {
                tracing::warn!("{text}; retrying; similar failures are not logged for a minute");
            }
        } else if self.is_due(source.as_str()) {
            tracing::warn!("{text}; retrying");
        }
    }

    /// Logs that the permission to watch `source` is missing, unless this was logged recently.
    pub(crate) fn watch_forbidden(&self, source: Source, text: &str) {
        if self.is_due(&rejection(source)) {
            tracing::error!("{text}; retrying until it is granted");
        }
    }

    /// Logs that `source` is watched again, if its failure was logged.
    pub(crate) fn watch_recovered(&self, source: Source) {
        let of_source = [self.end(source.as_str()), self.end(&rejection(source))];
        if of_source.contains(&true) {
            tracing::info!(source = source.as_str(), "watch recovered");
        }
        let of_connection =
            [ErrorReason::Connection, ErrorReason::Timeout].map(|reason| self.end(reason.as_str()));
        if of_connection.contains(&true) {
            tracing::info!("the API server is reachable again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.last_logged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_connection_failure(reason: ErrorReason) -> bool {
    matches!(reason, ErrorReason::Connection | ErrorReason::Timeout)
}

fn rejection(source: Source) -> String {
    format!("{} refused", source.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn message_is_due_once_per_minute_per_key() {
        let log_throttle = LogThrottle::default();
        assert!(log_throttle.is_due("a"));
        assert!(!log_throttle.is_due("a"));
        assert!(log_throttle.is_due("b"));
        tokio::time::advance(PERIOD).await;
        assert!(log_throttle.is_due("a"));
        assert!(log_throttle.end("a"));
        assert!(!log_throttle.end("a"));
        assert!(log_throttle.is_due("a"));
    }
}
