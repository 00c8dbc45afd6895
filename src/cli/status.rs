//! Reads policies and the controller's Lease from a cluster, for `kubectl vap status`.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::Value;

use super::args::StatusArgs;
use super::connection::{Connected, innermost, one_line};
use super::controller::{LeaseFacts, Seen};
use super::error::CliError;
use super::live::{self, Gap, Selection, objects};
use crate::status::exclusion::Exclusion;
use crate::status::lease;

/// The longest wait for the Lease, which is the lesser thing to know.
const MAX_LEASE_WAIT: Duration = Duration::from_secs(5);

/// The present moment, against which ages are told.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Objects read from a cluster.
#[derive(Debug)]
pub(crate) struct Read {
    /// The policies that were asked for, in the order of their names or of the arguments.
    pub(crate) policies: Vec<ValidatingAdmissionPolicy>,
    /// The controller's Lease.
    pub(crate) lease: Seen,
}

/// The policies of the cluster that are asked for, and the controller's Lease.
///
/// # Errors
/// No usable kubeconfig, no answer in time, an answer that refuses, or no such policy.
pub(super) async fn read(
    connected: &Connected,
    args: &StatusArgs,
    selection: &Selection,
    gaps: &mut Vec<Gap>,
) -> Result<Read, CliError> {
    let policies = live::policies(connected, selection, gaps);
    let (policies, lease) = tokio::join!(policies, lease(connected, args));
    let policies = policies?.into_iter().map(decoded);
    Ok(Read {
        policies: policies.collect::<Result<_, _>>()?,
        lease,
    })
}

/// A policy out of JSON.
fn decoded(policy: Value) -> Result<ValidatingAdmissionPolicy, CliError> {
    let name = objects::name(&policy).to_owned();
    serde_json::from_value(policy).map_err(|error| CliError::Undecodable {
        name,
        reason: error.to_string(),
    })
}

/// Reads the controller's Lease. A failure here is no reason not to show the policies.
async fn lease(connected: &Connected, args: &StatusArgs) -> Seen {
    let leases: Api<Lease> =
        Api::namespaced(connected.client.clone(), &args.controller_namespace);
    let limit = MAX_LEASE_WAIT.min(connected.timeout);
    match tokio::time::timeout(limit, leases.get_opt(&args.lease_name)).await {
        Ok(Ok(Some(lease))) => {
            let annotations = lease.metadata.annotations.unwrap_or_default();
            let in_step_at = annotations.get(lease::IN_STEP_AT);
            let spec = lease.spec.unwrap_or_default();
            Seen::Lease(LeaseFacts {
                in_step_at: in_step_at.and_then(|text| text.parse().ok()),
                renewed_at: spec.renew_time.map(|time| time.0),
                is_held: spec
                    .holder_identity
                    .is_some_and(|holder| !holder.is_empty()),
                holds_for: i64::from(
                    spec.lease_duration_seconds
                        .unwrap_or(lease::DEFAULT_DURATION_SECONDS),
                ),
                exclusion: Exclusion::of_annotations(&annotations),
            })
        }
        Ok(Ok(None)) => Seen::Missing,
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Seen::Missing,
        Ok(Err(kube::Error::Api(status))) => Seen::Unreadable(one_line(&status.message)),
        Ok(Err(error)) => Seen::Unreadable(innermost(&error)),
        Err(_) => Seen::Unreadable(format!("no answer within {} s", limit.as_secs())),
    }
}
