//! Decodes scalars: line folding, escape sequences and block scalars. Also determines the source position of each
//! character.
//!
//! Source: `go.yaml.in/yaml/v2` `scannerc.go` (`yaml_parser_scan_plain_scalar`,
//! `yaml_parser_scan_flow_scalar`, `yaml_parser_scan_block_scalar`).

use super::ScanError;
use super::cursor::{Break, Cursor};

/// A decoded string and the source positions of its characters.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) text: String,
    /// Byte index of each character, if requested.
    pub(super) places: Option<Vec<usize>>,
}

impl Written {
    /// Creates an empty string that records the positions of its characters.
    pub(super) fn with_places() -> Self {
        Self {
            text: String::new(),
            places: Some(Vec::new()),
        }
    }

    /// Appends a character with the byte index `offset`.
    pub(super) fn push(&mut self, character: char, offset: usize) {
        self.text.push(character);
        if let Some(places) = &mut self.places {
            places.push(offset);
        }
    }

    /// Appends `text`, which the source contains verbatim at the byte `offset`.
    fn push_all(&mut self, text: &str, offset: usize) {
        self.text.push_str(text);
        if let Some(places) = &mut self.places {
            places.extend(text.char_indices().map(|(delta, _)| offset + delta));
        }
    }

    fn push_breaks(&mut self, breaks: &mut Vec<Break>) {
        for line_break in breaks.drain(..) {
            self.push(line_break.character, line_break.offset);
        }
    }
}

/// The blanks and line breaks between two words of a flow scalar.
#[derive(Debug, Default)]
struct Gap {
    /// Byte range of the blanks on the line of the preceding word.
    blanks: Option<(usize, usize)>,
    first: Option<Break>,
    others: Vec<Break>,
    has_breaks: bool,
}

impl Gap {
    fn blank(&mut self, cursor: &mut Cursor<'_>) {
        let offset = cursor.offset;
        cursor.advance();
        if !self.has_breaks {
            let start = self.blanks.map_or(offset, |(start, _)| start);
            self.blanks = Some((start, cursor.offset));
        }
    }

    fn line_break(&mut self, cursor: &mut Cursor<'_>) {
        let line_break = cursor.advance_line();
        if self.has_breaks {
            self.others.extend(line_break);
        } else {
            self.blanks = None;
            self.first = line_break;
            self.has_breaks = true;
        }
    }

    /// Appends the folded gap. A single line break becomes a space. If there are several line breaks, the first one is
    /// dropped.
    fn fold(&mut self, text: &str, into: &mut Written) {
        if self.has_breaks {
            match self.first.take() {
                Some(Break {
                    character: '\n',
                    offset,
                }) if self.others.is_empty() => into.push(' ', offset),
                Some(Break {
                    character: '\n', ..
                })
                | None => {}
                Some(Break { character, offset }) => into.push(character, offset),
            }
            into.push_breaks(&mut self.others);
            self.has_breaks = false;
        } else if let Some((start, end)) = self.blanks.take() {
            into.push_all(text.get(start..end).unwrap_or_default(), start);
        }
    }
}

/// The end of a plain scalar.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainEnd {
    /// Byte index after the scalar.
    pub(super) offset: usize,
    /// True if line breaks follow the scalar.
    pub(super) is_before_break: bool,
}

/// Scans a plain scalar. `text` is the whole source. `is_flow` is true within a flow collection. On lines after the
/// first, a tab before the column `indent` is an error.
pub(super) fn plain(
    text: &str,
    cursor: &mut Cursor<'_>,
    is_flow: bool,
    indent: usize,
    into: &mut Written,
) -> Result<PlainEnd, ScanError> {
    let mut gap = Gap::default();
    let mut end = cursor.offset;
    loop {
        if cursor.is_document_marker() || cursor.byte(0) == b'#' {
            break;
        }
        let start = cursor.offset;
        let is_inside =
            |byte| !matches!(byte, b' ' | b':' | b',' | b'?' | b'[' | b']' | b'{' | b'}');
        loop {
            cursor.advance_visible(is_inside);
            let byte = cursor.byte(0);
            if cursor.is_blank_or_end(0)
                || byte == b':' && cursor.is_blank_or_end(1)
                || is_flow && matches!(byte, b',' | b'?' | b'[' | b']' | b'{' | b'}')
            {
                break;
            }
            cursor.advance();
        }
        if cursor.offset > start {
            gap.fold(text, into);
            into.push_all(cursor.since(start), start);
            end = cursor.offset;
        }
        if !(cursor.is_blank(0) || cursor.is_break(0)) {
            break;
        }
        loop {
            if cursor.is_blank(0) {
                if gap.has_breaks && cursor.column < indent && cursor.byte(0) == b'\t' {
                    return Err(ScanError::new(
                        cursor.offset,
                        "tabs are not allowed as indentation of a continued string; use spaces",
                    ));
                }
                gap.blank(cursor);
            } else if cursor.is_break(0) {
                gap.line_break(cursor);
            } else {
                break;
            }
        }
        if !is_flow && cursor.column < indent {
            break;
        }
    }
    Ok(PlainEnd {
        offset: end,
        is_before_break: gap.has_breaks,
    })
}

/// Scans a quoted scalar. `cursor` is at the opening quotation mark.
pub(super) fn quoted(
    text: &str,
    cursor: &mut Cursor<'_>,
    into: &mut Written,
) -> Result<(), ScanError> {
    let opened = cursor.offset;
    let mark = cursor.byte(0);
    cursor.advance();
    loop {
        if cursor.is_document_marker() {
            return Err(ScanError::new(
                cursor.offset,
                "missing closing quote before a line that begins with `---` or `...`, which ends the document",
            ));
        }
        if cursor.is_end() {
            return Err(ScanError::new(
                opened,
                format!("missing closing `{}`", char::from(mark)),
            ));
        }
        let mut gap = Gap::default();
        let mut start = cursor.offset;
        while !cursor.is_blank_or_end(0) {
            let byte = cursor.byte(0);
            if byte == b'\'' && mark == byte && cursor.byte(1) == byte {
                into.push_all(cursor.since(start), start);
                into.push('\'', cursor.offset);
                cursor.advance_by(2);
                start = cursor.offset;
            } else if byte == mark {
                break;
            } else if byte == b'\\' && mark == b'"' {
                into.push_all(cursor.since(start), start);
                if cursor.is_break(1) {
                    cursor.advance();
                    cursor.advance_line();
                    gap.has_breaks = true;
                    start = cursor.offset;
                    break;
                }
                let offset = cursor.offset;
                into.push(escape(cursor)?, offset);
                start = cursor.offset;
            } else {
                cursor.advance();
            }
        }
        into.push_all(cursor.since(start), start);
        if cursor.byte(0) == mark {
            cursor.advance();
            return Ok(());
        }
        loop {
            if cursor.is_blank(0) {
                gap.blank(cursor);
            } else if cursor.is_break(0) {
                gap.line_break(cursor);
            } else {
                break;
            }
        }
        gap.fold(text, into);
    }
}

/// Decodes the escape sequence at `cursor`.
///
/// Source: `go.yaml.in/yaml/v2`, which supports the escapes of YAML 1.1 and `\'`.
fn escape(cursor: &mut Cursor<'_>) -> Result<char, ScanError> {
    let start = cursor.offset;
    let byte = cursor.byte(1);
    let character = match byte {
        b'0' => '\0',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\u{b}',
        b'f' => '\u{c}',
        b'r' => '\r',
        b'e' => '\u{1b}',
        b' ' | b'"' | b'\'' | b'\\' => char::from(byte),
        b'N' => '\u{85}',
        b'_' => '\u{a0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        b'x' => return hexadecimal(cursor, 2),
        b'u' => return hexadecimal(cursor, 4),
        b'U' => return hexadecimal(cursor, 8),
        _ => {
            let escaped = cursor.rest().chars().nth(1).map(String::from);
            return Err(ScanError::new(
                start,
                format!(
                    "unknown escape sequence `\\{}`; write `\\\\` for a backslash, or use single quotes",
                    escaped.unwrap_or_default()
                ),
            ));
        }
    };
    cursor.advance_by(2);
    Ok(character)
}

fn hexadecimal(cursor: &mut Cursor<'_>, n_digits: usize) -> Result<char, ScanError> {
    let start = cursor.offset;
    cursor.advance_by(2);
    let digits = cursor.rest().get(..n_digits);
    let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let Some(digits) = digits else {
        return Err(ScanError::new(
            start,
            format!("expected {n_digits} hexadecimal digits in this escape sequence"),
        ));
    };
    cursor.advance_by(n_digits);
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| {
            ScanError::new(
                start,
                "this escape sequence is not a valid Unicode character",
            )
        })
}

/// The indicators after `|` or `>`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockHeader {
    /// Column of the scalar's lines, if specified.
    pub(super) indent: Option<usize>,
    /// True for `+`, which keeps all trailing line breaks.
    pub(super) keeps: bool,
    /// True for `-`, which strips trailing line breaks.
    pub(super) strips: bool,
}

/// Scans the header of a block scalar and its line break. `cursor` is at `|` or `>`.
pub(super) fn block_header(
    cursor: &mut Cursor<'_>,
    parent: Option<usize>,
) -> Result<BlockHeader, ScanError> {
    cursor.advance();
    let mut header = BlockHeader::default();
    let mut chomp = |cursor: &mut Cursor<'_>| {
        let is_there = matches!(cursor.byte(0), b'+' | b'-');
        if is_there {
            header.keeps = cursor.byte(0) == b'+';
            header.strips = !header.keeps;
            cursor.advance();
        }
        is_there
    };
    let is_chomped = chomp(cursor);
    let digit = cursor.byte(0);
    let mut indent = None;
    if digit.is_ascii_digit() {
        if digit == b'0' {
            return Err(ScanError::new(
                cursor.offset,
                "the indentation indicator of a block scalar must be from 1 to 9",
            ));
        }
        indent = Some(usize::from(digit - b'0') + parent.unwrap_or(0));
        cursor.advance();
        if !is_chomped {
            chomp(cursor);
        }
    }
    header.indent = indent;
    cursor.skip_blanks();
    cursor.skip_comment();
    if !cursor.is_break_or_end(0) {
        return Err(ScanError::new(
            cursor.offset,
            "the content of a block scalar must begin on the line after `|` or `>`",
        ));
    }
    cursor.advance_line();
    Ok(header)
}

/// Location of the content of a block scalar.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockText {
    /// Start of the first line with content, and end of the last one. `None` if no line has content.
    pub(super) bytes: Option<(usize, usize)>,
    /// Column of the scalar's lines.
    pub(super) indent: usize,
}

/// Scans the lines of a block scalar. `cursor` is after the header.
pub(super) fn block(
    cursor: &mut Cursor<'_>,
    header: BlockHeader,
    is_literal: bool,
    parent: Option<usize>,
    into: &mut Written,
) -> Result<BlockText, ScanError> {
    let mut breaks = Vec::new();
    let mut column = header.indent;
    let indent = block_breaks(cursor, &mut column, parent, &mut breaks)?;
    let bytes = block_lines(cursor, indent, is_literal, &mut breaks, into, header)?;
    Ok(BlockText { bytes, indent })
}

/// Scans the lines of a block scalar from the first line with content. `indent` is the column of the lines.
pub(super) fn block_lines(
    cursor: &mut Cursor<'_>,
    indent: usize,
    is_literal: bool,
    breaks: &mut Vec<Break>,
    into: &mut Written,
    header: BlockHeader,
) -> Result<Option<(usize, usize)>, ScanError> {
    let mut bytes: Option<(usize, usize)> = None;
    let mut last: Option<Break> = None;
    let mut was_blank = false;
    while cursor.column == indent && !cursor.is_end() {
        let is_blank = cursor.is_blank(0);
        if let Some(Break { character, offset }) = last.take() {
            let is_folded = character == '\n' && !is_literal && !was_blank && !is_blank;
            if !is_folded {
                into.push(character, offset);
            } else if breaks.is_empty() {
                into.push(' ', offset);
            }
        }
        into.push_breaks(breaks);
        was_blank = is_blank;
        let start = cursor.offset;
        cursor.advance_visible(|_| true);
        while !cursor.is_break_or_end(0) {
            cursor.advance();
            cursor.advance_visible(|_| true);
        }
        into.push_all(cursor.since(start), start);
        bytes = Some((bytes.map_or(start, |(first, _)| first), cursor.offset));
        last = cursor.advance_line();
        block_breaks(cursor, &mut Some(indent), None, breaks)?;
    }
    if let Some(Break { character, offset }) = last.filter(|_| !header.strips) {
        into.push(character, offset);
    }
    if header.keeps {
        into.push_breaks(breaks);
    }
    Ok(bytes)
}

/// Consumes empty lines and the indentation of the next line. These lines determine `indent` if it is not set.
fn block_breaks(
    cursor: &mut Cursor<'_>,
    indent: &mut Option<usize>,
    parent: Option<usize>,
    breaks: &mut Vec<Break>,
) -> Result<usize, ScanError> {
    let mut deepest = 0;
    loop {
        let is_outside = |cursor: &Cursor<'_>| indent.is_none_or(|indent| cursor.column < indent);
        while is_outside(cursor) && cursor.byte(0) == b' ' {
            cursor.advance();
        }
        deepest = deepest.max(cursor.column);
        if is_outside(cursor) && cursor.byte(0) == b'\t' {
            return Err(ScanError::new(
                cursor.offset,
                "tabs are not allowed as indentation of a block scalar; use spaces",
            ));
        }
        match cursor.advance_line() {
            Some(line_break) => breaks.push(line_break),
            None => break,
        }
    }
    let least = parent.map_or(1, |parent| (parent + 1).max(1));
    Ok(*indent.get_or_insert(deepest.max(least)))
}

/// Returns the part of `comment` after `mark`. Returns `None` if the comment does not begin with the mark.
#[must_use]
pub fn after_mark<'a>(comment: &'a str, mark: &str) -> Option<&'a str> {
    let text = comment.trim_start_matches('#').trim_start();
    text.strip_prefix(mark).map(str::trim)
}
