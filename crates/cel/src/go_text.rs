//! Go's string functions: quoting, and decoding of invalid UTF-8.
//!
//! Go's strings are byte sequences. If a Go string with invalid UTF-8 is converted to a CEL string, each invalid byte
//! becomes U+FFFD. Go also counts each invalid byte as one code point.
//!
//! Source: Go `strconv/quote.go` (`Quote`), `unicode/utf8` (`DecodeRune`).

use std::fmt::Write;

use regexp::is_printable;

/// Quotes a string with double quotes and escapes non-printable characters.
///
/// Source: Go `strconv/quote.go`, `Quote`.
#[must_use]
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// Quotes bytes that may be invalid UTF-8, like [`quote`].
#[must_use]
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::with_capacity(bytes.len() + 2);
    quoted.push('"');
    for chunk in bytes.utf8_chunks() {
        chunk
            .valid()
            .chars()
            .for_each(|c| push_escaped(&mut quoted, c));
        for byte in chunk.invalid() {
            push_hex(&mut quoted, *byte);
        }
    }
    quoted.push('"');
    quoted
}

fn push_hex(quoted: &mut String, byte: u8) {
    // Writing to a `String` cannot fail.
    let _ = write!(quoted, "\\x{byte:02x}");
}

fn push_escaped(quoted: &mut String, c: char) {
    match c {
        '"' => quoted.push_str("\\\""),
        '\\' => quoted.push_str("\\\\"),
        c if is_printable(c) => quoted.push(c),
        '\u{7}' => quoted.push_str("\\a"),
        '\u{8}' => quoted.push_str("\\b"),
        '\u{c}' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\u{b}' => quoted.push_str("\\v"),
        '\0'..' ' | '\u{7f}' => push_hex(quoted, u8::try_from(c).unwrap_or_default()),
        '\u{80}'..='\u{ffff}' => {
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        }
        _ => {
            let _ = write!(quoted, "\\U{:08x}", u32::from(c));
        }
    }
}

/// Decodes `bytes`, replacing each invalid byte with U+FFFD.
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_quoted_strings_agree_with_go() {
        assert_eq!(quote("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(
            quote("\u{7}\u{8}\u{c}\n\r\t\u{b}\0\u{1f}\u{7f}"),
            r#""\a\b\f\n\r\t\v\x00\x1f\x7f""#
        );
        assert_eq!(
            quote("\u{e9}\u{1f600}\u{fffd}"),
            "\"\u{e9}\u{1f600}\u{fffd}\""
        );
        assert_eq!(
            quote("\u{a0}\u{200b}\u{e000}\u{10ffff}"),
            r#""\u00a0\u200b\ue000\U0010ffff""#
        );
        assert_eq!(quote_bytes(b"a\xe2\x82z\xff"), r#""a\xe2\x82z\xff""#);
    }

    #[test]
    fn invalid_byte_is_decoded_as_replacement_character() {
        assert_eq!(decode(b"a\xe2\x82z\xff"), "a\u{fffd}\u{fffd}z\u{fffd}");
        assert_eq!(decode("\u{e9}".as_bytes()), "\u{e9}");
    }
}
