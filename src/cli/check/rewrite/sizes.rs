//! Proposes the size of a list or a map for a selection such as `labels.size`, which reads the key `size` of a map.

use std::ops::Range;

use super::proposal::{Context, Proposal};
use crate::cel::syntax::token::Kind;
use crate::cli::check::suggestion;
use crate::cli::check::tokens::TokenText;

/// Maximum number of nested macros whose variables are replaced by their lists.
const MAX_MACROS: usize = 8;

/// Proposes `size(a)` for the operand `a.size` of a comparison with an integer literal, if `a` is a list or a map.
///
/// Excludes params, because they may have a key such as `size` with a number as a string.
pub(super) fn size_of_collection(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
) -> Option<Proposal> {
    source
        .kind(n)?
        .relation()
        .filter(|_| source.kind(n) != Some(Kind::In))?;
    let (left, right) = source.operands(n)?;
    let is_number = |tokens: &Range<usize>| {
        let is_negative = source.kind(tokens.start) == Some(Kind::Minus);
        let digits = tokens.start + usize::from(is_negative);
        digits + 1 == tokens.end && source.kind(digits) == Some(Kind::Int)
    };
    let (selection, number) = if is_number(&right) {
        (&left, &right)
    } else {
        (&right, &left)
    };
    let field = selection.end.checked_sub(1)?;
    let dot = field.checked_sub(1)?;
    let is_selection = source.kind(dot)? == Kind::Dot && source.is_chain(selection);
    (is_selection && is_number(number) && suggestion::is_length(source.word(field)?))
        .then_some(())?;
    let collection = selection.start..dot;
    let path = path(source, &collection)?;
    (!path.starts_with("params.") && (context.is_collection)(&path)).then_some(())?;
    let text = format!("size({})", source.source(&collection)?);
    let selected = source.source(selection)?;
    let reason = format!("`{selected}` is the value of a key");
    Some(Proposal::edit(source.bytes(selection)?, text).with_reason(&reason))
}

/// Returns the path of a chain of selections, such as `object.spec.containers[].resources.limits`. The variable of a macro
/// is replaced by an item of its list. `None` for a chain with calls.
pub(super) fn path(source: &TokenText<'_>, chain: &Range<usize>) -> Option<String> {
    path_within(source, chain, MAX_MACROS)
}

fn path_within(source: &TokenText<'_>, chain: &Range<usize>, n_macros: usize) -> Option<String> {
    let n_macros = n_macros.checked_sub(1)?;
    let root = source.word(chain.start)?;
    (source.kind(chain.start)? == Kind::Ident).then_some(())?;
    let mut path = match range_of_variable(source, chain.start, root) {
        Some(range) => path_within(source, &range, n_macros)? + "[]",
        None => root.to_owned(),
    };
    let mut n = chain.start + 1;
    while n < chain.end {
        match source.kind(n)? {
            Kind::Dot => {
                let name = n + 1 + usize::from(source.kind(n + 1)? == Kind::Question);
                (source.kind(name)? == Kind::Ident).then_some(())?;
                (source.kind(name + 1) != Some(Kind::OpenParen)).then_some(())?;
                path.push('.');
                path.push_str(source.word(name)?);
                n = name + 1;
            }
            Kind::OpenBracket => {
                path.push_str("[]");
                n = source.close(n)? + 1;
            }
            _ => return None,
        }
    }
    Some(path)
}

/// Returns true if a macro around the token `n` declares `variable`.
pub(super) fn is_variable_of_macro(source: &TokenText<'_>, n: usize, variable: &str) -> bool {
    range_of_variable(source, n, variable).is_some()
}

/// Returns the list of the innermost macro around the token `n` that declares `variable`.
fn range_of_variable(source: &TokenText<'_>, n: usize, variable: &str) -> Option<Range<usize>> {
    (0..n).rev().find_map(|open| {
        let is_declared = source.kind(open)? == Kind::OpenParen
            && source.word(open + 1) == Some(variable)
            && source.kind(open + 2) == Some(Kind::Comma)
            && source.close(open)? > n;
        let dot = open.checked_sub(2).filter(|_| is_declared)?;
        (source.kind(dot)? == Kind::Dot).then(|| source.receiver(dot))?
    })
}
