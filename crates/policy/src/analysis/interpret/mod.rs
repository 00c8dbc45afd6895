//! Abstract interpretation of an expression for one kind: determines the subexpressions that are reached, the types of
//! their values, and their errors.
//!
//! The type checker decides whether an expression is well typed. The interpreter decides whether it fails. It applies
//! the rules of the evaluator, which is more lenient than the type checker: values of different types compare as
//! unequal, and objects are maps. It knows the values that are constant for a kind (`object.kind`, `request.operation`,
//! `has()` of a field that the kind does not have), and therefore which subexpressions are never evaluated. It
//! interprets the parsed AST instead of the checked one, because expressions must compile without schemas.
//!
//! The interpreter does not know which optional fields an object has, so an unguarded selection of an absent field is
//! not a type error. `crate::runtime_errors` finds such selections.
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

/// Facts that hold for all requests of one class.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// The declared functions and type names.
    pub(super) env: &'a Env,
    /// The values of the root variables, such as `object` and `request`.
    pub(super) roots: Vec<(&'static str, AbstractValue)>,
    /// The variables that precede the expression, by name. If several have the same name, the last one.
    pub(super) variables: HashMap<String, Variable>,
    /// The type of the object that the expression mutates, with which `Object` literals are compared.
    pub(super) applied_to: Option<Type>,
}

impl Facts<'_> {
    /// Replaces the value of the root variable `name`. Returns the previous value.
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
    /// True if the value of the variable tests for presence, false if it tests for absence. `None` for other variables.
    pub(super) presence: Option<bool>,
}

/// An error: a subexpression that fails in an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Issue {
    pub(super) id: ExprId,
    pub(super) kind: DiagnosticKind,
    /// A sentence to add to the message.
    pub(super) note: Option<&'static str>,
}

impl Issue {
    /// Converts the issue to a diagnostic. `ast` and `source` belong to the expression.
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
    /// The names of the policy variables that are read.
    pub(super) reads: Vec<String>,
    /// Presence tests of a field that objects of the kind cannot have.
    pub(super) absent: Vec<(ExprId, UndefinedField)>,
    /// Presence tests of a field that objects of the kind may have.
    pub(super) present: Vec<ExprId>,
    /// Selections from null that every request of the class reaches.
    pub(super) null: Vec<ExprId>,
    /// Comparisons of values that are never equal because of their types, with the reason.
    pub(super) incomparable: Vec<(ExprId, String)>,
    /// Comparisons of values that may be equal.
    pub(super) comparable: Vec<ExprId>,
    /// True for each node that was reached, indexed by node.
    pub(super) visited: Vec<bool>,
    /// Subexpressions whose error is absorbed, because another operand determines the result or because the value is
    /// only a default.
    pub(super) suppressed: Vec<ExprId>,
    /// True if the step limit was reached, so that the result is incomplete.
    pub(super) gave_up: bool,
}

/// Maximum number of steps for one expression. An expression that exceeds it has no findings.
const MAX_STEPS: u32 = 50_000;

/// Interprets `ast`, and takes the used steps from `budget`.
pub(super) fn interpret(ast: &Ast, facts: &Facts<'_>, budget: &mut u32) -> Interpretation {
    let steps = MAX_STEPS.min(*budget);
    let outcome = run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        expression::Interpreter::new(ast, facts, steps).run()
    });
    let (outcome, left) = outcome;
    *budget = budget.saturating_sub(steps - left.min(steps));
    outcome
}

/// Converts the issues to diagnostics, in the same order. `text` is the source of the expression.
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
