//! Compares the validation of CustomResourceDefinitions and custom resources with a real API server. For a new
//! definition, the errors about rules are compared. For a custom resource, the causes of the rejection are compared.
//!
//! `VAP_CUSTOM_RESOURCES_SEED` sets the seed, `VAP_CUSTOM_RESOURCES` the number of requests, and `VAP_DEFINITIONS` the
//! number of mutants. If `VAP_CORPUS_DIR` is set, the definitions of that corpus are also sent. The mutants are then
//! derived only from the corpus.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use std::collections::BTreeMap;

use e2e::controller::control_plane;
use e2e::response::Response;
use kube::Client;
use parity::cases::{custom_resources, rules};
use parity::corpus;
use parity::custom_resources::Cause;
use parity::documents::load_documents;
use parity::random::from_environment;
use serde_json::{Value, json};
use vap_status_controller::custom_resource::{Error, Validator, validate_definition};
use vap_status_controller::schema::Gvk;
use vap_status_controller::validation_rules::{DefinitionCause, DefinitionError, schema_errors};
use vap_status_controller::version::KubernetesVersion;

use dry_run::{Target, post, send, served, target_of};

#[path = "support/dry_run.rs"]
mod dry_run;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the definitions of the corpus. Returns no definitions if `VAP_CORPUS_DIR` is not set.
fn corpus_definitions() -> Vec<Value> {
    if std::env::var_os("VAP_CORPUS_DIR").is_none() {
        return Vec::new();
    }
    let documents = load_documents(&[corpus::directory().unwrap().join("crds")]).unwrap();
    let values = documents
        .into_iter()
        .filter_map(|document| document.value.ok());
    values
        .filter(|value| value["kind"] == "CustomResourceDefinition")
        .collect()
}

fn causes(response: &Response) -> Vec<Cause> {
    let causes = response
        .body
        .pointer("/details/causes")
        .and_then(Value::as_array);
    let causes = causes.into_iter().flatten();
    let mut causes: Vec<Cause> = causes
        .map(|cause| Cause {
            field: cause["field"].as_str().unwrap_or_default().to_owned(),
            reason: cause["reason"].as_str().unwrap_or_default().to_owned(),
            message: without_time(cause["message"].as_str().unwrap_or_default()),
        })
        .collect();
    causes.sort();
    causes
}

/// Removes the timestamp at the end of each type name.
fn without_time(message: &str) -> String {
    const NAME: &str = "selfType";
    let mut parts = message.split(NAME);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + NAME + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

/// Returns true if the cause is about rules. An error about a default counts too: the API server does not compile the
/// rules if a default is invalid.
fn is_about_rules(cause: &Cause) -> bool {
    cause.field.contains(".default")
        || cause.field.contains("x-kubernetes-validations[")
        || cause.field.ends_with("x-kubernetes-validations") && cause.reason == "InternalError"
        || cause
            .message
            .contains("x-kubernetes-validations estimated rule cost total")
}

/// Returns true if the cause is deterministic. If several expressions have the same cost, the API server reports random
/// expressions.
fn is_deterministic(cause: &Cause) -> bool {
    !cause.message.starts_with("Forbidden: contributed")
}

/// This project reports the same errors about mutated rules as the API server does on creation.
#[tokio::test(flavor = "multi_thread")]
async fn mutated_rules_have_the_errors_of_the_api_server() {
    let seed = from_environment("VAP_CUSTOM_RESOURCES_SEED", 1).unwrap();
    let count = from_environment("VAP_DEFINITIONS", 120).unwrap();
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let mut definitions = corpus_definitions();
    let generated = rules::definitions(seed, 40);
    let n_corpus = definitions.len();
    let bases = if n_corpus > 0 {
        &definitions
    } else {
        &generated
    };
    let mutants = rules::mutants(bases, seed, count);
    let n_mutants = mutants.len();
    definitions.extend(generated);
    definitions.extend(mutants);
    let (mut n_refused, mut n_errors, mut n_compared) = (0, 0, 0);
    let (mut n_unread, mut n_defaults) = (0, 0);
    let mut differences = Vec::new();
    for definition in &definitions {
        let response = post(&client, &format!("{CRDS}?dryRun=All"), definition).await;
        if ![201, 422].contains(&response.status) {
            // The API server rejects a malformed definition before it validates the rules.
            n_unread += 1;
            continue;
        }
        let theirs = causes(&response);
        n_defaults += usize::from(theirs.iter().any(|cause| cause.field.contains(".default")));
        let theirs: Vec<Cause> = theirs
            .into_iter()
            .filter(is_about_rules)
            .filter(is_deterministic)
            .collect();
        let verdict = validate_definition(definition, KubernetesVersion::DEFAULT);
        let ours = verdict
            .errors
            .iter()
            .map(|found| Cause::from_error(&found.error));
        let mut ours: Vec<Cause> = ours
            .map(|cause| Cause {
                message: without_time(&cause.message),
                ..cause
            })
            .filter(is_deterministic)
            .collect();
        ours.sort();
        n_compared += 1;
        n_refused += usize::from(!theirs.is_empty());
        n_errors += theirs.len();
        if ours != theirs {
            let name = &definition["metadata"]["name"];
            differences.push(format!(
                "{name}\n  here:  {}\n  there: {}",
                json!(ours),
                json!(theirs)
            ));
        }
    }
    println!(
        "{n_compared} definitions compared, seed {seed} ({n_corpus} of the corpus, {n_mutants} changed): {n_refused} refused \
         for their rules with {n_errors} errors, {n_defaults} also for defaults, {} different; {n_unread} are no definitions",
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(n_compared >= 40 && n_refused > 0);
}

/// Returns a definition whose schema contains `property`.
fn with_property(property: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "disks.schemas.example.com"},
        "spec": {
            "group": "schemas.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Disk", "plural": "disks"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"a": property}}},
            }}}],
        },
    })
}

/// Some schemas contain common mistakes, and some contain no mistakes. This project and the API server report the same
/// errors.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_have_the_errors_of_the_api_server() {
    let string = json!({"type": "string"});
    let schemas = [
        string.clone(),
        json!({"type": "object", "additionalProperties": true, "properties": {"b": string}}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "string", "pattern": "^[a-z]+$", "format": "hostname", "maxLength": 3}),
        json!({"type": "array", "items": string, "uniqueItems": false}),
        json!({"type": "object", "properties": {"b": string}, "oneOf": [{"required": ["b"]}]}),
        json!({}),
        json!({"type": "strng"}),
        json!({"type": "string", "maxLenght": 3}),
        json!({"type": "object", "requird": ["b"], "properties": {"b": string}}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {}}),
        json!({"type": "array", "items": string, "uniqueItems": true}),
        json!({"type": "object", "$ref": "#/definitions/a"}),
        json!({"type": "object", "id": "a"}),
        json!({"type": "object", "definitions": {"a": string}}),
        json!({"type": "object", "dependencies": {"a": ["b"]}}),
        json!({"type": "object", "patternProperties": {"a": string}}),
        json!({"type": "array", "items": string, "additionalItems": string}),
        json!({"type": "object", "properties": {"b": string}, "additionalProperties": string}),
        json!({"type": "string", "pattern": "(?=x)a["}),
        json!({"type": "string", "pattern": "a{1001}"}),
        json!({"type": "object", "properties": {"b": {}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"b": string}, "oneOf": [{"properties": {"b": string}}]}),
        json!({"type": "object", "properties": {"b": string}, "oneOf": [{"properties": {"c": {"minLength": 1}}}]}),
        json!({"type": "string", "not": {"type": "integer"}}),
        json!({"type": "string", "nullable": true, "x-kubernetes-embedded-resource": true}),
    ];
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let (mut n_refused, mut differences) = (0, Vec::new());
    for schema in &schemas {
        let definition = with_property(schema);
        let path = format!("{CRDS}?dryRun=All&fieldValidation=Strict");
        let response = post(&client, &path, &definition).await;
        let theirs = causes(&response);
        let said = response.body["message"].as_str().unwrap_or_default();
        let ours = schema_errors(&definition);
        n_refused += usize::from(response.status != 201);
        let is_told = |found: &DefinitionError| {
            if matches!(found.cause, DefinitionCause::UnknownKeyword) {
                let field = found
                    .error
                    .field
                    .replace("[spec]", ".spec")
                    .replace("[a]", ".a");
                return response.status == 400
                    && said.contains(&format!("unknown field \"{field}\""));
            }
            if found
                .error
                .detail
                .starts_with("the schema is not structural")
            {
                return response.status == 422;
            }
            let mut cause = Cause::from_error(&found.error);
            cause.field = cause.field.replace("versions[0].schema", "validation");
            theirs.contains(&cause)
        };
        if ours.is_empty() != (response.status == 201) || !ours.iter().all(is_told) {
            let ours: Vec<String> = ours.iter().map(|found| found.error.to_string()).collect();
            differences.push(format!(
                "{schema}\n  here:  {ours:?}\n  there: {} {said}",
                response.status
            ));
        }
    }
    println!(
        "{} schemas, {n_refused} rejected, {} different",
        schemas.len(),
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(n_refused >= 20);
}

/// Changes the metadata so that the object passes the checks that precede validation. Returns false if this is
/// impossible.
fn sendable(object: &mut Value, name: &str, stored: Option<&Value>) -> bool {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return false;
    };
    for field in [
        "managedFields",
        "creationTimestamp",
        "generation",
        "generateName",
    ] {
        metadata.remove(field);
    }
    for field in ["uid", "resourceVersion"] {
        match stored {
            Some(stored) => metadata.insert(field.to_owned(), stored["metadata"][field].clone()),
            None => metadata.remove(field),
        };
    }
    let is_named = metadata.get("name").is_some_and(|name| name == "made");
    if is_named || stored.is_some() {
        metadata.insert("name".to_owned(), json!(name));
    }
    true
}

#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
}

impl Tally {
    fn add(
        &mut self,
        validator: &Validator,
        object: &Value,
        before: Option<&Value>,
        response: &Response,
    ) {
        let ours = validator.validate(object, before, "default");
        let (how, is_same) = match (ours, response.status) {
            (Ok(verdict), 200 | 201) => ("taken", verdict.errors.is_empty()),
            (Ok(verdict), 422) => {
                let mut ours: Vec<Cause> = verdict.errors.iter().map(Cause::from_error).collect();
                ours.sort();
                let theirs = causes(response);
                *self.counts.entry("causes").or_default() += theirs.len();
                ("refused", ours == theirs)
            }
            (Err(Error::Undecodable(why)), 400) => (
                "not read",
                response.message().ends_with(&why) || why.contains("parsing time "),
            ),
            _ => ("another answer", false),
        };
        *self.counts.entry(how).or_default() += 1;
        if before.is_some() {
            *self.counts.entry("updates").or_default() += 1;
        }
        if !is_same {
            let ours = match validator.validate(object, before, "default") {
                Ok(verdict) => json!(
                    verdict
                        .errors
                        .iter()
                        .map(Cause::from_error)
                        .collect::<Vec<_>>()
                ),
                Err(error) => json!(error.to_string()),
            };
            let theirs = json!(causes(response));
            self.differences.push(format!(
                "{object}\n  before {before:?}\n  here:  {ours}\n  there: {} {} {theirs}",
                response.status,
                response.message()
            ));
        }
    }
}

async fn ask(
    client: &Client,
    target: &Target,
    validator: &Validator,
    n: u64,
    request: &Value,
    tally: &mut Tally,
) {
    let name = format!("made-{n}");
    let mut object = request["object"].clone();
    let is_of_kind = |object: &Value| {
        object["apiVersion"] == target.gvk.api_version() && object["kind"] == *target.gvk.kind
    };
    if !is_of_kind(&object) {
        return;
    }
    let mut before = request.get("old").cloned();
    if let Some(before) = &mut before {
        if !sendable(before, &name, None) {
            return;
        }
        let response = post(client, &target.path, before).await;
        tally.add(validator, before, None, &response);
        let at = format!("{}/{name}", target.path);
        let is_stored = response.status == 201 && response.body["metadata"]["name"] == name;
        if !is_stored || !sendable(&mut object, &name, Some(&response.body)) {
            return;
        }
        let stored = response.body;
        let response = send(client, "PUT", &format!("{at}?dryRun=All"), &object).await;
        tally.add(validator, &object, Some(&stored), &response);
    } else if sendable(&mut object, &name, None) {
        let response = post(client, &format!("{}?dryRun=All", target.path), &object).await;
        tally.add(validator, &object, None, &response);
    }
}

/// This project and the API server accept the same custom resources. They reject the others for the same causes.
#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_have_the_errors_of_the_api_server() {
    let seed = from_environment("VAP_CUSTOM_RESOURCES_SEED", 1).unwrap();
    let count = from_environment("VAP_CUSTOM_RESOURCES", 300).unwrap();
    let control_plane = control_plane().await.unwrap();
    let client = control_plane.client().await.unwrap();
    let mut definitions = corpus_definitions();
    definitions.extend(custom_resources::definitions(seed, 60));
    let n_corpus = corpus_definitions().len();
    let mut n_of_corpus = 0;
    let mut created = Vec::new();
    for (n, mut definition) in definitions.into_iter().enumerate() {
        // There is no conversion webhook in this test.
        definition["spec"]
            .as_object_mut()
            .unwrap()
            .remove("conversion");
        let response = post(&client, CRDS, &definition).await;
        if response.status == 201 {
            n_of_corpus += usize::from(n < n_corpus);
            created.push(definition);
        }
    }
    let n_created = u64::try_from(created.len()).unwrap();
    assert!(n_created >= 10, "only {n_created} definitions are accepted");
    let mut tally = Tally::default();
    let mut n = 0;
    for definition in &created {
        for version in definition["spec"]["versions"].as_array().unwrap() {
            if version["served"] != json!(true) {
                continue;
            }
            let name = version["name"].as_str().unwrap();
            let Ok(validator) = Validator::new(definition, name, KubernetesVersion::DEFAULT) else {
                continue;
            };
            let spec = &definition["spec"];
            let text = |pointer: &str| spec.pointer(pointer).unwrap().as_str().unwrap();
            let gvk = Gvk::new(text("/group"), name, text("/names/kind"));
            let target = target_of(gvk, text("/names/plural"), text("/scope") == "Namespaced");
            served(&client, &target.path).await;
            for _ in 0..count.div_ceil(n_created) {
                n += 1;
                let request = custom_resources::request(seed, n, definition, version);
                ask(&client, &target, &validator, n, &request, &mut tally).await;
            }
        }
    }
    println!(
        "requests for custom resources of {n_created} definitions ({n_of_corpus} of the corpus' {n_corpus}), seed {seed}: \
         {:?}, {} different",
        tally.counts,
        tally.differences.len()
    );
    assert!(
        tally.differences.is_empty(),
        "{}",
        tally.differences.join("\n")
    );
    let of = |how| tally.counts.get(how).copied().unwrap_or_default();
    assert!(
        of("taken") > 0 && of("refused") > 0 && of("updates") > 0,
        "{:?}",
        tally.counts
    );
}
