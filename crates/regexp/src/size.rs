//! Estimates the sizes of engines from the tree, before an engine is built.

use std::collections::HashSet;

use super::class::Class;
use super::machine::{INSTRUCTION_BYTES, SEARCH_BYTES};
use super::tree::{Flags, Node, NodeId, NodeKind, Regex};

/// Sizes of the engines of a pattern. A sum that would overflow is `usize::MAX`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Upper bound on the number of instructions of the built-in machine.
    pub(super) n_instructions: usize,
    /// Number of states of the automaton. The automaton reads bytes.
    pub(super) n_states: usize,
    /// Bytes of the ranges of all distinct classes.
    class_bytes: usize,
}

/// Number of states for `.` in the reverse automaton, which is larger than the forward automaton.
const ANY_STATES: usize = 28;

/// Number of states in the reverse automaton for each range of a large class.
const RANGE_STATES: usize = 2;

/// Bytes of an automaton state, including its transitions.
const STATE_BYTES: usize = 28;

const RANGE_BYTES: usize = 8;

impl Size {
    /// Returns the bytes of the built-in machine and of a search.
    pub(super) fn machine_bytes(&self) -> usize {
        self.n_instructions
            .saturating_mul(INSTRUCTION_BYTES + SEARCH_BYTES)
            .saturating_add(self.class_bytes)
    }

    /// Returns the estimated bytes of a forward or reverse automaton.
    pub(super) fn automaton_bytes(&self) -> usize {
        self.n_states.saturating_mul(STATE_BYTES)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    instructions: usize,
    states: usize,
}

impl Count {
    fn plus(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_add(other.instructions),
            states: self.states.saturating_add(other.states),
        }
    }

    fn times(self, n: u32) -> Self {
        let n = n as usize;
        Self {
            instructions: self.instructions.saturating_mul(n),
            states: self.states.saturating_mul(n),
        }
    }

    const fn new(n: usize) -> Self {
        Self {
            instructions: n,
            states: n,
        }
    }
}

pub(super) fn estimate(regex: &Regex) -> Size {
    let mut counts = vec![Count::default(); regex.nodes.len()];
    let mut classes: HashSet<&Class> = HashSet::new();
    let mut class_bytes = 0_usize;
    let mut pending = vec![(regex.root(), false)];
    while let Some((id, is_visited)) = pending.pop() {
        let node = regex.node(id);
        if !is_visited && !node.parts.is_empty() {
            pending.push((id, true));
            pending.extend(node.parts.iter().map(|part| (*part, false)));
            continue;
        }
        if let NodeKind::Class(class) = &node.kind
            && classes.insert(&class.class)
        {
            let n_bytes = class.n_ranges().saturating_mul(RANGE_BYTES);
            class_bytes = class_bytes.saturating_add(n_bytes);
        }
        let count = count_of(node, &counts);
        if let Some(place) = counts.get_mut(id.index()) {
            *place = count;
        }
    }
    let root = counts
        .get(regex.root().index())
        .copied()
        .unwrap_or_default()
        .plus(Count::new(1));
    Size {
        n_instructions: root.instructions,
        n_states: root.states,
        class_bytes,
    }
}

/// Computes the numbers of instructions and states of `node`. `counts` contains these numbers for its parts.
fn count_of(node: &Node, counts: &[Count]) -> Count {
    let part_count = |part: &NodeId| counts.get(part.index()).copied().unwrap_or_default();
    let parts = node
        .parts
        .iter()
        .map(part_count)
        .fold(Count::default(), Count::plus);
    match &node.kind {
        NodeKind::Literal(runes) => {
            let states_each = if node.flags.has(Flags::FOLD_CASE) {
                6
            } else {
                1
            };
            Count {
                instructions: runes.len(),
                states: runes
                    .iter()
                    .map(|rune| states_each * char::from_u32(*rune).map_or(1, char::len_utf8))
                    .fold(0, usize::saturating_add),
            }
        }
        NodeKind::Class(class) => Count {
            instructions: 1,
            states: class
                .n_ranges()
                .saturating_mul(RANGE_STATES)
                .saturating_add(ANY_STATES),
        },
        NodeKind::AnyChar | NodeKind::AnyCharNotNewline => Count {
            instructions: 1,
            states: ANY_STATES,
        },
        NodeKind::Concat | NodeKind::Capture(_) => parts,
        NodeKind::Star | NodeKind::Plus | NodeKind::Quest => parts.plus(Count::new(3)),
        NodeKind::Alternate => parts.plus(Count::new(2).times(n_parts(node))),
        NodeKind::Repeat { min, max: None } => parts.times((*min).max(1)).plus(Count::new(3)),
        NodeKind::Repeat {
            min,
            max: Some(max),
        } => parts
            .times(*max)
            .plus(Count::new(1).times(max.saturating_sub(*min))),
        _ => Count::new(1),
    }
}

fn n_parts(node: &Node) -> u32 {
    u32::try_from(node.parts.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn size(pattern: &str) -> Size {
        estimate(&crate::parse(pattern).unwrap())
    }

    #[test]
    fn size_estimate_counts_instructions_and_states() {
        for (pattern, n_instructions, n_states) in [
            ("", 2, 2),
            ("abc", 4, 4),
            ("\u{e9}\u{4e00}", 3, 6),
            ("(?i)ab", 3, 13),
            (".", 2, 29),
            ("(?s).", 2, 29),
            ("[a-c]", 2, 31),
            ("[a-cx-z]", 2, 33),
            ("^", 2, 2),
            ("(ab)", 3, 3),
            ("a*", 5, 5),
            ("a+", 5, 5),
            ("a?", 5, 5),
            ("a{3}", 4, 4),
            ("a{2,5}", 9, 9),
            ("a{3,}", 7, 7),
            ("a{0,}", 5, 5),
            ("ab|cd", 9, 9),
            ("a.|bc|de", 13, 40),
        ] {
            let size = size(pattern);
            let actual = (size.n_instructions, size.n_states);
            assert_eq!(actual, (n_instructions, n_states), "{pattern}");
        }
    }

    #[test]
    fn size_estimate_is_upper_bound_of_program() {
        for pattern in [
            "",
            "a",
            "a*",
            "(a*)*",
            "a+?",
            "a??",
            "a{2,5}",
            "(ab|c|d*){2,}",
            "(?i)ks[ab]|\\d",
            "(?:|a)+",
        ] {
            let regex = crate::parse(pattern).unwrap();
            let n_instructions = Machine::new(&regex).len();
            let estimated = estimate(&regex).n_instructions;
            assert!(n_instructions <= estimated, "{pattern}");
            assert!(estimated <= 2 * n_instructions + 4, "{pattern}");
        }
    }

    #[test]
    fn estimate_of_bytes_includes_equal_classes_once() {
        let (one, two) = (size("[ac]x[ac]"), size("[ac]x[bd]"));
        let of_instructions = 4 * (INSTRUCTION_BYTES + SEARCH_BYTES);
        assert_eq!(one.machine_bytes(), of_instructions + 2 * RANGE_BYTES);
        assert_eq!(two.machine_bytes(), of_instructions + 4 * RANGE_BYTES);
        assert_eq!(size("ab").automaton_bytes(), 3 * STATE_BYTES);
    }
}
