//! A rate limit (token bucket): allows a burst of actions, and then one action in each interval.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    burst: u32,
    pace: Duration,
    /// The time at which the bucket is full again.
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` tokens that gains one token per `pace`.
    pub(crate) const fn new(burst: u32, pace: Duration, now: Instant) -> Self {
        Self {
            burst,
            pace,
            full_at: now,
        }
    }

    /// Takes a token. Returns the earliest time of the action: `now`, or later if the bucket is empty.
    pub(crate) fn take(&mut self, now: Instant) -> Instant {
        self.full_at = self.full_at.max(now) + self.pace;
        let allowed = self.full_at.checked_sub(self.pace * self.burst);
        allowed.map_or(now, |allowed| allowed.max(now))
    }

    pub(crate) fn has_token(mut self, now: Instant) -> bool {
        self.take(now) <= now
    }

    pub(crate) fn is_full(self, now: Instant) -> bool {
        self.full_at <= now
    }
}
