//! Tests Go's limits on sizes, heights and numbers of ranges: the largest valid pattern, and the smallest invalid one.

use super::{check_error, check_valid};

#[track_caller]
fn check(pattern: impl Fn(usize) -> String, n_most: usize, message: &str) {
    check_valid(&pattern(n_most));
    let larger = pattern(n_most + 1);
    check_error(&larger, &format!("{message}: `{larger}`"));
}

/// The start of a repeated pattern, its repeated part, its end, and the largest valid number of repetitions of the
/// part.
const SIZES: &[(&str, &str, &str, usize)] = &[
    ("(?:", "[ab]", "){1000}", 3355),
    ("(?:", "[ab]*", "){1000}", 1118),
    ("(?:", "[ab]+", "){1000}", 1677),
    ("(?:", "[ab]?", "){1000}", 1677),
    ("(?:", "([ab])", "){1000}", 1118),
    ("(?:", "(?:a|[bc]d)", "){1000}", 838),
    ("(?:", "[ab]{2}", "){500}", 3355),
    ("(?:", "[ab]{2,}", "){500}", 2236),
    ("(?:", "[ab]{0,}", "){1000}", 1118),
    ("(?:", "[ab]{2,4}", "){250}", 2236),
    ("(?:", "^", "){1000}", 3355),
    ("(?:", ".", "){1000}", 3355),
    ("(?:", "abcd", "){1000}", 838),
    ("(?:", "[ab]", "){1000,}", 3355),
    ("(?:", "[ab]", "){10,1000}", 3354),
    ("(?:", "[ab]", "){0,1000}", 3354),
    ("(?:(?:", "[ab]", "){10}){100}", 3355),
    ("(?:", "(?i)k", "){1000}", 3355),
    ("(?:", "(?:)", "){1000}", 3355),
];

#[test]
fn size_of_pattern_is_limited_as_in_go() {
    for (start, part, end, n_most) in SIZES {
        let pattern = |n: usize| format!("{start}{}{end}", part.repeat(n));
        check(pattern, *n_most, "expression too large");
    }
}

/// The start of a nested group, the innermost part, the end of the group, and the largest valid depth.
const HEIGHTS: &[(&str, &str, &str, usize)] = &[
    ("(", "a", ")", 999),
    ("(?:x", "a", ")*", 500),
    ("(?:x", "a", ")+", 500),
    ("(?:x", "a", "y)?", 500),
    ("(?:x|", "[ab]", ")y", 500),
    ("(?:", "[ab]", "){1}", 999),
    ("(?:x", "[ab]", "){0,1}", 499),
    ("(?:", "[ab]", ")*?", 999),
    ("(a|", "b", ")", 500),
    ("((?:", "a", ")+)", 499),
];

#[test]
fn height_of_pattern_is_limited_as_in_go() {
    for (start, part, end, n_most) in HEIGHTS {
        let pattern = |n: usize| format!("{}{part}{}", start.repeat(n), end.repeat(n));
        check(pattern, *n_most, "expression nests too deeply");
    }
}

#[test]
fn number_of_class_ranges_is_limited_as_in_go() {
    for (class, n_most) in [(r"\pL", 25_458), (r"\p{Lu}", 25_970), (r"(?i)\pL", 25_420)] {
        check(|n| class.repeat(n), n_most, "expression too large");
    }
    check_valid(&"[^a]".repeat(30_000));
    check_valid(&format!(
        "{}[ab]{}",
        "(?:x".repeat(3_000),
        ")".repeat(3_000)
    ));
}
