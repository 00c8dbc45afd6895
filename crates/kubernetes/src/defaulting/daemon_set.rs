//! Maintains the template generation of a `DaemonSet`, which `apps/v1` stores in an annotation.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/apps/v1/conversion.go` (`Convert_v1_DaemonSet_To_apps_DaemonSet`),
//! `pkg/registry/apps/daemonset/strategy.go` (`PrepareForUpdate`).

use serde_json::{Value, json};

use crate::schema::Gvk;

const ANNOTATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn is(gvk: &Gvk) -> bool {
    gvk.group == "apps" && gvk.kind == "DaemonSet"
}

/// Returns the template generation. Returns `None` if the annotation is missing or not a number.
pub(super) fn generation(object: &Value) -> Option<i64> {
    let annotations = object.get("metadata")?.get("annotations")?;
    annotations.get(ANNOTATION)?.as_str()?.parse().ok()
}

pub(super) fn set(object: &mut Value, generation: i64) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations =
        metadata.map(|metadata| metadata.entry("annotations").or_insert_with(|| json!({})));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(ANNOTATION.to_owned(), generation.to_string().into());
    }
}

/// Copies the template generation from `old` to `object`. Increments it if the Pod template has changed.
pub(super) fn count(object: &mut Value, old: &Value) {
    let template = |object: &Value| object.pointer("/spec/template").cloned();
    let is_changed = template(object) != template(old);
    let generation = generation(old).unwrap_or_default();
    set(object, generation.saturating_add(i64::from(is_changed)));
}
