//! Proposes CEL for the keywords and operators of other languages, such as `xor`, `every` and `-eq`.

use std::ops::Range;

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::{Proposal, any_index, string_content};
use crate::cli::check::tokens::{AND, RELATION, TokenText};

/// Returns the tokens of an operator such as `not in`, `notin` or `!in`.
pub(super) fn not_in_operator(source: &TokenText<'_>) -> Option<Range<usize>> {
    (1..source.len()).find_map(|n| {
        let word = source.word(n)?;
        let is_in = |n: usize| {
            let word = source.word(n).unwrap_or_default();
            word.eq_ignore_ascii_case("in")
        };
        source.receiver(n)?;
        match word {
            "notin" | "not_in" | "notIn" | "NotIn" | "NOTIN" | "nin" => Some(n..n + 1),
            _ if is_in(n + 1) && (word == "!" || word.eq_ignore_ascii_case("not")) => {
                Some(n..n + 2)
            }
            _ => None,
        }
    })
}

/// Replaces `a xor b` by `a != b`, with parentheses around comparisons.
pub(super) fn xor(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (1..source.len()).find(|n| {
        let word = source.word(*n).unwrap_or_default();
        word.eq_ignore_ascii_case("xor") && source.receiver(*n).is_some()
    })?;
    let (left, right) = (source.left(n, AND)?, source.right(n + 1, AND)?);
    let text = format!(
        "{} != {}",
        source.operand_text(&left, RELATION)?,
        source.operand_text(&right, RELATION)?
    );
    let whole = left.start..right.end;
    let text = source.in_place_of(&whole, text, RELATION);
    Some(Proposal::edit(source.bytes(&whole)?, text))
}

/// Replaces `lambda x: ...` in the arguments of a macro by `x, ...`.
pub(super) fn python_lambda(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (1..source.len()).find(|n| {
        source.word(*n) == Some("lambda")
            && source.kind(n - 1) == Some(Kind::OpenParen)
            && source.kind(n + 1) == Some(Kind::Ident)
            && source.kind(n + 2) == Some(Kind::Colon)
    })?;
    let name = source.word(n + 1)?;
    let proposal = Proposal::edit(source.bytes(&(n..n + 3))?, format!("{name},"));
    Some(Proposal {
        help: format!("write `{name},` for the variable of the macro"),
        ..proposal
    })
}

/// Replaces `every x in list { a }` of Rego by `list.all(x, a)`, and explains `some x in list`.
pub(super) fn quantifier(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (0..source.len()).find(|n| {
        matches!(
            source.word(*n),
            Some("every" | "some" | "any" | "all" | "forall" | "exists")
        ) && source.kind(n + 1) == Some(Kind::Ident)
            && source.kind(n + 2) == Some(Kind::In)
    })?;
    let is_all = matches!(source.word(n)?, "every" | "all" | "forall");
    let name = if is_all { "all" } else { "exists" };
    let variable = source.word(n + 1)?;
    let end = source.chain_end(n + 4)?;
    let list = n + 3..end;
    let text = source.receiver_text(&list)?;
    let hint = || Proposal::hint(format!("write `{text}.{name}({variable}, ...)`"));
    let body = match source.kind(end) {
        Some(Kind::OpenBrace) => end + 1..source.close(end)?,
        _ => return Some(hint()),
    };
    let condition = source.source(&body)?;
    // The body consists of several statements, all of which must be true.
    if condition.contains([';', '\n']) || condition.contains(":=") || source.has_separator(&body) {
        return Some(hint());
    }
    let bytes = source.bytes(&(n..body.end + 1))?;
    let new = format!("{text}.{name}({variable}, {condition})");
    Some(Proposal::edit(bytes, new))
}

/// Replaces `f'{a} is b'` of Python by `string(a) + ' is b'`.
pub(super) fn formatted_string(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (0..source.len()).find(|n| {
        matches!(source.word(*n), Some("f" | "F"))
            && source.kind(n + 1) == Some(Kind::String)
            && source.is_adjacent(*n)
    })?;
    let text = string_content(source, &(n + 1..n + 2))?;
    let quote = source.word(n + 1)?.chars().next()?;
    let hint = Proposal::hint("concatenate the parts, as in `string(a) + ' is b'`");
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, after) = rest.split_once('{').unwrap_or((rest, ""));
        if literal.contains('}') {
            return Some(hint);
        }
        if !literal.is_empty() {
            parts.push(format!("{quote}{literal}{quote}"));
        }
        if literal.len() == rest.len() {
            break;
        }
        let Some((value, after)) = after.split_once('}') else {
            return Some(hint);
        };
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "._[]'()\"".contains(c);
        if value.is_empty() || !value.chars().all(is_of_path) {
            return Some(hint);
        }
        parts.push(format!("string({value})"));
        rest = after;
    }
    let bytes = source.bytes(&(n..n + 2))?;
    Some(Proposal::edit(bytes, parts.join(" + ")))
}

/// The comparison operators of shells, each with the operator of CEL.
const SHELL: [(&str, &str); 6] = [
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
];

/// Replaces `[ -n a ]` by `a != ''`, `[ -z a ]` by `a == ''`, and `a -eq b` by `a == b`.
pub(super) fn shell_test(source: &TokenText<'_>) -> Option<Proposal> {
    let is_dash = |n: usize| source.kind(n) == Some(Kind::Minus) && source.is_adjacent(n);
    // The brackets around a test.
    let with_brackets = |tokens: Range<usize>| {
        let (mut start, mut end) = (tokens.start, tokens.end);
        while start > 0
            && source.kind(start - 1) == Some(Kind::OpenBracket)
            && source.kind(end) == Some(Kind::CloseBracket)
        {
            start -= 1;
            end += 1;
        }
        start..end
    };
    (0..source.len()).find_map(|n| {
        is_dash(n).then_some(())?;
        let word = source.word(n + 1)?;
        let opens = n.checked_sub(1).and_then(|n| source.kind(n)) == Some(Kind::OpenBracket);
        if opens && matches!(word, "n" | "z") {
            let end = source.close(n - 1)?;
            let operand = source.source(&(n + 2..end))?;
            let operator = if word == "n" { "!=" } else { "==" };
            let bytes = source.bytes(&with_brackets(n..end))?;
            return Some(Proposal::edit(bytes, format!("{operand} {operator} ''")));
        }
        let (_, operator) = SHELL.iter().find(|(name, _)| *name == word)?;
        let is_operand = matches!(
            source.kind(n + 2)?,
            Kind::Ident | Kind::Int | Kind::String | Kind::Float
        );
        let (left, right) = (source.receiver(n)?, source.right(n + 2, RELATION)?);
        is_operand.then_some(())?;
        let text = format!(
            "{} {operator} {}",
            source.source(&left)?,
            source.source(&right)?
        );
        let bytes = source.bytes(&with_brackets(left.start..right.end))?;
        Some(Proposal::edit(bytes, text))
    })
}

/// Returns a hint about the index `[*]` of `JSONPath`.
pub(super) fn index_of_all(source: &TokenText<'_>) -> Option<Proposal> {
    let open = (1..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::OpenBracket)
            && source.kind(n + 1) == Some(Kind::Star)
            && source.kind(n + 2) == Some(Kind::CloseBracket)
    })?;
    any_index(source, open)
}

/// Returns the proposal for the reserved word `namespace` at byte `at`.
pub(super) fn namespace(source: &TokenText<'_>, at: usize) -> Option<Proposal> {
    let n = source.at(at)?;
    (source.word(n)? == "namespace").then_some(())?;
    let is_relation = |n: usize| source.kind(n).is_some_and(|kind| kind.relation().is_some());
    if is_relation(n + 1) || n.checked_sub(1).is_some_and(is_relation) {
        let bytes = source.bytes(&(n..n + 1))?;
        return Some(Proposal::edit(bytes, "request.namespace".to_owned()));
    }
    Some(Proposal::hint(
        "write `request.namespace` for the name of the namespace, or `namespaceObject` for its Namespace",
    ))
}
