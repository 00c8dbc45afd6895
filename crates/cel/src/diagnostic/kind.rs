//! Kinds of findings: the data of each, and its message.

use std::fmt;
use std::sync::Arc;

use crate::types::{FieldTypes, Type};

/// Codes of findings. The names are stable once released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// The text is not an expression of the language.
    Syntax,
    /// A size or depth limit of the parser is exceeded.
    LimitExceeded,
    /// A macro is called with arguments that it does not accept.
    InvalidMacroCall,
    /// A name that nothing declares.
    UndeclaredReference,
    /// A field that the object type does not have.
    UndefinedField,
    /// No overload accepts arguments of these types.
    NoMatchingOverload,
    /// A type that has no fields.
    NoFieldSelection,
    /// A type that cannot be iterated over.
    NotARange,
    /// A type other than the expected one.
    TypeMismatch,
    /// A list or map literal with elements of incomparable types.
    MixedLiteral,
    /// A type that is named but not declared.
    UnresolvedType,
    /// A name that is used as a type and does not denote one.
    NotAType,
    /// A malformed optional selection.
    InvalidOptionalSelection,
    /// A literal argument that the function rejects.
    InvalidLiteral,
    /// An expression that is too deep or too large for this implementation.
    TooComplex,
}

/// The problem that a finding reports. `Display` writes its message, in cel-go's words if cel-go reports it too.
///
/// Each problem that several passes report is a variant with its data, so that its wording exists once. Source:
/// cel-go `checker/errors.go`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// A name or a function that nothing declares.
    UndeclaredReference {
        /// The name.
        name: Arc<str>,
    },
    /// A field that the value does not have.
    UndefinedField(UndefinedField),
    /// No overload of `function` accepts arguments of these types.
    NoMatchingOverload {
        /// The name of the function: `startsWith`, `_+_`.
        function: Arc<str>,
        /// True if the first type is that of the receiver.
        is_member: bool,
        /// The types of receiver and arguments.
        args: Box<[Type]>,
    },
    /// A field is selected from a value whose type has none.
    NoFieldSelection {
        /// The type of the value.
        operand: Type,
    },
    /// The range of a comprehension is neither a list nor a map.
    NotARange {
        /// The type of the range.
        range: Type,
    },
    /// An expression has another type than the expected one.
    TypeMismatch {
        /// The expected type.
        expected: Type,
        /// The type of the expression.
        actual: Type,
    },
    /// An element of a list or map literal has another type than the elements before it.
    MixedLiteral {
        /// The type of the elements before it.
        expected: Type,
        /// The type of the element.
        actual: Type,
    },
    /// A field of an object literal is set to a value of another type.
    FieldTypeMismatch {
        /// The field.
        field: Arc<str>,
        /// The declared type, as shown.
        declared: String,
        /// The type of the value, as shown.
        actual: String,
    },
    /// An object type that nothing declares.
    UnresolvedType {
        /// The name of the type.
        name: Arc<str>,
    },
    /// A problem that one place reports.
    Other {
        /// The code.
        code: Code,
        /// The message.
        message: String,
    },
}

/// A field that a value does not have.
#[derive(Clone, Debug)]
pub struct UndefinedField {
    /// The name as written in the expression.
    pub name: Arc<str>,
    /// The fields that the value has.
    pub candidates: Candidates,
}

/// The fields of a value.
#[derive(Clone, Debug)]
pub enum Candidates {
    /// Those of an object type.
    Declared(Arc<dyn FieldTypes>),
    /// The keys of a map literal.
    Keys(Arc<[Arc<str>]>),
    /// Unknown here: a table that is still being filled, by a caller that knows the names.
    Elsewhere,
}

/// The candidates are advice, and do not distinguish two findings.
impl PartialEq for UndefinedField {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for UndefinedField {}

impl UndefinedField {
    /// The field `name` of an object type with `fields`.
    #[must_use]
    pub fn new(name: &str, fields: &Arc<dyn FieldTypes>) -> Self {
        Self {
            name: name.into(),
            candidates: Candidates::new(fields),
        }
    }
}

impl Candidates {
    /// The fields that `fields` declares.
    #[must_use]
    pub fn new(fields: &Arc<dyn FieldTypes>) -> Self {
        if fields.is_growing() {
            Self::Elsewhere
        } else {
            Self::Declared(Arc::clone(fields))
        }
    }

    /// The names, as they are written in an expression.
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
    /// The message without the container of names.
    #[must_use]
    pub(super) fn without_container(&self) -> String {
        match self {
            Self::UndeclaredReference { name } => format!("undeclared reference to '{name}'"),
            other => other.to_string(),
        }
    }

    /// The code of the problem.
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
    /// Returns true if the message names the type of an expression that has a problem itself.
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

/// Writes `(int, string)`, or `list(int).(string)` for a member call.
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
