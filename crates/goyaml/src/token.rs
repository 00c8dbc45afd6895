//! Tokens of YAML.

use super::Style;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// The end of the input.
    End,
    /// `%YAML`, with its two version numbers.
    Version(u8, u8),
    /// `%TAG`, with a tag handle and its prefix.
    TagDirective { handle: String, prefix: String },
    /// `---`.
    DocumentStart,
    /// `...`.
    DocumentEnd,
    /// Start of a block list. Precedes the first `-`.
    BlockListStart,
    /// Start of a block map. Precedes the first key.
    BlockMapStart,
    /// End of a block list or map. Precedes a line with less indentation.
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
    /// Start of a key.
    Key,
    /// Start of a value.
    Value,
    /// An alias: `*` and the name of an anchor.
    Alias(&'a str),
    /// An anchor: `&` and a name.
    Anchor(&'a str),
    /// A tag: its handle and its suffix.
    Tag { handle: String, suffix: String },
    /// A scalar: its decoded value and its style.
    Scalar(String, Style),
}

#[derive(Clone, Debug)]
pub(super) struct Spanned<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}
