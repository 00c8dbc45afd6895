//! Proposes CEL for characters that begin no token, such as typographic quotes.

use std::ops::Range;

use crate::cli::check::rewrite::Proposal;

/// The typographic characters, each with its replacement.
const SYMBOLS: [(char, &str); 15] = [
    ('\u{a0}', " "),
    ('\u{2009}', " "),
    ('\u{202f}', " "),
    ('\u{3000}', " "),
    ('\u{200b}', ""),
    ('\u{feff}', ""),
    ('–', "-"),
    ('—', "-"),
    ('−', "-"),
    ('≤', "<="),
    ('≥', ">="),
    ('≠', "!="),
    ('×', "*"),
    ('∧', "&&"),
    ('∨', "||"),
];

const SINGLE_QUOTES: [char; 4] = ['‘', '’', '‚', '‛'];

const DOUBLE_QUOTES: [char; 3] = ['“', '”', '„'];

/// Returns the proposal for the character at byte `at`.
pub(super) fn unexpected(text: &str, at: usize) -> Option<Proposal> {
    let rest = text.get(at..)?;
    match rest.chars().next()? {
        '#' => comment(text, at),
        ';' if rest.chars().skip(1).all(char::is_whitespace) => {
            // An edit cannot be empty, so it also covers the last character before the `;`.
            let before = text.get(..at)?.trim_end();
            let last = before.chars().next_back()?;
            let start = before.len() - last.len_utf8();
            let proposal = Proposal::edit(start..at + 1, last.to_string());
            Some(Proposal {
                help: "remove `;`: an expression has no statements".to_owned(),
                ..proposal
            })
        }
        ';' => Some(Proposal::hint(
            "an expression has no statements: write `&&` between conditions that must all be true",
        )),
        '$' => variable(text, at),
        c if is_typographic(c) => typographic(text),
        _ => None,
    }
}

fn is_typographic(c: char) -> bool {
    SINGLE_QUOTES.contains(&c)
        || DOUBLE_QUOTES.contains(&c)
        || SYMBOLS.iter().any(|(symbol, _)| *symbol == c)
}

/// Replaces `#` with `//`. If YAML joined the lines, the comment may contain a part of the expression, so there is only
/// a hint.
fn comment(text: &str, at: usize) -> Option<Proposal> {
    const HELP: &str = "a comment begins with `//`";
    let rest = text.get(at..)?;
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let is_last = after.trim().is_empty();
    let may_be_joined = is_last && ["&&", "||", "?", ":"].iter().any(|it| line.contains(it));
    if may_be_joined {
        return Some(Proposal::hint(format!(
            "{HELP} and extends to the end of the line"
        )));
    }
    let n_marks = line.len() - line.trim_start_matches('#').len();
    let proposal = Proposal::edit(at..at + n_marks, "//".to_owned());
    Some(Proposal {
        help: HELP.to_owned(),
        ..proposal
    })
}

/// Replaces `$object` and `${object}` with `object`.
fn variable(text: &str, at: usize) -> Option<Proposal> {
    let rest = text.get(at + 1..)?;
    let (inner, length) = match rest.strip_prefix('{') {
        Some(rest) => {
            let end = rest.find('}')?;
            (rest.get(..end)?, end + 3)
        }
        // In JSONPath, `$` alone is the root.
        None if rest.starts_with('.') => ("object", 1),
        None => ("", 1),
    };
    let proposal = Proposal::edit(at..at + length, inner.to_owned());
    Some(Proposal {
        help: "write the name of a variable without `$`".to_owned(),
        ..proposal
    })
}

/// Replaces all typographic characters outside of strings.
fn typographic(text: &str) -> Option<Proposal> {
    let mut out = String::new();
    let mut changed: Option<Range<usize>> = None;
    let mut chars = text.char_indices().peekable();
    // The lengths of the output up to the first changed character, and up to the last one.
    let (mut n_before, mut n_out) = (0, 0);
    let mut mark = |out: &str, bytes: Range<usize>, n_start: usize| {
        if changed.is_none() {
            n_before = n_start;
        }
        let start = changed.as_ref().map_or(bytes.start, |it| it.start);
        changed = Some(start..bytes.end);
        n_out = out.len();
    };
    while let Some((at, c)) = chars.next() {
        if matches!(c, '\'' | '"') {
            out.push(c);
            let mut is_escaped = false;
            for (_, inner) in chars.by_ref() {
                out.push(inner);
                if !is_escaped && inner == c {
                    break;
                }
                is_escaped = !is_escaped && inner == '\\';
            }
            continue;
        }
        let n_start = out.len();
        let quotes: &[char] = match c {
            c if SINGLE_QUOTES.contains(&c) => &SINGLE_QUOTES,
            c if DOUBLE_QUOTES.contains(&c) => &DOUBLE_QUOTES,
            _ => &[],
        };
        if quotes.is_empty() {
            let Some((_, new)) = SYMBOLS.iter().find(|(symbol, _)| *symbol == c) else {
                out.push(c);
                continue;
            };
            out.push_str(new);
            mark(&out, at..at + c.len_utf8(), n_start);
            continue;
        }
        let after = text.get(at + c.len_utf8()..)?;
        let end = after.find(quotes)?;
        let content = after.get(..end)?;
        let quote = if quotes == SINGLE_QUOTES { '\'' } else { '"' };
        (!content.contains([quote, '\\'])).then_some(())?;
        let close = after.get(end..)?.chars().next()?;
        out.extend([quote]);
        out.push_str(content);
        out.extend([quote]);
        let past = at + c.len_utf8() + end + close.len_utf8();
        mark(&out, at..past, n_start);
        while chars.next_if(|(next, _)| *next < past).is_some() {}
    }
    let new = out.get(n_before..n_out)?.to_owned();
    let proposal = Proposal::edit(changed?, new);
    Some(proposal.with_reason("quotes and operators are ASCII characters"))
}
