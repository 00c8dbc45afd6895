//! Proposes macros and functions for comprehensions and slices of other languages.

use std::ops::Range;

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::tokens::TokenText;

/// A comprehension such as `a.b for a in list if c` of Python, or `for a in list : a.b if c` of Terraform.
struct Comprehension {
    /// The indices of the enclosing brackets.
    open: usize,
    close: usize,
    value: Range<usize>,
    /// The tokens of one variable, or of two variables with a comma.
    variables: Range<usize>,
    list: Range<usize>,
    condition: Option<Range<usize>>,
}

impl Comprehension {
    /// Returns the innermost comprehension.
    fn find(source: &TokenText<'_>) -> Option<Self> {
        let variables = |n: usize| {
            (source.word(n) == Some("for") && source.kind(n + 1) == Some(Kind::Ident))
                .then_some(())?;
            if source.kind(n + 2) == Some(Kind::In) {
                return Some(n + 1..n + 2);
            }
            let is_pair = source.kind(n + 2) == Some(Kind::Comma)
                && source.kind(n + 3) == Some(Kind::Ident)
                && source.kind(n + 4) == Some(Kind::In);
            is_pair.then_some(n + 1..n + 4)
        };
        let (for_, variables) = (1..source.len())
            .rev()
            .find_map(|n| Some((n, variables(n)?)))?;
        let encloses = |open: &usize| {
            let is_open = source.kind(*open).is_some_and(Kind::opens_bracket);
            is_open && source.close(*open).is_some_and(|close| close > for_)
        };
        let open = (0..for_).rev().find(encloses)?;
        let close = source.close(open)?;
        let start = variables.end + 1;
        let next = |word: &str| {
            let mut n = start;
            while n < close {
                if source.word(n) == Some(word) {
                    return Some(n);
                }
                n = match source.kind(n)? {
                    kind if kind.opens_bracket() => source.close(n)? + 1,
                    _ => n + 1,
                };
            }
            None
        };
        let if_ = next("if");
        let end = if_.unwrap_or(close);
        let colon = next(":").filter(|_| open + 1 == for_);
        let simple = |tokens: Range<usize>| {
            (tokens.start < tokens.end && !source.has_separator(&tokens)).then_some(tokens)
        };
        let (value, list) = match colon {
            Some(colon) => (colon + 1..end, start..colon),
            None => (open + 1..for_, start..end),
        };
        Some(Self {
            open,
            close,
            value: simple(value)?,
            variables,
            list: simple(list)?,
            condition: match if_ {
                Some(if_) => Some(simple(if_ + 1..close)?),
                None => None,
            },
        })
    }

    /// Returns the name and the tokens of the function call around the comprehension, as in `any(a for b in c)` or
    /// `any([a for b in c])`.
    fn call<'s>(&self, source: &TokenText<'s>) -> Option<(&'s str, Range<usize>)> {
        let (mut open, mut close) = (self.open, self.close);
        if source.kind(open)? == Kind::OpenBracket {
            (open, close) = (open.checked_sub(1)?, close + 1);
            let is_argument = source.kind(open)? == Kind::OpenParen
                && source.kind(close) == Some(Kind::CloseParen);
            is_argument.then_some(())?;
        }
        let name = open.checked_sub(1)?;
        let is_call = source.kind(open)? == Kind::OpenParen && source.kind(name)? == Kind::Ident;
        let is_member = name > 0 && source.kind(name - 1) == Some(Kind::Dot);
        (is_call && !is_member).then_some((source.word(name)?, name..close + 1))
    }
}

/// Replaces `any(a for x in list)` with `list.exists(x, a)`, and `[a for x in list if b]` with `list.map(x, b, a)`.
pub(super) fn comprehension(source: &TokenText<'_>) -> Option<Proposal> {
    let comprehension = Comprehension::find(source)?;
    let list = source.receiver_text(&comprehension.list)?;
    let variable = source.source(&comprehension.variables)?;
    let value = source.source(&comprehension.value)?;
    let is_pair = comprehension.variables.len() > 1;
    // A macro with two variables iterates over the keys and the values of a map.
    let list = match list.strip_suffix(".items()") {
        Some(map) if is_pair => map.to_owned(),
        _ => list,
    };
    let condition = match &comprehension.condition {
        Some(condition) => Some((
            source.source(condition)?,
            source.operand_text(condition, 1)?,
        )),
        None => None,
    };
    let items = || {
        let is_item = value == variable;
        match condition {
            _ if is_pair => None,
            Some((condition, _)) if is_item => {
                Some(format!("{list}.filter({variable}, {condition})"))
            }
            Some((condition, _)) => Some(format!("{list}.map({variable}, {condition}, {value})")),
            None if is_item => Some(list.clone()),
            None => Some(format!("{list}.map({variable}, {value})")),
        }
    };
    let operand = source.operand_text(&comprehension.value, 1)?;
    let call = comprehension.call(source);
    let of_call = call.and_then(|(name, whole)| {
        let text = match (name, &condition) {
            ("any" | "anytrue", None) => format!("{list}.exists({variable}, {operand})"),
            ("all" | "alltrue", None) => format!("{list}.all({variable}, {operand})"),
            ("any" | "anytrue", Some((_, condition))) => {
                format!("{list}.exists({variable}, {condition} && {operand})")
            }
            ("all" | "alltrue", Some((condition, _))) => {
                format!("{list}.all({variable}, !({condition}) || {operand})")
            }
            ("sum", _) if value == "1" && !is_pair => match condition {
                Some((condition, _)) => format!("size({list}.filter({variable}, {condition}))"),
                None => format!("size({list})"),
            },
            ("sum" | "min" | "max", _) => format!("{}.{name}()", items()?),
            ("list" | "tuple" | "tolist", _) => items()?,
            _ => return None,
        };
        Some((text, whole))
    });
    let (text, tokens) = match of_call {
        Some(call) => call,
        // The parentheses of a call remain.
        None if source.kind(comprehension.open)? == Kind::OpenParen
            && comprehension.call(source).is_some() =>
        {
            (items()?, comprehension.open + 1..comprehension.close)
        }
        None if source.kind(comprehension.open)? == Kind::OpenBrace => return None,
        None => (items()?, comprehension.open..comprehension.close + 1),
    };
    let is_quantifier = ["exists", "all"]
        .iter()
        .any(|name| text.starts_with(&format!("{list}.{name}(")));
    Some(match negation(source, &tokens).filter(|_| is_quantifier) {
        Some(not) => Proposal::edit(source.bytes(&(not..tokens.end))?, format!("!{text}")),
        None => Proposal::edit(source.bytes(&tokens)?, text),
    })
}

/// Returns the `not` before an operand. The parser reports the error at `not` before errors in the operand. `None` if
/// the operand is only a part of the negated expression.
fn negation(source: &TokenText<'_>, operand: &Range<usize>) -> Option<usize> {
    let not = operand.start.checked_sub(1)?;
    let is_not = source.word(not)?.eq_ignore_ascii_case("not");
    let is_end = |n: usize| {
        let is_operator = matches!(source.word(n), Some("and" | "or"));
        is_operator
            || matches!(
                source.kind(n),
                Some(Kind::And | Kind::Or | Kind::OpenParen | Kind::CloseParen | Kind::Comma)
            )
    };
    let is_whole = operand.end == source.len() || is_end(operand.end);
    let is_start = not.checked_sub(1).is_none_or(is_end);
    (is_not && is_start && is_whole).then_some(not)
}

/// Replaces `a[0:3]` with `a.substring(0, 3)`.
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
    // A plural name, such as `items`, probably denotes a list.
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
