//! Determines why a node can fail, from the symbolic values of its operands.

use super::finder::FailureSiteFinder;
use super::{FailureCause, FailureSite};
use crate::runtime_errors::path_conditions::PathCondition;
use crate::runtime_errors::symbolic::{ExprRef, Scope, SymbolicValue};
use cel::ast::{Expr, ExprId, Literal};
use kubernetes::validity::{FieldPath, Root};
use serde_json::Value as Json;

impl FailureSiteFinder<'_, '_> {
    /// Adds a site for each int-or-string operand of a call. Adds no site if the call accepts both integers and
    /// strings.
    pub(super) fn add_int_or_string(
        &mut self,
        node: ExprRef,
        scope: &Scope,
        path_condition: &PathCondition,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
    ) {
        if accepts_any_type(function) {
            return;
        }
        for id in target.iter().chain(args) {
            let operand = node.with_id(*id);
            self.add_operand(
                node,
                operand,
                (scope, path_condition),
                FailureCause::IntOrString,
            );
        }
    }

    /// Adds a site for an index into a list that `split` or a macro returns, because the list may be too short.
    pub(super) fn add_short_lists(
        &mut self,
        node: ExprRef,
        (operand, index): (ExprId, ExprId),
        scope: &Scope,
        path_condition: &PathCondition,
    ) {
        let node_at = |id| node.with_id(id);
        let Expr::Literal(Literal::Int(index)) = self.evaluator.expr(node_at(index)) else {
            return;
        };
        let Ok(index) = usize::try_from(*index) else {
            return;
        };
        for symbolic in self.evaluator.evaluate(node_at(operand), scope) {
            match &symbolic {
                SymbolicValue::SplitParts(path) if self.evaluator.is_free_string(path) => {
                    self.add_cause(
                        node,
                        path.clone(),
                        FailureCause::ShortSplit(index),
                        path_condition,
                    );
                }
                SymbolicValue::Comprehension(..) => {
                    if let Some((path, excluded)) = self.evaluator.short_list_conditions(&symbolic)
                    {
                        let path_condition = path_condition.with_all(excluded);
                        self.add_cause(node, path, FailureCause::ShortList(index), &path_condition);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds a site for each operand with a default, such as `x.orValue('')`, if the call may fail for the default.
    pub(super) fn add_failing_defaults(
        &mut self,
        node: ExprRef,
        scope: &Scope,
        path_condition: &PathCondition,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
    ) {
        if accepts_any_type(function) {
            return;
        }
        let parsed = parsed_string(function, target, args);
        for id in target.iter().chain(args) {
            for symbolic in self.evaluator.evaluate(node.with_id(*id), scope) {
                let SymbolicValue::Input {
                    path,
                    default: Some(default),
                    ..
                } = symbolic
                else {
                    continue;
                };
                // If users can choose the string, the site with the cause `InvalidString` is sufficient.
                let is_parsed = default.is_string()
                    && parsed == Some(*id)
                    && !self.evaluator.is_free_string(&path);
                let may_fail = is_parsed || self.evaluator.has_other_type(&path, &default);
                if may_fail && self.evaluator.may_be_absent(&path) {
                    self.sites.push(FailureSite {
                        node,
                        path,
                        cause: FailureCause::FailingDefault,
                        chain: node.id,
                        path_condition: path_condition.clone(),
                    });
                }
            }
        }
    }

    /// Adds `node` as a site for each input that `operand` denotes and that may be null.
    pub(super) fn add_null(
        &mut self,
        node: ExprRef,
        operand: ExprRef,
        scope: &Scope,
        path_condition: &PathCondition,
    ) {
        self.add_operand(node, operand, (scope, path_condition), FailureCause::Null);
    }

    /// Adds `node` as a site for each input that `operand` denotes and whose value may be an `int` in one request and a
    /// `double` in another.
    pub(super) fn add_number_type(
        &mut self,
        node: ExprRef,
        operand: ExprRef,
        scope: &Scope,
        path_condition: &PathCondition,
    ) {
        self.add_operand(
            node,
            operand,
            (scope, path_condition),
            FailureCause::NumberType,
        );
    }

    /// Adds `node` as a site with `cause` for each input that `operand` denotes and whose value may have the property
    /// `cause`. Supports only the causes `Null`, `NumberType` and `IntOrString`. Sites with other causes are added by
    /// [`Self::add_cause`] or [`Self::add_absent`].
    fn add_operand(
        &mut self,
        node: ExprRef,
        operand: ExprRef,
        (scope, path_condition): (&Scope, &PathCondition),
        cause: FailureCause,
    ) {
        for symbolic in self.evaluator.evaluate(operand, scope) {
            let SymbolicValue::Input { path, .. } = symbolic else {
                continue;
            };
            let may_be = match cause {
                FailureCause::Null => self.evaluator.may_be_null(&path),
                FailureCause::NumberType => self.evaluator.may_be_int_or_double(&path),
                FailureCause::IntOrString => self.evaluator.is_int_or_string(&path),
                // Other functions add the sites with these causes.
                FailureCause::Absent
                | FailureCause::FailingDefault
                | FailureCause::InvalidString
                | FailureCause::ShortSplit(_)
                | FailureCause::ShortList(_)
                | FailureCause::ZeroDivisor => false,
            };
            if may_be {
                self.add_cause(node, path, cause, path_condition);
            }
        }
    }

    pub(super) fn add_cause(
        &mut self,
        node: ExprRef,
        path: FieldPath,
        cause: FailureCause,
        path_condition: &PathCondition,
    ) {
        // The author of a policy chooses the values of its params. Only absent params are reported (`add_absent`).
        if path.root == Root::Params || path.segments.is_empty() {
            return;
        }
        self.sites.push(FailureSite {
            node,
            path,
            cause,
            chain: node.id,
            path_condition: path_condition.clone(),
        });
    }

    pub(super) fn add_selection(
        &mut self,
        node: ExprRef,
        chain: ExprId,
        operand: &SymbolicValue,
        path_condition: &PathCondition,
        step: impl Fn(&FieldPath) -> Option<FieldPath>,
    ) {
        let SymbolicValue::Input {
            path,
            is_optional: false,
            default,
        } = operand
        else {
            return;
        };
        if path.segments.is_empty() && path.root != Root::Request {
            self.add_absent(node, chain, path.clone(), path_condition);
        }
        let Some(selected) = step(path) else { return };
        // The default `{}` of an absent value also lacks the fields that a present value always has.
        let is_empty = default.as_ref().is_some_and(Json::is_object);
        let ancestor = is_empty.then(|| self.evaluator.absent_ancestor(&selected));
        if let Some(ancestor) = ancestor.flatten() {
            self.add_absent(node, chain, ancestor, path_condition);
        }
        self.add_absent(node, chain, selected, path_condition);
    }

    pub(super) fn add_absent(
        &mut self,
        node: ExprRef,
        chain: ExprId,
        absent: FieldPath,
        path_condition: &PathCondition,
    ) {
        if !absent.segments.is_empty() && !self.evaluator.may_be_absent(&absent) {
            return;
        }
        self.sites.push(FailureSite {
            node,
            path: absent,
            cause: FailureCause::Absent,
            chain,
            path_condition: path_condition.clone(),
        });
    }
}

fn accepts_any_type(function: &str) -> bool {
    matches!(
        function,
        "_==_"
            | "_!=_"
            | "@in"
            | "type"
            | "string"
            | "dyn"
            | "orValue"
            | "or"
            | "hasValue"
            | "optional.of"
            | "optional.ofNonZeroValue"
    )
}

/// Returns the string operand that a call parses or indexes. The call fails for some strings. `None` if `function` has
/// no such operand.
pub(super) fn parsed_string(
    function: &str,
    target: Option<ExprId>,
    args: &[ExprId],
) -> Option<ExprId> {
    match (function, target, args) {
        (
            "int" | "uint" | "double" | "bool" | "duration" | "timestamp" | "quantity" | "ip"
            | "cidr" | "url" | "semver",
            None,
            [text, ..],
        )
        | ("containsIP" | "containsCIDR", Some(_), [text]) => Some(*text),
        ("substring" | "charAt", Some(text), _) => Some(text),
        _ => None,
    }
}
