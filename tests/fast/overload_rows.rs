//! Tests that the id of each overload occurs exactly once in the source: in the row that defines the overload.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use vap_status_controller::library::environment::base_env;
use vap_status_controller::version::KubernetesVersion;

/// Adds the Rust source files in `dir`, except for test files.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") && !is_test {
            found.push(path);
        }
    }
}

/// Counts how often each of `words` occurs as a string literal in the sources. Test code is ignored.
fn written(words: &BTreeSet<&'static str>) -> BTreeMap<&'static str, usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    for package in fs::read_dir(root.join("crates")).unwrap() {
        sources(&package.unwrap().path().join("src"), &mut files);
    }
    let mut n_written = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for word in product.split('"') {
            if let Some(word) = words.get(word) {
                *n_written.entry(*word).or_default() += 1;
            }
        }
    }
    n_written
}

#[test]
fn overload_ids_occur_only_in_rows() {
    let functions = base_env(KubernetesVersion::DEFAULT).library().functions();
    let rows: Vec<_> = functions
        .flat_map(|function| function.overloads.iter().map(|overload| overload.row))
        .collect();
    // Skips ids that equal the name of a function, because this name also occurs as a string literal.
    let names: BTreeSet<_> = rows.iter().map(|row| row.function).collect();
    let ids: BTreeSet<_> = rows.iter().map(|row| row.id).collect();
    let ids: BTreeSet<_> = ids.difference(&names).copied().collect();
    assert!(ids.len() > 300, "{}", ids.len());
    let n_written = written(&ids);
    for id in ids {
        assert_eq!(n_written.get(id), Some(&1), "{id}");
    }
}
