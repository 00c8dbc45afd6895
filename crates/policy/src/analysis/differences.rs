//! Explains the differences between the `truthful` profile and upstream's type checker. A difference is a finding that
//! only upstream reports. A rule gives the reason why its expression evaluates without an error.
//!
//! The rules do not affect the findings of the `truthful` profile, which abstract interpretation computes
//! (`super::interpret`). A difference without a rule is a bug in this crate.

use super::driver::{Driver, KindAnalysis};
use super::upstream::KindContext;
use super::{Profile, object_type};
use crate::compile::CompiledPolicy;
use crate::expressions::ExpressionCheck;
use crate::matching;
use crate::param_kind;
use cel::ast::Expr;
use cel::checker::CheckedAst;
use cel::diagnostic::{Code, Diagnostic};
use cel::types::Type;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::rest_mapper::RestMapper;

/// An explanation of the differences that `applies` selects.
struct Rule {
    /// A stable name, used in tests and in the documentation.
    name: &'static str,
    /// The reason why an expression with such a difference evaluates without an error.
    reason: &'static str,
    applies: fn(&Diagnostic, &CheckedAst) -> bool,
}

/// The rule for subexpressions that are never evaluated: its name and reason.
const NOT_REACHED: (&str, &str) = (
    "not-reached",
    "for a given kind and operation, some conditions are constant, such as tests of `object.kind` or \
     `request.resource`, `oldObject == null`, and `has()` of a field that the kind lacks; branches that these \
     conditions exclude are never evaluated",
);

/// The rule for subexpressions whose error is absorbed: its name and reason.
const NO_EFFECT: (&str, &str) = (
    "no-effect",
    "the error has no effect, for one of three reasons: the other operand of `&&` or `||` determines the result; the \
     failing value is only the default of an optional; or an operand has no value, so that the subexpression is never \
     evaluated",
);

/// The rule for subexpressions with a failing operand: its name and reason.
const OPERAND_FAILS: (&str, &str) = (
    "operand-fails",
    "an operand that is evaluated earlier fails, and has its own warning",
);

static RULES: &[Rule] = &[
    Rule {
        name: "equality",
        reason: "values of different types, including null, compare as unequal, also in membership tests",
        applies: |finding, checked| {
            is_call(finding, checked, &["_==_", "_!=_"])
                || (is_call(finding, checked, &["@in"])
                    && arg_types(finding, checked).get(1).is_some_and(is_container))
        },
    },
    Rule {
        name: "list-concatenation",
        reason: "lists are concatenated regardless of their element types",
        applies: |finding, checked| {
            is_call(finding, checked, &["_+_"])
                && arg_types(finding, checked)
                    .iter()
                    .all(|type_| matches!(type_, Type::List(_)))
        },
    },
    Rule {
        name: "unlike-branches",
        reason: "a conditional returns one of its branches, which may have different types",
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
        reason: "an optional returns its own value or the default, which may have different types",
        applies: |finding, checked| {
            is_call(finding, checked, &["orValue", "or"])
                && arg_types(finding, checked)
                    .first()
                    .is_some_and(|receiver| receiver.optional_value().is_some())
        },
    },
    Rule {
        name: "mixed-literal",
        reason: "the literal compiles without schemas, and may contain values of different types",
        applies: |finding, _| finding.kind.code() == Code::MixedLiteral,
    },
    Rule {
        name: "untyped-field",
        reason: "the schema declares the field without a type, or lets objects hold undeclared fields \
                 (x-kubernetes-preserve-unknown-fields)",
        applies: |finding, checked| {
            if finding.kind.code() != Code::UndefinedField {
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
        reason: "a test for an undeclared field is false, not an error",
        applies: |finding, checked| {
            finding.kind.code() == Code::UndefinedField
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
        reason: "an optional selection of an undeclared field is empty instead of an error, and so is an index \
                 into an optional whose value lacks the element",
        applies: |finding, checked| {
            let is_index = is_call(finding, checked, &["_[_]", "_[?_]"])
                && arg_types(finding, checked)
                    .first()
                    .is_some_and(|container| container.optional_value().is_some());
            is_index
                || finding.kind.code() == Code::UndefinedField
                    && (is_function(finding, checked, &["_?._"])
                        || selection(finding, checked)
                            .is_some_and(|(operand, _)| operand.optional_value().is_some()))
        },
    },
    Rule {
        name: "object-as-map",
        reason: "objects are maps at run time: they can be indexed, iterated over and passed to size()",
        applies: |finding, checked| match finding.kind.code() {
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
        name: "plain-json",
        reason: "the object is plain JSON at run time: times, durations and bytes are strings, and a number is \
                 an int or a double, depending on its JSON form",
        applies: |finding, checked| {
            let is_other = |type_: &Type| {
                matches!(
                    type_,
                    Type::Timestamp | Type::Duration | Type::Bytes | Type::Double
                )
            };
            arg_types(finding, checked).iter().any(is_other)
        },
    },
    Rule {
        name: "flat-list",
        reason: "`flatten` keeps elements that are not lists, contrary to its signature",
        applies: |finding, checked| is_call(finding, checked, &["flatten"]),
    },
    Rule {
        name: "optional-or-value",
        reason: "up to Kubernetes 1.36, `orValue` and `or` return a value that is not an optional unchanged; in 1.37 \
                 and later, they fail, and `or-value-without-optional` reports them",
        applies: |finding, checked| is_call(finding, checked, &["orValue", "or"]),
    },
    Rule {
        name: "request-resource",
        reason: "the admission plugin declares `authorizer.requestResource`, unlike the type checker",
        applies: |finding, _| finding.kind.code() == Code::UnresolvedType,
    },
    Rule {
        name: "null-variable",
        reason: "the value is null in some requests and an object in others, and the null case is guarded",
        applies: |finding, checked| {
            finding.kind.code() == Code::NoFieldSelection
                && selection(finding, checked).is_some_and(|(operand, _)| operand == Type::Null)
        },
    },
];

/// Returns the names and reasons of the rules, in order of precedence.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    let others = RULES.iter().map(|rule| (rule.name, rule.reason));
    [NOT_REACHED, NO_EFFECT]
        .into_iter()
        .chain(others)
        .chain([OPERAND_FAILS])
}

/// A finding that only upstream's type checker reports. Its expression evaluates without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The kind for which upstream reports the finding.
    pub gvk: Gvk,
    /// Upstream's message.
    pub message: String,
    /// The name of the rule that explains the difference. `None` indicates a bug in this crate.
    pub rule: Option<&'static str>,
}

/// Returns the findings that upstream's type checker reports and the truthful profile does not. Each has the rule that
/// explains the difference.
#[must_use]
pub fn differences(
    policy: &CompiledPolicy,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
) -> Vec<Difference> {
    let params = |profile| {
        param_kind(policy.policy()).map(|gvk| match schemas.resolve(&gvk) {
            Resolution::Found(schema) => object_type(&schema, &gvk, profile),
            Resolution::NotFound | Resolution::Unavailable(_) => Type::Dyn,
        })
    };
    let (declared_params, evaluated_params) =
        (params(Profile::Upstream), params(Profile::Truthful));
    let mut driver = Driver::new(policy, evaluated_params.as_ref()).with_traces();
    let targets = matching::targets(policy.policy(), mapper);
    let mut differences = Vec::new();
    for gvk in matching::upstream_kinds(policy.policy(), mapper) {
        let Resolution::Found(schema) = schemas.resolve(&gvk) else {
            continue;
        };
        let of_kind: Vec<_> = targets
            .iter()
            .filter(|target| target.resource.gvk == gvk)
            .collect();
        let evaluated = object_type(&schema, &gvk, Profile::Truthful);
        let analysis = driver.analyze(&gvk, &evaluated, &of_kind);
        let kind = KindContext {
            policy,
            object: &object_type(&schema, &gvk, Profile::Upstream),
            params: declared_params.as_ref(),
        };
        for (n, expression, checked) in kind.check_all() {
            let ExpressionCheck::Failed(checked, diagnostics) = checked else {
                continue;
            };
            if !policy.compiles(n) {
                continue;
            }
            for finding in diagnostics.as_slice() {
                if !analysis.has_finding_at(n, finding.expr) {
                    differences.push(Difference {
                        field_ref: expression.field_ref.clone(),
                        gvk: gvk.clone(),
                        message: finding.to_string(),
                        rule: explain(n, finding, &checked, &analysis),
                    });
                }
            }
        }
    }
    differences
}

/// Returns the name of the rule that explains `finding`, a finding that only upstream reports.
fn explain(
    n: usize,
    finding: &Diagnostic,
    checked: &CheckedAst,
    analysis: &KindAnalysis,
) -> Option<&'static str> {
    let id = finding.expr?;
    if !analysis.traces(n).any(|trace| trace.is_visited(id)) {
        return Some(NOT_REACHED.0);
    }
    if analysis.traces(n).any(|trace| trace.is_suppressed(id)) {
        return Some(NO_EFFECT.0);
    }
    let rule = RULES.iter().find(|rule| (rule.applies)(finding, checked));
    rule.map(|rule| rule.name)
        .or_else(|| analysis.fails(n).then_some(OPERAND_FAILS.0))
}

fn expr<'a>(finding: &Diagnostic, checked: &'a CheckedAst) -> Option<&'a Expr> {
    finding.expr.map(|id| checked.ast().expr(id))
}

/// Returns true if the node of `finding` is a call of one of `functions`.
fn is_function(finding: &Diagnostic, checked: &CheckedAst, functions: &[&str]) -> bool {
    matches!(expr(finding, checked), Some(Expr::Call { function, .. }) if functions.contains(&&**function))
}

/// Returns true if `finding` reports that a call of one of `functions` has no matching overload.
fn is_call(finding: &Diagnostic, checked: &CheckedAst, functions: &[&str]) -> bool {
    finding.kind.code() == Code::NoMatchingOverload && is_function(finding, checked, functions)
}

/// Returns the types of the receiver and the arguments if the node of `finding` is a call. Empty for other nodes.
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

/// Returns the operand type and the field if the node of `finding` is a selection. `None` for other nodes.
fn selection(finding: &Diagnostic, checked: &CheckedAst) -> Option<(Type, String)> {
    match expr(finding, checked)? {
        Expr::Select { operand, field, .. } => Some((checked.type_of(*operand), field.to_string())),
        _ => None,
    }
}

fn is_container(type_: &Type) -> bool {
    matches!(type_, Type::List(_) | Type::Map(_) | Type::Struct(_)) || type_.is_dyn_or_error()
}
