//! Limits of the time, memory and concurrency of evaluations. Quick and slow evaluations have separate limits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::controller::process::memory;

/// The queue of an evaluation. Each lane has its own limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// For evaluations with a short time limit. All probes start in this lane.
    Quick,
    /// For evaluations that exceeded the limits of [`Lane::Quick`].
    Slow,
}

impl Lane {
    /// Returns the name of the lane's task for the supervisor.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Quick => "probes",
            Self::Slow => "slow-probes",
        }
    }

    /// Returns the number of policies that are processed concurrently. One of them is evaluated. The others wait for
    /// the API server.
    pub(crate) const fn concurrency(self) -> usize {
        match self {
            Self::Quick => 16,
            Self::Slow => 4,
        }
    }
}

/// The limits of both lanes.
#[derive(Debug)]
pub(crate) struct EvaluationSlots {
    pub(crate) quick: EvaluationSlot,
    pub(crate) slow: EvaluationSlot,
}

/// The limits of one lane, which evaluates the probes of one policy at a time.
#[derive(Debug)]
pub(crate) struct EvaluationSlot {
    pub(crate) permit: Arc<Semaphore>,
    /// The time limit for evaluating all probes of a policy.
    pub(crate) limit: Duration,
    /// The maximum memory of the parsed objects of one evaluation, in bytes.
    pub(crate) max_bytes: usize,
    /// Permits for the JSON of objects that wait for the evaluation. One permit is for one KiB.
    texts: Arc<Semaphore>,
}

impl EvaluationSlot {
    pub(crate) fn new(limit: Duration, max_bytes: usize) -> Self {
        Self {
            permit: Arc::new(Semaphore::new(1)),
            limit,
            max_bytes,
            texts: Arc::new(Semaphore::new(memory::MAX_IN_FLIGHT / 1024)),
        }
    }

    /// Waits until the JSON of `n` params and definitions may be read. The caller must hold the permit until the
    /// evaluation. `None` if `n` is 0.
    pub(crate) async fn reserve_texts(&self, n: usize) -> Option<OwnedSemaphorePermit> {
        if n == 0 {
            return None;
        }
        let n_bytes = n.saturating_mul(memory::LIKELY_OBJECT_TEXT);
        let kib = n_bytes.min(memory::MAX_PARAMS_OF_POLICY) / 1024;
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        // The wait cannot fail, since the semaphore is never closed.
        Arc::clone(&self.texts).acquire_many_owned(kib).await.ok()
    }
}

impl Default for EvaluationSlots {
    fn default() -> Self {
        Self {
            quick: EvaluationSlot::new(Duration::from_secs(1), memory::MAX_QUICK_EVALUATION),
            slow: EvaluationSlot::new(Duration::from_secs(10), memory::MAX_EVALUATION),
        }
    }
}

impl EvaluationSlots {
    pub(crate) fn get(&self, lane: Lane) -> &EvaluationSlot {
        match lane {
            Lane::Quick => &self.quick,
            Lane::Slow => &self.slow,
        }
    }
}
