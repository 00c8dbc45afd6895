//! Writes the status of a policy by server-side apply.
//!
//! The controller owns `observedGeneration`, `typeChecking` and its conditions. Conditions of other managers remain,
//! since server-side apply merges the list by the type of each condition. kube-controller-manager also applies
//! `observedGeneration` and `typeChecking`, once for each new generation. The controller applies them with force.
//!
//! A write contains the resource version from which the status was computed. If the policy has changed since then, the
//! API server rejects the write. So a status is written only to the generation from which it was computed.

use std::fmt;

use k8s_openapi::api::admissionregistration::v1::{ExpressionWarning, ValidatingAdmissionPolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::api::{Api, Patch};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::shared_conditions;
use crate::cluster::error::Error;
use crate::controller::context::Context;
use crate::controller::leadership::WritePermit;
use crate::controller::subjects::managed_fields::apply_params;
use crate::controller::subjects::store::Entry;
use crate::controller::watch::wire::WirePolicy;
use crate::status::DesiredStatus;
use crate::telemetry::metrics::ErrorReason;

/// The applied object. It contains only the fields that we own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    status: Status<'a>,
}

/// Preconditions of the write. The API server rejects the write if the policy was recreated (different uid) or has
/// changed (different resource version).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) enum Written<K = ValidatingAdmissionPolicy> {
    /// The write was accepted. The value is the new object.
    Applied(Box<K>),
    /// The object has changed since the status was computed.
    Conflict,
    Gone,
}

impl<K> Written<K> {
    /// Returns the outcome of a rejected write.
    ///
    /// # Errors
    /// Returns `error` if it is neither a conflict nor a missing object.
    pub(crate) fn from_error(error: Error) -> Result<Self, Error> {
        match error.reason() {
            ErrorReason::NotFound => Ok(Self::Gone),
            ErrorReason::Conflict => Ok(Self::Conflict),
            _ => Err(error),
        }
    }

    pub(crate) fn map<T>(self, make: impl FnOnce(K) -> T) -> Written<T> {
        match self {
            Self::Applied(written) => Written::Applied(Box::new(make(*written))),
            Self::Conflict => Written::Conflict,
            Self::Gone => Written::Gone,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    observed_generation: i64,
    type_checking: TypeChecking<'a>,
    conditions: &'a [Condition],
}

/// The list is written even if it is empty. If the field were omitted, a value applied by another manager would remain.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeChecking<'a> {
    expression_warnings: &'a [ExpressionWarning],
}

/// Writes the status `desired` of the policy `entry`, within the deadline of `permit`.
///
/// # Errors
/// Returns an error if the API server rejects the write or does not respond before the deadline.
pub(crate) async fn apply(
    context: &Context,
    permit: &WritePermit,
    entry: &Entry,
    desired: &DesiredStatus,
) -> Result<Written<WirePolicy>, Error> {
    let name = &*entry.id.name;
    let state = entry.identity.state();
    let applied = Applied {
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: Metadata {
            name,
            uid: state.uid,
            resource_version: state.resource_version,
        },
        status: Status {
            observed_generation: desired.observed_generation,
            type_checking: TypeChecking {
                expression_warnings: &desired.expression_warnings,
            },
            conditions: &desired.conditions,
        },
    };
    let params = apply_params();
    let patch = Patch::Apply(&applied);
    // Only the needed fields of the response are parsed.
    let policies: Api<WirePolicy> = Api::all(context.client.clone());
    let written = permit.within(policies.patch_status(name, &params, &patch));
    match written.await {
        Ok(written) => {
            context.metrics.status_written();
            let status = written.policy.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_deref());
            let Some(kept) = desired.without_stale(conditions.unwrap_or_default()) else {
                return Ok(Written::Applied(Box::new(written)));
            };
            retain(
                context,
                permit,
                (&policies, &written.policy.metadata),
                &kept,
            )
            .await
        }
        Err(error) => Written::from_error(error),
    }
}

/// Replaces the conditions with `kept`. This is necessary if an apply could not remove an outdated condition that
/// another field manager also owns.
///
/// # Errors
/// Returns an error if the API server rejects the write or does not respond before the deadline.
pub(crate) async fn retain<K>(
    context: &Context,
    permit: &WritePermit,
    (api, seen): (&Api<K>, &ObjectMeta),
    kept: &[Condition],
) -> Result<Written<K>, Error>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    tracing::info!(
        name = seen.name,
        "removing an outdated condition that another field manager also owns"
    );
    let written = permit.within(shared_conditions::retain(api, seen, kept));
    match written.await {
        Ok(written) => {
            context.metrics.status_written();
            Ok(Written::Applied(Box::new(written)))
        }
        Err(error) => Written::from_error(error),
    }
}
