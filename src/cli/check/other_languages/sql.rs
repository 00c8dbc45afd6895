//! Proposes CEL for operators of SQL.

use std::fmt::Write as _;
use std::ops::Range;

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

/// Replaces `a IN ('b', 'c')` with `a in ['b', 'c']`.
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

/// Replaces `a LIKE 'b%'` with `a.startsWith('b')`.
pub(super) fn like(source: &TokenText<'_>) -> Option<Proposal> {
    let ignores_case = keyword(source, "ilike");
    let n = keyword(source, "like").or(ignores_case)?;
    let before = n.checked_sub(1)?;
    let is_negated = source.word(before)?.eq_ignore_ascii_case("not");
    let receiver = source.receiver(if is_negated { before } else { n })?;
    // `NOT a LIKE 'b'` means the same as `a NOT LIKE 'b'`.
    let first = receiver.start.checked_sub(1).filter(|first| {
        let word = source.word(*first).unwrap_or_default();
        word.eq_ignore_ascii_case("not")
    });
    let is_negated = is_negated != first.is_some();
    let pattern = n + 1..n + 2;
    let content = string_content(source, &pattern)?;
    let quote = source.source(&pattern)?.get(..1)?;
    let content = if ignores_case == Some(n) {
        content.to_lowercase()
    } else {
        content.to_owned()
    };
    let part = content.trim_matches('%');
    let quoted = format!("{quote}{part}{quote}");
    let text = source.source(&receiver)?.to_owned();
    let text = if ignores_case == Some(n) {
        text + ".lowerAscii()"
    } else {
        text
    };
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

/// Replaces `a BETWEEN 1 AND 5` with `1 <= a && a <= 5`.
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

/// Replaces `CASE WHEN a THEN b ELSE c END` with `a ? b : c`.
pub(super) fn case(source: &TokenText<'_>) -> Option<Proposal> {
    let is_word = |n: usize, word: &str| {
        let own = source.word(n).unwrap_or_default();
        own.eq_ignore_ascii_case(word)
    };
    let case = (0..source.len()).find(|n| is_word(*n, "case"))?;
    let next = |from: usize, words: &[&str]| {
        (from..source.len()).find(|n| words.iter().any(|word| is_word(*n, word)))
    };
    let part = |tokens: Range<usize>| {
        (tokens.start < tokens.end && !source.has_separator(&tokens))
            .then(|| source.source(&tokens))?
    };
    let mut when = next(case + 1, &["when"])?;
    let compared = part(case + 1..when);
    let mut text = String::new();
    loop {
        let then = next(when + 1, &["then"])?;
        let end = next(then + 1, &["when", "else", "end"])?;
        let (condition, value) = (part(when + 1..then)?, part(then + 1..end)?);
        let condition = match compared {
            Some(compared) => format!("{compared} == {condition}"),
            None => condition.to_owned(),
        };
        let _ = write!(text, "{condition} ? {value} : ");
        if is_word(end, "when") {
            when = end;
            continue;
        }
        let hint = || Proposal::hint("CEL has no `CASE`: write `condition ? value : other`");
        if is_word(end, "end") {
            return Some(hint());
        }
        let last = next(end + 1, &["end"])?;
        text.push_str(part(end + 1..last)?);
        let whole = case..last + 1;
        let text = source.in_place_of(&whole, text, 0);
        return Some(Proposal::edit(source.bytes(&whole)?, text));
    }
}

/// The types of SQL and of other languages, each with the conversion of CEL.
const CONVERSIONS: [(&[&str], &str); 4] = [
    (&["int", "integer", "bigint", "number"], "int"),
    (&["text", "varchar", "char", "string"], "string"),
    (&["float", "double", "real", "numeric", "decimal"], "double"),
    (&["bool", "boolean"], "bool"),
];

fn conversion(type_: &str) -> Option<&'static str> {
    let mut rows = CONVERSIONS.iter();
    let row = rows.find(|(names, _)| names.iter().any(|it| it.eq_ignore_ascii_case(type_)));
    row.map(|(_, function)| *function)
}

/// Replaces `CAST(a AS INT)` and `a::int` with `int(a)`.
pub(super) fn cast(source: &TokenText<'_>) -> Option<Proposal> {
    let cast = (0..source.len()).find(|n| {
        let word = source.word(*n).unwrap_or_default();
        word.eq_ignore_ascii_case("cast") && source.kind(n + 1) == Some(Kind::OpenParen)
    });
    if let Some(cast) = cast {
        let close = source.close(cast + 1)?;
        let as_ = (cast + 2..close).rev().find(|n| {
            let word = source.word(*n).unwrap_or_default();
            word.eq_ignore_ascii_case("as")
        })?;
        let function = conversion(source.word(as_ + 1)?)?;
        let value = source.source(&(cast + 2..as_))?;
        let bytes = source.bytes(&(cast..close + 1))?;
        return Some(Proposal::edit(bytes, format!("{function}({value})")));
    }
    let colon = (1..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::Colon)
            && source.kind(n + 1) == Some(Kind::Colon)
            && source.is_adjacent(*n)
    })?;
    let value = source.receiver(colon)?;
    let function = conversion(source.word(colon + 2)?)?;
    let text = format!("{function}({})", source.source(&value)?);
    let bytes = source.bytes(&(value.start..colon + 3))?;
    Some(Proposal::edit(bytes, text))
}

/// Returns a hint about `a <> ['b']`. There is no edit, because `a != ['b']` is true for every list with another item.
pub(super) fn unequal_list(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (1..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::Less)
            && source.kind(n + 1) == Some(Kind::Greater)
            && source.is_adjacent(*n)
            && source.kind(n + 2) == Some(Kind::OpenBracket)
    })?;
    let list = source.source(&source.receiver(n)?)?;
    let close = source.close(n + 2)?;
    let items = source.source(&(n + 3..close))?;
    let test = if source.has_separator(&(n + 3..close)) {
        format!("!{list}.exists(x, x in [{items}])")
    } else {
        format!("!({items} in {list})")
    };
    Some(Proposal::hint(format!(
        "write `{test}` if the list must contain none of these items, or `{list} != [{items}]` to compare the whole list"
    )))
}
