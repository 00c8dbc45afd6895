//! Classes of characters: as they are written, and as ranges of code points.
//!
//! A pattern of a few bytes can name a class of hundreds of ranges, and can name it thousands of times.
//! So a [`Class`] keeps the names, and its [`Ranges`] are made when they are asked for.
//!
//! Source: Go `regexp/syntax/parse.go` (`parseClass`, `appendGroup`, `parseUnicodeClass`, `cleanClass`,
//! `negateClass`), `regexp/syntax/perl_groups.go`.

use super::ranges::Ranges;
use super::unicode::{self, UnicodeSet};

impl Ranges {
    /// With all code points that are the same but for their case.
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

/// A part of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// From one code point to another.
    Range(u32, u32),
    /// One of the sets of ASCII characters that Perl and POSIX name.
    Ascii {
        set: &'static [(u32, u32)],
        negated: bool,
    },
    /// A category or script of Unicode.
    Unicode { set: UnicodeSet, negated: bool },
}

impl Item {
    /// Adds the code points of the item, regardless of case if `fold`.
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

/// Items that are written together, and the flags that were in force.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    items: Vec<Item>,
    negated: bool,
    fold: bool,
}

impl Part {
    fn add_to(&self, ranges: &mut Vec<(u32, u32)>) {
        let add_items = |ranges: &mut Vec<_>| {
            self.items
                .iter()
                .for_each(|item| item.add_to(self.fold, ranges));
        };
        if !self.negated {
            add_items(ranges);
            return;
        }
        let mut own = Vec::new();
        add_items(&mut own);
        ranges.append(&mut Ranges::new(own).negated().0);
    }
}

/// A class of characters as it is written, or several that were written as alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// Adds what `other` matches.
    pub(super) fn merge(&mut self, other: Self) {
        for mut part in other.parts {
            match self.parts.last_mut() {
                Some(last) if !last.negated && !part.negated && last.fold == part.fold => {
                    last.items.append(&mut part.items);
                }
                _ => self.parts.push(part),
            }
        }
    }

    /// The code points that are in the class.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
        let mut ranges = Vec::new();
        self.parts.iter().for_each(|part| part.add_to(&mut ranges));
        Ranges::new(ranges)
    }
}

/// The set that `\d`, `\s` or `\w` names, by its lower-case letter.
pub(super) fn perl_set(letter: u8) -> Option<&'static [(u32, u32)]> {
    match letter {
        b'd' => Some(&[(0x30, 0x39)]),
        b's' => Some(&[(0x9, 0xa), (0xc, 0xd), (0x20, 0x20)]),
        b'w' => Some(WORD),
        _ => None,
    }
}

const WORD: &[(u32, u32)] = &[(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)];

/// The set that `[:name:]` names.
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
