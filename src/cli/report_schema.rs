//! Generates JSON Schemas of the output with `-o json` from the Rust types.
//!
//! The schemas are stored in `docs/*-report.schema.json`. They describe the fields that are always present and the types
//! of these fields. The output may have additional fields.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::check::report::CheckReport;
use super::test::report::TestReport;
use super::upgrade::report::UpgradeReport;

/// Returns the schema of `kubectl vap check -o json`.
#[must_use]
pub fn check_schema() -> Value {
    schema::<CheckReport>("CheckReport")
}

/// Returns the schema of `kubectl vap test -o json`.
#[must_use]
pub fn test_schema() -> Value {
    schema::<TestReport>("TestReport")
}

/// Returns the schema of `kubectl vap upgrade-check -o json`.
#[must_use]
pub fn upgrade_schema() -> Value {
    schema::<UpgradeReport>("UpgradeReport")
}

fn schema<T: JsonSchema>(kind: &str) -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    for (name, text) in [("apiVersion", API_VERSION), ("kind", kind)] {
        if let Some(field) = schema.pointer_mut(&format!("/properties/{name}"))
            && let Some(field) = field.as_object_mut()
        {
            field.insert("const".to_owned(), json!(text));
        }
    }
    schema
}

/// Removes the extensions `x-kubernetes-*`, which only API servers interpret.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.starts_with("x-kubernetes-"));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The `apiVersion` of the reports.
const API_VERSION: &str = "cli.vap-status.dev/v1alpha1";
