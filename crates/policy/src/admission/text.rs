//! Texts as Go writes them: quoted, as JSON, and several errors as one.

use std::fmt::Write;

pub(super) use cel::go_text::quote as go_quote;

fn write_escape(into: &mut String, escape: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = into.write_fmt(escape);
}

/// Writes `text` as a text of JSON, as Go's `encoding/json` does, which also escapes what HTML minds.
///
/// Source: Go `encoding/json` `appendString` with `escapeHTML`.
pub(super) fn push_go_json(into: &mut String, text: &str) {
    into.push('"');
    for char in text.chars() {
        match char {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\u{8}' => into.push_str("\\b"),
            '\u{c}' => into.push_str("\\f"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            '\0'..'\u{20}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write_escape(into, format_args!("\\u{:04x}", char as u32));
            }
            _ => into.push(char),
        }
    }
    into.push('"');
}

/// A list of texts as JSON.
pub(super) fn go_json_list(texts: &[String]) -> String {
    let mut list = String::from("[");
    for (n, text) in texts.iter().enumerate() {
        if n > 0 {
            list.push(',');
        }
        push_go_json(&mut list, text);
    }
    list.push(']');
    list
}

/// Several errors as one: repeats are left out, and brackets stand around more than one.
///
/// Source: apimachinery `pkg/util/errors/errors.go`, `aggregate.Error`.
pub(super) fn aggregate(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&&**error) {
            distinct.push(error);
        }
    }
    match &distinct[..] {
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The first `max` bytes of `text`; each byte of a character that this cuts becomes `U+FFFD`, as it
/// does where Go writes the text as JSON.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    cel::go_text::decode(text.as_bytes().get(..max).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_escapes_what_html_minds() {
        assert_eq!(
            go_json_list(&["<&>".to_owned(), "a\u{2028}\u{1f}\"".to_owned()]),
            r#"["\u003c\u0026\u003e","a\u2028\u001f\""]"#
        );
    }

    #[test]
    fn errors_are_told_once() {
        let errors = ["a".to_owned(), "b".to_owned(), "a".to_owned()];
        assert_eq!(aggregate(&errors), "[a, b]");
        assert_eq!(aggregate(&["a".to_owned(), "a".to_owned()]), "a");
    }

    #[test]
    fn a_character_that_is_cut_is_replaced_byte_by_byte() {
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 2), "a\u{fffd}");
        assert_eq!(cut("a🙂", 4), "a\u{fffd}\u{fffd}\u{fffd}");
    }
}
