//! Runs the steps of a check on separate threads, with time limits. A panic affects only the checked policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::super::result::Interrupted;
use crate::cel::interrupt::Interrupt;
use crate::cluster::blocking;
use crate::controller::context::Context;
use crate::controller::subjects::check_result::{Lane, Late, LateStep};
use crate::controller::subjects::store::Entry;
use crate::policy::subject::SubjectId;
use crate::telemetry::Metrics;

pub(super) enum Guarded<T> {
    /// The step returned this value. If an inner step was interrupted, [`Late`] contains the details.
    Done(T, Late),
    Panicked,
    /// The step was interrupted because it exceeded its time limit.
    Late(Late),
}

impl<T> Guarded<T> {
    /// Returns the value. `None` if the step panicked, or an error if it was interrupted.
    pub(super) fn value(self) -> Result<Option<T>, Late> {
        match self {
            Self::Done(value, _) => Ok(Some(value)),
            Self::Panicked => Ok(None),
            Self::Late(late) => Err(late),
        }
    }
}

/// Runs one step of a check on a separate thread, within the limits of `lane`.
pub(super) async fn guard<T: Send + 'static>(
    context: &Context,
    policy: &SubjectId,
    lane: Lane,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Guarded<T>, Interrupted> {
    let metrics = &context.metrics;
    let start = Instant::now();
    let stop: Arc<AtomicBool> = Arc::default();
    let flag = Arc::clone(&stop);
    let interrupt = Interrupt::new(move || flag.load(Ordering::Relaxed));
    let has_yielded = AtomicBool::new(false);
    let is_contended = || {
        let is_contended = blocking::has_waiting_check() || context.queue.len() > 0;
        has_yielded.store(is_contended, Ordering::Relaxed);
        is_contended
    };
    let limit = context.lanes.limit(lane);
    let running = interrupt.clone();
    let work = move || running.run(work);
    let outcome = blocking::run_within(lane.kind(), limit, stop, is_contended, work).await;
    metrics.checked(start.elapsed().as_secs_f64());
    let late = |is_stuck| Late {
        field: interrupt.field(),
        limit: limit.deadline,
        next: match lane {
            _ if is_stuck => None,
            Lane::Quick if has_yielded.load(Ordering::Relaxed) => Some(Lane::Deferred),
            Lane::Quick | Lane::Deferred => Some(Lane::Slow),
            Lane::Slow => None,
        },
        is_stuck,
    };
    match outcome {
        Ok(Some(Ok(value))) => Ok(Guarded::Done(value, late(false))),
        Ok(Some(Err(_))) => Ok(Guarded::Late(late(false))),
        Ok(None) => {
            tracing::error!(
                policy = policy.to_string(),
                field = interrupt.field(),
                "the check of this policy does not end after it was canceled, which is a bug; please report it"
            );
            Ok(Guarded::Late(late(true)))
        }
        Err(error) if error.is_panic() => {
            panicked(policy, metrics);
            Ok(Guarded::Panicked)
        }
        Err(_) => Err(Interrupted),
    }
}

/// Logs and counts a panic of a check.
pub(super) fn panicked(policy: &SubjectId, metrics: &Metrics) {
    metrics.check_panicked();
    tracing::error!(
        policy = policy.to_string(),
        "the check of this policy panicked, which is a bug; please report it"
    );
}

/// Moves the check of `entry` to the next lane, which has a longer time limit. Returns true if there is such a lane.
///
/// If there is no next lane, records and logs that the check exceeded its time limit.
pub(super) fn defer(context: &Context, entry: &Entry, late: &LateStep) -> bool {
    let Late {
        next,
        is_stuck,
        field,
        limit,
    } = &late.late;
    if let Some(next) = next {
        context.lanes.defer(&entry.id, entry.generation(), *next);
        return true;
    }
    let generation = entry.generation();
    context.lanes.exceeded(&entry.id, generation, *is_stuck);
    context.metrics.check_deadline_exceeded();
    tracing::warn!(
        policy = %entry.id,
        field,
        limit = limit.as_secs(),
        "the check of this policy exceeded its time limit; its conditions are Unknown"
    );
    false
}
