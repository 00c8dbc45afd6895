//! Suggests correct names for misspelled names.

/// Maximum length, in bytes, of a name for which similar names are looked up.
const MAX_NAME_BYTES: usize = 64;

/// Maximum number of names that are compared.
const MAX_NAMES: usize = 5_000;

/// Maximum number of equally similar names that are returned.
const MAX_TIES: usize = 3;

/// Cost of an inserted, deleted or changed letter.
const EDIT: usize = 4;

/// Cost of two exchanged adjacent letters. It is lower than that of an edit, so `STCP` is more similar to `SCTP` than
/// to `TCP`.
const EXCHANGE: usize = 3;

/// Pairs of words. Replacing one word of a pair with the other turns a name into its opposite. An empty word means that
/// the other word is added or removed.
const OPPOSITES: [(&str, &str); 25] = [
    ("", "not"),
    ("", "non"),
    ("", "no"),
    ("", "un"),
    ("", "in"),
    ("", "im"),
    ("", "dis"),
    ("", "de"),
    ("", "anti"),
    ("", "mis"),
    ("", "deny"),
    ("", "drop"),
    ("", "never"),
    ("", "without"),
    ("", "forbid"),
    ("allow", "deny"),
    ("readonly", "writable"),
    ("read", "write"),
    ("in", "ex"),
    ("en", "dis"),
    ("min", "max"),
    ("pre", "post"),
    ("lower", "upper"),
    ("is", "isnt"),
    ("are", "arent"),
];

/// Returns the most similar name in `names`. `None` if no name is similar enough.
///
/// The opposite of `name` is not similar: `contains` is never returned for `notContains`.
#[must_use]
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    all_nearest(name, names).first().copied()
}

/// Like [`nearest`], but returns `None` if several names are equally similar.
#[must_use]
pub fn nearest_only<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    match all_nearest(name, names).as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns the first of the most similar names, and true if no other name is equally similar.
#[must_use]
pub fn nearest_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<(&'a str, bool)> {
    let all = all_nearest(name, names);
    all.first().map(|first| (*first, all.len() == 1))
}

/// Returns the most similar names, joined with a backquoted "or", such as ``TCP` or `UDP``. The caller adds the outer
/// backquotes. `None` if no name is similar enough.
#[must_use]
pub fn nearest_joined<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let all = all_nearest(name, names);
    (!all.is_empty()).then(|| all.join("` or `"))
}

/// Returns the sorted names that are most similar to `name`.
fn all_nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Vec::new();
    }
    let lower = name.to_lowercase();
    let negated = without_negation(&lower);
    let mut best: (usize, Vec<&str>) = (name.len() / 3 * EDIT, Vec::new());
    // The known names that differ from `name` by at most one edit, after negating words are removed from the known name
    // and from `name`. Empty if `name` contains no negation.
    let mut negations: Vec<&str> = Vec::new();
    for known in names.take(MAX_NAMES) {
        let lower_known = known.to_lowercase();
        let same_negation = |plain: &str| {
            let other = without_negation(&lower_known)?;
            distance(plain, &other, EDIT)
        };
        if negated.as_deref().and_then(same_negation).is_some() && !negations.contains(&known) {
            negations.push(known);
        }
        if known.len().abs_diff(name.len()) > name.len() / 3 {
            continue;
        }
        // The computation stops when the distance exceeds the best distance so far.
        let distance = if EDIT <= best.0 && are_number_forms(&lower, &lower_known) {
            Some(EDIT)
        } else {
            distance(&lower, &lower_known, best.0)
        };
        let Some(distance) = distance else {
            continue;
        };
        if distance > 0 && is_opposite(name, known, distance) {
            continue;
        }
        if distance < best.0 {
            best = (distance, Vec::new());
        }
        if !best.1.contains(&known) {
            best.1.push(known);
        }
    }
    let mut all = if best.1.is_empty() { negations } else { best.1 };
    all.sort_unstable();
    all.truncate(MAX_TIES);
    all
}

/// Returns true if one lowercase name is the plural of the other and ends with `ies`, as in `registries`.
fn are_number_forms(left: &str, right: &str) -> bool {
    let is_plural_of = |plural: &str, singular: &str| {
        let stems = plural.strip_suffix("ies").zip(singular.strip_suffix('y'));
        stems.is_some_and(|(plural, singular)| plural == singular)
    };
    is_plural_of(left, right) || is_plural_of(right, left)
}

/// Removes `not`, and a verb such as `is` before it, from a lowercase name. `None` if the name does not contain `not`,
/// or if anything other than a verb precedes it.
fn without_negation(lower: &str) -> Option<String> {
    let (before, after) = ["doesnt", "dont", "isnt", "not"]
        .into_iter()
        .find_map(|not| lower.split_once(not))?;
    let is_verb = matches!(before, "" | "does" | "do" | "is" | "are" | "has");
    (is_verb && !after.is_empty()).then(|| after.to_owned())
}

/// Returns true if one name is the opposite of the other: removing a negating word or prefix, such as `not` in
/// `notContains`, makes the names more similar. `differing` is the distance of the names.
fn is_opposite(name: &str, other: &str, differing: usize) -> bool {
    let Some(most) = differing.checked_sub(1) else {
        return false;
    };
    let is_near = |left: &str, right: &str| distance(left, right, most).is_some();
    let differ_in = |(left, right): (&str, &str)| {
        let rights = without_word(other, right);
        let lefts = without_word(name, left);
        let mut lefts = lefts.iter();
        lefts.any(|left| rights.iter().any(|right| is_near(left, right)))
    };
    let mut pairs = OPPOSITES.into_iter();
    // `n` is not tested in reverse: if only `other` begins with `n`, the first letter of `name` is probably missing.
    differ_in(("n", "")) || pairs.any(|(a, b)| differ_in((a, b)) || differ_in((b, a)))
}

/// Removes `word` from the start of a word in `name`, and returns the lowercase results, one for each such word. `not`
/// is removed at any position.
fn without_word(name: &str, word: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    if word.is_empty() {
        return vec![lower];
    }
    let mut forms = Vec::new();
    for (at, _) in lower.match_indices(word) {
        let before = name.get(..at).and_then(|before| before.chars().next_back());
        let first = name.get(at..).and_then(|rest| rest.chars().next());
        let is_start = match (before, first) {
            (None, _) => true,
            (Some(before), Some(first)) => {
                !before.is_alphanumeric() || !before.is_uppercase() && first.is_uppercase()
            }
            _ => false,
        };
        let (Some(head), Some(tail)) = (lower.get(..at), lower.get(at + word.len()..)) else {
            continue;
        };
        if (is_start || word == "not") && !tail.is_empty() {
            forms.push(format!("{head}{tail}"));
        }
    }
    forms
}

/// Returns the name that `name` negates, such as `contains` for `notContains`. `None` if it negates no name in `names`.
#[must_use]
pub fn negated<'a>(name: &str, mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let forms: Vec<String> = ["not", "non", "no", "un", "dis", "n"]
        .into_iter()
        .flat_map(|word| without_word(name, word))
        .collect();
    names.find(|known| {
        let lower = known.to_lowercase();
        forms.contains(&lower)
    })
}

/// Returns the cost of the edits that turn a name into another. `None` if it exceeds `most`.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().collect();
    // The last two rows of the distance matrix, each with the letter of `a` that it belongs to.
    let mut second: (Option<char>, Vec<usize>) = (None, Vec::new());
    let mut first: (Option<char>, Vec<usize>) = (None, (0..=b.len()).map(|n| n * EDIT).collect());
    for (n, letter) in a.chars().enumerate() {
        let mut row = vec![(n + 1) * EDIT];
        for (m, other) in b.iter().enumerate() {
            let above = *first.1.get(m + 1)?;
            let diagonal = *first.1.get(m)?;
            let changed = if letter == *other { 0 } else { EDIT };
            let mut cost = (diagonal + changed)
                .min(above + EDIT)
                .min(row.last()? + EDIT);
            let is_exchange = m
                .checked_sub(1)
                .is_some_and(|m| first.0 == Some(*other) && b.get(m) == Some(&letter));
            if is_exchange
                && letter != *other
                && let Some(before) = m.checked_sub(1).and_then(|m| second.1.get(m))
            {
                cost = cost.min(before + EXCHANGE);
            }
            row.push(cost);
        }
        // Later rows have no smaller values than the last two, so the distance is at least their minimum.
        let least = |row: &[usize]| row.iter().copied().min().unwrap_or_default();
        if least(&row) > most && least(&first.1) > most {
            return None;
        }
        second = std::mem::replace(&mut first, (Some(letter), row));
    }
    first.1.last().copied().filter(|distance| *distance <= most)
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
    fn most_similar_name_is_suggested() {
        let names = ["validations", "variables", "matchConditions"];
        let suggestion = |name| nearest(name, names.into_iter());
        assert_eq!(suggestion("validation"), Some("validations"));
        assert_eq!(suggestion("matchconditions"), Some("matchConditions"));
        assert_eq!(suggestion("replicas"), None);
        assert_eq!(suggestion("x"), None);
        assert_eq!(distance("kitten", "sitting", 3 * EDIT), Some(3 * EDIT));
        assert_eq!(distance("kitten", "sitting", 2 * EDIT), None);
        assert_eq!(distance("stcp", "sctp", EDIT), Some(EXCHANGE));
        let only = |name| nearest_only(name, ["spec.a", "spec.b", "other", "other"].into_iter());
        assert_eq!((only("spec.c"), only("othr")), (None, Some("other")));
    }

    #[test]
    fn suggestion_does_not_depend_on_order_of_names() {
        for (name, names, expected) in [
            ("https", ["HTTP", "HTTPS"], "HTTPS"),
            ("STCP", ["TCP", "SCTP"], "SCTP"),
            ("TDP", ["TCP", "UDP"], "TCP` or `UDP"),
            ("sepc", ["spec", "status"], "spec"),
            ("registry", ["registries", "restarts"], "registries"),
            ("policies", ["policy", "places"], "policy"),
        ] {
            let joined = |names: [&'static str; 2]| nearest_joined(name, names.into_iter());
            assert_eq!(joined(names).as_deref(), Some(expected), "{name}");
            assert_eq!(joined([names[1], names[0]]).as_deref(), Some(expected));
        }
    }

    #[test]
    fn opposite_name_is_not_suggested() {
        for (name, known) in [
            ("notContains", "contains"),
            ("notcontains", "contains"),
            ("uncontains", "contains"),
            ("notStartsWith", "startsWith"),
            ("notExists", "exists"),
            ("NotExists", "Exists"),
            ("notAllowed", "allowed"),
            ("disallowed", "allowed"),
            ("unallowed", "allowed"),
            ("isNotGreaterThan", "isGreaterThan"),
            ("isnotgreaterthan", "isGreaterThan"),
            ("isntGreaterThan", "isGreaterThan"),
            ("notGreaterThan", "isGreaterThan"),
            ("notHostNetwork", "hostNetwork"),
            ("unmatchConditions", "matchConditions"),
            ("invalidations", "validations"),
            ("includeResourceRules", "excludeResourceRules"),
            ("includeResourceRule", "excludeResourceRules"),
            ("Masked", "Unmasked"),
            ("masked", "Unmasked"),
            ("Confined", "Unconfined"),
            ("minReplica", "maxReplicas"),
            ("disallowPrivilegeEscalation", "allowPrivilegeEscalation"),
            ("denyPrivilegeEscalation", "allowPrivilegeEscalation"),
            ("noAllowPrivilegeEscalation", "allowPrivilegeEscalation"),
            ("writableRootFilesystem", "readOnlyRootFilesystem"),
            ("dropPrivileged", "privileged"),
            ("noHostNetwork", "hostNetwork"),
            ("insecure", "secure"),
            ("nonpublic", "public"),
            ("unencrypted", "encrypted"),
            ("disableTLS", "enableTLS"),
            ("hasNoValue", "hasValue"),
            ("isNotGlobalUnicast", "isGlobalUnicast"),
        ] {
            assert_eq!(nearest(name, [known].into_iter()), None, "{name}");
            assert_eq!(nearest(known, [name].into_iter()), None, "{known}");
        }
        assert_eq!(nearest("ncontains", ["contains"].into_iter()), None);
        for (name, known) in [
            ("amespace", "namespace"),
            ("nodename", "nodeName"),
            ("ncludes", "includes"),
            ("unconfind", "Unconfined"),
            ("excludeResourceRule", "excludeResourceRules"),
            ("notIn", "NotIn"),
            ("NotExists", "DoesNotExist"),
            ("DoesNotExists", "DoesNotExist"),
            ("minReplica", "minReplicas"),
            ("annotation", "annotations"),
            ("continers", "containers"),
            ("deploymnts", "deployments"),
        ] {
            assert_eq!(nearest(name, [known].into_iter()), Some(known), "{name}");
        }
        assert_eq!(
            negated("notContains", ["contains"].into_iter()),
            Some("contains")
        );
    }
}
