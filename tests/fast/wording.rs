//! Counts words, phrases and names for which there is a plain replacement. No count may rise. CONTRIBUTING.md contains
//! examples.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::repository::{all_rust_files, files_with_extension, read};

/// The file with the allowed counts. The test fails if a count rises. If a count falls, the file must be updated.
const COUNTS: &str = "tests/wording.txt";

/// Words that have a plain replacement.
const WORDS: [&str; 22] = [
    "anybody", "apart", "beside", "behind", "judge", "judged", "judges", "mend", "mended", "mends",
    "nobody", "refusal", "refuse", "refused", "refuses", "said", "somebody", "tell", "tells",
    "told", "trouble", "whoever",
];

/// Phrases that have a plain replacement.
const PHRASES: [&str; 6] = [
    "Reports whether",
    "; whether ",
    "as good as",
    "cannot be had",
    "held against",
    "look at",
];

/// Words with which no sentence may start.
const OPENERS: [&str; 7] = ["Nothing", "Of", "That", "Those", "What", "Where", "Who"];

/// Prefixes with which no name of a function may start.
const FUNCTIONS: [&str; 8] = [
    "nobody_",
    "nothing_",
    "of_",
    "that_",
    "those_",
    "what_",
    "who_",
    "whatever_",
];

/// Names of locals that do not describe the role of the value.
const LOCALS: [&str; 4] = ["found", "known", "made", "told"];

/// Calls `offender` with the key of each listed word, phrase and opener in a line of prose.
fn count_prose(prose: &str, offender: &mut impl FnMut(String)) {
    let sentences = prose.split(". ").map(str::trim_start);
    for opener in sentences.filter_map(|sentence| sentence.split(' ').next()) {
        if OPENERS.contains(&opener) {
            offender(format!("{opener} ..."));
        }
    }
    for phrase in PHRASES.iter().filter(|phrase| prose.contains(**phrase)) {
        offender(format!("\"{}\"", phrase.trim()));
    }
    for word in prose.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if WORDS.contains(&word) {
            offender(word.to_owned());
        }
    }
}

/// Calls `offender` with the line number and the key of each listed item in a Rust source file. Line numbers start at
/// 1.
fn count_source(source: &str, offender: &mut impl FnMut(usize, String)) {
    for (n, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let mut count = |key| offender(n + 1, key);
        let Some(comment) = line.strip_prefix("//") else {
            let name = line.split("fn ").nth(1).unwrap_or_default();
            let prefix = FUNCTIONS.iter().find(|prefix| name.starts_with(**prefix));
            if let Some(prefix) = prefix {
                count(format!("fn {prefix}"));
            }
            let local = line.strip_prefix("let ").unwrap_or_default();
            let local = local.strip_prefix("mut ").unwrap_or(local);
            let local = local
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            if let Some(local) = local.filter(|local| LOCALS.contains(local)) {
                count(format!("let {local}"));
            }
            continue;
        };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        if !comment.starts_with("Source:") {
            count_prose(comment, &mut count);
        }
    }
}

/// Calls `offender` like [`count_source`] for each listed item in a Markdown page. Ignores code blocks.
fn count_page(page: &str, offender: &mut impl FnMut(usize, String)) {
    let mut is_code = false;
    for (n, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let line = line.trim_start_matches(['-', '*', '#', '|', ' ']);
            count_prose(line, &mut |key| offender(n + 1, format!("page: {key}")));
        }
    }
}

#[test]
fn forbidden_words_in_comments_and_names_are_found() {
    let source = "/// What is told. Of it\n// Source: told\nlet told = 1; // told\nfn what_is() {}\n    //! Where a\n";
    let mut offenders = Vec::new();
    count_source(source, &mut |line, key| offenders.push((line, key)));
    let expected = [
        (1, "What ..."),
        (1, "Of ..."),
        (1, "told"),
        (3, "let told"),
        (4, "fn what_"),
        (5, "Where ..."),
    ];
    assert_eq!(
        offenders,
        expected.map(|(line, key)| (line, key.to_owned()))
    );
}

#[test]
fn code_blocks_of_pages_are_skipped() {
    let mut offenders = Vec::new();
    let page = "- What\n```\nWhat\n```\n| a | held against b |\n";
    count_page(page, &mut |line, key| offenders.push((line, key)));
    let expected = [(1, "page: What ..."), (5, "page: \"held against\"")];
    assert_eq!(
        offenders,
        expected.map(|(line, key)| (line, key.to_owned()))
    );
}

#[test]
fn wording_counts_do_not_rise() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in all_rust_files() {
        // This file contains the listed items as data.
        if file.ends_with("tests/fast/wording.rs") {
            continue;
        }
        count_source(&read(&file), &mut |line, key| {
            places
                .entry(key)
                .or_default()
                .push(format!("{file}:{line}"));
        });
    }
    for file in files_with_extension("md") {
        // CONTRIBUTING.md and the ADR about renames quote listed words. rules.md is generated.
        if !["CONTRIBUTING.md", "0039-public-renames.md"]
            .iter()
            .any(|name| file.ends_with(name))
        {
            count_page(&read(&file), &mut |line, key| {
                places
                    .entry(key)
                    .or_default()
                    .push(format!("{file}:{line}"));
            });
        }
    }
    let text = read(COUNTS);
    let limits = text.lines().filter_map(|line| line.rsplit_once(' '));
    let limits: BTreeMap<&str, usize> = limits
        .map(|(key, count)| (key, count.parse().unwrap()))
        .collect();
    let (mut problems, mut counts) = (String::new(), String::new());
    for (key, places) in &places {
        let limit = limits.get(key.as_str()).copied().unwrap_or_default();
        let _ = writeln!(counts, "{key} {}", places.len());
        if places.len() > limit {
            let _ = writeln!(
                problems,
                "`{key}`: {} times, the limit is {limit}:\n  {}",
                places.len(),
                places.join("\n  ")
            );
        }
    }
    if std::env::var_os("VAP_UPDATE").is_some() {
        std::fs::write(COUNTS, counts).unwrap();
        return;
    }
    assert!(
        problems.is_empty(),
        "write it in plain English:\n{problems}"
    );
    assert_eq!(
        text, counts,
        "fewer than before: {COUNTS} must have these counts (VAP_UPDATE=1 writes them)"
    );
}
