//! Proposes macros and functions for comprehensions and slices of other languages.

use std::ops::Range;

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::tokens::TokenText;

/// A comprehension such as `a.b for a in list if c`.
struct Comprehension {
    /// The brackets that enclose it.
    open: usize,
    close: usize,
    value: Range<usize>,
    variable: usize,
    list: Range<usize>,
    condition: Option<Range<usize>>,
}

impl Comprehension {
    /// Returns the innermost comprehension.
    fn find(source: &TokenText<'_>) -> Option<Self> {
        let is_for = |n: &usize| {
            source.word(*n) == Some("for")
                && source.kind(n + 1) == Some(Kind::Ident)
                && source.kind(n + 2) == Some(Kind::In)
        };
        let for_ = (1..source.len()).rev().find(is_for)?;
        let encloses = |open: &usize| {
            let is_open = source.kind(*open).is_some_and(Kind::opens_bracket);
            is_open && source.close(*open).is_some_and(|close| close > for_)
        };
        let open = (0..for_).rev().find(encloses)?;
        let close = source.close(open)?;
        let list = for_ + 3..close;
        let mut if_ = None;
        let mut n = list.start;
        while n < list.end {
            if source.word(n) == Some("if") {
                if_ = Some(n);
                break;
            }
            n = match source.kind(n)? {
                kind if kind.opens_bracket() => source.close(n)? + 1,
                _ => n + 1,
            };
        }
        let end = if_.unwrap_or(close);
        let simple = |tokens: Range<usize>| {
            (tokens.start < tokens.end && !source.has_separator(&tokens)).then_some(tokens)
        };
        Some(Self {
            open,
            close,
            value: simple(open + 1..for_)?,
            variable: for_ + 1,
            list: simple(list.start..end)?,
            condition: match if_ {
                Some(if_) => Some(simple(if_ + 1..close)?),
                None => None,
            },
        })
    }
}

/// Replaces `any(a for x in list)` by `list.exists(x, a)`, and `[a for x in list if b]` by `list.map(x, b, a)`.
pub(super) fn comprehension(source: &TokenText<'_>) -> Option<Proposal> {
    let comprehension = Comprehension::find(source)?;
    let list = source.receiver_text(&comprehension.list)?;
    let variable = source.word(comprehension.variable)?;
    let value = source.source(&comprehension.value)?;
    let is_item = value == variable;
    if source.kind(comprehension.open)? == Kind::OpenBracket {
        let text = match &comprehension.condition {
            Some(condition) if is_item => {
                format!("{list}.filter({variable}, {})", source.source(condition)?)
            }
            Some(condition) => {
                let condition = source.source(condition)?;
                format!("{list}.map({variable}, {condition}, {value})")
            }
            None => format!("{list}.map({variable}, {value})"),
        };
        let bytes = source.bytes(&(comprehension.open..comprehension.close + 1))?;
        return Some(Proposal::edit(bytes, text));
    }
    let name = comprehension.open.checked_sub(1)?;
    let value = source.operand_text(&comprehension.value, 1)?;
    let text = match (source.word(name)?, &comprehension.condition) {
        ("any", None) => format!("{list}.exists({variable}, {value})"),
        ("all", None) => format!("{list}.all({variable}, {value})"),
        ("any", Some(condition)) => {
            let condition = source.operand_text(condition, 1)?;
            format!("{list}.exists({variable}, {condition} && {value})")
        }
        ("all", Some(condition)) => {
            let condition = source.source(condition)?;
            format!("{list}.all({variable}, !({condition}) || {value})")
        }
        _ => return None,
    };
    let bytes = source.bytes(&(name..comprehension.close + 1))?;
    Some(Proposal::edit(bytes, text))
}

/// Replaces `a[0:3]` by `a.substring(0, 3)`.
pub(super) fn slice(source: &TokenText<'_>) -> Option<Proposal> {
    let (open, colon) = (1..source.len()).find_map(|open| {
        (source.kind(open)? == Kind::OpenBracket).then_some(())?;
        let colon = match source.kind(open + 1)? {
            Kind::Colon => open + 1,
            _ => source.right(open + 1, 0)?.end,
        };
        (source.kind(colon)? == Kind::Colon).then_some((open, colon))
    })?;
    let close = source.close(open)?;
    let receiver = source.receiver(open)?;
    let text = source.source(&receiver)?;
    let (from, to) = (open + 1..colon, colon + 1..close);
    if source.has_separator(&to) {
        return None;
    }
    let is_negative = |tokens: &Range<usize>| source.kind(tokens.start) == Some(Kind::Minus);
    let index = |tokens: &Range<usize>| match source.source(tokens) {
        _ if tokens.is_empty() => Some(String::new()),
        Some(index) if is_negative(tokens) => Some(format!("size({text}) - {}", index.get(1..)?)),
        index => index.map(str::to_owned),
    };
    let (from, to) = (index(&from)?, index(&to)?);
    let args = match (from.as_str(), to.as_str()) {
        ("", "") => return None,
        ("", to) => format!("0, {to}"),
        (from, "") => from.to_owned(),
        (from, to) => format!("{from}, {to}"),
    };
    let function = |name: &str| format!("{text}.{name}({args})");
    // The name of a list is often a plural.
    let is_list = source.word(open - 1)?.ends_with('s');
    if is_list || source.kind(open - 1)? == Kind::CloseBracket {
        return Some(Proposal::hint(format!(
            "write `{}` for a part of a string; expressions have no function for a part of a list",
            function("substring")
        )));
    }
    let bytes = source.bytes(&(receiver.start..close + 1))?;
    Some(Proposal::edit(bytes, function("substring")))
}
