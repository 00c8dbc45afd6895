//! Applying: one server-side apply to the status of a policy.
//!
//! We own `observedGeneration`, `typeChecking` and our conditions. Conditions of others survive, as
//! the list is a map by type. kube-controller-manager applies the first two as well, once for each
//! new generation; we take them back by force.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{ExpressionWarning, ValidatingAdmissionPolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use serde::Serialize;

use super::context::Context;
use super::error::{Error, within};
use crate::status::DesiredStatus;
use crate::telemetry::metrics::ErrorReason;

/// The name under which we own fields.
pub const FIELD_MANAGER: &str = "vap-status-controller";

/// How long a write may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What is applied: our fields and no others.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Applied<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    status: Status<'a>,
}

/// The uid makes the API server refuse to write to another policy of the same name.
#[derive(Debug, Serialize)]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    observed_generation: i64,
    type_checking: TypeChecking<'a>,
    conditions: &'a [Condition],
}

/// The list is written even if it is empty: only a field that is applied can take the place of one
/// that somebody else applied before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeChecking<'a> {
    expression_warnings: &'a [ExpressionWarning],
}

/// Writes the status of `policy`; the answer is the policy as it is now, or `None` if it is gone.
///
/// # Errors
/// Where the API server does not take it, or not in time.
pub(crate) async fn apply(
    context: &Context,
    policy: &ValidatingAdmissionPolicy,
    desired: &DesiredStatus,
) -> Result<Option<ValidatingAdmissionPolicy>, Error> {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let applied = Applied {
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingAdmissionPolicy",
        metadata: Metadata {
            name,
            uid: policy.metadata.uid.as_deref(),
        },
        status: Status {
            observed_generation: desired.observed_generation,
            type_checking: TypeChecking {
                expression_warnings: &desired.expression_warnings,
            },
            conditions: &desired.conditions,
        },
    };
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let patch = Patch::Apply(&applied);
    let policies = context.policies();
    match within(WRITE_TIMEOUT, policies.patch_status(name, &params, &patch)).await {
        Ok(written) => {
            context.metrics.status_written();
            Ok(Some(written))
        }
        Err(error) if error.reason() == ErrorReason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
