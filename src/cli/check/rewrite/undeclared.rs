//! Proposes replacements for names and functions that are not declared.

use super::calls::MemberCall;
use super::engines;
use super::functions::{any_index, global_call, keys, values, without_variable};
use super::modules::{module_function, searched};
use super::predicates::predicate;
use super::proposal::{Context, Proposal};
use super::selection::{dashed_variable, label_key};
use super::type_tests::type_of;
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
        .or_else(|| engines::variable(context, source, n))
        .or_else(|| leading_dot(source, n, name))
        .or_else(|| dashed_variable(context, source, n.checked_sub(3)?))
    {
        return Some(proposal);
    }
    // In Rego, `_` or a new variable as the index denotes any item.
    let before = n.checked_sub(1).and_then(|n| source.kind(n));
    let is_index =
        before == Some(Kind::OpenBracket) && source.kind(n + 1) == Some(Kind::CloseBracket);
    if is_index && name.len() == 1 {
        return any_index(source, n - 1);
    }
    if matches!(name, "CURRENT_TIMESTAMP" | "CURRENT_DATE" | "now") {
        return Some(Proposal::hint("expressions cannot read the current time"));
    }
    if name == "jsonpatch" && context.role.is_mutation() {
        return Some(Proposal::hint(
            "the function is named `jsonpatch.escapeKey`",
        ));
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
    let is_call = source.kind(n + 3) == Some(Kind::OpenParen);
    let selected = source.word(n + 2).filter(|_| is_selected && !is_call);
    let mut variables = context.policy.variables.iter();
    if context.role != Role::MatchCondition
        && suggestion::only_reference(name).is_none()
        && variables.any(|variable| Some(&*variable.name) == selected)
    {
        return Some(Proposal::edit(bytes, "variables".to_owned()));
    }
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

/// The functions of other languages that convert a value, each with the conversion of CEL. The names are in lower case,
/// without `_`.
const CONVERSIONS: [(&[&str], &str); 4] = [
    (&["parseint", "toint", "atoi", "int64"], "int"),
    (&["parsefloat", "tofloat", "todouble", "float64"], "double"),
    (&["tostring", "str"], "string"),
    (&["boolean", "tobool", "toboolean", "parsebool"], "bool"),
];

/// The functions of other languages that convert a value to an integer or to a floating-point number.
const NUMBERS: [&str; 3] = ["number", "tonumber", "float"];

/// Proposes an operator for a method that compares its receiver with its argument, such as `a == b` for `a.equals(b)`.
fn relation(call: &MemberCall<'_, '_>, name: &str) -> Option<Proposal> {
    let source = call.source;
    let text = match name {
        "isIn" | "isin" => {
            let list = source.source(&call.args)?;
            format!(
                "{} in {list}",
                source.operand_text(&call.receiver, RELATION)?
            )
        }
        _ if matches!(name.trim_end_matches('s'), "equal" | "isEqual" | "eq") => {
            let left = source.operand_text(&call.receiver, RELATION)?;
            let right = source.operand_text(&call.args, RELATION)?;
            format!("{left} == {right}")
        }
        _ => {
            let operator = ordering(name)?;
            let receiver = source.source(&call.receiver)?;
            // The receiver is exactly one call of the constructor.
            let first = call.receiver.start;
            let is_constructor = matches!(source.word(first), Some("quantity" | "semver"))
                && source.kind(first + 1) == Some(Kind::OpenParen)
                && source.close(first + 1)? + 1 == call.receiver.end;
            is_constructor.then_some(())?;
            let arg = source.source(&call.args)?;
            format!("{receiver}.compareTo({arg}) {operator} 0")
        }
    };
    call.replace(text, RELATION)
}

/// Returns the operator for the name of a comparison that CEL lacks, such as `<=` for `isLessThanOrEqualTo`.
fn ordering(name: &str) -> Option<&'static str> {
    let name = suggestion::normalized(name);
    let name = name.strip_prefix("is").unwrap_or(&name);
    let name = name.strip_suffix("to").unwrap_or(name);
    Some(match name {
        "lessthanorequal" | "lessorequal" | "atmost" | "notgreaterthan" | "lte" | "le" => "<=",
        "greaterthanorequal" | "greaterorequal" | "atleast" | "notlessthan" | "gte" | "ge" => ">=",
        _ => return None,
    })
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
    let mut rows = CONVERSIONS.iter();
    let conversion = rows.find(|(names, _)| names.contains(&&*suggestion::normalized(name)));
    let conversion = conversion.map(|(_, function)| *function);
    let Some(call) = MemberCall::new(source, n) else {
        let start = n.checked_sub(1)?;
        let compiled = || {
            matches!(name, "re" | "regex" | "regexp" | "Regex" | "RegExp")
                .then(|| searched(source, start, n))?
        };
        if let Some(proposal) = macro_of_list(source, n, name)
            .or_else(compiled)
            .or_else(|| type_of(source).filter(|_| name == "typeof"))
            .or_else(|| predicate(source, n, (name, None)))
            .or_else(|| global_call(context, source, n, name))
        {
            return Some(proposal);
        }
        let args = source.arguments(n)?;
        let value = source.source(args.first()?)?;
        let whole = source.bytes(&(start..source.close(n)? + 1))?;
        if NUMBERS.contains(&&*suggestion::normalized(name)) {
            return Some(Proposal::hint(format!(
                "write `int({value})` for an integer, or `double({value})`"
            )));
        }
        // In a call such as `parseInt(a, 10)`, the second argument is the base.
        return match (conversion?, args.as_slice()) {
            (conversion, [_]) => {
                let bytes = source.bytes(&(start..n))?;
                Some(Proposal::edit(bytes, conversion.to_owned()))
            }
            ("int", [_, base]) if source.source(base)? == "10" => {
                Some(Proposal::edit(whole, format!("int({value})")))
            }
            _ => None,
        };
    };
    if let Some(proposal) = predicate(source, n, (name, Some(&call))) {
        return Some(proposal);
    }
    let receiver = source.source(&call.receiver)?;
    if matches!(receiver, "Object" | "strings" | "fmt") {
        return module_function(context, source, call.receiver.start);
    }
    if let Some(proposal) = without_variable(context, source, &call, name) {
        return Some(proposal);
    }
    if let Some(proposal) = relation(&call, name) {
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
        // Only these maps are matched, because libraries of other policy engines may have a function with the same
        // name.
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
