//! Tests the JSON Schemas of `-o json`. The files must be up to date, and recorded output must be valid.
//!
//! `VAP_UPDATE=1 cargo test --test slow report_schemas` regenerates the schemas.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::{Value, json};

use crate::cli_commands::vap;
use crate::golden;
use crate::json_schema::errors;
use vap_status_controller::cli::report_schema;

#[test]
fn documented_schemas_match_types() {
    for (path, schema) in [
        (
            "docs/check-report.schema.json",
            report_schema::check_schema(),
        ),
        ("docs/test-report.schema.json", report_schema::test_schema()),
        (
            "docs/upgrade-report.schema.json",
            report_schema::upgrade_schema(),
        ),
    ] {
        let text = serde_json::to_string_pretty(&schema).unwrap();
        golden::compare(path, &(text + "\n"));
    }
}

#[track_caller]
fn check(schema: &Value, what: &str, printed: &Value) {
    let findings = errors(schema, printed, true);
    assert!(findings.is_empty(), "{what}: {findings:#?}");
}

#[test]
fn recorded_reports_are_valid() {
    for (path, schema) in [
        (
            "tests/cli_check/bindings.json",
            report_schema::check_schema(),
        ),
        ("tests/cli_test/files.json", report_schema::test_schema()),
    ] {
        let text = std::fs::read_to_string(path).unwrap();
        check(&schema, path, &serde_json::from_str(&text).unwrap());
    }
}

#[test]
fn reports_of_all_commands_match_schemas() {
    let schema = report_schema::check_schema();
    let checks: [&[&str]; 4] = [
        &["check", "tests/cli_check", "-o", "json"],
        &["check", "tests/cli_check", "-o", "json", "--allow", "all"],
        &["check", "config/samples", "docs/examples", "-o", "json"],
        &["check", "missing.yaml", "-o", "json"],
    ];
    for arguments in checks {
        check(&schema, &arguments.join(" "), &vap(arguments, "").json());
    }
    let schema = report_schema::test_schema();
    let tests: [&[&str]; 5] = [
        &[
            "test",
            "tests/cli_test/definitions.yaml",
            "tests/cli_test/webhooks.yaml",
            "-o",
            "json",
        ],
        &[
            "test",
            "tests/cli_test/definition_traces.yaml",
            "-o",
            "json",
        ],
        &[
            "test",
            "tests/cli_test/mutating.yaml",
            "tests/cli_test/traps.yaml",
            "-o",
            "json",
        ],
        &[
            "test",
            "config/samples",
            "-o",
            "json",
            "--coverage",
            "--mutants",
        ],
        &["test", "tests/cli_test/invalid.yaml", "-o", "json"],
    ];
    for arguments in tests {
        check(&schema, &arguments.join(" "), &vap(arguments, "").json());
    }
}

/// Invalid reports must violate the schemas. Otherwise valid reports would prove nothing.
#[test]
fn invalid_reports_violate_schemas() {
    let schema = report_schema::test_schema();
    let sound: Value =
        serde_json::from_str(&std::fs::read_to_string("tests/cli_test/files.json").unwrap())
            .unwrap();
    let changes = [
        ("/summary/cases", json!("1")),
        ("/kind", json!("CheckReport")),
        ("/summary", json!({})),
        ("/probes/0/cases/0/outcome", json!("Undecided")),
        (
            "/probes/0/cases/0",
            json!({"name": "a", "outcome": "Passed", "line": 1, "other": 1}),
        ),
    ];
    for (place, value) in changes {
        let mut changed = sound.clone();
        *changed.pointer_mut(place).unwrap() = value;
        assert!(!errors(&schema, &changed, true).is_empty(), "{place}");
    }
}
