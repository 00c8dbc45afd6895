//! The token stream of the generated parser.
//!
//! A token is read when it is first accessed, and its lexical errors are reported at that time. As in ANTLR, lexical
//! errors therefore count toward the limit of syntax errors. Lexical errors after the end of parsing are not reported.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `common_token_stream.go`, `lexer.go` (`notifyListeners`).

use cel::syntax::lexer::{LexError, Tokens};
use cel::syntax::token::{Kind, Token};

pub(super) struct Stream<'t> {
    pub(super) text: &'t str,
    tokens: &'t [Token],
    errors: &'t [LexError],
    at: usize,
    /// The number of lexical errors that have been reported.
    n_seen: usize,
}

impl<'t> Stream<'t> {
    pub(super) fn new(text: &'t str, tokens: &'t Tokens) -> Self {
        Self {
            text,
            tokens: &tokens.all,
            errors: &tokens.errors,
            at: 0,
            n_seen: 0,
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the token at offset `ahead` from the current token. Returns the end token if the offset is beyond the
    /// end of the source.
    pub(super) fn peek(&self, ahead: usize) -> Token {
        let end = Token {
            kind: Kind::End,
            start: 0,
            end: 0,
            offset: 0,
        };
        self.tokens
            .get(self.at + ahead)
            .or(self.tokens.last())
            .copied()
            .unwrap_or(end)
    }

    pub(super) fn current(&self) -> Kind {
        self.peek(0).kind
    }

    pub(super) fn advance(&mut self) {
        if self.current() != Kind::End {
            self.at += 1;
        }
    }

    /// Returns the next unreported lexical error before the token at offset `ahead`.
    pub(super) fn next_error(&mut self, ahead: usize) -> Option<LexError> {
        let error = *self.errors.get(self.n_seen)?;
        (error.start < self.peek(ahead).start || self.peek(ahead).kind == Kind::End).then(|| {
            self.n_seen += 1;
            error
        })
    }

    /// Returns the source from `first` to `last`, without the characters that caused lexical errors.
    pub(super) fn text_between(&self, first: Token, last: Token) -> String {
        let (mut text, mut at) = (String::new(), first.start);
        let n_before = self.errors.partition_point(|error| error.start < at);
        for error in self.errors.get(n_before..).unwrap_or_default() {
            if error.start >= last.end {
                break;
            }
            text.push_str(self.bytes(at, error.start));
            at = error.end;
        }
        text.push_str(self.bytes(at, last.end));
        text
    }

    fn bytes(&self, start: u32, end: u32) -> &'t str {
        self.text
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    pub(super) fn error_text(&self, error: LexError) -> &'t str {
        self.bytes(error.start, error.end)
    }
}
