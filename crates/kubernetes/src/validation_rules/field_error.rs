//! Field errors with the API server's messages.
//!
//! Source: apimachinery `pkg/util/validation/field/errors.go` (`Error`, `ErrorBody`).

use std::fmt;
use std::fmt::Write as _;

/// The type of a field error.
///
/// Source: apimachinery `pkg/util/validation/field/errors.go`, `ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// The value is invalid.
    Invalid,
    /// The value is missing.
    Required,
    /// The value is a duplicate.
    Duplicate,
    /// The value is not allowed.
    Forbidden,
    /// The value is not a supported value.
    NotSupported,
    /// The value has the wrong type.
    TypeInvalid,
    /// The string is too long.
    TooLong,
    /// The list or map has too many elements.
    TooMany,
    /// The validation failed with an internal error.
    Internal,
}

impl FieldErrorKind {
    /// Returns the name of the error type, which is the `reason` in a `Status`.
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

/// An error about one field of an object. Its `Display` is the API server's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The type of the error.
    pub kind: FieldErrorKind,
    /// The path of the field in the API server's format. `<nil>` is the whole object.
    pub field: String,
    /// The value in the API server's format. `None` if the message contains no value.
    pub value: Option<String>,
    /// The last part of the message. May be empty.
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
