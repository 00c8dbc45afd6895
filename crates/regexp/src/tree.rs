//! The syntax tree of a regular expression.
//!
//! Source: Go `regexp/syntax/regexp.go` (`Regexp`, `Op`).

use super::class::Class;

/// Index of a node in its [`Regex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

impl NodeId {
    pub(super) fn new(index: usize) -> Self {
        // A pattern has fewer nodes than bytes, so every index fits into 32 bits.
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Flags that apply to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Ignores case: `(?i)`.
    pub const FOLD_CASE: Self = Self(1);
    /// `.` also matches a newline: `(?s)`.
    pub const DOT_NL: Self = Self(1 << 1);
    /// `^` and `$` match only at the start and end of the input: the default, `(?-m)`.
    pub const ONE_LINE: Self = Self(1 << 2);
    /// Repetitions are lazy: `(?U)`, or a repetition with `?`.
    pub const NON_GREEDY: Self = Self(1 << 3);
    /// The source has `$`, not `\z`. Only for [`NodeKind::EndText`].
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

/// The kind of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Never matches.
    #[default]
    NoMatch,
    /// Matches the empty string.
    Empty,
    /// A sequence of code points. Case is ignored if the node has [`Flags::FOLD_CASE`].
    ///
    /// A code point may be a surrogate, which never occurs in a string.
    Literal(Vec<u32>),
    /// One code point of the class. The class already includes case variants if case is ignored.
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
    /// The boundary between an ASCII word character and any other character.
    WordBoundary,
    /// Any position that is not a [`Self::WordBoundary`].
    NoWordBoundary,
    /// A capturing group. Has one subexpression.
    Capture(Capture),
    /// Repeats its subexpression any number of times.
    Star,
    /// Repeats its subexpression at least once.
    Plus,
    /// Matches its subexpression or the empty string.
    Quest,
    /// Repeats its subexpression at least `min` times, and at most `max` times.
    Repeat {
        /// The minimum count.
        min: u32,
        /// The maximum count. `None` means no maximum.
        max: Option<u32>,
    },
    /// Concatenation of all subexpressions.
    Concat,
    /// Alternation of the subexpressions. The first subexpression that leads to a match is preferred.
    Alternate,
    /// The start of a group, only while parsing. Contains the capture of a capturing group.
    LeftParen(Option<Capture>),
    /// A vertical bar, only while parsing. The stack contains the group's alternatives below the bar.
    VerticalBar,
}

impl NodeKind {
    /// Returns true if the node is a mark on the parser's stack. A mark is not part of the tree.
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

/// A class and a summary of it. The summary saves the parser from computing the ranges again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassNode {
    /// The class.
    pub class: Class,
    pub(super) summary: Option<ClassSummary>,
}

impl ClassNode {
    pub(super) fn n_ranges(&self) -> usize {
        match self.summary {
            Some(summary) => summary.n_ends / 2,
            None => self.class.n_ranges(),
        }
    }
}

/// Properties of a class for the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassSummary {
    /// Number of first and last code points in the class's ranges: two for each range.
    pub(super) n_ends: usize,
    pub(super) extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One code point.
    One(u32),
    /// A code point and its only case variant. Contains the smaller one.
    BothCases(u32),
    AllButNewline,
    /// All code points.
    All,
    /// Any other set.
    Other,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The kind of node.
    pub kind: NodeKind,
    /// The flags that apply to the node.
    pub flags: Flags,
    /// The parts, in order.
    pub parts: Vec<NodeId>,
}

/// The tree of a regular expression.
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

    /// Returns the node `id`. `id` must belong to this expression.
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
