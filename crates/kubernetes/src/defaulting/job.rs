//! Generates the selector and the labels of a Job from its uid and name, like the API server.
//!
//! Source: `k8s.io/kubernetes` `pkg/registry/batch/job/strategy.go`, `generateSelectorIfNeeded`.

use serde_json::{Map, Value};

/// The labels that the API server adds to a Job's Pods. A label's value is the Job's uid if the boolean is true,
/// otherwise the Job's name.
const LABELS: [(&str, bool); 4] = [
    ("batch.kubernetes.io/controller-uid", true),
    ("controller-uid", true),
    ("batch.kubernetes.io/job-name", false),
    ("job-name", false),
];

const SELECTED: &str = "batch.kubernetes.io/controller-uid";

/// Returns true if the Job and its Pod template share one map of labels in Go. A label that is set on the Job is then
/// also set on the template, and the reverse. `given` is the Job before its defaults are set.
pub(super) fn shares_labels(given: &Map<String, Value>) -> bool {
    let labels = |metadata: Option<&Value>| {
        let labels = metadata?.get("labels")?.as_object()?;
        Some(!labels.is_empty())
    };
    let template = given.get("spec").and_then(|spec| spec.get("template"));
    let of_template = template.and_then(|template| template.get("metadata"));
    of_template
        .and_then(|metadata| metadata.get("labels"))
        .is_some()
        && labels(given.get("metadata")) != Some(true)
}

/// Sets the selector and the Pod labels of a Job, which is in compact form. Does nothing if the Job has a manual
/// selector. If `shares_labels` is true, the Pod labels replace the labels of the Job.
pub(super) fn select(job: &mut Value, shares_labels: bool) {
    let text = |field: &str| {
        let value = job.get("metadata").and_then(|metadata| metadata.get(field));
        value.cloned().unwrap_or_else(|| "".into())
    };
    let (uid, name) = (text("uid"), text("name"));
    let is_manual = job.get("spec").and_then(|spec| spec.get("manualSelector"));
    if is_manual == Some(&Value::Bool(true)) {
        return;
    }
    let Some(labels) = entry(job, &["spec", "template", "metadata", "labels"]) else {
        return;
    };
    for (label, is_uid) in LABELS {
        let value = if is_uid { &uid } else { &name };
        // A label that the user has set is not overwritten. If its value differs from the generated one, validation
        // rejects the Job.
        labels.entry(label).or_insert_with(|| value.clone());
    }
    let labels = labels.clone();
    if let Some(selected) = entry(job, &["spec", "selector", "matchLabels"]) {
        selected.entry(SELECTED).or_insert(uid);
    }
    if shares_labels && let Some(own) = entry(job, &["metadata", "labels"]) {
        *own = labels;
    }
}

/// Returns the object at `path`. Inserts missing objects.
fn entry<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut node = value;
    for name in path {
        node = node
            .as_object_mut()?
            .entry(*name)
            .or_insert_with(|| Value::Object(Map::new()));
        if node.is_null() {
            *node = Value::Object(Map::new());
        }
    }
    node.as_object_mut()
}
