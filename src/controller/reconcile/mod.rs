//! Reconciles one subject: collects its facts, computes its status, and writes the status.
//!
//! [`observe`] collects the facts, with the result of the type check from [`check`]. [`crate::status::compute()`]
//! computes the status from the facts. [`apply`] or [`status_objects`] writes the status. [`Skipped`] is the reason why
//! no status is written.

pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod clear_status;
pub(crate) mod events;
pub(crate) mod excluded;
pub(crate) mod observe;
pub(crate) mod periodic_resync;
pub(crate) mod result;
pub(crate) mod shared_conditions;
pub(crate) mod slow_checks;
pub(crate) mod status_objects;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::context::Context;
use super::leadership::WritePermit;
use crate::cluster::error::Error;
use crate::controller::probe_runner;
use crate::controller::probes::Probed;
use crate::controller::process::queue::random;
use crate::controller::process::supervisor::WORK_LIMIT;
use crate::controller::reconcile::apply::{Written, apply};
use crate::controller::reconcile::observe::{Facts, observe};
use crate::controller::reconcile::result::{ReconcileError, ReconcileResult};
use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::opt_in::{self, OptInState};
use crate::controller::subjects::params::Referrer;
use crate::controller::subjects::store::Entry;
use crate::controller::subjects::write_limiter::LimitedObject;
use crate::controller::watch::wire::WirePolicy;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::status::condition::{ConditionStatus, ConditionType, Reason};
use crate::status::object::StatusObject;
use crate::status::{DesiredStatus, compute};
use crate::telemetry::metrics::{
    ConditionSample, ErrorReason, PolicySample, ProbeSample, ReconcileOutcome, Skipped,
};

/// How long writes in progress may take after a stop is requested. A pod is killed some seconds later.
const MAX_ENDING: Duration = Duration::from_secs(5);

/// Updates the status of the subject `id`. If the subject does not exist, removes its stored data.
pub(crate) async fn reconcile(
    context: &Arc<Context>,
    id: &SubjectId,
) -> Result<ReconcileResult, ReconcileError> {
    let Some(mut entry) = context.store.get(id) else {
        return deleted(context, id).await;
    };
    if let Some(result) = load_status(context, &mut entry).await? {
        return Ok(result);
    }
    let facts = match observe(context, &entry, &context.snapshot()).await? {
        Ok(facts) => facts,
        Err(reason) => return Ok(reason.into()),
    };
    if facts.is_reading_params() && has_current_status(&entry) {
        // The status of this generation remains until the params are known.
        return Ok(Skipped::ParamsLoading.into());
    }
    let desired = desired(context, id, &facts);
    let probes = facts.probed().map(Probed::samples).unwrap_or_default();
    context
        .metrics
        .set_policy(id, sample(&facts, &desired, probes));
    apply_status(context, &entry, &desired).await
}

async fn deleted(
    context: &Arc<Context>,
    id: &SubjectId,
) -> Result<ReconcileResult, ReconcileError> {
    if let Some(state) = context.opt_in.state(id.kind) {
        return delete_status_object(context, state, id, ReconcileResult::Deleted).await;
    }
    forget(context, id);
    context
        .metrics
        .set_missing_policy(id, probe_runner::names(context, id));
    context.probe_runner.add(id);
    Ok(ReconcileResult::Deleted)
}

/// Writes the status `desired` of `entry`. Skips the write if the status is current, this instance does not lead, or
/// the rate limit is exceeded.
async fn apply_status(
    context: &Context,
    entry: &Entry,
    desired: &DesiredStatus,
) -> Result<ReconcileResult, ReconcileError> {
    let id = &entry.id;
    if entry.owns_status && desired.is_satisfied_by(entry.status.as_ref()) {
        return Ok(Skipped::Equal.into());
    }
    let Some(permit) = context.leadership.may_write() else {
        // The leader writes the status. When this instance becomes the leader, all subjects are queued.
        return Ok(Skipped::NotLeader.into());
    };
    let object = LimitedObject::Subject(id.clone());
    if !context.write_limiter.may_write(object) {
        if context.log_throttle.is_due("write_limiter") {
            tracing::warn!(
                policy = id.to_string(),
                "the status of this policy changed 100 times in a minute, backing off: check whether a second \
                 vap-status-controller with a different version or different flags writes it"
            );
        }
        return Ok(Skipped::RateLimited.into());
    }
    let written = match write(context, &permit, entry, desired).await? {
        Written::Applied(written) => *written,
        // The watch queues the policy with its current state. The policy is also retried, since the watch may be late.
        Written::Conflict => return Ok(ReconcileResult::Conflict),
        Written::Gone => return Ok(ReconcileResult::Deleted),
    };
    tracing::info!(
        policy = id.to_string(),
        ready = ready(desired),
        "wrote the status"
    );
    events::publish(context, entry, desired);
    store_written(context, entry, written);
    Ok(ReconcileResult::Applied)
}

/// Stores the object that the API server returned for a write.
fn store_written(context: &Context, entry: &Entry, written: WrittenObject) {
    match written {
        WrittenObject::Policy(written) => {
            // The status was computed for the spec that the watch reported. If the response has another spec than the
            // watch reported, the policy is reconciled again.
            let (metadata, policy, status) = written.parts();
            let is_other = Some(&policy) != entry.subject.policy();
            let store = &context.store;
            let is_stored = store.put_policy(&metadata, policy, status, EventSource::Answered);
            if is_stored && is_other {
                context.queue.add(&entry.id);
            }
        }
        WrittenObject::Status(written) => {
            if let Some(state) = context.opt_in.state(entry.id.kind) {
                state.put(written, EventSource::Answered);
            }
        }
    }
}

fn desired(context: &Context, id: &SubjectId, facts: &Facts) -> DesiredStatus {
    let now = (context.now)();
    let mut observed = facts.observed(&context.settings.ready_requires);
    let desired = compute(&observed, now);
    if !context
        .stale_conditions
        .is_stale(id, desired.has_retained, Instant::now())
    {
        return desired;
    }
    observed.staleness.is_retained_long = true;
    compute(&observed, now)
}

/// Removes cached data about a subject. The subject itself remains stored.
fn forget(context: &Context, id: &SubjectId) {
    context.admissions.forget(id);
    context.stale_conditions.forget(id);
    context.lanes.forget(id);
    context.params.forget(id, Referrer::Bindings);
    context.params.forget(id, Referrer::Probes);
}

/// If the kind of `entry` has no status, sets the status of `entry` from its status object.
///
/// Returns a result if the subject must not be checked: because it is excluded or has no rules, or because its kind is
/// loading.
async fn load_status(
    context: &Arc<Context>,
    entry: &mut Entry,
) -> Result<Option<ReconcileResult>, ReconcileError> {
    let id = &entry.id;
    let Some(state) = context.opt_in.state(id.kind) else {
        let Some(excluded) = entry.excluded else {
            return Ok(None);
        };
        context.stale_conditions.forget(id);
        return excluded::leave(context, entry, excluded).await.map(Some);
    };
    if entry.excluded.is_some() {
        let otherwise = Skipped::Excluded.into();
        let result = delete_status_object(context, state, id, otherwise).await;
        return result.map(Some);
    }
    if !state.is_known() {
        // When the kind is loaded, the subject is queued again. If an obstacle prevents this, the statuses of the
        // probes report the obstacle.
        if state.obstacle().is_some() {
            context.metrics.remove_policy(id);
            context.probe_runner.add(id);
        }
        return Ok(Some(Skipped::KindLoading.into()));
    }
    if entry.kind() == SubjectKind::CustomResourceDefinition && !entry.subject.has_rules() {
        match probe_runner::has_probes(context, id) {
            None => return Ok(Some(Skipped::ProbesLoading.into())),
            Some(false) => {
                let otherwise = Skipped::NoRules.into();
                let result = delete_status_object(context, state, id, otherwise).await;
                return result.map(Some);
            }
            Some(true) => {}
        }
    }
    let object = state.object(&id.name);
    entry.status = object.and_then(|object| object.status_of(entry));
    Ok(None)
}

/// The API server's response to a write of a status.
enum WrittenObject {
    /// A ValidatingAdmissionPolicy. Its kind has a status.
    Policy(WirePolicy),
    /// The status object of a subject whose kind has no status.
    Status(StatusObject),
}

/// Writes the status `desired` to the subject or to its status object.
async fn write(
    context: &Context,
    permit: &WritePermit,
    entry: &Entry,
    desired: &DesiredStatus,
) -> Result<Written<WrittenObject>, Error> {
    if context.opt_in.state(entry.kind()).is_some() {
        let written = status_objects::apply(context, permit, entry, desired).await?;
        return Ok(written.map(WrittenObject::Status));
    }
    let written = apply(context, permit, entry, desired).await?;
    Ok(written.map(WrittenObject::Policy))
}

/// Removes the stored data of a subject, and deletes its status object. The subject is deleted or must not be checked.
/// Returns `otherwise` if there is no status object.
async fn delete_status_object(
    context: &Arc<Context>,
    state: &OptInState,
    id: &SubjectId,
    otherwise: ReconcileResult,
) -> Result<ReconcileResult, ReconcileError> {
    forget(context, id);
    context.metrics.remove_policy(id);
    // This also changes the statuses of the subject's probes, so the probes are queued.
    context.probe_runner.add(id);
    let Some(object) = state.orphan(&id.name) else {
        return Ok(otherwise);
    };
    let Some(permit) = context.leadership.may_write() else {
        return Ok(Skipped::NotLeader.into());
    };
    Ok(status_objects::delete(context, &permit, (id, state), &object).await?)
}

/// Returns the status of `Ready` for the log, with the reason if the status is not True.
fn ready(desired: &DesiredStatus) -> String {
    match desired.conditions.first() {
        Some(ready) if ready.status == "True" => ready.status.clone(),
        Some(ready) => format!("{} ({})", ready.status, ready.reason),
        None => String::new(),
    }
}

/// Returns true if the status of `entry` is for the current generation and has conditions.
fn has_current_status(entry: &Entry) -> bool {
    let status = entry.status.as_ref();
    status.is_some_and(|status| {
        status.observed_generation == entry.identity.generation() && status.conditions.is_some()
    })
}

fn sample(facts: &Facts, desired: &DesiredStatus, probes: Vec<ProbeSample>) -> PolicySample {
    let conditions = desired.conditions.iter().filter_map(|condition| {
        Some(ConditionSample {
            type_: ConditionType::from_name(&condition.type_)?.as_str(),
            status: ConditionStatus::from_condition(condition).as_str(),
            reason: Reason::from_name(&condition.reason)?.as_str(),
        })
    });
    PolicySample {
        conditions: conditions.collect(),
        failure_policy: facts.failure_policy(),
        actions: facts.actions(),
        n_warnings: desired.n_type_warnings,
        probes,
    }
}

/// Reconciles queued subjects until `stop` completes. Then finishes the work in progress.
pub(crate) async fn work(context: Arc<Context>, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        () = context.started() => {}
        () = &mut stop => return,
    }
    tracing::info!(
        policies = context.queue.len(),
        excluded = context.store.n_excluded(),
        "caches synced, reconciling"
    );
    let mut tasks = JoinSet::new();
    let heartbeat = context.supervisor.heartbeat("workers", WORK_LIMIT);
    let mut idle = tokio::time::interval(WORK_LIMIT / 10);
    loop {
        let has_room = tasks.len() < context.settings.concurrency;
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = tasks.join_next() => heartbeat.beat(),
            _ = idle.tick(), if tasks.is_empty() => heartbeat.beat(),
            id = context.queue.next(), if has_room => {
                let context = Arc::clone(&context);
                tasks.spawn(async move { process(&context, &id).await });
            }
        }
    }
    let n_running = tasks.len();
    if n_running > 0 {
        tracing::info!(
            policies = n_running,
            "stopping: finishing the work in progress"
        );
    }
    let rest = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(MAX_ENDING, rest).await.is_err() {
        tracing::warn!("stopping before the API server has responded to all writes");
    }
}

/// Reconciles one subject, and marks it as done or failed in the queue.
async fn process(context: &Arc<Context>, id: &SubjectId) {
    let start = Instant::now();
    let done = AssertUnwindSafe(reconcile(context, id))
        .catch_unwind()
        .await;
    let seconds = start.elapsed().as_secs_f64();
    let outcome = match done {
        Ok(Ok(result)) => {
            if let ReconcileResult::Skipped(reason) = result {
                context.metrics.write_skipped(reason);
                tracing::debug!(
                    policy = id.to_string(),
                    reason = reason.as_str(),
                    "skipped the write of the status"
                );
            }
            if result.retries_with_backoff() {
                context.queue.failed(id, random());
            } else {
                context.queue.done(id);
            }
            result.outcome()
        }
        Ok(Err(failure)) => {
            context.metrics.reconcile_failed(failure.reason());
            let pause = context.queue.failed(id, random());
            log_failure(context, id, &failure, pause.as_secs_f64());
            ReconcileOutcome::Failed
        }
        Err(_) => {
            context.metrics.reconcile_failed(ErrorReason::Panic);
            context.queue.failed(id, random());
            tracing::error!(
                policy = id.to_string(),
                "a reconciliation panicked, which is a bug; please report it"
            );
            ReconcileOutcome::Failed
        }
    };
    tracing::debug!(
        policy = id.to_string(),
        outcome = outcome.as_str(),
        seconds,
        "reconciled"
    );
    context.metrics.reconciled(outcome, seconds);
}

/// Returns the key that limits log messages about similar failures. Usually many policies fail for the same reason. For
/// a missing permission, there is one key per kind, since permissions are granted per kind.
fn failure_key(kind: SubjectKind, reason: ErrorReason) -> String {
    match reason {
        ErrorReason::Forbidden | ErrorReason::Invalid => {
            format!("{} {}", reason.as_str(), kind.plural())
        }
        _ => reason.as_str().to_owned(),
    }
}

/// Logs a failed reconciliation. Logs at most one failure per minute and [`failure_key`].
fn log_failure(context: &Context, id: &SubjectId, failure: &ReconcileError, retry_in: f64) {
    let reason = failure.reason();
    if !context.log_throttle.is_due(&failure_key(id.kind, reason)) {
        tracing::debug!(policy = id.to_string(), error = %failure, retry_in, "cannot write the status");
        return;
    }
    if let ReconcileError::Unread(_) = failure {
        tracing::warn!(
            policy = id.to_string(),
            error = %failure,
            retry_in,
            "cannot read this CustomResourceDefinition, retrying; similar failures are not logged for a minute"
        );
    } else if reason == ErrorReason::Forbidden
        && let Some(object) = &id.kind.row().status_object
    {
        tracing::error!(
            policy = id.to_string(),
            error = %failure,
            "cannot write the conditions of {}: grant `create` and `delete` on `{}` (vap-status.dev), and `patch` on \
             its status, in the ClusterRole {}; ignore this if its CRD is being deleted",
            id.kind.plural(),
            object.plural,
            opt_in::role(id.kind)
        );
    } else if reason == ErrorReason::Invalid
        && let Some(object) = &id.kind.row().status_object
    {
        tracing::error!(
            policy = id.to_string(),
            error = %failure,
            retry_in,
            "the API server rejects the conditions of {}: install the CustomResourceDefinition \
             {}.vap-status.dev of the controller's version; retrying until then",
            id.kind.plural(),
            object.plural
        );
    } else if reason == ErrorReason::Forbidden {
        tracing::error!(
            policy = id.to_string(),
            error = %failure,
            "cannot write statuses: grant `patch` on `validatingadmissionpolicies/status` \
             (admissionregistration.k8s.io) in the ClusterRole vap-status-controller"
        );
    } else {
        tracing::warn!(
            policy = id.to_string(),
            error = %failure,
            retry_in,
            "cannot write the status, retrying; similar failures are not logged for a minute"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn failure_keys_differ_by_kind_if_api_server_responds() {
        for reason in [ErrorReason::Forbidden, ErrorReason::Invalid] {
            let keys = SubjectKind::ALL.map(|kind| failure_key(kind, reason));
            assert_eq!(BTreeSet::from(keys).len(), SubjectKind::ALL.len());
        }
        // If the API server does not respond, all kinds have the same key.
        for reason in [ErrorReason::Timeout, ErrorReason::Connection] {
            let keys = SubjectKind::ALL.map(|kind| failure_key(kind, reason));
            assert_eq!(BTreeSet::from(keys).len(), 1);
        }
    }
}
