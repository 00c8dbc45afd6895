//! Expressions that test whether a value is present, or that replace an absent value.

use std::ops::Range;

use crate::cel::syntax::token::Kind;
use crate::cli::check::tokens::{MEMBER, RELATION, TokenText, UNARY};
use crate::cli::text::is_identifier_part;

/// Returns the test of the presence of `chain`, and the precedence of the test: `has(a.b)` for `a.b`, and `'k' in a` for
/// `a['k']`. Returns the test of its absence if `is_present` is false. `None` for other operands.
pub(crate) fn presence_test(
    source: &TokenText<'_>,
    chain: &Range<usize>,
    is_present: bool,
) -> Option<(String, u8)> {
    source.is_chain(chain).then_some(())?;
    let last = chain.end.checked_sub(1)?;
    let text = source.source(chain)?;
    match source.kind(last)? {
        Kind::Ident => {
            let before = last.checked_sub(1).filter(|n| chain.contains(n))?;
            let test = match source.kind(before)? {
                Kind::Dot => format!("has({text})"),
                Kind::Question => format!("{text}.hasValue()"),
                _ => return None,
            };
            Some(if is_present {
                (test, MEMBER)
            } else {
                (format!("!{test}"), UNARY)
            })
        }
        Kind::CloseBracket => {
            let open = source.open(last).filter(|open| *open > chain.start)?;
            let key = source.source(&(open + 1..last))?;
            let map = source.source(&(chain.start..open))?;
            (source.kind(open + 1)? == Kind::String).then_some(())?;
            Some(if is_present {
                (format!("{key} in {map}"), RELATION)
            } else {
                (format!("!({key} in {map})"), UNARY)
            })
        }
        _ => None,
    }
}

/// Makes a selection in the source `chain` optional. `?.` of other languages tests the value before it, but `.?` tests
/// the field after it, so `a.b?.c` becomes `a.?b.?c`. Without `?.`, the last field becomes optional, and also its key
/// if it has one.
pub(crate) fn optional_text(chain: &str) -> Option<String> {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(is_identifier_part);
    if let Some((tested, _)) = chain.split_once("?.") {
        // `?.[` is an optional index.
        let text = chain.replace("?.[", "[").replace("?.", ".?");
        return Some(match tested.rsplit_once('.') {
            Some((before, last)) if is_name(last) && !before.ends_with(')') => {
                text.replacen(&format!("{before}.{last}"), &format!("{before}.?{last}"), 1)
            }
            _ => text,
        });
    }
    // An optional before a call such as `orValue()` does not concern the selections after the call.
    let rest = chain.rsplit_once(')').map_or(chain, |(_, rest)| rest);
    if rest.contains(".?") {
        return Some(chain.to_owned());
    }
    if let Some((map, key)) = chain.strip_suffix(']').and_then(|it| it.rsplit_once('[')) {
        let is_key = key.starts_with(['\'', '"']);
        return is_key.then(|| Some(format!("{}[?{key}]", optional_text(map)?)))?;
    }
    let (before, last) = chain.rsplit_once('.')?;
    is_name(last).then(|| format!("{before}.?{last}"))
}

/// Returns true for a literal that may replace an absent value.
pub(crate) fn is_literal(source: &TokenText<'_>, tokens: &Range<usize>) -> bool {
    let kind = source.kind(tokens.start).filter(|_| tokens.len() == 1);
    matches!(
        kind,
        Some(Kind::Int | Kind::String | Kind::True | Kind::False | Kind::Float)
    ) || tokens.len() == 2
        && matches!(
            source.kind(tokens.start),
            Some(Kind::OpenBracket | Kind::OpenBrace)
        )
}

/// Returns the end of a comparison with null, such as `!== undefined`, whose operator is at `n`. The bool is true for
/// `==`.
pub(crate) fn null_comparison(source: &TokenText<'_>, n: usize) -> Option<(bool, usize)> {
    let is_equal = match source.kind(n)? {
        Kind::Equals => true,
        Kind::NotEquals => false,
        _ => return None,
    };
    let is_null = source.kind(n + 1)? == Kind::Null
        || matches!(source.word(n + 1)?, "undefined" | "None" | "nil");
    is_null.then_some((is_equal, n + 2))
}
