//! Reads the policies for tests: generated policies, and real policies below the directory `VAP_CORPUS_DIR`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::documents::load_policies;

/// Returns the directory of the corpus of real policies.
///
/// # Errors
/// Returns an error if `VAP_CORPUS_DIR` is not set.
pub fn directory() -> Result<PathBuf> {
    std::env::var_os("VAP_CORPUS_DIR")
        .map(PathBuf::from)
        .context("set VAP_CORPUS_DIR to the folder with the corpus (policies, crds)")
}

/// Returns all valid policies below `folder`, in the order of their files.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn policies(folder: &Path) -> Result<Vec<ValidatingAdmissionPolicy>> {
    let documents = load_policies(&[folder.to_owned()])?;
    Ok(documents
        .into_iter()
        .filter_map(|document| document.policy.ok())
        .collect())
}
