//! Why a pattern is no regular expression, in Go's words.
//!
//! Source: Go `regexp/syntax/parse.go`, `Error`, `ErrorCode`.

use std::fmt;

/// What is wrong with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyntaxErrorCode {
    /// A range of a class whose end is before its start, or an unknown name of a class.
    InvalidCharRange,
    /// An escape that means nothing.
    InvalidEscape,
    /// A capture whose name is not a word.
    InvalidNamedCapture,
    /// `(?` with something unknown.
    InvalidPerlOp,
    /// A repetition of a repetition, such as `a**`.
    InvalidRepeatOp,
    /// A count above 1000, or counts that are multiplied to more than that.
    InvalidRepeatSize,
    /// A class that does not end.
    MissingBracket,
    /// A group that does not end.
    MissingParen,
    /// A repetition of nothing.
    MissingRepeatArgument,
    /// A backslash at the end.
    TrailingBackslash,
    /// The end of a group that did not begin.
    UnexpectedParen,
    /// More than 1000 levels.
    NestingDepth,
    /// More than Go is willing to compile.
    Large,
}

impl fmt::Display for SyntaxErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidCharRange => "invalid character class range",
            Self::InvalidEscape => "invalid escape sequence",
            Self::InvalidNamedCapture => "invalid named capture",
            Self::InvalidPerlOp => "invalid or unsupported Perl syntax",
            Self::InvalidRepeatOp => "invalid nested repetition operator",
            Self::InvalidRepeatSize => "invalid repeat count",
            Self::MissingBracket => "missing closing ]",
            Self::MissingParen => "missing closing )",
            Self::MissingRepeatArgument => "missing argument to repetition operator",
            Self::TrailingBackslash => "trailing backslash at end of expression",
            Self::UnexpectedParen => "unexpected )",
            Self::NestingDepth => "expression nests too deeply",
            Self::Large => "expression too large",
        })
    }
}

/// A pattern that is no regular expression; displayed, it is Go's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`")]
pub struct SyntaxError {
    /// What is wrong.
    pub code: SyntaxErrorCode,
    /// The part of the pattern that is wrong.
    pub expr: String,
}

impl SyntaxError {
    pub(super) fn new(code: SyntaxErrorCode, expr: &str) -> Self {
        Self {
            code,
            expr: expr.to_owned(),
        }
    }
}
