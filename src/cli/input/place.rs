//! Places in files: lines and columns of bytes, and of the code points of a text that is written as a
//! YAML scalar.

use std::ops::Range;

use super::yaml::Style;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in code points, from 1.
    pub column: usize,
}

impl Place {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// The text of a file, by lines.
#[derive(Debug)]
pub struct SourceText {
    /// The name, as its path was given or found; `<stdin>` for standard input.
    pub name: String,
    text: String,
    line_starts: Vec<usize>,
    /// How many code points begin before each block of bytes: a file may have one line only, and thousands
    /// of places in it.
    before_block: Vec<usize>,
}

/// The bytes after which code points are counted.
const BLOCK: usize = 1024;

/// Reports whether a code point begins with the byte.
fn is_start(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

impl SourceText {
    /// Indexes `text`.
    #[must_use]
    pub fn new(name: String, text: String) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut n_before = 0;
        let blocks = text.as_bytes().chunks(BLOCK).map(|block| {
            let before = n_before;
            n_before += block.iter().filter(|byte| is_start(**byte)).count();
            before
        });
        let before_block = blocks.collect();
        Self {
            name,
            text,
            line_starts,
            before_block,
        }
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the byte `byte`; what is beyond the end is at the end.
    #[must_use]
    pub fn place(&self, byte: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = line
            .checked_sub(1)
            .and_then(|idx| self.line_starts.get(idx))
            .copied()
            .unwrap_or(0);
        let n_before = self.n_before(byte).saturating_sub(self.n_before(start));
        Place {
            line: line.max(1),
            column: n_before + 1,
        }
    }

    /// How many code points begin before the byte `byte`.
    fn n_before(&self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        let block = (byte / BLOCK).min(self.before_block.len().saturating_sub(1));
        let n_before = self.before_block.get(block).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(block * BLOCK..byte);
        let starts = rest.unwrap_or_default().iter().filter(|b| is_start(**b));
        n_before + starts.count()
    }

    /// The byte at which the code point `n` of the text begins; the end where there is none.
    fn byte_of(&self, n: usize) -> usize {
        let behind = self.before_block.partition_point(|before| *before <= n);
        let block = behind.saturating_sub(1);
        let n_before = self.before_block.get(block).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(block * BLOCK..);
        let mut starts = rest.unwrap_or_default().iter().enumerate();
        let mut starts = starts.by_ref().filter(|(_, byte)| is_start(**byte));
        let found = starts.nth(n - n_before.min(n));
        found.map_or(self.text.len(), |(at, _)| block * BLOCK + at)
    }

    /// The line `line`, from 1, without its line break: `max` code points of it, from the one at `skipped`
    /// on.
    #[must_use]
    pub fn part_of_line(&self, line: usize, skipped: usize, max: usize) -> &str {
        let start = line.checked_sub(1);
        let Some(start) = start.and_then(|idx| self.line_starts.get(idx)).copied() else {
            return "";
        };
        let end = self.line_starts.get(line).copied();
        let end = end.unwrap_or(self.text.len());
        let first = self.n_before(start).saturating_add(skipped);
        let from = self.byte_of(first).min(end);
        let to = self.byte_of(first.saturating_add(max)).min(end);
        let part = self.text.get(from..to).unwrap_or_default();
        let part = part.strip_suffix('\n').unwrap_or(part);
        part.strip_suffix('\r').unwrap_or(part)
    }

    /// The line `line`, from 1, without its line break.
    #[must_use]
    pub fn line(&self, line: usize) -> &str {
        self.part_of_line(line, 0, usize::MAX)
    }
}

/// Reports whether YAML may fold, strip or add the character.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// The bytes of `raw`, a scalar as it is written, at which the code points of its text `value` stand, and
/// that of its end; a blank is behind the character before it.
///
/// White space is what YAML changes: it folds lines, strips indents, chomps ends. All other characters
/// are in the value as they are written, one by one, escapes aside. Where the two do not match after
/// all, nothing is told of what comes then.
#[must_use]
pub fn locate(raw: &str, style: Style, value: &str) -> Vec<usize> {
    let Some(written) = written(raw, style) else {
        return Vec::new();
    };
    let mut bytes = Vec::with_capacity(value.len() + 1);
    let mut solid = written.iter();
    // Behind the last character, and how far its line goes on in blanks.
    let (mut last, mut n_room) = (None, 0);
    let mut n_blanks = 0;
    let behind = |last: Option<usize>, n: usize| match last {
        Some(last) => last + n,
        None => written.first().map_or(0, |(_, bytes)| bytes.start),
    };
    for character in value.chars() {
        if is_blank(character) {
            bytes.push(behind(last, n_room.min(n_blanks)));
            n_blanks += 1;
            continue;
        }
        let Some((found, at)) = solid.next() else {
            return bytes;
        };
        if *found != character {
            return bytes;
        }
        bytes.push(at.start);
        last = Some(at.end);
        let rest = raw.get(at.end..).unwrap_or_default().bytes();
        n_room = rest.take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        n_blanks = 0;
    }
    bytes.push(behind(last, n_room.min(n_blanks)));
    bytes
}

/// The characters of a scalar that are not blank, with their bytes.
fn written(raw: &str, style: Style) -> Option<Vec<(char, Range<usize>)>> {
    let solid = |from: usize, text: &str| {
        text.char_indices()
            .filter(|(_, character)| !is_blank(*character))
            .map(|(at, character)| (character, from + at..from + at + character.len_utf8()))
            .collect::<Vec<_>>()
    };
    match style {
        // The place of a block is that of its content, without the indicator.
        Style::Plain | Style::Block => Some(solid(0, raw)),
        Style::SingleQuoted => {
            let mut found = solid(1, raw.strip_prefix('\'')?.strip_suffix('\'')?);
            let mut is_escape = false;
            found.retain(|(character, _)| {
                is_escape = *character == '\'' && !is_escape;
                !is_escape
            });
            Some(found)
        }
        Style::DoubleQuoted => double_quoted(raw.strip_prefix('"')?.strip_suffix('"')?),
    }
}

/// The same for what stands between double quotation marks.
///
/// Source: YAML 1.2.2, section 5.7, "Escaped Characters".
fn double_quoted(content: &str) -> Option<Vec<(char, Range<usize>)>> {
    let mut found = Vec::new();
    let mut chars = content.char_indices();
    while let Some((at, character)) = chars.next() {
        // The opening quotation mark is one byte.
        let start = at + 1;
        if character != '\\' {
            if !is_blank(character) {
                found.push((character, start..start + character.len_utf8()));
            }
            continue;
        }
        let (_, escape) = chars.next()?;
        let n_digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let decoded = if n_digits > 0 {
            let digits: String = chars.by_ref().take(n_digits).map(|(_, c)| c).collect();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        } else {
            match escape {
                '0' => '\0',
                'a' => '\u{7}',
                'b' => '\u{8}',
                't' => '\t',
                'n' => '\n',
                'v' => '\u{b}',
                'f' => '\u{c}',
                'r' => '\r',
                'e' => '\u{1b}',
                'N' => '\u{85}',
                '_' => '\u{a0}',
                'L' => '\u{2028}',
                'P' => '\u{2029}',
                other => other,
            }
        };
        if !is_blank(decoded) {
            let end = chars.offset() + 1;
            found.push((decoded, start..end));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    /// Checks that each character of `text` that is not blank is found where it stands.
    #[track_caller]
    fn check(yaml: &str, marked: &str) {
        let read = yaml::read(yaml, &mut yaml::Copies::default());
        let node = read.unwrap().unwrap();
        let node = node.get("a").unwrap();
        let yaml::Data::Scalar(value, style) = &node.data else {
            panic!("no scalar")
        };
        let value = value.as_str().unwrap();
        let raw = yaml.get(node.span.clone()).unwrap();
        let mut found = String::new();
        let bytes = locate(raw, *style, value);
        assert_eq!(
            bytes.len(),
            value.chars().count() + 1,
            "{value:?} in {raw:?}"
        );
        for (character, byte) in value.chars().zip(bytes.iter().copied()) {
            if !is_blank(character) {
                found.extend(raw.get(byte..).unwrap().chars().next());
            }
        }
        assert_eq!(found, marked, "{raw:?}");
        assert!(*bytes.last().unwrap() <= raw.len(), "{raw:?}");
    }

    #[test]
    fn characters_are_found_in_all_styles() {
        check("a: x == y", "x==y");
        check("a: x ==\n    y\n\n    z\nb: 1", "x==yz");
        check("a: 'it''s  é''\n  \n   b'", "it\'sé\'b");
        check(
            "a: \"x \\\"y\\\" \\n\\u00e9 \\\n   z\\\\ \\x41\"",
            "x\\y\\\\z\\\\",
        );
        check("a: |\n  x ==\n    y\n\n  z\n", "x==yz");
        check("a: |2-  # why\n    x ==\n  y", "x==y");
        check("a: >-\n  x ==\n  y\n\n    z\n  w\nb: |\n  q", "x==yzw");
        check("a: &x !!str |\n  é 漢 x", "é漢x");
    }

    #[test]
    fn the_end_is_behind_the_last_character() {
        let end = |raw, style, value| locate(raw, style, value).last().copied();
        assert_eq!(end("x == ", Style::Plain, "x == "), Some(5));
        assert_eq!(end("x ==\n", Style::Block, "x ==\n"), Some(4));
        assert_eq!(end("''", Style::SingleQuoted, ""), Some(0));
        assert_eq!(end("other", Style::Plain, "x"), None);
    }

    #[test]
    fn places_count_code_points() {
        let source = SourceText::new("f".to_owned(), "a\né: b\r\nc".to_owned());
        assert_eq!(source.place(0), Place::START);
        assert_eq!(source.place(4), Place { line: 2, column: 2 });
        assert_eq!(source.line(2), "é: b");
        assert_eq!(source.line(9), "");
        assert_eq!(source.place(99).line, 3);
    }

    #[test]
    fn parts_of_long_lines_are_found() {
        let long = "aé漢😀".repeat(1_000);
        let source = SourceText::new("f".to_owned(), format!("x\n{long}\r\ny"));
        for (skipped, max) in [(0, 3), (1_021, 7), (2_047, 2_048), (3_998, 9), (4_001, 5)] {
            let wanted: String = long.chars().skip(skipped).take(max).collect();
            assert_eq!(source.part_of_line(2, skipped, max), wanted);
        }
        assert_eq!(source.line(2), long);
        assert_eq!(source.line(3), "y");
        for (at, (byte, _)) in long.char_indices().enumerate() {
            assert_eq!(source.place(byte + 2).column, at + 1);
        }
    }
}
