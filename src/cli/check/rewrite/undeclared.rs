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
    if let Some(proposal) = label_key(source, n)
        .or_else(|| module_function(source, n))
        .or_else(|| object_of_other_engines(source, n))
    {
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
        if let Some(proposal) = macro_of_list(source, n, name).or_else(|| pattern(source, n, name))
        {
            return Some(proposal);
        }
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

/// Proposes `list.exists(x, a)` for `exists(list, x, a)` and `exists(x in list, a)`. `n` is the parenthesis.
fn macro_of_list(source: &TokenText<'_>, n: usize, name: &str) -> Option<Proposal> {
    let meant = match name {
        "all" | "exists" | "exists_one" | "existsOne" | "filter" | "map" => name,
        "any" | "some" => "exists",
        "every" => "all",
        _ => return None,
    };
    let close = source.close(n)?;
    let first = source.right(n + 1, 0)?;
    (source.kind(first.end)? == Kind::Comma).then_some(())?;
    let second = first.end + 1;
    let is_variable = |n: usize| source.kind(n) == Some(Kind::Ident);
    let (list, variable, rest) = if is_variable(first.start)
        && source.kind(first.start + 1) == Some(Kind::In)
        && first.len() > 2
    {
        (first.start + 2..first.end, first.start, second..close)
    } else if is_variable(second) && source.kind(second + 1) == Some(Kind::Comma) {
        (first, second, second + 2..close)
    } else {
        return None;
    };
    let text = format!(
        "{}.{meant}({}, {})",
        source.receiver_text(&list)?,
        source.word(variable)?,
        source.source(&rest)?
    );
    let call = n.checked_sub(1)?..close + 1;
    Some(Proposal::edit(source.bytes(&call)?, text))
}

/// Proposes `x.matches('a')` for `re('a').matches(x)`. `n` is the parenthesis after `re`.
fn pattern(source: &TokenText<'_>, n: usize, name: &str) -> Option<Proposal> {
    let close = source.close(n)?;
    let is_pattern = matches!(name, "re" | "regex" | "regexp" | "Regex" | "RegExp");
    let is_test = matches!(
        source.word(close + 2),
        Some("match" | "matches" | "test" | "search")
    );
    let open = close + 3;
    let is_call = source.kind(close + 1)? == Kind::Dot && source.kind(open)? == Kind::OpenParen;
    (is_pattern && is_test && is_call).then_some(())?;
    let end = source.close(open)?;
    let text = source.receiver_text(&(open + 1..end))?;
    let text = format!("{text}.matches({})", source.source(&(n + 1..close))?);
    Some(Proposal::edit(
        source.bytes(&(n.checked_sub(1)?..end + 1))?,
        text,
    ))
}

/// Proposes the member function for a function of a module of another language, such as `a.startsWith('b')` for
/// `strings.HasPrefix(a, 'b')`. `n` is the name of the module.
fn module_function(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let (dot, name, open) = (n + 1, n + 2, n + 3);
    let is_call = source.kind(dot)? == Kind::Dot && source.kind(open)? == Kind::OpenParen;
    let close = source.close(open).filter(|_| is_call)?;
    let first = source.right(open + 1, 0)?;
    let second = match source.kind(first.end)? {
        Kind::Comma => Some(source.right(first.end + 1, 0)?),
        _ => None,
    };
    let end = second.as_ref().unwrap_or(&first).end;
    (end == close).then_some(())?;
    let call = |receiver: &std::ops::Range<usize>, function: &str, arg: Option<&_>| {
        let arg = match arg {
            Some(arg) => source.source(arg)?,
            None => "",
        };
        let text = format!("{}.{function}({arg})", source.receiver_text(receiver)?);
        Some(Proposal::edit(source.bytes(&(n..close + 1))?, text))
    };
    match (source.word(n)?, source.word(name)?, &second) {
        ("strings", "HasPrefix" | "startswith", Some(arg)) => call(&first, "startsWith", Some(arg)),
        ("strings", "HasSuffix" | "endswith", Some(arg)) => call(&first, "endsWith", Some(arg)),
        ("strings", "Contains" | "contains", Some(arg)) => call(&first, "contains", Some(arg)),
        ("strings", "Split", Some(arg)) => call(&first, "split", Some(arg)),
        ("strings", "ToLower", None) => call(&first, "lowerAscii", None),
        ("strings", "ToUpper", None) => call(&first, "upperAscii", None),
        ("strings", "TrimSpace", None) => call(&first, "trim", None),
        (
            "re" | "regex" | "regexp",
            "match" | "search" | "fullmatch" | "MatchString",
            Some(text),
        ) => {
            // Rego and Python expect the pattern first.
            let is_literal = |tokens: &std::ops::Range<usize>| {
                tokens.len() == 1 && source.kind(tokens.start) == Some(Kind::String)
            };
            if is_literal(text) && !is_literal(&first) {
                call(&first, "matches", Some(text))
            } else {
                call(text, "matches", Some(&first))
            }
        }
        ("base64", ..) => Some(Proposal::hint("expressions cannot encode or decode base64")),
        _ => None,
    }
}

/// Proposes `object` for the variable of another policy engine that contains the object, such as `self` of the rules of a
/// CustomResourceDefinition. `n` is the variable.
fn object_of_other_engines(source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let path = |end: usize| source.source(&(n..end));
    let object = |end: usize| match source.word(end.checked_sub(1)?)? {
        name @ ("object" | "oldObject") => Some((end, name)),
        _ => None,
    };
    let (end, meant) = match (source.word(n)?, source.kind(n + 1)) {
        ("self", Some(Kind::Dot | Kind::OpenBracket)) => Some((n + 1, "object")),
        ("oldSelf", Some(Kind::Dot | Kind::OpenBracket)) => Some((n + 1, "oldObject")),
        ("review", _) if path(n + 2)? == "review." => object(n + 3),
        ("input", _)
            if path(n + 4).is_some_and(|it| it == "input.review." || it == "input.request.") =>
        {
            object(n + 5)
        }
        ("admissionReview" | "AdmissionReview", _) if path(n + 4)?.ends_with(".request.") => {
            object(n + 5)
        }
        _ => None,
    }?;
    let bytes = source.bytes(&(n..end))?;
    Some(Proposal::edit(bytes, meant.to_owned()))
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
