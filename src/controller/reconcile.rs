//! Reconciling one policy: observe, compute, apply.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::apply::{Written, apply};
use super::check::Interrupted;
use super::context::Context;
use super::error::Error;
use super::event_source::EventSource;
use super::events;
use super::exclude;
use super::leadership::Deadline;
use super::observe::{Facts, observe};
use super::opt_in::{self, OptInState};
use super::params::Referrer;
use super::probe_runner::{self, Probed};
use super::store::Entry;
use super::supervisor::WORK_LIMIT;
use super::write_limiter::LimitedObject;
use crate::policy::subject::{SubjectId, SubjectKind};
use crate::status::condition::{ConditionStatus, ConditionType, Reason};
use crate::status::object::StatusObject;
use crate::status::{DesiredStatus, compute};
use crate::telemetry::metrics::{
    ConditionSample, ErrorReason, PolicySample, ProbeSample, ReconcileOutcome,
};

/// How long writes that were begun may take once the process is told to stop. A pod is killed some
/// seconds later.
const MAX_ENDING: Duration = Duration::from_secs(5);

/// How a reconciliation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reconciled {
    pub(crate) outcome: ReconcileOutcome,
    /// True if something is unavailable that has to be requested again.
    pub(crate) retries_with_backoff: bool,
}

impl Reconciled {
    /// Nothing was to be done.
    const fn unchanged() -> Self {
        Self {
            outcome: ReconcileOutcome::Unchanged,
            retries_with_backoff: false,
        }
    }
}

/// Why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Request(#[from] Error),
    /// A failure to read the object that is to be judged.
    #[error("{0}")]
    Unread(Error),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl Failure {
    pub(crate) fn reason(&self) -> ErrorReason {
        match self {
            Self::Request(error) | Self::Unread(error) => error.reason(),
            Self::Interrupted(_) => ErrorReason::Other,
        }
    }
}

/// Brings the status of a subject up to date.
pub(crate) async fn reconcile(
    context: &Arc<Context>,
    id: &SubjectId,
) -> Result<Reconciled, Failure> {
    let Some(mut entry) = context.store.get(id) else {
        if let Some(state) = context.opt_in.of(id.kind) {
            return gone(context, state, id).await;
        }
        forget(context, id);
        context
            .metrics
            .set_missing_policy(id, probe_runner::names(context, id));
        context.probe_runner.add(id);
        return Ok(Reconciled {
            outcome: ReconcileOutcome::Deleted,
            retries_with_backoff: false,
        });
    };
    if let Some(state) = context.opt_in.of(id.kind)
        && let Some(ended) = take_status(context, state, &mut entry).await?
    {
        return Ok(ended);
    }
    if let Some(excluded) = entry.excluded {
        context.kept.forget(id);
        return exclude::leave(context, &entry, excluded).await;
    }
    let Some(facts) = observe(context, &entry, &context.snapshot()).await? else {
        // Schemas are on their way, which gives a sign.
        return Ok(Reconciled::unchanged());
    };
    if facts.is_reading_params() && is_told(&entry.policy) {
        // What was said of this generation stands until the params are known, which gives a sign.
        return Ok(Reconciled::unchanged());
    }
    let desired = desired(context, id, &facts);
    let probes = facts.probed().map(Probed::samples).unwrap_or_default();
    context
        .metrics
        .set_policy(id, sample(&facts, &desired, probes));
    if entry.has_ours && desired.is_met_by(entry.policy.status.as_ref()) {
        return Ok(Reconciled::unchanged());
    }
    let Some(deadline) = context.leadership.may_write() else {
        // Whoever leads writes it; on becoming leader everything is looked at again.
        return Ok(Reconciled {
            outcome: ReconcileOutcome::Observed,
            retries_with_backoff: false,
        });
    };
    if !context
        .write_limiter
        .may_write(LimitedObject::Subject(id.clone()))
    {
        if context.log_throttle.is_due("write_limiter") {
            tracing::warn!(
                policy = id.to_string(),
                "the status was written 100 times in a minute, each time with other contents: does a second \
                 vap-status-controller write it, of another version or with other flags? Backing off"
            );
        }
        return Ok(Reconciled {
            outcome: ReconcileOutcome::Conflict,
            retries_with_backoff: true,
        });
    }
    let written = match write(context, &deadline, &entry, &desired).await? {
        Written::Applied(written) => written,
        // The watch tells of what it is now; should it be late, the policy comes back after a pause.
        Written::Conflict => {
            return Ok(Reconciled {
                outcome: ReconcileOutcome::Conflict,
                retries_with_backoff: true,
            });
        }
        // The watch will say so.
        Written::Gone => {
            return Ok(Reconciled {
                outcome: ReconcileOutcome::Deleted,
                retries_with_backoff: false,
            });
        }
    };
    tracing::info!(
        policy = id.to_string(),
        ready = ready(&desired),
        "wrote the status"
    );
    events::publish(context, &entry, &desired);
    match *written {
        Judged::Policy(written) => {
            // What was judged came by the watch; should it not be what is stored, that is judged next.
            let is_other = written.spec != entry.policy.spec;
            if context.store.put(written, EventSource::Answered) && is_other {
                context.queue.add(id);
            }
        }
        Judged::Object(written) => {
            if let Some(state) = context.opt_in.of(id.kind) {
                state.put(written, EventSource::Answered);
            }
        }
    }
    Ok(Reconciled {
        outcome: ReconcileOutcome::Applied,
        retries_with_backoff: false,
    })
}

/// The status that a subject should have, by what was observed.
fn desired(context: &Context, id: &SubjectId, facts: &Facts) -> DesiredStatus {
    let now = (context.now)();
    let mut observed = facts.observed(&context.settings.ready_requires);
    let desired = compute(&observed, now);
    if !(context.kept).lasts(id, desired.is_kept, Instant::now()) {
        return desired;
    }
    observed.staleness.is_kept_long = true;
    compute(&observed, now)
}

/// Forgets what is known of a policy beside the policy itself.
fn forget(context: &Context, id: &SubjectId) {
    context.admissions.forget(id);
    context.kept.forget(id);
    context.lanes.forget(id);
    context.params.forget(id, Referrer::Bindings);
    context.params.forget(id, Referrer::Probes);
}

/// Gives the policy `entry`, which is of a kind that has no status of ours, the status that its object holds; or the
/// outcome, where it is not judged.
async fn take_status(
    context: &Arc<Context>,
    state: &OptInState,
    entry: &mut Entry,
) -> Result<Option<Reconciled>, Failure> {
    let id = &entry.id;
    if entry.excluded.is_some() {
        return gone(context, state, id).await.map(Some);
    }
    if !state.is_known() {
        // There is a sign when it is. Where there will be none, its probes say so.
        if state.obstacle().is_some() {
            context.metrics.remove_policy(id);
            context.probe_runner.add(id);
        }
        return Ok(Some(Reconciled::unchanged()));
    }
    if entry.kind() == SubjectKind::CustomResourceDefinition && !entry.has_rules() {
        match probe_runner::has_probes(context, id) {
            // Whether there is something to say is known when they are.
            None => return Ok(Some(Reconciled::unchanged())),
            Some(false) => return gone(context, state, id).await.map(Some),
            Some(true) => {}
        }
    }
    let object = state.object(&id.name);
    let status = object.and_then(|object| object.status_of(entry));
    Arc::make_mut(&mut entry.policy).status = status;
    Ok(None)
}

/// The object that a status was written to.
enum Judged {
    /// The policy itself.
    Policy(ValidatingAdmissionPolicy),
    /// The object that holds the conditions of a policy without a status.
    Object(StatusObject),
}

/// Writes what is to be said of the policy `entry`, to where it belongs.
async fn write(
    context: &Context,
    deadline: &Deadline,
    entry: &Entry,
    desired: &DesiredStatus,
) -> Result<Written<Judged>, Error> {
    if entry.body.is_some() {
        let written = opt_in::apply(context, deadline, entry, desired).await?;
        return Ok(written.map(Judged::Object));
    }
    let written = apply(context, deadline, &entry.policy, desired).await?;
    Ok(written.map(Judged::Policy))
}

/// Ends what was said of a policy that has no status of its own and is gone, or left alone.
async fn gone(
    context: &Arc<Context>,
    state: &OptInState,
    id: &SubjectId,
) -> Result<Reconciled, Failure> {
    forget(context, id);
    context.metrics.remove_policy(id);
    // Its probes are told.
    context.probe_runner.add(id);
    let ended = |outcome| Reconciled {
        outcome,
        // The watch tells of what it is now; should it be late, it comes back after a pause.
        retries_with_backoff: outcome == ReconcileOutcome::Conflict,
    };
    let Some(object) = state.orphan(&id.name) else {
        // Of a definition without rules there never was one.
        let outcome = if context.store.has(id) {
            ReconcileOutcome::Unchanged
        } else {
            ReconcileOutcome::Deleted
        };
        return Ok(ended(outcome));
    };
    let Some(deadline) = context.leadership.may_write() else {
        return Ok(ended(ReconcileOutcome::Observed));
    };
    let outcome = opt_in::delete(context, &deadline, (id, state), &object).await?;
    Ok(ended(outcome))
}

/// `True`, or the status of `Ready` with its reason.
fn ready(desired: &DesiredStatus) -> String {
    match desired.conditions.first() {
        Some(ready) if ready.status == "True" => ready.status.clone(),
        Some(ready) => format!("{} ({})", ready.status, ready.reason),
        None => String::new(),
    }
}

/// Reports whether the status is about this very generation.
fn is_told(policy: &ValidatingAdmissionPolicy) -> bool {
    let status = policy.status.as_ref();
    status.is_some_and(|status| {
        status.observed_generation == policy.metadata.generation && status.conditions.is_some()
    })
}

fn sample(facts: &Facts, desired: &DesiredStatus, probes: Vec<ProbeSample>) -> PolicySample {
    let conditions = desired.conditions.iter().filter_map(|condition| {
        Some(ConditionSample {
            type_: ConditionType::from_name(&condition.type_)?.as_str(),
            status: ConditionStatus::of(condition).as_str(),
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

/// Works through the queue until `stop`, and then ends what was begun.
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
        tracing::warn!("stopping although the API server has not answered all writes");
    }
}

/// Reconciles one subject of the queue and gives it back.
async fn process(context: &Arc<Context>, id: &SubjectId) {
    let start = Instant::now();
    let done = AssertUnwindSafe(reconcile(context, id))
        .catch_unwind()
        .await;
    let seconds = start.elapsed().as_secs_f64();
    let outcome = match done {
        Ok(Ok(Reconciled {
            outcome,
            retries_with_backoff,
        })) => {
            if retries_with_backoff {
                context.queue.failed(id, random());
            } else {
                context.queue.done(id);
            }
            outcome
        }
        Ok(Err(failure)) => {
            context.metrics.reconcile_failed(failure.reason());
            let pause = context.queue.failed(id, random());
            complain(context, id, &failure, pause.as_secs_f64());
            ReconcileOutcome::Failed
        }
        Err(_) => {
            context.metrics.reconcile_failed(ErrorReason::Panic);
            context.queue.failed(id, random());
            tracing::error!(
                policy = id.to_string(),
                "a reconciliation panicked; please report it"
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

/// The key by which a failure is logged once a minute: policies mostly fail for one cause. Rights are given for each
/// kind that is followed, and a missing one is to be named for each.
fn failure_key(kind: SubjectKind, reason: ErrorReason) -> String {
    match reason {
        ErrorReason::Forbidden | ErrorReason::Invalid => {
            format!("{} {}", reason.as_str(), kind.plural())
        }
        _ => reason.as_str().to_owned(),
    }
}

/// Says what went wrong, once a minute for all policies that fail for one cause.
fn complain(context: &Context, id: &SubjectId, failure: &Failure, retry_in: f64) {
    let reason = failure.reason();
    if !context.log_throttle.is_due(&failure_key(id.kind, reason)) {
        tracing::debug!(policy = id.to_string(), error = %failure, retry_in, "cannot write the status");
        return;
    }
    if let Failure::Unread(_) = failure {
        tracing::warn!(
            policy = id.to_string(),
            error = %failure,
            retry_in,
            "cannot read this CustomResourceDefinition, retrying; similar failures are not logged"
        );
    } else if reason == ErrorReason::Forbidden
        && let Some(object) = &id.kind.row().status_object
    {
        tracing::error!(
            policy = id.to_string(),
            error = %failure,
            "cannot write the conditions of {}: grant `create` and `delete` on `{}` and `patch` on its status \
             (vap-status.dev) by the ClusterRole {}, unless its CRD is being deleted",
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
            "the API server rejects the conditions of {}: install the CustomResourceDefinition {}.vap-status.dev of this version; \
             retrying until then",
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
            "cannot write the status, retrying; similar failures are not logged"
        );
    }
}

/// A number from 0 to 1 to spread retries with; it need not be hard to guess.
pub(crate) fn random() -> f64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let bits = RandomState::new().build_hasher().finish();
    f64::from(u16::try_from(bits & 0xffff).unwrap_or_default()) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn failure_key_has_kind_for_missing_permissions() {
        for reason in [ErrorReason::Forbidden, ErrorReason::Invalid] {
            let keys = SubjectKind::ALL.map(|kind| failure_key(kind, reason));
            assert_eq!(BTreeSet::from(keys).len(), SubjectKind::ALL.len());
        }
        // An API server that does not respond is one failure.
        for reason in [ErrorReason::Timeout, ErrorReason::Connection] {
            let keys = SubjectKind::ALL.map(|kind| failure_key(kind, reason));
            assert_eq!(BTreeSet::from(keys).len(), 1);
        }
    }
}
