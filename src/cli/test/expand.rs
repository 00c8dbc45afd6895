//! Forms of cases that only files have, written out in the form of the CRD: objects of other files, `AdmissionReview`s,
//! patches, tables, several policies, and the old object of an UPDATE.
//!
//! Takes a probe as it is written, gives probes as the cluster takes them, each with the place where its cases come
//! from. What is wrong in the form of the CRD is not found here.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use crate::cli::input::{Input, KindFilter};
use crate::probe::validation;
use crate::probe::validation::Violation;

/// The fields of a row of a table.
const ROW: [&str; 4] = ["name", "request", "patch", "expect"];

/// The most cases that a probe is written out to.
const MAX_CASES: usize = 2_000;

/// How deep a patch may nest.
const MAX_DEPTH: usize = 128;

/// A probe in the form of the CRD.
#[derive(Clone, Debug)]
pub(super) struct Expanded {
    /// The probe. It may have more cases than one in a cluster.
    pub(super) probe: Json,
    /// For each case where it comes from.
    pub(super) origins: Vec<Origin>,
}

/// The place of a case among those that are written: a case, or a row of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Origin {
    /// The index of the case.
    pub(in crate::cli) case: usize,
    /// The index of the row.
    pub(in crate::cli) row: Option<usize>,
}

impl Origin {
    /// The field of the case.
    pub(in crate::cli) fn case_field(self) -> String {
        format!("spec.cases[{}]", self.case)
    }

    /// The field of the row, or of the case where it has no table.
    pub(in crate::cli) fn field(self) -> String {
        match self.row {
            Some(row) => format!("{}.rows[{row}]", self.case_field()),
            None => self.case_field(),
        }
    }
}

/// Writes out a probe of the file `file`.
///
/// # Errors
/// What cannot be written out, by its field.
pub(super) fn expand(probe: &Json, file: &str) -> Result<Vec<Expanded>, Vec<Violation>> {
    let mut expander = Expander {
        folder: Path::new(file).parent().map(Path::to_owned),
        found: Vec::new(),
    };
    let expanded = expander.probe(probe);
    if expander.found.is_empty() {
        Ok(expanded)
    } else {
        Err(expander.found)
    }
}

struct Expander {
    folder: Option<PathBuf>,
    found: Vec<Violation>,
}

impl Expander {
    fn fault(&mut self, field: &str, message: impl Into<String>) {
        self.found.push(Violation {
            field_ref: field.to_owned(),
            message: message.into(),
        });
    }

    fn probe(&mut self, probe: &Json) -> Vec<Expanded> {
        let mut probe = probe.clone();
        let mut origins = Vec::new();
        let spec = probe.get_mut("spec").and_then(Json::as_object_mut);
        let Some(spec) = spec else {
            return vec![Expanded { probe, origins }];
        };
        if let Some(Json::Array(cases)) = spec.get("cases") {
            let mut written = Vec::new();
            for (n, case) in cases.clone().iter().enumerate() {
                for (case, row) in self.case(case, &format!("spec.cases[{n}]")) {
                    written.push(case);
                    origins.push(Origin { case: n, row });
                }
                if written.len() > MAX_CASES {
                    let message = format!("makes more than {MAX_CASES} cases");
                    self.fault("spec.cases", message);
                    return Vec::new();
                }
            }
            spec.insert("cases".to_owned(), Json::Array(written));
        }
        let Some(names) = spec.remove("policyNames") else {
            return vec![Expanded { probe, origins }];
        };
        let names: Option<Vec<String>> = serde_json::from_value(names).ok();
        let names = names.filter(|names| !names.is_empty());
        let Some(names) = names.filter(|_| !spec.contains_key("policyName")) else {
            let message = "must be a list of names, in the place of `policyName`";
            self.fault("spec.policyNames", message);
            return Vec::new();
        };
        let of_policy = |name: String| {
            let mut probe = probe.clone();
            if let Some(spec) = probe.get_mut("spec").and_then(Json::as_object_mut) {
                spec.insert("policyName".to_owned(), json!(name));
            }
            Expanded {
                probe,
                origins: origins.clone(),
            }
        };
        names.into_iter().map(of_policy).collect()
    }

    /// A case, or the rows of its table with their indices.
    fn case(&mut self, case: &Json, path: &str) -> Vec<(Json, Option<usize>)> {
        let mut case = case.clone();
        let Some(fields) = case.as_object_mut() else {
            return vec![(case, None)];
        };
        let rows = match fields.remove("rows") {
            None => {
                self.request_of(fields, path);
                return vec![(case, None)];
            }
            Some(Json::Array(rows)) if !rows.is_empty() => rows,
            Some(_) => {
                self.fault(&format!("{path}.rows"), "must be a list of rows");
                return Vec::new();
            }
        };
        let name = fields
            .get("name")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let name = name.to_owned();
        let mut written = Vec::new();
        for (n, row) in rows.iter().enumerate() {
            let path_of_row = format!("{path}.rows[{n}]");
            let Some(row) = row.as_object() else {
                self.fault(&path_of_row, "must be an object");
                continue;
            };
            let unknown = row.keys().find(|key| !ROW.contains(&key.as_str()));
            if let Some(unknown) = unknown {
                let message = validation::unknown(unknown, ROW.into_iter());
                self.fault(&format!("{path_of_row}.{unknown}"), &message);
                continue;
            }
            let mut of_row = fields.clone();
            let row_name = row.get("name").and_then(Json::as_str);
            let row_name = row_name.map_or_else(|| (n + 1).to_string(), str::to_owned);
            of_row.insert("name".to_owned(), json!(format!("{name}: {row_name}")));
            for part in ["request", "expect"] {
                if let Some(change) = row.get(part) {
                    let whole = of_row.entry(part).or_insert_with(|| json!({}));
                    merge(whole, change, 0);
                }
            }
            if let Some(patch) = row.get("patch") {
                let request = of_row.entry("request").or_insert_with(|| json!({}));
                if let Some(request) = request.as_object_mut() {
                    let whole = request.entry("patch").or_insert_with(|| json!({}));
                    // A null is one of the patch, and is to stay.
                    join(whole, patch, 0);
                }
            }
            self.request_of(&mut of_row, path);
            written.push((Json::Object(of_row), Some(n)));
        }
        written
    }

    fn request_of(&mut self, case: &mut Map<String, Json>, path: &str) {
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
                Some(reviewed) => of_review(request, reviewed),
                None => self.fault(&path, "has no `request`"),
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
                self.fault(&path, "must be an object: a merge patch");
                continue;
            }
            match request.get_mut(of) {
                Some(object) => merge(object, &patch, 0),
                None => self.fault(&path, format!("there is no `{of}` to patch")),
            }
        }
    }

    /// The object of a file: `{file, name, kind, namespace}`.
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
            self.fault(&format!("{path}.{unknown}"), &message);
            return None;
        }
        let Some(file) = text("file").filter(|file| !file.is_empty() && *file != "-") else {
            self.fault(&format!("{path}.file"), "is required");
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
            self.fault(&format!("{path}.file"), problem.message.clone());
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
                self.fault(path, format!("{shown} has no such object"));
                None
            }
            (Some(_), Some(_)) => {
                let message = format!("{shown} has several such objects: name one by name or kind");
                self.fault(path, message);
                None
            }
        }
    }
}

/// Fills a request with what an `AdmissionReview` says, but for what it says itself.
pub(in crate::cli) fn of_review(request: &mut Map<String, Json>, reviewed: &Map<String, Json>) {
    // The resource that the client named, and not the one that the webhook asked for.
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

/// One patch after another as one.
fn join(value: &mut Json, patch: &Json, depth: usize) {
    match (value, patch) {
        (Json::Object(fields), Json::Object(changes)) if depth <= MAX_DEPTH => {
            for (name, change) in changes {
                join(fields.entry(name).or_insert(Json::Null), change, depth + 1);
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
        let expanded = expand(&probe, "probe.yaml").unwrap();
        expanded[0].probe["spec"]["cases"].clone()
    }

    #[test]
    fn a_table_is_a_case_for_each_row() {
        let found = cases(&json!({
            "name": "replicas",
            "request": {"operation": "UPDATE", "object": {"spec": {"replicas": 1, "paused": true}}},
            "expect": {"decision": "Deny"},
            "rows": [
                {"name": "many", "patch": {"spec": {"replicas": 9, "paused": null}}},
                {"expect": {"decision": "Allow"}, "request": {"operation": "CREATE"}},
            ],
        }));
        assert_eq!(
            found,
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
    fn a_review_is_a_request() {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "DELETE", "object": null, "oldObject": {"kind": "Pod"}, "subResource": "",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "userInfo": {"username": "ann"},
        }});
        let found =
            cases(&json!({"name": "a", "request": {"admissionReview": review, "namespace": "b"}}));
        assert_eq!(
            found[0]["request"],
            json!({
                "operation": "DELETE", "oldObject": {"kind": "Pod"}, "namespace": "b",
                "resource": {"group": "", "version": "v1", "resource": "pods"}, "userInfo": {"username": "ann"},
            })
        );
    }

    #[test]
    fn one_probe_is_of_several_policies() {
        let probe = json!({"spec": {"policyNames": ["a", "b"], "cases": [{"name": "c"}]}});
        let expanded = expand(&probe, "probe.yaml").unwrap();
        let names = expanded
            .iter()
            .map(|it| it.probe["spec"]["policyName"].clone());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
        let both = json!({"spec": {"policyName": "a", "policyNames": ["b"]}});
        assert_eq!(
            expand(&both, "").unwrap_err()[0].field_ref,
            "spec.policyNames"
        );
    }

    #[test]
    fn what_cannot_be_written_out_is_told() {
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
            let probe = json!({"spec": {"cases": [case]}});
            let found = expand(&probe, "probe.yaml").unwrap_err();
            assert_eq!(found[0].field_ref, field);
        }
    }
}
