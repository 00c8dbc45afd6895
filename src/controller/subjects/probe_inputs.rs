//! The annotation of bindings that allows probes to use inputs of the cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation of a binding that allows probes to use params and namespaces of the cluster.
pub(crate) const PROBE_INPUTS: &str = "vap-status.dev/probe-inputs";

/// The value of [`PROBE_INPUTS`] that allows the use of these inputs.
pub(crate) const ALLOWED: &str = "FromCluster";

/// Returns true if a binding allows probes to use params and namespaces of the cluster.
pub(crate) fn allows_inputs(binding: &ObjectMeta) -> bool {
    let annotations = binding.annotations.as_ref();
    annotations
        .and_then(|all| all.get(PROBE_INPUTS))
        .is_some_and(|value| value == ALLOWED)
}

/// Removes all annotations, but keeps [`PROBE_INPUTS`] with the value [`ALLOWED`].
pub(crate) fn trim_annotations(metadata: &mut ObjectMeta) {
    let is_allowed = allows_inputs(metadata);
    set_allows_inputs(metadata, is_allowed);
}

/// Replaces all annotations of a binding: with [`PROBE_INPUTS`] if `is_allowed`, or else with none.
pub(crate) fn set_allows_inputs(metadata: &mut ObjectMeta, is_allowed: bool) {
    metadata.annotations =
        is_allowed.then(|| [(PROBE_INPUTS.to_owned(), ALLOWED.to_owned())].into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trim_annotations_retains_only_valid_probe_inputs() {
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
}
