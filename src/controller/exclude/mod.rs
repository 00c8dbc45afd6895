//! Policies that are none of our business: those of the platform's vendor, by name or label.
//!
//! They are neither judged nor written, and no series is exported about them. A policy that becomes one, or
//! that an earlier run has judged, loses what we wrote once: a status that nobody keeps current must not
//! stand.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::apply::Written;
use super::clear;
use super::context::Context;
use super::event_source::EventSource;
use super::reconcile::{ReconcileError, ReconcileResult};
use super::shared_conditions;
use super::store::Entry;
use crate::status::exclusion::Exclusion;
use crate::telemetry::metrics::Skipped;

/// A policy that is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Excluded {
    /// True if its status has fields of ours.
    pub(crate) has_ours: bool,
}

/// Returns the exclusion of the policy if it is left alone; it must have its labels and its managed
/// fields still.
pub(crate) fn excluded(
    exclusion: &Exclusion,
    policy: &ValidatingAdmissionPolicy,
) -> Option<Excluded> {
    let metadata = &policy.metadata;
    exclusion.excludes(metadata).then(|| Excluded {
        has_ours: has_ours(metadata),
    })
}

/// Reports whether the status has fields that we applied.
pub(super) fn has_ours(metadata: &ObjectMeta) -> bool {
    shared_conditions::ours(metadata).next().is_some()
}

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
    if !excluded.has_ours {
        return Ok(Skipped::Excluded.into());
    }
    let Some(deadline) = context.leadership.may_write() else {
        return Ok(Skipped::NotLeader.into());
    };
    let policies = context.policies();
    let cleared = deadline.within(clear::clear(&policies, &policy.metadata, true));
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
