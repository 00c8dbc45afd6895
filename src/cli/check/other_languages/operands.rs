//! Proposals for operators that lack an operand.

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::tokens::{RELATION, TokenText};

/// Returns true for `==`, `<` and the other relations, except `in`.
fn is_relation(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Equals
            | Kind::NotEquals
            | Kind::Less
            | Kind::LessEquals
            | Kind::Greater
            | Kind::GreaterEquals
    )
}

/// Replaces `a > 1 && < 5` with `a > 1 && a < 5`.
pub(super) fn repeated(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (1..source.len()).find(|n| {
        let is_logical = matches!(source.kind(*n - 1), Some(Kind::And | Kind::Or));
        let kind = source.kind(*n);
        is_logical && kind.is_some_and(|it| is_relation(it) || it == Kind::In)
    })?;
    let before = source.left(n - 1, RELATION)?;
    let relation = before.clone().find(|n| {
        let kind = source.kind(*n);
        kind.is_some_and(|it| is_relation(it) || it == Kind::In)
            && source
                .operands(*n)
                .is_some_and(|(left, right)| left.start == before.start && right.end == before.end)
    })?;
    let operand = source.source(&(before.start..relation))?;
    let rest = n..source.right(n + 1, RELATION)?.end;
    let text = format!("{operand} {}", source.source(&rest)?);
    Some(Proposal::edit(source.bytes(&rest)?, text))
}

/// Returns a hint about a conditional without a second value, such as `a ? b`.
pub(super) fn missing_branch(source: &TokenText<'_>) -> Option<Proposal> {
    // `.?` and `[?` are optional selections, and `?.` and `??` are operators of other languages. They begin no
    // conditional.
    let question = (1..source.len()).find(|n| {
        let is_pair = matches!(source.kind(n + 1), Some(Kind::Dot | Kind::Question));
        source.kind(*n) == Some(Kind::Question) && source.receiver(*n).is_some() && !is_pair
    })?;
    let (mut n, mut n_open) = (question + 1, 1_usize);
    while let Some(kind) = source.kind(n) {
        match kind {
            Kind::Colon => n_open = n_open.checked_sub(1)?,
            Kind::Question if source.receiver(n).is_some() => n_open += 1,
            Kind::Comma => break,
            kind if kind.closes_bracket() => break,
            _ => {}
        }
        n = if kind.opens_bracket() {
            source.close(n)? + 1
        } else {
            n + 1
        };
    }
    (n_open > 0).then(|| {
        Proposal::hint(
            "`a ? b` has no value for a false condition: write `a ? b : true` to allow such requests, or `a ? b : false` to deny them",
        )
    })
}
