//! The data type of lints.

use cel::source::Location;

use crate::advice::Advice;
use crate::rule::Rule;

/// A construct that is probably a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The rule of the finding.
    pub rule: Rule,
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The location in the expression. `None` if the field is not an expression.
    pub location: Option<Location>,
    /// The problem, in one line.
    pub message: String,
    /// How to fix the policy, in one line.
    pub fix: Option<Advice>,
    /// True if the policy nevertheless works as its author intended.
    pub is_harmless: bool,
}
