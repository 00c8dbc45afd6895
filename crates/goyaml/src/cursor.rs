//! A cursor over the source, and the character classes of YAML's grammar.
//!
//! Source: `go.yaml.in/yaml/v2` `yamlprivateh.go` (`is_alpha`, `is_blank`, `is_break`) and `readerc.go`
//! (`yaml_parser_update_buffer`).

#[derive(Clone, Copy, Debug)]
pub(super) struct Break {
    /// The character for the line break in the decoded value: a line feed, unless the line break is a Unicode line or
    /// paragraph separator.
    pub(super) character: char,
    /// Byte index of the line break.
    pub(super) offset: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    pub(super) offset: usize,
    /// Number of characters before the position on the same line.
    pub(super) column: usize,
    /// Number of line breaks before the position.
    pub(super) line: usize,
    /// Number of characters before the position.
    pub(super) index: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str, offset: usize, column: usize) -> Self {
        Self {
            text,
            offset,
            column,
            line: 0,
            index: 0,
        }
    }

    /// Returns the byte at offset `n` from the position. Returns 0 after the end. The source contains no NUL.
    pub(super) fn byte(&self, n: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.offset + n).copied().unwrap_or(0)
    }

    pub(super) fn is_end(&self) -> bool {
        self.offset >= self.text.len()
    }

    pub(super) fn is_blank(&self, n: usize) -> bool {
        matches!(self.byte(n), b' ' | b'\t')
    }

    /// Returns the length of the line break at offset `n` from the position, or 0.
    ///
    /// Before parsing, kubectl strips the carriage return from the end of each line. Two carriage returns before a line
    /// feed are therefore a single line break.
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

    /// Returns true if the current byte is a letter, a digit, `_` or `-`.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.byte(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    /// Returns true if the cursor is at a document start or end marker.
    pub(super) fn is_document_marker(&self) -> bool {
        self.column == 0
            && (self.rest().starts_with("---") || self.rest().starts_with("..."))
            && self.is_blank_or_end(3)
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.offset).unwrap_or_default()
    }

    pub(super) fn advance(&mut self) {
        let width = match self.byte(0) {
            0 if self.is_end() => 0,
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        self.offset += width;
        self.column += 1;
        self.index += 1;
    }

    pub(super) fn advance_by(&mut self, n: usize) {
        for _ in 0..n {
            self.advance();
        }
    }

    /// Advances past a line break and returns it. Returns `None` if the cursor is not at a line break.
    pub(super) fn advance_line(&mut self) -> Option<Break> {
        let offset = self.offset;
        let len = self.break_len(0);
        let character = match (self.byte(0), self.byte(2)) {
            (0xe2, 0xa8) => '\u{2028}',
            (0xe2, _) => '\u{2029}',
            _ => '\n',
        };
        if len == 0 {
            return None;
        }
        self.offset += len;
        self.column = 0;
        self.line += 1;
        self.index += 1;
        Some(Break { character, offset })
    }

    /// At the end of the source, moves to the start of the next line if the last line has no line break.
    pub(super) fn end_line(&mut self) {
        if self.column > 0 {
            self.column = 0;
            self.line += 1;
        }
    }

    /// Advances past visible ASCII characters that `is_wanted` accepts. This is the fast path for most characters of a
    /// source. None of these characters is a line break, so the line number does not change.
    pub(super) fn advance_visible(&mut self, is_wanted: impl Fn(u8) -> bool) {
        let rest = self.rest().as_bytes();
        let is_other = |byte: &u8| !(matches!(byte, 0x20..=0x7e) && is_wanted(*byte));
        let n = rest.iter().position(is_other).unwrap_or(rest.len());
        self.offset += n;
        self.column += n;
        self.index += n;
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.advance();
        }
    }

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

/// Returns the first character that YAML does not allow, with its byte index.
pub(super) fn forbidden(text: &str) -> Option<(usize, char)> {
    let is_plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e);
    // Fast path: most sources contain only plain characters. Bytes are tested in chunks, which is faster than one by
    // one.
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
