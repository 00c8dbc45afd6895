//! The backoff of a watch after a failure.

use std::time::Duration;

use tokio::time::Instant;

use super::readiness::Readiness;

/// The backoff after the first failure, and the maximum backoff.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The time without failures after which the backoff is reset.
const RESET_AFTER: Duration = Duration::from_secs(10);

/// The minimum length of a wait that ends early because another source recovers.
const LEAST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Backoff {
    pause: Duration,
    /// The end of the last backoff.
    rested: Option<Instant>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            pause: PAUSES.0,
            rested: None,
        }
    }
}

impl Backoff {
    /// Waits after a failure. The wait doubles with each failure, and ends early if another source recovers.
    pub(crate) async fn rest(&mut self, readiness: &Readiness) {
        let is_first = self
            .rested
            .is_none_or(|rested| rested.elapsed() >= RESET_AFTER);
        self.pause = if is_first {
            PAUSES.0
        } else {
            (self.pause * 2).min(PAUSES.1)
        };
        let mut recoveries = readiness.recoveries();
        let end = Instant::now() + self.pause;
        tokio::time::sleep(self.pause.min(LEAST)).await;
        // The wait cannot fail, since `readiness` owns the sender.
        drop(tokio::time::timeout_at(end, recoveries.changed()).await);
        self.rested = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Source;

    async fn rest(backoff: &mut Backoff, readiness: &Readiness) -> Duration {
        let start = Instant::now();
        backoff.rest(readiness).await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn backoff_doubles_and_resets_after_quiet_time() {
        let (mut backoff, readiness) = (Backoff::default(), Readiness::default());
        for expect in [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000] {
            let pause = rest(&mut backoff, &readiness).await;
            assert_eq!(pause, Duration::from_millis(expect));
        }
        tokio::time::advance(RESET_AFTER).await;
        assert_eq!(rest(&mut backoff, &readiness).await, PAUSES.0);
    }

    #[tokio::test(start_paused = true)]
    async fn backoff_ends_early_if_another_source_recovers() {
        let (mut backoff, readiness) = (Backoff::default(), Readiness::default());
        for _ in 0..6 {
            rest(&mut backoff, &readiness).await;
        }
        let other = readiness.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            other.failed(Source::Crds, "refused".to_owned());
            other.synced(Source::Crds);
        });
        assert_eq!(rest(&mut backoff, &readiness).await, Duration::from_secs(3));
    }
}
