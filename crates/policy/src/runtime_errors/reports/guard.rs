//! Generates code for fixes: tests that exclude the failing values of an input, and optional selections.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::runtime_errors::symbolic::{ExprRef, SymbolicEvaluator};
use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::syntax::lexer;
use kubernetes::validity::{Segment, is_identifier};

/// Maximum length of a chain.
const MAX_DEPTH: usize = 50;

/// A selection or an index in a chain.
enum Accessor {
    Field(String),
    /// The source of the key, and its value if it is a literal.
    Key(String, Option<Arc<str>>),
    Index(i64),
}

/// The operators of tests, each with its negation. The negation of `in` is empty, because CEL has no operator for it.
const NEGATIONS: [(&str, &str); 4] = [
    (" != ", " == "),
    (" == ", " != "),
    (" > ", " <= "),
    (" in ", ""),
];

/// Returns the CEL source of a condition that is true if at least one of `tests` is false.
pub(crate) fn negated(tests: &[String]) -> String {
    let negated = tests.iter().map(|test| {
        // The last comparison operator is that of the test itself. Earlier ones are within the compared value.
        let comparison = NEGATIONS
            .iter()
            .filter_map(|row| Some((test.rfind(row.0)?, row)))
            .filter(|(at, _)| is_balanced(test.get(*at..).unwrap_or_default()))
            .max_by_key(|(at, _)| *at);
        match comparison {
            Some((at, (from, to))) if !to.is_empty() => {
                let (left, right) = test.split_at(at);
                format!("{left}{to}{}", right.get(from.len()..).unwrap_or_default())
            }
            Some(_) => format!("!({test})"),
            None => format!("!{test}"),
        }
    });
    let negated: Vec<String> = negated.collect();
    negated.join(" || ")
}

/// Returns true if the brackets in `text` are balanced.
pub(super) fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    for token in lexer::tokens(text).all {
        depth += i32::from(token.kind.opens_bracket()) - i32::from(token.kind.closes_bracket());
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

/// Returns true if `id` is compared with null. With `orValue()`, such a comparison would no longer find a null.
pub(crate) fn is_compared_with_null(ast: &Ast, id: ExprId) -> bool {
    let is_null = |id: &ExprId| matches!(ast.expr(*id), Expr::Literal(Literal::Null));
    ast.iter().any(|(_, expr)| match expr {
        Expr::Call { function, args, .. } => {
            matches!(&**function, "_==_" | "_!=_") && args.contains(&id) && args.iter().any(is_null)
        }
        _ => false,
    })
}

/// The CEL sources of presence tests and optional selections for a chain of selections whose values may be absent.
pub(crate) struct OptionalChain {
    /// The identifier at which the chain starts.
    pub(crate) base: ExprId,
    /// The name of the identifier. If the chain continues after `orValue()`, this is the source up to this call.
    pub(crate) base_name: String,
    /// The presence tests for the values that may be absent, such as `has(object.spec)`. If all of them are true, the
    /// chain has a value.
    pub(crate) tests: Vec<String>,
    /// The node of each test.
    pub(crate) test_nodes: Vec<ExprId>,
    /// The chain itself.
    pub(crate) text: String,
    /// The chain with optional selections, such as `object.?spec.?replicas`.
    pub(crate) optional_text: String,
    /// True if a list may be too short for an index in the chain. The fields of a missing element have no defaults.
    pub(crate) may_lack_element: bool,
}

/// Returns the tests and optional selections for the chain whose last selection is the node `chain`. The nodes in
/// `optional` may select absent values. Returns `None` if `optional` contains no node of the chain, or if the chain
/// contains expressions other than selections and indices.
pub(crate) fn optional_chain(
    evaluator: &SymbolicEvaluator<'_>,
    n: usize,
    chain: ExprId,
    optional: &HashSet<ExprId>,
) -> Option<OptionalChain> {
    let (name, accessors) = accessors(evaluator, n, chain)?;
    let base = start(evaluator, n, chain)?;
    let base_name = name.clone();
    let mut plain = name.clone();
    let mut tests = Vec::new();
    let mut test_nodes = Vec::new();
    let mut optional_text = name;
    for (id, accessor) in &accessors {
        let before = plain.clone();
        let is_optional = optional.contains(id);
        let sign = if is_optional { "?" } else { "" };
        test_nodes.extend(is_optional.then_some(*id));
        match accessor {
            Accessor::Field(name) => {
                let _ = write!(plain, ".{name}");
                let _ = write!(optional_text, ".{sign}{name}");
                if is_optional {
                    tests.push(format!("has({plain})"));
                }
            }
            Accessor::Key(key, _) => {
                let _ = write!(plain, "[{key}]");
                let _ = write!(optional_text, "[{sign}{key}]");
                if is_optional {
                    tests.push(format!("{key} in {before}"));
                }
            }
            Accessor::Index(index) => {
                let _ = write!(plain, "[{index}]");
                let _ = write!(optional_text, "[{sign}{index}]");
                if is_optional {
                    tests.push(format!("size({before}) > {index}"));
                }
            }
        }
    }
    (!tests.is_empty()).then_some(OptionalChain {
        base,
        base_name,
        tests,
        test_nodes,
        text: plain,
        optional_text,
        may_lack_element: accessors
            .iter()
            .any(|(id, it)| matches!(it, Accessor::Index(_)) && optional.contains(id)),
    })
}

/// Returns the selections after `node`, up to the node `chain`. `None` if one of their keys is not a literal.
pub(crate) fn selections_after(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    chain: ExprId,
) -> Option<Vec<Segment>> {
    let (_, accessors) = accessors(evaluator, node.index, chain)?;
    let n = accessors.iter().position(|(id, _)| *id == node.id)?;
    let after = accessors.into_iter().skip(n + 1);
    after
        .map(|(_, accessor)| match accessor {
            Accessor::Field(name) => Some(Segment::Field(name.into())),
            Accessor::Key(_, literal) => Some(Segment::Field(literal?)),
            Accessor::Index(index) => Some(Segment::Index(usize::try_from(index).ok()?)),
        })
        .collect()
}

/// Returns the source of the chain whose last selection is the node `chain`. `None` if the chain contains expressions
/// other than selections and indices.
pub(crate) fn source_text(
    evaluator: &SymbolicEvaluator<'_>,
    n: usize,
    chain: ExprId,
) -> Option<String> {
    let (mut text, accessors) = accessors(evaluator, n, chain)?;
    is_identifier(&text).then_some(())?;
    for (_, accessor) in accessors {
        let _ = match accessor {
            Accessor::Field(name) => write!(text, ".{name}"),
            Accessor::Key(key, _) => write!(text, "[{key}]"),
            Accessor::Index(index) => write!(text, "[{index}]"),
        };
    }
    Some(text)
}

/// Returns the variable or the value with a default at the start of a chain, and the accessors of the chain, innermost
/// first.
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
                    Expr::Literal(Literal::String(key)) => {
                        Accessor::Key(quote(key)?, Some(Arc::clone(key)))
                    }
                    Expr::Literal(Literal::Int(index)) => Accessor::Index(*index),
                    Expr::Ident(name) if is_identifier(name) => {
                        Accessor::Key(name.to_string(), None)
                    }
                    _ => return None,
                };
                accessors.push((id, accessor));
                id = *operand;
            }
            _ => {
                let (base, has_default) = default_text(evaluator, ExprRef { index: n, id }, 0)?;
                has_default.then_some(())?;
                accessors.reverse();
                return Some((base, accessors));
            }
        }
    }
}

/// Returns the identifier at the start of a chain of selections, indices and calls.
fn start(evaluator: &SymbolicEvaluator<'_>, n: usize, chain: ExprId) -> Option<ExprId> {
    let mut id = chain;
    for _ in 0..MAX_DEPTH {
        id = match evaluator.expr(ExprRef { index: n, id }) {
            Expr::Ident(_) => return Some(id),
            Expr::Select { operand, .. } => *operand,
            Expr::Call { target, args, .. } => target.or_else(|| args.first().copied())?,
            _ => return None,
        };
    }
    None
}

/// Returns the source of a chain with a default that is a literal, such as `object.?spec.orValue({})`, and true if the
/// chain ends with the default.
fn default_text(
    evaluator: &SymbolicEvaluator<'_>,
    node: ExprRef,
    depth: usize,
) -> Option<(String, bool)> {
    let operand_text = |id: ExprId| {
        let operand = node.with_id(id);
        match evaluator.expr(operand) {
            _ if depth > MAX_DEPTH => None,
            Expr::Ident(name) if is_identifier(name) => Some(name.to_string()),
            _ => Some(default_text(evaluator, operand, depth + 1)?.0),
        }
    };
    Some(match evaluator.expr(node) {
        Expr::Select {
            operand,
            field,
            test_only: false,
        } => (format!("{}.{field}", operand_text(*operand)?), false),
        Expr::Call {
            function,
            target,
            args,
        } => match (&**function, target, &**args) {
            ("orValue", Some(optional), [default]) => {
                let default = match evaluator.expr(node.with_id(*default)) {
                    Expr::Map(entries) if entries.is_empty() => "{}".to_owned(),
                    Expr::List { elements, .. } if elements.is_empty() => "[]".to_owned(),
                    Expr::Literal(Literal::String(text)) => quote(text)?,
                    _ => return None,
                };
                let optional = operand_text(*optional)?;
                (format!("{optional}.orValue({default})"), true)
            }
            ("_?._" | "_[?_]" | "_[_]", None, [operand, key]) => {
                let operand = operand_text(*operand)?;
                let Expr::Literal(Literal::String(key)) = evaluator.expr(node.with_id(*key)) else {
                    return None;
                };
                let text = match &**function {
                    "_?._" => format!("{operand}.?{key}"),
                    "_[?_]" => format!("{operand}[?{}]", quote(key)?),
                    _ => format!("{operand}[{}]", quote(key)?),
                };
                (text, false)
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Formats a string as a CEL literal. `None` if the string needs escapes or is too long.
pub(crate) fn quote(text: &str) -> Option<String> {
    let is_plain = text.len() <= 100
        && text
            .chars()
            .all(|c| !c.is_control() && c != '\\' && c != '\'');
    is_plain.then(|| format!("'{text}'"))
}
