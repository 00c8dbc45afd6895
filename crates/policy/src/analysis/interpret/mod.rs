//! Abstract interpretation of an expression for one kind. It determines the reached subexpressions, the types of their
//! values, and their errors.
//!
//! The type checker decides whether an expression is well typed. The interpreter decides whether it fails. It follows
//! the evaluator, which is more lenient than the type checker: values of different types are comparable, and objects
//! are maps.
//!
//! Some values are constant for a kind: `object.kind`, `request.operation`, `has()` of a field that the kind lacks. The
//! interpreter uses these constants to find subexpressions that are never evaluated.
//!
//! The interpreter works on the parsed AST. The checked AST would add little, because its types come from compilation
//! without schemas.
//!
//! The interpreter does not know which optional fields an object has. An unguarded selection of an absent field is
//! therefore not a type error. `crate::runtime_errors` finds such selections.
//!
//! Source: cel-spec `doc/langdef.md`, "Logical Operators" (`error && false` is false, `error || true` is true);
//! `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (the values of `request`); cel-go
//! `interpreter/attributes.go` (`refQualify`), `cel/library.go` (`evalOptionalOrValue`).

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
    /// The policy variables that are declared before the expression, by name. If several have the same name, the map
    /// contains the last one.
    pub(super) variables: HashMap<String, Variable>,
    /// True if objects, `request` and `namespaceObject` may be Go values. Comparing a Go value with a value of another
    /// type fails.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/common/valuesschemalesstyped.go`, `reflectSchemalessTypedStruct.Equal`.
    pub(super) reads_go_values: bool,
    /// The type of the mutated object. `Object` literals are checked against it.
    pub(super) applied_to: Option<Type>,
}

impl Facts<'_> {
    /// Sets the value of the root variable `name`, and returns its previous value.
    pub(super) fn set_root(&mut self, name: &str, value: AbstractValue) -> AbstractValue {
        let root_value = self.roots.iter_mut().find(|(root, _)| *root == name);
        root_value.map_or_else(AbstractValue::top, |(_, known)| {
            std::mem::replace(known, value)
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) value: AbstractValue,
    /// True if the variable's expression tests for presence, false if it tests for absence. `None` for other
    /// expressions.
    pub(super) presence: Option<bool>,
}

/// A subexpression that fails for some request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Issue {
    pub(super) id: ExprId,
    pub(super) kind: DiagnosticKind,
    /// An additional sentence of the message.
    pub(super) note: Option<&'static str>,
}

impl Issue {
    /// Converts the issue to a diagnostic. `ast` and `source` must be those of the expression.
    pub(super) fn to_diagnostic(&self, ast: &Ast, source: &SourceMap) -> Diagnostic {
        Diagnostic {
            kind: self.kind.clone(),
            location: source.location(ast.offset(self.id)),
            expr: Some(self.id),
            note: self.note,
        }
    }
}

/// The reason why the operands of a comparison are never equal.
#[derive(Clone, Debug)]
pub(super) struct Incomparable {
    /// The reason, as a sentence.
    pub(super) message: String,
    /// The types of the operands. See [`super::IncomparableTypes::operands`].
    pub(super) operands: [&'static str; 2],
}

#[derive(Debug)]
pub(super) struct Interpretation {
    pub(super) value: AbstractValue,
    pub(super) issues: Vec<Issue>,
    /// The names of the policy variables that the expression reads.
    pub(super) reads: Vec<String>,
    /// Presence tests for a field that objects of the kind cannot have.
    pub(super) absent: Vec<(ExprId, UndefinedField)>,
    /// Presence tests for a field that objects of the kind may have.
    pub(super) present: Vec<ExprId>,
    /// Selections from null that are evaluated for every request of the class.
    pub(super) null: Vec<ExprId>,
    /// Comparisons whose operands are never equal because of their types.
    pub(super) incomparable: Vec<(ExprId, Incomparable)>,
    /// Comparisons whose operands may be equal.
    pub(super) comparable: Vec<ExprId>,
    /// Calls of `or` and `orValue` whose receiver is not an optional.
    pub(super) non_optional: Vec<ExprId>,
    /// Calls of `or` and `orValue` whose receiver may be an optional.
    pub(super) maybe_optional: Vec<ExprId>,
    /// A flag per node: true if the node was reached.
    pub(super) visited: Vec<bool>,
    /// Subexpressions whose error is not reported, because another operand absorbs it, or because only a default causes
    /// it. Also subexpressions that are not evaluated, because an operand has no value.
    pub(super) suppressed: Vec<ExprId>,
    /// True if the step limit was exceeded. The result is then incomplete.
    pub(super) gave_up: bool,
}

/// Maximum number of steps for one expression. An expression that exceeds the maximum has no findings.
const MAX_STEPS: u32 = 50_000;

/// Interprets `ast`. The steps are taken from `budget`.
pub(super) fn interpret(ast: &Ast, facts: &Facts<'_>, budget: &mut u32) -> Interpretation {
    let steps = MAX_STEPS.min(*budget);
    let outcome = run_on_deep_stack(ast.depth() > SHALLOW_DEPTH, || {
        expression::Interpreter::new(ast, facts, steps).run()
    });
    let (outcome, left) = outcome;
    *budget = budget.saturating_sub(steps - left.min(steps));
    outcome
}

/// Converts `issues` to diagnostics in the same order. `text` is the source of the expression.
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
