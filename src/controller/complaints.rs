//! Saying once what goes wrong again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long the same complaint stays unsaid.
const SILENCE: Duration = Duration::from_secs(60);

/// When what was said last.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    said: Mutex<HashMap<String, Instant>>,
}

impl Complaints {
    /// Whether to say what is known by `key` now: the first time, and then once a minute.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
