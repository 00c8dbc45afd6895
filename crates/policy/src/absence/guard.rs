//! Guards: how an expression is written so that what may be absent does no harm.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::path::is_name;
use super::symbol::{Place, Reader};
use cel::ast::{Expr, ExprId, Literal};

/// A selection or an index.
enum Link {
    Field(String),
    Key(String),
    Index(i64),
}

/// The mend for the chain of selections at `chain`, of which the nodes `optional` may select what is absent; with
/// `stand_in` for a value that the whole may have instead, and what closes the call.
pub(super) fn mend(
    reader: &Reader<'_>,
    n: usize,
    chain: ExprId,
    optional: &HashSet<ExprId>,
    stand_in: Option<&str>,
) -> Option<String> {
    let (base, links) = links(reader, n, chain)?;
    let mut plain = base.clone();
    let mut guards = Vec::new();
    let mut tolerant = base;
    let mut is_tolerant = false;
    for (id, link) in &links {
        let before = plain.clone();
        let is_optional = optional.contains(id);
        is_tolerant |= is_optional;
        let sign = if is_optional { "?" } else { "" };
        match link {
            Link::Field(name) => {
                let _ = write!(plain, ".{name}");
                let _ = write!(tolerant, ".{sign}{name}");
                if is_optional {
                    guards.push(format!("has({plain})"));
                }
            }
            Link::Key(key) => {
                let _ = write!(plain, "[{key}]");
                let _ = write!(tolerant, "[{sign}{key}]");
                if is_optional {
                    guards.push(format!("{key} in {before}"));
                }
            }
            Link::Index(index) => {
                let _ = write!(plain, "[{index}]");
                let _ = write!(tolerant, "[{sign}{index}]");
                if is_optional {
                    guards.push(format!("size({before}) > {index}"));
                }
            }
        }
    }
    if guards.is_empty() {
        return None;
    }
    let guard = format!("guard it: `{} && ...`", guards.join(" && "));
    Some(match stand_in.filter(|_| is_tolerant) {
        Some(stand_in) => format!("{guard}, or write `{tolerant}.orValue({stand_in}`"),
        None => guard,
    })
}

/// The text of the chain of selections at `chain`.
pub(super) fn plain(reader: &Reader<'_>, n: usize, chain: ExprId) -> Option<String> {
    let (mut text, links) = links(reader, n, chain)?;
    for (_, link) in links {
        let _ = match link {
            Link::Field(name) => write!(text, ".{name}"),
            Link::Key(key) => write!(text, "[{key}]"),
            Link::Index(index) => write!(text, "[{index}]"),
        };
    }
    Some(text)
}

/// The beginning of a chain, and its links, innermost first.
fn links(reader: &Reader<'_>, n: usize, chain: ExprId) -> Option<(String, Vec<(ExprId, Link)>)> {
    let mut found = Vec::new();
    let mut id = chain;
    loop {
        match reader.expr(Place { n, id }) {
            Expr::Ident(name) if is_name(name) => {
                found.reverse();
                return Some((name.to_string(), found));
            }
            Expr::Select {
                operand,
                field,
                test_only: false,
            } => {
                found.push((id, Link::Field(field.to_string())));
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
                let link = match reader.expr(Place { n, id: *index }) {
                    Expr::Literal(Literal::String(key)) => Link::Key(quoted(key)?),
                    Expr::Literal(Literal::Int(index)) => Link::Index(*index),
                    Expr::Ident(name) if is_name(name) => Link::Key(name.to_string()),
                    _ => return None,
                };
                found.push((id, link));
                id = *operand;
            }
            _ => return None,
        }
    }
}

/// A plain text as a literal.
pub(super) fn quoted(text: &str) -> Option<String> {
    let is_plain = text.len() <= 100
        && text
            .chars()
            .all(|c| !c.is_control() && c != '\\' && c != '\'');
    is_plain.then(|| format!("'{text}'"))
}
