//! Suggests correct names for misspelled names.

/// Maximum length in bytes of a name for which similar names are searched.
const MAX_NAME_BYTES: usize = 64;

/// Maximum number of names that are compared.
const MAX_NAMES: usize = 5_000;

/// Returns the most similar name in `names`. `None` if no name is similar enough.
#[must_use]
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(name, names).map(|(suggestion, _)| suggestion)
}

/// Like [`nearest`], but returns `None` if several names are equally similar.
#[must_use]
pub fn nearest_only<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (suggestion, is_only) = nearest_of(name, names)?;
    is_only.then_some(suggestion)
}

/// Returns the first of the most similar names, and true if no other name is equally similar.
#[must_use]
pub fn nearest_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<(&'a str, bool)> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return None;
    }
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &str, bool)> = None;
    let near = names
        .take(MAX_NAMES)
        .filter(|known| known.len().abs_diff(name.len()) <= name.len() / 3);
    let most = name.len() / 3;
    for known in near {
        // The computation stops when the distance exceeds the best distance so far.
        let most = best.map_or(most, |(least, ..)| least);
        let Some(distance) = distance(&lower, &known.to_lowercase(), most) else {
            continue;
        };
        match &mut best {
            Some((least, first, is_only)) if *least == distance => *is_only &= *first == known,
            _ => best = Some((distance, known, true)),
        }
    }
    best.map(|(_, best, is_only)| (best, is_only))
}

/// Returns the edit distance of two names. `None` if it exceeds `most`.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, left) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(row.first_mut()?, n + 1);
        let mut before = n + 1;
        let mut least = before;
        for (right, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(left != *right);
            before = replaced.min(*above + 1).min(before + 1);
            diagonal = std::mem::replace(above, before);
            least = least.min(before);
        }
        // Later rows have no smaller values, so the distance is at least the minimum of this row.
        if least > most {
            return None;
        }
    }
    row.last().copied().filter(|distance| *distance <= most)
}

/// Returns true if the names differ by at most one edit: an inserted, deleted or changed letter, or two exchanged
/// adjacent letters.
#[must_use]
pub fn is_near(left: &str, right: &str) -> bool {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().abs_diff(right.len()) > 1 || left.len().max(right.len()) < 3 {
        return false;
    }
    let same = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
    let left_rest = left.get(same..).unwrap_or_default();
    let right_rest = right.get(same..).unwrap_or_default();
    let end = left_rest.iter().rev().zip(right_rest.iter().rev());
    let end = end.take_while(|(a, b)| a == b).count();
    let middle = |rest: &[char]| rest.len().saturating_sub(end);
    match (middle(left_rest), middle(right_rest)) {
        (0 | 1, 0 | 1) => true,
        (2, 2) => left_rest.first() == right_rest.get(1) && left_rest.get(1) == right_rest.first(),
        _ => false,
    }
}

/// Returns true if the names differ at most in case and in a final `s`.
#[must_use]
pub fn is_spelling_variant(left: &str, right: &str) -> bool {
    let plain = |name: &str| name.to_lowercase().trim_end_matches('s').to_owned();
    plain(left) == plain(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_returns_most_similar_name() {
        let names = ["validations", "variables", "matchConditions"];
        let suggestion = |name| nearest(name, names.into_iter());
        assert_eq!(suggestion("validation"), Some("validations"));
        assert_eq!(suggestion("matchconditions"), Some("matchConditions"));
        assert_eq!(suggestion("replicas"), None);
        assert_eq!(suggestion("x"), None);
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("kitten", "sitting", 2), None);
        let only = |name| nearest_only(name, ["spec.a", "spec.b", "other", "other"].into_iter());
        assert_eq!((only("spec.c"), only("othr")), (None, Some("other")));
    }
}
