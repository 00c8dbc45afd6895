//! Proposes replacements for names and functions that are not declared.

use super::{Context, MemberCall, Proposal};
use crate::cel::syntax::token::Kind;
use crate::cli::check::suggestion;
use crate::cli::check::tokens::{RELATION, TokenText};
use crate::policy::expressions::Role;

/// Proposes a replacement for an undeclared name or function at `n`.
pub(super) fn undeclared(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    name: &str,
) -> Option<Proposal> {
    // The location of an object literal is its brace.
    let n = if source.kind(n)? == Kind::OpenBrace {
        n.checked_sub(1)?
    } else {
        n
    };
    if source.kind(n)? == Kind::OpenParen {
        let is_key_test = matches!(
            name,
            "containsKey" | "hasKey" | "has_key" | "hasOwnProperty"
        );
        let is_list_test = matches!(name, "isIn" | "isin");
        let call = MemberCall::new(source, n)?;
        if is_list_test {
            let list = source.source(&call.args)?;
            let text = format!(
                "{} in {list}",
                source.operand_text(&call.receiver, RELATION)?
            );
            return call.replace(text, RELATION);
        }
        return is_key_test.then(|| call.as_in())?;
    }
    let bytes = source.bytes(&(n..n + 1))?;
    let is_brace = source.kind(n + 1) == Some(Kind::OpenBrace);
    if context.role.is_mutation() && is_brace {
        let meant = ["Object", "JSONPatch"]
            .into_iter()
            .find(|it| it.eq_ignore_ascii_case(name));
        return meant.map(|meant| Proposal::edit(bytes, meant.to_owned()));
    }
    let mut variables = context.policy.variables.iter();
    if context.role != Role::MatchCondition && variables.any(|variable| variable.name == name) {
        return Some(Proposal::edit(bytes, format!("variables.{name}")));
    }
    if let Some(path) = unqualified(name) {
        return Some(Proposal::edit(bytes, path.to_owned()));
    }
    let is_known = suggestion::only_reference(name).is_some()
        || suggestion::literal_of_other_languages(name).is_some();
    if is_known {
        return None;
    }
    unquoted_string(source, n)
}

/// Returns the path of a field that an expression reads without its variable.
fn unqualified(name: &str) -> Option<&'static str> {
    Some(match name {
        "userInfo" => "request.userInfo",
        "username" => "request.userInfo.username",
        "operation" => "request.operation",
        "dryRun" => "request.dryRun",
        "subResource" => "request.subResource",
        "metadata" => "object.metadata",
        "spec" => "object.spec",
        _ => return None,
    })
}

/// Proposes quotes for a word that is compared, such as `Pod` in `request.kind.kind == Pod`.
fn unquoted_string(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    // The words of a value with dashes, such as `kube-system`.
    let is_dash = |n: usize| source.kind(n) == Some(Kind::Minus);
    let is_word = |n: usize| source.kind(n) == Some(Kind::Ident);
    let (mut start, mut end) = (n, n + 1);
    while start >= 2
        && is_dash(start - 1)
        && is_word(start - 2)
        && source.is_adjacent(start - 2)
        && source.is_adjacent(start - 1)
    {
        start -= 2;
    }
    while is_dash(end) && is_word(end + 1) && source.is_adjacent(end - 1) && source.is_adjacent(end)
    {
        end += 2;
    }
    let word = source.source(&(start..end))?;
    let is_value = end - start > 1 || word.starts_with(|c: char| c.is_ascii_uppercase());
    let before = source.kind(start.checked_sub(1)?)?;
    let after = source.kind(end);
    let is_compared = matches!(before, Kind::Equals | Kind::NotEquals)
        && matches!(
            after,
            None | Some(
                Kind::And
                    | Kind::Or
                    | Kind::CloseParen
                    | Kind::Comma
                    | Kind::Question
                    | Kind::Colon
            )
        );
    let is_item = matches!(before, Kind::OpenBracket | Kind::Comma)
        && matches!(after, Some(Kind::Comma | Kind::CloseBracket));
    (is_value && (is_compared || is_item)).then(|| {
        let bytes = source.bytes(&(start..end))?;
        Some(Proposal::edit(bytes, format!("'{word}'")).with_reason("strings have quotes"))
    })?
}
