//! The tree of a regular expression.
//!
//! Source: Go `regexp/syntax/regexp.go` (`Regexp`, `Op`).

use super::class::Class;

/// The index of a node in its [`Regex`].
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

/// The flags in force where a node was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Case does not matter: `(?i)`.
    pub const FOLD_CASE: Self = Self(1);
    /// `.` matches a newline: `(?s)`.
    pub const DOT_NL: Self = Self(1 << 1);
    /// `^` and `$` match at the ends of the text only: the default, `(?-m)`.
    pub const ONE_LINE: Self = Self(1 << 2);
    /// Repetitions prefer few: `(?U)`, or a repetition with `?`.
    pub const NON_GREEDY: Self = Self(1 << 3);
    /// The end of the text was written `$`, not `\z`.
    pub const WAS_DOLLAR: Self = Self(1 << 4);

    /// Reports whether all of `flags` are set.
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

/// Kinds of node, by what they match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Nothing, not even the empty text.
    #[default]
    NoMatch,
    /// The empty text.
    Empty,
    /// A sequence of code points, regardless of case if the node has [`Flags::FOLD_CASE`].
    ///
    /// An escape can name a surrogate, which no text has.
    Literal(Vec<u32>),
    /// One code point of a class; the flags are accounted for in it.
    Class(ClassNode),
    /// Any code point but a newline.
    AnyCharNotNewline,
    /// Any code point.
    AnyChar,
    /// The begin of the text or of a line.
    BeginLine,
    /// The end of the text or of a line.
    EndLine,
    /// The begin of the text.
    BeginText,
    /// The end of the text.
    EndText,
    /// Between an ASCII word character and something else.
    WordBoundary,
    /// Not a [`Self::WordBoundary`].
    NoWordBoundary,
    /// The one part, captured.
    Capture(Capture),
    /// The one part, any number of times.
    Star,
    /// The one part, at least once.
    Plus,
    /// The one part, or nothing.
    Quest,
    /// The one part, at least `min` and at most `max` times.
    Repeat {
        /// The least number.
        min: u32,
        /// The greatest number, or `None` for no limit.
        max: Option<u32>,
    },
    /// All parts in a row.
    Concat,
    /// One of the parts, the first that leads to a match.
    Alternate,
    /// While parsing: the begin of a group, with its capture if it is one.
    LeftParen(Option<Capture>),
    /// While parsing: the alternatives of the group are below.
    VerticalBar,
}

impl NodeKind {
    /// Reports whether the node is a mark on the parser's stack, not a part of the tree.
    pub(super) fn is_mark(&self) -> bool {
        matches!(self, Self::LeftParen(_) | Self::VerticalBar)
    }
}

/// A capturing group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Its number, from 1.
    pub index: u32,
    /// Its name, if it has one.
    pub name: Option<Box<str>>,
}

/// A class, and what the parser must know of it without making its ranges again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassNode {
    /// The class.
    pub class: Class,
    pub(super) summary: Option<ClassSummary>,
}

impl ClassNode {
    /// An upper bound on the number of ranges.
    pub(super) fn n_ranges(&self) -> usize {
        match self.summary {
            Some(summary) => summary.n_ends / 2,
            None => self.class.n_ranges(),
        }
    }
}

/// Summary of a class, as far as the parser needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassSummary {
    /// The number of ends of its ranges.
    pub(super) n_ends: usize,
    pub(super) extent: Extent,
}

/// How much a class covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One code point.
    One(u32),
    /// One code point in both its cases, of which this is the lesser.
    BothCases(u32),
    /// All code points but the newline.
    AllButNewline,
    /// All code points.
    All,
    /// Anything else.
    Other,
}

/// A node: what it matches, the flags where it was written, its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Kind of the node.
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
    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// The node `id`, which must be of this expression.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        static NOTHING: Node = Node {
            kind: NodeKind::NoMatch,
            flags: Flags(0),
            parts: Vec::new(),
        };
        self.nodes.get(id.index()).unwrap_or(&NOTHING)
    }

    /// The number of capturing groups.
    #[must_use]
    pub fn n_captures(&self) -> u32 {
        self.n_captures
    }
}
