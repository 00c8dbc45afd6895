//! Converts positions of the protocol to byte offsets of a file, and back.

use std::ops::Range as Bytes;

use gen_lsp_types::{Position, Range};

use crate::cli::input::{Place, SourceText};

/// The unit in which a position counts the characters of its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, which all clients support.
    #[default]
    Utf16,
    /// Code points.
    Utf32,
}

impl Encoding {
    /// The encodings by descending preference.
    pub(super) const ALL: [Self; 3] = [Self::Utf8, Self::Utf16, Self::Utf32];

    /// Returns the name in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    fn length(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Returns the number of units of a string.
    pub(super) fn units(self, text: &str) -> usize {
        text.chars().map(|c| self.length(c)).sum()
    }

    /// Returns the byte offset of the unit `n` in a line, or the end of the line.
    pub(super) fn byte_in_line(self, line: &str, n: usize) -> usize {
        let mut n_units = 0;
        for (at, c) in line.char_indices() {
            if n_units >= n
                || c == '\n'
                || c == '\r'
                    && line
                        .get(at + 1..)
                        .is_some_and(|rest| rest.starts_with('\n'))
            {
                return at;
            }
            n_units += self.length(c);
        }
        line.len()
    }
}

/// The byte order mark, which clients may send as a part of the first line.
const MARK: &str = "\u{feff}";

fn units_of_mark(source: &SourceText, line: u32, encoding: Encoding) -> usize {
    if line == 0 && source.has_byte_order_mark() {
        encoding.units(MARK)
    } else {
        0
    }
}

/// Converts a byte offset to a position.
pub(super) fn position(source: &SourceText, byte: usize, encoding: Encoding) -> Position {
    let byte = byte.min(source.text().len());
    let line = source.place(byte).line;
    let start = source.byte_at(Place { line, column: 1 });
    let before = source.text().get(start..byte).unwrap_or_default();
    let line = u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX);
    let units = encoding.units(before) + units_of_mark(source, line, encoding);
    Position {
        line,
        character: u32::try_from(units).unwrap_or(u32::MAX),
    }
}

/// Converts a range of bytes to a range of positions.
pub(super) fn range(source: &SourceText, bytes: &Bytes<usize>, encoding: Encoding) -> Range {
    Range {
        start: position(source, bytes.start, encoding),
        end: position(source, bytes.end, encoding),
    }
}

/// Converts a position to a byte offset. A position after the end of its line or of the file becomes that end.
pub(super) fn byte(source: &SourceText, position: Position, encoding: Encoding) -> usize {
    let line = usize::try_from(position.line).unwrap_or(usize::MAX);
    let line = line.saturating_add(1);
    let start = source.byte_at(Place { line, column: 1 });
    let next = source.byte_at(Place {
        line: line.saturating_add(1),
        column: 1,
    });
    let text = source.text().get(start..next).unwrap_or_default();
    let n = usize::try_from(position.character).unwrap_or(usize::MAX);
    let n = n.saturating_sub(units_of_mark(source, position.line, encoding));
    start + encoding.byte_in_line(text, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_in_each_encoding() {
        let text = "a: é😀x\r\nb: 漢\n\nlast";
        for text in [text.to_owned(), format!("\u{feff}{text}")] {
            let source = SourceText::new("f".to_owned(), text);
            for encoding in Encoding::ALL {
                for (at, c) in source.text().char_indices() {
                    if matches!(c, '\r' | '\n') {
                        continue;
                    }
                    let there = position(&source, at, encoding);
                    assert_eq!(byte(&source, there, encoding), at, "{encoding:?} {there:?}");
                }
            }
        }
    }

    #[test]
    fn position_counts_utf16_code_units() {
        let source = SourceText::new("f".to_owned(), "a😀b\nc".to_owned());
        let at = |encoding| position(&source, 5, encoding).character;
        assert_eq!(Encoding::ALL.map(at), [5, 3, 2]);
    }

    #[test]
    fn position_after_end_of_line_is_end_of_line() {
        let source = SourceText::new("f".to_owned(), "ab\r\ncd".to_owned());
        let at = |line, character| byte(&source, Position { line, character }, Encoding::Utf16);
        assert_eq!((at(0, 9), at(1, 9), at(7, 0)), (2, 6, 6));
    }
}
