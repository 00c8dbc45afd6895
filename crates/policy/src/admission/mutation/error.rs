//! Errors of mutations, and whether a failure policy decides about them.

use std::sync::Arc;

use super::super::outcome::{DeniedBy, Status};
use kubernetes::json_patch::PatchError;
use kubernetes::merge;

/// The error of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    /// The part of the mutation that failed.
    pub cause: StepCause,
    /// The error in the words of the API server.
    pub message: String,
}

/// The part of a mutation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepCause {
    /// The types of the object's kind are not known to the API server yet.
    NoTypes,
    /// The expression does not compile, or its evaluation failed.
    Expression,
    /// The value of the expression is none that can be applied.
    Value {
        /// The type of an object that stands where one of another type belongs.
        misplaced: Option<Arc<str>>,
    },
    /// The value does not go together with the object.
    Merge(merge::Error),
    /// The patch does not go together with the object.
    Patch {
        /// The error.
        error: PatchError,
        /// The path of the operation that failed.
        path: Option<String>,
    },
    /// The object after the mutation cannot be read.
    Decoding,
    /// The API server panics.
    Panic,
}

/// The value of an expression that cannot be applied.
#[derive(Debug)]
pub(super) struct ValueError {
    /// The error in the words of the API server.
    pub(super) message: String,
    /// The type of an object that stands where one of another type belongs.
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

/// A mutation that failed.
#[derive(Debug)]
pub(super) struct Failure {
    cause: Box<StepCause>,
    /// The end of the request.
    pub(super) end: End,
}

/// The end of a request whose mutation failed.
#[derive(Debug)]
pub(super) enum End {
    /// The failure policy decides.
    Policy(String),
    /// The request is refused, whatever it says.
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

    /// The answer to a request for which the API server panics.
    ///
    /// Source: apiserver `pkg/server/filters/wrap.go`, `WithPanicRecovery`.
    pub(super) fn panicked() -> Self {
        let text = "This request caused apiserver to panic. Look in the logs for details.";
        Self::request_error(StepCause::Panic, status(500, "InternalError", text))
    }

    /// The error of the step.
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

/// The answer to a request that is refused.
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

/// The answer to a request that ends with an internal error.
///
/// Source: apimachinery `pkg/api/errors/errors.go`, `NewInternalError`.
pub(super) fn internal(error: &str) -> Status {
    status(
        500,
        "InternalError",
        &format!("Internal error occurred: {error}"),
    )
}
