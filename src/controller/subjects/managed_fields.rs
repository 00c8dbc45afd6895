//! Ownership of status fields: by the controller's field manager, and by other field managers of the controller's
//! conditions.
//!
//! Source: structured-merge-diff `merge/update.go`, `Updater.prune`; k8s.io/apimachinery
//! `pkg/util/managedfields/internal/skipnonapplied.go`.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::api::{PatchParams, ValidationDirective};
use serde_json::{Map, Value, json};

/// The name of the controller's field manager.
pub const FIELD_MANAGER: &str = "vap-status-controller";

/// Returns the parameters of the controller's server-side applies.
///
/// `fieldValidation` is `Ignore`. Otherwise the API server would parse each patch a second time to find duplicate
/// fields, and would return warnings that are not used.
///
/// Source: k8s.io/apiserver `pkg/endpoints/handlers/patch.go`, `applyPatcher.applyPatchToCurrentObject`.
pub(crate) fn apply_params() -> PatchParams {
    PatchParams {
        field_validation: Some(ValidationDirective::Ignore),
        ..PatchParams::apply(FIELD_MANAGER).force()
    }
}

/// Returns true if the controller owns fields of the status.
pub(crate) fn owns_status(metadata: &ObjectMeta) -> bool {
    ours(metadata).next().is_some()
}

/// Returns true if another manager may own one of our conditions.
///
/// Also returns true if an entry of the controller does not list its fields. Ignores entries of other managers that do
/// not list their fields.
pub(crate) fn may_share(metadata: &ObjectMeta) -> bool {
    let mut ours = ours(metadata);
    ours.any(|entry| entry.fields_v1.is_none()) || !shared(metadata).is_empty()
}

/// Returns the key of a condition in managed fields, such as `k:{"type":"Ready"}`.
pub(crate) fn key(condition: &Value) -> String {
    let type_ = condition.get("type").and_then(Value::as_str);
    format!("k:{}", json!({"type": type_.unwrap_or_default()}))
}

/// Returns the entries of the controller's field manager for the status.
fn ours(metadata: &ObjectMeta) -> impl Iterator<Item = &ManagedFieldsEntry> {
    let managers = metadata.managed_fields.iter().flatten();
    managers.filter(|entry| is_ours(entry))
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER)
        && entry.subresource.as_deref() == Some("status")
}

/// Returns the keys of conditions that are shared: the controller owns the `status` of the condition, and another
/// manager owns one of its fields.
pub(crate) fn shared(metadata: &ObjectMeta) -> BTreeSet<String> {
    let of_others: Vec<_> = (metadata.managed_fields.iter().flatten())
        .filter(|entry| !is_ours(entry))
        .filter_map(conditions)
        .collect();
    let ours = ours(metadata).filter_map(conditions).flatten();
    ours.filter(|(_, fields)| fields.get("f:status").is_some())
        .map(|(key, _)| key)
        .filter(|key| of_others.iter().any(|fields| fields.contains_key(*key)))
        .cloned()
        .collect()
}

/// Returns the conditions of which `entry` owns a field, by key. `None` if there are none.
fn conditions(entry: &ManagedFieldsEntry) -> Option<&Map<String, Value>> {
    let fields = entry.fields_v1.as_ref()?;
    fields.0.pointer("/f:status/f:conditions")?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(managers: &[(&str, Value)]) -> ObjectMeta {
        let managers: Vec<Value> = managers
            .iter()
            .map(|(manager, conditions)| {
                json!({"manager": manager, "operation": "Apply", "subresource": "status", "fieldsType": "FieldsV1",
                       "fieldsV1": {"f:status": {"f:conditions": conditions}}})
            })
            .collect();
        serde_json::from_value(json!({"managedFields": managers})).unwrap()
    }

    #[test]
    fn condition_is_shared_if_another_manager_owns_one_of_its_fields() {
        const READY: &str = r#"k:{"type":"Ready"}"#;
        let whole = json!({READY: {".": {}, "f:type": {}, "f:status": {}}});
        let key = json!({READY: {".": {}, "f:type": {}}});
        let other = json!({r#"k:{"type":"Bound"}"#: {".": {}, "f:type": {}, "f:status": {}}});
        let is_shared = |ours: &Value, theirs: &Value| {
            let managers = [(FIELD_MANAGER, ours.clone()), ("others", theirs.clone())];
            may_share(&metadata(&managers))
        };
        assert!(is_shared(&whole, &whole));
        assert!(is_shared(&whole, &key));
        assert!(!is_shared(&whole, &other));
        // Another manager owns the content of the condition.
        assert!(!is_shared(&key, &whole));
        assert!(!may_share(&metadata(&[(FIELD_MANAGER, whole.clone())])));
        assert!(!may_share(&metadata(&[("others", whole)])));
        assert!(!may_share(&ObjectMeta::default()));
        let bare = json!({"managedFields": [{"manager": FIELD_MANAGER, "subresource": "status"}]});
        assert!(may_share(&serde_json::from_value(bare).unwrap()));
    }
}
