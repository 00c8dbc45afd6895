//! Handling of errors by the failure policy.

use super::outcome::{Action, AuditAnnotationAction, Decision, EvaluationResult};

/// The handling of errors that a policy asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FailurePolicy {
    /// They deny.
    Fail,
    /// They admit.
    Ignore,
    /// A policy that no API server has checked says something else.
    Unknown(String),
}

impl FailurePolicy {
    /// Reads a failure policy; `Fail` is the default.
    pub(super) fn new(text: Option<&str>) -> Self {
        match text {
            None | Some("Fail") => Self::Fail,
            Some("Ignore") => Self::Ignore,
            Some(other) => Self::Unknown(other.to_owned()),
        }
    }

    /// The action taken on an error of a validation.
    ///
    /// Source: `validator.go`, `policyDecisionActionForError`.
    pub(super) fn action(&self) -> Action {
        match self {
            Self::Ignore => Action::Admit,
            Self::Fail | Self::Unknown(_) => Action::Deny,
        }
    }

    /// The decision about an error of a validation.
    pub(super) fn decision(&self, message: String) -> Decision {
        Decision {
            action: self.action(),
            evaluation: EvaluationResult::Error,
            message,
            reason: String::new(),
        }
    }

    /// The action taken on an error of an audit annotation.
    ///
    /// Source: `validator.go`, `auditAnnotationEvaluationForError`.
    pub(super) fn audit_annotation_action(&self) -> AuditAnnotationAction {
        match self {
            Self::Ignore => AuditAnnotationAction::Exclude,
            Self::Fail | Self::Unknown(_) => AuditAnnotationAction::Error,
        }
    }
}
