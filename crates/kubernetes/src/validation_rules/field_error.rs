//! Errors about fields, in the API server's words.
//!
//! Source: apimachinery `pkg/util/validation/field/errors.go` (`Error`, `ErrorBody`).

use std::fmt;
use std::fmt::Write as _;

/// Classes of errors about fields.
///
/// Source: apimachinery `pkg/util/validation/field/errors.go`, `ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// A value that is not allowed.
    Invalid,
    /// A value that is missing.
    Required,
    /// A value that is there twice.
    Duplicate,
    /// A value that some policy does not allow.
    Forbidden,
    /// A value that is none of those that are known.
    NotSupported,
    /// A value of the wrong type.
    TypeInvalid,
    /// A text that is too long.
    TooLong,
    /// Too many elements or fields.
    TooMany,
    /// A failure that is not the user's.
    Internal,
}

impl FieldErrorKind {
    /// The name of the class, as the cause of a status has it.
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

/// An error about a field; it is displayed as the API server writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The class of the error.
    pub kind: FieldErrorKind,
    /// The path to the field, as the API server writes it; `<nil>` for the object as a whole.
    pub field: String,
    /// The value, as the API server writes it, unless it is left out.
    pub value: Option<String>,
    /// The reason.
    pub detail: String,
}

impl FieldError {
    /// The error without the path.
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
