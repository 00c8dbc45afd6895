//! Kinds of diagnostics, with their data and messages.

use std::fmt;
use std::sync::Arc;

use crate::types::{FieldTypes, Type};

/// Diagnostic code. Its name is stable once released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The source is not a valid expression.
    Syntax,
    /// A size or depth limit of the parser is exceeded.
    LimitExceeded,
    /// A macro is called with arguments that it does not accept.
    InvalidMacroCall,
    /// An undeclared name.
    UndeclaredReference,
    /// A field that the object type does not have.
    UndefinedField,
    /// No overload accepts the types of the arguments.
    NoMatchingOverload,
    /// A field selection from a value whose type has no fields.
    NoFieldSelection,
    /// A comprehension over a value whose type is neither a list nor a map.
    NotARange,
    /// An expression whose type is not the expected one.
    TypeMismatch,
    /// A list or map literal whose elements have different types.
    MixedLiteral,
    /// An undeclared object type.
    UnresolvedType,
    /// A name that is used as a type but does not refer to one.
    NotAType,
    /// A malformed optional selection.
    InvalidOptionalSelection,
    /// A literal argument that the function rejects.
    InvalidLiteral,
    /// An expression that is too deep or too large for this implementation.
    TooComplex,
}

/// The problem that a diagnostic reports. `Display` formats the message. If cel-go reports the same problem, the
/// message is cel-go's.
///
/// A problem that several passes report has its own variant, so that its message is defined once.
///
/// Source: cel-go `checker/errors.go`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// An undeclared name or function.
    UndeclaredReference {
        /// The undeclared name.
        name: Arc<str>,
    },
    /// A field that the operand does not have.
    UndefinedField(UndefinedField),
    /// No overload of `function` accepts the types of the arguments.
    NoMatchingOverload {
        /// The function name, such as `startsWith` or `_+_`.
        function: Arc<str>,
        /// True if the first of `args` is the type of the receiver.
        is_member: bool,
        /// The types of the receiver and the arguments.
        args: Box<[Type]>,
    },
    /// A field selection from a value whose type has no fields.
    NoFieldSelection {
        /// The type of the operand.
        operand: Type,
    },
    /// The range of a comprehension is neither a list nor a map.
    NotARange {
        /// The type of the range.
        range: Type,
    },
    /// An expression does not have the expected type.
    TypeMismatch {
        /// The expected type.
        expected: Type,
        /// The type of the expression.
        actual: Type,
    },
    /// An element of a list or map literal does not have the type of the previous elements.
    MixedLiteral {
        /// The type of the previous elements.
        expected: Type,
        /// The type of the element.
        actual: Type,
    },
    /// A field of an object literal is set to a value of the wrong type.
    FieldTypeMismatch {
        /// The field name.
        field: Arc<str>,
        /// The declared type, formatted.
        declared: String,
        /// The type of the value, formatted.
        actual: String,
    },
    /// An undeclared object type.
    UnresolvedType {
        /// The type name.
        name: Arc<str>,
    },
    /// A problem that only one pass reports.
    Other {
        /// The code.
        code: Code,
        /// The message.
        message: String,
        /// The text that replaces the wrong name at the location. `None` if the pass knows no correction.
        correction: Option<String>,
    },
}

/// A field that the operand does not have.
#[derive(Clone, Debug)]
pub struct UndefinedField {
    /// The field name in the expression.
    pub name: Arc<str>,
    /// The fields that the operand has.
    pub candidates: Candidates,
}

/// The fields of a value.
#[derive(Clone, Debug)]
pub enum Candidates {
    /// The fields of an object type.
    Declared(Arc<dyn FieldTypes>),
    /// The keys of a map literal.
    Keys(Arc<[Arc<str>]>),
    /// Unknown to the checker. The consumer of the diagnostic may know the names, for example those of a policy's
    /// variables.
    Elsewhere,
}

/// Compares the names only. The candidates merely serve to suggest corrections.
impl PartialEq for UndefinedField {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for UndefinedField {}

impl UndefinedField {
    /// Describes the selection of the undefined field `name` from an object type with the given fields.
    #[must_use]
    pub fn new(name: &str, fields: &Arc<dyn FieldTypes>) -> Self {
        Self {
            name: name.into(),
            candidates: Candidates::new(fields),
        }
    }
}

impl Candidates {
    /// Creates the candidates from a field table.
    #[must_use]
    pub fn new(fields: &Arc<dyn FieldTypes>) -> Self {
        if fields.is_mutable() {
            Self::Elsewhere
        } else {
            Self::Declared(Arc::clone(fields))
        }
    }

    /// Returns the names, in their escaped form.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Declared(fields) => fields.field_names(),
            Self::Keys(keys) => keys.iter().map(|key| &**key).collect(),
            Self::Elsewhere => Vec::new(),
        }
    }
}

impl DiagnosticKind {
    /// Returns the message without cel-go's suffix ` (in container '')`.
    #[must_use]
    pub(super) fn without_container(&self) -> String {
        match self {
            Self::UndeclaredReference { name } => format!("undeclared reference to '{name}'"),
            other => other.to_string(),
        }
    }

    /// Returns the code of the problem.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::UndeclaredReference { .. } => Code::UndeclaredReference,
            Self::UndefinedField(_) => Code::UndefinedField,
            Self::NoMatchingOverload { .. } => Code::NoMatchingOverload,
            Self::NoFieldSelection { .. } => Code::NoFieldSelection,
            Self::NotARange { .. } => Code::NotARange,
            Self::TypeMismatch { .. } | Self::FieldTypeMismatch { .. } => Code::TypeMismatch,
            Self::MixedLiteral { .. } => Code::MixedLiteral,
            Self::UnresolvedType { .. } => Code::UnresolvedType,
            Self::Other { code, .. } => *code,
        }
    }
}

impl DiagnosticKind {
    /// Returns true if the problem is a consequence of another diagnostic. The message of such a problem contains the
    /// error type.
    #[must_use]
    pub fn follows_from_another(&self) -> bool {
        let is_error = |type_: &Type| type_.has_part(|part| *part == Type::Error);
        match self {
            Self::NoMatchingOverload { args, .. } => args.iter().any(is_error),
            Self::NoFieldSelection { operand: type_ } | Self::NotARange { range: type_ } => {
                is_error(type_)
            }
            Self::TypeMismatch { expected, actual } | Self::MixedLiteral { expected, actual } => {
                is_error(expected) || is_error(actual)
            }
            _ => false,
        }
    }
}

impl fmt::Display for DiagnosticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UndeclaredReference { .. } => {
                write!(f, "{} (in container '')", self.without_container())
            }
            Self::UndefinedField(field) => write!(f, "undefined field '{}'", field.name),
            Self::NoMatchingOverload {
                function,
                is_member,
                args,
            } => {
                write!(
                    f,
                    "found no matching overload for '{function}' applied to '"
                )?;
                write_signature(f, *is_member, args)?;
                f.write_str("'")
            }
            Self::NoFieldSelection { operand } => {
                write!(f, "type '{operand}' does not support field selection")
            }
            Self::NotARange { range } => write!(
                f,
                "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
            ),
            Self::TypeMismatch { expected, actual } | Self::MixedLiteral { expected, actual } => {
                write!(f, "expected type '{expected}' but found '{actual}'")
            }
            Self::FieldTypeMismatch {
                field,
                declared,
                actual,
            } => write!(
                f,
                "expected type of field '{field}' is '{declared}' but provided type is '{actual}'"
            ),
            Self::UnresolvedType { name } => {
                write!(f, "unexpected failed resolution of '{name}'")
            }
            Self::Other { message, .. } => f.write_str(message),
        }
    }
}

/// Formats a signature: `(int, string)`, or `list(int).(string)` for a member call.
fn write_signature(f: &mut fmt::Formatter<'_>, is_member: bool, args: &[Type]) -> fmt::Result {
    let args = match args.split_first() {
        Some((receiver, args)) if is_member => {
            write!(f, "{receiver}.")?;
            args
        }
        _ => args,
    };
    f.write_str("(")?;
    for (n, arg) in args.iter().enumerate() {
        let comma = if n > 0 { ", " } else { "" };
        write!(f, "{comma}{arg}")?;
    }
    f.write_str(")")
}
