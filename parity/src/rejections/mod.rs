//! Generates objects that an API server may reject on creation, for comparisons with `kubectl vap check`.
//!
//! [`mutants`] generates policies, bindings and webhook configurations with mistakes from a seed. [`predicted`] returns
//! the rejections that the check predicts. `e2e/tests/rejections.rs` creates the objects on a real API server.

mod bases;
pub mod corpus;
mod hand_written;
pub mod mutate;
mod tree;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use vap_status_controller::cli::check::finding::Finding;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::{Input, KindFilter};
use vap_status_controller::policy::rule::Rule;

use crate::version;

pub use bases::bases;
pub use hand_written::hand_written;
pub use mutate::{Mutant, MutantKind, mutants};

/// Returns the policies, bindings and webhook configurations in the files below `folder`, without changes.
///
/// # Errors
/// Returns an error if there are none.
pub fn load_files(folder: &Path) -> Result<Vec<Mutant>> {
    let paths = [folder.to_owned()];
    let input = Input::load(&paths, KindFilter::Policies, &mut std::io::empty());
    let policies = input.policies.iter().map(|it| &it.document);
    let bindings = input.bindings.iter().map(|it| &it.document);
    let mutating = input.mutating_policies.iter();
    let mutating = mutating.map(|it| &it.shared.document);
    let bound = input.mutating_bindings.iter().map(|it| &it.document);
    let webhooks = input.webhooks.iter().map(|it| &it.document);
    let invalid = input.invalid.iter().map(|it| &it.document);
    let policies = policies.chain(mutating);
    let documents = policies.chain(bindings).chain(bound);
    let documents = documents.chain(webhooks).chain(invalid);
    let mutants: Vec<_> = documents
        .filter_map(|document| {
            let kind = MutantKind::from_kind(document.node.get("kind")?.as_str()?)?;
            let mut object = document.node.to_json();
            let version = object.get_mut("apiVersion")?;
            *version = "admissionregistration.k8s.io/v1".into();
            let text = object.to_string();
            Some(Mutant { kind, text })
        })
        .collect();
    ensure!(!mutants.is_empty(), "no policies in {}", folder.display());
    Ok(mutants)
}

/// A rejection that the check predicts.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// The rule id and the message of the finding.
    pub text: String,
    /// The path of the field. Empty if the rejection is about the whole object.
    pub field: String,
}

/// Returns the rejections that the check predicts for each manifest. The check runs once for all manifests.
///
/// # Errors
/// Returns an error if files cannot be written or the check fails.
pub fn predicted(folder: &Path, texts: &[&str]) -> Result<Vec<Vec<Rejection>>> {
    let mut paths = Vec::new();
    let mut by_file = BTreeMap::new();
    for (n, text) in texts.iter().enumerate() {
        let path = folder.join(format!("{n}.yaml"));
        std::fs::write(&path, text)?;
        by_file.insert(path.display().to_string(), n);
        paths.push(path);
    }
    let options = Options {
        paths,
        version: Some(version::get()),
        ..Options::default()
    };
    let report = check::run(&options, &mut std::io::empty())?;
    let mut rejections = vec![Vec::new(); texts.len()];
    // The check reports a key that overrides a merge key only as a note, because kubectl sends JSON. The comparison
    // sends the YAML unchanged, so the API server rejects it.
    let is_rejected = |finding: &&Finding| finding.rejected || finding.rule == Rule::DuplicateKey;
    let rejected = report.findings.iter().filter(is_rejected);
    for finding in rejected.filter(|finding| !finding.is_hidden) {
        let n = by_file.get(&finding.location.file).copied();
        let of_file = n.and_then(|n| rejections.get_mut(n));
        let of_file = of_file.context("a finding about an unknown file")?;
        // Equal findings of an object are merged. The other fields are in `also`.
        let others = finding.also.iter().map(|other| &other.field_ref);
        for field in std::iter::once(&finding.field_ref).chain(others) {
            of_file.push(Rejection {
                text: format!("{}: {}", finding.rule.id(), finding.message),
                field: field.clone().unwrap_or_default(),
            });
        }
    }
    Ok(rejections)
}
