//! Translates the syntax tree to the `Hir` of `regex-syntax`.

use regex_syntax::hir::{
    Class as HirClass, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition,
};

use super::ranges::{MAX_RUNE, Ranges};
use super::tree::{Flags, Node, NodeId, NodeKind, Regex};
use super::unicode::simple_fold;

/// Maximum depth of a translated tree. The engines recurse over the tree.
const MAX_DEPTH: u32 = 100;

/// Maximum number of code point ranges in all classes of a translated tree.
const MAX_RANGES: usize = 50_000;

/// Translates `regex`. Returns `None` if the tree is too deep or too large for the engines.
pub(super) fn translate(regex: &Regex) -> Option<Hir> {
    let mut translator = Translator { regex, n_ranges: 0 };
    translator.node(regex.root(), 0)
}

struct Translator<'a> {
    regex: &'a Regex,
    n_ranges: usize,
}

impl Translator<'_> {
    fn node(&mut self, id: NodeId, depth: u32) -> Option<Hir> {
        if depth > MAX_DEPTH {
            return None;
        }
        let node = self.regex.node(id);
        let part = |translator: &mut Self| {
            let part = *node.parts.first()?;
            translator.node(part, depth + 1)
        };
        Some(match &node.kind {
            NodeKind::NoMatch | NodeKind::LeftParen(_) | NodeKind::VerticalBar => Hir::fail(),
            NodeKind::Empty => Hir::empty(),
            NodeKind::Literal(runes) => literal(runes, node.flags),
            NodeKind::Class(class) => {
                let ranges = class.class.ranges();
                self.n_ranges += ranges.as_slice().len();
                if self.n_ranges > MAX_RANGES {
                    return None;
                }
                self::class(&ranges)
            }
            NodeKind::AnyCharNotNewline => class(&Ranges::new(vec![(0, 0x9), (0xb, MAX_RUNE)])),
            NodeKind::AnyChar => class(&Ranges::new(vec![(0, MAX_RUNE)])),
            NodeKind::BeginLine => Hir::look(Look::StartLF),
            NodeKind::EndLine => Hir::look(Look::EndLF),
            NodeKind::BeginText => Hir::look(Look::Start),
            NodeKind::EndText => Hir::look(Look::End),
            NodeKind::WordBoundary => Hir::look(Look::WordAscii),
            NodeKind::NoWordBoundary => Hir::look(Look::WordAsciiNegate),
            NodeKind::Capture(_) => part(self)?,
            NodeKind::Star => repetition(node, 0, None, part(self)?),
            NodeKind::Plus => repetition(node, 1, None, part(self)?),
            NodeKind::Quest => repetition(node, 0, Some(1), part(self)?),
            NodeKind::Repeat { min, max } => repetition(node, *min, *max, part(self)?),
            NodeKind::Concat => Hir::concat(self.parts(node, depth)?),
            NodeKind::Alternate => Hir::alternation(self.parts(node, depth)?),
        })
    }

    fn parts(&mut self, node: &Node, depth: u32) -> Option<Vec<Hir>> {
        let parts = node.parts.iter();
        parts.map(|part| self.node(*part, depth + 1)).collect()
    }
}

fn repetition(node: &Node, min: u32, max: Option<u32>, part: Hir) -> Hir {
    Hir::repetition(Repetition {
        min,
        max,
        greedy: !node.flags.has(Flags::NON_GREEDY),
        sub: Box::new(part),
    })
}

fn literal(runes: &[u32], flags: Flags) -> Hir {
    if flags.has(Flags::FOLD_CASE) {
        let cases = |rune: &u32| class(&Ranges::new(cases_of(*rune)));
        return Hir::concat(runes.iter().map(cases).collect());
    }
    let text: Option<String> = runes.iter().map(|rune| char::from_u32(*rune)).collect();
    // An escape sequence can denote a surrogate. No string contains a surrogate, so a literal with a surrogate never
    // matches.
    text.map_or_else(Hir::fail, |text| Hir::literal(text.into_bytes()))
}

/// Returns the case variants of `rune`, including `rune`, as ranges.
pub(super) fn cases_of(rune: u32) -> Vec<(u32, u32)> {
    let mut cases = vec![(rune, rune)];
    let mut other = simple_fold(rune);
    while other != rune {
        cases.push((other, other));
        other = simple_fold(other);
    }
    cases
}

fn class(ranges: &Ranges) -> Hir {
    let ranges = ranges.as_slice().iter().flat_map(|&(lo, hi)| {
        // Excludes surrogates, because a string never contains them.
        [(lo, hi.min(0xd7ff)), (lo.max(0xe000), hi)]
    });
    let ranges = ranges.filter_map(|(lo, hi)| {
        let (lo, hi) = (char::from_u32(lo)?, char::from_u32(hi)?);
        (lo <= hi).then(|| ClassUnicodeRange::new(lo, hi))
    });
    Hir::class(HirClass::Unicode(ClassUnicode::new(ranges)))
}
