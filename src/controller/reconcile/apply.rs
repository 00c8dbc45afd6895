//! Server-side apply to the status of a policy.
//!
//! We own `observedGeneration`, `typeChecking` and our conditions. Conditions of others remain, as the list is a map by
//! type. kube-controller-manager applies the first two as well, once for each new generation; we force ownership.
//!
//! A write has the resource version that it was computed from. The API server rejects it if the policy has changed
//! since, so that no status lands on another generation.

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

/// The applied object, with only the fields that we own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    status: Status<'a>,
}

/// With the uid, the API server rejects a write to another policy of the same name; with the resource version, to
/// another state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

/// Outcome of a write.
#[derive(Debug)]
pub(crate) enum Written<K = ValidatingAdmissionPolicy> {
    /// The write was accepted. The value is the new object.
    Applied(Box<K>),
    /// The object differs from the one that the status was computed from.
    Conflict,
    /// The object does not exist.
    Gone,
}

impl<K> Written<K> {
    /// Returns the outcome of a rejected write.
    ///
    /// # Errors
    /// Returns the error if it is not about the state of the object.
    pub(crate) fn from_error(error: Error) -> Result<Self, Error> {
        match error.reason() {
            ErrorReason::NotFound => Ok(Self::Gone),
            ErrorReason::Conflict => Ok(Self::Conflict),
            _ => Err(error),
        }
    }

    /// Converts the written object.
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

/// The list is written even if it is empty: an omitted field would leave a value that another manager has applied.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeChecking<'a> {
    expression_warnings: &'a [ExpressionWarning],
}

/// Writes the status of the policy `entry`, within the time of `permit`.
///
/// # Errors
/// If the API server does not accept it in time.
pub(crate) async fn apply(
    context: &Context,
    permit: &WritePermit,
    entry: &Entry,
    desired: &DesiredStatus,
) -> Result<Written, Error> {
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
    // Only the needed part of the response is parsed.
    let policies: Api<WirePolicy> = Api::all(context.client.clone());
    let written = permit.within(policies.patch_status(name, &params, &patch));
    match written.await {
        Ok(written) => {
            context.metrics.status_written();
            let status = written.0.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.as_deref());
            let Some(kept) = desired.without_stale(conditions.unwrap_or_default()) else {
                return Ok(Written::Applied(Box::new(written.0)));
            };
            retain(context, permit, (&policies, &written.0.metadata), &kept)
                .await
                .map(|written| written.map(|WirePolicy(written)| written))
        }
        Err(error) => Written::from_error(error),
    }
}

/// Writes the remaining conditions if an apply could not remove an outdated one because another manager owns it as
/// well.
///
/// # Errors
/// If the API server does not accept it in time.
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
        "removing an outdated condition that another field manager owns as well"
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
