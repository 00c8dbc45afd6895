//! Validates `kubectl vap check -o sarif` against the official JSON Schema of SARIF 2.1.0. A Go module contains the
//! schema.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

#[path = "../../tests/support/json_schema.rs"]
mod json_schema;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, Options, annotations};

/// The Go module with the schema, and the file of the schema.
const MODULE: &str = "github.com/securego/gosec/v2";
const FILE: &str = "report/sarif/testdata/sarif-schema-2.1.0.json";

/// Returns the schema. `e2e/sarif/go.mod` sets its version. If necessary, Go downloads the module.
fn schema() -> Value {
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("sarif"))
        .env("GOWORK", "off")
        .output()
        .unwrap();
    let download: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let folder = download["Dir"]
        .as_str()
        .unwrap_or_else(|| panic!("{download}"));
    let text = std::fs::read_to_string(Path::new(folder).join(FILE)).unwrap();
    let mut schema = serde_json::from_str(&text).unwrap();
    decoded(&mut schema);
    schema
}

/// Decodes percent escapes in the references of the schema.
fn decoded(schema: &mut Value) {
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(decoded),
        Value::Array(items) => items.iter_mut().for_each(decoded),
        Value::String(text) if text.starts_with("#/") => *text = text.replace("%24", "$"),
        _ => {}
    }
}

fn sarif(paths: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let options = Options {
        paths: paths
            .iter()
            .map(|path| root.join(path))
            .collect::<Vec<PathBuf>>(),
        ..Options::default()
    };
    annotations::sarif(&check::run(&options, &mut io::empty()).unwrap())
}

#[test]
fn sarif_report_is_valid_against_the_official_schema() {
    let schema = schema();
    let mut n_results = 0;
    for paths in [
        &["tests/cli_check"][..],
        &["config/samples", "docs/examples"],
        &["parity/policies"],
        &["missing.yaml"],
    ] {
        let sarif = sarif(paths);
        let violations = json_schema::errors(&schema, &sarif, true);
        assert!(violations.is_empty(), "{paths:?}: {violations:#?}");
        n_results += sarif["runs"][0]["results"].as_array().unwrap().len();
        for rule in sarif["runs"][0]["tool"]["driver"]["rules"]
            .as_array()
            .unwrap()
        {
            let uri = rule["helpUri"].as_str().unwrap();
            assert!(uri.starts_with("https://"), "{uri}");
        }
    }
    assert!(n_results > 100, "{n_results}");
}

/// The test of valid reports is useful only if an invalid report is detected.
#[test]
fn invalid_sarif_report_violates_schema() {
    let schema = schema();
    let sound = sarif(&["config/samples"]);
    for (place, value) in [
        ("/version", json!("2.0")),
        ("/runs/0/tool/driver/name", json!(1)),
        ("/runs/0/results/0/level", json!("bad")),
        ("/runs/0/results/0/message", json!({})),
        (
            "/runs/0/results/0/locations/0/physicalLocation/region/startLine",
            json!(0),
        ),
        ("/runs/0/columnKind", json!("bytes")),
    ] {
        let mut changed = sound.clone();
        *changed
            .pointer_mut(place)
            .unwrap_or_else(|| panic!("no {place}")) = value;
        assert!(
            !json_schema::errors(&schema, &changed, true).is_empty(),
            "{place}"
        );
    }
}
