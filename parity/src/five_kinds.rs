//! Prepares the policies of a corpus for benchmarks: changes their rules so that each policy matches five kinds.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use crate::documents;
use crate::write_line;

/// Prints the policies in `paths` as YAML documents. Their rules are replaced by rules that match five kinds of
/// workloads.
///
/// # Errors
///
/// Returns an error if a file cannot be read.
pub fn print(paths: &[PathBuf], out: &mut dyn Write) -> Result<()> {
    let rule = |group: &str, resources: &[&str]| {
        json!({
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": resources,
        })
    };
    let apps = ["deployments", "statefulsets", "daemonsets", "replicasets"];
    let rules = json!([rule("apps", &apps), rule("batch", &["jobs"])]);
    for document in documents::load_documents(paths)? {
        let Ok(mut policy) = document.value else {
            continue;
        };
        let kind = policy.get("kind").and_then(Value::as_str);
        if kind != Some("ValidatingAdmissionPolicy") {
            continue;
        }
        if let Some(Value::Object(spec)) = policy.get_mut("spec") {
            spec.insert("matchConstraints".into(), json!({"resourceRules": rules}));
            writeln!(out, "---")?;
            write_line(out, &policy)?;
        }
    }
    Ok(())
}
