//! The failure policy: the effect of errors on the request.

use super::outcome::{Action, AuditAnnotationAction, Decision, EvaluationResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    /// An error denies the request.
    Fail,
    /// An error does not deny the request.
    Ignore,
    /// An invalid value. The API server rejects it, but a policy in a file may contain it.
    Unknown(String),
}

impl FailurePolicy {
    /// Parses a failure policy. The default is `Fail`.
    pub(super) fn new(text: Option<&str>) -> Self {
        match text {
            None | Some("Fail") => Self::Fail,
            Some("Ignore") => Self::Ignore,
            Some(other) => Self::Unknown(other.to_owned()),
        }
    }

    /// Returns the action for an error of a validation.
    ///
    /// Source: `validator.go`, `policyDecisionActionForError`.
    pub(super) fn action(&self) -> Action {
        match self {
            Self::Ignore => Action::Admit,
            Self::Fail | Self::Unknown(_) => Action::Deny,
        }
    }

    pub(super) fn decision(&self, message: String) -> Decision {
        Decision {
            action: self.action(),
            evaluation: EvaluationResult::Error,
            message,
            reason: String::new(),
        }
    }

    /// Returns the action for an error of an audit annotation.
    ///
    /// Source: `validator.go`, `auditAnnotationEvaluationForError`.
    pub(super) fn audit_annotation_action(&self) -> AuditAnnotationAction {
        match self {
            Self::Ignore => AuditAnnotationAction::Exclude,
            Self::Fail | Self::Unknown(_) => AuditAnnotationAction::Error,
        }
    }
}
