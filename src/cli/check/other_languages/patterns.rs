//! Proposes `matches()` and `startsWith()` for patterns of other languages, such as `/^a/` and `[[ a == b* ]]`.

use std::ops::Range;

use crate::cel::syntax::token::Kind;
use crate::cli::check::rewrite::Proposal;
use crate::cli::check::rewrite::presence::null_comparison;
use crate::cli::check::tokens::{MEMBER, RELATION, TokenText, UNARY};

/// The flags of JavaScript regular expressions that RE2 also supports, as in `(?i)`. Other flags do not change whether
/// a string matches.
const FLAGS: [char; 3] = ['i', 'm', 's'];

/// A regular expression between slashes.
struct RegexLiteral {
    bytes: Range<usize>,
    /// The CEL string literal with the pattern.
    text: String,
}

impl RegexLiteral {
    fn find(source: &TokenText<'_>) -> Option<Self> {
        let text = source.text;
        text.match_indices('/').find_map(|(start, _)| {
            let before = text.get(..start)?.trim_end().chars().next_back();
            let begins = before.is_none_or(|c| "(!,=&|?:".contains(c));
            let rest = text.get(start + 1..)?;
            let is_comment = rest.starts_with('/') || rest.starts_with('*');
            (begins && !source.is_quoted(start) && !is_comment).then_some(())?;
            let end = end_of_regex(rest)?;
            let content = rest.get(..end)?;
            let after = rest.get(end + 1..)?;
            let n_flags = after.len() - after.trim_start_matches(char::is_alphabetic).len();
            let flags = after.get(..n_flags)?.chars();
            let flags: String = flags.filter(|flag| FLAGS.contains(flag)).collect();
            let flags = if flags.is_empty() {
                String::new()
            } else {
                format!("(?{flags})")
            };
            Some(Self {
                bytes: start..start + 1 + end + 1 + n_flags,
                text: pattern_literal(&format!("{flags}{}", content.replace("\\/", "/")))?,
            })
        })
    }
}

/// Returns the offset of the slash that ends a regular expression.
fn end_of_regex(rest: &str) -> Option<usize> {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for (n, c) in rest.char_indices() {
        match c {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class && n > 0 => return Some(n),
            _ => {}
        }
    }
    None
}

/// Returns the string literal of a pattern.
fn pattern_literal(pattern: &str) -> Option<String> {
    let quote = ['\'', '"'].into_iter().find(|it| !pattern.contains(*it))?;
    let raw = if pattern.contains('\\') { "r" } else { "" };
    (!pattern.contains('\n')).then(|| format!("{raw}{quote}{pattern}{quote}"))
}

/// Replaces `/a/.test(b)` and `b.match(/a/)` with `b.matches('a')`. Replaces any other regular expression literal with
/// a string literal.
pub(super) fn regex_literal(source: &TokenText<'_>) -> Option<Proposal> {
    let regex = RegexLiteral::find(source)?;
    let first_after = |byte: usize| {
        let is_after = |n: &usize| {
            source
                .bytes(&(*n..n + 1))
                .is_some_and(|it| it.start >= byte)
        };
        (0..source.len()).find(is_after).unwrap_or(source.len())
    };
    let (before, after) = (first_after(regex.bytes.start), first_after(regex.bytes.end));
    let call = |text: &str, start: usize, end: usize| {
        let (negates, end) = match null_comparison(source, end) {
            Some((is_equal, end)) => (is_equal, end),
            None => (false, end),
        };
        let sign = if negates { "!" } else { "" };
        let precedence = if negates { UNARY } else { MEMBER };
        let last = source.bytes(&(end.checked_sub(1)?..end))?.end;
        let text = format!("{sign}{text}.matches({})", regex.text);
        let text = source.in_place_of(&(before..end), text, precedence);
        Some(Proposal::edit(start..last, text))
    };
    if source.kind(after) == Some(Kind::Dot) && source.kind(after + 2) == Some(Kind::OpenParen) {
        let close = source.close(after + 2)?;
        let text = source.receiver_text(&(after + 3..close))?;
        return matches!(source.word(after + 1)?, "test" | "exec")
            .then(|| call(&text, regex.bytes.start, close + 1))?;
    }
    let open = before.checked_sub(1);
    let function = open.and_then(|open| Some((open.checked_sub(1)?, source.kind(open)?)));
    if let Some((name, Kind::OpenParen)) = function
        && source.kind(after) == Some(Kind::CloseParen)
        && matches!(source.word(name), Some("match" | "matches" | "test"))
    {
        let receiver = source.receiver(name.checked_sub(1)?)?;
        let start = source.bytes(&receiver)?.start;
        return call(source.source(&receiver)?, start, after + 1);
    }
    let proposal = Proposal::edit(regex.bytes, regex.text);
    Some(proposal.with_reason("a regular expression is a string"))
}

/// The operators with which other languages search for a pattern. The prefix `!` negates the search. The suffix `*`
/// ignores case.
const OPERATORS: [&str; 5] = ["=~", "!~*", "!~", "~*", "~"];

/// Replaces `a =~ 'b'` and `[[ a =~ ^b ]]` with `a.matches('b')`.
pub(super) fn operator(source: &TokenText<'_>) -> Option<Proposal> {
    // `~` is not a token, so the code searches for the operator in the text after each token.
    let (n, operator, rest) = (1..source.len()).find_map(|n| {
        let start = source.bytes(&(n - 1..n))?;
        let negates = source.kind(n - 1) == Some(Kind::Exclamation);
        let from = if negates { start.start } else { start.end };
        let text = source.text.get(from..)?;
        let trimmed = text.trim_start();
        let operator = OPERATORS.iter().find(|it| trimmed.starts_with(**it))?;
        let left = if negates { n - 1 } else { n };
        let after = from + (text.len() - trimmed.len()) + operator.len();
        (left > 0).then_some((left, *operator, after))
    })?;
    let flags = if operator.ends_with('*') { "(?i)" } else { "" };
    let left = source.receiver(n)?;
    let sign = if operator.starts_with('!') { "!" } else { "" };
    let receiver = source.source(&left)?;
    let raw = source.text.get(rest..)?;
    let blank = raw.len() - raw.trim_start().len();
    let literal = source.at(rest + blank);
    let literal = literal.filter(|n| source.kind(*n) == Some(Kind::String));
    let start = source.bytes(&left)?.start;
    if let Some(literal) = literal {
        let end = source.right(literal, RELATION)?.end;
        let pattern = source.source(&(literal..end))?;
        let quote = pattern.find(['\'', '"'])? + 1;
        let (before, pattern) = pattern.split_at_checked(quote)?;
        let text = format!("{sign}{receiver}.matches({before}{flags}{pattern})");
        let bytes = source.bytes(&(left.start..end))?;
        return Some(if end == literal + 1 {
            Proposal::edit(bytes, text)
        } else {
            Proposal::hint(format!("write `{text}`"))
        });
    }
    // In a shell, the pattern has no quotes.
    let word = raw.split_whitespace().next()?;
    let word = word.split("]]").next()?;
    let end = rest + blank + word.len();
    let is_name = word
        .chars()
        .all(|c| c.is_alphanumeric() || "._[]".contains(c));
    if is_name {
        let text = format!("{sign}{receiver}.matches({word})");
        return Some(Proposal::hint(format!("write `{text}`")));
    }
    let text = format!("{sign}{receiver}.matches({})", pattern_literal(word)?);
    Some(Proposal::edit(in_brackets(source, start..end), text))
}

/// Extends `bytes` to the brackets `[[` and `]]` around them, if there are any.
fn in_brackets(source: &TokenText<'_>, bytes: Range<usize>) -> Range<usize> {
    let (before, after) = (
        source.text.get(..bytes.start).unwrap_or_default(),
        source.text.get(bytes.end..).unwrap_or_default(),
    );
    match (
        before.trim_end().strip_suffix("[["),
        after.trim_start().strip_prefix("]]"),
    ) {
        (Some(before), Some(rest)) => before.len()..source.text.len() - rest.len(),
        _ => bytes,
    }
}

/// Replaces `[[ a == b* ]]` with `a.startsWith('b')`.
pub(super) fn glob(source: &TokenText<'_>) -> Option<Proposal> {
    source.text.contains("[[").then_some(())?;
    let n = (1..source.len())
        .find(|n| matches!(source.kind(*n), Some(Kind::Equals | Kind::NotEquals)))?;
    let left = source.receiver(n)?;
    let after = source.bytes(&(n..n + 1))?.end;
    let raw = source.text.get(after..)?;
    let blank = raw.len() - raw.trim_start().len();
    let word = raw.split_whitespace().next()?;
    let word = word.split("]]").next()?;
    let prefix = word.strip_suffix('*')?.trim_matches(['\'', '"']);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    (!prefix.is_empty() && prefix.chars().all(is_of_name)).then_some(())?;
    let sign = if source.kind(n)? == Kind::Equals {
        ""
    } else {
        "!"
    };
    let text = format!("{sign}{}.startsWith('{prefix}')", source.source(&left)?);
    let start = source.bytes(&left)?.start;
    let bytes = in_brackets(source, start..after + blank + word.len());
    Some(Proposal::edit(bytes, text))
}
