//! Calls whose arguments are all constants: the evaluator says what they give.
//!
//! `object.kind.matches('^(Pod|Job)$')` is as much a guard on the kind as `object.kind in ['Pod', 'Job']`.

use std::fmt::Write as _;
use std::sync::Arc;

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::checker::check;
use cel::env::Env;
use cel::eval::{Bindings, Limits, Program};
use cel::syntax::parse;
use cel::value::Value;
use kubernetes::library::runtime::KubernetesRuntime;

use super::value::Const;

/// How many steps a call counts for: it is parsed, checked and planned.
pub(super) const STEPS: u32 = 100;

/// The most bytes of a call, its arguments written out.
const MAX_BYTES: usize = 2048;

/// How deep calls of calls nest.
const MAX_DEPTH: u8 = 8;

/// The most that a call may cost.
const MAX_COST: u64 = 10_000;

/// The most elements of a list.
const MAX_ELEMENTS: usize = 64;

/// Operators with two operands that are folded; others have rules of their own.
const OPERATORS: [(&str, &str); 9] = [
    ("_<_", "<"),
    ("_<=_", "<="),
    ("_>_", ">"),
    ("_>=_", ">="),
    ("_+_", "+"),
    ("_-_", "-"),
    ("_*_", "*"),
    ("_/_", "/"),
    ("_%_", "%"),
];

/// The value of `function` for the receiver, if any, and arguments `args`; `None` where it is not known.
pub(super) fn call(env: &Env, function: &str, is_member: bool, args: &[&Const]) -> Option<Const> {
    evaluate(env, &written(function, is_member, args)?)
}

/// The value of the expression `text`.
pub(super) fn evaluate(env: &Env, text: &str) -> Option<Const> {
    let (ast, found) = parse(text);
    if !found.is_empty() {
        return None;
    }
    let (checked, found) = check(&Arc::new(ast?), text, env);
    if !found.is_empty() {
        return None;
    }
    let program = Program::plan(&checked, env, &KubernetesRuntime).ok()?;
    let evaluation = program.eval(&Bindings::default(), Limits::of_cost(MAX_COST));
    read(&evaluation.result.ok()?, 2)
}

/// The text of an expression that consists of calls and literals alone.
pub(super) fn closed(ast: &Ast, id: ExprId) -> Option<String> {
    let mut text = String::new();
    write_closed(&mut text, ast, id, MAX_DEPTH)?;
    Some(text)
}

fn write_closed(text: &mut String, ast: &Ast, id: ExprId, depth: u8) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match ast.expr(id) {
        Expr::Literal(literal) => match literal {
            Literal::Null => write_literal(text, &Const::Null),
            Literal::Bool(value) => write_literal(text, &Const::Bool(*value)),
            Literal::Int(value) => write_literal(text, &Const::Int(*value)),
            Literal::String(value) => write_literal(text, &Const::Text(Arc::clone(value))),
            Literal::Uint(_) | Literal::Double(_) | Literal::Bytes(_) => None,
        },
        Expr::Call {
            function,
            target,
            args,
        } => {
            let operator = match &**function {
                "_==_" => Some("=="),
                "_!=_" => Some("!="),
                name => OPERATORS
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, operator)| *operator),
            };
            if let (Some(operator), [left, right]) = (operator, &**args) {
                text.push('(');
                write_closed(text, ast, *left, depth)?;
                let _ = write!(text, " {operator} ");
                write_closed(text, ast, *right, depth)?;
                text.push(')');
                return Some(());
            }
            if !is_name(function) {
                return None;
            }
            if let Some(target) = target {
                write_closed(text, ast, *target, depth)?;
                text.push('.');
            }
            text.push_str(function);
            text.push('(');
            for (n, &arg) in args.iter().enumerate() {
                if n > 0 {
                    text.push_str(", ");
                }
                write_closed(text, ast, arg, depth)?;
            }
            text.push(')');
            (text.len() <= MAX_BYTES).then_some(())
        }
        _ => None,
    }
}

/// Whether a function can be called by its name.
fn is_name(function: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    !function.starts_with('_') && function.chars().all(fits)
}

fn written(function: &str, is_member: bool, args: &[&Const]) -> Option<String> {
    let mut text = String::new();
    if let (Some((_, operator)), [left, right]) =
        (OPERATORS.iter().find(|(name, _)| *name == function), args)
    {
        write_literal(&mut text, left)?;
        let _ = write!(text, " {operator} ");
        write_literal(&mut text, right)?;
        return Some(text);
    }
    if !is_name(function) {
        return None;
    }
    let mut args = args.iter();
    if is_member {
        write_literal(&mut text, args.next()?)?;
        text.push('.');
    }
    text.push_str(function);
    text.push('(');
    for (n, arg) in args.enumerate() {
        if n > 0 {
            text.push_str(", ");
        }
        write_literal(&mut text, arg)?;
    }
    text.push(')');
    Some(text)
}

fn write_literal(text: &mut String, value: &Const) -> Option<()> {
    match value {
        Const::Null => text.push_str("null"),
        Const::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Const::Int(value) => {
            let _ = write!(text, "({value})");
        }
        Const::Text(value) => {
            text.push('"');
            for c in value.chars() {
                if c.is_ascii_alphanumeric() {
                    text.push(c);
                } else {
                    let _ = write!(text, "\\U{:08x}", u32::from(c));
                }
            }
            text.push('"');
        }
        Const::List(values) => {
            text.push('[');
            for value in values.iter() {
                write_literal(text, value)?;
                text.push(',');
            }
            text.push(']');
        }
        Const::TypeName(_) => return None,
    }
    (text.len() <= MAX_BYTES).then_some(())
}

/// A result, where it is small.
fn read(value: &Value, depth: u8) -> Option<Const> {
    Some(match value {
        Value::Null => Const::Null,
        Value::Bool(value) => Const::Bool(*value),
        Value::Int(value) => Const::Int(*value),
        Value::String(text) if text.len() <= MAX_BYTES => Const::Text(Arc::clone(text)),
        Value::List(list) if list.len() <= MAX_ELEMENTS => {
            let depth = depth.checked_sub(1)?;
            let values = list.iter().map(|value| read(&value, depth));
            Const::List(values.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Declared, policy_env};
    use cel::types::Type;

    fn fold(function: &str, is_member: bool, args: &[Const]) -> Option<Const> {
        let env = policy_env(&Declared {
            object: &Type::Dyn,
            params: None,
            authorizer: true,
            request_resource: true,
        });
        call(&env, function, is_member, &args.iter().collect::<Vec<_>>())
    }

    fn text(text: &str) -> Const {
        Const::Text(text.into())
    }

    #[test]
    fn calls_are_evaluated() {
        let pod = || text("Pod");
        for (function, is_member, args, wanted) in [
            (
                "matches",
                true,
                vec![pod(), text("^P.d$")],
                Const::Bool(true),
            ),
            ("matches", false, vec![pod(), text("x")], Const::Bool(false)),
            ("size", true, vec![text("é\"\n")], Const::Int(3)),
            ("upperAscii", true, vec![pod()], text("POD")),
            (
                "_<_",
                false,
                vec![Const::Int(-1), Const::Int(0)],
                Const::Bool(true),
            ),
            ("_+_", false, vec![pod(), text("s")], text("Pods")),
            (
                "split",
                true,
                vec![text("apps/v1"), text("/")],
                Const::List([text("apps"), text("v1")].into()),
            ),
            (
                "join",
                true,
                vec![Const::List([text("a"), text("b")].into()), text("-")],
                text("a-b"),
            ),
        ] {
            assert_eq!(fold(function, is_member, &args), Some(wanted), "{function}");
        }
    }

    #[test]
    fn what_fails_or_is_large_is_not_known() {
        let long = text(&"a".repeat(3000));
        for (function, is_member, args) in [
            ("_/_", false, vec![Const::Int(1), Const::Int(0)]),
            ("_+_", false, vec![Const::Int(1), text("a")]),
            ("matches", true, vec![text("a"), text("(")]),
            ("size", true, vec![long]),
            ("@in", false, vec![Const::Int(1), Const::List([].into())]),
            ("type", false, vec![Const::TypeName("int")]),
        ] {
            assert_eq!(fold(function, is_member, &args), None, "{function}");
        }
    }
}
