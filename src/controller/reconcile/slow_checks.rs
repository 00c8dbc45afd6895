//! Runs deferred and slow checks ([`Lane::Deferred`] and [`Lane::Slow`]). Each lane has its own queue, task and thread.
//! After its check, a policy returns to the main queue.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;

use super::check;
use super::result::ReconcileError;
use crate::controller::context::Context;
use crate::controller::process::queue::{Queue, random};
use crate::controller::process::supervisor::WORK_LIMIT;
use crate::controller::subjects::check_result::Lane;
use crate::policy::subject::SubjectId;

/// Runs the checks in both lanes. Never returns.
pub(crate) async fn work(context: Arc<Context>) {
    context.started().await;
    tokio::join!(
        work_lane(&context, Lane::Deferred, &context.lanes.deferred),
        work_lane(&context, Lane::Slow, &context.lanes.slow)
    );
}

async fn work_lane(context: &Arc<Context>, lane: Lane, queue: &Queue) {
    let heartbeat = context.supervisor.heartbeat(lane.task(), WORK_LIMIT);
    let mut idle = tokio::time::interval(WORK_LIMIT / 10);
    loop {
        let id = tokio::select! {
            biased;
            id = queue.next() => id,
            _ = idle.tick() => {
                heartbeat.beat();
                continue;
            }
        };
        let outcome = AssertUnwindSafe(check_one(context, &id, lane)).catch_unwind();
        match outcome.await {
            Ok(Ok(())) => queue.done(&id),
            Ok(Err(failure)) => {
                tracing::debug!(policy = %id, error = %failure, "cannot check this policy, retrying");
                queue.failed(&id, random());
            }
            Err(_) => {
                context.metrics.check_panicked();
                tracing::error!(policy = %id, "the check of this policy panicked, which is a bug; please report it");
                queue.failed(&id, random());
            }
        }
        heartbeat.beat();
    }
}

/// Checks one policy. When there is a result, returns the policy to the main queue.
///
/// Omits the check if there is a valid result, or if the policy has moved to another lane.
async fn check_one(
    context: &Arc<Context>,
    id: &SubjectId,
    lane: Lane,
) -> Result<(), ReconcileError> {
    let entry = context.store.get(id);
    let Some(entry) = entry.filter(|entry| entry.excluded.is_none()) else {
        context.lanes.forget(id);
        return Ok(());
    };
    let snapshot = context.snapshot();
    let is_due = context.lanes.take_due(id);
    let is_known = (entry.result.as_ref())
        .is_some_and(|result| result.holds_for(&entry.generation(), &snapshot));
    let is_here = context.lanes.note_lane(&entry) == Some(lane);
    if !is_here || is_known && !is_due {
        context.queue.add(id);
        return Ok(());
    }
    if check::check_in(context, &entry, &snapshot, lane)
        .await?
        .is_ok()
    {
        context.queue.add(id);
    }
    Ok(())
}
