//! The text of a document, with the changes of the client.

use gen_lsp_types::{Position, TextDocumentContentChangeEvent};

use super::positions::Encoding;

/// Applies changes in order. Returns the new text.
pub(super) fn changed(
    mut text: String,
    changes: &[TextDocumentContentChangeEvent],
    encoding: Encoding,
) -> String {
    for change in changes {
        match change {
            TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                let start = byte(&text, part.range.start, encoding);
                let end = byte(&text, part.range.end, encoding).max(start);
                text.replace_range(start..end, &part.text);
            }
            TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                text.clone_from(&whole.text);
            }
        }
    }
    text
}

/// Returns the byte offset of a position, or the nearest offset within the text.
fn byte(text: &str, position: Position, encoding: Encoding) -> usize {
    let line = usize::try_from(position.line).unwrap_or(usize::MAX);
    let start = match line.checked_sub(1) {
        None => 0,
        Some(n) => {
            let mut breaks = text.match_indices('\n');
            breaks.nth(n).map_or(text.len(), |(at, _)| at + 1)
        }
    };
    let rest = text.get(start..).unwrap_or_default();
    let n = usize::try_from(position.character).unwrap_or(usize::MAX);
    start + encoding.byte_in_line(rest, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, changes: serde_json::Value, expected: &str) {
        let changes: Vec<_> = serde_json::from_value(changes).unwrap();
        assert_eq!(
            changed(text.to_owned(), &changes, Encoding::Utf16),
            expected
        );
    }

    fn part(start: [u32; 2], end: [u32; 2], text: &str) -> serde_json::Value {
        let position = |[line, character]: [u32; 2]| json!({"line": line, "character": character});
        json!({"range": {"start": position(start), "end": position(end)}, "text": text})
    }

    #[test]
    fn changes_apply_in_order() {
        let changes = json!([part([0, 3], [0, 4], "x"), part([1, 0], [2, 0], "")]);
        check("a😀b\r\ncd\r\ne", changes, "a😀x\r\ne");
        check("a", json!([{"text": "b"}, part([0, 1], [0, 1], "c")]), "bc");
    }

    #[test]
    fn changes_beyond_end_of_text_or_line_apply_at_that_end() {
        check("a\n", json!([part([9, 9], [3, 1], "b")]), "a\nb");
        check("ab", json!([part([0, 2], [0, 1], "c")]), "abc");
        check("ab\r\nc", json!([part([0, 99], [0, 99], "!")]), "ab!\r\nc");
    }
}
