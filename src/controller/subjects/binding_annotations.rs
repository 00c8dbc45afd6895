//! The annotations that the controller stores with a binding.
//!
//! A user sets [`PROBE_INPUTS`], which allows probes to use inputs of the cluster. The controller itself adds the list of
//! fields that it does not know.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation of a binding that allows probes to use params and namespaces of the cluster.
pub(crate) const PROBE_INPUTS: &str = "vap-status.dev/probe-inputs";

/// The value of [`PROBE_INPUTS`] that allows the use of these inputs.
pub(crate) const ALLOWED: &str = "FromCluster";

/// The annotation with the paths of unknown fields, one per line. No annotation in a cluster has this name, because spaces
/// are not allowed in names.
const UNKNOWN_FIELDS: &str = "unknown fields";

/// Returns true if a binding allows probes to use params and namespaces of the cluster.
pub(crate) fn allows_inputs(binding: &ObjectMeta) -> bool {
    let annotations = binding.annotations.as_ref();
    annotations
        .and_then(|all| all.get(PROBE_INPUTS))
        .is_some_and(|value| value == ALLOWED)
}

/// Keeps only the list of unknown fields, and [`PROBE_INPUTS`] if its value is [`ALLOWED`]. Removes all other
/// annotations.
pub(crate) fn trim_annotations(metadata: &mut ObjectMeta) {
    let (is_allowed, unknown) = (allows_inputs(metadata), unknown_fields(metadata));
    set_allows_inputs(metadata, is_allowed);
    set_unknown_fields(metadata, &unknown);
}

/// Returns the paths of a binding's unknown fields, such as `spec.new`.
pub(crate) fn unknown_fields(binding: &ObjectMeta) -> Vec<String> {
    let annotations = binding.annotations.as_ref();
    let list = annotations.and_then(|all| all.get(UNKNOWN_FIELDS));
    list.into_iter()
        .flat_map(|list| list.lines().map(str::to_owned))
        .collect()
}

/// Adds the list of unknown fields to the annotations of a binding, unless it is empty.
pub(crate) fn set_unknown_fields(metadata: &mut ObjectMeta, fields: &[String]) {
    if !fields.is_empty() {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(UNKNOWN_FIELDS.to_owned(), fields.join("\n"));
    }
}

/// Removes all annotations of a binding. If `is_allowed`, then sets [`PROBE_INPUTS`] to [`ALLOWED`].
pub(crate) fn set_allows_inputs(metadata: &mut ObjectMeta, is_allowed: bool) {
    metadata.annotations =
        is_allowed.then(|| [(PROBE_INPUTS.to_owned(), ALLOWED.to_owned())].into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trimmed_annotation_retains_only_valid_probe_inputs() {
        for (value, is_kept) in [("FromCluster", true), ("true", false), ("", false)] {
            let mut metadata: ObjectMeta =
                serde_json::from_value(json!({"annotations": {PROBE_INPUTS: value, "other": "x"}}))
                    .unwrap();
            trim_annotations(&mut metadata);
            assert_eq!(allows_inputs(&metadata), is_kept, "{value}");
            let n_kept = metadata.annotations.map_or(0, |all| all.len());
            assert_eq!(n_kept, usize::from(is_kept));
        }
    }

    #[test]
    fn trimmed_annotation_retains_unknown_fields() {
        let mut metadata: ObjectMeta =
            serde_json::from_value(json!({"annotations": {"other": "x"}})).unwrap();
        set_unknown_fields(&mut metadata, &[]);
        assert_eq!(unknown_fields(&metadata), [""; 0]);
        let fields = ["spec.a".to_owned(), "spec.b".to_owned()];
        set_unknown_fields(&mut metadata, &fields);
        trim_annotations(&mut metadata);
        assert_eq!(unknown_fields(&metadata), fields);
        assert_eq!(metadata.annotations.unwrap().len(), 1);
    }
}
