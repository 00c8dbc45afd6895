//! Creates, updates and deletes status objects, which hold the conditions of subjects whose kind has no status.
//!
//! A status object is created without a status when its subject is first reconciled. A second write adds the status.
//! Each write fails with a conflict if the object has changed since it was last seen.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::Resource;
use kube::api::{DeleteParams, Patch, PostParams, Preconditions};
use kube::core::Request;
use serde_json::json;

use crate::cluster::error::Error;
use crate::controller::context::Context;
use crate::controller::leadership::WritePermit;
use crate::controller::reconcile::apply::{self, Written};
use crate::controller::reconcile::result::ReconcileResult;
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::managed_fields::{FIELD_MANAGER, apply_params};
use crate::controller::subjects::opt_in::{Object, OptInState};
use crate::controller::subjects::store::Entry;
use crate::policy::subject::SubjectId;
use crate::status::DesiredStatus;
use crate::status::object::{ObjectStatus, StatusObject};
use crate::telemetry::metrics::ErrorReason;

/// Writes the status `desired` to the status object of `entry`, within the deadline of `permit`. Creates the object if
/// it does not exist.
///
/// # Errors
/// Returns an error if the API server rejects a write or does not respond in time.
pub(crate) async fn apply(
    context: &Context,
    permit: &WritePermit,
    entry: &Entry,
    desired: &DesiredStatus,
) -> Result<Written<StatusObject>, Error> {
    let uid = entry.identity.state().uid;
    let Some(state) = context.opt_in.state(entry.id.kind) else {
        return Ok(Written::Gone);
    };
    let stored = state.object(&entry.id.name);
    let object = match stored {
        Some(object) if object.content.is_owned_by(uid) => object.content.meta().clone(),
        // The status object belongs to a deleted policy of the same name.
        Some(object) => {
            delete(context, permit, (&entry.id, state), &object).await?;
            return Ok(Written::Conflict);
        }
        None => match create(context, permit, state, entry).await? {
            Written::Applied(created) => {
                let metadata = created.meta().clone();
                // The watch has not reported the new object yet, so it is stored here.
                state.put(*created, EventSource::Watched);
                metadata
            }
            other => return Ok(other),
        },
    };
    let written = write(context, permit, (state, &object), desired).await;
    match written {
        Ok(written) => {
            context.metrics.status_written();
            let status = written.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_deref());
            let Some(kept) = desired.without_stale(conditions.unwrap_or_default()) else {
                return Ok(Written::Applied(Box::new(written)));
            };
            let objects = api(context, state);
            apply::retain(context, permit, (&objects, written.meta()), &kept).await
        }
        Err(error) => match error.reason() {
            ErrorReason::NotFound => {
                state.remove(&entry.id.name);
                Ok(Written::Conflict)
            }
            ErrorReason::Conflict => Ok(Written::Conflict),
            _ => Err(error),
        },
    }
}

/// Creates the status object of a policy, without a status.
async fn create(
    context: &Context,
    permit: &WritePermit,
    state: &OptInState,
    entry: &Entry,
) -> Result<Written<StatusObject>, Error> {
    let status_object = &state.status_object;
    let (name, uid) = (&*entry.id.name, entry.identity.state().uid);
    // The garbage collector deletes the object after its policy because of the owner reference, even if no controller
    // runs.
    let object = json!({
        "apiVersion": StatusObject::api_version(status_object),
        "kind": status_object.kind,
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER},
            "ownerReferences": [{
                "apiVersion": state.api_version(),
                "kind": state.kind.as_str(),
                "name": name,
                "uid": uid,
            }],
        },
    });
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let request = Request::new(StatusObject::url_path(status_object, None));
    let request = request
        .create(&params, object.to_string().into_bytes())
        .map_err(kube::Error::BuildRequest)?;
    let created = context.client.request::<StatusObject>(request);
    match permit.within(created).await {
        Ok(created) => Ok(Written::Applied(Box::new(created))),
        Err(error) => match error.reason() {
            // Another client has created the object.
            ErrorReason::Conflict => Ok(Written::Conflict),
            _ => Err(error),
        },
    }
}

/// Writes the status of a status object. Fails with a conflict if the object has changed since `seen`.
async fn write(
    context: &Context,
    permit: &WritePermit,
    (state, seen): (&OptInState, &ObjectMeta),
    desired: &DesiredStatus,
) -> Result<StatusObject, Error> {
    let status_object = &state.status_object;
    let name = seen.name.as_deref().unwrap_or_default();
    let applied = json!({
        "apiVersion": StatusObject::api_version(status_object),
        "kind": status_object.kind,
        "metadata": {"name": name, "uid": seen.uid, "resourceVersion": seen.resource_version},
        "status": ObjectStatus::new(desired, seen.generation),
    });
    let params = apply_params();
    let patch = Patch::Apply(&applied);
    permit
        .within(api(context, state).patch_status(name, &params, &patch))
        .await
}

/// Deletes a status object. An object that does not exist counts as deleted. After a conflict, the object remains
/// stored and the caller retries the deletion.
///
/// # Errors
/// Returns an error if the API server rejects the deletion or does not respond in time.
pub(crate) async fn delete(
    context: &Context,
    permit: &WritePermit,
    (id, state): (&SubjectId, &OptInState),
    object: &Object,
) -> Result<ReconcileResult, Error> {
    let metadata = object.content.meta();
    let name = metadata.name.as_deref().unwrap_or_default();
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: metadata.uid.clone(),
        resource_version: None,
    });
    let api = api(context, state);
    match permit.within(api.delete(name, &params)).await {
        Ok(_) => {}
        Err(error) => match error.reason() {
            ErrorReason::NotFound => {}
            ErrorReason::Conflict => return Ok(ReconcileResult::Conflict),
            _ => return Err(error),
        },
    }
    state.remove(&id.name);
    tracing::info!(
        policy = id.to_string(),
        "deleted the conditions of a policy"
    );
    Ok(ReconcileResult::Deleted)
}

fn api(context: &Context, state: &OptInState) -> Api<StatusObject> {
    Api::all_with(context.client.clone(), &state.status_object)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::Resource as _;
    use serde_json::json;

    use super::*;
    use crate::cluster::testing::{Reply, client};
    use crate::controller::reconcile::reconcile;
    use crate::controller::tests::settings;
    use crate::policy::subject::SubjectKind;
    use crate::telemetry::Metrics;

    /// A conflict may come from the API server or from a webhook. If the object counted as deleted after a conflict, it
    /// would never be deleted.
    #[tokio::test(start_paused = true)]
    async fn delete_conflict_is_retried() {
        let n = std::sync::atomic::AtomicUsize::new(0);
        let (client, seen) = client(move |request| {
            assert_eq!(request.method, http::Method::DELETE);
            let is_first = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            Some(if is_first {
                Reply::failure(409, "try again")
            } else {
                Reply::json(&json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
            })
        });
        let context = Arc::new(Context::new(client, settings(), Arc::new(Metrics::new())));
        let kind = SubjectKind::MutatingAdmissionPolicy;
        let state = context.opt_in.state(kind).unwrap();
        let object = json!({"metadata": {"name": "a", "uid": "o", "resourceVersion": "1"}});
        let object: StatusObject = serde_json::from_value(object).unwrap();
        assert_eq!(object.meta().uid.as_deref(), Some("o"));
        state.put(object, EventSource::Listed);
        state.set_objects_listed();
        state.set_bindings_listed();
        state.set_policies_listed(std::collections::BTreeSet::new());
        let id = SubjectId::new(kind, "a");

        let first = reconcile(&context, &id).await.unwrap();
        assert_eq!(first, ReconcileResult::Conflict);
        let second = reconcile(&context, &id).await.unwrap();
        assert_eq!(second, ReconcileResult::Deleted);
        assert!(state.object("a").is_none());
        assert_eq!(seen.lock().unwrap().len(), 2);
    }
}
