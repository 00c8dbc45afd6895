//! Source positions of the characters of a scalar.

use std::ops::Range;

use super::cursor::Cursor;
use super::text::{BlockHeader, Written, block_lines, plain, quoted};
use super::{Style, json};

/// Returns the byte index in `source` of each character of `value`. Returns an empty list if the scalar at `span` does
/// not have this value.
#[must_use]
pub fn written(source: &str, span: Range<usize>, style: Style, value: &str) -> Vec<usize> {
    let text = source.get(..span.end).unwrap_or(source);
    let mut into = Written::with_places();
    // `text` ends where the scalar ends, so the scan cannot continue into the next token.
    let mut cursor = Cursor::new(text, span.start, 1);
    let block = |indent: u32, is_literal: bool, into: &mut Written| {
        let is_break = |c: &char| matches!(c, '\n' | '\u{2028}' | '\u{2029}');
        for character in value.chars().take_while(is_break) {
            into.push(character, span.start);
        }
        let indent = usize::try_from(indent).unwrap_or(usize::MAX);
        let mut cursor = Cursor::new(text, span.start, indent);
        let header = BlockHeader {
            keeps: true,
            ..BlockHeader::default()
        };
        let mut breaks = Vec::new();
        block_lines(&mut cursor, indent, is_literal, &mut breaks, into, header).map(|_| ())
    };
    let read = match style {
        Style::Plain => plain(text, &mut cursor, false, 0, &mut into).map(|_| ()),
        Style::SingleQuoted | Style::DoubleQuoted => quoted(text, &mut cursor, &mut into),
        Style::Literal { indent } => block(indent, true, &mut into),
        Style::Folded { indent } => block(indent, false, &mut into),
        Style::Json => {
            let raw = text.get(span.start..).unwrap_or_default();
            for (character, offset) in json::characters(raw) {
                into.push(character, span.start + offset);
            }
            Ok(())
        }
    };
    let mut places = into.places.unwrap_or_default();
    // The span excludes trailing line breaks. They get the position of the end of the span.
    let rest = value.strip_prefix(into.text.as_str());
    match (read, rest) {
        (Ok(()), Some(rest)) => {
            places.extend(rest.chars().map(|_| span.end));
            places
        }
        _ => Vec::new(),
    }
}
