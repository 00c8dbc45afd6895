//! Real policies to test with, from the folder that `VAP_CORPUS_DIR` names.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde::Deserialize as _;
use serde_json::Value;

/// The folder of the corpus.
///
/// # Errors
/// When `VAP_CORPUS_DIR` is not set.
pub fn directory() -> Result<PathBuf> {
    std::env::var_os("VAP_CORPUS_DIR")
        .map(PathBuf::from)
        .context("set VAP_CORPUS_DIR to the folder with the corpus (policies, crds)")
}

/// All policies below `folder` that read as v1, in the order of their files.
///
/// # Errors
/// When a file cannot be read.
pub fn policies(folder: &Path) -> Result<Vec<ValidatingAdmissionPolicy>> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    files.sort();
    let mut policies = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        for document in serde_norway::Deserializer::from_str(&text) {
            let Ok(value) = Value::deserialize(document) else { continue };
            let items = match value.get("items") {
                Some(Value::Array(items)) => items.clone(),
                _ => vec![value],
            };
            policies.extend(items.into_iter().filter_map(policy));
        }
    }
    Ok(policies)
}

fn policy(mut value: Value) -> Option<ValidatingAdmissionPolicy> {
    if value.get("kind")?.as_str()? != "ValidatingAdmissionPolicy" {
        return None;
    }
    value.as_object_mut()?.insert("apiVersion".into(), "admissionregistration.k8s.io/v1".into());
    serde_json::from_value(value).ok()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json") {
            files.push(path);
        }
    }
    Ok(())
}
