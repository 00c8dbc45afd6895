//! Verdicts: conditions before they are dated, with the evidence that they rest on.

use super::compute::{CheckStep, Deadline};
use super::condition::{ConditionStatus, Reason};
use crate::policy::subject::SubjectKind;

/// One condition before it is dated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) status: ConditionStatus,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) evidence: Evidence,
    /// By what it may be out of date ([`super::out_of_date`]).
    pub(super) note: Option<String>,
}

/// The effect of a policy on the requests that it matches, and on those for which it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// True if they are denied then: failurePolicy is not `Ignore`.
    pub(crate) fails_closed: bool,
    /// The kind of the policy.
    pub(crate) subject: SubjectKind,
}

impl Effect {
    /// Reports whether it changes requests, and does not check them.
    pub(crate) const fn is_mutating(self) -> bool {
        matches!(self.subject, SubjectKind::MutatingAdmissionPolicy)
    }

    /// The participle for what it does to requests.
    pub(crate) const fn done(self) -> &'static str {
        if self.is_mutating() {
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

    pub(super) fn broken_off() -> Self {
        Self::new(
            ConditionStatus::Unknown,
            Reason::InternalError,
            "the check of this policy broke off on an error of vap-status-controller; its log has \
             the details",
        )
        .with_evidence(Evidence::Awaited)
    }

    /// The status of a check that took too long.
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
        .with_evidence(Evidence::Awaited)
    }
}
