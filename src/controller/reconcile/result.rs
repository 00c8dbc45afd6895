//! Results of a reconciliation.

use crate::cluster::error::Error;
use crate::telemetry::metrics::{ErrorReason, ReconcileOutcome, Skipped};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileResult {
    Applied,
    /// The subject or its status object is deleted.
    Deleted,
    /// The object has changed during the reconciliation.
    Conflict,
    Skipped(Skipped),
}

impl ReconcileResult {
    /// Returns true if the subject must be reconciled again after a backoff. If false, only a change queues the subject
    /// again.
    pub(crate) const fn retries_with_backoff(self) -> bool {
        matches!(self, Self::Conflict | Self::Skipped(Skipped::RateLimited))
    }

    /// Returns the result as a metric label.
    pub(crate) const fn outcome(self) -> ReconcileOutcome {
        match self {
            Self::Applied => ReconcileOutcome::Applied,
            Self::Deleted => ReconcileOutcome::Deleted,
            Self::Conflict => ReconcileOutcome::Conflict,
            Self::Skipped(Skipped::NotLeader) => ReconcileOutcome::Observed,
            Self::Skipped(Skipped::RateLimited) => ReconcileOutcome::RateLimited,
            Self::Skipped(_) => ReconcileOutcome::Unchanged,
        }
    }
}

impl From<Skipped> for ReconcileResult {
    fn from(reason: Skipped) -> Self {
        Self::Skipped(reason)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    #[error(transparent)]
    Request(#[from] Error),
    /// The CustomResourceDefinition to check could not be read.
    #[error("{0}")]
    Unread(Error),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl ReconcileError {
    pub(crate) fn reason(&self) -> ErrorReason {
        match self {
            Self::Request(error) | Self::Unread(error) => error.reason(),
            Self::Interrupted(_) => ErrorReason::Other,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_outcome_and_retry() {
        for (result, outcome, retries) in [
            (ReconcileResult::Applied, ReconcileOutcome::Applied, false),
            (ReconcileResult::Deleted, ReconcileOutcome::Deleted, false),
            (ReconcileResult::Conflict, ReconcileOutcome::Conflict, true),
            (Skipped::NotLeader.into(), ReconcileOutcome::Observed, false),
            (
                Skipped::RateLimited.into(),
                ReconcileOutcome::RateLimited,
                true,
            ),
            (Skipped::Equal.into(), ReconcileOutcome::Unchanged, false),
            (
                Skipped::ParamsLoading.into(),
                ReconcileOutcome::Unchanged,
                false,
            ),
        ] {
            assert_eq!(result.outcome().as_str(), outcome.as_str(), "{result:?}");
            assert_eq!(result.retries_with_backoff(), retries, "{result:?}");
        }
        assert_eq!(
            ReconcileError::from(Interrupted).reason(),
            ErrorReason::Other
        );
    }
}
