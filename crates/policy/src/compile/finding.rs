//! Findings of the compilation, and the API server's messages for them.

use std::sync::Arc;

use cel::diagnostic::{DiagnosticKind, Diagnostics, Severity, Shown};
use cel::source::Location;
use cel::types::Type;

use crate::consequence::Consequence;
use crate::rule::Rule;

/// A finding about an expression, without regard to schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileFinding {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The kind of problem.
    pub kind: CompileFindingKind,
    /// The problem.
    pub cause: Cause,
    /// The effect of the failing expression on the request.
    pub consequence: Consequence,
}

/// A problem of an expression that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Findings of the parser or the checker.
    Diagnostics {
        /// The findings, sorted by location.
        found: Diagnostics,
        /// The text that was compiled.
        text: Arc<str>,
    },
    /// The result has another type than the expression must have.
    ResultType {
        /// The accepted types.
        accepted: &'static [Type],
        /// The type of the result.
        actual: Type,
    },
    /// A problem of the expression as a whole.
    Whole {
        /// The rule of the finding.
        rule: Rule,
        /// The API server's message, or this crate's if it has none.
        message: String,
    },
}

/// One problem of an expression that does not compile.
#[derive(Clone, Debug)]
pub struct Issue<'a> {
    /// The rule of the finding.
    pub rule: Rule,
    /// The location. [`Location::NONE`] for a problem of the expression as a whole.
    pub location: Location,
    /// The message, without the container of names.
    pub message: String,
    /// The problem. `None` for a problem of the expression as a whole.
    pub kind: Option<&'a DiagnosticKind>,
}

impl Issue<'_> {
    fn whole(rule: Rule, message: String) -> Self {
        Self {
            rule,
            location: Location::NONE,
            message,
            kind: None,
        }
    }
}

impl Cause {
    /// Returns the API server's message.
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
            Self::ResultType { accepted, actual } => {
                let names: Vec<_> = accepted.iter().map(Type::declared_string).collect();
                let expected = match names.as_slice() {
                    [only] => only.clone(),
                    several => format!("one of [{}]", several.join(" ")),
                };
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
                });
                issue.collect()
            }
            Self::ResultType { .. } => vec![Issue::whole(Rule::ResultType, self.message())],
            Self::Whole { rule, message } => vec![Issue::whole(*rule, message.clone())],
        }
    }

    /// Returns true if the result is `dyn`, a type that is known only at run time.
    #[must_use]
    pub fn is_dynamic_result(&self) -> bool {
        matches!(self, Self::ResultType { actual, .. } if actual.is_dyn())
    }
}

/// The kinds of problems with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompileFindingKind {
    /// The API server rejects the expression.
    Failed,
    /// The API server accepts the expression but cannot evaluate it safely.
    Unsafe,
    /// Valid CEL that this implementation does not support.
    Unsupported,
}

/// The reason why an expression does not compile, as in the API server's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The API server's name for the error.
    pub type_: CompileErrorType,
    /// The kind of problem.
    pub kind: CompileFindingKind,
    /// The problem.
    pub cause: Cause,
}

impl CompileError {
    /// Returns the API server's message.
    #[must_use]
    pub fn message(&self) -> String {
        self.cause.message()
    }
}

/// The API server's name for an error of compiling.
///
/// Source: `k8s.io/apiserver` `pkg/cel/errors.go`, `ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileErrorType {
    /// The expression is required but blank.
    Required,
    /// The expression does not parse or type-check, or its result has the wrong type.
    Invalid,
    /// The checked expression cannot be planned.
    Internal,
}

impl CompileErrorType {
    /// Returns upstream's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "RuleRequired",
            Self::Invalid => "RuleInvalid",
            Self::Internal => "InternalError",
        }
    }
}
