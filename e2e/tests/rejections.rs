//! Tests that `kubectl vap check` rejects the same objects as a real API server.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;

use e2e::ControlPlane;
use e2e::controller::repository;
use e2e::response::Response;
use http::Request;
use kube::Client;
use parity::corpus;
use parity::random::from_environment;
use parity::rejections::{self, Mutant, MutantKind, Rejection};
use serde::Deserialize;
use vap_status_controller::cli::input::values;

/// The URL path of the API group.
const API: &str = "/apis/admissionregistration.k8s.io/v1";

const MERGE_PATCH: &str = "application/merge-patch+json";

struct CreateError {
    /// The HTTP status and the message. If the API server can decode the object, the status is 422.
    text: String,
    fields: Vec<String>,
}

/// Creates an object with strict field validation, and deletes it.
async fn create(client: &Client, kind: MutantKind, text: &str) -> Result<(), CreateError> {
    let path = format!("{API}/{}", kind.resource());
    let uri = format!("{path}?fieldValidation=Strict&fieldManager=refusals");
    let request = Request::post(uri).header("Content-Type", "application/yaml");
    let request = request.body(text.as_bytes().to_vec().into()).unwrap();
    let response = Response::send(client, request).await.unwrap();
    match response.status {
        201 => {
            let metadata = &response.body["metadata"];
            let uri = format!("{path}/{}", metadata["name"].as_str().unwrap());
            if !metadata["finalizers"].is_null() {
                let patch = br#"{"metadata": {"finalizers": null}}"#.to_vec();
                let request = Request::patch(&uri).header("Content-Type", MERGE_PATCH);
                let request = request.body(patch.into()).unwrap();
                Response::send(client, request).await.unwrap();
            }
            let request = Request::delete(uri).body(Vec::new().into()).unwrap();
            let deleted = Response::send(client, request).await.unwrap();
            assert_eq!(deleted.status, 200, "DELETE: {}: {text}", deleted.message());
            Ok(())
        }
        // Status 500 is possible, for example if etcd rejects the object.
        400..=500 => {
            let causes = response.body["details"]["causes"].as_array();
            let fields = causes.into_iter().flatten().map(|cause| &cause["field"]);
            Err(CreateError {
                text: format!("{} {}", response.status, response.message()),
                fields: fields
                    .map(|field| field.as_str().unwrap_or_default().to_owned())
                    .collect(),
            })
        }
        status => panic!("{status} {}: {text}", response.message()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    bases: BTreeMap<String, String>,
    cases: Vec<Case>,
}

/// A base object, and the changes to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    base: String,
    changes: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, untagged)]
enum Change {
    Replace { from: String, to: String },
    Add { add: String },
}

fn cases() -> Vec<Mutant> {
    let path = repository().join("parity/rejections/cases.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let cases = values(&text).remove(0).unwrap();
    let Cases { bases, cases } = serde_json::from_value(cases).unwrap();
    let mutants = cases.iter().map(|case| {
        let mut text = bases[&case.base].clone();
        for change in &case.changes {
            match change {
                Change::Replace { from, to } => {
                    assert!(text.contains(from.as_str()), "{}: {from}", case.name);
                    text = text.replacen(from.as_str(), to, 1);
                }
                Change::Add { add } => text.push_str(add),
            }
        }
        let mut kinds = text.lines().filter_map(|line| line.strip_prefix("kind: "));
        let kind = kinds.next().and_then(MutantKind::from_kind).unwrap();
        Mutant { kind, text }
    });
    mutants.collect()
}

/// Removes indices from a field path, because the API server omits some of them.
fn plain(field: &str) -> String {
    let mut plain = String::new();
    let mut is_index = false;
    for c in field.chars() {
        is_index = c == '[' || is_index;
        if !is_index {
            plain.push(c);
        }
        is_index = is_index && c != ']';
    }
    plain
}

/// Returns true if one of our errors is about this field, about its parent or about a nested field. Also returns true
/// for an error of the API server that follows from one of our errors. The function lists these follow-up errors.
fn is_predicted(field: &str, ours: &[Rejection]) -> bool {
    let has = |wanted: &str| ours.iter().any(|ours| plain(&ours.field) == wanted);
    let are_related = |ours: &Rejection| {
        let (theirs, ours) = (plain(field), plain(&ours.field));
        theirs.starts_with(&ours) || ours.starts_with(&theirs)
    };
    match plain(field).as_str() {
        // This error follows from the missing validations.
        "spec.auditAnnotations" if has("spec.validations") => true,
        // This error follows from a name, because a paramRef must not have both a name and a selector.
        "spec.paramRef.selector" if has("spec.paramRef.name") => true,
        // The API server validates a key together with the name of the policy.
        "spec.auditAnnotations.key" if has("metadata.name") || has("metadata.generateName") => true,
        "metadata.name" if has("metadata.generateName") => true,
        // These expressions refer to a variable without an expression.
        path if path.to_lowercase().ends_with("expression") && has("spec.variables.expression") => {
            true
        }
        _ => ours.iter().any(are_related),
    }
}

/// Checks and the API server reject the same objects, with errors about the same fields.
///
/// `VAP_REJECTIONS` sets the number of mutants, and `VAP_REJECTIONS_SEED` their seed. `VAP_REJECTIONS_DIR` adds objects
/// from files. `VAP_CORPUS_DIR` adds the webhook configurations of a corpus, and `VAP_WEBHOOK_REJECTIONS` sets the
/// number of their mutants.
#[tokio::test(flavor = "multi_thread")]
async fn objects_rejected_by_the_api_server_are_rejected_by_check() {
    let n = from_environment("VAP_REJECTIONS", 600).unwrap();
    let seed = from_environment("VAP_REJECTIONS_SEED", 1).unwrap();
    let mut mutants = rejections::mutants(seed, n).unwrap();
    mutants.extend(rejections::hand_written());
    mutants.extend(cases());
    if let Some(folder) = std::env::var_os("VAP_REJECTIONS_DIR") {
        mutants.extend(rejections::load_files(folder.as_ref()).unwrap());
    }
    if std::env::var_os("VAP_CORPUS_DIR").is_some() {
        let folder = corpus::directory().unwrap().join("webhooks");
        let n = from_environment("VAP_WEBHOOK_REJECTIONS", 200).unwrap();
        let webhooks = rejections::corpus::webhooks(&folder, seed, n).unwrap();
        println!(
            "{} webhook configurations of the corpus and their mutants",
            webhooks.len()
        );
        mutants.extend(webhooks);
    }
    let n = mutants.len();
    let texts: Vec<&str> = mutants.iter().map(|mutant| mutant.text.as_str()).collect();
    let folder = tempfile::tempdir().unwrap();
    let predicted = rejections::predicted(folder.path(), &texts).unwrap();

    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let (mut n_rejected, mut different) = (0, Vec::new());
    for (mutant, ours) in mutants.iter().zip(&predicted) {
        let result = create(&client, mutant.kind, &mutant.text).await;
        let is_equal = match &result {
            Ok(()) => ours.is_empty(),
            Err(error) => {
                n_rejected += 1;
                let mut fields = error.fields.iter();
                !ours.is_empty() && fields.all(|field| is_predicted(field, ours))
            }
        };
        if !is_equal {
            let text: String = mutant.text.chars().take(3_000).collect();
            let ours: Vec<_> = ours
                .iter()
                .map(|ours| format!("{} ({})", ours.text, ours.field))
                .collect();
            let theirs = result.map_or_else(|error| error.text, |()| "accepted".to_owned());
            different.push(format!("{theirs}\n  ours: {ours:?}\n  {text}"));
        }
    }
    println!(
        "{n} objects of seed {seed}: {n_rejected} rejected, {} different",
        different.len()
    );
    assert!(
        n_rejected * 4 > n && n_rejected * 10 < n * 9,
        "{n_rejected}"
    );
    assert!(
        different.is_empty(),
        "{} of {n} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}
