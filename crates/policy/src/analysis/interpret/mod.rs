//! Abstract evaluation of an expression for one kind: which parts are reached, which types the values have
//! there, and what cannot be evaluated.
//!
//! The checker asks whether an expression is well typed; this asks whether it fails. It follows the
//! evaluator, which is more lenient than the checker (unlike types compare as unequal, objects are maps),
//! and it knows what is constant for one kind (`object.kind`, `request.operation`, `has()` of a field that
//! the kind does not have), so that what is never evaluated is no trouble. A pass of its own over the parsed
//! tree: expressions must compile without schemas.
//!
//! It does not know what optional fields an object has: that a selection without a guard fails where the
//! field is absent is no matter of types.
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

/// The facts known of all requests that an expression is evaluated for.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// The functions and the names of types.
    pub(super) env: &'a Env,
    /// `object`, `request` and the like, with their values.
    pub(super) roots: Vec<(&'static str, AbstractValue)>,
    /// The variables that were declared so far, by name; of two of a name the last counts.
    pub(super) variables: HashMap<String, Variable>,
    /// The type of the object that literals of `Object` are applied to.
    pub(super) applied_to: Option<Type>,
}

impl Facts<'_> {
    /// Gives `name` another value; returns the one before.
    pub(super) fn set_root(&mut self, name: &str, value: AbstractValue) -> AbstractValue {
        let found = self.roots.iter_mut().find(|(root, _)| *root == name);
        found.map_or_else(AbstractValue::top, |(_, known)| {
            std::mem::replace(known, value)
        })
    }
}

/// A variable of the policy.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) value: AbstractValue,
    /// Its meaning as a test of presence: that something is there, or that it is not.
    pub(super) presence: Option<bool>,
}

/// Something that cannot be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Issue {
    pub(super) id: ExprId,
    pub(super) kind: DiagnosticKind,
    /// An addition to the message.
    pub(super) note: Option<&'static str>,
}

impl Issue {
    /// The finding, in an expression with the tree `ast`.
    pub(super) fn to_diagnostic(&self, ast: &Ast, source: &SourceMap) -> Diagnostic {
        Diagnostic {
            kind: self.kind.clone(),
            location: source.location(ast.offset(self.id)),
            expr: Some(self.id),
            note: self.note,
        }
    }
}

/// The result of following an expression: its value, and the findings about it.
#[derive(Debug)]
pub(super) struct Interpretation {
    pub(super) value: AbstractValue,
    pub(super) issues: Vec<Issue>,
    /// The variables that are read.
    pub(super) reads: Vec<String>,
    /// Tests for a field that objects of the kind cannot have.
    pub(super) absent: Vec<(ExprId, UndefinedField)>,
    /// Other tests for a field.
    pub(super) present: Vec<ExprId>,
    /// Selections from null that every request comes to.
    pub(super) null: Vec<ExprId>,
    /// Comparisons of values that are never equal for their types, with why.
    pub(super) unlike: Vec<(ExprId, String)>,
    /// Other comparisons.
    pub(super) alike: Vec<ExprId>,
    /// The nodes that were come by, by the index of the expression.
    pub(super) visited: Vec<bool>,
    /// Where something cannot be evaluated without effect: another operand decides the whole, or the value
    /// only stands in for one that is absent.
    pub(super) suppressed: Vec<ExprId>,
    /// True if the work was given up.
    pub(super) gave_up: bool,
}

/// The most steps for one expression; nothing is said of one that takes more.
const MAX_STEPS: u32 = 50_000;

/// Follows the evaluation of `ast`; takes its steps from `budget`.
pub(super) fn interpret(ast: &Ast, facts: &Facts<'_>, budget: &mut u32) -> Interpretation {
    let steps = MAX_STEPS.min(*budget);
    let outcome = run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        expression::Interpreter::new(ast, facts, steps).run()
    });
    let (outcome, left) = outcome;
    *budget = budget.saturating_sub(steps - left.min(steps));
    outcome
}

/// The issues as findings in `text`, in the order of the issues.
pub(super) fn to_diagnostics<'a>(
    issues: impl IntoIterator<Item = &'a Issue>,
    ast: &Ast,
    text: &str,
) -> Diagnostics {
    let source = SourceMap::new(text);
    let mut found = Diagnostics::default();
    for issue in issues {
        found.add(issue.to_diagnostic(ast, &source));
    }
    found
}
