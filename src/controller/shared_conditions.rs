//! Conditions of ours that another manager owns a part of as well.
//!
//! Server-side apply removes what its manager alone owns. Somebody who clears the managed fields of an object (its
//! fields then belong to `before-first-apply`), or who applies a copy of its status, owns our conditions from then on:
//! what we leave out stays, or is refused with half of it gone. Such conditions are taken out by a merge patch.
//!
//! Source: structured-merge-diff `merge/update.go`, `Updater.prune`; k8s.io/apimachinery
//! `pkg/util/managedfields/internal/skipnonapplied.go`.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::discovery::ApiResource;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::apply::{self, FIELD_MANAGER};

/// How often conditions are looked at again that have changed meanwhile.
const MAX_ATTEMPTS: u32 = 3;

/// Writes the conditions of a status that stay; the state of the object must be the one of `seen`.
///
/// # Errors
/// Where the API server does not take it.
pub(super) async fn retain<K>(
    api: &Api<K>,
    seen: &ObjectMeta,
    kept: &[impl Serialize + Sync],
) -> Result<K, kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let name = seen.name.as_deref().unwrap_or_default();
    let patch = json!({
        "metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version},
        "status": {"conditions": kept},
    });
    // Only applies may be forced.
    let params = PatchParams {
        force: false,
        ..apply::params()
    };
    api.patch_status(name, &params, &Patch::Merge(&patch)).await
}

/// Reports whether another manager may own a condition that is ours. Managed fields without content tell nothing.
pub(super) fn may_share(metadata: &ObjectMeta) -> bool {
    let mut ours = ours(metadata);
    ours.any(|entry| entry.fields_v1.is_none()) || !shared(metadata).is_empty()
}

/// Takes the conditions out of an object whose content we own beside others; false where there are none.
///
/// # Errors
/// Where the object cannot be read, or the API server does not take the write.
pub(super) async fn remove_shared<K>(client: Client, seen: &ObjectMeta) -> Result<bool, kube::Error>
where
    K: Resource<DynamicType = ()>,
{
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::erase::<K>(&()));
    let name = seen.name.as_deref().unwrap_or_default();
    let mut n_attempts = 1;
    loop {
        // Listing is permitted, where reading one is not.
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let Some(object) = api.list(&named).await?.items.pop() else {
            return Ok(false);
        };
        let shared = shared(&object.metadata);
        if object.metadata.uid != seen.uid || shared.is_empty() {
            return Ok(false);
        }
        let conditions = object.data.pointer("/status/conditions");
        let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
        let is_shared = |condition: &&Value| shared.contains(&key(condition));
        let kept: Vec<&Value> = conditions.filter(|it| !is_shared(it)).collect();
        match retain(&api, &object.metadata, &kept).await {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 && n_attempts < MAX_ATTEMPTS => {
                n_attempts = n_attempts.saturating_add(1);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The name of a condition among managed fields.
fn key(condition: &Value) -> String {
    let type_ = condition.get("type").and_then(Value::as_str);
    format!("k:{}", json!({"type": type_.unwrap_or_default()}))
}

/// Entries of the managed fields that are ours.
pub(super) fn ours(metadata: &ObjectMeta) -> impl Iterator<Item = &ManagedFieldsEntry> {
    let managers = metadata.managed_fields.iter().flatten();
    managers.filter(|entry| is_ours(entry))
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER)
        && entry.subresource.as_deref() == Some("status")
}

/// The keys of the conditions whose content we own, and that other managers own a part of.
fn shared(metadata: &ObjectMeta) -> BTreeSet<String> {
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

/// The conditions that a manager owns something of.
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
    fn a_condition_is_shared_if_its_content_is_ours_and_another_has_a_part() {
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
        // Somebody else has written the content since.
        assert!(!is_shared(&key, &whole));
        assert!(!may_share(&metadata(&[(FIELD_MANAGER, whole.clone())])));
        assert!(!may_share(&metadata(&[("others", whole)])));
        assert!(!may_share(&ObjectMeta::default()));
        let bare = json!({"managedFields": [{"manager": FIELD_MANAGER, "subresource": "status"}]});
        assert!(may_share(&serde_json::from_value(bare).unwrap()));
    }
}
