//! Where the tests find the OpenAPI documents of Kubernetes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The documents' place in the module `k8s.io/kubernetes`.
const IN_MODULE_CACHE: &str = "k8s.io/kubernetes@v1.36.3/api/openapi-spec/v3";

/// The directory with the OpenAPI v3 documents of Kubernetes v1.36.3: `VAP_OPENAPI_DIR`, or that of the
/// Go module `k8s.io/kubernetes` in Go's module cache.
///
/// `None`, with a word on standard error, where there are none; in CI (`CI=true`) that is a failure.
pub(crate) fn openapi_dir() -> Option<PathBuf> {
    let directory = match std::env::var_os("VAP_OPENAPI_DIR") {
        Some(directory) => Some(PathBuf::from(directory)),
        None => module_cache().map(|cache| cache.join(IN_MODULE_CACHE)),
    };
    let found = directory.filter(|directory| directory.is_dir());
    if found.is_none() {
        let message = "the OpenAPI documents are not there: set VAP_OPENAPI_DIR, or run \
                       `go mod download k8s.io/kubernetes@v1.36.3`";
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "{message}"
        );
        eprintln!("NOT TESTED: {message}");
    }
    found
}

/// The corpus of real policies and CustomResourceDefinitions that `VAP_CORPUS_DIR` names; `None`, with a
/// word on standard error, where it names none.
pub(crate) fn corpus_dir() -> Option<PathBuf> {
    let found = std::env::var_os("VAP_CORPUS_DIR").map(PathBuf::from);
    if found.is_none() {
        eprintln!("NOT TESTED: the corpus is not there: set VAP_CORPUS_DIR");
    }
    found
}

/// The files in a directory and those below it, sorted.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let below = |path: PathBuf| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    paths.into_iter().flat_map(below).collect()
}

fn module_cache() -> Option<PathBuf> {
    let output = Command::new("go")
        .args(["env", "GOMODCACHE"])
        .output()
        .ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(path.trim_end()))
}

/// The documents, by file name, sorted.
pub(crate) fn documents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut paths = files(directory);
    paths.retain(|path| path.to_string_lossy().ends_with("_openapi.json"));
    let read = |path: PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (name, std::fs::read(&path).unwrap())
    };
    paths.into_iter().map(read).collect()
}
