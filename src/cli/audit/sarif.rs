//! Formats the violations and failures of an audit as SARIF 2.1.0. A result has the location of its object.
//!
//! Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".

use serde_json::{Map, Value, json};

use super::decide::{ObjectId, ObjectResult, PolicyResult};
use super::report::AuditReport;
use crate::cli::check::annotations::{MAX_RESULTS, sarif_document, uri};

/// The collected results.
#[derive(Debug, Default)]
pub(super) struct Results {
    values: Vec<Value>,
    n_left_out: usize,
}

impl Results {
    /// Adds the violations and failures of an object, up to the maximum number of results.
    pub(super) fn add(&mut self, object: &ObjectResult) {
        let Ok(results) = &object.results else {
            return;
        };
        for result in results {
            let violations = result.violations.iter().map(|violation| {
                let level = if violation.is_denied() {
                    "error"
                } else {
                    "warning"
                };
                (level, &violation.field_ref, &violation.message)
            });
            let errors = result.errors.iter();
            let errors = errors.map(|failure| ("error", &failure.field_ref, &failure.message));
            let mut added: Vec<(&str, &str)> = Vec::new();
            for (level, field_ref, message) in violations.chain(errors) {
                // If a validation is false for several bindings or params with the same message, there is only one
                // result.
                if added.contains(&(field_ref, message)) {
                    continue;
                }
                added.push((field_ref, message));
                if self.values.len() < MAX_RESULTS {
                    let value = sarif_result(&object.id, result, (level, field_ref, message));
                    self.values.push(value);
                } else {
                    self.n_left_out += 1;
                }
            }
        }
    }

    /// Returns the SARIF document with the policies of `report` as its rules.
    pub(super) fn document(self, report: &AuditReport) -> Value {
        let rules = report.policies.iter().map(|policy| {
            let noun = policy.kind.unwrap_or("ValidatingAdmissionPolicy");
            let id = match policy.kind {
                Some(kind) => format!("{kind}/{}", policy.name),
                None => policy.name.clone(),
            };
            let text = format!(
                "{noun} `{}` in {}:{}",
                policy.name, policy.file, policy.line
            );
            json!({"id": id, "shortDescription": {"text": text}})
        });
        let mut notifications = Vec::new();
        let mut notify = |text: String| {
            notifications.push(json!({"level": "warning", "message": {"text": text}}));
        };
        if self.n_left_out > 0 {
            let n = self.n_left_out;
            notify(format!(
                "{n} results are left out: GitHub stores {MAX_RESULTS} per file"
            ));
        }
        let n_unread = report.summary.unread;
        if n_unread > 0 {
            notify(format!("{n_unread} objects could not be read or evaluated"));
        }
        let is_complete = report.summary.errors == 0 && n_unread == 0;
        let mut invocation = json!({"executionSuccessful": is_complete});
        if let (false, Value::Object(fields)) = (notifications.is_empty(), &mut invocation) {
            let name = "toolExecutionNotifications".to_owned();
            fields.insert(name, notifications.into());
        }
        let rules: Vec<Value> = rules.collect();
        sarif_document(&rules, &invocation, &self.values)
    }
}

fn sarif_result(
    id: &ObjectId,
    result: &PolicyResult,
    (level, field_ref, message): (&str, &str, &str),
) -> Value {
    let name = id.display_name();
    let mut location = Map::new();
    if let Some(file) = &id.file {
        let mut physical = json!({"artifactLocation": {"uri": uri(file)}});
        if let (Some(line), Value::Object(fields)) = (id.line, &mut physical) {
            fields.insert("region".to_owned(), json!({"startLine": line}));
        }
        location.insert("physicalLocation".to_owned(), physical);
    }
    let logical = json!([{"fullyQualifiedName": name, "kind": "object"}]);
    location.insert("logicalLocations".to_owned(), logical);
    json!({
        "ruleId": result.policy,
        "level": level,
        "message": {"text": format!("{name}: {field_ref}: {message}")},
        "locations": [location],
    })
}
