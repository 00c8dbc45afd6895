//! Writes results to the statuses of probes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::api::Patch;
use kube::{Api, Resource};
use serde_json::json;

use super::super::context::Context;
use super::super::probes::{Probed, name_of};
use crate::cluster::error::{Error, within};
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::generation::Generation;
use crate::controller::subjects::managed_fields::apply_params;
use crate::controller::subjects::probe::Probe;
use crate::controller::subjects::write_limiter::LimitedObject;
use crate::policy::subject::SubjectId;
use crate::probe::api::{CaseStatus, PolicyProbeStatus};
use crate::status::probes::{ProbeSubject, probe_status};
use crate::telemetry::metrics::ErrorReason;

/// The timeout of one write.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the probes whose statuses do not show the results `probed`, each with its desired status. `generation` is
/// the generation of the policy, or `None` if the policy does not exist.
///
/// Omits probes that have changed since their evaluation, because they will be evaluated again.
pub(super) fn behind(
    context: &Context,
    policy: &SubjectId,
    probed: &Probed,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<(Arc<Probe>, PolicyProbeStatus)> {
    let live = context.probes.for_policy(policy).unwrap_or_default();
    let of_probe = |probe: Arc<Probe>| {
        let evaluated = probed.probes.iter().find(|evaluated| {
            *evaluated.name == *name_of(&probe)
                && evaluated.generation == Generation::from_probe(&probe)
        })?;
        let problem = evaluated.problem.as_deref();
        let desired = desired(&probe, (&evaluated.cases(), problem), generation, now);
        let is_current = probe
            .status
            .as_ref()
            .is_some_and(|status| status.is(&desired));
        (!is_current).then_some((probe, desired))
    };
    live.into_iter().filter_map(of_probe).collect()
}

fn desired(
    probe: &Probe,
    (cases, problem): (&[CaseStatus], Option<&str>),
    generation: Option<i64>,
    now: Timestamp,
) -> PolicyProbeStatus {
    let status = probe.status.as_deref();
    let subject = ProbeSubject {
        name: name_of(probe),
        generation: probe.metadata.generation.unwrap_or_default(),
        policy_name: &probe.spec.policy_name,
        target: probe.spec.target.as_ref(),
        n_cases: probe.spec.n_cases,
        conditions: status.map_or(&[], |status| &status.conditions),
    };
    probe_status(&subject, cases, problem, generation, now)
}

/// Writes the statuses of the probes that do not show the results `probed`. Returns true if a write must be retried.
pub(super) async fn write(
    context: &Context,
    policy: &SubjectId,
    probed: &Probed,
    generation: Option<i64>,
) -> bool {
    let mut is_behind = false;
    for (probe, desired) in behind(context, policy, probed, generation, (context.now)()) {
        let error = match write_one(context, &probe, &desired).await {
            Ok(WriteOutcome::Done) => continue,
            Ok(WriteOutcome::Limited) => {
                is_behind = true;
                continue;
            }
            Err(error) => error,
        };
        match error.reason() {
            // The probe was deleted. The watch will report this.
            ErrorReason::NotFound => {}
            // The probe has changed or was recreated. The write is retried, since the watch queues the probe only if
            // the controller needs the changed fields.
            ErrorReason::Conflict => is_behind = true,
            reason => {
                is_behind = true;
                context.metrics.probe_write_failed(reason);
                log_failure(context, &probe, &error);
                let is_of_the_probe = matches!(
                    reason,
                    ErrorReason::Forbidden | ErrorReason::Invalid | ErrorReason::TooLarge
                );
                // Writes for other probes would fail with the same error, possibly after a timeout.
                if !is_of_the_probe {
                    break;
                }
            }
        }
    }
    is_behind
}

/// The outcome of a write without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOutcome {
    /// This instance has written the status, or is a standby.
    Done,
    /// The rate limit of writes for this probe is exceeded.
    Limited,
}

/// Writes one status. Fails with a conflict if the probe has changed since the status was computed.
async fn write_one(
    context: &Context,
    probe: &Probe,
    desired: &PolicyProbeStatus,
) -> Result<WriteOutcome, Error> {
    let api: Api<Probe> = Api::all(context.client.clone());
    let applied = json!({
        "apiVersion": Probe::api_version(&()),
        "kind": Probe::kind(&()),
        "metadata": {
            "name": name_of(probe),
            "uid": probe.metadata.uid,
            "resourceVersion": probe.metadata.resource_version,
        },
        "status": desired,
    });
    let params = apply_params();
    let patch = Patch::Apply(&applied);
    let Some(permit) = context.leadership.may_write() else {
        // The leader writes the status. All subjects are queued when this instance becomes the leader.
        return Ok(WriteOutcome::Done);
    };
    let name = name_of(probe);
    let object = LimitedObject::Probe(name.to_owned());
    if !context.write_limiter.may_write(object) {
        if context.log_throttle.is_due("write_limiter of probes") {
            tracing::warn!(
                probe = name,
                "the status of this probe changed 100 times in a minute, backing off: check whether a second \
                 vap-status-controller with a different version or different permissions writes it"
            );
        }
        return Ok(WriteOutcome::Limited);
    }
    let written = within(TIMEOUT, api.patch_status(name_of(probe), &params, &patch));
    let written = permit.within(written).await?;
    context.metrics.status_written();
    context.touch(context.probes.put(written, EventSource::Answered));
    Ok(WriteOutcome::Done)
}

/// Logs a failed write. Logs at most one failure per minute and error reason, for all probes together.
fn log_failure(context: &Context, probe: &Probe, error: &Error) {
    let reason = error.reason();
    if !context
        .log_throttle
        .is_due(&format!("probe statuses {}", reason.as_str()))
    {
        return;
    }
    let name = name_of(probe);
    match reason {
        ErrorReason::Forbidden => tracing::error!(
            probe = name,
            %error,
            "cannot write statuses of probes: grant `patch` on `policyprobes/status` (vap-status.dev) in \
             the ClusterRole vap-status-controller; retrying until then"
        ),
        ErrorReason::Invalid => tracing::error!(
            probe = name,
            %error,
            "the API server rejects the status of this probe: install the CustomResourceDefinition policyprobes.{} \
             of the controller's version; retrying until then",
            Probe::group(&())
        ),
        ErrorReason::TooLarge => tracing::error!(
            probe = name,
            %error,
            "the spec and status of this probe together exceed the size limit of an object: split the probe; \
             retrying until then"
        ),
        _ => tracing::warn!(
            probe = name,
            %error,
            "cannot write the status of a probe, retrying; similar failures are not logged for a minute"
        ),
    }
}
