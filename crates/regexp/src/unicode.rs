//! Categories and scripts by name, and simple case folding.
//!
//! Source: Go `regexp/syntax/parse.go` (`unicodeTable`, `canonicalName`), `unicode/letter.go`
//! (`SimpleFold`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use super::ranges::{MAX_RUNE, Ranges};
use super::unicode_tables::{
    ALIASES, CATEGORY_NAMES, CATEGORY_RUNS, EVEN_ODD, FOLDS, ODD_EVEN, SCRIPTS,
};

/// A named set of code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum UnicodeSet {
    /// Every code point.
    Any,
    /// Those of ASCII.
    Ascii,
    /// The categories whose bits, numbered as in [`CATEGORY_NAMES`], are set.
    Categories(u32),
    /// The category `LC`, cased letters, which Go does not fold.
    CasedLetter,
    /// A script, by its place in [`SCRIPTS`].
    Script(usize),
}

/// A set, and whether it is regardless of case.
type CacheKey = (UnicodeSet, bool);

/// The ranges of the sets that were asked for: there are less than 200, and some have 700 ranges.
static CACHE: LazyLock<RwLock<HashMap<CacheKey, Arc<Ranges>>>> = LazyLock::new(RwLock::default);

impl UnicodeSet {
    /// The set of the name, and whether what is named is its complement.
    ///
    /// Case, spaces, hyphens and underscores do not matter. Scripts whose own name has an underscore
    /// cannot be named at all.
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

    /// The code points of the set, and if `fold` those that are the same but for their case.
    pub(super) fn ranges(self, fold: bool) -> Arc<Ranges> {
        // Go has no folding for this one.
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

/// A category by its two letters, or all that begin with a letter.
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

/// Reports whether `c` is a letter, mark, number, punctuation, symbol or the ASCII space.
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

/// A leading upper-case letter, the rest in lower case, without spaces, hyphens and underscores.
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

/// The next code point that is the same as `rune` but for its case, round and round.
pub(super) fn simple_fold(rune: u32) -> u32 {
    let after = FOLDS.partition_point(|&(lo, ..)| lo <= rune);
    match after.checked_sub(1).and_then(|n| FOLDS.get(n)) {
        Some(&(_, hi, delta)) if rune <= hi => rune.wrapping_add_signed(delta_of(rune, delta)),
        _ => rune,
    }
}

/// The least code point that is the same as `rune` but for its case.
pub(super) fn min_fold(rune: u32) -> u32 {
    let mut least = rune;
    let mut other = simple_fold(rune);
    while other != rune {
        least = least.min(other);
        other = simple_fold(other);
    }
    least
}

/// Calls `found` with all code points that are the same as one from `lo` to `hi` but for their case.
pub(super) fn for_each_fold(lo: u32, hi: u32, mut found: impl FnMut(u32)) {
    let first = FOLDS.partition_point(|&(_, run_hi, _)| run_hi < lo);
    for &(run_lo, run_hi, _) in FOLDS
        .iter()
        .skip(first)
        .take_while(|(run_lo, ..)| *run_lo <= hi)
    {
        for rune in run_lo.max(lo)..=run_hi.min(hi) {
            let mut other = simple_fold(rune);
            while other != rune {
                found(other);
                other = simple_fold(other);
            }
        }
    }
}
