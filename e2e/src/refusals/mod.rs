//! Refusals of the API server at create, beside what `kubectl vap check` says it refuses.
//!
//! [`mutants`] makes policies, bindings and webhook configurations with mistakes from a seed; [`verdict`] asks a real API server about one,
//! by a create with strict field validation, whose result is deleted again; [`ours`] are the findings of the check.

mod bases;
pub mod mutate;
pub mod of_corpus;
mod tree;
mod values;
mod written;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use serde::Deserialize;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::{Input, Wanted};

pub use bases::bases;
pub use mutate::{Mutant, Sort, mutants};
pub use written::written;

/// The path of the API.
const API: &str = "/apis/admissionregistration.k8s.io/v1";

/// The media type of a patch that merges.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The answer of the API server about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It would be stored.
    Accepted,
    /// It is refused.
    Refused {
        /// The status, `422` for one that can be decoded.
        status: u16,
        /// The reason, for people.
        message: String,
        /// The fields that are named.
        fields: Vec<String>,
    },
}

/// The part of a `Status` that is of interest, and of an object that was created.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: Metadata,
    message: String,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    finalizers: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    field: String,
}

/// Asks the API server to create an object of the text, and removes it again where that succeeds.
///
/// # Errors
/// When the API server cannot be asked, or answers with an error of its own.
pub async fn verdict(client: &Client, sort: Sort, text: &str) -> Result<Verdict> {
    let path = format!("{API}/{}", sort.resource());
    let uri = format!("{path}?fieldValidation=Strict&fieldManager=refusals");
    let request = Request::post(uri).header("Content-Type", "application/yaml");
    let (status, answer) = send(client, request.body(text.as_bytes().to_vec().into())?).await?;
    match status {
        201 => {
            let uri = format!("{path}/{}", answer.metadata.name);
            if !answer.metadata.finalizers.is_empty() {
                let patch = br#"{"metadata": {"finalizers": null}}"#.to_vec();
                let request = Request::patch(&uri).header("Content-Type", MERGE_PATCH);
                send(client, request.body(patch.into())?).await?;
            }
            let (deleted, answer) =
                send(client, Request::delete(uri).body(Vec::new().into())?).await?;
            if deleted != 200 {
                bail!("DELETE: {deleted} {}", answer.message);
            }
            Ok(Verdict::Accepted)
        }
        // An internal error is that of a body or an expression too, such as one that etcd does not take.
        400..=500 => {
            let causes = answer.details.causes.into_iter();
            Ok(Verdict::Refused {
                status,
                message: answer.message,
                fields: causes.map(|cause| cause.field).collect(),
            })
        }
        _ => bail!("{status} {}", answer.message),
    }
}

/// The policies, bindings and webhook configurations in the files below `folder`, as they are written.
///
/// # Errors
/// When there are none.
pub fn of_files(folder: &Path) -> Result<Vec<Mutant>> {
    let paths = [folder.to_owned()];
    let input = Input::load(&paths, Wanted::Policies, &mut std::io::empty());
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
    let found: Vec<_> = documents
        .filter_map(|document| {
            let sort = Sort::of_kind(document.node.get("kind")?.as_str()?)?;
            let mut object = document.node.to_json();
            let version = object.get_mut("apiVersion")?;
            *version = "admissionregistration.k8s.io/v1".into();
            let text = object.to_string();
            Some(Mutant { sort, text })
        })
        .collect();
    ensure!(!found.is_empty(), "no policies in {}", folder.display());
    Ok(found)
}

async fn send(client: &Client, request: Request<kube::client::Body>) -> Result<(u16, Answer)> {
    let response = client.send(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    let answer = serde_json::from_slice(&body)
        .with_context(|| format!("{status}: {}", String::from_utf8_lossy(&body)))?;
    Ok((status, answer))
}

/// A finding of ours that says refused: its rule and message, and the field.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The rule and the message.
    pub text: String,
    /// The field, empty for the object as a whole.
    pub field: String,
}

/// The refusals that the check finds in each of `texts`, all of them in one run.
///
/// # Errors
/// When files cannot be written, or the check does not run.
pub fn ours(folder: &Path, texts: &[&str]) -> Result<Vec<Vec<Refusal>>> {
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
        ..Options::default()
    };
    let report = check::run(&options, &mut std::io::empty())?;
    let mut refusals = vec![Vec::new(); texts.len()];
    for found in report.findings.iter().filter(|found| found.refused) {
        let n = by_file.get(&found.location.file).copied();
        let of = n
            .and_then(|n| refusals.get_mut(n))
            .context("a file of nobody")?;
        of.push(Refusal {
            text: format!("{}: {}", found.rule.id(), found.message),
            field: found.field_ref.clone().unwrap_or_default(),
        });
    }
    Ok(refusals)
}
