//! Our conditions that another field manager owns as well.
//!
//! Server-side apply removes what its manager alone owns. A client that clears the managed fields of an object (its
//! fields then belong to `before-first-apply`), or that applies a copy of its status, owns our conditions from then
//! on: a condition that we omit remains, or is rejected once half of it is removed. A merge patch removes such
//! conditions.
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

/// The number of attempts if the conditions change concurrently.
const MAX_ATTEMPTS: u32 = 3;

/// Writes the remaining conditions of a status; the object must be in the state `seen`.
///
/// # Errors
/// If the API server does not accept it.
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
    // Only applies may be forced.
    let params = PatchParams {
        force: false,
        ..apply_params()
    };
    api.patch_status(name, &params, &Patch::Merge(&patch)).await
}

/// Removes our conditions that other managers own as well from an object. Returns false if there are none.
///
/// # Errors
/// If the object cannot be read, or the API server rejects the write.
pub(crate) async fn remove_shared<K>(client: Client, seen: &ObjectMeta) -> Result<bool, kube::Error>
where
    K: Resource<DynamicType = ()>,
{
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::erase::<K>(&()));
    let name = seen.name.as_deref().unwrap_or_default();
    let mut n_attempts = 1;
    loop {
        // The controller has permission to list, but not to get.
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
