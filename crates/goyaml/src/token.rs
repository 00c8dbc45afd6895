//! Tokens of YAML.

use super::Style;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// The end of the text.
    End,
    /// `%YAML`, with its two numbers.
    Version(u8, u8),
    /// `%TAG`.
    TagDirective { handle: String, prefix: String },
    /// `---`.
    DocumentStart,
    /// `...`.
    DocumentEnd,
    /// The first `-` of a list is behind this.
    BlockListStart,
    /// The first key of an object is behind this.
    BlockMapStart,
    /// A list or an object has ended, since what follows is further left.
    BlockEnd,
    /// `[`.
    FlowListStart,
    /// `]`.
    FlowListEnd,
    /// `{`.
    FlowMapStart,
    /// `}`.
    FlowMapEnd,
    /// `-`.
    BlockEntry,
    /// `,`.
    FlowEntry,
    /// A key follows.
    Key,
    /// A value follows.
    Value,
    /// `*` and a name.
    Alias(&'a str),
    /// `&` and a name.
    Anchor(&'a str),
    /// A tag.
    Tag { handle: String, suffix: String },
    /// A scalar.
    Scalar(String, Style),
}

/// A token, with the bytes that it takes.
#[derive(Clone, Debug)]
pub(super) struct Spanned<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}
