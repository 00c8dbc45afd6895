//! Reads the list of skipped tests and reasons, `parity/conformance/skip.toml`.
//!
//! An entry is the path of a test, or a prefix of paths that ends at a slash. Entries without effect are errors: an
//! entry that matches no test, and an entry for a test that would pass.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use toml_edit::Document;

/// Skipped tests, and the reason for skipping them.
#[derive(Clone, Debug)]
pub struct Skip {
    /// Paths of tests, or prefixes of paths.
    pub tests: Vec<String>,
    /// The reason, in a sentence.
    pub reason: String,
}

/// The list of skipped tests.
#[derive(Clone, Debug, Default)]
pub struct SkipList {
    skips: Vec<Skip>,
}

impl SkipList {
    /// Reads the list from this repository.
    ///
    /// # Errors
    /// Returns an error if the file is missing or malformed.
    pub fn read() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/skip.toml");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses a list. The list consists of tables `[[skip]]` with `reason` and `tests`.
    ///
    /// # Errors
    /// Returns an error if the list is malformed or gives two reasons for a test.
    pub fn parse(text: &str) -> Result<Self> {
        let document = Document::parse(text)?;
        let tables = document
            .get("skip")
            .and_then(|item| item.as_array_of_tables());
        let mut list = Self::default();
        for table in tables.into_iter().flatten() {
            let reason = table.get("reason").and_then(|item| item.as_str());
            let reason = reason.context("an entry has no reason")?.trim();
            ensure!(!reason.is_empty(), "the reason of an entry is empty");
            let tests = table.get("tests").and_then(|item| item.as_array());
            let mut skip = Skip {
                tests: Vec::new(),
                reason: reason.to_owned(),
            };
            for test in tests.context("an entry names no tests")? {
                let test = test
                    .as_str()
                    .context("the path of a test is not a string")?;
                ensure!(
                    list.reason(test).is_none() && !skip.names(test),
                    "{test} is in two entries"
                );
                skip.tests.push(test.to_owned());
            }
            list.skips.push(skip);
        }
        Ok(list)
    }

    /// Returns the reason for skipping the test `path`. Returns `None` if the test is not skipped.
    #[must_use]
    pub fn reason(&self, path: &str) -> Option<&str> {
        let skip = self.skips.iter().find(|skip| skip.names(path))?;
        Some(&skip.reason)
    }

    /// Returns the entries that match none of `paths`.
    #[must_use]
    pub fn idle<'a>(&'a self, paths: &[&str]) -> Vec<&'a str> {
        let entries = self.skips.iter().flat_map(|skip| &skip.tests);
        entries
            .filter(|entry| !paths.iter().any(|path| begins_with(path, entry)))
            .map(String::as_str)
            .collect()
    }

    /// Returns the reasons in the order of the list, each with the number of `paths` that match.
    #[must_use]
    pub fn counts(&self, paths: &[&str]) -> Vec<(&str, usize)> {
        let count = |skip: &Skip| paths.iter().filter(|path| skip.names(path)).count();
        self.skips
            .iter()
            .map(|skip| (&*skip.reason, count(skip)))
            .collect()
    }
}

impl Skip {
    fn names(&self, path: &str) -> bool {
        self.tests.iter().any(|entry| begins_with(path, entry))
    }
}

/// Returns true if `path` equals `entry` or is below it.
fn begins_with(path: &str, entry: &str) -> bool {
    path.strip_prefix(entry)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "
        [[skip]]
        reason = 'none'
        tests = ['a/b', 'c']
        [[skip]]
        reason = 'other'
        tests = ['a/bb/d']
    ";

    #[test]
    fn entries_of_skip_list_match_paths_and_prefixes() {
        let list = SkipList::parse(LIST).unwrap();
        assert_eq!(list.reason("a/b/x"), Some("none"));
        assert_eq!(list.reason("a/bb/x"), None);
        assert_eq!(list.reason("a/bb/d"), Some("other"));
        assert_eq!(list.reason("cc/x/y"), None);
        let paths = ["a/b/x", "a/b/y", "c/x/y"];
        assert_eq!(list.idle(&paths), ["a/bb/d"]);
        assert_eq!(list.counts(&paths), [("none", 3), ("other", 0)]);
    }

    #[test]
    fn skip_list_is_invalid_unless_each_test_has_one_reason() {
        for text in [
            "[[skip]]\ntests = ['a']",
            "[[skip]]\nreason = ' '\ntests = ['a']",
            "[[skip]]\nreason = 'r'",
            "[[skip]]\nreason = 'r'\ntests = ['a', 'a/b']",
        ] {
            assert!(SkipList::parse(text).is_err(), "{text}");
        }
    }
}
