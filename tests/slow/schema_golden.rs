//! Compares the types of all kinds of a cluster with upstream's types for the same documents. `oracle decl --summary`
//! writes the golden files in `tests/golden/schema`. Their first lines contain the commands.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../support/declared.rs"]
mod declared;

use std::fmt::Write as _;
use std::path::Path;

use crate::support;
use serde::Deserialize;
use serde_json::Value;
use vap_status_controller::cli::input::values;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use vap_status_controller::schema::{Crd, GroupVersion, Gvk};

/// A kind in a golden file.
#[derive(Deserialize)]
struct Expected {
    group: String,
    version: String,
    kind: String,
    types: usize,
    digest: String,
}

/// Compares the kinds in the golden file `name`, except those in `but`. Returns the number of compared kinds.
fn compare(name: &str, schemas: &SchemaSet, but: &[&str]) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/schema")
        .join(name);
    let golden = std::fs::read_to_string(&path).unwrap();
    let mut differences = String::new();
    let mut compared = 0;
    for line in golden.lines().skip(1) {
        let expected: Expected = serde_json::from_str(line).unwrap();
        if but.contains(&&*expected.kind) {
            continue;
        }
        compared += 1;
        let gvk = Gvk::new(expected.group, expected.version, expected.kind);
        let Resolution::Found(type_) = schemas.resolve(&gvk) else {
            writeln!(differences, "{gvk}: not found").unwrap();
            continue;
        };
        let (n, digest) = declared::summary(&type_);
        if n != expected.types || digest != expected.digest {
            writeln!(differences, "{gvk}: {n} types {digest}, upstream {line}").unwrap();
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
    compared
}

#[test]
fn types_of_built_in_kinds_match_upstream() {
    let directory = support::openapi_dir();
    let mut offline = Offline::default();
    for (name, bytes) in support::documents(&directory) {
        let own = GroupVersion::from_openapi_file_name(&name);
        offline.add_document(own.as_ref(), &bytes).unwrap();
    }
    let (schemas, mapper) = offline.finish();
    assert_eq!(compare("built-in.jsonl", &schemas, &[]), 259);
    assert_eq!(schemas.kinds().count(), 259);
    // Only the subresources of CONNECT requests, such as `pods/exec` and `services/proxy`, have no schema.
    for served in &mapper.resources {
        let is_found = matches!(schemas.resolve(&served.gvk), Resolution::Found(_));
        let is_connection = served.gvr.is_subresource() && served.gvk.kind.ends_with("Options");
        assert_eq!(is_found, !is_connection, "{}: {}", served.gvr, served.gvk);
    }
}

fn crds(directory: &Path) -> SchemaSet {
    let mut offline = Offline::default();
    for path in support::files(directory) {
        let text = std::fs::read_to_string(&path).unwrap();
        for value in values(&text) {
            let value = value.unwrap();
            if value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
                offline.add_crd(&Crd::from_value(&value).unwrap());
            }
        }
    }
    offline.finish().0
}

#[test]
fn types_of_custom_resources_match_upstream() {
    let schemas = crds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/oracle/testdata/crds"));
    // The oracle parses YAML 1.1. It therefore reads the field name `n` of this kind as the boolean false.
    let compared = compare("crds.jsonl", &schemas, &["NumKind7", "NumKind7List"]);
    assert_eq!(compared, 26);
}
