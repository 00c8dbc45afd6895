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

/// Replaces `a xor b` with `a != b`, with parentheses around comparisons.
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

/// Replaces `lambda x: ...` in the arguments of a macro with `x, ...`.
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

/// Replaces `every x in list { a }` of Rego with `list.all(x, a)`, and explains `some x in list`.
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
    // A body with several statements, all of which must be true, gets only a hint.
    if condition.contains([';', '\n']) || condition.contains(":=") || source.has_separator(&body) {
        return Some(hint());
    }
    let bytes = source.bytes(&(n..body.end + 1))?;
    let new = format!("{text}.{name}({variable}, {condition})");
    Some(Proposal::edit(bytes, new))
}

/// Replaces `f'{a} is b'` of Python with `string(a) + ' is b'`.
pub(super) fn formatted_string(source: &TokenText<'_>) -> Option<Proposal> {
    let n = (0..source.len()).find(|n| {
        matches!(source.word(*n), Some("f" | "F"))
            && source.kind(n + 1) == Some(Kind::String)
            && source.is_adjacent(*n)
    })?;
    let text = string_content(source, &(n + 1..n + 2))?;
    let quote = source.word(n + 1)?.chars().next()?;
    let bytes = source.bytes(&(n..n + 2))?;
    Some(match concatenated(text, "{", quote) {
        Some(text) => Proposal::edit(bytes, text),
        None => Proposal::hint("concatenate the parts, as in `string(a) + ' is b'`"),
    })
}

/// Returns `string(a) + ' is b'` for the text `{a} is b`. `open` is the marker before a value, here `{`. `None` if a
/// value is not a path.
pub(super) fn concatenated(text: &str, open: &str, quote: char) -> Option<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, after) = rest.split_once(open).unwrap_or((rest, ""));
        if literal.contains('}') {
            return None;
        }
        if !literal.is_empty() {
            parts.push(format!("{quote}{literal}{quote}"));
        }
        if literal.len() == rest.len() {
            break;
        }
        let (value, after) = after.split_once('}')?;
        let is_of_path = |c: char| c.is_ascii_alphanumeric() || "._[]'()\"".contains(c);
        if value.is_empty() || !value.chars().all(is_of_path) {
            return None;
        }
        parts.push(format!("string({value})"));
        rest = after;
    }
    Some(parts.join(" + "))
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

/// Replaces `[ -n a ]` with `a != ''`, `[ -z a ]` with `a == ''`, and `a -eq b` with `a == b`.
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
            let operand = n + 2..end;
            let is_one = operand.len() == 1 || source.is_chain(&operand);
            let Some(operand) = source.source(&operand).filter(|_| is_one) else {
                return Some(Proposal::hint(
                    "write `a != ''` for `-n a`, and `a == ''` for `-z a`",
                ));
            };
            let operand = shell_variable(operand);
            let operator = if word == "n" { "!=" } else { "==" };
            let bytes = source.bytes(&with_brackets(n..end))?;
            return Some(Proposal::edit(bytes, format!("{operand} {operator} ''")));
        }
        let (_, operator) = SHELL.iter().find(|(name, _)| *name == word)?;
        let is_operand = matches!(
            source.kind(n + 2)?,
            Kind::Ident | Kind::Int | Kind::String | Kind::Float
        );
        // `-a` and `-o` join two tests.
        let joins = (n + 2..source.len())
            .find(|n| is_dash(*n) && matches!(source.word(n + 1), Some("a" | "o")));
        if let Some(n) = joins {
            let operator = if source.word(n + 1)? == "a" {
                "&&"
            } else {
                "||"
            };
            return Some(Proposal::edit(
                source.bytes(&(n..n + 2))?,
                operator.to_owned(),
            ));
        }
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

/// Returns the variable in a string such as `"$a"` or `"${a}"` of a shell.
fn shell_variable(operand: &str) -> &str {
    let name = operand
        .strip_prefix("\"$")
        .and_then(|it| it.strip_suffix('"'));
    let name = name.map(|it| {
        let inner = it.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        inner.unwrap_or(it)
    });
    name.unwrap_or(operand)
}

/// Hints about words that begin a statement or a declaration in other languages. Each word is followed by another word.
const STATEMENTS: [(&[&str], &str); 6] = [
    (
        &[
            "const", "let", "var", "val", "local", "with", "declare", "set",
        ],
        "declare a variable in `spec.variables`, and read it as `variables.name`",
    ),
    (
        &["for", "foreach", "while"],
        "write `list.all(x, ...)` to test each item, or `list.exists(x, ...)`",
    ),
    (
        &["function", "def", "func", "fn", "lambda"],
        "expressions declare no functions: write a macro such as `list.all(x, ...)`",
    ),
    (
        &["select"],
        "expressions have no queries: write a macro such as `list.exists(x, ...)`",
    ),
    (
        &[
            "delete",
            "throw",
            "raise",
            "deny",
            "violation",
            "assert",
            "require",
        ],
        "an expression is a condition: write a bool that is true for an allowed request",
    ),
    (
        &["echo", "test", "grep", "case"],
        "an expression runs no commands: write a condition such as `a.b == 'c'`",
    ),
];

/// Removes `return` and `new`, and explains statements and declarations of other languages.
pub(super) fn statement(source: &TokenText<'_>) -> Option<Proposal> {
    let removed = |n: usize| {
        let bytes = source.bytes(&(n..n + 2))?;
        let next = source.word(n + 1)?;
        Some(Proposal {
            help: format!("remove `{}`", source.word(n)?),
            ..Proposal::edit(bytes, next.to_owned())
        })
    };
    let is_assignment = |n: usize| {
        source.kind(n) == Some(Kind::Colon)
            && source
                .bytes(&(n..n + 1))
                .and_then(|bytes| source.text.get(bytes.end..))
                .is_some_and(|rest| rest.starts_with('='))
    };
    // A set or array comprehension of Rego, such as `{x | ...}`.
    let is_set = (0..source.len()).any(|n| {
        matches!(source.kind(n), Some(Kind::OpenBrace | Kind::OpenBracket))
            && source.kind(n + 1) == Some(Kind::Ident)
            && source.before(n + 2).is_some_and(|it| it.trim() == "|")
    });
    if is_set {
        return Some(Proposal::hint(
            "write `list.filter(x, ...)` or `list.map(x, ...)` for a comprehension",
        ));
    }
    if source.word(0) == Some("return") {
        return removed(0);
    }
    // In Go, `*` reads the value of a pointer.
    if source.kind(0) == Some(Kind::Star) && source.kind(1) == Some(Kind::Ident) {
        return removed(0);
    }
    let new = (0..source.len())
        .find(|n| source.word(*n) == Some("new") && source.kind(n + 1) == Some(Kind::Ident));
    if let Some(new) = new {
        return removed(new);
    }
    let is_followed = |n: usize| {
        let is_function = matches!(source.word(n), Some("function" | "func" | "def"));
        let is_var = source.word(n) == Some("var") && source.kind(n + 1) == Some(Kind::Dot);
        is_var
            || is_function
            || matches!(
                source.kind(n + 1),
                Some(Kind::Ident | Kind::Star | Kind::Int | Kind::OpenBrace)
            )
    };
    let of_word = (0..source.len()).find_map(|n| {
        let is_field = n > 0 && source.kind(n - 1) == Some(Kind::Dot);
        let word = source.word(n).filter(|_| is_followed(n) && !is_field)?;
        let mut rows = STATEMENTS.iter();
        let row = rows.find(|(words, _)| words.iter().any(|it| it.eq_ignore_ascii_case(word)));
        row.map(|(_, hint)| Proposal::hint(*hint))
    });
    of_word.or_else(|| {
        (0..source.len())
            .any(is_assignment)
            .then(|| Proposal::hint(STATEMENTS.first().map_or("", |(_, hint)| hint)))
    })
}

/// Returns a hint about the index `[*]` of `JSONPath` or `[]` of jq.
pub(super) fn index_of_all(source: &TokenText<'_>) -> Option<Proposal> {
    let open = (1..source.len()).find(|n| {
        source.kind(*n) == Some(Kind::OpenBracket)
            && source.kind(n + 1 + usize::from(source.kind(n + 1) == Some(Kind::Star)))
                == Some(Kind::CloseBracket)
            && source.is_adjacent(n - 1)
            && source.receiver(*n).is_some()
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
