//! Policies to test with: those made from a seed, and real ones from the folder that `VAP_CORPUS_DIR` names.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::documents::load_policies;

/// The folder of the corpus of real policies.
///
/// # Errors
/// When `VAP_CORPUS_DIR` is not set.
pub fn directory() -> Result<PathBuf> {
    std::env::var_os("VAP_CORPUS_DIR")
        .map(PathBuf::from)
        .context("set VAP_CORPUS_DIR to the folder with the corpus (policies, crds)")
}

/// All policies below `folder` that can be read, in the order of their files.
///
/// # Errors
/// When a file cannot be read.
pub fn policies(folder: &Path) -> Result<Vec<ValidatingAdmissionPolicy>> {
    let documents = load_policies(&[folder.to_owned()])?;
    Ok(documents
        .into_iter()
        .filter_map(|document| document.policy.ok())
        .collect())
}
