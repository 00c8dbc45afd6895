//! Proposals for chained comparisons and for comparisons of quantities.

use std::ops::Range;

use super::proposal::{Context, Proposal, is_quantity};
use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cli::check::tokens::{AND, TokenText};

/// Proposes `a <= x && x <= b` for `a <= x <= b`.
pub(super) fn chained(source: &TokenText<'_>, n: usize, types: (&Type, &Type)) -> Option<Proposal> {
    (*types.0 == Type::Bool && *types.1 != Type::Bool).then_some(())?;
    let direction = |n: usize| match source.kind(n)? {
        Kind::Less | Kind::LessEquals => Some('<'),
        Kind::Greater | Kind::GreaterEquals => Some('>'),
        Kind::Equals => Some('='),
        _ => None,
    };
    let (left, right) = source.operands(n)?;
    let is_outer = |n: &usize| {
        let operands = source.operands(*n);
        direction(*n).is_some() && operands.is_some_and(|(first, _)| first.start == left.start)
    };
    let first = left.clone().find(is_outer)?;
    (direction(first) == direction(n)).then_some(())?;
    let middle = source.source(&(first + 1..n))?;
    let text = format!(
        "{} && {middle} {}",
        source.source(&left)?,
        source.source(&(n..right.end))?
    );
    let whole = left.start..right.end;
    let text = source.in_place_of(&whole, text, AND);
    Some(Proposal::edit(source.bytes(&whole)?, text))
}

/// Proposes `compareTo()` for an ordered comparison of a quantity with a variable whose expression is a quantity.
pub(super) fn quantity_of_variable(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    (left_type, right_type): (&Type, &Type),
) -> Option<Proposal> {
    let (left, right) = source.operands(n)?;
    matches!(
        source.kind(n)?,
        Kind::Less | Kind::LessEquals | Kind::Greater | Kind::GreaterEquals
    )
    .then_some(())?;
    let is_quantity_variable = |tokens: &Range<usize>| {
        let name = source.source(tokens)?.strip_prefix("variables.")?;
        let mut variables = context.policy.variables.iter();
        let variable = TokenText::new(&variables.find(|it| it.name == name)?.expression);
        let is_call = variable.word(0)? == "quantity";
        Some(is_call && variable.close(1)? + 1 == variable.len())
    };
    let is_value = |tokens: &Range<usize>, type_: &Type| {
        is_quantity(type_) || *type_ == Type::Dyn && is_quantity_variable(tokens) == Some(true)
    };
    (is_value(&left, left_type) && is_value(&right, right_type)).then_some(())?;
    let text = format!(
        "{}.compareTo({}) {} 0",
        source.receiver_text(&left)?,
        source.source(&right)?,
        source.word(n)?
    );
    let bytes = source.bytes(&(left.start..right.end))?;
    Some(Proposal::edit(bytes, text))
}
