//! Proposes calls for the pipes of jq and of templates, such as `size(a)` for `a | length`.

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::rewrite::presence::{is_literal, optional_text};
use crate::cli::check::tokens::{MEMBER, RELATION, TokenText, UNARY};

/// The CEL expression that replaces a filter.
#[derive(Clone, Copy)]
enum Form {
    /// A function whose argument is the value.
    Function(&'static str),
    /// A member function of the value.
    Member(&'static str),
    /// A test whether the value contains a key.
    Key,
    Negation,
    Default,
    /// The keys of a map, over which a macro iterates.
    Keys,
    Hint(&'static str),
}

/// The filters of jq and of templates.
const FILTERS: [(&[&str], Form); 17] = [
    (&["length", "count", "len", "size"], Form::Function("size")),
    (&["tostring", "toString"], Form::Function("string")),
    (
        &["ascii_downcase", "lower", "downcase"],
        Form::Member("lowerAscii"),
    ),
    (
        &["ascii_upcase", "upper", "upcase"],
        Form::Member("upperAscii"),
    ),
    (&["test", "match", "regexMatch"], Form::Member("matches")),
    (&["startswith", "hasPrefix"], Form::Member("startsWith")),
    (&["endswith", "hasSuffix"], Form::Member("endsWith")),
    (&["contains", "inside"], Form::Member("contains")),
    (&["split"], Form::Member("split")),
    (&["join"], Form::Member("join")),
    (&["trim"], Form::Member("trim")),
    (&["has"], Form::Key),
    (&["not"], Form::Negation),
    (&["default"], Form::Default),
    (&["keys"], Form::Keys),
    (
        &["tonumber", "int", "float"],
        Form::Hint("write `int(a)` for an integer, or `double(a)`"),
    ),
    (
        &["map", "all", "any", "select", "first", "last", "quote"],
        Form::Hint(
            "CEL has no pipes: call a macro of the list, as in `list.all(x, ...)` or `list.exists(x, ...)`",
        ),
    ),
];

/// Replaces `a | length` with `size(a)`.
pub(super) fn pipe(source: &TokenText<'_>) -> Option<Proposal> {
    let (n, form) = (1..source.len()).find_map(|n| {
        (source.before(n)?.trim() == "|").then_some(())?;
        let name = source.word(n)?;
        let mut rows = FILTERS.iter();
        let (_, form) = rows.find(|(names, _)| names.contains(&name))?;
        Some((n, *form))
    })?;
    let hint = || Proposal::hint("CEL has no pipes: write `size(a)` for `a | length`");
    let Some(value) = source.receiver(n) else {
        return Some(hint());
    };
    // A pipe binds less tightly than most operators, so an edit requires that no operator except `&&` and `||` precedes
    // the value.
    let is_whole = value.start.checked_sub(1).is_none_or(|before| {
        let kind = source.kind(before);
        kind.is_some_and(Kind::opens_bracket) || matches!(kind, Some(Kind::And | Kind::Or))
    });
    let text = source.source(&value)?;
    let (args, end) = match source.kind(n + 1) {
        Some(Kind::OpenParen) => {
            let close = source.close(n + 1)?;
            (Some(n + 2..close), close + 1)
        }
        Some(Kind::String | Kind::Int | Kind::True | Kind::False) => (Some(n + 1..n + 2), n + 2),
        _ => (None, n + 1),
    };
    let args_text = || source.source(args.as_ref()?);
    let precedence = match form {
        Form::Key => RELATION,
        Form::Negation => UNARY,
        _ => MEMBER,
    };
    let new = match form {
        Form::Function(name) => format!("{name}({text})"),
        Form::Member(name) => format!("{text}.{name}({})", args_text().unwrap_or_default()),
        Form::Key => format!("{} in {text}", args_text()?),
        Form::Negation => format!("!{text}"),
        Form::Default => {
            let default = args.clone().filter(|it| is_literal(source, it));
            match (default, optional_text(text)) {
                (Some(_), Some(text)) => format!("{text}.orValue({})", args_text()?),
                _ => return Some(Proposal::hint("write `a.?b.orValue(c)`")),
            }
        }
        Form::Keys => text.to_owned(),
        Form::Hint(hint) => return Some(Proposal::hint(hint)),
    };
    if !is_whole {
        return Some(hint());
    }
    let whole = value.start..end;
    let new = source.in_place_of(&whole, new, precedence);
    Some(Proposal::edit(source.bytes(&whole)?, new))
}
