//! Proposes a correction of an expression whose result has the wrong type.

use std::ops::Range;

use super::literals::json_patch;
use super::proposal::{Context, MAX_SHOWN, Proposal, is_decision, is_named};
use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cli::check::tokens::TokenText;
use crate::library::mutation::JSON_PATCH;
use crate::policy::expressions::Role;

/// Proposes a conversion of the whole expression of type `actual` to the required type.
pub(super) fn result_type(
    context: Context<'_>,
    source: &TokenText<'_>,
    actual: &Type,
) -> Option<Proposal> {
    let whole = 0..source.len();
    let bytes = source.bytes(&whole)?;
    let text = source.source(&whole)?;
    if let Some(proposal) = value_in_comment(source) {
        return Some(proposal);
    }
    match context.role {
        Role::MessageExpression | Role::AuditAnnotation => match actual {
            // A list cannot be converted with string().
            Type::Dyn if source.is_chain(&whole) && (context.is_collection)(text) => {
                Some(Proposal::hint(format!(
                    "write `{text}.join(', ')` for a list of strings, or build a string from the parts that you need"
                )))
            }
            Type::Dyn
            | Type::Int
            | Type::Uint
            | Type::Bool
            | Type::Double
            | Type::Timestamp
            | Type::Duration => Some(Proposal::edit(bytes, format!("string({text})"))),
            Type::List(elem) if matches!(**elem, Type::String | Type::Dyn) => {
                let text = source.receiver_text(&whole)?;
                Some(Proposal::edit(bytes, format!("{text}.join(', ')")))
            }
            _ => None,
        },
        Role::JsonPatch if matches!(actual, Type::List(elem) if matches!(**elem, Type::Map(_))) => {
            json_patch(source)
        }
        Role::JsonPatch if is_named(actual, JSON_PATCH) => {
            Some(Proposal::edit(bytes, format!("[{text}]")))
        }
        Role::Validation | Role::MatchCondition if *actual == Type::List(Type::Bool.into()) => {
            without_brackets(source)
        }
        Role::Validation | Role::MatchCondition
            if is_decision(actual) && source.is_chain(&whole) =>
        {
            Some(appended(bytes, text, ".allowed()"))
        }
        _ => None,
    }
}

/// Removes the brackets around a condition, as in `[ a == b ]` of a shell.
fn without_brackets(source: &TokenText<'_>) -> Option<Proposal> {
    let last = source.len().checked_sub(1)?;
    let is_list = source.kind(0)? == Kind::OpenBracket && source.close(0) == Some(last);
    let items = source.arguments(0).filter(|_| is_list)?;
    let [item] = items.as_slice() else {
        return Some(Proposal::hint(
            "an expression is one condition: join the items of the list with `&&`",
        ));
    };
    let bytes = source.bytes(&(0..last + 1))?;
    let proposal = Proposal::edit(bytes, source.source(item)?.to_owned());
    Some(proposal.with_reason("a condition has no brackets"))
}

/// Returns a hint about a default value or a divisor after `//`. In CEL, `//` begins a comment.
fn value_in_comment(source: &TokenText<'_>) -> Option<Proposal> {
    let last = source.len().checked_sub(1)?;
    let after = source.text.get(source.bytes(&(last..last + 1))?.end..)?;
    let comment = after.trim_start().strip_prefix("//")?.trim_start();
    let is_operand = comment.starts_with(|c: char| c.is_ascii_digit() || c == '\'' || c == '"')
        || ["true", "false", "{}", "[]", "object."]
            .iter()
            .any(|it| comment.starts_with(it));
    is_operand.then(|| {
        Proposal::hint(
            "`//` begins a comment: write `a.?b.orValue(c)` for a default value, or `a / b` for a quotient",
        )
    })
}

/// Proposes to append the call `call` to the expression `text`. The hint does not quote a long expression.
pub(super) fn appended(bytes: Range<usize>, text: &str, call: &str) -> Proposal {
    let proposal = Proposal::edit(bytes, format!("{text}{call}"));
    if text.len() + call.len() <= MAX_SHOWN {
        return proposal;
    }
    Proposal {
        help: format!("append `{call}`"),
        ..proposal
    }
}
