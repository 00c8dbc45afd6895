//! Unicode categories and scripts by name, and simple case folding.
//!
//! Source: Go `regexp/syntax/parse.go` (`unicodeTable`, `canonicalName`), `unicode/letter.go`
//! (`SimpleFold`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use super::ranges::{MAX_RUNE, Ranges};
use super::unicode_tables::{
    ALIASES, CATEGORY_NAMES, CATEGORY_RUNS, EVEN_ODD, FOLDS, ODD_EVEN, SCRIPTS,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum UnicodeSet {
    /// All code points.
    Any,
    Ascii,
    /// A union of categories. The bits have the order of [`CATEGORY_NAMES`].
    Categories(u32),
    /// The category `LC` (cased letters). Go does not add case variants to it.
    CasedLetter,
    /// A script, as its index in [`SCRIPTS`].
    Script(usize),
}

/// A set, and true if its case variants are included.
type CacheKey = (UnicodeSet, bool);

/// Ranges of all requested sets. There are fewer than 200 sets, with at most 700 ranges.
static CACHE: LazyLock<RwLock<HashMap<CacheKey, Arc<Ranges>>>> = LazyLock::new(RwLock::default);

impl UnicodeSet {
    /// Returns the set `name`. The boolean is true if the name denotes the complement of the set.
    ///
    /// Case, spaces, hyphens and underscores are ignored. As in Go, scripts with an underscore in their official name
    /// are not found.
    pub(super) fn by_name(name: &str) -> Option<(Self, bool)> {
        let name = canonical_name(name);
        let set = match name.as_str() {
            "Any" => Self::Any,
            "Assigned" => return Some((category("Cn")?, true)),
            "Ascii" => Self::Ascii,
            "Lc" => Self::CasedLetter,
            name => category(name)
                .or_else(|| script(name))
                .or_else(|| alias(name))?,
        };
        Some((set, false))
    }

    /// Returns the code points of the set. If `fold` is true, includes their case variants.
    pub(super) fn ranges(self, fold: bool) -> Arc<Ranges> {
        // Go does not add case variants to this category.
        let key = (self, fold && self != Self::CasedLetter);
        let cached = CACHE
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        cached.unwrap_or_else(|| {
            let ranges = Arc::new(if key.1 {
                self.plain().folded()
            } else {
                self.plain()
            });
            let mut cache = CACHE.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cache.entry(key).or_insert(ranges))
        })
    }

    fn plain(self) -> Ranges {
        match self {
            Self::Any => Ranges::new(vec![(0, MAX_RUNE)]),
            Self::Ascii => Ranges::new(vec![(0, 0x7f)]),
            Self::Categories(mask) => category_ranges(mask),
            Self::CasedLetter => {
                category_ranges(mask_of(|name| matches!(name, "Ll" | "Lt" | "Lu")))
            }
            Self::Script(n) => Ranges::new(
                SCRIPTS
                    .get(n)
                    .map_or_else(Vec::new, |(_, ranges)| ranges.to_vec()),
            ),
        }
    }
}

fn mask_of(is_meant: impl Fn(&str) -> bool) -> u32 {
    (0..)
        .zip(CATEGORY_NAMES)
        .filter(|(_, name)| is_meant(name))
        .fold(0, |mask, (n, _)| mask | 1 << n)
}

/// Returns a category by its two-letter name. A one-letter name denotes all categories that start with the letter.
fn category(name: &str) -> Option<UnicodeSet> {
    let mask = match name.len() {
        1 => mask_of(|category| category.starts_with(name)),
        2 => mask_of(|category| category == name),
        _ => 0,
    };
    (mask != 0).then_some(UnicodeSet::Categories(mask))
}

fn script(name: &str) -> Option<UnicodeSet> {
    SCRIPTS
        .iter()
        .position(|(script, _)| *script == name)
        .map(UnicodeSet::Script)
}

fn alias(name: &str) -> Option<UnicodeSet> {
    match ALIASES.iter().find(|(alias, _)| *alias == name)? {
        (_, "LC") => Some(UnicodeSet::CasedLetter),
        (_, actual) => category(actual),
    }
}

/// Returns true if `c` is a letter, mark, number, punctuation, symbol or ASCII space.
///
/// Source: Go `strconv/quote.go`, `IsPrint`.
#[must_use]
pub fn is_printable(c: char) -> bool {
    let rune = u32::from(c);
    let after = CATEGORY_RUNS.partition_point(|&(start, _)| start <= rune);
    let category = after
        .checked_sub(1)
        .and_then(|n| CATEGORY_RUNS.get(n))
        .and_then(|&(_, category)| CATEGORY_NAMES.get(usize::from(category)));
    c == ' ' || category.is_some_and(|name| name.starts_with(['L', 'M', 'N', 'P', 'S']))
}

fn category_ranges(mask: u32) -> Ranges {
    let ends = CATEGORY_RUNS
        .iter()
        .skip(1)
        .map(|&(start, _)| start - 1)
        .chain([MAX_RUNE]);
    let runs = CATEGORY_RUNS.iter().zip(ends);
    Ranges::new(
        runs.filter(|((_, category), _)| mask & (1 << category) != 0)
            .map(|(&(lo, _), hi)| (lo, hi))
            .collect(),
    )
}

/// Converts `name` to the form of the table: `old italic` becomes `Olditalic`.
fn canonical_name(name: &str) -> String {
    let mut canonical = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')) {
        let is_first = canonical.is_empty();
        canonical.push(if is_first {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        });
    }
    canonical
}

fn delta_of(rune: u32, delta: i32) -> i32 {
    match (delta, rune % 2) {
        (EVEN_ODD, 0) | (ODD_EVEN, 1) => 1,
        (EVEN_ODD | ODD_EVEN, _) => -1,
        _ => delta,
    }
}

/// Returns the next code point in the cycle of `rune` and its case variants.
pub(super) fn simple_fold(rune: u32) -> u32 {
    let after = FOLDS.partition_point(|&(lo, ..)| lo <= rune);
    match after.checked_sub(1).and_then(|n| FOLDS.get(n)) {
        Some(&(_, hi, delta)) if rune <= hi => rune.wrapping_add_signed(delta_of(rune, delta)),
        _ => rune,
    }
}

/// Returns the smallest case variant of `rune`.
pub(super) fn min_fold(rune: u32) -> u32 {
    let mut least = rune;
    let mut other = simple_fold(rune);
    while other != rune {
        least = least.min(other);
        other = simple_fold(other);
    }
    least
}

/// Calls `visit` with each case variant of each code point from `lo` to `hi`.
pub(super) fn for_each_fold(lo: u32, hi: u32, mut visit: impl FnMut(u32)) {
    let first = FOLDS.partition_point(|&(_, run_hi, _)| run_hi < lo);
    for &(run_lo, run_hi, _) in FOLDS
        .iter()
        .skip(first)
        .take_while(|(run_lo, ..)| *run_lo <= hi)
    {
        for rune in run_lo.max(lo)..=run_hi.min(hi) {
            let mut other = simple_fold(rune);
            while other != rune {
                visit(other);
                other = simple_fold(other);
            }
        }
    }
}
