//! Converts byte offsets in the replacement of an edit to offsets in the replaced part.

/// Converts a byte offset in a repaired text to an offset in the original text. A repair adds quotes, backslashes and
/// indentation, or replaces tabs and outer quotes.
pub(super) fn byte_of_repaired(written: &str, repaired: &str, byte: usize) -> usize {
    let mut rest = written.chars().peekable();
    let mut at = 0;
    for c in repaired.get(..byte).unwrap_or(repaired).chars() {
        let is_replaced =
            |old: &char| *old == '\t' && c != ' ' || c.is_alphanumeric() && "'\"".contains(*old);
        while let Some(old) = rest.next_if(is_replaced) {
            at += old.len_utf8();
        }
        at += rest.next_if_eq(&c).map_or(0, char::len_utf8);
    }
    at
}

/// Converts a byte offset in `object` to an offset in the list `written`, which became the only field of `object`. In
/// block style, the list starts on the second line of the object, and its lines have more indentation.
pub(super) fn byte_of_field(written: &str, object: &str, byte: usize) -> usize {
    if let Some(start) = object.find(written) {
        return byte
            .saturating_sub(start)
            .min(written.len().saturating_sub(1));
    }
    let before = object.get(..byte).unwrap_or(object);
    let n_line = before.matches('\n').count();
    let line = object.split('\n').nth(n_line).unwrap_or_default();
    let column = before.rsplit('\n').next().map_or(0, str::len);
    let Some(n_line) = n_line.checked_sub(1) else {
        return 0;
    };
    let lines = written.split_inclusive('\n');
    let start: usize = lines.take(n_line).map(str::len).sum();
    let written_line = written.split('\n').nth(n_line).unwrap_or_default();
    let n_indented = line.len().saturating_sub(written_line.len());
    start + column.saturating_sub(n_indented)
}

/// Maximum length of compared text, in bytes.
const MAX_COMPARED: usize = 8;

/// Returns the byte offset in `written` at which the text begins that follows `byte` in `replacement`. If this text
/// occurs several times, the `n`th occurrence in `written` corresponds to the `n`th occurrence in `replacement`. `None`
/// if the numbers of occurrences differ.
pub(super) fn byte_of_same(written: &str, replacement: &str, byte: usize) -> Option<usize> {
    let rest = replacement.get(byte..)?;
    let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| *end <= MAX_COMPARED).last()?;
    let same = rest.get(..end)?;
    let starts = |text: &str| -> Vec<usize> {
        let starts = text.match_indices(same).map(|(at, _)| at);
        starts.collect()
    };
    let (old, new) = (starts(written), starts(replacement));
    let n = new.iter().position(|start| *start == byte)?;
    (old.len() == new.len()).then(|| old.get(n).copied())?
}
