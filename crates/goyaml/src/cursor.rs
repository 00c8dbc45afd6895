//! A place that moves through a text, and the classes of characters that YAML's grammar knows.
//!
//! Source: `go.yaml.in/yaml/v2` `yamlprivateh.go` (`is_alpha`, `is_blank`, `is_break`) and `readerc.go`
//! (`yaml_parser_update_buffer`).

/// A line break in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Break {
    /// The character that it is in a value: a line feed, or a separator of lines or paragraphs of Unicode, which stays.
    pub(super) character: char,
    /// The byte at which it begins.
    pub(super) at: usize,
}

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    /// The byte.
    pub(super) at: usize,
    /// How many characters begin before it in its line.
    pub(super) column: usize,
    /// How many line breaks are before it.
    pub(super) line: usize,
    /// How many characters begin before it.
    pub(super) index: usize,
}

impl<'a> Cursor<'a> {
    /// The place at the byte `at` of `text`, which is at the column `column`.
    pub(super) fn new(text: &'a str, at: usize, column: usize) -> Self {
        Self {
            text,
            at,
            column,
            line: 0,
            index: 0,
        }
    }

    /// The byte `n` bytes from here; 0 behind the end, and nowhere else.
    pub(super) fn byte(&self, n: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.at + n).copied().unwrap_or(0)
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(super) fn is_blank(&self, n: usize) -> bool {
        matches!(self.byte(n), b' ' | b'\t')
    }

    /// The bytes of the line break that is `n` bytes from here, or 0.
    ///
    /// kubectl takes the carriage return off the end of each line before it reads it as YAML, so that two of
    /// them before a line feed are still one line break.
    fn break_len(&self, n: usize) -> usize {
        match self.byte(n) {
            b'\r' if self.byte(n + 1) == b'\n' => 2,
            b'\r' if self.byte(n + 1) == b'\r' && self.byte(n + 2) == b'\n' => 3,
            b'\n' | b'\r' => 1,
            0xc2 if self.byte(n + 1) == 0x85 => 2,
            0xe2 if self.byte(n + 1) == 0x80 && matches!(self.byte(n + 2), 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    pub(super) fn is_break(&self, n: usize) -> bool {
        self.break_len(n) > 0
    }

    pub(super) fn is_break_or_end(&self, n: usize) -> bool {
        self.byte(n) == 0 || self.is_break(n)
    }

    pub(super) fn is_blank_or_end(&self, n: usize) -> bool {
        self.is_blank(n) || self.is_break_or_end(n)
    }

    /// Reports whether a letter, a digit, `_` or `-` is here.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.byte(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    /// Reports whether the document ends here, or another begins.
    pub(super) fn is_document_marker(&self) -> bool {
        self.column == 0
            && (self.rest().starts_with("---") || self.rest().starts_with("..."))
            && self.is_blank_or_end(3)
    }

    /// The text from here on.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text from the byte `start` up to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Goes behind the character that is here.
    pub(super) fn advance(&mut self) {
        let width = match self.byte(0) {
            0 if self.is_end() => 0,
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        self.at += width;
        self.column += 1;
        self.index += 1;
    }

    pub(super) fn advance_by(&mut self, n: usize) {
        for _ in 0..n {
            self.advance();
        }
    }

    /// Goes behind the line break that is here, if one is.
    pub(super) fn advance_line(&mut self) -> Option<Break> {
        let at = self.at;
        let len = self.break_len(0);
        let character = match (self.byte(0), self.byte(2)) {
            (0xe2, 0xa8) => '\u{2028}',
            (0xe2, _) => '\u{2029}',
            _ => '\n',
        };
        if len == 0 {
            return None;
        }
        self.at += len;
        self.column = 0;
        self.line += 1;
        self.index += 1;
        Some(Break { character, at })
    }

    /// Goes to the next line at the end of the text, though there is none.
    pub(super) fn end_line(&mut self) {
        if self.column > 0 {
            self.column = 0;
            self.line += 1;
        }
    }

    /// Goes behind the visible ASCII characters that are here, as long as `is_wanted` takes them: most of a text is
    /// of these, and they are no line breaks.
    pub(super) fn advance_visible(&mut self, is_wanted: impl Fn(u8) -> bool) {
        let rest = self.rest().as_bytes();
        let is_other = |byte: &u8| !(matches!(byte, 0x20..=0x7e) && is_wanted(*byte));
        let n = rest.iter().position(is_other).unwrap_or(rest.len());
        self.at += n;
        self.column += n;
        self.index += n;
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.advance();
        }
    }

    /// Goes to the end of the line if a comment is here.
    pub(super) fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            self.advance_visible(|_| true);
            while !self.is_break_or_end(0) {
                self.advance();
                self.advance_visible(|_| true);
            }
        }
    }
}

/// The first character of `text` that YAML does not allow, with its byte.
pub(super) fn forbidden(text: &str) -> Option<(usize, char)> {
    let is_plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e);
    // Most texts have no others: bytes are faster to look at than characters, and many of them than one.
    let are_plain = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & is_plain(*byte));
    if text.as_bytes().chunks(256).all(are_plain) {
        return None;
    }
    text.char_indices().find(|(_, character)| {
        !matches!(
            character,
            '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..
        )
    })
}
