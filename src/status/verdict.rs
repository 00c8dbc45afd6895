//! Verdicts: conditions without a time, and the evidence for them.

use super::compute::{CheckStep, Deadline};
use super::condition::{ConditionStatus, Reason};
use crate::policy::subject::SubjectKind;

/// A condition without type and transition time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) status: ConditionStatus,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) evidence: Evidence,
    /// The cause by which the condition may be out of date ([`super::staleness`]).
    pub(super) note: Option<String>,
}

/// The properties of a policy that determine its effect on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// True if requests for which the policy fails are denied: failurePolicy is not `Ignore`.
    pub(crate) fails_closed: bool,
    /// The kind of the policy.
    pub(crate) subject: SubjectKind,
}

impl Effect {
    /// Returns true if the policy changes requests instead of checking them.
    pub(crate) const fn is_mutating(self) -> bool {
        matches!(self.subject, SubjectKind::MutatingAdmissionPolicy)
    }

    /// Returns the participle for the effect on requests: `changed` or `checked`.
    pub(crate) const fn done(self) -> &'static str {
        if self.is_mutating() {
            "changed"
        } else {
            "checked"
        }
    }
}

/// The completeness of the evidence for a verdict, which determines whether a stored verdict is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// All inputs are available.
    Complete,
    /// Details are missing, but the status is correct. A stored verdict with this status is retained.
    Partial,
    /// Inputs are temporarily unavailable, and the status may change. A stored verdict is retained.
    Pending,
    /// Inputs are unavailable, and waiting does not help. A stored verdict is discarded.
    Unavailable,
}

impl Verdict {
    pub(super) fn new(status: ConditionStatus, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            evidence: Evidence::Complete,
            note: None,
        }
    }

    pub(super) fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    pub(super) fn with_note(mut self, note: Option<String>) -> Self {
        self.note = note;
        self
    }

    /// Creates the verdict of a check that panicked.
    pub(super) fn internal_error() -> Self {
        Self::new(
            ConditionStatus::Unknown,
            Reason::InternalError,
            "the check of this policy failed with an internal error in vap-status-controller; see its log",
        )
        .with_evidence(Evidence::Pending)
    }

    /// Creates the verdict of a check that exceeded its time limit.
    pub(super) fn deadline_exceeded(deadline: Deadline<'_>) -> Self {
        let Deadline { limit, step, field } = deadline;
        let (work, unknown) = match step {
            CheckStep::Matching => ("matching the rules", "this condition is unknown"),
            CheckStep::Compiling => (
                "compiling the expressions",
                "errors in the expressions are unknown",
            ),
            CheckStep::TypeChecking => (
                "checking the types of the expressions",
                "warnings about the expressions are unknown",
            ),
        };
        let (place, action) = match (field, step) {
            (Some(field), CheckStep::TypeChecking) => (
                format!(" at {field}"),
                "shorten or split this expression, or let the rules match fewer kinds",
            ),
            (Some(field), _) => (format!(" at {field}"), "shorten or split this expression"),
            (None, CheckStep::Matching) => (String::new(), "give it fewer rules"),
            (None, _) => (String::new(), "give it fewer or shorter expressions"),
        };
        Self::new(
            ConditionStatus::Unknown,
            Reason::DeadlineExceeded,
            format!(
                "{work} exceeded the time limit of {} s{place}; {unknown}, and requests are not affected; {action}",
                limit.as_secs()
            ),
        )
        .with_evidence(Evidence::Pending)
    }
}
