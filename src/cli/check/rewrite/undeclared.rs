//! Proposes replacements for names and functions that are not declared.

use super::functions::{any_index, call_of, global_call, keys, values, without_variable};
use super::selection::{dashed_variable, label_key};
use super::{Context, MemberCall, Proposal, string_content};
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
    // The location of an object literal is its brace, which follows the name.
    let n = if source.kind(n)? == Kind::OpenBrace {
        n.checked_sub(1)?
    } else {
        n
    };
    if source.kind(n)? == Kind::OpenParen {
        return function(context, source, n, name);
    }
    if let Some(proposal) = label_key(context, source, n)
        .or_else(|| module_function(context, source, n))
        .or_else(|| parameters(context, source, n))
        .or_else(|| object_of_other_engines(source, n))
        .or_else(|| leading_dot(source, n, name))
        .or_else(|| dashed_variable(context, source, n.checked_sub(3)?))
    {
        return Some(proposal);
    }
    if name == "_" && source.kind(n.checked_sub(1)?)? == Kind::OpenBracket {
        return any_index(source, n - 1);
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
    let is_selected = source.kind(n + 1) == Some(Kind::Dot);
    // `Object` is the type of an object in mutations.
    if name == "newObject" || name == "Object" && is_selected {
        return Some(Proposal::edit(bytes, "object".to_owned()));
    }
    if let Some(path) = unqualified(name) {
        return Some(Proposal::edit(bytes, path.to_owned()));
    }
    if name == "user" {
        let field = source.word(n + 2).filter(|_| is_selected);
        let path = match field {
            Some("username" | "groups" | "uid" | "extra") => "request.userInfo",
            Some("name") => {
                let bytes = source.bytes(&(n..n + 3))?;
                return Some(Proposal::edit(
                    bytes,
                    "request.userInfo.username".to_owned(),
                ));
            }
            _ => "request.userInfo.username",
        };
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
fn function(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    name: &str,
) -> Option<Proposal> {
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
        if let Some(proposal) = macro_of_list(source, n, name)
            .or_else(|| pattern(source, n, name))
            .or_else(|| global_call(context, source, n, name))
        {
            return Some(proposal);
        }
        let bytes = source.bytes(&(n.checked_sub(1)?..n))?;
        return conversion.map(|conversion| Proposal::edit(bytes, conversion.to_owned()));
    };
    let receiver = source.source(&call.receiver)?;
    if matches!(receiver, "Object" | "strings" | "fmt") {
        return module_function(context, source, call.receiver.start);
    }
    if let Some(proposal) = without_variable(context, source, &call, name) {
        return Some(proposal);
    }
    match name {
        "keys" if call.args.is_empty() => keys(source, &call.receiver, &call.whole),
        "values" if call.args.is_empty() => values(source, &call.receiver, &call.whole),
        // `object.get(map, key, value)` of Rego.
        "get" if receiver == "object" => {
            let args = source.arguments(n)?;
            let [map, key, value] = args.as_slice() else {
                return None;
            };
            (source.kind(key.start)? == Kind::String).then_some(())?;
            let text = format!(
                "{}[?{}].orValue({})",
                source.receiver_text(map)?,
                source.source(key)?,
                source.source(value)?
            );
            call.replace(text, UNARY)
        }
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
        // Only for these maps, because libraries of other policy engines may have a function with the same name.
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

/// Proposes a member function for another language's module function, such as `a.startsWith('b')` for
/// `strings.HasPrefix(a, 'b')`. `n` is the name of the module.
fn module_function(context: Context<'_>, source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let (dot, name, open) = (n + 1, n + 2, n + 3);
    let is_call = source.kind(dot)? == Kind::Dot && source.kind(open)? == Kind::OpenParen;
    let close = source.close(open).filter(|_| is_call)?;
    if matches!(source.word(n)?, "Object" | "strings" | "fmt" | "_") {
        let args = source.arguments(open)?;
        let call = call_of(
            context,
            source,
            source.word(name)?,
            (&args, &(n..close + 1)),
        );
        if call.is_some() {
            return call;
        }
    }
    if matches!(
        (source.word(n)?, source.word(name)?),
        (
            "Date" | "datetime" | "time",
            "now" | "now_ns" | "Now" | "utcnow"
        )
    ) {
        return Some(Proposal::hint("expressions cannot read the current time"));
    }
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
            let is_swapped = is_literal(text) && !is_literal(&first);
            if source.word(n)? == "re" && matches!(source.word(name)?, "match" | "fullmatch") {
                let (pattern, text) = if is_swapped {
                    (text, &first)
                } else {
                    (&first, text)
                };
                let is_whole = source.word(name)? == "fullmatch";
                return anchored(source, (text, pattern), is_whole, &(n..close + 1));
            }
            if is_swapped {
                call(&first, "matches", Some(text))
            } else {
                call(text, "matches", Some(&first))
            }
        }
        ("base64", ..) => Some(Proposal::hint("expressions cannot encode or decode base64")),
        _ => None,
    }
}

/// Proposes `x.matches('^a')` for `re.match('a', x)` of Python, which matches at the start of the string, and
/// `x.matches('^a$')` for `re.fullmatch('a', x)`.
fn anchored(
    source: &TokenText<'_>,
    (text, pattern): (&std::ops::Range<usize>, &std::ops::Range<usize>),
    is_whole: bool,
    whole: &std::ops::Range<usize>,
) -> Option<Proposal> {
    let end = if is_whole { "$" } else { "" };
    let receiver = source.receiver_text(text)?;
    let Some(content) = string_content(source, pattern) else {
        let anchors = if is_whole {
            "the pattern between `^` and `$`"
        } else {
            "`^` before the pattern"
        };
        return Some(Proposal::hint(format!(
            "write `{receiver}.matches(...)` with {anchors}, because matches() searches the pattern anywhere"
        )));
    };
    let quote = source.source(pattern)?.get(..1)?;
    let content = content.strip_prefix('^').unwrap_or(content);
    let content = content
        .strip_suffix('$')
        .filter(|_| is_whole)
        .unwrap_or(content);
    let content = if content.contains('|') {
        format!("(?:{content})")
    } else {
        content.to_owned()
    };
    let call = format!("{receiver}.matches({quote}^{content}{end}{quote})");
    Some(Proposal::edit(source.bytes(whole)?, call))
}

/// Proposes `object.spec` for the path `.spec` of `JSONPath` and jq. `n` is the dot or the name after it.
fn leading_dot(source: &TokenText<'_>, n: usize, name: &str) -> Option<Proposal> {
    let field = name.strip_prefix('.')?;
    let dot = if source.kind(n)? == Kind::Dot {
        n
    } else {
        n.checked_sub(1)?
    };
    (source.kind(dot)? == Kind::Dot && source.word(dot + 1)? == field).then_some(())?;
    let bytes = source.bytes(&(dot..dot + 2))?;
    Some(Proposal::edit(bytes, format!("object.{field}")))
}

/// Proposes `params` for `input.parameters` of Gatekeeper. The parameters of a constraint are its `spec.parameters`. `n` is the
/// variable.
fn parameters(context: Context<'_>, source: &TokenText<'_>, n: usize) -> Option<Proposal> {
    let (start, end) = match source.word(n)? {
        "input" if source.word(n + 2) == Some("parameters") => (n, n + 3),
        "parameters" if source.kind(n + 1) == Some(Kind::Dot) => (n, n + 1),
        _ => return None,
    };
    if context.policy.param_kind.is_none() {
        return Some(Proposal::hint(
            "write `params`, the param object of the binding, which requires a paramKind in the spec",
        ));
    }
    let field = source
        .word(end + 1)
        .filter(|_| source.kind(end) == Some(Kind::Dot))?;
    let bytes = source.bytes(&(start..end))?;
    let mut paths = ["params", "params.spec", "params.spec.parameters"].into_iter();
    let meant = paths.find(|path| (context.is_declared)(&format!("{path}.{field}")));
    Some(match meant {
        Some(meant) => Proposal::edit(bytes, meant.to_owned()),
        None => Proposal::hint(format!(
            "write `params` and the path in the param object, such as `params.spec.{field}`"
        )),
    })
}

/// Proposes `object` for the variable that contains the object in other policy engines, such as `self` in the rules of
/// a CustomResourceDefinition. `n` is the variable.
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
        "groups" => "request.userInfo.groups",
        "labels" => "object.metadata.labels",
        "annotations" => "object.metadata.annotations",
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
