//! Refusals of the API server at create are what `kubectl vap check` calls refused, and nothing else.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and tells what it compared"
)]

use std::collections::BTreeMap;

use e2e::ControlPlane;
use e2e::controller::repository;
use e2e::corpus;
use e2e::random::from_environment;
use e2e::refusals::{self, Mutant, Refusal, Sort, Verdict};
use serde::Deserialize;

/// The file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    bases: BTreeMap<String, String>,
    cases: Vec<Case>,
}

/// A text with changes.
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

/// The texts of `e2e/refusals/cases.yaml`.
fn cases() -> Vec<Mutant> {
    let path = repository().join("e2e/refusals/cases.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let Cases { bases, cases } = serde_norway::from_str(&text).unwrap();
    let made = cases.iter().map(|case| {
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
        let sort = kinds.next().and_then(Sort::of_kind).unwrap();
        Mutant { sort, text }
    });
    made.collect()
}

/// A reference to a field without the indices, which the API server leaves out in some.
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

/// Reports whether a field that the API server names is one of ours, within one or around one, or named because of
/// what is told of another: one cause is told once.
fn is_told(field: &str, ours: &[Refusal]) -> bool {
    let has = |wanted: &str| ours.iter().any(|ours| plain(&ours.field) == wanted);
    let are_related = |ours: &Refusal| {
        let (theirs, ours) = (plain(field), plain(&ours.field));
        theirs.starts_with(&ours) || ours.starts_with(&theirs)
    };
    match plain(field).as_str() {
        // Beside the validations that are missing.
        "spec.auditAnnotations" if has("spec.validations") => true,
        // Beside the name that excludes it.
        "spec.paramRef.selector" if has("spec.paramRef.name") => true,
        // Keys have the name of the policy before them.
        "spec.auditAnnotations.key" if has("metadata.name") || has("metadata.generateName") => true,
        // The name is made of it.
        "metadata.name" if has("metadata.generateName") => true,
        // They read a variable that has no expression.
        path if path.to_lowercase().ends_with("expression") && has("spec.variables.expression") => {
            true
        }
        _ => ours.iter().any(are_related),
    }
}

/// `VAP_REFUSALS` sets how many mutants there are, `VAP_REFUSALS_SEED` which; `VAP_REFUSALS_DIR` adds what is in files.
///
/// Where `VAP_CORPUS_DIR` names a corpus, its webhook configurations and mutants of them are added, as many as
/// `VAP_WEBHOOK_REFUSALS` says.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_refuses_is_refused() {
    let n = from_environment("VAP_REFUSALS", 600).unwrap();
    let seed = from_environment("VAP_REFUSALS_SEED", 1).unwrap();
    let mut mutants = refusals::mutants(seed, n).unwrap();
    mutants.extend(refusals::written());
    mutants.extend(cases());
    if let Some(folder) = std::env::var_os("VAP_REFUSALS_DIR") {
        mutants.extend(refusals::of_files(folder.as_ref()).unwrap());
    }
    if std::env::var_os("VAP_CORPUS_DIR").is_some() {
        let folder = corpus::directory().unwrap().join("webhooks");
        let n = from_environment("VAP_WEBHOOK_REFUSALS", 200).unwrap();
        let webhooks = refusals::of_corpus::webhooks(&folder, seed, n).unwrap();
        println!(
            "{} webhook configurations of the corpus and their mutants",
            webhooks.len()
        );
        mutants.extend(webhooks);
    }
    let n = mutants.len();
    let texts: Vec<&str> = mutants.iter().map(|mutant| mutant.text.as_str()).collect();
    let folder = tempfile::tempdir().unwrap();
    let ours = refusals::ours(folder.path(), &texts).unwrap();

    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let (mut n_refused, mut different) = (0, Vec::new());
    for (mutant, ours) in mutants.iter().zip(&ours) {
        let verdict = refusals::verdict(&client, mutant.sort, &mutant.text).await;
        let verdict = verdict.unwrap_or_else(|error| panic!("{error}: {}", mutant.text));
        let is_equal = match &verdict {
            Verdict::Accepted => ours.is_empty(),
            Verdict::Refused { fields, .. } => {
                n_refused += 1;
                // Each field that it names is one of ours, or what is around or within it.
                !ours.is_empty() && fields.iter().all(|field| is_told(field, ours))
            }
        };
        if !is_equal {
            let text: String = mutant.text.chars().take(3_000).collect();
            let ours: Vec<_> = ours
                .iter()
                .map(|ours| format!("{} ({})", ours.text, ours.field))
                .collect();
            different.push(format!("{verdict:?}\n  ours: {ours:?}\n  {text}"));
        }
    }
    println!(
        "{n} objects of seed {seed}: {n_refused} refused, {} different",
        different.len()
    );
    assert!(n_refused * 4 > n && n_refused * 10 < n * 9, "{n_refused}");
    assert!(
        different.is_empty(),
        "{} of {n} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}
