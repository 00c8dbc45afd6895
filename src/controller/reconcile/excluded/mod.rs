//! Removes the controller's status from excluded policies.
//!
//! Excluded policies are neither checked nor written, and have no metrics. If a policy still has conditions of the
//! controller from the time before its exclusion, they are removed, so that no outdated status remains.

use std::sync::Arc;

use super::apply::Written;
use super::clear_status::clear;
use super::result::{ReconcileError, ReconcileResult};
use crate::controller::context::Context;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::exclude::Excluded;
use crate::controller::subjects::store::Entry;
use crate::telemetry::metrics::Skipped;

/// Removes the metrics of an excluded policy and the controller's fields in its status. The policy's probes become
/// pending.
///
/// # Errors
/// Returns an error if the API server rejects the write or does not respond in time.
pub(crate) async fn leave(
    context: &Arc<Context>,
    entry: &Entry,
    excluded: Excluded,
) -> Result<ReconcileResult, ReconcileError> {
    let id = &entry.id;
    context.metrics.remove_policy(id);
    context.admissions.forget(id);
    // The next evaluation of the probes reports in their statuses that the policy is excluded.
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
