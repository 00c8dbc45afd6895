//! Proposals for operations with durations and timestamps.

use std::ops::Range;

use super::proposal::{Proposal, string_content, wrap};
use crate::cel::types::Type;
use crate::cel::value::Value;
use crate::cli::check::tokens::TokenText;

/// Proposes the seconds of a duration that is compared with a number.
pub(super) fn seconds(
    source: &TokenText<'_>,
    duration: &Range<usize>,
    number: &Range<usize>,
) -> Option<Proposal> {
    let text = format!("{}.getSeconds()", source.receiver_text(duration)?);
    let last = number.end.checked_sub(1).and_then(|n| source.word(n))?;
    Some(if last.ends_with("Seconds") {
        Proposal::edit(source.bytes(duration)?, text)
    } else {
        Proposal::hint(format!("write `{text}` if the number counts seconds"))
    })
}

/// Proposes a conversion for a sum of a string and a duration or timestamp. A string that contains a timestamp or a
/// duration is converted. For any other string literal, the duration or timestamp is converted to a string.
pub(super) fn time_sum(
    source: &TokenText<'_>,
    (tokens, type_): (&Range<usize>, &Type),
    text: &Range<usize>,
) -> Option<Proposal> {
    let (name, to) = match type_ {
        Type::Duration => ("timestamp", Type::Timestamp),
        _ => ("duration", Type::Duration),
    };
    match string_content(source, text) {
        Some(content) if Value::from(content).convert_to(&to).is_ok() => wrap(source, text, name),
        Some(_) => wrap(source, tokens, "string"),
        None if *type_ == Type::Duration => wrap(source, text, name),
        None => None,
    }
}

/// Returns a hint about a subtraction of two strings, or of a timestamp and a string.
pub(super) fn time_difference(
    source: &TokenText<'_>,
    (left, left_type): (&Range<usize>, &Type),
    (right, right_type): (&Range<usize>, &Type),
) -> Option<Proposal> {
    let as_time = |tokens: &Range<usize>, type_: &Type| {
        let text = source.source(tokens)?;
        Some(match type_ {
            Type::Timestamp => text.to_owned(),
            _ => format!("timestamp({text})"),
        })
    };
    let (from, text) = (as_time(left, left_type)?, source.source(right)?);
    let difference = format!("{from} - {}", as_time(right, right_type)?);
    Some(Proposal::hint(match (left_type, right_type) {
        (Type::Timestamp, _) => format!(
            "convert the string: `{difference}` if it is a time, `{from} - duration({text})` if it is a duration"
        ),
        (_, Type::Timestamp) => format!("convert the string: `{difference}`"),
        _ => {
            let left = source.source(left)?;
            format!(
                "convert the strings: `{difference}` if they are times, `int({left}) - int({text})` if they are numbers, \
                 `quantity({left}).sub(quantity({text}))` if they are quantities"
            )
        }
    }))
}
