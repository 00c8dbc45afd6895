//! Source ranges of conditions and of chains of selections. Fixes edit these ranges.

use std::ops::Range;

use cel::ast::{Ast, ExprId};
use cel::source::SourceMap;
use cel::syntax::lexer::{self, Tokens};
use cel::syntax::token::{Kind, Token};

/// Maximum nesting of searched expressions.
const MAX_DEPTH: usize = 150;

/// A condition: the whole expression, an operand of a logical operator, or the condition of a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The node.
    pub id: ExprId,
    /// The bytes of the condition in the source, without enclosing parentheses.
    pub bytes: Range<usize>,
    /// True if the condition is an operand of `&&`. An expression with `||` that replaces the condition then needs
    /// parentheses.
    pub is_beside_and: bool,
}

impl Condition {
    /// Returns `text`, in parentheses if it needs them. `text` is an expression with `||` that replaces the condition.
    #[must_use]
    pub fn disjunction(&self, text: &str) -> String {
        if self.is_beside_and {
            format!("({text})")
        } else {
            text.to_owned()
        }
    }
}

/// Returns the innermost condition that is or contains the node `id`. The whole expression counts as a condition.
#[must_use]
pub fn condition_around(ast: &Ast, text: &str, id: ExprId) -> Option<Condition> {
    let mut innermost = ast.root();
    let mut node = ast.root();
    for _ in 0..MAX_DEPTH {
        if node == id {
            return range(ast, text, innermost);
        }
        let mut children = Vec::new();
        ast.for_each_child(node, |child| children.push(child));
        let next = children
            .into_iter()
            .find(|child| ast.descendants(*child).contains(&id))?;
        if is_condition(ast, (node, node == innermost), next) {
            innermost = next;
        }
        node = next;
    }
    None
}

/// Returns the whole expression as a condition, without white space and comments around it.
#[must_use]
pub fn whole(ast: &Ast, text: &str) -> Option<Condition> {
    let tokens = lexer::tokens(text).all;
    let mut words = tokens.iter().filter(|token| token.kind != Kind::End);
    let first = words.next()?;
    let last = words.next_back().unwrap_or(first);
    Some(Condition {
        id: ast.root(),
        bytes: first.start as usize..last.end as usize,
        is_beside_and: false,
    })
}

/// Returns true if `child` is a condition in `parent`: an operand of `&&` or `||`, or the condition of `?:`. This
/// includes the condition of a macro, which expands to such operators. The branches of `?:` are conditions if `?:`
/// itself is in a condition. The operand of `!` is not a condition of its own, but belongs to the negated condition.
fn is_condition(ast: &Ast, (parent, is_in_condition): (ExprId, bool), child: ExprId) -> bool {
    match ast.global_call(parent) {
        Some(("_&&_" | "_||_", _)) => true,
        Some(("_?_:_", args)) => args.first() == Some(&child) || is_in_condition,
        _ => false,
    }
}

/// Returns the range of the condition `id`. The range ends at the operators, commas and brackets around the condition.
fn range(ast: &Ast, text: &str, id: ExprId) -> Option<Condition> {
    let Tokens { all: tokens, .. } = lexer::tokens(text);
    let offsets = ast.descendants(id).into_iter().map(|id| ast.offset(id));
    let (lowest, highest) = offsets.fold((u32::MAX, 0), |(low, high), offset| {
        (low.min(offset), high.max(offset))
    });
    let position = |offset| tokens.iter().position(|token| token.offset == offset);
    let (mut first, mut last) = (position(lowest)?, position(highest)?);
    let (mut n_open, mut n_closed) = (0_usize, 0_usize);
    for token in tokens.get(first..=last)? {
        if token.kind.opens_bracket() {
            n_open += 1;
        } else if token.kind.closes_bracket() {
            match n_open.checked_sub(1) {
                Some(left) => n_open = left,
                None => n_closed += 1,
            }
        }
    }
    let mut depth = n_closed;
    while let Some(before) = first.checked_sub(1) {
        let kind = tokens.get(before)?.kind;
        if kind.closes_bracket() {
            depth += 1;
        } else if kind.opens_bracket() {
            match depth.checked_sub(1) {
                Some(left) => depth = left,
                None => break,
            }
        } else if depth == 0 && is_separator(&tokens, before) {
            break;
        }
        first = before;
    }
    let mut depth = n_open;
    while let Some(next) = tokens.get(last + 1) {
        if next.kind.opens_bracket() {
            depth += 1;
        } else if next.kind.closes_bracket() {
            match depth.checked_sub(1) {
                Some(left) => depth = left,
                None => break,
            }
        } else if next.kind == Kind::End || depth == 0 && is_separator(&tokens, last + 1) {
            break;
        }
        last += 1;
    }
    let kind = |n: Option<usize>| Some(tokens.get(n?)?.kind);
    let (before, after) = (kind(first.checked_sub(1)), kind(Some(last + 1)));
    let bytes = tokens.get(first)?.start as usize..tokens.get(last)?.end as usize;
    Some(Condition {
        id,
        bytes,
        is_beside_and: before == Some(Kind::And) || after == Some(Kind::And),
    })
}

/// Returns the bytes of the chain from the identifier `base` to the end of `id`, its last selection, index or call.
#[must_use]
pub fn chain_range(ast: &Ast, text: &str, (base, id): (ExprId, ExprId)) -> Option<Range<usize>> {
    let source = SourceMap::new(text);
    let start = source.byte(source.location(ast.offset(base)))?;
    Some(start..end_of(ast, text, id)?)
}

/// Returns the offset of the byte after the node `id`, which is an identifier, a selection, an index or a call with
/// arguments.
fn end_of(ast: &Ast, text: &str, id: ExprId) -> Option<usize> {
    let Tokens { all: tokens, .. } = lexer::tokens(text);
    let at = tokens
        .iter()
        .position(|token| token.offset == ast.offset(id))?;
    let token = tokens.get(at)?;
    match token.kind {
        Kind::Dot => {
            let name = |n: usize| {
                let token = tokens.get(at + n)?;
                matches!(token.kind, Kind::Ident | Kind::EscapedIdent | Kind::In)
                    .then_some(token.end as usize)
            };
            name(1).or_else(|| name(2))
        }
        Kind::OpenBracket | Kind::OpenParen => {
            let mut depth = 0_usize;
            let close = tokens.iter().skip(at).find(|token| {
                if token.kind.opens_bracket() {
                    depth += 1;
                } else if token.kind.closes_bracket() {
                    depth = depth.saturating_sub(1);
                }
                depth == 0
            })?;
            Some(close.end as usize)
        }
        _ => Some(token.end as usize),
    }
}

/// Returns true if the token ends an operand: a logical operator, a part of `?:`, or a comma.
fn is_separator(tokens: &[Token], n: usize) -> bool {
    let Some(token) = tokens.get(n) else {
        return false;
    };
    match token.kind {
        Kind::And | Kind::Or | Kind::Colon | Kind::Comma | Kind::Exclamation => true,
        // The `?` of an optional selection follows a dot or a bracket.
        Kind::Question => {
            let before = n.checked_sub(1).and_then(|n| tokens.get(n));
            !before.is_some_and(|token| matches!(token.kind, Kind::Dot | Kind::OpenBracket))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cel::ast::Expr;
    use cel::syntax::parse;

    /// Returns the condition around the node at the first `@`, which is removed from the source.
    fn condition_at(marked: &str) -> (String, bool) {
        let at = marked.chars().position(|c| c == '@').unwrap();
        let text = marked.replacen('@', "", 1);
        let ast = parse(&text).0.unwrap();
        let offset = u32::try_from(at).unwrap();
        let (id, _) = ast
            .iter()
            .find(|(id, expr)| {
                ast.offset(*id) == offset
                    && !matches!(expr, Expr::Comprehension(_) | Expr::Unspecified)
                    && ast.descendants(ast.root()).contains(id)
            })
            .unwrap();
        let condition = condition_around(&ast, &text, id).unwrap();
        let source = text.get(condition.bytes).unwrap();
        (source.to_owned(), condition.is_beside_and)
    }

    #[test]
    fn conditions_end_at_logical_operators_and_brackets() {
        let cases = [
            ("object@.a == 1", "object.a == 1", false),
            ("x && object@.a == 1 || y", "object.a == 1", true),
            ("x || object@.a == 1", "object.a == 1", false),
            ("!object@.a", "!object.a", false),
            ("!(object@.a == 1)", "!(object.a == 1)", false),
            ("x && !object@.a", "!object.a", true),
            ("!(object@.a && b)", "object.a", true),
            ("l.all(c, !c@.a)", "!c.a", false),
            ("(object@.a) == (1)", "(object.a) == (1)", false),
            ("size(object@.a) > 0 && b", "size(object.a) > 0", true),
            ("(1 + object@.a) > 0", "(1 + object.a) > 0", false),
            ("l.all(c, c@.a == 1 && c.b)", "c.a == 1", true),
            ("l.all(c, c@.a)", "c.a", false),
            ("object@.l.all(c, c.a)", "object.l.all(c, c.a)", false),
            ("x ? object@.a == 1 : b", "object.a == 1", false),
            ("object@.a ? x : y", "object.a", false),
            (
                "a.?b.orValue(1) == object@.c",
                "a.?b.orValue(1) == object.c",
                false,
            ),
            ("{'k': object@.a}.k == 1", "{'k': object.a}.k == 1", false),
            (
                "l.exists(c, l.all(d, d@.x in ['a', 'b']))",
                "d.x in ['a', 'b']",
                false,
            ),
            ("'é' == 'é' && object@.a", "object.a", true),
            ("!a == @b", "!a == b", false),
        ];
        for (marked, text, is_beside_and) in cases {
            assert_eq!(
                condition_at(marked),
                (text.to_owned(), is_beside_and),
                "{marked}"
            );
        }
    }
}
