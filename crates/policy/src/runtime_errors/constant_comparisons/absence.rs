//! Finds validations that allow an absent field although its effective default is a value that they deny. An example is
//! `!has(c.securityContext.readOnlyRootFilesystem) || c.securityContext.readOnlyRootFilesystem`.

use serde_json::Value as Json;

use super::super::symbolic::{
    ComprehensionKind, ExprRef, Scope, SymbolicValue, comprehension_kind,
};
use super::{ComparisonChecker, ComparisonOutcome, ConstantComparison};
use crate::rule::Rule;
use cel::ast::{Expr, ExprId, Literal};
use kubernetes::validity::{FieldPath, Root, effective_default};

impl ComparisonChecker<'_, '_> {
    /// Visits the subexpressions that must be true for the validation to be true. Also visits the operands of `||` in
    /// these subexpressions.
    pub(super) fn visit_required(&mut self, node: ExprRef, scope: &Scope) {
        if !self.evaluator.take_step() {
            self.is_complete = false;
            return;
        }
        match self.evaluator.expr(node) {
            Expr::Call { function, args, .. } => match (&**function, &**args) {
                ("_&&_", operands) => {
                    for id in operands {
                        self.visit_required(node.with_id(*id), scope);
                    }
                }
                ("_||_", _) => {
                    let mut operands = Vec::new();
                    self.alternatives(node, &mut operands);
                    self.check_absence(&operands, scope);
                    for operand in operands {
                        self.visit_required(operand, scope);
                    }
                }
                ("_?_:_", [_, then, otherwise]) => {
                    self.visit_required(node.with_id(*then), scope);
                    self.visit_required(node.with_id(*otherwise), scope);
                }
                _ => {}
            },
            Expr::Comprehension(fold) => {
                let kind = comprehension_kind(self.evaluator, node.index, fold);
                if let ComprehensionKind::All(test) = kind {
                    for (iteration, _) in self.evaluator.iterations(node.index, fold, scope, 0) {
                        self.visit_required(node.with_id(test), &iteration);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds the operands of a chain of `||` to `operands`.
    fn alternatives(&self, node: ExprRef, operands: &mut Vec<ExprRef>) {
        match self.evaluator.expr(node) {
            Expr::Call { function, args, .. } if &**function == "_||_" => {
                for id in args {
                    self.alternatives(node.with_id(*id), operands);
                }
            }
            _ => operands.push(node),
        }
    }

    /// Adds a finding if one of the `operands` of `||` requires a boolean value of a field, another operand is true if
    /// the field is absent, and the effective default of the field is the opposite boolean.
    fn check_absence(&mut self, operands: &[ExprRef], scope: &Scope) {
        let absent = operands
            .iter()
            .filter_map(|node| self.absent_field(*node, scope));
        let absent: Vec<FieldPath> = absent.collect();
        for node in operands.iter().filter(|_| !absent.is_empty()) {
            let Some((field, required)) = self.boolean(*node) else {
                continue;
            };
            let outcomes = self.paths(field, scope).map(|path| {
                let is_tested = absent.contains(&path);
                let usually = self.counts_as(&path, !required).filter(|_| is_tested);
                let Some(usually) = usually else {
                    return ComparisonOutcome::Varying;
                };
                let root = path.root.name();
                ComparisonOutcome::Constant(ConstantComparison {
                    rule: Rule::WrongDefault,
                    message: format!(
                        "this allows requests without `{root}.{path}`, although the absent field {usually}counts as `{}`, \
                         not as `{required}`",
                        !required
                    ),
                    fix: Some("to deny such requests, write `has(...) &&` instead of `!has(...) ||`".into()),
                    is_harmless: false,
                })
            });
            let outcome = outcomes.reduce(|all, next| all.merge(Some(next)));
            if let Some(outcome) = outcome {
                self.add(*node, outcome);
            }
        }
    }

    /// If `value` is the effective default of the field at `path`, returns an adverb for messages: `usually ` if a
    /// setting outside of the object can change the default, or else the empty string. Returns `None` for other values.
    pub(super) fn counts_as(&self, path: &FieldPath, value: bool) -> Option<&'static str> {
        let is_object = matches!(path.root, Root::Object | Root::OldObject);
        let effective = effective_default(self.kind, path).filter(|_| is_object)?;
        let is_same = effective.inherited_from.is_none() && effective.value == Json::Bool(value);
        is_same.then_some(if effective.is_certain { "" } else { "usually " })
    }

    /// Returns the path that `!has()` tests. `None` for other expressions.
    fn absent_field(&self, node: ExprRef, scope: &Scope) -> Option<FieldPath> {
        let Expr::Call { function, args, .. } = self.evaluator.expr(node) else {
            return None;
        };
        let ("!_", [tested]) = (&**function, &**args) else {
            return None;
        };
        let Expr::Select {
            operand,
            field,
            test_only: true,
        } = self.evaluator.expr(node.with_id(*tested))
        else {
            return None;
        };
        let mut paths = self.paths(node.with_id(*operand), scope);
        let path = paths.next().filter(|_| paths.next().is_none())?;
        path.field(field)
    }

    /// Returns the field and its required value if `node` has the form `f`, `!f`, `f == true` or `f != true`, or a
    /// similar form with `false`.
    fn boolean(&self, node: ExprRef) -> Option<(ExprRef, bool)> {
        match self.evaluator.expr(node) {
            Expr::Select {
                test_only: false, ..
            } => Some((node, true)),
            Expr::Call { function, args, .. } => {
                let literal = |id: &ExprId| match self.evaluator.expr(node.with_id(*id)) {
                    Expr::Literal(Literal::Bool(value)) => Some(*value),
                    _ => None,
                };
                match (&**function, &**args) {
                    ("!_", [operand]) => {
                        let (field, required) = self.boolean(node.with_id(*operand))?;
                        Some((field, !required))
                    }
                    ("_==_" | "_!=_", [left, right]) => {
                        let (field, value) = match (literal(left), literal(right)) {
                            (None, Some(value)) => (left, value),
                            (Some(value), None) => (right, value),
                            _ => return None,
                        };
                        Some((node.with_id(*field), value == (&**function == "_==_")))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the paths of the inputs that an expression denotes.
    fn paths(&self, node: ExprRef, scope: &Scope) -> impl Iterator<Item = FieldPath> + use<> {
        let alternatives = self.evaluator.evaluate(node, scope);
        alternatives.into_iter().filter_map(|value| match value {
            SymbolicValue::Input {
                path,
                is_optional: false,
                default: None,
            } => Some(path),
            _ => None,
        })
    }
}
