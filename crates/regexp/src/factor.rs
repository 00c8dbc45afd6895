//! Factors out common prefixes of alternatives: `abc|abd` becomes `ab[cd]`.
//!
//! Source: Go `regexp/syntax/parse.go` (`factor`, `removeLeadingString`, `removeLeadingRegexp`).

use super::error::SyntaxErrorCode;
use super::stack::{Limited, Stack};
use super::tree::{ClassNode, Flags, NodeId, NodeKind};

/// Maximum nesting depth of common prefixes.
///
/// Go allows 1000 levels in a tree, and each nested prefix adds about two levels. Each nested prefix also requires a
/// longer alternative. A pattern that reaches this limit has 125,000 characters, which is longer than any literal in an
/// expression.
const MAX_DEPTH: u32 = 500;

impl Stack {
    /// Factors out common prefixes of adjacent alternatives in `parts`.
    pub(super) fn factor(&mut self, mut parts: Vec<NodeId>) -> Limited<Vec<NodeId>> {
        if parts.len() < 2 {
            return Ok(parts);
        }
        if self.factor_depth >= MAX_DEPTH {
            return Err(SyntaxErrorCode::NestingDepth);
        }
        self.factor_depth += 1;
        parts = self.factor_strings(parts)?;
        parts = self.factor_classes(parts)?;
        self.factor_depth -= 1;
        parts = self.join_characters(parts);
        parts.dedup_by(|next, previous| {
            let is_empty = |id| self.node(id).kind == NodeKind::Empty;
            is_empty(*next) && is_empty(*previous)
        });
        Ok(parts)
    }

    /// Factors out common literal prefixes.
    fn factor_strings(&mut self, parts: Vec<NodeId>) -> Limited<Vec<NodeId>> {
        let mut factored = Vec::with_capacity(parts.len());
        let mut run = Vec::new();
        // The longest common literal prefix of the current run.
        let mut common: Option<Leading> = None;
        for part in parts {
            let leading = self.leading_string(part);
            if !run.is_empty()
                && let (Some(common), Some(leading)) = (&mut common, &leading)
                && common.flags == leading.flags
            {
                let same = self.n_common(*common, *leading);
                if same > 0 {
                    common.len = same;
                    run.push(part);
                    continue;
                }
            }
            self.end_of_strings(&mut run, common, &mut factored)?;
            run.push(part);
            common = leading;
        }
        self.end_of_strings(&mut run, common, &mut factored)?;
        Ok(factored)
    }

    fn end_of_strings(
        &mut self,
        run: &mut Vec<NodeId>,
        common: Option<Leading>,
        factored: &mut Vec<NodeId>,
    ) -> Limited<()> {
        let Some(common) = common.filter(|_| run.len() > 1) else {
            factored.append(run);
            return Ok(());
        };
        let mut runes = self.runes(common.literal).to_vec();
        runes.truncate(common.len);
        let prefix = self.alloc(NodeKind::Literal(runes), common.flags);
        for part in run.iter_mut() {
            *part = self.remove_leading_string(*part, common.len);
            self.check_limits(*part)?;
        }
        factored.push(self.prefixed(prefix, std::mem::take(run))?);
        Ok(())
    }

    /// Creates `prefix` followed by an alternation of `suffixes`.
    fn prefixed(&mut self, prefix: NodeId, suffixes: Vec<NodeId>) -> Limited<NodeId> {
        let suffix = self.collapse(suffixes, &NodeKind::Alternate)?;
        let id = self.alloc(NodeKind::Concat, Flags::default());
        self.node_mut(id).parts = vec![prefix, suffix];
        Ok(id)
    }

    fn leading_string(&self, id: NodeId) -> Option<Leading> {
        let node = self.node(id);
        let literal = match (&node.kind, node.parts.first()) {
            (NodeKind::Concat, Some(&first)) => first,
            _ => id,
        };
        let node = self.node(literal);
        match &node.kind {
            NodeKind::Literal(runes) if !runes.is_empty() => {
                let flags = node.flags.only(Flags::FOLD_CASE);
                Some(Leading {
                    literal,
                    len: runes.len(),
                    flags,
                })
            }
            _ => None,
        }
    }

    fn runes(&self, id: NodeId) -> &[u32] {
        match &self.node(id).kind {
            NodeKind::Literal(runes) => runes,
            _ => &[],
        }
    }

    fn n_common(&self, left: Leading, right: Leading) -> usize {
        let (left_runes, right_runes) = (self.runes(left.literal), self.runes(right.literal));
        left_runes
            .iter()
            .take(left.len)
            .zip(right_runes)
            .take_while(|(l, r)| l == r)
            .count()
    }

    /// Removes the first `n` code points from the literal at the start of `id`.
    fn remove_leading_string(&mut self, id: NodeId, n: usize) -> NodeId {
        let node = self.node(id);
        let (NodeKind::Concat, Some(&first)) = (&node.kind, node.parts.first()) else {
            self.shorten(id, n);
            return id;
        };
        self.shorten(first, n);
        if self.node(first).kind != NodeKind::Empty {
            return id;
        }
        self.recycle(first);
        self.without_first_part(id)
    }

    fn shorten(&mut self, id: NodeId, n: usize) {
        let node = self.node_mut(id);
        if let NodeKind::Literal(runes) = &mut node.kind {
            runes.drain(..n.min(runes.len()));
            if runes.is_empty() {
                node.kind = NodeKind::Empty;
            }
        }
    }

    /// Removes the first part of the concatenation `id`. Returns the remaining part if there is only one, otherwise
    /// `id`.
    fn without_first_part(&mut self, id: NodeId) -> NodeId {
        let node = self.node_mut(id);
        if !node.parts.is_empty() {
            node.parts.remove(0);
        }
        match *node.parts {
            [] => {
                node.kind = NodeKind::Empty;
                id
            }
            [only] => {
                self.recycle(id);
                only
            }
            _ => id,
        }
    }

    /// Factors out common prefixes that are a class, or a class that is repeated a fixed number of times.
    ///
    /// Other prefixes stay, because factoring them out would merge distinct paths through the automaton.
    fn factor_classes(&mut self, parts: Vec<NodeId>) -> Limited<Vec<NodeId>> {
        let mut factored = Vec::with_capacity(parts.len());
        let mut run = Vec::new();
        let mut common = None;
        for part in parts {
            let leading = self.leading_part(part);
            if let (Some(common), Some(leading)) = (common, leading)
                && !run.is_empty()
                && self.is_simple(common)
                && self.is_equal(common, leading)
            {
                run.push(part);
                continue;
            }
            self.end_of_classes(&mut run, common, &mut factored)?;
            run.push(part);
            common = leading;
        }
        self.end_of_classes(&mut run, common, &mut factored)?;
        Ok(factored)
    }

    fn end_of_classes(
        &mut self,
        run: &mut Vec<NodeId>,
        common: Option<NodeId>,
        factored: &mut Vec<NodeId>,
    ) -> Limited<()> {
        let Some(prefix) = common.filter(|_| run.len() > 1) else {
            factored.append(run);
            return Ok(());
        };
        for (n, part) in run.iter_mut().enumerate() {
            // The prefix node is that of the first alternative (`n` is 0). It stays in use, so it is not recycled.
            *part = self.remove_leading_part(*part, n > 0);
            self.check_limits(*part)?;
        }
        factored.push(self.prefixed(prefix, std::mem::take(run))?);
        Ok(())
    }

    fn leading_part(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id);
        let leading = match (&node.kind, node.parts.first()) {
            (NodeKind::Concat, Some(&first)) => first,
            _ => id,
        };
        (self.node(leading).kind != NodeKind::Empty).then_some(leading)
    }

    fn is_simple(&self, id: NodeId) -> bool {
        let node = self.node(id);
        match (&node.kind, node.parts.first()) {
            (
                NodeKind::Repeat {
                    min,
                    max: Some(max),
                },
                Some(&part),
            ) => min == max && self.class_rank(part).is_some(),
            _ => self.class_rank(id).is_some(),
        }
    }

    /// Returns true if two nodes are equal. One of them must satisfy [`Self::is_simple`].
    fn is_equal(&self, left: NodeId, right: NodeId) -> bool {
        let (left, right) = (self.node(left), self.node(right));
        let same_flag = |flag| left.flags.only(flag) == right.flags.only(flag);
        match (&left.kind, &right.kind) {
            (NodeKind::Literal(l), NodeKind::Literal(r)) => same_flag(Flags::FOLD_CASE) && l == r,
            (NodeKind::Class(l), NodeKind::Class(r)) => {
                let n_ends = |class: &ClassNode| class.summary.map(|summary| summary.n_ends);
                let is_other = n_ends(l).zip(n_ends(r)).is_some_and(|(l, r)| l != r);
                same_flag(Flags::FOLD_CASE)
                    && !is_other
                    && (l.class == r.class || l.class.ranges() == r.class.ranges())
            }
            (NodeKind::AnyChar, NodeKind::AnyChar)
            | (NodeKind::AnyCharNotNewline, NodeKind::AnyCharNotNewline) => true,
            (NodeKind::Repeat { .. }, NodeKind::Repeat { .. }) => {
                left.kind == right.kind
                    && same_flag(Flags::NON_GREEDY)
                    && matches!((left.parts.first(), right.parts.first()),
                        (Some(&l), Some(&r)) if self.is_equal(l, r))
            }
            _ => false,
        }
    }

    /// Removes the leading part of `id`. If `recycle` is true, the node of that part is recycled.
    fn remove_leading_part(&mut self, id: NodeId, recycle: bool) -> NodeId {
        let node = self.node(id);
        let (NodeKind::Concat, Some(&first)) = (&node.kind, node.parts.first()) else {
            if recycle {
                self.recycle(id);
            }
            return self.alloc(NodeKind::Empty, Flags::default());
        };
        if recycle {
            self.recycle(first);
        }
        self.without_first_part(id)
    }

    /// Merges adjacent single characters and classes.
    fn join_characters(&mut self, parts: Vec<NodeId>) -> Vec<NodeId> {
        let mut joined = Vec::with_capacity(parts.len());
        let mut run = Vec::new();
        for part in parts {
            if self.class_rank(part).is_some() {
                run.push(part);
            } else {
                self.end_of_characters(&mut run, &mut joined);
                joined.push(part);
            }
        }
        self.end_of_characters(&mut run, &mut joined);
        joined
    }

    fn end_of_characters(&mut self, run: &mut Vec<NodeId>, joined: &mut Vec<NodeId>) {
        if run.len() > 1 {
            // Merges all parts of the run into the most general one, as Go does. If several are equally general, the
            // first of them is used.
            let mut most = 0;
            let mut most_general = (None, 0);
            for (n, &part) in run.iter().enumerate() {
                let general = (self.class_rank(part), self.n_ends(part));
                if n == 0 || general > most_general {
                    (most, most_general) = (n, general);
                }
            }
            run.swap(0, most);
            let mut rest = run.drain(..);
            if let Some(into) = rest.next() {
                for from in rest {
                    self.merge_classes(into, from);
                }
                self.clean_alternative(into);
                joined.push(into);
            }
        }
        joined.append(run);
    }

    fn n_ends(&mut self, id: NodeId) -> usize {
        match &self.node(id).kind {
            NodeKind::Literal(runes) => runes.len(),
            NodeKind::Class(_) => self.summary(id).n_ends,
            _ => 0,
        }
    }
}

/// The literal at the start of an alternative.
#[derive(Clone, Copy, Debug)]
struct Leading {
    literal: NodeId,
    /// Number of code points at the start of the literal that are common to all alternatives so far.
    len: usize,
    flags: Flags,
}
