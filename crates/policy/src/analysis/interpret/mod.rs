//! Abstract interpretation of an expression for one kind: the subexpressions that are reached, the types of their
//! values, and the errors.
//!
//! The checker decides whether an expression is well typed; the interpreter decides whether it fails. It follows the
//! rules of the evaluator, which is more lenient than the checker: values of different types compare as unequal, and
//! objects are maps. It knows the constants of a kind (`object.kind`, `request.operation`, `has()` of a field that the
//! kind does not have), and so which subexpressions are never evaluated. It runs over the parsed tree, because
//! expressions must compile without schemas.
//!
//! It does not know which optional fields an object has: an unguarded selection of an absent field is not a type error.
//! (`crate::runtime_errors` finds those.)
//!
//! Source: cel-spec `doc/langdef.md`, "Logical Operators" (`error && false` is false, `error || true` is
//! true); `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (the values of `request`);
//! cel-go `interpreter/attributes.go` (`refQualify`), `cel/library.go` (`evalOptionalOrValue`).

mod calls;
pub(super) mod constants;
mod construct;
mod expression;
mod fold;
mod narrow;
mod overloads;
pub(super) mod presence;
pub(super) mod value;

use std::collections::HashMap;

use cel::ast::{Ast, ExprId};
use cel::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, UndefinedField};
use cel::env::Env;
use cel::source::SourceMap;
use cel::stack::{SHALLOW_DEPTH, run_on_deep_stack};
use cel::types::Type;

use value::AbstractValue;

/// Facts that hold for all requests of a class.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// The functions and type names.
    pub(super) env: &'a Env,
    /// The values of `object`, `request` and the other inputs.
    pub(super) roots: Vec<(&'static str, AbstractValue)>,
    /// The variables declared before the expression, by name. The last of a name wins.
    pub(super) variables: HashMap<String, Variable>,
    /// The type of the object to which `Object` literals are applied.
    pub(super) applied_to: Option<Type>,
}

impl Facts<'_> {
    /// Replaces the value of the input `name`. Returns the previous value.
    pub(super) fn set_root(&mut self, name: &str, value: AbstractValue) -> AbstractValue {
        let root_value = self.roots.iter_mut().find(|(root, _)| *root == name);
        root_value.map_or_else(AbstractValue::top, |(_, known)| {
            std::mem::replace(known, value)
        })
    }
}

/// A variable of the policy.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) value: AbstractValue,
    /// The meaning of the variable as a presence test: true if it tests presence, false if it tests absence.
    pub(super) presence: Option<bool>,
}

/// A subexpression that cannot be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Issue {
    pub(super) id: ExprId,
    pub(super) kind: DiagnosticKind,
    /// An addition to the message.
    pub(super) note: Option<&'static str>,
}

impl Issue {
    /// Converts the issue to a diagnostic, for an expression with the tree `ast`.
    pub(super) fn to_diagnostic(&self, ast: &Ast, source: &SourceMap) -> Diagnostic {
        Diagnostic {
            kind: self.kind.clone(),
            location: source.location(ast.offset(self.id)),
            expr: Some(self.id),
            note: self.note,
        }
    }
}

/// The result of interpreting an expression.
#[derive(Debug)]
pub(super) struct Interpretation {
    pub(super) value: AbstractValue,
    pub(super) issues: Vec<Issue>,
    /// The policy variables that are read.
    pub(super) reads: Vec<String>,
    /// Tests for a field that objects of the kind cannot have.
    pub(super) absent: Vec<(ExprId, UndefinedField)>,
    /// Other tests for a field.
    pub(super) present: Vec<ExprId>,
    /// Selections from null that every request reaches.
    pub(super) null: Vec<ExprId>,
    /// Comparisons of values that are never equal because of their types, with the reason.
    pub(super) incomparable: Vec<(ExprId, String)>,
    /// Other comparisons.
    pub(super) comparable: Vec<ExprId>,
    /// True for each node that was reached, by node id.
    pub(super) visited: Vec<bool>,
    /// Subexpressions whose error is absorbed: another operand determines the result, or the value is a default for an
    /// absent one.
    pub(super) suppressed: Vec<ExprId>,
    /// True if the step limit was exceeded.
    pub(super) gave_up: bool,
}

/// Step limit of one expression. There are no findings for an expression that exceeds it.
const MAX_STEPS: u32 = 50_000;

/// Interprets `ast`, and takes the steps from `budget`.
pub(super) fn interpret(ast: &Ast, facts: &Facts<'_>, budget: &mut u32) -> Interpretation {
    let steps = MAX_STEPS.min(*budget);
    let outcome = run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        expression::Interpreter::new(ast, facts, steps).run()
    });
    let (outcome, left) = outcome;
    *budget = budget.saturating_sub(steps - left.min(steps));
    outcome
}

/// Converts the issues to diagnostics for the source `text`, in the same order.
pub(super) fn to_diagnostics<'a>(
    issues: impl IntoIterator<Item = &'a Issue>,
    ast: &Ast,
    text: &str,
) -> Diagnostics {
    let source = SourceMap::new(text);
    let mut diagnostics = Diagnostics::default();
    for issue in issues {
        diagnostics.add(issue.to_diagnostic(ast, &source));
    }
    diagnostics
}
