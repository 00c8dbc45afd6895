//! Formats the results of one object as a report of the Policy Working Group or of `openreports.io`.
//!
//! Each report has one object as its scope. It counts only its own results, so the counts of all reports add up to the
//! number of results.
//!
//! Source: the CustomResourceDefinitions `policyreports.wgpolicyk8s.io` (v1alpha2) and `reports.openreports.io`
//! (v1alpha1).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::decide::{ObjectId, ObjectResult, PolicyResult};
use crate::cli::check::fingerprint::Hash;

/// The label that marks the reports, so that old ones can be selected and deleted.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The value of `source` in each result: the engine that produced it.
const SOURCE: &str = "kubectl-vap";

/// The API group and version of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportApi {
    /// `wgpolicyk8s.io/v1alpha2`.
    PolicyReport,
    /// `openreports.io/v1alpha1`.
    OpenReports,
}

impl ReportApi {
    fn type_meta(self, is_namespaced: bool) -> (&'static str, &'static str) {
        match (self, is_namespaced) {
            (Self::PolicyReport, true) => ("wgpolicyk8s.io/v1alpha2", "PolicyReport"),
            (Self::PolicyReport, false) => ("wgpolicyk8s.io/v1alpha2", "ClusterPolicyReport"),
            (Self::OpenReports, true) => ("openreports.io/v1alpha1", "Report"),
            (Self::OpenReports, false) => ("openreports.io/v1alpha1", "ClusterReport"),
        }
    }
}

/// The outcomes of a result, in the order of the counts.
const OUTCOMES: [&str; 5] = ["pass", "fail", "warn", "error", "skip"];

/// Returns the report of an object. `None` if no policy matches the object, or if the object could not be read.
pub(super) fn report(object: &ObjectResult, api: ReportApi) -> Option<Value> {
    let results = object.results.as_ref().ok()?;
    let results: Vec<Value> = results.iter().flat_map(entries).collect();
    if results.is_empty() {
        return None;
    }
    let count = |outcome: &str| {
        let of_outcome = results.iter().filter(|it| it["result"] == outcome);
        (outcome.to_owned(), Value::from(of_outcome.count()))
    };
    let summary: Map<String, Value> = OUTCOMES.into_iter().map(count).collect();
    let namespace = object.namespace.as_str();
    let (api_version, kind) = api.type_meta(!namespace.is_empty());
    let mut metadata = json!({
        "name": name(&object.id, namespace),
        "labels": {MANAGED_BY: SOURCE},
    });
    let mut scope = json!({
        "apiVersion": object.id.api_version,
        "kind": object.id.kind,
        "name": object.id.name,
    });
    if !namespace.is_empty() {
        for object in [&mut metadata, &mut scope] {
            if let Value::Object(fields) = object {
                fields.insert("namespace".to_owned(), namespace.into());
            }
        }
    }
    Some(json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "scope": scope,
        "summary": summary,
        "results": results,
    }))
}

/// Returns the name of an object's report, which is the same in each audit.
fn name(id: &ObjectId, namespace: &str) -> String {
    let mut hash = Hash::default();
    for part in [&id.api_version, &id.kind, namespace, &id.name] {
        hash.add(part);
    }
    format!("kubectl-vap-{:016x}", hash.0)
}

/// Returns one result for each violation and each distinct failure. If there are none, returns one result for the
/// policy.
fn entries(result: &PolicyResult) -> Vec<Value> {
    let entry = |outcome: &str, rule: Option<&str>, message: String, mut properties: Value| {
        let mut entry = Map::new();
        entry.insert("source".to_owned(), SOURCE.into());
        entry.insert("policy".to_owned(), result.policy.as_str().into());
        if let Some(rule) = rule {
            entry.insert("rule".to_owned(), rule.into());
        }
        if !message.is_empty() {
            entry.insert("message".to_owned(), message.into());
        }
        entry.insert("result".to_owned(), outcome.into());
        entry.insert("scored".to_owned(), true.into());
        if let Value::Object(fields) = &mut properties {
            fields.insert("operation".to_owned(), result.operation.into());
            fields.retain(|_, value| !value.is_null());
        }
        entry.insert("properties".to_owned(), properties);
        Value::Object(entry)
    };
    if let Some(reason) = &result.undecided {
        let message = format!("not evaluated: {reason}");
        return vec![entry("error", None, message, json!({}))];
    }
    let mut entries = Vec::new();
    for violation in &result.violations {
        let properties = json!({
            "binding": violation.binding,
            "params": violation.params,
            "reason": violation.reason,
            "validationActions": violation.validation_actions.join(","),
        });
        entries.push(entry(
            if violation.is_denied() {
                "fail"
            } else {
                "warn"
            },
            Some(&violation.field_ref),
            violation.message.clone(),
            properties,
        ));
    }
    // An expression that fails with the same error for several bindings has only one result.
    let failures: BTreeSet<_> = result
        .errors
        .iter()
        .map(|failure| (failure.field_ref.as_str(), failure.message.as_str()))
        .collect();
    for (field_ref, message) in failures {
        entries.push(entry(
            "error",
            Some(field_ref),
            message.to_owned(),
            json!({}),
        ));
    }
    if !entries.is_empty() {
        return entries;
    }
    let (outcome, message) = match (&result.excluded_by, &result.patch) {
        (Some(condition), _) => {
            let message = format!("a match condition excludes the object: {condition}");
            ("skip", message)
        }
        (None, Some(_)) => ("warn", "the policy would change the object".to_owned()),
        (None, None) => ("pass", String::new()),
    };
    vec![entry(outcome, None, message, json!({}))]
}

#[cfg(test)]
mod tests {
    use super::super::decide::{Failure, Violation};
    use super::*;

    fn violation(actions: &[&str]) -> Violation {
        Violation {
            field_ref: "spec.validations[0].expression".to_owned(),
            message: "at most 5 replicas".to_owned(),
            reason: "Invalid".to_owned(),
            binding: Some("everywhere".to_owned()),
            params: None,
            validation_actions: actions.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    fn result() -> PolicyResult {
        PolicyResult {
            policy: "replica-limit".to_owned(),
            index: 0,
            operation: "CREATE",
            denied: false,
            excluded_by: None,
            is_evaluated: true,
            violations: Vec::new(),
            errors: Vec::new(),
            undecided: None,
            patch: None,
            change: None,
            cost_used: 0,
            audit_annotations: std::collections::BTreeMap::default(),
            warnings: Vec::new(),
            denial: None,
            mutation: None,
        }
    }

    fn object(namespace: &str, results: Vec<PolicyResult>) -> ObjectResult {
        ObjectResult {
            id: ObjectId {
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
                name: "web".to_owned(),
                ..ObjectId::default()
            },
            namespace: namespace.to_owned(),
            results: Ok(results),
        }
    }

    #[test]
    fn report_counts_its_results() {
        let results = vec![
            result(),
            PolicyResult {
                violations: vec![violation(&["Deny"]), violation(&["Warn", "Audit"])],
                errors: vec![Failure {
                    field_ref: "spec.validations[1].expression".to_owned(),
                    message: "no such key: a".to_owned(),
                }],
                ..result()
            },
            PolicyResult {
                excluded_by: Some("not-kube-system".to_owned()),
                ..result()
            },
            PolicyResult {
                undecided: Some("its defaults are unknown".to_owned()),
                ..result()
            },
            PolicyResult {
                patch: Some(Vec::new()),
                ..result()
            },
        ];
        let report = report(&object("shop", results), ReportApi::PolicyReport).unwrap();
        let summary = json!({"pass": 1, "fail": 1, "warn": 2, "error": 2, "skip": 1});
        assert_eq!(report["summary"], summary);
        assert_eq!(report["results"].as_array().unwrap().len(), 7);
        assert_eq!(
            report["results"][1],
            json!({
                "source": "kubectl-vap",
                "policy": "replica-limit",
                "rule": "spec.validations[0].expression",
                "message": "at most 5 replicas",
                "result": "fail",
                "scored": true,
                "properties": {
                    "binding": "everywhere",
                    "reason": "Invalid",
                    "validationActions": "Deny",
                    "operation": "CREATE",
                },
            })
        );
    }

    #[test]
    fn kind_of_report_depends_on_namespace() {
        let kind = |namespace: &str, api| {
            let report = report(&object(namespace, vec![result()]), api).unwrap();
            let namespaces = [
                report.pointer("/metadata/namespace").cloned(),
                report.pointer("/scope/namespace").cloned(),
            ];
            (report["kind"].as_str().unwrap().to_owned(), namespaces)
        };
        let shop = || [Some(json!("shop")), Some(json!("shop"))];
        assert_eq!(
            kind("shop", ReportApi::PolicyReport),
            ("PolicyReport".to_owned(), shop())
        );
        assert_eq!(
            kind("", ReportApi::PolicyReport),
            ("ClusterPolicyReport".to_owned(), [None, None])
        );
        assert_eq!(
            kind("shop", ReportApi::OpenReports),
            ("Report".to_owned(), shop())
        );
        assert_eq!(
            kind("", ReportApi::OpenReports),
            ("ClusterReport".to_owned(), [None, None])
        );
    }

    #[test]
    fn object_without_matching_policy_has_no_report() {
        assert_eq!(
            report(&object("shop", Vec::new()), ReportApi::PolicyReport),
            None
        );
    }

    #[test]
    fn names_of_reports_differ_by_object() {
        let id = object("", Vec::new()).id;
        let names: BTreeSet<String> = ["", "a", "b"]
            .into_iter()
            .map(|namespace| name(&id, namespace))
            .collect();
        assert_eq!(names.len(), 3);
    }
}
