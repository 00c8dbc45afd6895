//! Measures, truncates and wraps strings, and removes characters that a terminal would interpret.
//!
//! Widths are in terminal columns. Strings are never cut inside a grapheme, which readers perceive as one character.

use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Maximum number of names that a hint lists.
const MAX_NAMES: usize = 12;

/// The mark for omitted content.
const ELLIPSIS: &str = "…";

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the string as one line, without characters that a terminal would interpret.
///
/// A policy or a status may contain escape sequences or bidirectional marks. Control characters are replaced with their
/// Unicode pictures, marks with U+FFFD, and white space with a space.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(replacement).collect()
}

/// Returns the replacement of a character. This is always one character, so that columns stay aligned.
fn replacement(character: char) -> char {
    match character {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{0}'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        _ if is_unsafe(character) => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

/// Returns true for a character of a word: a letter, a digit or `_`.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns true for a character of a CEL identifier: an ASCII letter or digit, or `_`.
pub(crate) fn is_identifier_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Returns true for characters above U+007E that a terminal or an editor interprets instead of showing them: DEL, the
/// C1 controls, and marks that change the direction of writing or are invisible.
///
/// All are below U+10000, so JSON can denote each as one `\uXXXX`.
pub(crate) fn is_unsafe(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// Writes the unsafe characters of a JSON document, or of double-quoted strings in YAML, as escapes such as `\u202e`.
///
/// All such characters must be inside strings, as in any JSON document.
pub(crate) fn with_escapes(document: String) -> String {
    if !document.chars().any(is_unsafe) {
        return document;
    }
    let mut out = String::with_capacity(document.len());
    for character in document.chars() {
        if is_unsafe(character) {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

/// Returns the string in at most `max` columns, with `…` at the end if it was truncated.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let mut out = head(text, max.saturating_sub(width(ELLIPSIS))).to_owned();
    out.truncate(out.trim_end().len());
    if max > 0 {
        out.push_str(ELLIPSIS);
    }
    out
}

/// Returns the longest prefix of the string with at most `max` columns.
fn head(text: &str, max: usize) -> &str {
    let mut used = 0;
    for (start, grapheme) in text.grapheme_indices(true) {
        used += width(grapheme);
        if used > max {
            return text.get(..start).unwrap_or_default();
        }
    }
    text
}

/// Wraps the string to lines of at most `max` columns, between words if possible.
///
/// Content beyond `max_lines` lines is replaced with `…`. All lines except the first line are indented by `indent`.
/// White space within a line is kept as spaces. White space at line breaks and around the string is removed. The time
/// is linear in the length of the string.
pub(crate) fn wrap(text: &str, max: usize, max_lines: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    // The width of `line`, and true if `line` contains only the indentation.
    let (mut used, mut is_empty) = (0, true);
    let mut left = text;
    loop {
        let word = left.trim_start();
        let gap = left.get(..left.len() - word.len()).unwrap_or_default();
        let gap = gap.chars().count();
        let end_of_word = word.find(char::is_whitespace).unwrap_or(word.len());
        let (mut rest, after) = word.split_at_checked(end_of_word).unwrap_or((word, ""));
        if rest.is_empty() {
            break;
        }
        left = after;
        let mut is_first = true;
        while !rest.is_empty() {
            let space = if is_empty || !is_first { 0 } else { gap };
            let room = max.saturating_sub(used + space);
            let mut part = head(rest, room);
            if part.len() < rest.len() && !is_empty {
                part = "";
            } else if part.is_empty() {
                // If the line is too narrow for a grapheme, the grapheme is written nevertheless. Otherwise, the loop
                // would not end.
                part = rest.graphemes(true).next().unwrap_or(rest);
            }
            if !part.is_empty() {
                line.extend(std::iter::repeat_n(' ', space));
                line.push_str(part);
                used += space + width(part);
                (is_empty, is_first) = (false, false);
                rest = rest.get(part.len()..).unwrap_or_default();
            }
            if !rest.is_empty() {
                if lines.len() + 1 >= max_lines {
                    lines.push(end(&line, max));
                    return lines;
                }
                lines.push(std::mem::replace(&mut line, indent.to_owned()));
                (used, is_empty) = (width(indent), true);
            }
        }
    }
    if !is_empty {
        lines.push(line);
    }
    lines
}

/// Appends an ellipsis to `line`. Truncates `line` if the result would be wider than `max` columns.
fn end(line: &str, max: usize) -> String {
    let spaced = format!("{line} {ELLIPSIS}");
    if width(&spaced) <= max {
        return spaced;
    }
    let mut out = head(line, max.saturating_sub(width(ELLIPSIS)))
        .trim_end()
        .to_owned();
    out.push_str(ELLIPSIS);
    out
}

/// Returns a source line, and a line with a caret below its code point `column`, counted from 0.
///
/// A source longer than `max` columns is truncated on both sides of the caret. Upstream counts code points, whereas a
/// terminal needs columns.
pub(crate) fn point(source: &str, column: usize, max: usize) -> (String, String) {
    let source = clean(source);
    let mut graphemes = Vec::new();
    let (mut total, mut caret, mut n_chars) = (0, None, 0);
    for grapheme in source.graphemes(true) {
        n_chars += grapheme.chars().count();
        if n_chars > column && caret.is_none() {
            caret = Some(total);
        }
        graphemes.push((total, grapheme));
        total += width(grapheme);
    }
    let caret = caret.unwrap_or(total);
    if total.max(caret + 1) <= max {
        return (source, format!("{}^", ".".repeat(caret)));
    }

    // One column at each end is for the ellipsis.
    let room = max.saturating_sub(2 * width(ELLIPSIS)).max(1);
    let from = caret
        .saturating_sub(room / 2)
        .min((total + 1).saturating_sub(room));
    let mut shown = String::new();
    let mut start = None;
    let mut is_cut = false;
    for (at, grapheme) in graphemes {
        if at < from {
            continue;
        }
        let first = *start.get_or_insert(at);
        if at + width(grapheme) > first + room {
            is_cut = true;
            break;
        }
        shown.push_str(grapheme);
    }
    let start = start.unwrap_or(from);
    let mark = if start > 0 { ELLIPSIS } else { "" };
    let dots = ".".repeat(width(mark) + caret.saturating_sub(start));
    (
        format!("{mark}{shown}{}", if is_cut { ELLIPSIS } else { "" }),
        format!("{dots}^"),
    )
}

/// Returns a hint with the names of variables or fields. Returns `None` if there are no names, or more than
/// [`MAX_NAMES`].
pub(crate) fn names_hint(noun: &str, names: &mut Vec<&str>) -> Option<String> {
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [] => None,
        [only] => Some(format!("the only {noun} is `{only}`")),
        names if names.len() <= MAX_NAMES => Some(format!("the {noun}s are {}", names.join(", "))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_does_not_split_graphemes() {
        assert_eq!(cut("replicas", 8), "replicas");
        assert_eq!(cut("replicas!", 8), "replica…");
        // A family of four is one grapheme of two columns. A flag consists of two code points.
        assert_eq!(cut("a👨‍👩‍👧‍👦bcd", 4), "a👨‍👩‍👧‍👦…");
        assert_eq!(cut("a👨‍👩‍👧‍👦bcd", 3), "a…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn wrapped_text_breaks_between_words_and_in_long_words() {
        assert_eq!(wrap("one two three", 8, 9, "  "), ["one two", "  three"]);
        assert_eq!(
            wrap("one two three four", 8, 2, "  "),
            ["one two", "  three…"]
        );
        assert_eq!(
            wrap("abcdefghij kl", 6, 9, "  "),
            ["abcdef", "  ghij", "  kl"]
        );
        assert_eq!(wrap("漢字漢字", 5, 9, ""), ["漢字", "漢字"]);
        assert_eq!(wrap("漢字", 1, 9, ""), ["漢", "字"]);
        assert_eq!(wrap(" \n ", 5, 9, ""), Vec::<String>::new());
        assert_eq!(wrap(" a  b\n\n  c ", 9, 9, ""), ["a  b    c"]);
        assert_eq!(
            wrap("one  two   three", 9, 9, "  "),
            ["one  two", "  three"]
        );
        assert_eq!(wrap("a             b", 5, 9, ""), ["a", "b"]);
        assert_eq!(wrap("a b", usize::MAX, usize::MAX, ""), ["a b"]);
    }

    #[test]
    fn wrapped_text_keeps_width_and_content() {
        let text =
            "paramKind rules.example.com/v1 ReplicaLimit is not served; ÜÜÜ 👩‍🚀👩‍🚀 漢字漢字漢字";
        for max in 4..60 {
            let lines = wrap(text, max, usize::MAX, "  ");
            assert!(
                lines.iter().all(|line| width(line) <= max),
                "{max}: {lines:?}"
            );
            let joined: String = lines.concat().split_whitespace().collect();
            assert_eq!(joined, text.split_whitespace().collect::<String>(), "{max}");
            for n_lines in 1..4 {
                let lines = wrap(text, max, n_lines, "  ");
                assert!(lines.len() <= n_lines, "{max}: {lines:?}");
                assert!(
                    lines.iter().all(|line| width(line) <= max),
                    "{max}: {lines:?}"
                );
            }
        }
    }

    #[test]
    fn text_is_wrapped_in_linear_time() {
        let n_words = 40_000;
        for text in ["word ".repeat(n_words), "w".repeat(5 * n_words)] {
            for max in [80, usize::MAX] {
                let n_letters: usize = wrap(&text, max, usize::MAX, "  ")
                    .iter()
                    .map(|line| line.matches('w').count())
                    .sum();
                assert_eq!(n_letters, text.matches('w').count());
            }
        }
    }

    #[test]
    fn caret_is_placed_below_column() {
        #[track_caller]
        fn check(source: &str, column: usize, max: usize, line: &str, caret: &str) {
            assert_eq!(
                point(source, column, max),
                (line.to_owned(), caret.to_owned())
            );
        }
        check(
            "object.spec.replica <= 5",
            11,
            40,
            "object.spec.replica <= 5",
            "...........^",
        );
        check(
            "a == '漢' && b.c",
            13,
            40,
            "a == '漢' && b.c",
            "..............^",
        );
        check("1 +", 3, 40, "1 +", "...^");
        check("0123456789abcdefghij", 10, 12, "…56789abcde…", "......^");
        check("0123456789abcdefghij", 0, 12, "0123456789…", "^");
        check("0123456789abcdefghij", 19, 12, "…bcdefghij", ".........^");
        check("0123456789abcdefghij", 20, 12, "…bcdefghij", "..........^");
        check("a\tb\u{1b}[31m", 2, 40, "a b␛[31m", "..^");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}c\nd"), "a␛[2Jb\u{fffd}c d");
        let all: String = (0..=0x2100).filter_map(char::from_u32).collect();
        assert!(clean(&all).chars().all(|c| !c.is_control()));
    }
}
