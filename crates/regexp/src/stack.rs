//! The parser's stack. It builds the tree and enforces Go's limits.
//!
//! Go measures sizes and heights only if the number of nodes exceeds a bound. For sizes, Go multiplies this number by
//! the repetition counts before the comparison. The number of nodes depends on the reuse of freed nodes. This parser
//! therefore recycles nodes exactly where Go does.
//!
//! Source: Go `regexp/syntax/parse.go` (`checkLimits`, `push`, `maybeConcat`, `repeat`, `concat`,
//! `alternate`, `collapse`, `swapVerticalBar`).

use std::collections::HashMap;

use super::class::{Class, Item};
use super::error::SyntaxErrorCode;
use super::ranges::MAX_RUNE;
use super::tree::{ClassNode, ClassSummary, Extent, Flags, Node, NodeId, NodeKind};
use super::unicode::{min_fold, simple_fold};

/// Maximum height of a tree.
///
/// Source: Go `regexp/syntax/parse.go`, `maxHeight`.
const MAX_HEIGHT: u64 = 1000;

/// Maximum size of a program, in instructions.
///
/// Source: Go `regexp/syntax/parse.go`, `maxSize`.
const MAX_SIZE: u64 = (128 << 20) / 40;

/// Maximum number of code points in a tree. Each range of a class counts as two.
///
/// Source: Go `regexp/syntax/parse.go`, `maxRunes`.
const MAX_RUNES: usize = (128 << 20) / 4;

/// Maximum product of nested repetition counts.
///
/// Source: Go `regexp/syntax/parse.go`, `repeat`.
pub(super) const MAX_REPEAT: u32 = 1000;

pub(super) type Limited<T> = Result<T, SyntaxErrorCode>;

#[derive(Debug)]
pub(super) struct Stack {
    pub(super) flags: Flags,
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    /// Nodes without a parent, and marks for `(` and `|`.
    open: Vec<NodeId>,
    n_runes: usize,
    repeats: u64,
    /// Sizes of nodes. `None` until the first measurement.
    sizes: Option<Measures>,
    /// Heights of nodes. `None` until the first measurement.
    heights: Option<Measures>,
    /// Summaries of expensive classes.
    summaries: HashMap<Class, ClassSummary>,
    /// Size and height of the last node from [`Stack::collapse`], if known.
    collapsed: Option<Collapsed>,
    /// Recursion depth of factoring.
    pub(super) factor_depth: u32,
}

/// Size and height of a concatenation that absorbed another concatenation. They are derived from the measures of the
/// parts.
#[derive(Debug)]
struct Collapsed {
    id: NodeId,
    size: Option<u64>,
    height: Option<u64>,
}

/// The size or height of each measured node. 0 for nodes that have not been measured.
#[derive(Debug, Default)]
struct Measures(Vec<u64>);

impl Measures {
    fn get(&self, id: NodeId) -> Option<u64> {
        self.0.get(id.index()).copied().filter(|value| *value > 0)
    }

    fn insert(&mut self, id: NodeId, value: u64) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, 0);
        }
        if let Some(place) = self.0.get_mut(id.index()) {
            *place = value;
        }
    }

    fn remove(&mut self, id: NodeId) {
        if let Some(place) = self.0.get_mut(id.index()) {
            *place = 0;
        }
    }
}

impl Stack {
    pub(super) fn new(flags: Flags) -> Self {
        Self {
            flags,
            nodes: Vec::new(),
            free: Vec::new(),
            open: Vec::new(),
            n_runes: 0,
            repeats: 1,
            sizes: None,
            heights: None,
            summaries: HashMap::new(),
            collapsed: None,
            factor_depth: 0,
        }
    }

    #[expect(clippy::indexing_slicing, reason = "only `alloc` creates ids")]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    #[expect(clippy::indexing_slicing, reason = "only `alloc` creates ids")]
    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// Creates a node. Reuses a recycled node if there is one.
    pub(super) fn alloc(&mut self, kind: NodeKind, flags: Flags) -> NodeId {
        let node = Node {
            kind,
            flags,
            parts: Vec::new(),
        };
        if let Some(id) = self.free.pop() {
            *self.node_mut(id) = node;
            return id;
        }
        self.nodes.push(node);
        NodeId::new(self.nodes.len() - 1)
    }

    pub(super) fn recycle(&mut self, id: NodeId) {
        if let Some(heights) = &mut self.heights {
            heights.remove(id);
        }
        self.collapsed = self.collapsed.take().filter(|known| known.id != id);
        self.free.push(id);
    }

    /// Returns the only node on the stack as the root, and all nodes. Returns `None` if a group is still open.
    pub(super) fn finish(mut self) -> Option<(NodeId, Vec<Node>)> {
        let root = self.open.pop()?;
        self.open.is_empty().then_some((root, self.nodes))
    }
}

/// Checks of Go's limits.
impl Stack {
    pub(super) fn check_limits(&mut self, id: NodeId) -> Limited<()> {
        if self.n_runes > MAX_RUNES {
            return Err(SyntaxErrorCode::Large);
        }
        self.check_size(id)?;
        self.check_height(id)
    }

    fn check_size(&mut self, id: NodeId) -> Limited<()> {
        if self.sizes.is_none() {
            if let NodeKind::Repeat { min, max } = self.node(id).kind {
                let count = u64::from(max.unwrap_or(min).max(1));
                let fits = count <= MAX_SIZE / self.repeats;
                self.repeats = if fits { self.repeats * count } else { MAX_SIZE };
            }
            if (self.nodes.len() as u64) < MAX_SIZE / self.repeats {
                return Ok(());
            }
            self.sizes = Some(Measures::default());
            for n in 0..self.open.len() {
                if let Some(&below) = self.open.get(n) {
                    self.check_size(below)?;
                }
            }
        }
        let mut sizes = self.sizes.take().unwrap_or_default();
        let size = match self.collapsed.as_ref().filter(|known| known.id == id) {
            Some(Collapsed {
                size: Some(size), ..
            }) => {
                sizes.insert(id, *size);
                *size
            }
            _ => self.measure_size(&mut sizes, id),
        };
        self.sizes = Some(sizes);
        if size > MAX_SIZE {
            Err(SyntaxErrorCode::Large)
        } else {
            Ok(())
        }
    }

    fn measure_size(&self, sizes: &mut Measures, id: NodeId) -> u64 {
        let node = self.node(id);
        let mut parts = 0_u64;
        for &part in &node.parts {
            let size = match sizes.get(part) {
                Some(size) => size,
                None => self.measure_size(sizes, part),
            };
            parts = parts.saturating_add(size);
        }
        let size = match &node.kind {
            NodeKind::Literal(runes) => runes.len() as u64,
            NodeKind::Capture(_) | NodeKind::Star | NodeKind::Repeat { min: 0, max: None } => {
                parts.saturating_add(2)
            }
            NodeKind::Plus | NodeKind::Quest => parts.saturating_add(1),
            NodeKind::Concat => parts,
            NodeKind::Alternate => {
                parts.saturating_add((node.parts.len() as u64).saturating_sub(1))
            }
            NodeKind::Repeat { min, max: None } => {
                parts.saturating_mul(u64::from(*min)).saturating_add(1)
            }
            NodeKind::Repeat {
                min,
                max: Some(max),
            } => {
                let optional = u64::from(max.saturating_sub(*min));
                parts
                    .saturating_mul(u64::from(*max))
                    .saturating_add(optional)
            }
            _ => 0,
        };
        let size = size.max(1);
        sizes.insert(id, size);
        size
    }

    fn check_height(&mut self, id: NodeId) -> Limited<()> {
        if (self.nodes.len() as u64) < MAX_HEIGHT {
            return Ok(());
        }
        if self.heights.is_none() {
            self.heights = Some(Measures::default());
            for n in 0..self.open.len() {
                if let Some(&below) = self.open.get(n) {
                    self.check_height(below)?;
                }
            }
        }
        let mut heights = self.heights.take().unwrap_or_default();
        let height = match self.collapsed.as_ref().filter(|known| known.id == id) {
            Some(Collapsed {
                height: Some(height),
                ..
            }) => {
                heights.insert(id, *height);
                *height
            }
            _ => self.measure_height(&mut heights, id),
        };
        self.heights = Some(heights);
        if height > MAX_HEIGHT {
            Err(SyntaxErrorCode::NestingDepth)
        } else {
            Ok(())
        }
    }

    fn measure_height(&self, heights: &mut Measures, id: NodeId) -> u64 {
        let mut height = 1;
        for &part in &self.node(id).parts {
            let below = match heights.get(part) {
                Some(height) => height,
                None => self.measure_height(heights, part),
            };
            height = height.max(below.saturating_add(1));
        }
        heights.insert(id, height);
        height
    }
}

/// Operations that push nodes.
impl Stack {
    pub(super) fn op(&mut self, kind: NodeKind) -> Limited<()> {
        let id = self.alloc(kind, self.flags);
        self.push(id)
    }

    pub(super) fn literal(&mut self, rune: u32) -> Limited<()> {
        let folds = self.flags.has(Flags::FOLD_CASE);
        let rune = if folds { min_fold(rune) } else { rune };
        self.op(NodeKind::Literal(vec![rune]))
    }

    /// Creates a node for a class. [`Self::push_class`] sets the class later.
    pub(super) fn alloc_class(&mut self) -> NodeId {
        let class = Class::new(Vec::new(), false, false);
        self.alloc(
            NodeKind::Class(ClassNode {
                class,
                summary: None,
            }),
            self.flags,
        )
    }

    /// Sets the class of a node from [`Self::alloc_class`], and pushes the node.
    pub(super) fn push_class(&mut self, id: NodeId, class: Class) -> Limited<()> {
        self.node_mut(id).kind = NodeKind::Class(ClassNode {
            class,
            summary: None,
        });
        self.push(id)
    }

    pub(super) fn push(&mut self, id: NodeId) -> Limited<()> {
        let mut single = None;
        match &self.node(id).kind {
            NodeKind::Literal(runes) => {
                let n_runes = runes.len();
                self.n_runes += n_runes;
            }
            NodeKind::Class(_) => {
                let summary = self.summary(id);
                self.n_runes += summary.n_ends;
                single = match summary.extent {
                    Extent::One(rune) => Some((rune, self.flags.without(Flags::FOLD_CASE))),
                    Extent::BothCases(rune) => Some((rune, self.flags.with(Flags::FOLD_CASE))),
                    _ => None,
                };
            }
            _ => {}
        }
        if self.join_literals(single) {
            return Ok(());
        }
        if let Some((rune, flags)) = single {
            let node = self.node_mut(id);
            node.kind = NodeKind::Literal(vec![rune]);
            node.flags = flags;
        }
        self.open.push(id);
        self.check_limits(id)
    }

    /// Joins the two literals at the top of the stack. The caller ensures that no later repetition operator applies to
    /// the upper literal alone.
    ///
    /// The freed node is reused for the literal `next`. Returns true if `next` was pushed.
    fn join_literals(&mut self, next: Option<(u32, Flags)>) -> bool {
        let [.., below, top] = *self.open.as_slice() else {
            return false;
        };
        let fold = |flags: Flags| flags.only(Flags::FOLD_CASE);
        if fold(self.node(below).flags) != fold(self.node(top).flags) {
            return false;
        }
        if !matches!(self.node(below).kind, NodeKind::Literal(_)) {
            return false;
        }
        let NodeKind::Literal(runes) = &mut self.node_mut(top).kind else {
            return false;
        };
        let mut runes = std::mem::take(runes);
        if let NodeKind::Literal(joined) = &mut self.node_mut(below).kind {
            joined.append(&mut runes);
        }
        if let Some((rune, flags)) = next {
            let node = self.node_mut(top);
            node.kind = NodeKind::Literal(vec![rune]);
            node.flags = flags;
            return true;
        }
        self.open.pop();
        self.recycle(top);
        false
    }

    /// Replaces the top of the stack with its repetition. Returns `None` if the stack has no operand.
    pub(super) fn repeat(&mut self, kind: NodeKind, flags: Flags) -> Limited<Option<NodeId>> {
        let Some(&part) = self
            .open
            .last()
            .filter(|top| !self.node(**top).kind.is_mark())
        else {
            return Ok(None);
        };
        let id = self.alloc(kind, flags);
        self.node_mut(id).parts.push(part);
        self.open.pop();
        self.open.push(id);
        self.check_limits(id)?;
        Ok(Some(id))
    }

    /// Returns true if the product of nested repetition counts is at most `n`.
    pub(super) fn repeats_at_most(&self, id: NodeId, mut n: u32) -> bool {
        let node = self.node(id);
        if let NodeKind::Repeat { min, max } = node.kind {
            match max.unwrap_or(min) {
                0 if max.is_some() => return true,
                count if count > n => return false,
                0 => {}
                count => n /= count,
            }
        }
        node.parts.iter().all(|part| self.repeats_at_most(*part, n))
    }
}

/// Groups and alternatives.
impl Stack {
    fn take_above_mark(&mut self) -> Vec<NodeId> {
        let is_mark = |id: &NodeId| self.node(*id).kind.is_mark();
        let start = self
            .open
            .iter()
            .rposition(is_mark)
            .map_or(0, |mark| mark + 1);
        self.open.split_off(start)
    }

    /// Replaces the nodes above the topmost mark with their concatenation.
    fn concat(&mut self) -> Limited<()> {
        self.join_literals(None);
        let parts = self.take_above_mark();
        let id = if parts.is_empty() {
            self.alloc(NodeKind::Empty, Flags::default())
        } else {
            self.collapse(parts, &NodeKind::Concat)?
        };
        self.push(id)
    }

    /// Replaces the nodes above the topmost mark with their alternation.
    fn alternate(&mut self) -> Limited<()> {
        let parts = self.take_above_mark();
        if let Some(&last) = parts.last() {
            self.clean_alternative(last);
        }
        let id = if parts.is_empty() {
            self.alloc(NodeKind::NoMatch, Flags::default())
        } else {
            self.collapse(parts, &NodeKind::Alternate)?
        };
        self.push(id)
    }

    /// Combines `parts` into a node of `kind`, which is a concatenation or an alternation. Parts of the same kind are
    /// flattened.
    pub(super) fn collapse(&mut self, parts: Vec<NodeId>, kind: &NodeKind) -> Limited<NodeId> {
        if let [part] = *parts {
            return Ok(part);
        }
        let collapsed = self.measures_of_concat(&parts, kind);
        let id = self.alloc(kind.clone(), Flags::default());
        let mut flat = Vec::new();
        for part in parts {
            if self.node(part).kind == *kind {
                let mut inner = std::mem::take(&mut self.node_mut(part).parts);
                if flat.is_empty() {
                    flat = inner;
                } else {
                    flat.append(&mut inner);
                }
                self.recycle(part);
            } else {
                flat.push(part);
            }
        }
        // Factoring changes nodes, which invalidates the size and height.
        self.collapsed = None;
        if *kind == NodeKind::Alternate {
            flat = self.factor(flat)?;
            if let [part] = *flat {
                self.recycle(id);
                return Ok(part);
            }
        }
        self.node_mut(id).parts = flat;
        self.collapsed = collapsed.map(|(size, height)| Collapsed { id, size, height });
        Ok(id)
    }

    /// Computes the size and height of the concatenation of `parts`, if one of the parts is itself a concatenation.
    /// Without this function, measuring nested groups would take quadratic time.
    fn measures_of_concat(
        &self,
        parts: &[NodeId],
        kind: &NodeKind,
    ) -> Option<(Option<u64>, Option<u64>)> {
        if *kind != NodeKind::Concat {
            return None;
        }
        let is_concat = |part: &NodeId| self.node(*part).kind == NodeKind::Concat;
        if !parts.iter().any(is_concat) {
            return None;
        }
        let size = self.sizes.as_ref().and_then(|sizes| {
            let mut sum = 0_u64;
            for part in parts {
                sum = sum.saturating_add(sizes.get(*part)?);
            }
            Some(sum)
        });
        let height = self.heights.as_ref().and_then(|heights| {
            let mut most = 1;
            for part in parts {
                // The parts of a nested concatenation become parts of the new concatenation.
                let height = heights.get(*part)?;
                most = most.max(if is_concat(part) { height } else { height + 1 });
            }
            Some(most)
        });
        Some((size, height))
    }

    /// Handles `|`.
    pub(super) fn vertical_bar(&mut self) -> Limited<()> {
        self.concat()?;
        if self.swap_vertical_bar() {
            return Ok(());
        }
        self.op(NodeKind::VerticalBar)
    }

    /// Ends the alternatives of the innermost group or of the whole pattern.
    pub(super) fn end_group(&mut self) -> Limited<()> {
        self.concat()?;
        if self.swap_vertical_bar() {
            self.open.pop();
        }
        self.alternate()
    }

    /// Handles `)`. Returns false if no group is open.
    pub(super) fn right_paren(&mut self) -> Limited<bool> {
        self.end_group()?;
        let [.., open, content] = *self.open.as_slice() else {
            return Ok(false);
        };
        self.open.truncate(self.open.len() - 2);
        let node = self.node_mut(open);
        let NodeKind::LeftParen(capture) = &mut node.kind else {
            return Ok(false);
        };
        let capture = capture.take();
        let flags = node.flags;
        let id = match capture {
            None => content,
            Some(capture) => {
                node.kind = NodeKind::Capture(capture);
                node.parts = vec![content];
                open
            }
        };
        self.flags = flags;
        self.push(id)?;
        Ok(true)
    }

    /// If there is a vertical bar below the top of the stack, moves the top below the bar, as another alternative. If
    /// this alternative and the previous one are single characters or classes, merges them.
    fn swap_vertical_bar(&mut self) -> bool {
        let [.., bar, top] = *self.open.as_slice() else {
            return false;
        };
        if self.node(bar).kind != NodeKind::VerticalBar {
            return false;
        }
        let n = self.open.len();
        let before = n.checked_sub(3).and_then(|n| self.open.get(n).copied());
        if let Some(before) = before
            && let (Some(left), Some(right)) = (self.class_rank(before), self.class_rank(top))
        {
            let (from, into) = if right > left {
                (before, top)
            } else {
                (top, before)
            };
            self.merge_classes(into, from);
            self.open.truncate(n - 3);
            self.open.extend([into, bar]);
            return true;
        }
        if let Some(before) = before {
            self.clean_alternative(before);
        }
        self.open.truncate(n - 2);
        self.open.extend([top, bar]);
        true
    }
}

/// Classes as alternatives.
impl Stack {
    /// Returns the rank of a single character or class. A node with a higher rank can match more characters. Returns
    /// `None` for other nodes.
    pub(super) fn class_rank(&self, id: NodeId) -> Option<u8> {
        match &self.node(id).kind {
            NodeKind::Literal(runes) if runes.len() == 1 => Some(0),
            NodeKind::Class(_) => Some(1),
            NodeKind::AnyCharNotNewline => Some(2),
            NodeKind::AnyChar => Some(3),
            _ => None,
        }
    }

    /// Merges `from` into `into`. `into` must have at least the rank of `from`.
    pub(super) fn merge_classes(&mut self, into: NodeId, from: NodeId) {
        let other = std::mem::take(self.node_mut(from));
        self.recycle(from);
        let node = self.node_mut(into);
        match &mut node.kind {
            NodeKind::AnyCharNotNewline if matches_newline(&other) => {
                node.kind = NodeKind::AnyChar;
            }
            NodeKind::Class(class) => {
                if let Some(other) = class_of(&other)
                    && class.class.merge(other)
                {
                    class.summary = None;
                }
            }
            NodeKind::Literal(_) => {
                let is_same = node.kind == other.kind && node.flags == other.flags;
                if !is_same
                    && let (Some(mut class), Some(other)) = (class_of(node), class_of(&other))
                {
                    class.merge(other);
                    node.kind = NodeKind::Class(ClassNode {
                        class,
                        summary: None,
                    });
                }
            }
            _ => {}
        }
    }

    /// Replaces a class with a `.` node if it contains all code points, or all of them except the newline.
    pub(super) fn clean_alternative(&mut self, id: NodeId) {
        if matches!(self.node(id).kind, NodeKind::Class(_)) {
            match self.summary(id).extent {
                Extent::All => self.node_mut(id).kind = NodeKind::AnyChar,
                Extent::AllButNewline => self.node_mut(id).kind = NodeKind::AnyCharNotNewline,
                _ => {}
            }
        }
    }
}

/// Converts a single character or class to a [`Class`]. Returns `None` for other nodes.
fn class_of(node: &Node) -> Option<Class> {
    match &node.kind {
        NodeKind::Literal(runes) => {
            let &rune = runes.first()?;
            let folds = node.flags.has(Flags::FOLD_CASE);
            Some(Class::new(vec![Item::Range(rune, rune)], false, folds))
        }
        NodeKind::Class(class) => Some(class.class.clone()),
        _ => None,
    }
}

fn matches_newline(node: &Node) -> bool {
    match &node.kind {
        NodeKind::AnyChar => true,
        // Ignores the flag for case folding, like Go: a newline has no case variants.
        NodeKind::Literal(runes) => *runes == [NEWLINE],
        NodeKind::Class(class) => class.class.contains_caseless(NEWLINE),
        _ => false,
    }
}

const NEWLINE: u32 = 0xa;

impl Stack {
    /// Returns the summary of the class `id`. Computes it if necessary.
    pub(super) fn summary(&mut self, id: NodeId) -> ClassSummary {
        let NodeKind::Class(class) = &self.node(id).kind else {
            return ClassSummary {
                n_ends: 0,
                extent: Extent::Other,
            };
        };
        if let Some(summary) = class.summary {
            return summary;
        }
        let is_expensive = class.class.is_expensive();
        let cached = is_expensive
            .then(|| self.summaries.get(&class.class).copied())
            .flatten();
        let summary = cached.unwrap_or_else(|| summarize(&class.class));
        if is_expensive && cached.is_none() {
            self.summaries.insert(class.class.clone(), summary);
        }
        if let NodeKind::Class(class) = &mut self.node_mut(id).kind {
            class.summary = Some(summary);
        }
        summary
    }
}

fn summarize(class: &Class) -> ClassSummary {
    let ranges = class.ranges();
    let is_pair = |a, b| simple_fold(a) == b && simple_fold(b) == a;
    let extent = match *ranges.as_slice() {
        [(a, b)] if a == b => Extent::One(a),
        [(a, b)] if a + 1 == b && is_pair(a, b) => Extent::BothCases(a),
        [(a, b), (c, d)] if a == b && c == d && is_pair(a, c) => Extent::BothCases(a),
        [(0, MAX_RUNE)] => Extent::All,
        [(0, a), (b, MAX_RUNE)] if a + 1 == NEWLINE && b == NEWLINE + 1 => Extent::AllButNewline,
        _ => Extent::Other,
    };
    ClassSummary {
        n_ends: 2 * ranges.as_slice().len(),
        extent,
    }
}
