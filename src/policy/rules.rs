//! Where the `truthful` profile differs from upstream's type checker: one rule for each finding of that
//! checker which is no trouble at run time, with its reason.
//!
//! A rule is asked only about expressions that compile without schemas: what the API server refuses is
//! trouble whatever the reason.

use crate::cel::ast::Expr;
use crate::cel::checker::CheckedAst;
use crate::cel::diagnostic::{Code, Diagnostic};
use crate::cel::types::Type;

/// A rule: its name, why such findings are no trouble, and the test for them.
struct Rule {
    /// A stable name, for tests and for the documentation.
    name: &'static str,
    /// Why the API server evaluates such an expression without error.
    reason: &'static str,
    applies: fn(&Diagnostic, &CheckedAst) -> bool,
}

/// All rules.
static RULES: &[Rule] = &[
    Rule {
        name: "equality",
        reason: "values of unlike types, null among them, compare as unequal; membership likewise",
        applies: |finding, checked| {
            is_call(finding, checked, &["_==_", "_!=_"])
                || (is_call(finding, checked, &["@in"])
                    && arg_types(finding, checked).get(1).is_some_and(is_container))
        },
    },
    Rule {
        name: "list-concatenation",
        reason: "lists are concatenated whatever their elements are",
        applies: |finding, checked| {
            is_call(finding, checked, &["_+_"])
                && arg_types(finding, checked)
                    .iter()
                    .all(|type_| matches!(type_, Type::List(_)))
        },
    },
    Rule {
        name: "unlike-branches",
        reason: "a conditional gives one of its branches, which need not be alike",
        applies: |finding, checked| {
            is_call(finding, checked, &["_?_:_"])
                && arg_types(finding, checked)
                    .first()
                    .is_some_and(|condition| {
                        *condition == Type::Bool || condition.is_dyn_or_error()
                    })
        },
    },
    Rule {
        name: "unlike-default",
        reason: "an optional gives its own value or the other one, which need not be alike",
        applies: |finding, checked| {
            is_call(finding, checked, &["orValue", "or"])
                && arg_types(finding, checked)
                    .first()
                    .is_some_and(|receiver| receiver.optional_value().is_some())
        },
    },
    Rule {
        name: "mixed-literal",
        reason: "the literal compiles without schemas, and may hold values of unlike types",
        applies: |finding, _| finding.code == Code::MixedLiteral,
    },
    Rule {
        name: "untyped-field",
        reason: "the schema declares the field without a type, or lets objects hold fields that it does not \
                 declare: Quantity, preserved unknown fields",
        applies: |finding, checked| {
            if finding.code != Code::UndefinedField {
                return false;
            }
            let Some((operand, field)) = selection(finding, checked) else {
                return false;
            };
            match operand.optional_value().unwrap_or(&operand) {
                Type::Struct(object) => object
                    .fields
                    .as_ref()
                    .is_some_and(|fields| fields.may_hold(&field)),
                _ => false,
            }
        },
    },
    Rule {
        name: "presence-test",
        reason: "a test for a field that is not declared is false, and no error",
        applies: |finding, checked| {
            finding.code == Code::UndefinedField
                && matches!(
                    expr(finding, checked),
                    Some(Expr::Select {
                        test_only: true,
                        ..
                    })
                )
        },
    },
    Rule {
        name: "optional-selection",
        reason: "an optional selection of a field that is not declared gives none, and no error",
        applies: |finding, checked| {
            finding.code == Code::UndefinedField
                && (is_function(finding, checked, &["_?._"])
                    || selection(finding, checked)
                        .is_some_and(|(operand, _)| operand.optional_value().is_some()))
        },
    },
    Rule {
        name: "object-as-map",
        reason: "objects are maps at run time: they can be indexed, measured and iterated over",
        applies: |finding, checked| match finding.code {
            Code::NotARange => finding
                .expr
                .is_some_and(|range| matches!(checked.type_of(range), Type::Struct(_))),
            Code::NoMatchingOverload => {
                is_function(finding, checked, &["_[_]", "_[?_]", "size"])
                    && arg_types(finding, checked)
                        .first()
                        .is_some_and(|type_| matches!(type_, Type::Struct(_)))
            }
            _ => false,
        },
    },
    Rule {
        name: "null-variable",
        reason: "what is null in one case is an object in the other, and the null is guarded against",
        applies: |finding, checked| {
            finding.code == Code::NoFieldSelection
                && selection(finding, checked).is_some_and(|(operand, _)| operand == Type::Null)
        },
    },
];

/// The names of the rules with their reasons, in the order in which they are asked.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.iter().map(|rule| (rule.name, rule.reason))
}

/// The rule by which a finding of upstream's is no trouble at run time.
#[must_use]
pub fn explain(finding: &Diagnostic, checked: &CheckedAst) -> Option<&'static str> {
    let rule = RULES.iter().find(|rule| (rule.applies)(finding, checked));
    rule.map(|rule| rule.name)
}

fn expr<'a>(finding: &Diagnostic, checked: &'a CheckedAst) -> Option<&'a Expr> {
    finding.expr.map(|id| checked.ast().expr(id))
}

/// Whether the finding is about a call of one of `functions`.
fn is_function(finding: &Diagnostic, checked: &CheckedAst, functions: &[&str]) -> bool {
    matches!(expr(finding, checked), Some(Expr::Call { function, .. }) if functions.contains(&&**function))
}

/// Whether no overload of one of `functions` was found.
fn is_call(finding: &Diagnostic, checked: &CheckedAst, functions: &[&str]) -> bool {
    finding.code == Code::NoMatchingOverload && is_function(finding, checked, functions)
}

/// The types of receiver and arguments of the call that the finding is about.
fn arg_types(finding: &Diagnostic, checked: &CheckedAst) -> Vec<Type> {
    match expr(finding, checked) {
        Some(Expr::Call { target, args, .. }) => target
            .iter()
            .chain(args)
            .map(|&arg| checked.type_of(arg))
            .collect(),
        _ => Vec::new(),
    }
}

/// What is selected from, and the field, where the finding is about a selection.
fn selection(finding: &Diagnostic, checked: &CheckedAst) -> Option<(Type, String)> {
    match expr(finding, checked)? {
        Expr::Select { operand, field, .. } => Some((checked.type_of(*operand), field.to_string())),
        _ => None,
    }
}

fn is_container(type_: &Type) -> bool {
    matches!(type_, Type::List(_) | Type::Map(_) | Type::Struct(_)) || type_.is_dyn_or_error()
}
