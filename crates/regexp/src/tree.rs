//! The syntax tree of a regular expression.
//!
//! Source: Go `regexp/syntax/regexp.go` (`Regexp`, `Op`).

use super::class::Class;

/// Index of a node in its [`Regex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

impl NodeId {
    pub(super) fn new(index: usize) -> Self {
        // A pattern has fewer nodes than bytes.
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Flags in effect at the source of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Case is ignored: `(?i)`.
    pub const FOLD_CASE: Self = Self(1);
    /// `.` matches a newline: `(?s)`.
    pub const DOT_NL: Self = Self(1 << 1);
    /// `^` and `$` match only at the ends of the input: the default, `(?-m)`.
    pub const ONE_LINE: Self = Self(1 << 2);
    /// Repetitions are lazy: `(?U)`, or a repetition with `?`.
    pub const NON_GREEDY: Self = Self(1 << 3);
    /// An end of input that was written as `$` rather than `\z`.
    pub const WAS_DOLLAR: Self = Self(1 << 4);

    /// Returns true if all of `flags` are set.
    #[must_use]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    pub(super) fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    pub(super) fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    pub(super) fn toggled(self, flags: Self) -> Self {
        Self(self.0 ^ flags.0)
    }

    pub(super) fn only(self, flags: Self) -> Self {
        Self(self.0 & flags.0)
    }
}

/// Kind of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Never matches, not even the empty string.
    #[default]
    NoMatch,
    /// Matches the empty string.
    Empty,
    /// A sequence of code points, ignoring case if the node has [`Flags::FOLD_CASE`].
    ///
    /// An escape may denote a surrogate, which never occurs in a string.
    Literal(Vec<u32>),
    /// One code point of a class. The class takes the flags into account.
    Class(ClassNode),
    /// Any code point except a newline.
    AnyCharNotNewline,
    /// Any code point.
    AnyChar,
    /// The start of the input or of a line.
    BeginLine,
    /// The end of the input or of a line.
    EndLine,
    /// The start of the input.
    BeginText,
    /// The end of the input.
    EndText,
    /// The boundary between an ASCII word character and another character.
    WordBoundary,
    /// Any position except a [`Self::WordBoundary`].
    NoWordBoundary,
    /// Captures the only part.
    Capture(Capture),
    /// Repeats the only part any number of times.
    Star,
    /// Repeats the only part at least once.
    Plus,
    /// Matches the only part or the empty string.
    Quest,
    /// Repeats the only part at least `min` and at most `max` times.
    Repeat {
        /// The minimum count.
        min: u32,
        /// The maximum count. `None` if unlimited.
        max: Option<u32>,
    },
    /// Concatenation of all parts.
    Concat,
    /// Alternation of the parts, preferring the first that leads to a match.
    Alternate,
    /// Only while parsing: the start of a group, with its capture if the group captures.
    LeftParen(Option<Capture>),
    /// Only while parsing: a bar below which the stack contains the alternatives of the group.
    VerticalBar,
}

impl NodeKind {
    /// Returns true if the node is a mark on the parser's stack rather than part of the tree.
    pub(super) fn is_mark(&self) -> bool {
        matches!(self, Self::LeftParen(_) | Self::VerticalBar)
    }
}

/// A capturing group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The group number, starting at 1.
    pub index: u32,
    /// The group name, if it has one.
    pub name: Option<Box<str>>,
}

/// A class, with a summary so that the parser does not recompute its ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassNode {
    /// The class.
    pub class: Class,
    pub(super) summary: Option<ClassSummary>,
}

impl ClassNode {
    /// Returns an upper bound on the number of ranges of the class.
    pub(super) fn n_ranges(&self) -> usize {
        match self.summary {
            Some(summary) => summary.n_ends / 2,
            None => self.class.n_ranges(),
        }
    }
}

/// Properties of a class that the parser needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassSummary {
    /// Number of bounds of the class's ranges: two per range.
    pub(super) n_ends: usize,
    pub(super) extent: Extent,
}

/// Extent of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One code point.
    One(u32),
    /// One code point and its only case variant. Contains the smaller of them.
    BothCases(u32),
    /// All code points except the newline.
    AllButNewline,
    /// All code points.
    All,
    /// Any other set.
    Other,
}

/// A node: its kind, the flags in effect at its source, and its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The kind of node.
    pub kind: NodeKind,
    /// The flags.
    pub flags: Flags,
    /// The parts, in order.
    pub parts: Vec<NodeId>,
}

/// A regular expression: a tree of nodes.
#[derive(Clone, Debug)]
pub struct Regex {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
    pub(super) n_captures: u32,
}

impl Regex {
    /// Returns the root of the tree.
    #[must_use]
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Returns the node `id`, which must belong to this expression.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        static NOTHING: Node = Node {
            kind: NodeKind::NoMatch,
            flags: Flags(0),
            parts: Vec::new(),
        };
        self.nodes.get(id.index()).unwrap_or(&NOTHING)
    }

    /// Returns the number of capturing groups.
    #[must_use]
    pub fn n_captures(&self) -> u32 {
        self.n_captures
    }
}
