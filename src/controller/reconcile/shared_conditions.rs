//! Removes conditions of the controller that another field manager also owns.
//!
//! Server-side apply removes only fields that no other manager owns. After a client has applied a copy of the status,
//! the client also owns our conditions. After a client has cleared the managed fields of an object, the manager
//! `before-first-apply` owns all fields, including our conditions.
//!
//! If an apply of the controller omits a shared condition, the condition remains, or the API server rejects the apply.
//! It rejects the apply if only some fields of the condition would be removed. A merge patch removes shared conditions.
//!
//! Source: structured-merge-diff `merge/update.go`, `Updater.prune`; k8s.io/apimachinery
//! `pkg/util/managedfields/internal/skipnonapplied.go`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::discovery::ApiResource;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::controller::subjects::managed_fields::{apply_params, key, shared};

/// The maximum number of attempts if other clients change the conditions at the same time.
const MAX_ATTEMPTS: u32 = 3;

/// Replaces the conditions of an object with `kept`.
///
/// # Errors
/// Returns an error if the API server rejects the write, for example because the object has changed since `seen`.
pub(crate) async fn retain<K>(
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
    // The API server accepts `force` only for applies.
    let params = PatchParams {
        force: false,
        ..apply_params()
    };
    api.patch_status(name, &params, &Patch::Merge(&patch)).await
}

/// Removes our conditions from an object if other managers also own them. Returns false if there are none.
///
/// # Errors
/// Returns an error if the object cannot be read or the API server rejects the write.
pub(crate) async fn remove_shared<K>(client: Client, seen: &ObjectMeta) -> Result<bool, kube::Error>
where
    K: Resource<DynamicType = ()>,
{
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::erase::<K>(&()));
    let name = seen.name.as_deref().unwrap_or_default();
    let mut n_attempts = 1;
    loop {
        // The object is listed by name, since the controller has permission to list objects, but not to get them.
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
