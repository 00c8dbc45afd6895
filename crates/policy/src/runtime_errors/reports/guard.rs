//! Writes guards. A guard excludes the failing values of an input.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::runtime_errors::symbolic::{ExprRef, SymbolicEvaluator};
use crate::subexpressions;
use cel::ast::{Ast, Comprehension, Expr, ExprId, Literal};
use kubernetes::validity::is_identifier;

/// Maximum nesting of searched expressions.
const MAX_DEPTH: usize = 150;

/// A selection or an index in a chain.
enum Accessor {
    Field(String),
    Key(String),
    Index(i64),
}

/// The effect of a subexpression on the result of the whole expression. It determines the position of the guard, and
/// the result of the guarded expression for an absent value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Polarity {
    /// The subexpression is not negated. `guard && ...` is false for an absent value.
    Plain,
    /// The subexpression is an operand of `!`. The guard is inserted into the operand.
    Negated,
    /// The subexpression is compared, and the comparison should be true for an absent value. Examples are `x != 'a'`,
    /// and `x == ''` with a literal that means absence. This is the source of the comparison.
    PassesIfAbsent(String),
    /// The subexpression is the range of `all()`. For an empty range, `all()` is true.
    Universal,
}

impl Polarity {
    /// Returns the polarity of the subexpression `id` in the expression with the index `n`.
    pub(crate) fn at(evaluator: &SymbolicEvaluator<'_>, n: usize, id: ExprId) -> Self {
        let Some(ast) = evaluator.ast(n) else {
            return Self::Plain;
        };
        let root = accessors(evaluator, n, id).map(|(root, _)| root);
        let mut ancestors = Vec::new();
        if !find_ancestors(ast, ast.root(), id, &mut ancestors) {
            return Self::Plain;
        }
        let mut child = id;
        let mut is_range = true;
        let mut is_size = false;
        let mut outward = ancestors.into_iter().rev();
        while let Some(ancestor) = outward.next() {
            match ast.expr(ancestor) {
                Expr::Comprehension(fold) if is_range && child == fold.iter_range => {
                    if is_all(ast, fold) {
                        return Self::Universal;
                    }
                    child = ancestor;
                    continue;
                }
                Expr::Select { .. } => {
                    child = ancestor;
                    continue;
                }
                _ => {}
            }
            is_range = false;
            match ast.expr(ancestor) {
                Expr::Call { function, args, .. } => match &**function {
                    "!_" => return Self::Negated,
                    "size" => is_size = true,
                    _ if holds_if_absent(ast, (function, args), child, is_size) => {
                        // A comparison with a literal that means absence, such as `x == ''`, is true for an absent
                        // value. Its negation is false.
                        let n_negations = outward.filter(|id| is_negation(ast, *id)).count();
                        if &**function != "_!=_" && !n_negations.is_multiple_of(2) {
                            return Self::Plain;
                        }
                        return Self::PassesIfAbsent(subexpressions::text(ast, ancestor));
                    }
                    _ => {}
                },
                // The guard of an iteration variable is inserted into the macro.
                Expr::Comprehension(fold) if child != fold.iter_range => {
                    let iter_vars = [Some(&fold.iter_var), fold.iter_var2.as_ref()];
                    let mut iter_vars = iter_vars.into_iter().flatten();
                    if iter_vars.any(|name| root.as_deref() == Some(&**name)) {
                        return Self::Plain;
                    }
                }
                _ => {}
            }
            child = ancestor;
        }
        Self::Plain
    }

    /// Returns a guard from `tests`. Each test excludes a failing value.
    pub(crate) fn guard(&self, tests: &[String]) -> String {
        match self {
            Self::Plain => format!("add a guard: `{} && ...`", tests.join(" && ")),
            Self::Negated => format!(
                "add a guard inside the `!`: `!({} && ...)`",
                tests.join(" && ")
            ),
            Self::PassesIfAbsent(text) => format!("add a guard: `({} || {text})`", negated(tests)),
            Self::Universal => format!("add a guard: `({} || ...)`", negated(tests)),
        }
    }
}

/// Returns the CEL source of the negation of all `tests`.
fn negated(tests: &[String]) -> String {
    let negated = tests.iter().map(|test| {
        if test.starts_with("has(") {
            format!("!{test}")
        } else if let Some(value) = test.strip_suffix(" != null") {
            format!("{value} == null")
        } else {
            format!("!({test})")
        }
    });
    let negated: Vec<String> = negated.collect();
    negated.join(" || ")
}

fn is_all(ast: &Ast, fold: &Comprehension) -> bool {
    let is_true = matches!(ast.expr(fold.accu_init), Expr::Literal(Literal::Bool(true)));
    let step = ast.expr(fold.loop_step);
    is_true && matches!(step, Expr::Call { function, .. } if **function == *"_&&_")
}

fn is_negation(ast: &Ast, id: ExprId) -> bool {
    matches!(ast.expr(id), Expr::Call { function, .. } if **function == *"!_")
}

/// Returns true if `id` is compared with null. `orValue()` would replace the null that the policy looks for.
fn is_compared_with_null(ast: &Ast, id: ExprId) -> bool {
    let is_null = |id: &ExprId| matches!(ast.expr(*id), Expr::Literal(Literal::Null));
    ast.iter().any(|(_, expr)| match expr {
        Expr::Call { function, args, .. } => {
            matches!(&**function, "_==_" | "_!=_") && args.contains(&id) && args.iter().any(is_null)
        }
        _ => false,
    })
}

/// Returns true if the comparison of `part`, or of its size, should be true for an absent `part`. This holds for `!=`,
/// and for a comparison with a literal that means absence.
fn holds_if_absent(
    ast: &Ast,
    (function, args): (&str, &[ExprId]),
    part: ExprId,
    is_size: bool,
) -> bool {
    let is_empty = || args.iter().any(|arg| is_empty_literal(ast, *arg));
    match function {
        "_==_" => is_empty(),
        "_!=_" => !is_empty(),
        "_<_" | "_<=_" | "_>_" | "_>=_" => is_size && holds_for_zero(ast, function, args, part),
        _ => false,
    }
}

/// Returns true if the comparison is true for 0 instead of `part`. False if the other operand is not an integer
/// literal.
fn holds_for_zero(ast: &Ast, function: &str, args: &[ExprId], part: ExprId) -> bool {
    let [left, right] = args else { return false };
    let number = |id: ExprId| match ast.expr(id) {
        Expr::Literal(Literal::Int(value)) => Some(*value),
        _ => None,
    };
    let sides = if *left == part {
        number(*right).map(|value| (0, value))
    } else {
        number(*left).map(|value| (value, 0))
    };
    sides.is_some_and(|(left, right)| match function {
        "_<_" => left < right,
        "_<=_" => left <= right,
        "_>_" => left > right,
        _ => left >= right,
    })
}

/// Returns true if `id` is a literal that means absence, such as `''` or `[]`.
fn is_empty_literal(ast: &Ast, id: ExprId) -> bool {
    match ast.expr(id) {
        Expr::Literal(literal) => match literal {
            Literal::String(text) => text.is_empty(),
            Literal::Int(value) => *value == 0,
            Literal::Bool(value) => !value,
            Literal::Null => true,
            _ => false,
        },
        Expr::List { elements, .. } => elements.is_empty(),
        Expr::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Collects the ancestors of `to` within `from`, outermost first. Returns false if `from` does not contain `to`.
fn find_ancestors(ast: &Ast, from: ExprId, to: ExprId, ancestors: &mut Vec<ExprId>) -> bool {
    if from == to {
        return true;
    }
    if ancestors.len() > MAX_DEPTH {
        return false;
    }
    ancestors.push(from);
    let mut children = Vec::new();
    ast.for_each_child(from, |child| children.push(child));
    let is_found = children
        .into_iter()
        .any(|child| find_ancestors(ast, child, to, ancestors));
    if !is_found {
        ancestors.pop();
    }
    is_found
}

/// Returns a fix for the chain of selections at `chain`. The nodes in `optional` may select absent values. `default` is
/// the argument of `orValue()` with the closing parenthesis. `is_scale` is true for the replicas of a Scale.
pub(crate) fn fix(
    evaluator: &SymbolicEvaluator<'_>,
    n: usize,
    chain: ExprId,
    optional: &HashSet<ExprId>,
    default: Option<&str>,
    is_scale: bool,
) -> Option<String> {
    let (base, accessors) = accessors(evaluator, n, chain)?;
    let mut plain = base.clone();
    let mut guards = Vec::new();
    let mut optional_text = base;
    let mut has_optional = false;
    for (id, accessor) in &accessors {
        let before = plain.clone();
        let is_optional = optional.contains(id);
        has_optional |= is_optional;
        let sign = if is_optional { "?" } else { "" };
        match accessor {
            Accessor::Field(name) => {
                let _ = write!(plain, ".{name}");
                let _ = write!(optional_text, ".{sign}{name}");
                if is_optional {
                    guards.push(format!("has({plain})"));
                }
            }
            Accessor::Key(key) => {
                let _ = write!(plain, "[{key}]");
                let _ = write!(optional_text, "[{sign}{key}]");
                if is_optional {
                    guards.push(format!("{key} in {before}"));
                }
            }
            Accessor::Index(index) => {
                let _ = write!(plain, "[{index}]");
                let _ = write!(optional_text, "[{sign}{index}]");
                if is_optional {
                    guards.push(format!("size({before}) > {index}"));
                }
            }
        }
    }
    if guards.is_empty() {
        return None;
    }
    let guard = Polarity::at(evaluator, n, chain).guard(&guards);
    let is_of_null = evaluator
        .ast(n)
        .is_some_and(|ast| is_compared_with_null(ast, chain));
    let is_defaultable = has_optional && !is_of_null;
    Some(match default.filter(|_| is_defaultable) {
        Some(default) if is_scale => {
            format!("write `{optional_text}.orValue({default}`: a Scale omits the field if it is 0")
        }
        Some(default) => format!("{guard}, or write `{optional_text}.orValue({default}`"),
        None => guard,
    })
}

/// Returns the source of the chain of selections at `chain`. `None` if there are other expressions in it.
pub(crate) fn source_text(
    evaluator: &SymbolicEvaluator<'_>,
    n: usize,
    chain: ExprId,
) -> Option<String> {
    let (mut text, accessors) = accessors(evaluator, n, chain)?;
    for (_, accessor) in accessors {
        let _ = match accessor {
            Accessor::Field(name) => write!(text, ".{name}"),
            Accessor::Key(key) => write!(text, "[{key}]"),
            Accessor::Index(index) => write!(text, "[{index}]"),
        };
    }
    Some(text)
}

/// Returns the variable at the start of a chain, and the accessors of the chain, innermost first.
fn accessors(
    evaluator: &SymbolicEvaluator<'_>,
    n: usize,
    chain: ExprId,
) -> Option<(String, Vec<(ExprId, Accessor)>)> {
    let mut accessors = Vec::new();
    let mut id = chain;
    loop {
        match evaluator.expr(ExprRef { index: n, id }) {
            Expr::Ident(name) if is_identifier(name) => {
                accessors.reverse();
                return Some((name.to_string(), accessors));
            }
            Expr::Select {
                operand,
                field,
                test_only: false,
            } => {
                accessors.push((id, Accessor::Field(field.to_string())));
                id = *operand;
            }
            Expr::Call {
                function,
                target: None,
                args,
            } if **function == *"_[_]" => {
                let [operand, index] = &**args else {
                    return None;
                };
                let accessor = match evaluator.expr(ExprRef {
                    index: n,
                    id: *index,
                }) {
                    Expr::Literal(Literal::String(key)) => Accessor::Key(quote(key)?),
                    Expr::Literal(Literal::Int(index)) => Accessor::Index(*index),
                    Expr::Ident(name) if is_identifier(name) => Accessor::Key(name.to_string()),
                    _ => return None,
                };
                accessors.push((id, accessor));
                id = *operand;
            }
            _ => return None,
        }
    }
}

/// Formats a string as a CEL literal. `None` if the string needs escapes or is too long.
pub(crate) fn quote(text: &str) -> Option<String> {
    let is_plain = text.len() <= 100
        && text
            .chars()
            .all(|c| !c.is_control() && c != '\\' && c != '\'');
    is_plain.then(|| format!("'{text}'"))
}
