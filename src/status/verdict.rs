//! Verdicts: the content of a condition, and the completeness of its inputs.

use super::compute::{CheckStep, Deadline};
use super::condition::{ConditionStatus, Reason};
use crate::policy::subject::SubjectKind;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) status: ConditionStatus,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) evidence: Evidence,
    /// The reason why the condition may be out of date, if any ([`super::staleness`]).
    pub(super) note: Option<String>,
}

/// The properties that determine a policy's effect on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    /// True if a failure of the policy denies the request: failurePolicy is not `Ignore`.
    pub(crate) fails_closed: bool,
    pub(crate) subject: SubjectKind,
}

impl Effect {
    pub(crate) const fn is_mutating(self) -> bool {
        matches!(self.subject, SubjectKind::MutatingAdmissionPolicy)
    }

    /// Returns the participle for the policy's effect on requests: `changed` or `checked`.
    pub(crate) const fn done(self) -> &'static str {
        if self.is_mutating() {
            "changed"
        } else {
            "checked"
        }
    }
}

/// The completeness of a verdict's inputs. It determines whether a stored verdict is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// All inputs are available.
    Complete,
    /// The status is correct, but details are missing. A stored verdict with this status is retained.
    Partial,
    /// Inputs are temporarily unavailable. A stored verdict is retained.
    Pending,
    /// Inputs are permanently unavailable. A stored verdict is not retained.
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

    pub(super) fn internal_error() -> Self {
        Self::new(
            ConditionStatus::Unknown,
            Reason::InternalError,
            "the check of this policy failed with an internal error in vap-status-controller; see its log",
        )
        .with_evidence(Evidence::Pending)
    }

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
            (None, CheckStep::Matching) => (String::new(), "reduce the number of rules"),
            (None, _) => (
                String::new(),
                "reduce the number or the length of the expressions",
            ),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn deadline_message_has_step_field_and_action() {
        let rest = "and requests are not affected";
        for (step, field, expected) in [
            (
                CheckStep::Matching,
                None,
                format!(
                    "matching the rules exceeded the time limit of 3 s; this condition is unknown, {rest}; \
                     reduce the number of rules"
                ),
            ),
            (
                CheckStep::Compiling,
                None,
                format!(
                    "compiling the expressions exceeded the time limit of 3 s; errors in the expressions are unknown, \
                     {rest}; reduce the number or the length of the expressions"
                ),
            ),
            (
                CheckStep::Compiling,
                Some("spec.x"),
                format!(
                    "compiling the expressions exceeded the time limit of 3 s at spec.x; errors in the expressions are \
                     unknown, {rest}; shorten or split this expression"
                ),
            ),
            (
                CheckStep::TypeChecking,
                None,
                format!(
                    "checking the types of the expressions exceeded the time limit of 3 s; warnings about the \
                     expressions are unknown, {rest}; reduce the number or the length of the expressions"
                ),
            ),
            (
                CheckStep::TypeChecking,
                Some("spec.x"),
                format!(
                    "checking the types of the expressions exceeded the time limit of 3 s at spec.x; warnings about \
                     the expressions are unknown, {rest}; shorten or split this expression, or let the rules match \
                     fewer kinds"
                ),
            ),
        ] {
            let verdict = Verdict::deadline_exceeded(Deadline {
                limit: Duration::from_secs(3),
                step,
                field,
            });
            assert_eq!(verdict.message, expected);
            assert_eq!(verdict.status, ConditionStatus::Unknown);
            assert_eq!(verdict.reason, Reason::DeadlineExceeded);
            assert_eq!(verdict.evidence, Evidence::Pending);
        }
    }
}
