//! Findings of the compiler, with the API server's messages.

use std::sync::Arc;

use cel::diagnostic::{DiagnosticKind, Diagnostics, Severity, Shown};
use cel::source::Location;
use cel::types::Type;

use crate::consequence::Consequence;
use crate::rule::Rule;

/// A finding from the compilation of an expression. The compilation does not use schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileFinding {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The effect of the problem in the API server.
    pub kind: CompileFindingKind,
    /// The problem. [`Cause::message`] is its text.
    pub cause: Cause,
    /// The effect on a request if the expression fails.
    pub consequence: Consequence,
}

/// The problem of an expression that does not compile or cannot be evaluated safely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The findings of the parser or the type checker.
    Diagnostics {
        /// The individual findings, sorted by location.
        found: Diagnostics,
        /// The source that was compiled.
        text: Arc<str>,
    },
    /// The result type of the expression is not accepted.
    ResultType {
        /// The accepted types.
        accepted: &'static [Type],
        /// The type of the result.
        actual: Type,
        /// See [`kubernetes::version::Behavior::names_result_types`].
        names_actual: bool,
    },
    /// A problem of the whole expression.
    Whole {
        /// The rule of the finding.
        rule: Rule,
        /// The API server's message, or the message of this crate if the API server has none.
        message: String,
    },
}

/// One problem of an expression.
#[derive(Clone, Debug)]
pub struct Issue<'a> {
    /// The rule of the finding.
    pub rule: Rule,
    /// The location of the problem. [`Location::NONE`] for a problem of the whole expression.
    pub location: Location,
    /// The message without ` (in container '')`, a suffix of the API server's messages.
    pub message: String,
    /// The diagnostic. `None` for a problem of the whole expression.
    pub kind: Option<&'a DiagnosticKind>,
    /// The type of the result, if it is not accepted.
    pub result_type: Option<&'a Type>,
}

impl Issue<'_> {
    fn whole(rule: Rule, message: String) -> Self {
        Self {
            rule,
            location: Location::NONE,
            message,
            kind: None,
            result_type: None,
        }
    }
}

impl Cause {
    /// Returns the API server's message for the whole expression.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Diagnostics { found, text } => {
                let shown = Shown {
                    severity: Severity::Error,
                    with_source: true,
                };
                format!("compilation failed: {}", found.render_as(text, shown))
            }
            Self::ResultType {
                accepted,
                actual,
                names_actual,
            } => {
                let names: Vec<_> = accepted.iter().map(Type::declared_string).collect();
                let expected = match names.as_slice() {
                    [only] => only.clone(),
                    several => format!("one of [{}]", several.join(" ")),
                };
                if !names_actual {
                    return format!("must evaluate to {expected}");
                }
                let actual = actual.declared_string();
                format!("must evaluate to {expected} but got {actual}")
            }
            Self::Whole { message, .. } => message.clone(),
        }
    }

    /// Returns the individual problems.
    #[must_use]
    pub fn issues(&self) -> Vec<Issue<'_>> {
        match self {
            Self::Diagnostics { found, .. } => {
                let diagnostics = found.as_slice().iter();
                let issue = diagnostics.map(|diagnostic| Issue {
                    rule: diagnostic.kind.code().into(),
                    location: diagnostic.location,
                    message: diagnostic.without_container(),
                    kind: Some(&diagnostic.kind),
                    result_type: None,
                });
                issue.collect()
            }
            Self::ResultType { actual, .. } => vec![Issue {
                result_type: Some(actual),
                ..Issue::whole(Rule::ResultType, self.message())
            }],
            Self::Whole { rule, message } => vec![Issue::whole(*rule, message.clone())],
        }
    }

    /// Returns true if the problem is that the result has the type `dyn`. The actual type is only known at run time.
    #[must_use]
    pub fn is_dynamic_result(&self) -> bool {
        matches!(self, Self::ResultType { actual, .. } if actual.is_dyn())
    }
}

/// The effect of an expression's problem in the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompileFindingKind {
    /// The API server rejects the expression.
    Failed,
    /// The API server accepts the expression but cannot evaluate it safely.
    Unsafe,
    /// The expression is valid CEL, but this crate does not support it.
    Unsupported,
}

/// The error for an expression that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The error type in the API server's response.
    pub type_: CompileErrorType,
    /// The effect of the problem in the API server.
    pub kind: CompileFindingKind,
    /// The problem. [`Cause::message`] is its text.
    pub cause: Cause,
}

impl CompileError {
    /// Returns the API server's message.
    #[must_use]
    pub fn message(&self) -> String {
        self.cause.message()
    }
}

/// The error types in the API server's responses.
///
/// Source: `k8s.io/apiserver` `pkg/cel/errors.go`, `ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileErrorType {
    /// The expression is required but blank.
    Required,
    /// The expression has a syntax error, a type error, or a result type that is not accepted.
    Invalid,
    /// The expression passes type checking but cannot be planned.
    Internal,
}

impl CompileErrorType {
    /// Returns upstream's name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "RuleRequired",
            Self::Invalid => "RuleInvalid",
            Self::Internal => "InternalError",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: `k8s.io/apiserver` `pkg/cel/errors.go`, `ErrorType`.
    #[test]
    fn error_types_have_upstream_names() {
        let types = [
            (CompileErrorType::Required, "RuleRequired"),
            (CompileErrorType::Invalid, "RuleInvalid"),
            (CompileErrorType::Internal, "InternalError"),
        ];
        for (type_, name) in types {
            assert_eq!(type_.name(), name);
        }
    }
}
