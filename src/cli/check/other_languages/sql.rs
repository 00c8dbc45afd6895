//! Proposes CEL for operators of SQL.

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::rewrite::string_content;
use crate::cli::check::tokens::{AND, RELATION, TokenText};

/// Returns the index of the first keyword `name` that follows an operand.
fn keyword(source: &TokenText<'_>, name: &str) -> Option<usize> {
    (1..source.len()).find(|n| {
        let word = source.word(*n).unwrap_or_default();
        word.eq_ignore_ascii_case(name) && source.receiver(*n).is_some()
    })
}

/// Replaces `a IN ('b', 'c')` by `a in ['b', 'c']`.
pub(super) fn in_list(source: &TokenText<'_>) -> Option<Proposal> {
    let n = keyword(source, "in").filter(|n| source.kind(*n) == Some(Kind::Ident))?;
    let open = n + 1;
    if source.kind(open)? != Kind::OpenParen {
        return Some(Proposal::edit(source.bytes(&(n..n + 1))?, "in".to_owned()));
    }
    let close = source.close(open)?;
    let items = source.source(&(open + 1..close))?;
    let bytes = source.bytes(&(n..close + 1))?;
    Some(Proposal::edit(bytes, format!("in [{items}]")))
}

/// Replaces `a LIKE 'b%'` by `a.startsWith('b')`.
pub(super) fn like(source: &TokenText<'_>) -> Option<Proposal> {
    let n = keyword(source, "like")?;
    let before = n.checked_sub(1)?;
    let is_negated = source.word(before)?.eq_ignore_ascii_case("not");
    let receiver = source.receiver(if is_negated { before } else { n })?;
    // `NOT a LIKE 'b'` is `a NOT LIKE 'b'`.
    let first = receiver.start.checked_sub(1).filter(|first| {
        let word = source.word(*first).unwrap_or_default();
        word.eq_ignore_ascii_case("not")
    });
    let is_negated = is_negated != first.is_some();
    let pattern = n + 1..n + 2;
    let content = string_content(source, &pattern)?;
    let quote = source.source(&pattern)?.get(..1)?;
    let part = content.trim_matches('%');
    let quoted = format!("{quote}{part}{quote}");
    let text = source.source(&receiver)?;
    let sign = if is_negated { "!" } else { "" };
    let is_prefix = content.strip_suffix('%') == Some(part);
    let is_suffix = content.strip_prefix('%') == Some(part);
    let new = if part.contains(['%', '_']) {
        return Some(Proposal::hint(format!(
            "write `{sign}{text}.matches(...)` with a regular expression"
        )));
    } else if content == part {
        let operator = if is_negated { "!=" } else { "==" };
        format!("{text} {operator} {quoted}")
    } else if is_prefix {
        format!("{sign}{text}.startsWith({quoted})")
    } else if is_suffix {
        format!("{sign}{text}.endsWith({quoted})")
    } else {
        format!("{sign}{text}.contains({quoted})")
    };
    let start = first.unwrap_or(receiver.start);
    let bytes = source.bytes(&(start..pattern.end))?;
    Some(Proposal::edit(bytes, new))
}

/// Replaces `a BETWEEN 1 AND 5` by `1 <= a && a <= 5`.
pub(super) fn between(source: &TokenText<'_>) -> Option<Proposal> {
    let n = keyword(source, "between")?;
    let value = source.left(n, RELATION)?;
    let and = (n + 2..source.len())
        .find(|n| matches!(source.word(*n), Some("AND" | "and" | "And" | "&&")))?;
    let (low, high) = (n + 1..and, source.right(and + 1, RELATION)?);
    let (low, text) = (source.source(&low)?, source.source(&value)?);
    let new = format!("{low} <= {text} && {text} <= {}", source.source(&high)?);
    let whole = value.start..high.end;
    let new = source.in_place_of(&whole, new, AND);
    Some(Proposal::edit(source.bytes(&whole)?, new))
}
