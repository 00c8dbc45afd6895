//! Reports calls of `or` and `orValue` whose receiver is not an optional. Usually, the `?` of a selection is missing.
//!
//! Source: cel-go `cel/library.go`, `evalOptionalOr` and `evalOptionalOrValue` (up to 0.27, they return a receiver that
//! is not an optional; since 0.28, they fail).

use cel::ast::{Ast, Expr, ExprId};
use cel::source::SourceMap;

use super::Lint;
use super::expressions::MAX_FOUND;
use crate::analysis::NonOptionalReceiver;
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::reads::variable;
use crate::rule::Rule;
use crate::subexpressions;

/// Maximum length of a receiver or a key that a message quotes, in code points.
const MAX_SHOWN: usize = 60;

/// Returns the lints of `calls`, which type analysis found in `policy`.
#[must_use]
pub fn missing_optionals(policy: &CompiledPolicy, calls: &[NonOptionalReceiver]) -> Vec<Lint> {
    let by_expression = calls.chunk_by(|a, b| a.index == b.index);
    let reported = by_expression.flat_map(|calls| calls.iter().take(MAX_FOUND));
    reported.filter_map(|call| lint(policy, call)).collect()
}

fn lint(policy: &CompiledPolicy, found: &NonOptionalReceiver) -> Option<Lint> {
    let expression = policy.expressions().get(found.index)?;
    let ast = expression.parsed().ok()?;
    let (function, receiver) = call(ast, found.call)?;
    let selection = selection(ast, receiver);
    let variable = variable(ast, receiver);
    let marked = if selection.is_some() || variable.is_some() {
        receiver
    } else {
        found.call
    };
    let subject = short(subexpressions::text(ast, receiver))
        .map_or_else(|| "the receiver".to_owned(), |text| format!("`{text}`"));
    let effect = if found.fails {
        format!("`{function}()` fails with `no such overload`")
    } else {
        format!("`{function}()` has no effect up to Kubernetes 1.36 and fails in later versions")
    };
    let must_be_bool = matches!(expression.role, Role::Validation | Role::MatchCondition);
    let fix = match selection {
        Some((optional, noun)) => {
            let purpose = format!("write `{optional}` to use the default if the {noun} is absent");
            if function == "or" && !is_unwrapped(ast, found.call) {
                format!("{purpose}, and unwrap the result with `orValue()`")
            } else if must_be_bool && ast.root() == found.call {
                format!(
                    "{purpose}, and append `== true`, because the type is then only known at evaluation"
                )
            } else {
                purpose
            }
        }
        None => match variable {
            Some(name) => format!(
                "remove the call, or make the variable `{name}` an optional, with `.?` or `[?key]` in its expression"
            ),
            None => {
                "remove the call; if the value may be null, compare it with null first".to_owned()
            }
        },
    };
    Some(Lint {
        rule: Rule::OrValueWithoutOptional,
        field_ref: found.field_ref.clone(),
        location: Some(SourceMap::new(&expression.text).location(ast.offset(marked))),
        message: format!("{subject} is not an optional, so {effect}"),
        fix: Some(fix.into()),
        is_harmless: false,
    })
}

/// Returns the function and the receiver if `id` is a call with a receiver, such as a call of `or`.
fn call(ast: &Ast, id: ExprId) -> Option<(&str, ExprId)> {
    match ast.expr(id) {
        Expr::Call {
            function,
            target: Some(receiver),
            ..
        } => Some((function, *receiver)),
        _ => None,
    }
}

/// Returns the optional form of the selection `id`, such as `.?b` for `a.b`, and a noun for the selected value. `None`
/// for other expressions, for policy variables, and for long keys.
fn selection(ast: &Ast, id: ExprId) -> Option<(String, &'static str)> {
    match ast.expr(id) {
        Expr::Select {
            field,
            test_only: false,
            ..
        } if variable(ast, id).is_none() => Some((format!(".?{field}"), "field")),
        Expr::Call {
            function,
            target: None,
            args,
        } if &**function == "_[_]" => {
            let key = short(subexpressions::text(ast, *args.get(1)?))?;
            Some((format!("[?{key}]"), "key or element"))
        }
        _ => None,
    }
}

fn short(text: String) -> Option<String> {
    (text.chars().count() <= MAX_SHOWN).then_some(text)
}

/// Returns true if `id` is the receiver of a call of `or` or `orValue`. The value of `id` may then be an optional.
fn is_unwrapped(ast: &Ast, id: ExprId) -> bool {
    ast.iter().any(|(_, expr)| {
        matches!(expr, Expr::Call { function, target: Some(receiver), .. }
            if *receiver == id && matches!(&**function, "or" | "orValue"))
    })
}

/// Returns the offset of the `.` or `[` after which a `?` makes the receiver of the call `id` an optional. `None` if
/// there is none, or if the `?` would change the value for requests that have the field.
#[must_use]
pub fn missing_question_mark(ast: &Ast, id: ExprId) -> Option<u32> {
    let (function, receiver) = call(ast, id)?;
    // With the `?`, the result of `or` is an optional, on which `or` or `orValue` must be called.
    let keeps_value = function == "orValue" || is_unwrapped(ast, id);
    (keeps_value && selection(ast, receiver).is_some()).then(|| ast.offset(receiver))
}
