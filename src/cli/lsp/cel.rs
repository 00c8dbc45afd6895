//! Finds the name at a byte of an expression, and the names and types that are in scope there.
//!
//! The expression may be incomplete. The source before the name is completed with a placeholder for the name and with
//! closing brackets, and then parsed and checked. The source after the name does not affect types.

use std::ops::Range;
use std::sync::Arc;

use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::cel::checker::{self, CheckedAst};
use crate::cel::env::Env;
use crate::cel::syntax;
use crate::cel::syntax::lexer::{self, Tokens};
use crate::cel::syntax::token::{Kind, Token};
use crate::cel::types::Type;
use crate::policy::reads::{Attribute, Key};

/// The placeholder for the name at the cursor.
const PLACEHOLDER: &str = "vap__cursor";

/// Maximum number of AST nodes of a completed expression.
const MAX_NODES: usize = 100_000;

/// The name at a byte of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The bytes of the name in the expression; empty if no name begins there.
    pub(super) range: Range<usize>,
    /// True after a dot: a field or a function with a receiver.
    pub(super) is_member: bool,
    /// True before an opening parenthesis.
    pub(super) is_call: bool,
}

impl Name {
    pub(super) fn text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.range.clone()).unwrap_or_default()
    }
}

/// Returns true for a token that is a name, or that a user may extend to a name.
fn is_name(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Ident | Kind::True | Kind::False | Kind::Null | Kind::In
    )
}

fn start(token: &Token) -> usize {
    usize::try_from(token.start).unwrap_or(usize::MAX)
}

fn end(token: &Token) -> usize {
    usize::try_from(token.end).unwrap_or(usize::MAX)
}

/// Returns the name that ends at or contains the byte `offset`. Returns an empty name if a new name can begin there. `None`
/// within strings, numbers and comments.
pub(super) fn name_at(text: &str, offset: usize) -> Option<Name> {
    let tokens = lexer::tokens(text);
    let is_within = |token: &&Token| start(token) < offset && offset <= end(token);
    let all = tokens.all.iter().filter(|token| token.kind != Kind::End);
    let name = all
        .clone()
        .find(|token| is_name(token.kind) && start(token) <= offset && offset <= end(token));
    let range = match name {
        Some(token) => start(token)..end(token),
        None => {
            let inside = all.clone().find(is_within);
            let is_other = inside.is_some_and(|token| {
                let is_literal = matches!(
                    token.kind,
                    Kind::String | Kind::Bytes | Kind::Int | Kind::Uint | Kind::Float
                );
                offset < end(token) || is_literal || token.kind == Kind::EscapedIdent
            });
            if is_other || is_unfinished(text, &tokens, offset) || is_comment(text, offset) {
                return None;
            }
            offset..offset
        }
    };
    let before = all.clone().rfind(|token| end(token) <= range.start);
    let before_that = all
        .clone()
        .rfind(|token| before.is_some_and(|before| end(token) <= start(before)));
    // `.?name` selects an optional field.
    let is_member = match before.map(|token| token.kind) {
        Some(Kind::Dot) => true,
        Some(Kind::Question) => before_that.is_some_and(|token| token.kind == Kind::Dot),
        _ => false,
    };
    let after = all.clone().find(|token| start(token) >= range.end);
    Some(Name {
        is_member,
        is_call: !range.is_empty() && after.is_some_and(|token| token.kind == Kind::OpenParen),
        range,
    })
}

/// Returns true if the byte is within an unterminated string.
fn is_unfinished(text: &str, tokens: &Tokens, offset: usize) -> bool {
    tokens.errors.iter().any(|error| {
        let from = usize::try_from(error.start).unwrap_or(usize::MAX);
        let rest = text.get(from..).unwrap_or_default();
        from < offset && rest.starts_with(['\'', '"'])
    })
}

/// Returns true if the byte is in a comment.
fn is_comment(text: &str, offset: usize) -> bool {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let Some(at) = line.find("//") else {
        return false;
    };
    let at = before.len() - line.len() + at;
    let tokens = lexer::tokens(text);
    !tokens
        .all
        .iter()
        .any(|token| start(token) <= at && at < end(token))
}

/// The names and types in scope at a name.
#[derive(Debug)]
pub(super) enum Scope {
    /// After a dot.
    Member {
        /// The type of the receiver.
        receiver: Type,
        /// The path of the receiver, if it is a part of an input.
        path: Option<FieldPath>,
    },
    /// Not after a dot: the variables of the enclosing macros, the innermost last.
    Global(Vec<(Arc<str>, Type)>),
}

/// The path from an input of the policy to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPath {
    /// The input, such as `object`.
    pub(super) root: String,
    /// The fields. `None` is an element of a list or a value of a map.
    pub(super) fields: Vec<Option<String>>,
}

/// Returns the names and types in scope at `name`, a name in `text`. `None` if the source before the name is invalid.
pub(super) fn scope(text: &str, name: &Name, env: &Env) -> Option<Scope> {
    let before = text.get(..name.range.start)?;
    let (checked, id) =
        check(before, env).or_else(|| check(operand(before, name.is_member)?, env))?;
    let ast = checked.ast();
    let receiver = match ast.expr(id) {
        Expr::Select { operand, .. } => Some(*operand),
        Expr::Call { args, .. } => args.first().copied(),
        _ => None,
    };
    Some(match receiver {
        Some(receiver) => Scope::Member {
            receiver: receiver_type(&checked, receiver),
            path: path(ast, receiver, 0),
        },
        None => Scope::Global(locals(&checked, id)),
    })
}

fn receiver_type(checked: &CheckedAst, receiver: ExprId) -> Type {
    checked.type_of(receiver)
}

/// Completes the source before a name, and checks it. Returns the expression of the placeholder.
fn check(before: &str, env: &Env) -> Option<(CheckedAst, ExprId)> {
    let closing = closing(&lexer::tokens(before));
    let text = format!("{before}{PLACEHOLDER}{closing}");
    let mut n_left = MAX_NODES;
    let (ast, _) = syntax::parse_within(&text, env.behavior(), &mut n_left);
    let ast = Arc::new(ast?);
    let is_placeholder = |(id, expr): (ExprId, &Expr)| {
        let is_name = |id: &ExprId| matches!(ast.expr(*id), Expr::Literal(Literal::String(name)) if &**name == PLACEHOLDER);
        let is = match expr {
            Expr::Ident(name) => &**name == PLACEHOLDER,
            Expr::Select { field, .. } => &**field == PLACEHOLDER,
            Expr::Call { function, args, .. } => {
                &**function == "_?._" && args.last().is_some_and(is_name)
            }
            _ => false,
        };
        is.then_some(id)
    };
    let id = ast.iter().find_map(is_placeholder)?;
    let (checked, _) = checker::check(&ast, &text, env);
    Some((checked, id))
}

/// An open bracket or conditional.
enum Open {
    Bracket(&'static str),
    /// A `{`. The flag is true after the colon of an entry.
    Brace(bool),
    /// A `?` of a conditional before its `:`.
    Conditional,
}

/// Returns the source that closes all open brackets and conditionals.
fn closing(tokens: &Tokens) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut last = Kind::End;
    for token in &tokens.all {
        match token.kind {
            Kind::OpenParen => open.push(Open::Bracket(")")),
            Kind::OpenBracket => open.push(Open::Bracket("]")),
            Kind::OpenBrace => open.push(Open::Brace(false)),
            Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => {
                while let Some(Open::Conditional) = open.last() {
                    open.pop();
                }
                open.pop();
            }
            // Here, `?` marks an optional field, index or entry, and begins no conditional.
            Kind::Question
                if matches!(
                    last,
                    Kind::Dot | Kind::OpenBracket | Kind::OpenBrace | Kind::Comma
                ) => {}
            Kind::Question => open.push(Open::Conditional),
            Kind::Colon => match open.last_mut() {
                Some(Open::Conditional) => {
                    open.pop();
                }
                Some(Open::Brace(has_colon)) => *has_colon = true,
                _ => {}
            },
            Kind::Comma => {
                if let Some(Open::Brace(has_colon)) = open.last_mut() {
                    *has_colon = false;
                }
            }
            _ => {}
        }
        last = token.kind;
    }
    let closing = open.iter().rev().map(|open| match open {
        Open::Bracket(closing) => closing,
        Open::Brace(true) => "}",
        Open::Brace(false) => ": null}",
        Open::Conditional => " : null",
    });
    closing.collect()
}

/// Returns the source of the operand before a name, including the dot between them. `None` if there is none.
fn operand(before: &str, is_member: bool) -> Option<&str> {
    if !is_member {
        return Some("");
    }
    let tokens = lexer::tokens(before);
    let mut depth = 0_usize;
    let mut first = None;
    let mut was_operand = false;
    for token in tokens
        .all
        .iter()
        .rev()
        .filter(|token| token.kind != Kind::End)
    {
        match token.kind {
            kind if kind.closes_bracket() => depth += 1,
            kind if kind.opens_bracket() => {
                let Some(outer) = depth.checked_sub(1) else {
                    break;
                };
                depth = outer;
                was_operand = false;
            }
            _ if depth > 0 => {}
            Kind::Dot | Kind::Question => was_operand = false,
            Kind::Ident | Kind::String if !was_operand => was_operand = true,
            _ => break,
        }
        first = Some(start(token));
    }
    before.get(first?..)
}

/// Returns the path from an input to the value of an expression. A variable of a macro denotes the elements of the
/// macro's range.
fn path(ast: &Ast, id: ExprId, depth: usize) -> Option<FieldPath> {
    if depth > 20 {
        return None;
    }
    let attribute = Attribute::new(ast, id);
    let Expr::Ident(root) = ast.expr(attribute.operand) else {
        return None;
    };
    let of_macro = ast.iter().find_map(|(_, expr)| match expr {
        Expr::Comprehension(fold)
            if fold.iter_var == *root || fold.iter_var2.as_ref() == Some(root) =>
        {
            Some(fold.iter_range)
        }
        _ => None,
    });
    let mut path = match of_macro {
        Some(range) => {
            let mut path = path(ast, range, depth + 1)?;
            path.fields.push(None);
            path
        }
        None => FieldPath {
            root: root.to_string(),
            fields: Vec::new(),
        },
    };
    let fields = attribute
        .qualifiers
        .iter()
        .map(|qualifier| match qualifier.key {
            Key::Field(name) | Key::Literal(name) => Some(name.to_owned()),
            Key::Index(_) | Key::Computed(_) => None,
        });
    path.fields.extend(fields);
    Some(path)
}

/// Returns the variables of the macros that enclose an expression, the innermost last.
fn locals(checked: &CheckedAst, id: ExprId) -> Vec<(Arc<str>, Type)> {
    let ast = checked.ast();
    let mut locals = Vec::new();
    let mut at = ast.root();
    while at != id {
        let mut next = None;
        ast.for_each_child(at, |child| {
            if next.is_none() && ast.descendants(child).contains(&id) {
                next = Some(child);
            }
        });
        let Some(child) = next else { return locals };
        if let Expr::Comprehension(fold) = ast.expr(at)
            && [fold.loop_condition, fold.loop_step].contains(&child)
        {
            locals.extend(variables(checked, fold));
        }
        at = child;
    }
    locals
}

fn variables(checked: &CheckedAst, fold: &crate::cel::ast::Comprehension) -> Vec<(Arc<str>, Type)> {
    let (key, value) = match checked.type_of(fold.iter_range) {
        Type::List(elem) => (Type::Int, (*elem).clone()),
        Type::Map(entry) => entry.as_ref().clone(),
        _ => (Type::Dyn, Type::Dyn),
    };
    let is_list = matches!(checked.type_of(fold.iter_range), Type::List(_));
    let variables = match &fold.iter_var2 {
        Some(second) => vec![
            (Arc::clone(&fold.iter_var), key),
            (Arc::clone(second), value),
        ],
        None if is_list => vec![(Arc::clone(&fold.iter_var), value)],
        None => vec![(Arc::clone(&fold.iter_var), key)],
    };
    let is_visible = |(name, _): &(Arc<str>, Type)| !name.starts_with(['@', '#']);
    variables.into_iter().filter(is_visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::decls::Variable;
    use crate::library::environment::base_env;
    use crate::version::KubernetesVersion;

    fn env() -> Env {
        let labels = Type::map(Type::String, Type::list(Type::Int));
        base_env(KubernetesVersion::NEWEST.release()).extend([
            Variable::new("labels", labels),
            Variable::new("names", Type::list(Type::String)),
        ])
    }

    /// Checks the type of the receiver, or the local variables, at the mark `|`.
    #[track_caller]
    fn check(marked: &str, expected: &str) {
        let offset = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let Some(name) = name_at(&text, offset) else {
            assert_eq!("none", expected, "{marked}");
            return;
        };
        let scope = scope(&text, &name, &env());
        let shown = match scope {
            Some(Scope::Member { receiver, .. }) => format!("{receiver}"),
            Some(Scope::Global(locals)) => {
                let locals = locals
                    .iter()
                    .map(|(name, type_)| format!("{name}: {type_}"));
                locals.collect::<Vec<_>>().join(", ")
            }
            None => "unknown".to_owned(),
        };
        assert_eq!(shown, expected, "{marked}");
    }

    #[test]
    fn receiver_of_incomplete_expression_has_type() {
        check("names.|", "list(string)");
        check("names.si|ze() > 1", "list(string)");
        check("names.|\n&& true", "list(string)");
        check("labels['a'].|", "list(int)");
        check("labels[?'a'].|", "optional_type(list(int))");
        check("labels.?a.|", "optional_type(list(int))");
        check("names.all(n, n.|", "string");
        check("names.all(n, n.|) && labels.x", "string");
        check("labels.exists(k, v, v.|", "list(int)");
        check("true ? names.|", "list(string)");
        check("[names.|", "list(string)");
        check("{'a': names.|", "list(string)");
        check("{names[0].|", "string");
        check("size(names.filter(n, n.startsWith('a')).|", "list(string)");
        check(") && names.|", "list(string)");
        check("has(labels.|", "map(string, list(int))");
    }

    #[test]
    fn macro_variables_are_in_scope() {
        check("names.all(n, |", "n: string");
        check(
            "names.all(n, labels.exists(k, v, |)",
            "n: string, k: string, v: list(int)",
        );
        check("names.all(n, true) && |", "");
        check("|", "");
    }

    #[test]
    fn names_are_not_completed_in_strings_numbers_and_comments() {
        for marked in ["'a|b'", "'a|", "1|2", "true // x|", "\"a.|"] {
            check(marked, "none");
        }
        check("names[0] == 'a' && |", "");
        check("'http://a' + |", "");
    }
}
