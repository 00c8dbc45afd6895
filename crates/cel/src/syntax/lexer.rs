//! The lexer: the longest match wins, and characters that match no token are reported and skipped.
//!
//! If no token matches, cel-go's lexer drops all characters up to and including the one at which the longest attempt
//! failed. The lexer then continues. This determines the following tokens and the locations of later errors.
//!
//! Source: cel-go `parser/gen/CEL.g4` (lexer rules), `github.com/antlr4-go/antlr/v4` `lexer.go` (`Recover`),
//! `lexer_atn_simulator.go` (`failOrAccept`).

use super::token::{Kind, Token};
use crate::interrupt::checkpoint_of;

/// Number of bytes scanned per checkpoint of an [`Interrupt`](crate::interrupt::Interrupt).
const BYTES_OF_CHECKPOINT: usize = 256;

/// A span of characters that do not form a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexError {
    /// Offset of the first code point.
    pub offset: u32,
    /// Index of the first byte.
    pub start: u32,
    /// Index after the last byte.
    pub end: u32,
}

/// The tokens of a source string, terminated by [`Kind::End`].
#[derive(Debug)]
pub struct Tokens {
    /// The tokens, in order.
    pub all: Vec<Token>,
    /// The invalid spans, in order.
    pub errors: Vec<LexError>,
    /// Maximum nesting depth of brackets, plus the number of conditionals. This bounds the recursion of the parser.
    pub nesting: u32,
}

/// Splits a source into tokens.
#[must_use]
pub fn tokens(text: &str) -> Tokens {
    let mut lexer = Lexer::new(text, 0, text.len() / 3 + 2);
    lexer.is_ascii = text.is_ascii();
    lexer.run();
    let nesting = nesting(&lexer.tokens);
    Tokens {
        all: lexer.tokens,
        errors: lexer.errors,
        nesting,
    }
}

/// Returns the token at the byte `start` of the source. `None` if no token starts there.
pub(super) fn token_at(text: &str, start: usize) -> Option<Token> {
    let mut lexer = Lexer::new(text, start, 0);
    lexer.skip_blank();
    if lexer.at != start || start >= text.len() {
        return None;
    }
    match lexer.scan(start) {
        Scan::Token(kind, end) => Some(Token {
            kind,
            start: to_u32(start),
            end: to_u32(end),
            offset: 0,
        }),
        Scan::Stuck(_) => None,
    }
}

/// Returns the first token of the source at or after the byte `end`, skipping whitespace. `None` if no token starts
/// after the whitespace.
pub(super) fn token_after(text: &str, end: u32) -> Option<Token> {
    let mut lexer = Lexer::new(text, end as usize, 0);
    lexer.skip_blank();
    token_at(text, lexer.at)
}

fn nesting(tokens: &[Token]) -> u32 {
    let (mut open, mut deepest, mut n_conditionals) = (0_u32, 0, 0);
    for token in tokens {
        match token.kind {
            kind if kind.opens_bracket() => {
                open += 1;
                deepest = deepest.max(open);
            }
            kind if kind.closes_bracket() => open = open.saturating_sub(1),
            Kind::Question => n_conditionals += 1,
            _ => {}
        }
    }
    deepest + n_conditionals
}

enum Scan {
    /// The token ends before this byte.
    Token(Kind, usize),
    /// The input ended, or no token continues with the byte at this index.
    Stuck(usize),
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// True if the source is known to be ASCII, so each code point is one byte.
    is_ascii: bool,
    /// Byte index up to which the code points have been counted.
    counted: usize,
    /// The number of code points before `counted`.
    offset: u32,
    tokens: Vec<Token>,
    errors: Vec<LexError>,
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, at: usize, n_tokens: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at,
            is_ascii: false,
            counted: 0,
            offset: 0,
            tokens: Vec::with_capacity(n_tokens),
            errors: Vec::new(),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Returns the offset in code points of the byte `at`. Calls must be in ascending order of `at`.
    fn offset_of(&mut self, at: usize) -> u32 {
        if self.is_ascii {
            return to_u32(at);
        }
        if let Some(passed) = self.bytes.get(self.counted..at) {
            let n_starts = passed.iter().filter(|&&b| b & 0xc0 != 0x80).count();
            self.offset += to_u32(n_starts);
            self.counted = at;
        }
        self.offset
    }

    fn run(&mut self) {
        checkpoint_of(self.bytes.len() / BYTES_OF_CHECKPOINT);
        loop {
            self.skip_blank();
            let start = self.at;
            let offset = self.offset_of(start);
            if start >= self.bytes.len() {
                self.push(Kind::End, start, start, offset);
                return;
            }
            match self.scan(start) {
                Scan::Token(kind, end) => {
                    self.push(kind, start, end, offset);
                    self.at = end;
                }
                Scan::Stuck(stuck) => {
                    let dropped = self
                        .text
                        .get(stuck..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(0, char::len_utf8);
                    self.at = (stuck + dropped).min(self.bytes.len());
                    self.errors.push(LexError {
                        offset,
                        start: to_u32(start),
                        end: to_u32(self.at),
                    });
                }
            }
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize, offset: u32) {
        self.tokens.push(Token {
            kind,
            start: to_u32(start),
            end: to_u32(end),
            offset,
        });
    }

    fn skip_blank(&mut self) {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c => self.at += 1,
                b'/' if self.byte(self.at + 1) == b'/' => {
                    let rest = self.bytes.get(self.at..).unwrap_or_default();
                    let length = rest.iter().position(|&b| b == b'\n');
                    self.at += length.unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn scan(&self, start: usize) -> Scan {
        let first = self.byte(start);
        let two = |kind| Scan::Token(kind, start + 2);
        let one = |kind| Scan::Token(kind, start + 1);
        let second = self.byte(start + 1);
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(start),
            b'0'..=b'9' => self.number(start),
            b'"' | b'\'' => self.string(start, false),
            b'=' if second == b'=' => two(Kind::Equals),
            b'!' if second == b'=' => two(Kind::NotEquals),
            b'<' if second == b'=' => two(Kind::LessEquals),
            b'>' if second == b'=' => two(Kind::GreaterEquals),
            b'&' if second == b'&' => two(Kind::And),
            b'|' if second == b'|' => two(Kind::Or),
            b'=' | b'&' | b'|' => Scan::Stuck(start + 1),
            b'<' => one(Kind::Less),
            b'>' => one(Kind::Greater),
            b'!' => one(Kind::Exclamation),
            b'[' => one(Kind::OpenBracket),
            b']' => one(Kind::CloseBracket),
            b'{' => one(Kind::OpenBrace),
            b'}' => one(Kind::CloseBrace),
            b'(' => one(Kind::OpenParen),
            b')' => one(Kind::CloseParen),
            b'.' if second.is_ascii_digit() => self.number(start),
            b'.' => one(Kind::Dot),
            b',' => one(Kind::Comma),
            b'-' => one(Kind::Minus),
            b'?' => one(Kind::Question),
            b':' => one(Kind::Colon),
            b'+' => one(Kind::Plus),
            b'*' => one(Kind::Star),
            b'/' => one(Kind::Slash),
            b'%' => one(Kind::Percent),
            b'`' => self.escaped_ident(start),
            _ => Scan::Stuck(start),
        }
    }

    fn skip_while(&self, from: usize, accept: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().position(|&b| !accept(b)).unwrap_or(rest.len())
    }

    fn word(&self, start: usize) -> Scan {
        let end = self.skip_while(start, |b| b.is_ascii_alphanumeric() || b == b'_');
        let word = self.bytes.get(start..end).unwrap_or_default();
        if matches!(self.byte(end), b'"' | b'\'') {
            let literal = match word {
                b"r" | b"R" => Some((Kind::String, true)),
                b"b" | b"B" => Some((Kind::Bytes, false)),
                [b'b' | b'B', b'r' | b'R'] => Some((Kind::Bytes, true)),
                _ => None,
            };
            if let Some((kind, raw)) = literal
                && let Scan::Token(_, end) = self.string(end, raw)
            {
                return Scan::Token(kind, end);
            }
        }
        let kind = match word {
            b"in" => Kind::In,
            b"true" => Kind::True,
            b"false" => Kind::False,
            b"null" => Kind::Null,
            _ => Kind::Ident,
        };
        Scan::Token(kind, end)
    }

    fn digits(&self, from: usize) -> usize {
        self.skip_while(from, |b| b.is_ascii_digit())
    }

    /// Returns the end of an exponent that starts at `from`. `None` if no exponent starts there.
    fn exponent(&self, from: usize) -> Option<usize> {
        if !self.byte(from).eq_ignore_ascii_case(&b'e') {
            return None;
        }
        let sign = usize::from(matches!(self.byte(from + 1), b'+' | b'-'));
        let end = self.digits(from + 1 + sign);
        (end > from + 1 + sign).then_some(end)
    }

    fn number(&self, start: usize) -> Scan {
        if self.byte(start) == b'0' && self.byte(start + 1) == b'x' {
            let end = self.skip_while(start + 2, |b| b.is_ascii_hexdigit());
            if end > start + 2 {
                return self.whole(end);
            }
        }
        let end = self.digits(start);
        if self.byte(end) == b'.' && self.byte(end + 1).is_ascii_digit() {
            let end = self.digits(end + 1);
            return Scan::Token(Kind::Float, self.exponent(end).unwrap_or(end));
        }
        match self.exponent(end) {
            Some(end) => Scan::Token(Kind::Float, end),
            None => self.whole(end),
        }
    }

    fn whole(&self, end: usize) -> Scan {
        if self.byte(end).eq_ignore_ascii_case(&b'u') {
            Scan::Token(Kind::Uint, end + 1)
        } else {
            Scan::Token(Kind::Int, end)
        }
    }

    fn string(&self, start: usize, raw: bool) -> Scan {
        let quote = self.byte(start);
        let is_triple = |at| (0..3).all(|n| self.byte(at + n) == quote);
        if is_triple(start) {
            // Unclosed triple quotes are an empty string followed by the start of another string.
            return match self
                .string_body(start + 3, raw, true, |at| is_triple(at).then_some(at + 3))
            {
                Scan::Stuck(_) => Scan::Token(Kind::String, start + 2),
                closed @ Scan::Token(..) => closed,
            };
        }
        self.string_body(start + 1, raw, false, |at| {
            (self.byte(at) == quote).then_some(at + 1)
        })
    }

    fn string_body(
        &self,
        from: usize,
        raw: bool,
        multiline: bool,
        closed: impl Fn(usize) -> Option<usize>,
    ) -> Scan {
        let mut index = from;
        while index < self.bytes.len() {
            if let Some(end) = closed(index) {
                return Scan::Token(Kind::String, end);
            }
            match self.byte(index) {
                b'\\' if !raw => match self.escape(index + 1) {
                    Ok(end) => index = end,
                    Err(stuck) => return Scan::Stuck(stuck),
                },
                b'\n' | b'\r' if !multiline => return Scan::Stuck(index),
                _ => index += 1,
            }
        }
        Scan::Stuck(self.bytes.len())
    }

    /// Returns the end of the escape sequence whose backslash precedes `at`, or the index of its first
    /// invalid byte.
    fn escape(&self, at: usize) -> Result<usize, usize> {
        let of_digits = |n: usize, accept: fn(u8) -> bool| {
            (1..=n)
                .map(|n| at + n)
                .find(|&at| !accept(self.byte(at)))
                .map_or(Ok(at + n + 1), Err)
        };
        match self.byte(at) {
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
                Ok(at + 1)
            }
            b'x' | b'X' => of_digits(2, |b| b.is_ascii_hexdigit()),
            b'u' => of_digits(4, |b| b.is_ascii_hexdigit()),
            b'U' => of_digits(8, |b| b.is_ascii_hexdigit()),
            b'0'..=b'3' => of_digits(2, |b| matches!(b, b'0'..=b'7')),
            _ => Err(at),
        }
    }

    fn escaped_ident(&self, start: usize) -> Scan {
        let end = self.skip_while(start + 1, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' ')
        });
        if end > start + 1 && self.byte(end) == b'`' {
            Scan::Token(Kind::EscapedIdent, end + 1)
        } else {
            Scan::Stuck(end)
        }
    }
}
