//! Checks manifests in tests.

use std::path::PathBuf;

use serde_json::{Value, json};
use vap_status_controller::cli::check::report::CheckReport;
use vap_status_controller::cli::check::{self, Options};

/// Checks `manifest`. `crds` are files of CRDs.
pub(crate) fn report(manifest: &str, crds: &[PathBuf]) -> CheckReport {
    let options = Options {
        paths: vec![PathBuf::from("-")],
        crds: crds.to_vec(),
        ..Options::default()
    };
    check::run(&options, &mut manifest.as_bytes()).unwrap()
}

/// Checks `manifest` and returns the findings as JSON. `crds` are files of CRDs.
pub(crate) fn findings(manifest: &str, crds: &[PathBuf]) -> Vec<Value> {
    let report = serde_json::to_value(report(manifest, crds)).unwrap();
    let findings = report.get("findings").and_then(Value::as_array);
    findings.unwrap().clone()
}

/// Returns a CRD of the kind `Lim` in `ex.io/v1`. `fields` are the required fields of its spec.
pub(crate) fn crd(fields: &Value) -> Value {
    let required: Vec<&String> = fields.as_object().unwrap().keys().collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lims.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "lims", "singular": "lim", "kind": "Lim", "listKind": "LimList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": {"type": "object", "required": required, "properties": fields}},
            }}}],
        },
    })
}
