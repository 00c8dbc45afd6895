//! Removal of our status from policies that are excluded.
//!
//! They are neither checked nor written, and have no metrics. A policy that becomes excluded, or that an earlier run has
//! checked, loses what we wrote once: no status remains that nobody updates.

use std::sync::Arc;

use super::apply::Written;
use super::clear_status::clear;
use super::result::{ReconcileError, ReconcileResult};
use crate::controller::context::Context;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::exclude::Excluded;
use crate::controller::subjects::store::Entry;
use crate::telemetry::metrics::Skipped;

/// Leaves a policy alone: it has no series and nothing of ours in its status; its probes wait.
///
/// # Errors
/// Where the API server does not take what has to be written.
pub(crate) async fn leave(
    context: &Arc<Context>,
    entry: &Entry,
    excluded: Excluded,
) -> Result<ReconcileResult, ReconcileError> {
    let (id, policy) = (&entry.id, &entry.policy);
    context.metrics.remove_policy(id);
    context.admissions.forget(id);
    // Its probes are told so.
    context.probe_runner.add(id);
    if !excluded.owns_status {
        return Ok(Skipped::Excluded.into());
    }
    let Some(permit) = context.leadership.may_write() else {
        return Ok(Skipped::NotLeader.into());
    };
    let policies = context.policies();
    let cleared = permit.within(clear(&policies, &policy.metadata, true));
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
