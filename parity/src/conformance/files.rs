//! Finds the conformance tests in Go's module cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The Go module that contains the CEL specification.
const MODULE: &str = "cel.dev/expr";

/// The folder of the tests in the module.
const FOLDER: &str = "tests/simple/testdata";

/// Output of `go mod download -json` for a module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    #[serde(default)]
    dir: PathBuf,
    #[serde(default)]
    version: String,
    #[serde(default)]
    error: String,
}

/// Returns the sorted files of the tests, and the version of their module.
///
/// The version is the one in the oracle's `go.mod`, so that our engine and the oracle use the same tests. If the module
/// is not in the cache, Go downloads it.
///
/// # Errors
/// Returns an error if Go is not installed or the module cannot be downloaded.
pub fn test_files() -> Result<(String, Vec<PathBuf>)> {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle");
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(oracle)
        .env("GOWORK", "off")
        .output()
        .context("run Go, which fetches the conformance tests")?;
    let download: Download = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    ensure!(download.error.is_empty(), "{MODULE}: {}", download.error);
    let folder = download.dir.join(FOLDER);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "textproto")
        {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no tests in {}", folder.display());
    Ok((download.version, files))
}
