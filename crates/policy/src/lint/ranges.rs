//! Finds calls of `lists.range` that exhaust the memory of an API server.
//!
//! Before cel-go 0.29, the function creates all elements before their cost is counted, so no cost limit ends the call.
//!
//! Source: cel-go `ext/lists.go` (`genRange`, `defaultMaxRangeSize`).

use super::Lint;
use super::path;
use crate::compile::CompiledPolicy;
use crate::reads::{Attribute, Input};
use crate::rule::Rule;
use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

/// The maximum length of a range since cel-go 0.29. Ranges up to this length need at most 16 MB.
const MAX_LENGTH: i64 = 1_000_000;

pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let is_limited = policy.version().behavior().language.limits_ranges;
    let mut lints = Vec::new();
    for (n, expression) in policy.expressions().iter().enumerate() {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        if !policy.compiles(n) {
            continue;
        }
        for id in ast.descendants(ast.root()) {
            let Some(length) = range_length(ast, id) else {
                continue;
            };
            let problem = match ast.expr(length) {
                Expr::Literal(Literal::Int(length)) if *length > MAX_LENGTH => Some(if is_limited {
                    format!(
                        "this fails whenever it is evaluated: a range has at most {MAX_LENGTH} numbers"
                    )
                } else {
                    format!(
                        "the API server creates a list of {length} numbers before it counts the cost, and may run out of memory"
                    )
                }),
                Expr::Select { .. } if !is_limited => unlimited_input(ast, length).map(|input| {
                    format!(
                        "the API server creates a list of `{input}` numbers before it counts the cost, so one request with a \
                         large number may exhaust its memory"
                    )
                }),
                _ => None,
            };
            lints.extend(problem.map(|message| Lint {
                rule: Rule::FailingCall,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
                message,
                fix: Some("compare the number with a maximum first, as in `a <= 100 && lists.range(a)...`".into()),
                is_harmless: false,
            }));
        }
    }
    lints
}

/// Returns the argument if the expression `id` is a call of `lists.range`.
fn range_length(ast: &Ast, id: ExprId) -> Option<ExprId> {
    let Expr::Call {
        function,
        target,
        args,
    } = ast.expr(id)
    else {
        return None;
    };
    let is_range = match target {
        Some(target) => {
            let is_lists = matches!(ast.expr(*target), Expr::Ident(name) if &**name == "lists");
            &**function == "range" && is_lists
        }
        None => &**function == "lists.range",
    };
    match &**args {
        [length] if is_range => Some(*length),
        _ => None,
    }
}

/// Returns the path of the number if the request determines it, and the expression compares it with no other number.
fn unlimited_input(ast: &Ast, id: ExprId) -> Option<String> {
    let operand = Attribute::new(ast, id).operand;
    let Expr::Ident(name) = ast.expr(operand) else {
        return None;
    };
    let input = Input::from_name(name)?;
    if matches!(input, Input::Params | Input::Variables | Input::Authorizer) {
        return None;
    }
    let input = path::path(ast, id)?;
    let is_input = |id: ExprId| path::path(ast, id).as_deref() == Some(&*input);
    let mut nodes = ast.descendants(ast.root()).into_iter();
    let is_compared = nodes.any(|id| {
        path::operands(ast, id).is_some_and(|(operator, left, right)| {
            operator.is_ordering() && (is_input(left) || is_input(right))
        })
    });
    (!is_compared).then_some(input)
}
