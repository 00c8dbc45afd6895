//! Verdicts: conditions before they are dated, with the evidence that they rest on.

use super::condition::{ConditionStatus, Reason};

/// One condition before it is dated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) status: ConditionStatus,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) evidence: Evidence,
}

/// What a policy does to the requests that it matches, and what becomes of them where it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// True if they are denied then: failurePolicy is not `Ignore`.
    pub(crate) fails_closed: bool,
    /// True if it changes requests, and does not check them.
    pub(crate) is_mutating: bool,
}

impl Effect {
    /// What it does to requests, as a participle.
    pub(crate) const fn done(self) -> &'static str {
        if self.is_mutating {
            "changed"
        } else {
            "checked"
        }
    }
}

/// The evidence of a verdict: what of it cannot be had now, so that the verdict may change by waiting alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// All that it takes.
    Complete,
    /// Some detail is missing: the status is right in any case.
    WithoutDetail,
    /// Some comes by waiting: the status may turn out to be another.
    Awaited,
    /// Some does not come by waiting: what was known before says nothing of today.
    Lost,
}

impl Verdict {
    pub(super) fn new(status: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            evidence: Evidence::Complete,
        }
    }

    pub(super) fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    pub(super) fn broken_off() -> Self {
        Self::new(
            ConditionStatus::Unknown,
            Reason::InternalError,
            "the check of this policy broke off on an error of vap-status-controller; its log has \
             the details",
        )
        .with_evidence(Evidence::Awaited)
    }
}
