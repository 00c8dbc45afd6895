//! The YAML scanner: splits the source into tokens. It also derives the start and end tokens of collections from the
//! indentation and from `:`.
//!
//! The scanner recognizes a key only when it reaches the `:` after the key. Tokens therefore stay in a queue as long as
//! one of them may start a key. A key must end on the line on which it starts, and within 1,024 characters.
//!
//! Source: `go.yaml.in/yaml/v2` `scannerc.go`, which differs from libyaml in details. `./dev parity-yaml` compares the
//! scanners.

use std::collections::VecDeque;
use std::ops::Range;

use super::cursor::Cursor;
use super::text::{self, Written};
use super::token::{Spanned, Token};
use super::{ScanError, Style, tag};

/// Maximum length of a key in characters, up to its `:`.
const MAX_KEY_LENGTH: usize = 1024;

/// A position at which a key may start.
#[derive(Clone, Copy, Debug)]
struct PossibleKey {
    is_possible: bool,
    /// True if a key must start here, because this is the column of the enclosing map's keys.
    is_required: bool,
    /// Number of the key's first token.
    token: usize,
    mark: Mark,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    offset: usize,
    line: usize,
    column: usize,
    index: usize,
}

/// The first tokens of possible keys: pairs of a token number and an index into [`Scanner::keys`], in ascending order.
#[derive(Debug, Default)]
struct KeysOfTokens(VecDeque<(usize, usize)>);

impl KeysOfTokens {
    /// Returns the key that starts with the token `first`. Discards the keys that start with earlier tokens.
    fn take(&mut self, first: usize) -> Option<usize> {
        while let Some((token, key)) = self.0.front().copied() {
            if token >= first {
                return (token == first).then_some(key);
            }
            self.0.pop_front();
        }
        None
    }

    /// Records that the key with index `key` starts at the last token, whose number is `token`.
    fn insert(&mut self, token: usize, key: usize) {
        self.remove(token);
        self.0.push_back((token, key));
    }

    fn remove(&mut self, token: usize) {
        let index = self.0.iter().rposition(|(first, _)| *first <= token);
        let is_first = |index: &usize| self.0.get(*index).is_some_and(|(it, _)| *it == token);
        if let Some(index) = index.filter(is_first) {
            self.0.remove(index);
        }
    }
}

/// A scanner that reads tokens on demand.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    cursor: Cursor<'a>,
    queue: VecDeque<Spanned<'a>>,
    /// Number of tokens removed from the queue.
    n_taken: usize,
    /// True if the first token in the queue is final: no token can be inserted before it.
    is_ready: bool,
    /// Column of the innermost block collection. `None` outside of block collections.
    indent: Option<usize>,
    outer_indents: Vec<Option<usize>>,
    /// The possible key of the block context, followed by the possible key of each open flow collection.
    keys: Vec<PossibleKey>,
    /// Indices into `keys`, by the number of the key's first token.
    key_of_token: KeysOfTokens,
    /// True if a key may start here.
    allows_key: bool,
    /// The mark with which collected comments begin. `None` if no comments are collected.
    comment_mark: Option<&'a str>,
    /// Spans of the collected comments.
    comments: Vec<Range<usize>>,
}

impl<'a> Scanner<'a> {
    /// Creates a scanner that starts at the byte `start` of the source.
    pub(super) fn new(text: &'a str, start: usize) -> Self {
        Self {
            text,
            cursor: Cursor::new(text, start, 0),
            queue: VecDeque::new(),
            n_taken: 0,
            is_ready: false,
            indent: None,
            outer_indents: Vec::new(),
            keys: vec![PossibleKey {
                is_possible: false,
                is_required: false,
                token: 0,
                mark: Mark::default(),
            }],
            key_of_token: KeysOfTokens::default(),
            allows_key: true,
            comment_mark: None,
            comments: Vec::new(),
        }
    }

    pub(super) fn keep_comments(&mut self, mark: &'a str) {
        self.comment_mark = Some(mark);
    }

    pub(super) fn take_comments(&mut self) -> Vec<Range<usize>> {
        std::mem::take(&mut self.comments)
    }

    /// Returns the byte index up to which the source has been scanned.
    pub(super) fn offset(&self) -> usize {
        self.cursor.offset
    }

    pub(super) fn peek(&mut self) -> Result<&Spanned<'a>, ScanError> {
        if !self.is_ready {
            self.fetch_until_ready()?;
            self.is_ready = true;
        }
        // The end token always stays in the queue.
        self.queue
            .front()
            .ok_or_else(|| ScanError::new(self.cursor.offset, "unexpected end of the text"))
    }

    pub(super) fn take(&mut self) -> Result<Spanned<'a>, ScanError> {
        self.peek()?;
        self.is_ready = false;
        self.n_taken += 1;
        self.queue
            .pop_front()
            .ok_or_else(|| ScanError::new(self.cursor.offset, "unexpected end of the text"))
    }

    fn fetch_until_ready(&mut self) -> Result<(), ScanError> {
        loop {
            if !self.queue.is_empty() {
                let Some(key) = self.key_of_token.take(self.n_taken) else {
                    return Ok(());
                };
                let ends = |spanned: &Spanned<'_>| spanned.token == Token::End;
                if !self.is_still_possible(key)? || self.queue.back().is_some_and(ends) {
                    return Ok(());
                }
            }
            self.fetch()?;
        }
    }

    fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    fn mark(&self) -> Mark {
        Mark {
            offset: self.cursor.offset,
            line: self.cursor.line,
            column: self.cursor.column,
            index: self.cursor.index,
        }
    }

    fn push(&mut self, token: Token<'a>, start: usize) {
        let end = self.cursor.offset;
        self.queue.push_back(Spanned { token, start, end });
    }

    /// Inserts a token before the token with the number `before`. If that token is no longer in the queue, appends the
    /// new token.
    fn insert(&mut self, before: usize, token: Token<'a>, offset: usize) {
        let length = self.queue.len();
        let position = before.checked_sub(self.n_taken).unwrap_or(length);
        let spanned = Spanned {
            token,
            start: offset,
            end: offset,
        };
        self.queue.insert(position.min(length), spanned);
    }

    fn fetch(&mut self) -> Result<(), ScanError> {
        self.skip_to_token();
        self.close_blocks(Some(self.cursor.column));
        let start = self.cursor.offset;
        let is_first_column = self.cursor.column == 0;
        let in_flow = self.in_flow();
        match self.cursor.byte(0) {
            0 => return self.end(),
            b'%' if is_first_column => return self.directive(),
            b'-' if self.cursor.is_document_marker() => {
                return self.document_marker(Token::DocumentStart);
            }
            b'.' if self.cursor.is_document_marker() => {
                return self.document_marker(Token::DocumentEnd);
            }
            b'[' => return self.flow_start(Token::FlowListStart),
            b'{' => return self.flow_start(Token::FlowMapStart),
            b']' => return self.flow_end(Token::FlowListEnd),
            b'}' => return self.flow_end(Token::FlowMapEnd),
            b',' => {
                self.forget_key()?;
                self.allows_key = true;
                self.cursor.advance();
                self.push(Token::FlowEntry, start);
            }
            b'-' if self.cursor.is_blank_or_end(1) => return self.block_entry(),
            b'?' if in_flow || self.cursor.is_blank_or_end(1) => return self.key(),
            b':' if in_flow || self.cursor.is_blank_or_end(1) => return self.value(),
            b'*' | b'&' => {
                self.begin_key()?;
                self.allows_key = false;
                let token = self.anchor()?;
                self.push(token, start);
            }
            b'!' => {
                self.begin_key()?;
                self.allows_key = false;
                let (handle, suffix) = tag::tag(&mut self.cursor)?;
                self.push(Token::Tag { handle, suffix }, start);
            }
            b'|' if !in_flow => return self.block(true),
            b'>' if !in_flow => return self.block(false),
            b'\'' | b'"' => return self.quoted(),
            byte => {
                let is_plain = match byte {
                    b'-' => !self.cursor.is_blank(1),
                    b'?' | b':' => !in_flow && !self.cursor.is_blank_or_end(1),
                    b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => false,
                    _ => !self.cursor.is_blank_or_end(0),
                };
                if !is_plain {
                    return Err(ScanError::new(start, self.why_no_token()));
                }
                return self.plain();
            }
        }
        Ok(())
    }

    /// Returns the error message for a character that cannot start a token.
    fn why_no_token(&self) -> String {
        match self.cursor.byte(0) {
            b'\t' => "tabs are not allowed as indentation; use spaces".to_owned(),
            byte @ (b'|' | b'>') => format!(
                "block scalars with `{}` are not allowed within `[]` or `{{}}`; quote the string",
                char::from(byte)
            ),
            byte => format!(
                "a value cannot begin with `{}`; quote the string",
                char::from(byte)
            ),
        }
    }

    fn skip_to_token(&mut self) {
        loop {
            while self.cursor.byte(0) == b' '
                || (self.in_flow() || !self.allows_key) && self.cursor.byte(0) == b'\t'
            {
                self.cursor.advance();
            }
            let start = self.cursor.offset;
            self.cursor.skip_comment();
            self.add_comment(start, self.cursor.offset);
            if self.cursor.advance_line().is_none() {
                return;
            }
            if !self.in_flow() {
                self.allows_key = true;
            }
        }
    }

    fn add_comment(&mut self, start: usize, end: usize) {
        let comment = self.text.get(start..end).unwrap_or_default();
        let is_kept = |mark| !comment.is_empty() && text::after_mark(comment, mark).is_some();
        if self.comment_mark.is_some_and(is_kept) {
            self.comments.push(start..end);
        }
    }

    /// Returns true if `keys[key]` may still become a key. A key must end on the line on which it starts, and must not
    /// exceed the maximum length.
    fn is_still_possible(&mut self, key: usize) -> Result<bool, ScanError> {
        let now = self.mark();
        let Some(key) = self.keys.get_mut(key) else {
            return Ok(false);
        };
        if key.is_possible
            && (key.mark.line < now.line || key.mark.index + MAX_KEY_LENGTH < now.index)
        {
            if key.is_required {
                return Err(missing_colon(*key));
            }
            key.is_possible = false;
        }
        Ok(key.is_possible)
    }

    fn begin_key(&mut self) -> Result<(), ScanError> {
        if !self.allows_key {
            return Ok(());
        }
        let begun = PossibleKey {
            is_possible: true,
            is_required: !self.in_flow() && self.indent == Some(self.cursor.column),
            token: self.n_taken + self.queue.len(),
            mark: self.mark(),
        };
        self.forget_key()?;
        let idx = self.keys.len().saturating_sub(1);
        if let Some(key) = self.keys.last_mut() {
            *key = begun;
        }
        self.key_of_token.insert(begun.token, idx);
        Ok(())
    }

    /// Discards the innermost possible key.
    fn forget_key(&mut self) -> Result<(), ScanError> {
        if let Some(key) = self.keys.last_mut()
            && key.is_possible
        {
            if key.is_required {
                return Err(missing_colon(*key));
            }
            key.is_possible = false;
            self.key_of_token.remove(key.token);
        }
        Ok(())
    }

    /// Opens a block collection at `mark` if `mark` is indented more than the enclosing collection. Inserts the start
    /// token before the token with the number `before`, or at the end of the queue if `before` is `None`.
    fn open_block(&mut self, mark: Mark, before: Option<usize>, token: Token<'a>) {
        if self.in_flow() || self.indent.is_some_and(|indent| indent >= mark.column) {
            return;
        }
        self.outer_indents.push(self.indent);
        self.indent = Some(mark.column);
        let before = before.unwrap_or(self.n_taken + self.queue.len());
        self.insert(before, token, mark.offset);
    }

    /// Closes the block collections that are indented more than `column`. If `column` is `None`, closes all of them.
    fn close_blocks(&mut self, column: Option<usize>) {
        if self.in_flow() {
            return;
        }
        while self.indent > column {
            let offset = self.cursor.offset;
            self.push(Token::BlockEnd, offset);
            self.indent = self.outer_indents.pop().flatten();
        }
    }

    fn end(&mut self) -> Result<(), ScanError> {
        self.cursor.end_line();
        self.close_blocks(None);
        self.forget_key()?;
        self.allows_key = false;
        self.push(Token::End, self.cursor.offset);
        Ok(())
    }

    fn directive(&mut self) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        self.close_blocks(None);
        self.forget_key()?;
        self.allows_key = false;
        let token = tag::directive(&mut self.cursor)?;
        self.push(token, start);
        Ok(())
    }

    fn document_marker(&mut self, token: Token<'a>) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        self.close_blocks(None);
        self.forget_key()?;
        self.allows_key = false;
        self.cursor.advance_by(3);
        self.push(token, start);
        Ok(())
    }

    fn flow_start(&mut self, token: Token<'a>) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        self.begin_key()?;
        self.keys.push(PossibleKey {
            is_possible: false,
            is_required: false,
            token: self.n_taken + self.queue.len(),
            mark: self.mark(),
        });
        self.allows_key = true;
        self.cursor.advance();
        self.push(token, start);
        Ok(())
    }

    fn flow_end(&mut self, token: Token<'a>) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        self.forget_key()?;
        if self.in_flow()
            && let Some(key) = self.keys.pop()
        {
            self.key_of_token.remove(key.token);
        }
        self.allows_key = false;
        self.cursor.advance();
        self.push(token, start);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        if !self.in_flow() {
            if !self.allows_key {
                return Err(ScanError::new(
                    start,
                    "a list item cannot begin here; put `-` on a new line",
                ));
            }
            self.open_block(self.mark(), None, Token::BlockListStart);
        }
        self.forget_key()?;
        self.allows_key = true;
        self.cursor.advance();
        self.push(Token::BlockEntry, start);
        Ok(())
    }

    fn key(&mut self) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        if !self.in_flow() {
            if !self.allows_key {
                return Err(ScanError::new(
                    start,
                    "a key cannot begin here; put `?` on a new line",
                ));
            }
            self.open_block(self.mark(), None, Token::BlockMapStart);
        }
        self.forget_key()?;
        self.allows_key = !self.in_flow();
        self.cursor.advance();
        self.push(Token::Key, start);
        Ok(())
    }

    fn value(&mut self) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        let idx = self.keys.len().saturating_sub(1);
        if self.is_still_possible(idx)?
            && let Some(key) = self.keys.last().copied()
        {
            self.insert(key.token, Token::Key, key.mark.offset);
            self.open_block(key.mark, Some(key.token), Token::BlockMapStart);
            if let Some(key) = self.keys.last_mut() {
                key.is_possible = false;
            }
            self.key_of_token.remove(key.token);
            self.allows_key = false;
        } else {
            if !self.in_flow() {
                if !self.allows_key {
                    return Err(ScanError::new(
                        start,
                        "`:` is not allowed here; quote the string if `:` is part of it, or \
                         indent the lines below if `:` ends a key",
                    ));
                }
                self.open_block(self.mark(), None, Token::BlockMapStart);
            }
            self.allows_key = !self.in_flow();
        }
        self.cursor.advance();
        self.push(Token::Value, start);
        Ok(())
    }

    fn anchor(&mut self) -> Result<Token<'a>, ScanError> {
        let is_alias = self.cursor.byte(0) == b'*';
        self.cursor.advance();
        let start = self.cursor.offset;
        while self.cursor.is_word() {
            self.cursor.advance();
        }
        let name = self.cursor.since(start);
        let ends = self.cursor.is_blank_or_end(0)
            || matches!(
                self.cursor.byte(0),
                b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'
            );
        if name.is_empty() || !ends {
            let message = if is_alias {
                "an anchor name can only contain letters, digits, `_` and `-`; quote a string that \
                 begins with `*`"
            } else {
                "an anchor name can only contain letters, digits, `_` and `-`; quote a string that \
                 begins with `&`"
            };
            return Err(ScanError::new(self.cursor.offset, message));
        }
        Ok(if is_alias {
            Token::Alias(name)
        } else {
            Token::Anchor(name)
        })
    }

    fn block(&mut self, is_literal: bool) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        self.forget_key()?;
        self.allows_key = true;
        let header = text::block_header(&mut self.cursor, self.indent)?;
        let line = self.cursor.since(start).trim_end();
        if let Some(offset) = line.find('#') {
            self.add_comment(start + offset, start + line.len());
        }
        let mut written = Written::default();
        let read = text::block(
            &mut self.cursor,
            header,
            is_literal,
            self.indent,
            &mut written,
        )?;
        let indent = u32::try_from(read.indent).unwrap_or(u32::MAX);
        let style = if is_literal {
            Style::Literal { indent }
        } else {
            Style::Folded { indent }
        };
        let (start, end) = read.bytes.unwrap_or((start, start + 1));
        self.queue.push_back(Spanned {
            token: Token::Scalar(written.text, style),
            start,
            end,
        });
        Ok(())
    }

    fn quoted(&mut self) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        let style = match self.cursor.byte(0) {
            b'\'' => Style::SingleQuoted,
            _ => Style::DoubleQuoted,
        };
        self.begin_key()?;
        self.allows_key = false;
        let mut written = Written::default();
        text::quoted(self.text, &mut self.cursor, &mut written)?;
        self.push(Token::Scalar(written.text, style), start);
        Ok(())
    }

    fn plain(&mut self) -> Result<(), ScanError> {
        let start = self.cursor.offset;
        self.begin_key()?;
        self.allows_key = false;
        let mut written = Written::default();
        let indent = self.indent.map_or(0, |indent| indent + 1);
        let in_flow = self.in_flow();
        let read = text::plain(self.text, &mut self.cursor, in_flow, indent, &mut written)?;
        if read.is_before_break {
            self.allows_key = true;
        }
        self.queue.push_back(Spanned {
            token: Token::Scalar(written.text, Style::Plain),
            start,
            end: read.offset,
        });
        Ok(())
    }
}

fn missing_colon(key: PossibleKey) -> ScanError {
    ScanError::new(
        key.mark.offset,
        "missing `:` after a key; every line at this indentation must start with a key and its `:`",
    )
}
