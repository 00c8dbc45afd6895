//! Proposes tests of CEL for `typeof` of JavaScript.

use super::presence::presence_test;
use super::proposal::Proposal;
use crate::cel::syntax::token::Kind;
use crate::cli::check::tokens::{RELATION, TokenText};

/// The types of JavaScript, each with the type of CEL.
const TYPES: [(&str, &str); 4] = [
    ("string", "string"),
    ("boolean", "bool"),
    ("number", "int"),
    ("object", "map"),
];

/// Replaces `typeof a.b === 'undefined'` with `!has(a.b)`, and `typeof a === 'string'` with `type(a) == string`.
pub(crate) fn type_of(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (0..source.len()).find(|n| source.word(*n) == Some("typeof"))?;
    let operand = match source.kind(n + 1)? {
        Kind::OpenParen => n + 2..source.close(n + 1)?,
        _ => n + 1..source.right(n + 1, RELATION)?.end,
    };
    let relation = operand.end + usize::from(source.kind(operand.end)? == Kind::CloseParen);
    let is_equal = match source.kind(relation)? {
        Kind::Equals => true,
        Kind::NotEquals => false,
        _ => return None,
    };
    let name = source.word(relation + 1)?.trim_matches(['\'', '"']);
    (source.kind(relation + 1)? == Kind::String).then_some(())?;
    let whole = n..relation + 2;
    if name == "undefined" {
        let (text, precedence) = presence_test(source, &operand, !is_equal)?;
        let text = source.in_place_of(&whole, text, precedence);
        return Some(Proposal::edit(source.bytes(&whole)?, text));
    }
    // A type of CEL, as in `typeof(a) == 'int'`.
    let is_type = matches!(name, "int" | "double" | "bool" | "list" | "map");
    let (_, meant) = TYPES
        .iter()
        .find(|(it, _)| *it == name)
        .copied()
        .or_else(|| is_type.then_some((name, name)))?;
    let operator = if is_equal { "==" } else { "!=" };
    let text = format!("type({}) {operator} {meant}", source.source(&operand)?);
    let text = source.in_place_of(&whole, text, RELATION);
    Some(if matches!(name, "number" | "object") {
        Proposal::hint(format!("write `{text}`"))
    } else {
        Proposal::edit(source.bytes(&whole)?, text)
    })
}
