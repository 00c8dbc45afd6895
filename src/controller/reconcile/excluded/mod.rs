//! Removal of our status from policies that are excluded.
//!
//! Excluded policies are neither checked nor written, and have no metrics. If an earlier run has written the status of a
//! policy that is excluded now, the conditions are removed once, so that no outdated status remains.

use std::sync::Arc;

use super::apply::Written;
use super::clear_status::clear;
use super::result::{ReconcileError, ReconcileResult};
use crate::controller::context::Context;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::exclude::Excluded;
use crate::controller::subjects::store::Entry;
use crate::telemetry::metrics::Skipped;

/// Excludes a policy: removes its metrics and what we wrote to its status; its probes are pending.
///
/// # Errors
/// If the API server rejects a write.
pub(crate) async fn leave(
    context: &Arc<Context>,
    entry: &Entry,
    excluded: Excluded,
) -> Result<ReconcileResult, ReconcileError> {
    let id = &entry.id;
    context.metrics.remove_policy(id);
    context.admissions.forget(id);
    // The next evaluation writes to the statuses of its probes that the policy is excluded.
    context.probe_runner.add(id);
    if !excluded.owns_status {
        return Ok(Skipped::Excluded.into());
    }
    let Some(permit) = context.leadership.may_write() else {
        return Ok(Skipped::NotLeader.into());
    };
    let (policies, metadata) = (context.policies(), entry.metadata());
    let cleared = permit.within(clear(&policies, &metadata, true));
    Ok(match cleared.await? {
        Written::Applied(written) => {
            context.metrics.status_written();
            tracing::info!(
                policy = id.to_string(),
                "cleared the status of an excluded policy"
            );
            context.store.put(*written, EventSource::Answered);
            ReconcileResult::Applied
        }
        Written::Conflict => ReconcileResult::Conflict,
        Written::Gone => ReconcileResult::Deleted,
    })
}

#[cfg(test)]
mod tests;
