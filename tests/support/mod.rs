//! Finds Kubernetes' OpenAPI documents.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the OpenAPI documents in Go's module cache.
const IN_MODULE_CACHE: &str = "k8s.io/kubernetes@v1.36.3/api/openapi-spec/v3";

/// Returns the directory with the OpenAPI v3 documents of Kubernetes v1.36.3. This is `VAP_OPENAPI_DIR`, or the
/// directory in Go's module cache, which `./dev` downloads.
///
/// # Panics
/// Panics if the documents are missing. Skipping the tests would hide the problem.
pub(crate) fn openapi_dir() -> PathBuf {
    let directory = match std::env::var_os("VAP_OPENAPI_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => module_cache().join(IN_MODULE_CACHE),
    };
    assert!(
        directory.is_dir(),
        "the OpenAPI documents are not in {}: run ./dev test, which fetches them, or set VAP_OPENAPI_DIR",
        directory.display()
    );
    directory
}

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

fn module_cache() -> PathBuf {
    let output = Command::new("go").args(["env", "GOMODCACHE"]).output();
    let path = output.map(|output| output.stdout).unwrap_or_default();
    PathBuf::from(String::from_utf8_lossy(&path).trim_end())
}

/// Returns the name and content of each document, sorted by name.
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
