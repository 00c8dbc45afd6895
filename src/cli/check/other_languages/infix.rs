//! Proposes CEL for the operators of other languages that are words, such as `not in`, `is` and `MOD`.

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::rewrite::presence::presence_test;
use crate::cli::check::suggestion;
use crate::cli::check::tokens::{RELATION, TokenText};

use super::words;

fn is_word(source: &TokenText<'_>, n: usize, word: &str) -> bool {
    let own = source.word(n).unwrap_or_default();
    own.eq_ignore_ascii_case(word)
}

/// Replaces `a not in b` with `!(a in b)`.
pub(super) fn not_in(source: &TokenText<'_>) -> Option<Proposal> {
    let operator = words::not_in_operator(source)?;
    let (left, right) = (
        source.left(operator.start, RELATION)?,
        source.right(operator.end, RELATION)?,
    );
    // The word `not` in an operand is a further operator, which the lexer reads as a name.
    let is_operator = |n: usize| source.word(n) == Some("not");
    if left.clone().any(is_operator) || right.clone().any(is_operator) {
        return None;
    }
    let list = source.source(&right)?;
    let tuple = list.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let list = tuple.map_or_else(|| list.to_owned(), |items| format!("[{items}]"));
    let text = format!("!({} in {list})", source.source(&left)?);
    Some(Proposal::edit(
        source.bytes(&(left.start..right.end))?,
        text,
    ))
}

/// The values that other languages compare with `is`, each with the CEL value.
const VALUES: [(&[&str], &str); 3] = [
    (&["null", "none", "nil", "undefined"], "null"),
    (&["true"], "true"),
    (&["false"], "false"),
];

/// Replaces `a is null` and `a is None` with `a == null`, `a is not true` with `a != true`, and `a.b is defined` with
/// `has(a.b)`.
pub(super) fn identity(source: &TokenText<'_>) -> Option<Proposal> {
    let is =
        (1..source.len()).find(|n| is_word(source, *n, "is") && source.receiver(*n).is_some())?;
    let has_not = is_word(source, is + 1, "not");
    let value = is + 1 + usize::from(has_not);
    let name = source.word(value)?;
    if matches!(name, "defined" | "undefined") {
        let operand = source.receiver(is)?;
        let is_present = (name == "defined") != has_not;
        let (text, precedence) = presence_test(source, &operand, is_present)?;
        let whole = operand.start..value + 1;
        let text = source.in_place_of(&whole, text, precedence);
        return Some(Proposal::edit(source.bytes(&whole)?, text));
    }
    let operator = if has_not { "!=" } else { "==" };
    let mut rows = VALUES.iter();
    let value_of_cel = rows.find(|(names, _)| names.iter().any(|it| it.eq_ignore_ascii_case(name)));
    let bytes = source.bytes(&(is..value + 1))?;
    match value_of_cel {
        Some((_, meant)) => Some(Proposal::edit(bytes, format!("{operator} {meant}"))),
        None => {
            let bytes = source.bytes(&(is..value))?;
            let is_operand = matches!(
                source.kind(value)?,
                Kind::Ident | Kind::String | Kind::Int | Kind::Float
            );
            is_operand.then(|| Proposal::edit(bytes, operator.to_owned()))
        }
    }
}

/// Arithmetic operators that are words in other languages, each with the CEL operator.
const ARITHMETIC: [(&str, &str); 2] = [("mod", "%"), ("div", "/")];

/// Replaces `a MOD b` with `a % b`, and explains `a ** b`.
pub(super) fn arithmetic(source: &TokenText<'_>) -> Option<Proposal> {
    let is_power = |n: usize| {
        source.kind(n) == Some(Kind::Star)
            && source.kind(n + 1) == Some(Kind::Star)
            && source.is_adjacent(n)
    };
    if (1..source.len()).any(is_power) {
        return Some(Proposal::hint(
            "CEL has no operator for powers: write a product such as `a * a`, or the number",
        ));
    }
    let (n, operator) = (1..source.len()).find_map(|n| {
        source.receiver(n)?;
        let mut rows = ARITHMETIC.iter();
        let (_, operator) = rows.find(|(word, _)| is_word(source, n, word))?;
        let is_infix = matches!(source.kind(n + 1)?, Kind::Ident | Kind::Int);
        is_infix.then_some((n, operator))
    })?;
    Some(Proposal::edit(
        source.bytes(&(n..n + 1))?,
        (*operator).to_owned(),
    ))
}

/// The SQL operators that search for a pattern.
const PATTERNS: [&str; 3] = ["regexp", "rlike", "regex"];

/// Replaces `a contains b` with `a.contains(b)`, and `a not contains b` with `!a.contains(b)`.
pub(super) fn function(source: &TokenText<'_>) -> Option<Proposal> {
    let meant = |n: usize| {
        let word = source.word(n)?;
        if PATTERNS.iter().any(|it| word.eq_ignore_ascii_case(it)) {
            return Some("matches");
        }
        let names = ["contains", "startsWith", "endsWith", "matches"];
        let same = names.into_iter().find(|name| *name == word);
        let meant = same.or_else(|| suggestion::only_function(word));
        meant.filter(|meant| names.contains(meant))
    };
    let (n, meant) = (1..source.len()).find_map(|n| {
        source.receiver(n)?;
        let is_infix = matches!(
            source.kind(n + 1)?,
            Kind::String | Kind::Ident | Kind::OpenBracket
        );
        (source.kind(n)? == Kind::Ident && is_infix).then_some(())?;
        Some((n, meant(n)?))
    })?;
    let before = n - 1;
    let is_negated = is_word(source, before, "not") && source.receiver(before).is_some();
    let left = source.receiver(if is_negated { before } else { n })?;
    let right = source.right(n + 1, RELATION)?;
    let sign = if is_negated { "!" } else { "" };
    let text = format!(
        "{sign}{}.{meant}({})",
        source.source(&left)?,
        source.source(&right)?
    );
    Some(Proposal::edit(
        source.bytes(&(left.start..right.end))?,
        text,
    ))
}
