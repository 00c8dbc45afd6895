//! Converts probes in files to the form of the CRD.
//!
//! Expands the fields that only probes in files have: objects from other files, `AdmissionReview`s, patches, tables and
//! several policies. Derives a missing operation from the objects of the request, and a missing old object of an UPDATE
//! from the object.
//!
//! The result contains the origin of each case in the file. This module does not report violations of the CRD's schema.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use crate::cli::input::{Input, KindFilter};
use crate::probe::validation;
use crate::probe::validation::Violation;

/// The fields of a row of a table.
const ROW: [&str; 4] = ["name", "request", "patch", "expect"];

/// The maximum number of cases of an expanded probe.
const MAX_CASES: usize = 2_000;

/// The maximum depth of a patch.
const MAX_DEPTH: usize = 128;

/// A probe in the form of the CRD.
#[derive(Clone, Debug)]
pub(super) struct ExpandedProbe {
    /// The probe. It may have more cases than a probe in a cluster.
    pub(super) probe: Json,
    /// The origin of each case.
    pub(super) origins: Vec<Origin>,
}

/// The origin of an expanded case: a case in the file, or a row of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Origin {
    pub(in crate::cli) case: usize,
    pub(in crate::cli) row: Option<usize>,
}

impl Origin {
    /// Returns the path of the case, such as `spec.cases[0]`.
    pub(in crate::cli) fn case_field(self) -> String {
        format!("spec.cases[{}]", self.case)
    }

    /// Returns the path of the row, such as `spec.cases[0].rows[1]`, or of the case if it has no table.
    pub(in crate::cli) fn field(self) -> String {
        match self.row {
            Some(row) => format!("{}.rows[{row}]", self.case_field()),
            None => self.case_field(),
        }
    }
}

/// Expands a probe. File names in the probe are relative to the directory of `file`.
///
/// Returns the probe without the cases that cannot be expanded, and a violation for each field that cannot be expanded.
pub(super) fn expand(probe: &Json, file: &str) -> (Vec<ExpandedProbe>, Vec<Violation>) {
    let mut expander = Expander {
        folder: Path::new(file).parent().map(Path::to_owned),
        violations: Vec::new(),
    };
    let expanded = expander.probe(probe);
    (expanded, expander.violations)
}

struct Expander {
    folder: Option<PathBuf>,
    violations: Vec<Violation>,
}

impl Expander {
    fn add_violation(&mut self, field: &str, message: impl Into<String>) {
        self.violations.push(Violation {
            field_ref: field.to_owned(),
            message: message.into(),
        });
    }

    fn probe(&mut self, probe: &Json) -> Vec<ExpandedProbe> {
        let mut probe = probe.clone();
        let mut origins = Vec::new();
        let spec = probe.get_mut("spec").and_then(Json::as_object_mut);
        let Some(spec) = spec else {
            return vec![ExpandedProbe { probe, origins }];
        };
        if let Some(Json::Array(cases)) = spec.get("cases") {
            let mut expanded = Vec::new();
            for (n, case) in cases.clone().iter().enumerate() {
                let n_violations = self.violations.len();
                let rows = self.case(case, &format!("spec.cases[{n}]"));
                if self.violations.len() > n_violations {
                    continue;
                }
                for (case, row) in rows {
                    expanded.push(case);
                    origins.push(Origin { case: n, row });
                }
                if expanded.len() > MAX_CASES {
                    let message = format!("has more than {MAX_CASES} cases");
                    self.add_violation("spec.cases", message);
                    return Vec::new();
                }
            }
            spec.insert("cases".to_owned(), Json::Array(expanded));
        }
        let Some(names) = spec.remove("policyNames") else {
            return vec![ExpandedProbe { probe, origins }];
        };
        let names: Option<Vec<String>> = serde_json::from_value(names).ok();
        let names = names.filter(|names| !names.is_empty());
        let Some(names) = names.filter(|_| !spec.contains_key("policyName")) else {
            let message = "must be a list of names, and must not be combined with `policyName`";
            self.add_violation("spec.policyNames", message);
            return Vec::new();
        };
        let for_policy = |name: String| {
            let mut probe = probe.clone();
            if let Some(spec) = probe.get_mut("spec").and_then(Json::as_object_mut) {
                spec.insert("policyName".to_owned(), json!(name));
            }
            ExpandedProbe {
                probe,
                origins: origins.clone(),
            }
        };
        names.into_iter().map(for_policy).collect()
    }

    /// Expands a case with a table to one case per row, each with the index of the row. A case without a table remains
    /// one case.
    fn case(&mut self, case: &Json, path: &str) -> Vec<(Json, Option<usize>)> {
        let mut case = case.clone();
        let Some(fields) = case.as_object_mut() else {
            return vec![(case, None)];
        };
        let rows = match fields.remove("rows") {
            None => {
                self.expand_request(fields, path);
                return vec![(case, None)];
            }
            Some(Json::Array(rows)) if !rows.is_empty() => rows,
            Some(_) => {
                self.add_violation(&format!("{path}.rows"), "must be a list of rows");
                return Vec::new();
            }
        };
        let name = fields
            .get("name")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let name = name.to_owned();
        let mut expanded = Vec::new();
        for (n, row) in rows.iter().enumerate() {
            let path_of_row = format!("{path}.rows[{n}]");
            let Some(row) = row.as_object() else {
                self.add_violation(&path_of_row, "must be an object");
                continue;
            };
            let unknown = row.keys().find(|key| !ROW.contains(&key.as_str()));
            if let Some(unknown) = unknown {
                let message = validation::unknown(unknown, ROW.into_iter());
                self.add_violation(&format!("{path_of_row}.{unknown}"), &message);
                continue;
            }
            let mut row_case = fields.clone();
            let row_name = row.get("name").and_then(Json::as_str);
            let row_name = row_name.map_or_else(|| (n + 1).to_string(), str::to_owned);
            row_case.insert("name".to_owned(), json!(format!("{name}: {row_name}")));
            for part in ["request", "expect"] {
                if let Some(change) = row.get(part) {
                    let whole = row_case.entry(part).or_insert_with(|| json!({}));
                    merge(whole, change, 0);
                }
            }
            if let Some(patch) = row.get("patch") {
                let request = row_case.entry("request").or_insert_with(|| json!({}));
                if let Some(request) = request.as_object_mut() {
                    let whole = request.entry("patch").or_insert_with(|| json!({}));
                    // A null in the patch must be kept, because it removes a field of the object.
                    merge_patches(whole, patch, 0);
                }
            }
            self.expand_request(&mut row_case, path);
            expanded.push((Json::Object(row_case), Some(n)));
        }
        expanded
    }

    fn expand_request(&mut self, case: &mut Map<String, Json>, path: &str) {
        if let Some(request) = case.get_mut("request").and_then(Json::as_object_mut) {
            self.request(request, &format!("{path}.request"));
        }
    }

    fn request(&mut self, request: &mut Map<String, Json>, path: &str) {
        for (from, into) in [("objectFrom", "object"), ("oldObjectFrom", "oldObject")] {
            if let Some(reference) = request.remove(from)
                && let Some(object) = self.object(&reference, &format!("{path}.{from}"))
            {
                request.insert(into.to_owned(), object);
            }
        }
        let from = "admissionReviewFrom";
        if let Some(reference) = request.remove(from)
            && let Some(review) = self.object(&reference, &format!("{path}.{from}"))
        {
            request.insert("admissionReview".to_owned(), review);
        }
        if let Some(review) = request.remove("admissionReview") {
            let path = format!("{path}.admissionReview");
            match review.get("request").and_then(Json::as_object) {
                Some(reviewed) => fill_from_review(request, reviewed),
                None => self.add_violation(&path, "has no `request`"),
            }
        }
        if !request.contains_key("operation") {
            let has = |name: &str| request.get(name).is_some_and(|it| !it.is_null());
            let operation = match (has("object"), has("oldObject")) {
                (true, true) => Some("UPDATE"),
                (false, true) => Some("DELETE"),
                (_, false) => None,
            };
            if let Some(operation) = operation {
                request.insert("operation".to_owned(), json!(operation));
            }
        }
        let is_update = request.get("operation").is_some_and(|it| it == "UPDATE");
        if is_update
            && !request.contains_key("oldObject")
            && let Some(object) = request.get("object").cloned()
        {
            request.insert("oldObject".to_owned(), object);
        }
        for (name, of) in [("patch", "object"), ("oldPatch", "oldObject")] {
            let Some(patch) = request.remove(name) else {
                continue;
            };
            let path = format!("{path}.{name}");
            if !patch.is_object() {
                self.add_violation(&path, "must be an object (a JSON merge patch)");
                continue;
            }
            match request.get_mut(of) {
                Some(object) => merge(object, &patch, 0),
                None => self.add_violation(&path, format!("the request has no `{of}` to patch")),
            }
        }
    }

    /// Returns the object that `{file, name, kind, namespace}` identifies.
    fn object(&mut self, reference: &Json, path: &str) -> Option<Json> {
        const FIELDS: [&str; 4] = ["file", "name", "kind", "namespace"];
        let text = |name: &str| reference.get(name).and_then(Json::as_str);
        let fields = reference.as_object();
        let unknown = fields
            .into_iter()
            .flat_map(Map::keys)
            .find(|key| !FIELDS.contains(&key.as_str()));
        if let Some(unknown) = unknown {
            let message = validation::unknown(unknown, FIELDS.into_iter());
            self.add_violation(&format!("{path}.{unknown}"), &message);
            return None;
        }
        let Some(file) = text("file").filter(|file| !file.is_empty() && *file != "-") else {
            self.add_violation(&format!("{path}.file"), "is required");
            return None;
        };
        let file = match &self.folder {
            Some(folder) => folder.join(file),
            None => PathBuf::from(file),
        };
        let input = Input::load(
            std::slice::from_ref(&file),
            KindFilter::All,
            &mut std::io::empty(),
        );
        let shown = file.display();
        if let Some(problem) = input.problems.first() {
            self.add_violation(&format!("{path}.file"), problem.message.clone());
            return None;
        }
        let objects = input.others.iter().chain(&input.namespaces);
        let fits =
            |field: &str, value: Option<&str>| text(field).is_none_or(|it| Some(it) == value);
        let mut fitting = objects.filter(|object| {
            fits("name", object.name())
                && fits("kind", Some(object.kind()))
                && fits("namespace", object.namespace())
        });
        match (fitting.next(), fitting.next()) {
            (Some(object), None) => Some(object.value.clone()),
            (None, _) => {
                self.add_violation(path, format!("{shown} has no such object"));
                None
            }
            (Some(_), Some(_)) => {
                let message =
                    format!("{shown} has several such objects: add `name`, `kind` or `namespace`");
                self.add_violation(path, message);
                None
            }
        }
    }
}

/// Fills the missing fields of a request from the request of an `AdmissionReview`.
pub(in crate::cli) fn fill_from_review(
    request: &mut Map<String, Json>,
    reviewed: &Map<String, Json>,
) {
    // The resource of the client's request takes precedence over the resource that the webhook matched.
    const FIELDS: [(&str, &[&str]); 10] = [
        ("operation", &["operation"]),
        ("resource", &["requestResource", "resource"]),
        ("subResource", &["requestSubResource", "subResource"]),
        ("name", &["name"]),
        ("namespace", &["namespace"]),
        ("object", &["object"]),
        ("oldObject", &["oldObject"]),
        ("options", &["options"]),
        ("dryRun", &["dryRun"]),
        ("userInfo", &["userInfo"]),
    ];
    for (into, from) in FIELDS {
        let mut values = from.iter().filter_map(|name| reviewed.get(*name));
        let value = values.find(|value| !value.is_null() && **value != json!(""));
        if let Some(value) = value
            && !request.contains_key(into)
        {
            request.insert(into.to_owned(), value.clone());
        }
    }
}

/// Applies a merge patch to `value`.
///
/// Source: RFC 7396, "JSON Merge Patch", section 2.
fn merge(value: &mut Json, patch: &Json, depth: usize) {
    let Json::Object(changes) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let Some(fields) = value.as_object_mut().filter(|_| depth <= MAX_DEPTH) else {
        return;
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Json::Null), change, depth + 1);
        }
    }
}

/// Merges `patch` into the merge patch `value`. Keeps nulls, unlike [`merge`], because they remove fields of the object
/// later.
fn merge_patches(value: &mut Json, patch: &Json, depth: usize) {
    match (value, patch) {
        (Json::Object(fields), Json::Object(changes)) if depth <= MAX_DEPTH => {
            for (name, change) in changes {
                merge_patches(fields.entry(name).or_insert(Json::Null), change, depth + 1);
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(case: &Json) -> Json {
        let probe = json!({"spec": {"policyName": "p", "cases": [case]}});
        let (expanded, violations) = expand(&probe, "probe.yaml");
        assert_eq!(violations, []);
        expanded[0].probe["spec"]["cases"].clone()
    }

    #[test]
    fn each_row_of_table_becomes_a_case() {
        let expanded = cases(&json!({
            "name": "replicas",
            "request": {"operation": "UPDATE", "object": {"spec": {"replicas": 1, "paused": true}}},
            "expect": {"decision": "Deny"},
            "rows": [
                {"name": "many", "patch": {"spec": {"replicas": 9, "paused": null}}},
                {"expect": {"decision": "Allow"}, "request": {"operation": "CREATE"}},
            ],
        }));
        assert_eq!(
            expanded,
            json!([
                {
                    "name": "replicas: many",
                    "request": {
                        "operation": "UPDATE",
                        "object": {"spec": {"replicas": 9}},
                        "oldObject": {"spec": {"replicas": 1, "paused": true}},
                    },
                    "expect": {"decision": "Deny"},
                },
                {
                    "name": "replicas: 2",
                    "request": {"operation": "CREATE", "object": {"spec": {"replicas": 1, "paused": true}}},
                    "expect": {"decision": "Allow"},
                },
            ])
        );
    }

    #[test]
    fn operation_is_derived_from_objects() {
        let pod = json!({"kind": "Pod"});
        for (request, operation) in [
            (json!({"object": pod, "oldObject": pod}), json!("UPDATE")),
            (json!({"oldObject": pod}), json!("DELETE")),
            (json!({"object": pod}), Json::Null),
            (json!({"object": pod, "oldObject": null}), Json::Null),
            (
                json!({"operation": "CREATE", "oldObject": pod}),
                json!("CREATE"),
            ),
        ] {
            let expanded = cases(&json!({"name": "a", "request": request}));
            assert_eq!(expanded[0]["request"]["operation"], operation, "{request}");
        }
    }

    #[test]
    fn admission_review_fills_request() {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "DELETE", "object": null, "oldObject": {"kind": "Pod"}, "subResource": "",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "userInfo": {"username": "ann"},
        }});
        let expanded =
            cases(&json!({"name": "a", "request": {"admissionReview": review, "namespace": "b"}}));
        assert_eq!(
            expanded[0]["request"],
            json!({
                "operation": "DELETE", "oldObject": {"kind": "Pod"}, "namespace": "b",
                "resource": {"group": "", "version": "v1", "resource": "pods"}, "userInfo": {"username": "ann"},
            })
        );
    }

    #[test]
    fn each_policy_name_becomes_a_probe() {
        let probe = json!({"spec": {"policyNames": ["a", "b"], "cases": [{"name": "c"}]}});
        let (expanded, _) = expand(&probe, "probe.yaml");
        let names = expanded
            .iter()
            .map(|it| it.probe["spec"]["policyName"].clone());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
        let both = json!({"spec": {"policyName": "a", "policyNames": ["b"]}});
        assert_eq!(expand(&both, "").1[0].field_ref, "spec.policyNames");
    }

    #[test]
    fn invalid_case_is_an_error() {
        for (case, field) in [
            (
                json!({"request": {"patch": {}}}),
                "spec.cases[0].request.patch",
            ),
            (json!({"rows": {}}), "spec.cases[0].rows"),
            (
                json!({"rows": [{"patches": 1}]}),
                "spec.cases[0].rows[0].patches",
            ),
            (
                json!({"request": {"objectFrom": {}}}),
                "spec.cases[0].request.objectFrom.file",
            ),
            (
                json!({"request": {"admissionReview": {}}}),
                "spec.cases[0].request.admissionReview",
            ),
            (
                json!({"request": {"objectFrom": {"file": "no/such.yaml"}}}),
                "spec.cases[0].request.objectFrom.file",
            ),
        ] {
            let probe = json!({"spec": {"cases": [case, {"name": "other"}]}});
            let (expanded, violations) = expand(&probe, "probe.yaml");
            assert_eq!(violations[0].field_ref, field);
            let cases = &expanded[0].probe["spec"]["cases"];
            assert_eq!(*cases, json!([{"name": "other"}]), "{field}");
        }
    }
}
