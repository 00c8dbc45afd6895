//! Asserts that both of our regex engines find the same matches. The first line of the input is a pattern, and the rest
//! is the string to search.
//!
//! If the pattern has the same meaning in the `regex` crate, also asserts that the `regex` crate finds the same first
//! match.
#![no_main]

use libfuzzer_sys::fuzz_target;
use regexp::{MemoryLimit, Program};

/// Substrings whose meaning in a pattern may differ in the `regex` crate: escapes, flags, special groups, and operators
/// in character classes.
const AMBIGUOUS_SYNTAX: [&str; 5] = ["\\", "(?", "&&", "--", "~~"];

/// Returns true if the pattern contains a repetition count with a leading zero, such as `a{09}`. We treat the braces as
/// literals, like Go's `regexp/syntax` (`parser.parseInt`). The `regex` crate repeats nine times.
fn has_leading_zero(pattern: &str) -> bool {
    let mut digits = pattern.as_bytes().windows(3);
    digits.any(|at| matches!(at, [b'{' | b',' | b' ', b'0', b'0'..=b'9']))
}

/// Returns true if the pattern contains white space in braces, such as `a{4 }`. We treat the braces as literals, like
/// Go. The `regex` crate repeats four times.
fn has_spaced_count(pattern: &str) -> bool {
    let mut braces = pattern.split('{').skip(1);
    braces.any(|rest| {
        let count = rest.split('}').next().unwrap_or_default();
        count.contains(char::is_whitespace)
    })
}

/// The maximum number of matches that are compared.
const MAX_MATCHES: Option<usize> = Some(100);

fuzz_target!(|input: &str| {
    let (pattern, text) = input.split_once('\n').unwrap_or((input, "abc"));
    let Ok(program) = Program::new(pattern) else {
        return;
    };
    let Ok(found) = program.find_all(text, MAX_MATCHES, &MemoryLimit) else {
        return;
    };
    let is_match = program.is_match(text, &MemoryLimit);
    assert_eq!(is_match, Ok(!found.is_empty()), "{input:?}");
    let first = program.find(text, &MemoryLimit);
    assert_eq!(first, Ok(found.first().copied()), "{input:?}");
    let on_machine = Program::on_machine(pattern).expect("the syntax was accepted before");
    if let Ok(all) = on_machine.find_all(text, MAX_MATCHES, &MemoryLimit) {
        assert_eq!(all, found, "{input:?}");
    }
    let n_classes = pattern.matches('[').count();
    if n_classes > 1
        || has_leading_zero(pattern)
        || has_spaced_count(pattern)
        || AMBIGUOUS_SYNTAX.iter().any(|part| pattern.contains(part))
    {
        return;
    }
    let peer = regex::RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .build();
    if let Ok(peer) = peer {
        let first = peer.find(text).map(|found| found.as_str());
        assert_eq!(program.find(text, &MemoryLimit), Ok(first), "{input:?}");
    }
});
