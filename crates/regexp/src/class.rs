//! Character classes, in source form and as ranges of code points.
//!
//! A short pattern can refer thousands of times to classes with hundreds of ranges. A [`Class`] therefore stores the
//! names of sets. Its [`Ranges`] are computed on request.
//!
//! Source: Go `regexp/syntax/parse.go` (`parseClass`, `appendGroup`, `parseUnicodeClass`, `cleanClass`,
//! `negateClass`), `regexp/syntax/perl_groups.go`.

use std::collections::HashSet;

use super::ranges::Ranges;
use super::unicode::{self, UnicodeSet};

impl Ranges {
    /// Adds all case variants of the code points in the set.
    pub(super) fn folded(self) -> Self {
        let mut others = Vec::new();
        for &(lo, hi) in self.as_slice() {
            unicode::for_each_fold(lo, hi, |other| {
                if other < lo || hi < other {
                    others.push((other, other));
                }
            });
        }
        if others.is_empty() {
            return self;
        }
        others.extend(self.as_slice());
        Self::new(others)
    }
}

/// An item of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// A range, from the first to the last code point.
    Range(u32, u32),
    /// A named ASCII set of Perl or POSIX, such as `\d` or `[:alpha:]`.
    Ascii {
        set: &'static [(u32, u32)],
        negated: bool,
    },
    /// A Unicode category or script.
    Unicode { set: UnicodeSet, negated: bool },
}

impl Item {
    /// Adds the code points of the item. If `fold` is true, also adds their case variants.
    fn add_to(self, fold: bool, ranges: &mut Vec<(u32, u32)>) {
        let folded = |set: Ranges| if fold { set.folded() } else { set };
        match self {
            Self::Range(lo, hi) if !fold => ranges.push((lo, hi)),
            Self::Range(lo, hi) => ranges.append(&mut folded(Ranges(vec![(lo, hi)])).0),
            Self::Ascii { set, negated } => {
                let set = folded(Ranges(set.to_vec()));
                ranges.append(&mut if negated { set.negated() } else { set }.0);
            }
            Self::Unicode {
                set,
                negated: false,
            } => ranges.extend(set.ranges(fold).as_slice()),
            Self::Unicode { set, negated: true } => {
                ranges.append(&mut set.ranges(fold).negated().0);
            }
        }
    }
}

/// The items of one bracket expression or escape, and the flags in effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Part {
    items: Vec<Item>,
    negated: bool,
    fold: bool,
}

/// Ranges of a union. Periodic merging keeps the memory use proportional to the size of the union.
#[derive(Default)]
struct Collected {
    ranges: Vec<(u32, u32)>,
    /// Number of ranges that triggers the next merge, at least [`MAX_COLLECTED`].
    limit: usize,
}

/// Number of ranges collected before the first merge.
const MAX_COLLECTED: usize = 1 << 14;

impl Collected {
    fn join_if_many(&mut self) {
        if self.ranges.len() > self.limit.max(MAX_COLLECTED) {
            self.ranges = Ranges::new(std::mem::take(&mut self.ranges)).0;
            self.limit = self.ranges.len().saturating_mul(2);
        }
    }
}

impl Part {
    /// Adds the code points of the part to `collected`. Skips the Unicode sets in `seen`, because they have been added.
    fn add_to(&self, collected: &mut Collected, seen: &mut HashSet<(Item, bool)>) {
        if !self.negated {
            for item in &self.items {
                if !item.is_unicode() || seen.insert((*item, self.fold)) {
                    item.add_to(self.fold, &mut collected.ranges);
                    collected.join_if_many();
                }
            }
            return;
        }
        let positive = Self {
            negated: false,
            ..self.clone()
        };
        let mut own = Collected::default();
        positive.add_to(&mut own, &mut HashSet::new());
        let negated = Ranges::new(own.ranges).negated();
        collected.ranges.extend(negated.0);
        collected.join_if_many();
    }

    fn contains(&self, rune: u32) -> bool {
        let mut items = self.items.iter();
        items.any(|item| item.contains_caseless(rune, self.fold)) != self.negated
    }

    fn n_ranges(&self) -> usize {
        let items = self.items.iter().map(|item| item.n_ranges(self.fold));
        items.fold(1, usize::saturating_add)
    }
}

impl Item {
    fn is_unicode(self) -> bool {
        matches!(self, Self::Unicode { .. })
    }

    /// Returns true if the item contains `rune`. `rune` must have no case variants.
    fn contains_caseless(self, rune: u32, fold: bool) -> bool {
        match self {
            Self::Range(lo, hi) => (lo..=hi).contains(&rune),
            Self::Ascii { set, negated } => {
                set.iter().any(|(lo, hi)| (lo..=hi).contains(&&rune)) != negated
            }
            Self::Unicode { set, negated } => set.ranges(fold).contains(rune) != negated,
        }
    }

    fn n_ranges(self, fold: bool) -> usize {
        match self {
            Self::Range(lo, hi) if fold => {
                let n_others = (hi - lo).saturating_add(1).min(MAX_FOLDED);
                (n_others as usize).saturating_mul(3)
            }
            Self::Range(..) => 1,
            Self::Ascii { set, .. } => set.len() + 3,
            Self::Unicode { set, .. } => set.ranges(fold).as_slice().len() + 1,
        }
    }
}

/// Upper bound on the number of code points with case variants.
const MAX_FOLDED: u32 = 3_000;

/// A character class in source form. The parser may merge several alternatives into one class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    parts: Vec<Part>,
}

impl Class {
    pub(super) fn new(items: Vec<Item>, negated: bool, fold: bool) -> Self {
        Self {
            parts: vec![Part {
                items,
                negated,
                fold,
            }],
        }
    }

    /// Adds the items of `other` that are not yet in the class. Returns true if the class changed.
    pub(super) fn merge(&mut self, other: Self) -> bool {
        let mut is_changed = false;
        for mut part in other.parts {
            match self.parts.last_mut() {
                Some(last) if !last.negated && !part.negated && last.fold == part.fold => {
                    let compared = last.items.get(..MAX_COMPARED).unwrap_or(&last.items);
                    part.items.retain(|item| !compared.contains(item));
                    is_changed |= !part.items.is_empty();
                    last.items.append(&mut part.items);
                }
                Some(last) if *last == part => {}
                _ => {
                    self.parts.push(part);
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// Returns true if computing the ranges is expensive: a set of the class is large or needs case folding.
    pub(super) fn is_expensive(&self) -> bool {
        let is_expensive =
            |part: &Part| part.fold || part.items.iter().any(|item| item.is_unicode());
        self.parts.iter().any(is_expensive)
    }

    /// Returns true if the class contains `rune`. `rune` must have no case variants.
    pub(super) fn contains_caseless(&self, rune: u32) -> bool {
        self.parts.iter().any(|part| part.contains(rune))
    }

    /// Returns an upper bound on the number of ranges.
    pub(super) fn n_ranges(&self) -> usize {
        let parts = self.parts.iter().map(Part::n_ranges);
        parts.fold(0, usize::saturating_add)
    }

    /// Returns the code points of the class.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
        let (mut collected, mut seen) = (Collected::default(), HashSet::new());
        for part in &self.parts {
            part.add_to(&mut collected, &mut seen);
        }
        Ranges::new(collected.ranges)
    }
}

/// Maximum number of items with which a new item is compared to find duplicates.
const MAX_COMPARED: usize = 64;

/// Returns the set of `\d`, `\s` or `\w`. `letter` is `d`, `s` or `w`.
pub(super) fn perl_set(letter: u8) -> Option<&'static [(u32, u32)]> {
    match letter {
        b'd' => Some(&[(0x30, 0x39)]),
        b's' => Some(&[(0x9, 0xa), (0xc, 0xd), (0x20, 0x20)]),
        b'w' => Some(WORD),
        _ => None,
    }
}

const WORD: &[(u32, u32)] = &[(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)];

/// Returns the set of `[:name:]`.
pub(super) fn posix_set(name: &str) -> Option<&'static [(u32, u32)]> {
    Some(match name {
        "alnum" => &[(0x30, 0x39), (0x41, 0x5a), (0x61, 0x7a)],
        "alpha" => &[(0x41, 0x5a), (0x61, 0x7a)],
        "ascii" => &[(0x0, 0x7f)],
        "blank" => &[(0x9, 0x9), (0x20, 0x20)],
        "cntrl" => &[(0x0, 0x1f), (0x7f, 0x7f)],
        "digit" => &[(0x30, 0x39)],
        "graph" => &[(0x21, 0x7e)],
        "lower" => &[(0x61, 0x7a)],
        "print" => &[(0x20, 0x7e)],
        "punct" => &[(0x21, 0x2f), (0x3a, 0x40), (0x5b, 0x60), (0x7b, 0x7e)],
        "space" => &[(0x9, 0xd), (0x20, 0x20)],
        "upper" => &[(0x41, 0x5a)],
        "word" => WORD,
        "xdigit" => &[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: Item = Item::Ascii {
        set: &[(0x30, 0x39)],
        negated: false,
    };
    const NO_DIGITS: Item = Item::Ascii {
        set: &[(0x30, 0x39)],
        negated: true,
    };
    const ANY: Item = Item::Unicode {
        set: UnicodeSet::Ascii,
        negated: false,
    };
    const NOT_ASCII: Item = Item::Unicode {
        set: UnicodeSet::Ascii,
        negated: true,
    };

    fn class(items: &[Item], negated: bool) -> Class {
        Class::new(items.to_vec(), negated, false)
    }

    #[test]
    fn caseless_membership_agrees_with_ranges() {
        let a_to_c = Item::Range(0x61, 0x63);
        for items in [
            &[][..],
            &[a_to_c],
            &[DIGITS],
            &[NO_DIGITS],
            &[ANY],
            &[NOT_ASCII],
            &[a_to_c, DIGITS],
            &[Item::Range(0xa, 0xa), NOT_ASCII],
        ] {
            for negated in [false, true] {
                let class = class(items, negated);
                let ranges = class.ranges();
                for rune in [
                    0, 0x9, 0xa, 0xb, 0x2f, 0x30, 0x39, 0x3a, 0x60, 0x61, 0x63, 0x64, 0x7f, 0x80,
                ] {
                    let expected = ranges.contains(rune);
                    assert_eq!(class.contains_caseless(rune), expected, "{class:?} {rune}");
                }
            }
        }
    }

    #[test]
    fn estimated_number_of_ranges_is_upper_bound() {
        let sets = ["Lu", "Greek", "Any", "LC"].map(|name| UnicodeSet::by_name(name).unwrap().0);
        let unicode = sets.map(|set| Item::Unicode {
            set,
            negated: false,
        });
        let items = [
            Item::Range(0x61, 0x7a),
            Item::Range(0, 0x10_ffff),
            DIGITS,
            NO_DIGITS,
        ];
        for item in items.iter().chain(&unicode) {
            for fold in [false, true] {
                for negated in [false, true] {
                    let class = Class::new(vec![*item], negated, fold);
                    let actual = class.ranges().as_slice().len();
                    assert!(actual <= class.n_ranges(), "{class:?}");
                    assert!(class.n_ranges() <= actual + 9_010, "{class:?}");
                }
            }
        }
        assert_eq!(class(&[Item::Range(1, 5)], false).n_ranges(), 2);
        let folded = |lo, hi| Class::new(vec![Item::Range(lo, hi)], false, true).n_ranges();
        assert_eq!(
            (folded(1, 1), folded(1, 5), folded(0, 4_000)),
            (4, 16, 9_001)
        );
        assert_eq!(class(&[DIGITS, Item::Range(1, 5)], false).n_ranges(), 6);
        let mut both = class(&[DIGITS], false);
        both.merge(class(&[DIGITS], true));
        assert_eq!(both.n_ranges(), 10);
    }

    #[test]
    fn class_with_folding_or_unicode_set_is_expensive() {
        assert!(!class(&[DIGITS, Item::Range(1, 2)], true).is_expensive());
        assert!(class(&[DIGITS, ANY], false).is_expensive());
        assert!(Class::new(vec![DIGITS], false, true).is_expensive());
    }

    #[test]
    fn class_merge_returns_true_only_if_class_changes() {
        let range = |n: u32| Item::Range(2 * n, 2 * n);
        let mut merged = class(&[DIGITS], false);
        assert!(!merged.merge(class(&[DIGITS], false)));
        assert!(merged.merge(class(&[range(1)], false)));
        assert!(!merged.merge(class(&[range(1), DIGITS], false)));
        assert_eq!(merged, class(&[DIGITS, range(1)], false));
        assert!(merged.merge(class(&[range(2)], true)));
        assert!(!merged.merge(class(&[range(2)], true)));
        assert!(merged.merge(class(&[range(2)], false)));
        assert!(merged.merge(Class::new(vec![range(2)], false, true)));
        assert_eq!(merged.parts.len(), 4);
        // A merge compares new items with the first 64 items only.
        let many: Vec<_> = (0..65).map(range).collect();
        let mut large = class(&many, false);
        assert!(!large.merge(class(&many[63..64], false)));
        assert!(large.merge(class(&many[64..], false)));
    }

    #[test]
    fn collected_ranges_are_merged_beyond_limit() {
        let ranges = |n: u32| (0..n).map(|n| (n, n)).collect::<Vec<_>>();
        let joined = |n_ranges: u32, limit: usize| {
            let mut collected = Collected {
                ranges: ranges(n_ranges),
                limit,
            };
            collected.join_if_many();
            (collected.ranges.len(), collected.limit)
        };
        assert_eq!(joined(16_384, 0), (16_384, 0));
        assert_eq!(joined(16_385, 0), (1, 2));
        assert_eq!(joined(20_000, 20_000), (20_000, 20_000));
        assert_eq!(joined(20_001, 20_000), (1, 2));
    }

    #[test]
    fn posix_sets_match_go() {
        for (name, n_contained) in [
            ("alnum", 62),
            ("alpha", 52),
            ("ascii", 128),
            ("blank", 2),
            ("cntrl", 33),
            ("digit", 10),
            ("graph", 94),
            ("lower", 26),
            ("print", 95),
            ("punct", 32),
            ("space", 6),
            ("upper", 26),
            ("word", 63),
            ("xdigit", 22),
        ] {
            let set = posix_set(name).unwrap();
            let n: u32 = set.iter().map(|(lo, hi)| hi - lo + 1).sum();
            assert_eq!(n, n_contained, "{name}");
        }
        assert!(posix_set("other").is_none() && perl_set(b'x').is_none());
    }
}
