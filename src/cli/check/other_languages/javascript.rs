//! Proposes CEL for arrow functions and template literals of JavaScript.

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::rewrite::presence::null_comparison;
use crate::cli::check::tokens::TokenText;

use super::words::concatenated;

/// Replaces the arrow in `list.all(c => ...)` with a comma.
pub(super) fn lambda(source: &TokenText<'_>) -> Option<Proposal> {
    // `=` is not a token, so the code searches for the arrow in the text after each opening parenthesis and name.
    (0..source.len()).find_map(|open| {
        (source.kind(open)? == Kind::OpenParen).then_some(())?;
        let is_nested = source.kind(open + 1)? == Kind::OpenParen;
        let name = open + 1 + usize::from(is_nested);
        (source.kind(name)? == Kind::Ident).then_some(())?;
        let last = name + usize::from(is_nested);
        (!is_nested || source.kind(last)? == Kind::CloseParen).then_some(())?;
        let after = source.bytes(&(last..last + 1))?.end;
        let rest = source.text.get(after..)?;
        let blank = rest.len() - rest.trim_start().len();
        let arrow = rest
            .get(blank..blank + 2)
            .filter(|it| matches!(*it, "=>" | "->"))?;
        let start = source.bytes(&(open + 1..open + 2))?.start;
        let end = after + blank + arrow.len();
        let variable = source.word(name)?;
        // JavaScript has different names for the macros, such as `some` for `exists`.
        let function = open.checked_sub(1).and_then(|n| Some((n, source.word(n)?)));
        match function {
            Some((n, function @ ("some" | "every" | "any"))) => {
                let meant = if function == "every" { "all" } else { "exists" };
                let bytes = source.bytes(&(n..n + 1))?.start..end;
                return Some(Proposal::edit(bytes, format!("{meant}({variable},")));
            }
            Some((n, "find" | "findIndex" | "findLast")) => {
                return found_item(source, n, (variable, end));
            }
            Some((n, "forEach")) => {
                let list = source.source(&source.receiver(n.checked_sub(1)?)?)?;
                return Some(Proposal::hint(format!(
                    "write `{list}.all({variable}, ...)` to test each item, or `{list}.exists({variable}, ...)`"
                )));
            }
            _ => {}
        }
        let text = format!("{variable},");
        let mut proposal = Proposal::edit(start..end, text);
        proposal.help = format!("write `{variable},` for the variable of the macro");
        Some(proposal)
    })
}

/// Replaces `list.find(c => a) === undefined` with `!list.exists(c, a)`. `n` is the name of the function, and the body
/// follows the byte `body`.
fn found_item(
    source: &TokenText<'_>,
    n: usize,
    (variable, body): (&str, usize),
) -> Option<Proposal> {
    let close = source.close(n + 1)?;
    let receiver = source.receiver(n.checked_sub(1)?)?;
    let list = source.source(&receiver)?;
    let body = source
        .text
        .get(body..source.bytes(&(close..close + 1))?.start)?;
    let test = format!("{list}.exists({variable}, {})", body.trim());
    let is_find = source.word(n)? != "findIndex";
    let before = receiver.start.checked_sub(1);
    let is_negated = before.is_some_and(|n| source.kind(n) == Some(Kind::Exclamation));
    if let Some((is_equal, end)) = null_comparison(source, close + 1).filter(|_| is_find) {
        let sign = if is_equal { "!" } else { "" };
        let bytes = source.bytes(&(receiver.start..end))?;
        return Some(Proposal::edit(bytes, format!("{sign}{test}")));
    }
    if is_find && is_negated {
        let bytes = source.bytes(&(receiver.start..close + 1))?;
        return Some(Proposal::edit(bytes, test));
    }
    Some(Proposal::hint(format!(
        "write `{list}.exists({variable}, ...)` for a test, or `{list}.filter({variable}, ...)` for the items"
    )))
}

/// Replaces a string in backticks with a string in quotes, and `${a}` in it with a concatenation.
pub(super) fn template(source: &TokenText<'_>) -> Option<Proposal> {
    let text = source.text;
    let (start, _) = text.match_indices('`').find(|(start, _)| {
        let before = text.get(..*start).unwrap_or_default();
        !before.ends_with('.') && !source.is_quoted(*start)
    })?;
    let rest = text.get(start + 1..)?;
    let end = rest.find('`')?;
    let content = rest.get(..end)?;
    let quote = ['\'', '"'].into_iter().find(|it| !content.contains(*it))?;
    if content.contains(['\\', '\n']) {
        return Some(Proposal::hint("write the string in quotes"));
    }
    let Some(new) = concatenated(content, "${", quote) else {
        return Some(Proposal::hint(
            "concatenate the parts, as in `string(a) + ' is b'`",
        ));
    };
    let new = if content.is_empty() {
        "''".to_owned()
    } else {
        new
    };
    let proposal = Proposal::edit(start..start + 1 + end + 1, new);
    Some(proposal.with_reason("strings have quotes"))
}
