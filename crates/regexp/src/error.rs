//! Syntax errors of patterns, with Go's messages.
//!
//! Source: Go `regexp/syntax/parse.go`, `Error`, `ErrorCode`.

use std::fmt;

/// Kind of a syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyntaxErrorCode {
    /// A range whose end precedes its start, or an unknown class name.
    InvalidCharRange,
    /// An unknown escape sequence.
    InvalidEscape,
    /// A group name that is not a word.
    InvalidNamedCapture,
    /// `(?` followed by an unknown operator.
    InvalidPerlOp,
    /// A repetition of a repetition, such as `a**`.
    InvalidRepeatOp,
    /// A repetition count above 1000. For nested repetitions, the limit applies to the product of their counts.
    InvalidRepeatSize,
    /// A class without a closing bracket.
    MissingBracket,
    /// A group without a closing parenthesis.
    MissingParen,
    /// A repetition operator without an operand.
    MissingRepeatArgument,
    /// A backslash at the end of the pattern.
    TrailingBackslash,
    /// A closing parenthesis without an opening one.
    UnexpectedParen,
    /// More than 1000 nesting levels.
    NestingDepth,
    /// A pattern that exceeds Go's size limits.
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

/// A syntax error of a pattern. Its `Display` is Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`")]
pub struct SyntaxError {
    /// The kind of error.
    pub code: SyntaxErrorCode,
    /// The invalid part of the pattern.
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
