//! Proposes replacements for names and functions that are not declared.

use super::selection::label_key;
use super::{Context, MemberCall, Proposal};
use crate::cel::syntax::token::Kind;
use crate::cli::check::suggestion;
use crate::cli::check::tokens::{RELATION, TokenText, UNARY};
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
        return function(source, n, name);
    }
    if let Some(proposal) = label_key(source, n) {
        return Some(proposal);
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

/// Proposes a replacement for the call of an undeclared function. `n` is the parenthesis.
fn function(source: &TokenText<'_>, n: usize, name: &str) -> Option<Proposal> {
    if let Some(proposal) = negation(source, n, name) {
        return Some(proposal);
    }
    let conversion = match name {
        "parseInt" | "toInt" | "atoi" => Some("int"),
        "parseFloat" | "toFloat" | "toDouble" => Some("double"),
        "toString" | "str" => Some("string"),
        _ => None,
    };
    let Some(call) = MemberCall::new(source, n) else {
        let bytes = source.bytes(&(n.checked_sub(1)?..n))?;
        return conversion.map(|conversion| Proposal::edit(bytes, conversion.to_owned()));
    };
    let receiver = source.source(&call.receiver)?;
    match name {
        "containsKey" | "hasKey" | "has_key" | "hasOwnProperty" | "has" => call.as_in(),
        "isIn" | "isin" => {
            let list = source.source(&call.args)?;
            let item = source.operand_text(&call.receiver, RELATION)?;
            call.replace(format!("{item} in {list}"), RELATION)
        }
        _ if matches!(name.trim_end_matches('s'), "equal" | "isEqual" | "eq") => {
            let left = source.operand_text(&call.receiver, RELATION)?;
            let right = source.operand_text(&call.args, RELATION)?;
            call.replace(format!("{left} == {right}"), RELATION)
        }
        // A function of a library of another policy engine may have the same name.
        "get"
            if [".labels", ".annotations", ".data"]
                .iter()
                .any(|map| receiver.ends_with(map)) =>
        {
            let key = source.right(call.args.start, 0)?;
            (source.kind(key.end)? == Kind::Comma).then_some(())?;
            let value = source.right(key.end + 1, 0)?;
            (value.end == call.args.end).then_some(())?;
            let value = source.source(&value)?;
            let key = source.source(&key)?;
            call.replace(format!("{receiver}[?{key}].orValue({value})"), UNARY)
        }
        _ if call.args.is_empty() => call.replace(format!("{}({receiver})", conversion?), UNARY),
        _ => None,
    }
}

/// Proposes `!a.contains(b)` for `a.notContains(b)`, and `!a` for `not(a)`.
fn negation(source: &TokenText<'_>, n: usize, name: &str) -> Option<Proposal> {
    let close = source.close(n)?;
    if name.eq_ignore_ascii_case("not") {
        let start = n.checked_sub(1)?;
        let bytes = source.bytes(&(start..close + 1))?;
        let args = source.source(&(n + 1..close))?;
        let text = if source.is_chain(&(n + 1..close)) {
            format!("!{args}")
        } else {
            format!("!({args})")
        };
        return Some(Proposal::edit(bytes, text));
    }
    let function = match name {
        "none" => "exists",
        _ => suggestion::negated_function(name)?,
    };
    let args = source.bytes(&(n..close + 1))?;
    let args = source.text.get(args)?;
    match MemberCall::new(source, n) {
        Some(call) => {
            let receiver = source.source(&call.receiver)?;
            call.replace(format!("!{receiver}.{function}{args}"), UNARY)
        }
        None => Some(Proposal::hint(format!("write `!{function}{args}`"))),
    }
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
