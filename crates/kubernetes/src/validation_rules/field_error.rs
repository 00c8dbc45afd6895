//! Field errors with the API server's messages.
//!
//! Source: apimachinery `pkg/util/validation/field/errors.go` (`Error`, `ErrorBody`).

use std::fmt;
use std::fmt::Write as _;

/// Types of field errors.
///
/// Source: apimachinery `pkg/util/validation/field/errors.go`, `ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// An invalid value.
    Invalid,
    /// A missing value.
    Required,
    /// A duplicate value.
    Duplicate,
    /// A value that a policy forbids.
    Forbidden,
    /// A value outside of the supported ones.
    NotSupported,
    /// A value of the wrong type.
    TypeInvalid,
    /// A string that is too long.
    TooLong,
    /// Too many elements or fields.
    TooMany,
    /// An internal error.
    Internal,
}

impl FieldErrorKind {
    /// Returns the name of the type, as in the cause of a status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::NotSupported => "Unsupported value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }

    const fn shows_value(self) -> bool {
        matches!(
            self,
            Self::Invalid
                | Self::TypeInvalid
                | Self::Duplicate
                | Self::NotSupported
                | Self::TooMany
        )
    }
}

/// A field error. Its `Display` is the API server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The type of the error.
    pub kind: FieldErrorKind,
    /// The path to the field in the API server's format, or `<nil>` for the whole object.
    pub field: String,
    /// The value in the API server's format, unless it is omitted.
    pub value: Option<String>,
    /// The reason.
    pub detail: String,
}

impl FieldError {
    /// Returns the message without the path.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if let Some(value) = &self.value
            && self.kind.shows_value()
        {
            let _ = write!(text, ": {value}");
        }
        if !self.detail.is_empty() {
            let _ = write!(text, ": {}", self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
