//! The findings of compiling, as data, and the API server's words for them.

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
    /// The kind of trouble.
    pub kind: CompileFindingKind,
    /// The trouble itself.
    pub cause: Cause,
    /// The fate of a request for which the expression fails, as one that does not compile always does.
    pub consequence: Consequence,
}

/// The trouble with an expression that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Findings of the parser or the checker.
    Diagnostics {
        /// The findings, sorted by place.
        found: Diagnostics,
        /// The text that was compiled.
        text: Arc<str>,
    },
    /// The result has another type than the expression must have.
    ResultType {
        /// The types of which it must have one.
        accepted: &'static [Type],
        /// The type that it has.
        actual: Type,
    },
    /// Something about the expression as a whole.
    Whole {
        /// The rule that it belongs to.
        rule: Rule,
        /// The API server's message, or ours where it has none.
        message: String,
    },
}

/// One problem of an expression that does not compile.
#[derive(Clone, Debug)]
pub struct Issue<'a> {
    /// The rule that it belongs to.
    pub rule: Rule,
    /// The place; [`Location::NONE`] where it is about the expression as a whole.
    pub location: Location,
    /// The message, without the container of names.
    pub message: String,
    /// The problem; `None` if it is about the expression as a whole.
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
    /// The API server's message.
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

    /// The single things that are wrong.
    #[must_use]
    pub fn issues(&self) -> Vec<Issue<'_>> {
        match self {
            Self::Diagnostics { found, .. } => {
                let found = found.as_slice().iter();
                let issue = found.map(|found| Issue {
                    rule: found.kind.code().into(),
                    location: found.location,
                    message: found.without_container(),
                    kind: Some(&found.kind),
                });
                issue.collect()
            }
            Self::ResultType { .. } => vec![Issue::whole(Rule::ResultType, self.message())],
            Self::Whole { rule, message } => vec![Issue::whole(*rule, message.clone())],
        }
    }

    /// Returns true if the result is `dyn`, a type that is known only when the expression is evaluated.
    #[must_use]
    pub fn is_dynamic_result(&self) -> bool {
        matches!(self, Self::ResultType { actual, .. } if actual.is_dyn())
    }
}

/// The kinds of trouble with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompileFindingKind {
    /// The API server refuses the expression.
    Failed,
    /// The API server accepts it and cannot evaluate it safely.
    Unsafe,
    /// Valid CEL that this implementation cannot judge.
    Unsupported,
}

/// The reason why an expression does not compile, as the API server says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The API server's name for the error.
    pub type_: CompileErrorType,
    /// The kind of trouble.
    pub kind: CompileFindingKind,
    /// The trouble itself.
    pub cause: Cause,
}

impl CompileError {
    /// The API server's message.
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
    /// The expression is blank, where one is required.
    Required,
    /// The expression does not parse or check, or its result has another type.
    Invalid,
    /// The checked expression cannot be planned.
    Internal,
}

impl CompileErrorType {
    /// Upstream's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "RuleRequired",
            Self::Invalid => "RuleInvalid",
            Self::Internal => "InternalError",
        }
    }
}
