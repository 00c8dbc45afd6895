//! Errors of mutations. The type of an error determines whether the failure policy applies to it.

use std::sync::Arc;

use super::super::outcome::{DeniedBy, Status};
use kubernetes::json_patch::PatchError;
use kubernetes::merge;

/// The error of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    /// The step that failed.
    pub cause: StepCause,
    /// The API server's error message.
    pub message: String,
}

/// The step of a mutation that failed, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepCause {
    /// The API server does not know the types of the object's kind yet.
    NoTypes,
    /// The expression does not compile, or its evaluation failed.
    Expression,
    /// The value of the expression has a form that cannot be applied.
    Value {
        /// The type of the first nested object whose type does not match its field. `None` for other errors.
        misplaced: Option<Arc<str>>,
    },
    /// The value cannot be merged into the object.
    Merge(merge::Error),
    /// The patch cannot be applied to the object.
    Patch {
        /// The patch error.
        error: PatchError,
        /// The path of the operation that failed.
        path: Option<String>,
    },
    /// The object cannot be decoded after the mutation.
    Decoding,
    /// The API server panics when it applies the mutation.
    Panic,
}

#[derive(Debug)]
pub(super) struct ValueError {
    pub(super) message: String,
    /// The type of the first nested object whose type does not match its field. `None` for other errors.
    pub(super) misplaced: Option<Arc<str>>,
}

impl From<String> for ValueError {
    fn from(message: String) -> Self {
        Self {
            message,
            misplaced: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Failure {
    cause: Box<StepCause>,
    pub(super) end: End,
}

/// The effect of a failed mutation on the request.
#[derive(Debug)]
pub(super) enum End {
    /// The failure policy applies to the error with this message.
    Policy(String),
    /// The request is rejected with this status. The failure policy does not apply.
    Request(Status),
}

impl Failure {
    pub(super) fn policy_error(cause: StepCause, message: String) -> Self {
        let (cause, end) = (Box::new(cause), End::Policy(message));
        Self { cause, end }
    }

    pub(super) fn request_error(cause: StepCause, status: Status) -> Self {
        let (cause, end) = (Box::new(cause), End::Request(status));
        Self { cause, end }
    }

    pub(super) fn value_error(error: ValueError) -> Self {
        let misplaced = error.misplaced;
        Self::policy_error(StepCause::Value { misplaced }, error.message)
    }

    /// Returns the failure of a mutation that makes the API server panic.
    ///
    /// Source: apiserver `pkg/server/filters/wrap.go`, `WithPanicRecovery`.
    pub(super) fn panicked() -> Self {
        let text = "This request caused apiserver to panic. Look in the logs for details.";
        Self::request_error(StepCause::Panic, status(500, "InternalError", text))
    }

    pub(super) fn error(&self) -> StepError {
        StepError {
            cause: StepCause::clone(&self.cause),
            message: match &self.end {
                End::Policy(message) => message.clone(),
                End::Request(status) => status.message.clone(),
            },
        }
    }
}

pub(super) fn status(code: u16, reason: &str, message: &str) -> Status {
    Status {
        code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        cause: message.to_owned(),
        binding: None,
        by: DeniedBy::Error,
    }
}

/// Returns the status of a request that ends with an internal error.
///
/// Source: apimachinery `pkg/api/errors/errors.go`, `NewInternalError`.
pub(super) fn internal(error: &str) -> Status {
    status(
        500,
        "InternalError",
        &format!("Internal error occurred: {error}"),
    )
}
