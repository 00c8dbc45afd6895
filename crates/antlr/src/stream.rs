//! The tokens as the generated parser sees them: each is made when it is first looked at.
//!
//! What is no token is reported on the way, so that it counts among the syntax errors, whose number is
//! limited, where it would upstream, and not at all behind the place where parsing ends.
//!
//! Source: `github.com/antlr4-go/antlr/v4` `common_token_stream.go`, `lexer.go` (`notifyListeners`).

use cel::syntax::lexer::{LexError, Tokens};
use cel::syntax::token::{Kind, Token};

/// A text and its tokens.
pub(super) struct Stream<'t> {
    pub(super) text: &'t str,
    tokens: &'t [Token],
    errors: &'t [LexError],
    at: usize,
    /// How many of `errors` have been seen.
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

    /// The number of the current token.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The token that is `ahead` of the current one; behind the end there is but the end.
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

    /// The kind of the current token.
    pub(super) fn current(&self) -> Kind {
        self.peek(0).kind
    }

    /// Goes on to the next token.
    pub(super) fn advance(&mut self) {
        if self.current() != Kind::End {
            self.at += 1;
        }
    }

    /// What is no token before the one that is `ahead`, one at a time.
    pub(super) fn next_error(&mut self, ahead: usize) -> Option<LexError> {
        let error = *self.errors.get(self.n_seen)?;
        (error.start < self.peek(ahead).start || self.peek(ahead).kind == Kind::End).then(|| {
            self.n_seen += 1;
            error
        })
    }

    /// The text from `first` to `last` without what is no token.
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

    /// The text of what is no token.
    pub(super) fn error_text(&self, error: LexError) -> &'t str {
        self.bytes(error.start, error.end)
    }
}
