//! Removes the controller's fields from the status of an object.

use std::fmt;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Patch;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::apply::Written;
use super::shared_conditions;
use crate::cluster::error::{Error, within};
use crate::controller::subjects::managed_fields::{apply_params, may_share};

/// The timeout of one request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Removes the controller's fields from the status of an object. If `is_fenced` and the object has changed since
/// `seen`, the write fails with a conflict.
///
/// # Errors
/// Returns an error if the API server rejects the write or does not respond in time.
pub(crate) async fn clear<K>(
    api: &Api<K>,
    seen: &ObjectMeta,
    is_fenced: bool,
) -> Result<Written<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    if !may_share(seen) {
        return apply_nothing(api, seen, is_fenced).await;
    }
    let client = api.clone().into_client();
    let removed = shared_conditions::remove_shared::<K>(client, seen);
    match within(TIMEOUT, removed).await {
        Ok(is_changed) => apply_nothing(api, seen, is_fenced && !is_changed).await,
        Err(error) => Written::from_error(error),
    }
}

/// Applies an empty status with the controller's field manager. This removes the fields that only this manager owns.
async fn apply_nothing<K>(
    api: &Api<K>,
    seen: &ObjectMeta,
    is_fenced: bool,
) -> Result<Written<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let name = seen.name.as_deref().unwrap_or_default();
    let mut metadata = json!({"name": name});
    if let Some(fields) = metadata.as_object_mut() {
        // The uid makes the API server reject a write to a different object of the same name.
        fields.extend(seen.uid.iter().map(|uid| ("uid".to_owned(), json!(uid))));
        let version = seen.resource_version.iter().filter(|_| is_fenced);
        fields.extend(version.map(|version| ("resourceVersion".to_owned(), json!(version))));
    }
    let nothing = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": metadata,
    });
    let params = apply_params();
    let patch = Patch::Apply(&nothing);
    match within(TIMEOUT, api.patch_status(name, &params, &patch)).await {
        Ok(written) => Ok(Written::Applied(Box::new(written))),
        Err(error) => Written::from_error(error),
    }
}
