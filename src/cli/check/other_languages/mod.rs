//! Proposes CEL for the syntax of other languages, such as `!(a in b)` for `a not in b`.

mod characters;
mod infix;
mod javascript;
mod operands;
mod patterns;
mod pipes;
mod sequences;
mod sql;
mod words;

use std::ops::Range;

use super::advice;
use super::rewrite::Proposal;
use super::rewrite::presence::{is_literal, optional_text};
use super::rewrite::type_tests::type_of;
use super::suggestion;
use super::tokens::{AND, TokenText};
use crate::cel::source::{Location, SourceMap};
use crate::cel::syntax;
use crate::cel::syntax::token::Kind;
use crate::cel::version::Behavior;
use crate::policy::expressions::Role;

/// Maximum number of syntax errors of an expression that are corrected one after the other.
const MAX_CORRECTIONS: usize = 20;

/// Maximum number of syntax nodes of a corrected expression.
const MAX_NODES: usize = 100_000;

/// Returns the proposal for an expression with a syntax error at `location`. `None` if the proposal is for a later part
/// of the expression and the operator at `location` can be corrected. The parser stops at this operator, so it must be
/// corrected first.
pub(super) fn proposal_at(role: Role, text: &str, location: Location) -> Option<Proposal> {
    let at = SourceMap::new(text).byte(location);
    let of_place = at.filter(|_| !is_prose(role, text)).and_then(|at| {
        let of_character = characters::unexpected(text, at);
        of_character.or_else(|| words::namespace(&TokenText::new(text), at))
    });
    if of_place.is_some() {
        return of_place;
    }
    let proposal = proposal(role, text)?;
    let is_later = proposal.edit.as_ref().zip(at);
    let is_later = is_later.is_some_and(|((bytes, _), at)| bytes.start > at);
    let correction = || advice::operator_correction(text, location);
    (!is_later || correction().is_none()).then_some(proposal)
}

/// Returns true if the expression can be parsed, if necessary after corrections of its syntax errors.
pub(super) fn is_correctable(role: Role, text: &str, behavior: Behavior) -> bool {
    let mut text = text.to_owned();
    for _ in 0..MAX_CORRECTIONS {
        let mut n_nodes_left = MAX_NODES;
        let (ast, errors) = syntax::parse_within(&text, behavior, &mut n_nodes_left);
        if ast.is_some() {
            return true;
        }
        let first = errors.as_slice().first();
        let Some(next) = first.and_then(|error| corrected(role, &text, error.location)) else {
            return false;
        };
        text = next;
    }
    false
}

/// Returns the expression with a correction of the syntax error at `location`.
fn corrected(role: Role, text: &str, location: Location) -> Option<String> {
    let (bytes, new) = match proposal_at(role, text, location) {
        Some(proposal) => proposal.edit?,
        None => {
            let (part, operator) = advice::operator_correction(text, location)?;
            let byte = |n: usize| advice::byte_of(text, n);
            (byte(part.start)?..byte(part.end)?, operator.to_owned())
        }
    };
    Some(text.get(..bytes.start)?.to_owned() + &new + text.get(bytes.end..)?)
}

pub(super) fn proposal(role: Role, text: &str) -> Option<Proposal> {
    if is_prose(role, text) {
        return Some(prose(role, text));
    }
    let source = TokenText::new(text);
    let of_type = || map_of_type(&source).filter(|_| role.is_mutation());
    sequences::comprehension(&source)
        .or_else(of_type)
        .or_else(|| sequences::slice(&source))
        .or_else(|| patterns::regex_literal(&source))
        .or_else(|| sql::case(&source))
        .or_else(|| sql::cast(&source))
        .or_else(|| sql::unequal_list(&source))
        .or_else(|| sql::like(&source))
        .or_else(|| sql::between(&source))
        .or_else(|| bitwise(&source))
        .or_else(|| pipes::pipe(&source))
        .or_else(|| words::xor(&source))
        .or_else(|| words::shell_test(&source))
        .or_else(|| words::quantifier(&source))
        .or_else(|| words::formatted_string(&source))
        .or_else(|| javascript::template(&source))
        .or_else(|| words::index_of_all(&source))
        .or_else(|| words::python_lambda(&source))
        .or_else(|| infix::not_in(&source))
        .or_else(|| sql::in_list(&source))
        .or_else(|| infix::function(&source))
        .or_else(|| patterns::glob(&source))
        .or_else(|| patterns::operator(&source))
        .or_else(|| type_of(&source))
        .or_else(|| not(&source))
        .or_else(|| optional_key(&source))
        .or_else(|| javascript::lambda(&source))
        .or_else(|| tuple(&source))
        .or_else(|| default_value(&source))
        .or_else(|| conditional(&source))
        .or_else(|| number_with_unit(&source))
        .or_else(|| infix::identity(&source))
        .or_else(|| infix::arithmetic(&source))
        .or_else(|| operands::repeated(&source))
        .or_else(|| operands::missing_branch(&source))
        .or_else(|| words::statement(&source))
        .or_else(|| statement(&source))
        .or_else(|| plain_text(role, &source))
}

/// Proposes a quantity for a number such as `2Gi`, and a duration or a number for `30s`.
fn number_with_unit(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (0..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::Int)
            && source.kind(*n + 1) == Some(Kind::Ident)
            && source.is_adjacent(*n)
    })?;
    let number = source.source(&(n..n + 1))?;
    let text = source.source(&(n..n + 2))?;
    let bytes = source.bytes(&(n..n + 2))?;
    match source.word(n + 1)? {
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" | "k" | "M" | "G" | "T" | "P" => {
            Some(Proposal::edit(bytes, format!("quantity('{text}')")))
        }
        "s" | "h" | "ms" => Some(Proposal::hint(format!(
            "write `duration('{text}')` for a duration, or `{number}` for a number"
        ))),
        "m" => Some(Proposal::hint(format!(
            "write `duration('{text}')` for minutes, or `quantity('{text}')` for thousandths"
        ))),
        _ => None,
    }
}

fn positions(source: &TokenText<'_>, word: &str) -> Vec<usize> {
    (0..source.len())
        .filter(|n| source.word(*n) == Some(word))
        .collect()
}

/// Replaces `not a` with `!a`. In other languages, `not` negates a whole comparison.
fn not(source: &TokenText<'_>) -> Option<Proposal> {
    let is_word = |n: usize| {
        let word = source.word(n).unwrap_or_default();
        word.eq_ignore_ascii_case("and") || word.eq_ignore_ascii_case("or")
    };
    let is_start = |n: usize| {
        n.checked_sub(1).is_none_or(|before| {
            let kind = source.kind(before);
            is_word(before)
                || kind.is_some_and(Kind::opens_bracket)
                || matches!(
                    kind,
                    Some(Kind::And | Kind::Or | Kind::Comma | Kind::Question | Kind::Colon)
                )
        })
    };
    let not = (0..source.len()).find(|n| {
        let is_not = source
            .word(*n)
            .is_some_and(|it| it.eq_ignore_ascii_case("not"));
        is_not && is_start(*n) && source.kind(*n + 1) != Some(Kind::Dot)
    })?;
    let whole = source.right(not + 1, AND)?;
    let mut end = whole.start;
    while end < whole.end && !is_word(end) {
        end = match source.kind(end)? {
            kind if kind.opens_bracket() => source.close(end)? + 1,
            _ => end + 1,
        };
    }
    let operand = whole.start..end;
    let text = source.source(&operand)?;
    let is_group = source.kind(operand.start) == Some(Kind::OpenParen)
        && source.close(operand.start)? + 1 == operand.end;
    let text = if is_group || source.is_chain(&operand) {
        format!("!{text}")
    } else {
        format!("!({text})")
    };
    Some(Proposal::edit(source.bytes(&(not..end))?, text))
}

/// Returns a hint about a bitwise operator, if one of its operands is a number.
fn bitwise(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (1..source.len()).find(|n| advice::is_bitwise(source, *n))?;
    let operands = source.bytes(&(n - 1..n + 1))?;
    let operator = source
        .text
        .get(operands)?
        .trim_start_matches(source.word(n - 1)?);
    let operator = operator.trim_end_matches(source.word(n)?).trim();
    Some(Proposal::hint(format!(
        "CEL has no bitwise operator `{operator}`"
    )))
}

/// Replaces `a.?['b']` with `a[?'b']`.
fn optional_key(source: &TokenText<'_>) -> Option<Proposal> {
    let dot = (1..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::Dot)
            && source.kind(n + 1) == Some(Kind::Question)
            && source.kind(n + 2) == Some(Kind::OpenBracket)
    })?;
    let bytes = source.bytes(&(dot..dot + 3))?;
    Some(Proposal::edit(bytes, "[?".to_owned()))
}

/// Removes the type name from `Object.metadata.labels{'a': 'b'}`: labels are a map, whose keys are strings.
fn map_of_type(source: &TokenText<'_>) -> Option<Proposal> {
    let open = (1..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::OpenBrace)
            && source.kind(n + 1) == Some(Kind::String)
            && source.kind(n + 2) == Some(Kind::Colon)
            && source
                .receiver(*n)
                .is_some_and(|it| source.word(it.start) == Some("Object"))
    })?;
    let name = source.receiver(open)?;
    let bytes = source.bytes(&(name.start..open + 1))?;
    let name = source.source(&name)?;
    let proposal = Proposal::edit(bytes, "{".to_owned());
    Some(Proposal {
        help: format!("remove `{name}`: the value is a map, as in `{{'a': 'b'}}`"),
        ..proposal
    })
}

/// Replaces the tuple `(b, c)` with the list `[b, c]`.
fn tuple(source: &TokenText<'_>) -> Option<Proposal> {
    let is_tuple = |open: &usize| {
        let is_call = open.checked_sub(1).is_some_and(|before| {
            source.kind(before) == Some(Kind::Ident) && !source.is_operator_word(before)
        });
        source.kind(*open) == Some(Kind::OpenParen)
            && !is_call
            && source
                .right(open + 1, 0)
                .is_some_and(|first| source.kind(first.end) == Some(Kind::Comma))
    };
    let open = (0..source.len()).find(is_tuple)?;
    let close = source.close(open)?;
    let after = source.text.get(source.bytes(&(close..close + 1))?.end..)?;
    if after.trim_start().starts_with("=>") {
        return Some(Proposal::hint(
            "expressions declare no functions: write a macro such as `list.map(x, x.a).sum()`",
        ));
    }
    let items = source.source(&(open + 1..close))?;
    let items = items.trim_end().trim_end_matches(',');
    Some(Proposal::edit(
        source.bytes(&(open..close + 1))?,
        format!("[{items}]"),
    ))
}

/// Proposes a default value for `a?.b`, `a ?? b` and `a ?: b`.
fn default_value(source: &TokenText<'_>) -> Option<Proposal> {
    let is_pair = |n: &usize, second: Kind| {
        source.kind(*n) == Some(Kind::Question)
            && source.kind(n + 1) == Some(second)
            && source.is_adjacent(*n)
    };
    let all = || 0..source.len();
    if let Some(n) = all().find(|n| is_pair(n, Kind::Question)) {
        let left = source.receiver(n)?;
        if !is_literal(source, &(n + 2..n + 3)) {
            return Some(Proposal::hint("write `a.?b.orValue(c)` for `a.b ?? c`"));
        }
        let text = optional_text(source.source(&left)?)?;
        let text = format!("{text}.orValue({})", source.word(n + 2)?);
        return Some(Proposal::edit(source.bytes(&(left.start..n + 3))?, text));
    }
    let elvis = all().find(|n| {
        source.kind(*n) == Some(Kind::Question) && source.kind(n + 1) == Some(Kind::Colon)
    });
    if let Some(n) = elvis {
        let value = optional_text(source.source(&source.receiver(n)?)?);
        let value = value.unwrap_or_else(|| "a.?b".to_owned());
        return Some(Proposal::hint(format!(
            "write `{value}.orValue(...)` for a default value, or `a ? b : c` with a value between `?` and `:`"
        )));
    }
    let n = all().find(|n| *n > 0 && is_pair(n, Kind::Dot))?;
    let mut end = n;
    loop {
        end = match source.kind(end) {
            Some(Kind::Dot | Kind::Ident | Kind::Question) => end + 1,
            Some(Kind::OpenBracket) => source.close(end)? + 1,
            _ => break,
        };
    }
    let chain = source.receiver(end)?;
    let chain_text = source.source(&chain)?;
    if let Some((list, field)) = chain_text.rsplit_once("?.")
        && suggestion::is_length(field)
    {
        let list = optional_text(list)?;
        return Some(Proposal::hint(format!("write `size({list}.orValue([]))`")));
    }
    if source.kind(end) == Some(Kind::OpenParen) {
        return method_of_optional(chain_text);
    }
    let text = optional_chain(chain_text)?;
    Some(Proposal::hint(format!(
        "write `{text}.orValue(...)` with the value to use for an absent field"
    )))
}

/// Returns the optional field that `chain`, such as `a?.b['c']`, reads. A key of an optional map may be absent, too.
fn optional_chain(chain: &str) -> Option<String> {
    let text = optional_text(chain)?;
    Some(text.replace("['", "[?'").replace("[\"", "[?\""))
}

/// Proposes a default value for the receiver of a function call. `chain` ends with the name of the function, such as
/// `a.b?.all`.
fn method_of_optional(chain: &str) -> Option<Proposal> {
    let (receiver, function) = chain.rsplit_once('.')?;
    let optional = optional_chain(receiver.strip_suffix('?').unwrap_or(receiver))?;
    Some(Proposal::hint(match function {
        "all" => {
            format!("write `{optional}.orValue([]).all(...)`, which is true for an absent field")
        }
        "exists" | "exists_one" | "existsOne" => format!(
            "write `{optional}.orValue([]).{function}(...)`, which is false for an absent field"
        ),
        "map" | "filter" => format!("write `{optional}.orValue([]).{function}(...)`"),
        _ => format!(
            "write `{optional}.orValue(...).{function}(...)` with the value to use for an absent field"
        ),
    }))
}

/// Replaces `a if b else c` with `b ? a : c`.
fn conditional(source: &TokenText<'_>) -> Option<Proposal> {
    let (if_, else_) = (positions(source, "if"), positions(source, "else"));
    let ([if_], [else_]) = (if_.as_slice(), else_.as_slice()) else {
        return None;
    };
    let parts = [0..*if_, if_ + 1..*else_, else_ + 1..source.len()];
    let [value, condition, other] = parts.each_ref().map(|part| {
        let is_simple = part.start < part.end && !source.has_separator(part);
        source.source(part).filter(|_| is_simple)
    });
    let text = format!("{} ? {} : {}", condition?, value?, other?);
    Some(Proposal::edit(source.bytes(&(0..source.len()))?, text))
}

/// Replaces `if a then b else c` and `if (a) { b } else { c }` with `a ? b : c`.
fn statement(source: &TokenText<'_>) -> Option<Proposal> {
    let hint = Proposal::hint("CEL has no `if`: write `condition ? value : other`");
    let if_ = positions(source, "if");
    let (then, else_) = (positions(source, "then"), positions(source, "else"));
    let if_ = if_.first()?;
    let parts = match (then.as_slice(), else_.as_slice()) {
        ([then], [else_]) => [if_ + 1..*then, then + 1..*else_, else_ + 1..source.len()],
        ([], [else_]) if source.kind(if_ + 1) == Some(Kind::OpenParen) => {
            let after = source.close(if_ + 1)? + 1;
            let [Some(value), Some(other)] =
                [after..*else_, else_ + 1..source.len()].map(|part| in_braces(source, part))
            else {
                return Some(hint);
            };
            [if_ + 2..after - 1, value, other]
        }
        _ => return Some(hint),
    };
    let is_whole = *if_ == 0;
    let texts = parts.each_ref().map(|part| {
        let is_simple = part.start < part.end && !source.has_separator(part);
        source.source(part).filter(|_| is_whole && is_simple)
    });
    let [Some(condition), Some(value), Some(other)] = texts else {
        return Some(hint);
    };
    let text = format!("{condition} ? {value} : {other}");
    Some(Proposal::edit(source.bytes(&(0..source.len()))?, text))
}

/// Returns the tokens between the braces that enclose `part`.
fn in_braces(source: &TokenText<'_>, part: Range<usize>) -> Option<Range<usize>> {
    let is_open = source.kind(part.start)? == Kind::OpenBrace;
    let close = source.close(part.start).filter(|_| is_open)?;
    (close + 1 == part.end).then_some(part.start + 1..close)
}

/// Returns a hint about a messageExpression that is a fixed text instead of an expression.
fn plain_text(role: Role, source: &TokenText<'_>) -> Option<Proposal> {
    let is_word = |n: usize| source.kind(n) == Some(Kind::Ident);
    (role == Role::MessageExpression && is_word(0) && is_word(1)).then(fixed_message)
}

fn fixed_message() -> Proposal {
    Proposal::hint(
        "write a fixed text in `message`; a messageExpression is a CEL expression, whose strings have quotes",
    )
}

/// Returns true if an expression that must be a string is a text in a natural language: it starts with a word, has
/// adjacent words, and does not read variables.
pub(super) fn is_prose(role: Role, text: &str) -> bool {
    if !matches!(role, Role::AuditAnnotation | Role::MessageExpression) {
        return false;
    }
    let source = TokenText::new(text);
    let is_word = |n: usize| source.kind(n) == Some(Kind::Ident);
    let is_operand = |n: usize| {
        let next = source.kind(n + 1);
        let continues = matches!(next, Some(Kind::Dot | Kind::OpenBracket | Kind::OpenParen));
        continues && source.is_adjacent(n)
    };
    let reads_variable = |n: usize| {
        let word = source.word(n).unwrap_or_default();
        suggestion::NAMES.contains(&word) && is_operand(n)
    };
    is_word(0)
        && !is_operand(0)
        && (1..source.len()).any(|n| is_word(n - 1) && is_word(n))
        && !(0..source.len()).any(reads_variable)
}

/// Quotes the text of an audit annotation. For a messageExpression, recommends the field `message` instead.
fn prose(role: Role, text: &str) -> Proposal {
    const HELP: &str = "a valueExpression is a CEL expression, whose strings have quotes";
    if role == Role::MessageExpression {
        return fixed_message();
    }
    let solid = text.trim();
    let start = text.len() - text.trim_start().len();
    let quote = ['\'', '"']
        .into_iter()
        .find(|quote| !solid.contains(*quote));
    let is_simple = !solid.contains(['\\', '\n', '\r']);
    match quote.filter(|_| is_simple) {
        Some(quote) => {
            let quoted = format!("{quote}{solid}{quote}");
            Proposal::edit(start..start + solid.len(), quoted).with_reason(HELP)
        }
        None => Proposal::hint(HELP),
    }
}
