//! Proposes member functions and operators for functions that take all operands as arguments, such as
//! `a.startsWith('b')` for `startswith(a, 'b')`.

use std::ops::Range;

use super::calls::MemberCall;
use super::proposal::{Context, Proposal};
use super::sizes::{is_variable_of_macro, path};
use crate::cel::syntax::token::Kind;
use crate::cli::check::suggestion;
use crate::cli::check::tokens::{MEMBER, RELATION, TokenText};

/// Proposes a replacement for the call of a function that is not a member. `n` is the parenthesis.
pub(super) fn global_call(
    context: Context<'_>,
    source: &TokenText<'_>,
    n: usize,
    name: &str,
) -> Option<Proposal> {
    let start = n.checked_sub(1)?;
    let args = source.arguments(n)?;
    let whole = start..source.close(n)? + 1;
    call_of(context, source, name, (&args, &whole))
}

/// Proposes a replacement for the call `whole` of the function `name` with `args`.
pub(super) fn call_of(
    context: Context<'_>,
    source: &TokenText<'_>,
    name: &str,
    (args, whole): (&[Range<usize>], &Range<usize>),
) -> Option<Proposal> {
    let replace = |text: String, precedence: u8| {
        let text = source.in_place_of(whole, text, precedence);
        Some(Proposal::edit(source.bytes(whole)?, text))
    };
    let member = |receiver: &Range<usize>, function: &str, arg: &Range<usize>| {
        let (receiver, arg) = (source.receiver_text(receiver)?, source.source(arg)?);
        replace(format!("{receiver}.{function}({arg})"), MEMBER)
    };
    let meant = suggestion::only_function(name).unwrap_or(name);
    match (name, args) {
        (
            "hasKey" | "has_key" | "containsKey" | "contains_key" | "hasOwnProperty" | "has",
            [map, key],
        ) => replace(is_item(source, key, map)?, RELATION),
        ("keys", [map]) => keys(source, map, whole),
        ("values", [map]) => values(source, map, whole),
        ("sprintf" | "printf" | "Sprintf" | "format", [format, values @ ..]) => {
            let (first, last) = (values.first()?, values.last()?);
            let list = source.source(&(first.start..last.end))?;
            let is_list = values.len() == 1 && source.kind(first.start)? == Kind::OpenBracket;
            let list = if is_list {
                list.to_owned()
            } else {
                format!("[{list}]")
            };
            replace(
                format!("{}.format({list})", source.receiver_text(format)?),
                MEMBER,
            )
        }
        // `a = ANY(list)` of SQL.
        ("ANY" | "SOME", [first, ..]) => any_of(source, whole, &(first.start..args.last()?.end)),
        ("split" | "explode", [separator, text])
            if is_literal(source, separator) && !is_literal(source, text) =>
        {
            member(text, "split", separator)
        }
        ("concat" | "join" | "implode", [separator, list])
            if source.kind(separator.start)? == Kind::String && separator.len() == 1 =>
        {
            member(list, "join", separator)
        }
        ("concat" | "CONCAT" | "Concat", [first, .., last]) if !is_literal(source, first) => {
            let parts = args.iter().map(|arg| source.source(arg));
            let parts: Option<Vec<&str>> = parts.collect();
            let is_simple = !source.has_separator(first) && !source.has_separator(last);
            is_simple.then(|| replace(parts?.join(" + "), RELATION + 1))?
        }
        (_, [first, second]) if meant == "matches" => {
            if name == "matches" {
                return None;
            }
            let is_text_first = TEXT_FIRST.contains(&&*suggestion::normalized(name));
            let (text, pattern) = text_and_pattern(source, (first, second), !is_text_first);
            member(text, "matches", pattern)
        }
        (_, [whole, part]) if meant == "contains" => {
            contains(context, source, (whole, part), &replace)
        }
        (_, [receiver, rest @ ..]) if suggestion::is_only_member(meant, args.len()) => {
            let rest = match (rest.first(), rest.last()) {
                (Some(first), Some(last)) => source.source(&(first.start..last.end))?,
                _ => "",
            };
            let receiver = source.receiver_text(receiver)?;
            replace(format!("{receiver}.{meant}({rest})"), MEMBER)
        }
        _ => None,
    }
}

/// Functions of other languages whose first argument is the text and whose second argument is the pattern. The names
/// are in lower case, without `_`.
const TEXT_FIRST: [&str; 3] = ["matches", "regexplike", "regexpmatches"];

fn is_literal(source: &TokenText<'_>, tokens: &Range<usize>) -> bool {
    tokens.len() == 1 && source.kind(tokens.start) == Some(Kind::String)
}

/// Returns the source of the expression `item in list`.
fn is_item(source: &TokenText<'_>, item: &Range<usize>, list: &Range<usize>) -> Option<String> {
    let item = source.operand_text(item, RELATION)?;
    Some(format!(
        "{item} in {}",
        source.operand_text(list, RELATION)?
    ))
}

/// Proposes `a in list` for `a == ANY(list)`, and `a in [b, c]` for `a == ANY(b, c)`.
fn any_of(source: &TokenText<'_>, whole: &Range<usize>, items: &Range<usize>) -> Option<Proposal> {
    let operator = whole.start.checked_sub(1)?;
    (source.kind(operator)? == Kind::Equals).then_some(())?;
    let left = source.left(operator, RELATION)?;
    let list = source.source(items)?;
    let is_one = !source.has_separator(items) && source.kind(items.start)? != Kind::String;
    let list = if is_one {
        list.to_owned()
    } else {
        format!("[{list}]")
    };
    let text = format!("{} in {list}", source.source(&left)?);
    Some(Proposal::edit(
        source.bytes(&(left.start..whole.end))?,
        text,
    ))
}

/// Proposes `a.contains(b)` or `b in a` for `contains(a, b)`.
fn contains(
    context: Context<'_>,
    source: &TokenText<'_>,
    (whole, part): (&Range<usize>, &Range<usize>),
    replace: &dyn Fn(String, u8) -> Option<Proposal>,
) -> Option<Proposal> {
    let text = format!(
        "{}.contains({})",
        source.receiver_text(whole)?,
        source.source(part)?
    );
    let test = is_item(source, part, whole)?;
    let path = path(source, whole);
    if path.as_deref().is_some_and(context.is_collection) {
        let last = source.word(whole.end.checked_sub(1)?)?;
        // The author may have intended to search the values of the map, so there is no edit.
        return if matches!(last, "labels" | "annotations" | "data") {
            let help = format!("write `{test}` to search the keys of the map");
            Some(Proposal::hint(help))
        } else {
            replace(test, RELATION)
        };
    }
    if source.kind(whole.start) == Some(Kind::OpenBracket) {
        return replace(test, RELATION);
    }
    if is_literal(source, whole) || path.as_deref().is_some_and(context.is_declared) {
        return replace(text, MEMBER);
    }
    Some(Proposal::hint(format!(
        "write `{text}` to search a string, or `{test}` to search a list"
    )))
}

/// Proposes the map itself for a list of its keys if a macro, `in` or `size()` uses the list. Otherwise, proposes
/// `m.map(k, k)`.
pub(super) fn keys(
    source: &TokenText<'_>,
    map: &Range<usize>,
    whole: &Range<usize>,
) -> Option<Proposal> {
    let text = source.receiver_text(map)?;
    let before = |n: usize| whole.start.checked_sub(n);
    let is_searched = before(1).is_some_and(|n| source.kind(n) == Some(Kind::In));
    let is_size = before(2).is_some_and(|n| source.word(n) == Some("size"));
    let next = source.word(whole.end + 1).unwrap_or_default();
    let is_macro = source.kind(whole.end) == Some(Kind::Dot)
        && matches!(
            next,
            "all"
                | "exists"
                | "exists_one"
                | "filter"
                | "map"
                | "size"
                | "length"
                | "every"
                | "some"
        );
    let is_length = source.kind(whole.end) == Some(Kind::Dot) && next == "length";
    if is_length && source.kind(whole.end + 2) != Some(Kind::OpenParen) {
        let bytes = source.bytes(&(whole.start..whole.end + 2))?;
        return Some(Proposal::edit(bytes, format!("size({text})")));
    }
    let text = if is_searched || is_size || is_macro {
        text
    } else {
        format!("{text}.map(k, k)")
    };
    Some(Proposal::edit(source.bytes(whole)?, text))
}

/// Proposes `m.map(k, m[k])` for the values of a map.
pub(super) fn values(
    source: &TokenText<'_>,
    map: &Range<usize>,
    whole: &Range<usize>,
) -> Option<Proposal> {
    let text = source.receiver_text(map)?;
    let new = format!("{text}.map(k, {text}[k])");
    Some(Proposal::edit(source.bytes(whole)?, new))
}

/// Proposes the missing variable of a macro, as in `list.all(c.name == 'a')`, and `'a' in list` for `list.exists('a')`.
pub(super) fn without_variable(
    context: Context<'_>,
    source: &TokenText<'_>,
    call: &MemberCall<'_, '_>,
    name: &str,
) -> Option<Proposal> {
    let meant = match name {
        "all" | "exists" | "exists_one" | "filter" | "map" => name,
        "any" | "some" => "exists",
        "every" | "forAll" | "forall" => "all",
        _ => return None,
    };
    let args = source.arguments(call.args.start.checked_sub(1)?)?;
    let [arg] = args.as_slice() else { return None };
    let list = source.source(&call.receiver)?;
    let text = source.source(arg)?;
    let is_value = arg.len() == 1
        && matches!(
            source.kind(arg.start)?,
            Kind::String | Kind::Int | Kind::Float | Kind::True | Kind::False
        );
    if is_value && meant == "exists" {
        return call.as_in();
    }
    if is_value {
        return Some(Proposal::hint(format!(
            "the first argument of `{meant}()` is a name for the items: write `{list}.{meant}(x, x == {text})`"
        )));
    }
    let mut roots = arg.clone().filter_map(|n| {
        let word = source.word(n)?;
        let is_field = n > 0 && matches!(source.kind(n - 1), Some(Kind::Dot | Kind::Question));
        let is_call = source.kind(n + 1) == Some(Kind::OpenParen);
        let is_known = suggestion::NAMES.contains(&word)
            || is_variable_of_macro(source, n, word)
            || context.policy.variables.iter().any(|it| it.name == word);
        (source.kind(n)? == Kind::Ident && !is_field && !is_call && !is_known).then_some(word)
    });
    let variable = roots.next();
    match variable.filter(|first| roots.all(|other| other == *first)) {
        Some(variable) => call.replace(format!("{list}.{meant}({variable}, {text})"), MEMBER),
        None => Some(Proposal::hint(format!(
            "the first argument of `{meant}()` is a name for the items, as in `{list}.{meant}(x, x ...)`"
        ))),
    }
}

/// Returns a hint about an index that denotes any item, such as `[_]` of Rego or `[*]` of `JSONPath`. `open` is the
/// bracket.
pub(super) fn any_index(source: &TokenText<'_>, open: usize) -> Option<Proposal> {
    let list = source.source(&source.receiver(open)?)?;
    let close = source.close(open)?;
    let mut end = source.chain_end(close + 1)?;
    let is_relation = source
        .kind(end)
        .is_some_and(|kind| kind.relation().is_some());
    if is_relation {
        end = source.right(end + 1, RELATION)?.end;
    }
    let is_nested = (close + 1..end).any(|n| source.kind(n) == Some(Kind::OpenBracket));
    let (start, end) = (
        source.bytes(&(close..close + 1))?.end,
        source.bytes(&(end.checked_sub(1)?..end))?.end,
    );
    let condition = match source.text.get(start..end)? {
        rest if is_relation && !is_nested => format!("x{rest}"),
        _ => "x ...".to_owned(),
    };
    Some(Proposal::hint(format!(
        "an index denotes one item: write `{list}.exists(x, {condition})` if one item is enough, as in Rego, or \
         `{list}.all(x, {condition})` if each item must match"
    )))
}

/// Returns the text and the pattern of a call that searches for a pattern. If only one argument is a literal, it is the
/// pattern. Otherwise, `is_pattern_first` decides.
pub(super) fn text_and_pattern<'r>(
    source: &TokenText<'_>,
    (first, second): (&'r Range<usize>, &'r Range<usize>),
    is_pattern_first: bool,
) -> (&'r Range<usize>, &'r Range<usize>) {
    let is_first = match (is_literal(source, first), is_literal(source, second)) {
        (true, false) => true,
        (false, true) => false,
        _ => is_pattern_first,
    };
    if is_first {
        (second, first)
    } else {
        (first, second)
    }
}
