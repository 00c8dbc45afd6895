//! Locations in files: converts byte offsets, and the code points of YAML scalars, to lines and columns.

use std::ops::Range;

use goyaml::Style;

/// A location in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// The content of a file, indexed for the conversion of byte offsets to lines and columns.
#[derive(Debug)]
pub struct SourceText {
    /// The path of the file; `<stdin>` for standard input.
    pub name: String,
    text: String,
    has_byte_order_mark: bool,
    /// True if the content is ASCII, so each code point is one byte.
    is_ascii: bool,
    line_starts: Vec<usize>,
    /// The number of code points before each block of bytes. This index makes conversions fast in a file with one long
    /// line.
    before_block: Vec<usize>,
}

/// The size of a block, in bytes.
const BLOCK: usize = 1024;

/// Returns true if the byte starts a code point.
fn is_start(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

impl SourceText {
    /// Indexes the content, and removes its byte order mark.
    #[must_use]
    pub fn new(name: String, text: String) -> Self {
        let (text, has_byte_order_mark) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (rest.to_owned(), true),
            None => (text, false),
        };
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut n_before = 0;
        let is_ascii = text.is_ascii();
        let blocks = text.as_bytes().chunks(BLOCK).map(|block| {
            let before = n_before;
            n_before += if is_ascii {
                block.len()
            } else {
                block.iter().filter(|byte| is_start(**byte)).count()
            };
            before
        });
        let before_block = blocks.collect();
        Self {
            name,
            text,
            has_byte_order_mark,
            is_ascii,
            line_starts,
            before_block,
        }
    }

    /// Returns the whole content.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the file has a byte order mark.
    #[must_use]
    pub fn has_byte_order_mark(&self) -> bool {
        self.has_byte_order_mark
    }

    /// Returns the location of a byte offset, or of the end of the file if the offset is larger.
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

    /// Returns the number of code points before a byte offset.
    fn n_before(&self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        if self.is_ascii {
            return byte;
        }
        let block = (byte / BLOCK).min(self.before_block.len().saturating_sub(1));
        let n_before = self.before_block.get(block).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(block * BLOCK..byte);
        let starts = rest.unwrap_or_default().iter().filter(|b| is_start(**b));
        n_before + starts.count()
    }

    /// Returns the byte offset of the code point `n`, or the end of the file.
    fn byte_of(&self, n: usize) -> usize {
        let next_block = self.before_block.partition_point(|before| *before <= n);
        let block = next_block.saturating_sub(1);
        let n_before = self.before_block.get(block).copied().unwrap_or(0);
        let rest = self.text.as_bytes().get(block * BLOCK..);
        let mut starts = rest.unwrap_or_default().iter().enumerate();
        let mut starts = starts.by_ref().filter(|(_, byte)| is_start(**byte));
        let start = starts.nth(n - n_before.min(n));
        start.map_or(self.text.len(), |(at, _)| block * BLOCK + at)
    }

    /// Returns the byte offset of a location. A location after the end of the file becomes the end.
    #[must_use]
    pub fn byte_at(&self, place: Place) -> usize {
        let line = place.line.checked_sub(1);
        let start = line.and_then(|line| self.line_starts.get(line)).copied();
        let start = start.unwrap_or(self.text.len());
        self.byte_of(self.n_before(start) + place.column.saturating_sub(1))
    }

    /// Returns up to `max` code points of a line, after the first `skipped` ones. Lines count from 1.
    ///
    /// The result does not include the line break.
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

    /// Returns the line `line`, from 1, without its line break.
    #[must_use]
    pub fn line(&self, line: usize) -> &str {
        self.part_of_line(line, 0, usize::MAX)
    }
}

/// Returns the byte offsets of the characters of `value` and of its end, relative to the start of the scalar at `span`
/// of `source`.
///
/// A space from a folded line break has the offset of the line break. The end offset is before trailing line breaks.
/// The result is empty if the scalar at `span` is not `value`.
#[must_use]
pub fn locate(source: &str, span: &Range<usize>, style: Style, value: &str) -> Vec<usize> {
    let mut bytes = goyaml::written(source, span.clone(), style, value);
    if bytes.is_empty() {
        return bytes;
    }
    let n_breaks = value.chars().rev().take_while(|c| *c == '\n').count();
    let end = match bytes.len().checked_sub(n_breaks) {
        Some(first) if n_breaks > 0 => bytes.get(first).copied().unwrap_or(span.end),
        _ => match style {
            Style::SingleQuoted | Style::DoubleQuoted | Style::Json => span.end.saturating_sub(1),
            Style::Plain | Style::Literal { .. } | Style::Folded { .. } => span.end,
        },
    };
    bytes.push(end);
    for byte in &mut bytes {
        *byte = byte.saturating_sub(span.start);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that `locate` finds the characters of a value that are not white space.
    #[track_caller]
    fn check(yaml: &str, marked: &str) {
        let read = goyaml::read(yaml, &mut goyaml::Copies::default());
        let node = read.unwrap().unwrap();
        let node = node.get("a").unwrap();
        let goyaml::Data::Scalar(value, style) = &node.data else {
            panic!("no scalar")
        };
        let value = value.as_str().unwrap();
        let raw = yaml.get(node.span.clone()).unwrap();
        let mut characters = String::new();
        let bytes = locate(yaml, &node.span, *style, value);
        assert_eq!(
            bytes.len(),
            value.chars().count() + 1,
            "{value:?} in {raw:?}"
        );
        for (character, byte) in value.chars().zip(bytes.iter().copied()) {
            if !character.is_whitespace() {
                characters.extend(raw.get(byte..).unwrap().chars().next());
            }
        }
        assert_eq!(characters, marked, "{raw:?}");
        assert!(*bytes.last().unwrap() <= raw.len(), "{raw:?}");
    }

    #[test]
    fn characters_are_located_in_all_styles() {
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
    fn located_text_ends_after_last_character() {
        let end = |raw: &str, style, value| locate(raw, &(0..raw.len()), style, value).pop();
        let literal = Style::Literal { indent: 2 };
        assert_eq!(end("x ==", Style::Plain, "x =="), Some(4));
        assert_eq!(end("x ==", literal, "x ==\n"), Some(4));
        assert_eq!(end("x ==  ", literal, "x ==  "), Some(6));
        assert_eq!(end("'x '", Style::SingleQuoted, "x "), Some(3));
        assert_eq!(end("''", Style::SingleQuoted, ""), None);
        assert_eq!(end("other", Style::Plain, "x"), None);
    }

    #[test]
    fn columns_count_code_points() {
        let source = SourceText::new("f".to_owned(), "a\né: b\r\nc".to_owned());
        assert_eq!(source.place(0), Place::START);
        assert_eq!(source.place(4), Place { line: 2, column: 2 });
        assert_eq!(source.line(2), "é: b");
        assert_eq!(source.line(9), "");
        assert_eq!(source.place(99).line, 3);
    }

    #[test]
    fn part_of_a_long_line_is_found() {
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
