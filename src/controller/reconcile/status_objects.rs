//! Creates, updates and deletes status objects, which hold the conditions of subjects whose kind has no status.
//!
//! When a subject is first reconciled, its status object is created without a status. A second write adds the status.
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

/// Writes the status `desired` to the status object of `entry`, within the deadline of `permit`. If the object does not
/// exist, creates it.
///
/// # Errors
/// Returns an error if the API server rejects a write or does not respond before the deadline.
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
                // The new object is stored here, since the watch has not reported it yet.
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
    // Because of the owner reference, the garbage collector deletes the object after its policy, even if no controller
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

/// Deletes a status object. A missing object counts as deleted. After a conflict, the object remains stored, and the
/// caller retries the deletion.
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

    /// The conflict may come from a webhook, not from a deletion. If it counted as a deletion, the status object would
    /// never be deleted.
    #[tokio::test(start_paused = true)]
    async fn conflict_of_deletion_is_retried() {
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

    const OBJECTS: &str = "/apis/vap-status.dev/v1alpha1/mutatingadmissionpolicystatuses";

    /// Returns a context with the mutating policy `a`, and the log of the requests.
    fn mutating_context(
        answer: impl Fn(&crate::cluster::testing::ReceivedRequest) -> Option<Reply>
        + Send
        + Sync
        + 'static,
    ) -> (Arc<Context>, crate::cluster::testing::Log) {
        use crate::controller::cluster::snapshot::tests::snapshot;
        use crate::controller::watch::opt_in_wire::{WireMutatingPolicy, WireSubject};
        let (client, log) = client(answer);
        let context = Context::new(client, settings(), Arc::new(Metrics::new()));
        context.set_snapshot(snapshot(&[], &[]));
        context.probes.retain(&std::collections::BTreeSet::new());
        context.set_probes_listed();
        let state = context.opt_in.state(KIND).unwrap();
        state.set_version("v1beta1");
        state.set_objects_listed();
        state.bindings.retain(&std::collections::BTreeSet::new());
        state.set_bindings_listed();
        state.set_policies_listed(std::collections::BTreeSet::new());
        let policy = json!({"metadata": {"name": "a", "uid": "u", "generation": 2, "resourceVersion": "7"},
                            "spec": {"mutations": []}});
        let policy: WireMutatingPolicy = serde_json::from_value(policy).unwrap();
        let (metadata, subject) = policy.parts();
        let id = SubjectId::new(KIND, "a");
        context
            .store
            .put_opt_in(id, &metadata, subject, EventSource::Watched);
        (Arc::new(context), log)
    }

    const KIND: SubjectKind = SubjectKind::MutatingAdmissionPolicy;

    /// Returns the status object `a`, owned by the policy with the UID `owner`.
    fn status_object(owner: &str, version: &str) -> serde_json::Value {
        json!({"metadata": {"name": "a", "uid": "o", "generation": 1, "resourceVersion": version,
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "a", "uid": owner}]}})
    }

    fn written(request: &crate::cluster::testing::ReceivedRequest) -> Reply {
        let mut object = status_object("u", "2");
        object["status"] = request.body["status"].clone();
        Reply::json(&object)
    }

    fn put(context: &Context, owner: &str) {
        let object = serde_json::from_value(status_object(owner, "1")).unwrap();
        let state = context.opt_in.state(KIND).unwrap();
        state.put(object, EventSource::Listed);
    }

    fn sent(log: &crate::cluster::testing::Log) -> Vec<String> {
        let log = log.lock().unwrap();
        let sent = log.iter().map(|seen| {
            let path = seen.path.split('?').next().unwrap_or_default();
            format!("{} {path}", seen.method)
        });
        sent.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn status_object_is_created_and_its_status_written() {
        let (context, log) = mutating_context(|request| {
            Some(if request.method == http::Method::POST {
                Reply::json(&status_object("u", "1"))
            } else {
                written(request)
            })
        });
        let id = SubjectId::new(KIND, "a");
        let applied = reconcile(&context, &id).await.unwrap();
        assert_eq!(applied, ReconcileResult::Applied);
        let expected = [
            format!("POST {OBJECTS}"),
            format!("PATCH {OBJECTS}/a/status"),
        ];
        assert_eq!(sent(&log), expected);
        let requests = log.lock().unwrap().clone();
        assert_eq!(
            requests[0].body,
            json!({
                "apiVersion": "vap-status.dev/v1alpha1",
                "kind": "MutatingAdmissionPolicyStatus",
                "metadata": {
                    "name": "a",
                    "labels": {"app.kubernetes.io/managed-by": "vap-status-controller"},
                    "ownerReferences": [{
                        "apiVersion": "admissionregistration.k8s.io/v1beta1",
                        "kind": "MutatingAdmissionPolicy", "name": "a", "uid": "u",
                    }],
                },
            })
        );
        assert!(
            requests[0]
                .path
                .contains("fieldManager=vap-status-controller")
        );
        let body = &requests[1].body;
        assert_eq!(body["apiVersion"], "vap-status.dev/v1alpha1");
        assert_eq!(body["kind"], "MutatingAdmissionPolicyStatus");
        assert_eq!(
            body["metadata"],
            json!({"name": "a", "uid": "o", "resourceVersion": "1"})
        );
        assert_eq!(body["status"]["policyGeneration"], 2);
        assert_eq!(body["status"]["observedGeneration"], 1);
        // The written status is stored.
        let state = context.opt_in.state(KIND).unwrap();
        let stored = state.object("a").unwrap().content;
        assert_eq!(stored.meta().resource_version.as_deref(), Some("2"));
        let text = context.metrics.encode().unwrap();
        assert!(text.contains("vap_status_writes_total 1\n"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn status_object_of_earlier_policy_is_deleted() {
        let (context, log) = mutating_context(|_| Some(Reply::json(&json!({}))));
        put(&context, "earlier");
        let id = SubjectId::new(KIND, "a");
        let result = reconcile(&context, &id).await.unwrap();
        assert_eq!(result, ReconcileResult::Conflict);
        assert_eq!(sent(&log), [format!("DELETE {OBJECTS}/a")]);
        let body = log.lock().unwrap()[0].body.clone();
        assert_eq!(body["preconditions"], json!({"uid": "o"}));
        assert!(context.opt_in.state(KIND).unwrap().object("a").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_write_of_status_object_is_retried_or_an_error() {
        for (status, is_stored, result, remains) in [
            (409, true, Ok(ReconcileResult::Conflict), true),
            (409, false, Ok(ReconcileResult::Conflict), false),
            // The object was deleted, so it is created again.
            (404, true, Ok(ReconcileResult::Conflict), false),
            // The CRD is not installed.
            (404, false, Err(ErrorReason::NotFound), false),
            (403, true, Err(ErrorReason::Forbidden), true),
            (403, false, Err(ErrorReason::Forbidden), false),
            (422, true, Err(ErrorReason::Invalid), true),
        ] {
            let (context, log) =
                mutating_context(move |_| Some(Reply::failure(status, "rejected")));
            if is_stored {
                put(&context, "u");
            }
            let id = SubjectId::new(KIND, "a");
            let actual = reconcile(&context, &id).await;
            let actual = actual.map_err(|error| error.reason());
            assert_eq!(actual, result, "{status} {is_stored}");
            let request = if is_stored {
                format!("PATCH {OBJECTS}/a/status")
            } else {
                format!("POST {OBJECTS}")
            };
            assert_eq!(sent(&log), [request]);
            let state = context.opt_in.state(KIND).unwrap();
            assert_eq!(state.object("a").is_some(), remains, "{status} {is_stored}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn status_object_of_deleted_policy_is_deleted() {
        for (status, result, remains) in [
            (200, Ok(ReconcileResult::Deleted), false),
            (404, Ok(ReconcileResult::Deleted), false),
            (403, Err(ErrorReason::Forbidden), true),
        ] {
            let (context, log) = mutating_context(move |_| {
                Some(match status {
                    200 => Reply::json(&json!({})),
                    _ => Reply::failure(status, "rejected"),
                })
            });
            put(&context, "u");
            let id = SubjectId::new(KIND, "a");
            context.store.remove(&id);
            let actual = reconcile(&context, &id).await;
            let actual = actual.map_err(|error| error.reason());
            assert_eq!(actual, result, "{status}");
            assert_eq!(sent(&log), [format!("DELETE {OBJECTS}/a")]);
            let state = context.opt_in.state(KIND).unwrap();
            assert_eq!(state.object("a").is_some(), remains, "{status}");
        }
    }
}
