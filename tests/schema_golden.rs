//! Declared types of whole clusters, kind by kind, against those that upstream makes of the same
//! documents (`oracle decl --summary`, recipes in the first lines of `tests/golden/schema`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says so when it has nothing to test"
)]

mod support;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver, SchemaSet};
use vap_status_controller::schema::{Crd, DeclKind, DeclType, GroupVersion, Gvk};

/// A line of a golden file.
#[derive(Deserialize)]
struct Expected {
    group: String,
    version: String,
    kind: String,
    types: usize,
    digest: String,
}

/// Writes the exposed types below `type_`, one a line, as `oracle decl` digests them.
fn write_lines(lines: &mut Vec<String>, path: &str, type_: &Arc<DeclType>, required: bool) {
    let name = match &type_.kind {
        DeclKind::Bool => "bool",
        DeclKind::Int => "int",
        DeclKind::Double => "double",
        DeclKind::String => "string",
        DeclKind::Bytes => "bytes",
        DeclKind::Duration => "duration",
        DeclKind::Timestamp => "timestamp",
        DeclKind::IntOrString => "dyn",
        DeclKind::List(_) => "list",
        DeclKind::Map(_) => "map",
        DeclKind::Object(_) => "object",
        other => panic!("{path}: {other:?}"),
    };
    let (max, min) = (type_.max_elements, type_.min_serialized_size);
    lines.push(format!("{path}\t{name}\t{max}\t{min}\t{required}\n"));
    for field in type_.declared_fields() {
        if field.type_.is_exposed() {
            write_lines(
                lines,
                &format!("{path}.{}", field.name),
                &field.type_,
                field.required,
            );
        }
    }
    match &type_.kind {
        DeclKind::List(elem) => write_lines(lines, &format!("{path}[0]"), elem, false),
        DeclKind::Map(value) => write_lines(lines, &format!("{path}['']"), value, false),
        _ => {}
    }
}

/// The 64-bit FNV-1a hash.
fn fnv1a(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Compares all kinds of the golden file `name`, and gives their number.
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
        let mut lines = Vec::new();
        if type_.is_exposed() {
            write_lines(&mut lines, "", &type_, false);
        }
        let digest = format!("{:016x}", fnv1a(&lines));
        if lines.len() != expected.types || digest != expected.digest {
            let n = lines.len();
            writeln!(differences, "{gvk}: {n} types {digest}, upstream {line}").unwrap();
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
    compared
}

#[test]
fn built_in_kinds() {
    let Some(directory) = support::openapi_dir() else {
        return;
    };
    let mut offline = Offline::default();
    for (name, bytes) in support::documents(&directory) {
        let own = GroupVersion::from_openapi_file_name(&name);
        offline.add_document(own.as_ref(), &bytes).unwrap();
    }
    let (schemas, mapper) = offline.finish();
    assert_eq!(compare("built-in.jsonl", &schemas, &[]), 259);
    assert_eq!(schemas.kinds().count(), 259);
    // Only what a connection takes has no schema: `pods/exec`, `services/proxy`.
    for served in &mapper.resources {
        let is_found = matches!(schemas.resolve(&served.gvk), Resolution::Found(_));
        let is_connection = served.gvr.is_subresource() && served.gvk.kind.ends_with("Options");
        assert_eq!(is_found, !is_connection, "{}: {}", served.gvr, served.gvk);
    }
}

/// The types of all CustomResourceDefinitions in a directory and those below it.
fn crds(directory: &Path) -> SchemaSet {
    let mut offline = Offline::default();
    for path in support::files(directory) {
        let text = std::fs::read_to_string(&path).unwrap();
        for document in serde_norway::Deserializer::from_str(&text) {
            let value = Value::deserialize(document).unwrap();
            if value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
                offline.add_crd(&Crd::from_value(&value).unwrap());
            }
        }
    }
    offline.finish().0
}

#[test]
fn custom_resources() {
    let schemas = crds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/oracle/testdata/crds"));
    // The oracle reads YAML 1.1, where the property `n` of this kind is called `false`.
    let compared = compare("crds.jsonl", &schemas, &["NumKind7", "NumKind7List"]);
    assert_eq!(compared, 26);
}

#[test]
fn custom_resources_of_the_corpus() {
    let Some(corpus) = support::corpus_dir() else {
        return;
    };
    assert_eq!(
        compare("corpus.jsonl", &crds(&corpus.join("crds")), &[]),
        306
    );
}
