//! A ratchet on the wording of comments and names: each count may only fall. CONTRIBUTING.md has examples.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::repository::{all_rust_files, read};

/// The remaining counts. A lower count must be recorded in the file. A higher one means a new offender.
const COUNTS: &str = "tests/wording.txt";

/// Words that plain terms replace.
const WORDS: [&str; 22] = [
    "anybody", "apart", "beside", "behind", "judge", "judged", "judges", "mend", "mended", "mends",
    "nobody", "refusal", "refuse", "refused", "refuses", "said", "somebody", "tell", "tells",
    "told", "trouble", "whoever",
];

/// Words that must not begin a sentence.
const OPENERS: [&str; 7] = ["Nothing", "Of", "That", "Those", "What", "Where", "Who"];

/// Prefixes of functions that are not terms.
const NAMES: [&str; 7] = [
    "nobody_",
    "nothing_",
    "that_",
    "those_",
    "what_",
    "who_",
    "whatever_",
];

/// Adds the offenders of a source to their counts. `offender` receives each with its line, from 1.
fn count(source: &str, offender: &mut impl FnMut(usize, String)) {
    for (n, line) in source.lines().enumerate() {
        let line = line.trim_start();
        if let Some(name) = line.split("fn ").nth(1).filter(|_| !line.starts_with("//")) {
            let prefix = NAMES.iter().find(|prefix| name.starts_with(**prefix));
            if let Some(prefix) = prefix {
                offender(n + 1, format!("fn {prefix}"));
            }
        }
        let Some(comment) = line.strip_prefix("//") else {
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        if comment.starts_with("Source:") {
            continue;
        }
        let first = comment.split(' ').next().unwrap_or_default();
        if OPENERS.contains(&first) {
            offender(n + 1, format!("{first} ..."));
        }
        for word in comment.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if WORDS.contains(&word) {
                offender(n + 1, word.to_owned());
            }
        }
    }
}

#[test]
fn count_finds_words_openers_and_names() {
    let source = "/// What is told.\n// Source: told\nlet told = 1; // told\nfn what_is() {}\n    //! Where a\n";
    let mut found = Vec::new();
    count(source, &mut |line, key| found.push((line, key)));
    let expected = [
        (1, "What ..."),
        (1, "told"),
        (4, "fn what_"),
        (5, "Where ..."),
    ];
    assert_eq!(found, expected.map(|(line, key)| (line, key.to_owned())));
}

#[test]
fn counts_only_fall() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in all_rust_files() {
        count(&read(&file), &mut |line, key| {
            found.entry(key).or_default().push(format!("{file}:{line}"));
        });
    }
    let text = read(COUNTS);
    let limits = text.lines().filter_map(|line| line.rsplit_once(' '));
    let limits: BTreeMap<&str, usize> = limits
        .map(|(key, count)| (key, count.parse().unwrap()))
        .collect();
    let (mut problems, mut counts) = (String::new(), String::new());
    for (key, places) in &found {
        let limit = limits.get(key.as_str()).copied().unwrap_or_default();
        let _ = writeln!(counts, "{key} {}", places.len());
        if places.len() > limit {
            let _ = writeln!(
                problems,
                "`{key}`: {} times, and {limit} are allowed:\n  {}",
                places.len(),
                places.join("\n  ")
            );
        }
    }
    assert!(
        problems.is_empty(),
        "write it in plain English:\n{problems}"
    );
    assert_eq!(
        text, counts,
        "fewer than before: {COUNTS} is to have these counts"
    );
}
