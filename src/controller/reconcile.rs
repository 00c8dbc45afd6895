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
use crate::status::compute::Subject;
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

/// Brings the status of the policy `name` up to date.
pub(crate) async fn reconcile(context: &Arc<Context>, name: &str) -> Result<Reconciled, Failure> {
    let Some(mut entry) = context.store.get(name) else {
        if let Some(state) = context.opt_in.by_key(name) {
            return gone(context, state, name).await;
        }
        forget(context, name);
        context
            .metrics
            .set_missing_policy(name, probe_runner::names(context, name));
        context.probe_runner.add(name);
        return Ok(Reconciled {
            outcome: ReconcileOutcome::Deleted,
            retries_with_backoff: false,
        });
    };
    if let Some(state) = context.opt_in.by_key(name)
        && let Some(ended) = take_status(context, state, &mut entry).await?
    {
        return Ok(ended);
    }
    if let Some(excluded) = entry.excluded {
        context.kept.forget(name);
        return exclude::leave(context, &entry.policy, excluded).await;
    }
    let Some(facts) = observe(context, &entry, &context.snapshot()).await? else {
        // Schemas are on their way, which gives a sign.
        return Ok(Reconciled::unchanged());
    };
    if facts.is_reading_params() && is_told(&entry.policy) {
        // What was said of this generation stands until the params are known, which gives a sign.
        return Ok(Reconciled::unchanged());
    }
    let desired = desired(context, name, &facts);
    let probes = facts.probed().map(Probed::samples).unwrap_or_default();
    context
        .metrics
        .set_policy(name, sample(&facts, &desired, probes));
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
    if !context.write_limiter.may_write(name) {
        if context.log_throttle.is_due("write_limiter") {
            tracing::warn!(
                policy = name,
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
    tracing::info!(policy = name, ready = ready(&desired), "wrote the status");
    events::publish(context, &entry, &desired);
    match *written {
        Judged::Policy(written) => {
            // What was judged came by the watch; should it not be what is stored, that is judged next.
            let is_other = written.spec != entry.policy.spec;
            if context.store.put(written, EventSource::Answered) && is_other {
                context.queue.add(name);
            }
        }
        Judged::Object(written) => {
            if let Some(state) = context.opt_in.by_key(name) {
                state.put(written, EventSource::Answered);
            }
        }
    }
    Ok(Reconciled {
        outcome: ReconcileOutcome::Applied,
        retries_with_backoff: false,
    })
}

/// The status that the policy `name` should have, by what was observed.
fn desired(context: &Context, name: &str, facts: &Facts) -> DesiredStatus {
    let now = (context.now)();
    let mut observed = facts.observed(&context.settings.ready_requires);
    let desired = compute(&observed, now);
    if !(context.kept).lasts(name, desired.is_kept, Instant::now()) {
        return desired;
    }
    observed.staleness.is_kept_long = true;
    compute(&observed, now)
}

/// Forgets what is known of a policy beside the policy itself.
fn forget(context: &Context, key: &str) {
    context.admissions.forget(key);
    context.kept.forget(key);
    context.lanes.forget(key);
    context.params.forget(key, Referrer::Bindings);
    context.params.forget(key, Referrer::Probes);
}

/// Gives the policy `entry`, which is of a kind that has no status of ours, the status that its object holds; or the
/// outcome, where it is not judged.
async fn take_status(
    context: &Arc<Context>,
    state: &OptInState,
    entry: &mut Entry,
) -> Result<Option<Reconciled>, Failure> {
    let name = entry.key.as_str();
    if entry.excluded.is_some() {
        return gone(context, state, name).await.map(Some);
    }
    if !state.is_known() {
        // There is a sign when it is. Where there will be none, its probes say so.
        if state.obstacle().is_some() {
            context.metrics.remove_policy(name);
            context.probe_runner.add(name);
        }
        return Ok(Some(Reconciled::unchanged()));
    }
    if entry.subject() == Subject::Definition && !entry.has_rules() {
        match probe_runner::has_probes(context, name) {
            // Whether there is something to say is known when they are.
            None => return Ok(Some(Reconciled::unchanged())),
            Some(false) => return gone(context, state, name).await.map(Some),
            Some(true) => {}
        }
    }
    let object = state.object(name);
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
    key: &str,
) -> Result<Reconciled, Failure> {
    forget(context, key);
    context.metrics.remove_policy(key);
    // Its probes are told.
    context.probe_runner.add(key);
    let ended = |outcome| Reconciled {
        outcome,
        // The watch tells of what it is now; should it be late, it comes back after a pause.
        retries_with_backoff: outcome == ReconcileOutcome::Conflict,
    };
    let Some(object) = state.orphan(key) else {
        // Of a definition without rules there never was one.
        let outcome = if context.store.has(key) {
            ReconcileOutcome::Unchanged
        } else {
            ReconcileOutcome::Deleted
        };
        return Ok(ended(outcome));
    };
    let Some(deadline) = context.leadership.may_write() else {
        return Ok(ended(ReconcileOutcome::Observed));
    };
    let outcome = opt_in::delete(context, &deadline, (key, state), &object).await?;
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
        kind: facts.kind(),
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
            name = context.queue.next(), if has_room => {
                let context = Arc::clone(&context);
                tasks.spawn(async move { process(&context, &name).await });
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

/// Reconciles one name of the queue and gives it back.
async fn process(context: &Arc<Context>, name: &str) {
    let start = Instant::now();
    let done = AssertUnwindSafe(reconcile(context, name))
        .catch_unwind()
        .await;
    let seconds = start.elapsed().as_secs_f64();
    let outcome = match done {
        Ok(Ok(Reconciled {
            outcome,
            retries_with_backoff,
        })) => {
            if retries_with_backoff {
                context.queue.failed(name, random());
            } else {
                context.queue.done(name);
            }
            outcome
        }
        Ok(Err(failure)) => {
            context.metrics.reconcile_failed(failure.reason());
            let pause = context.queue.failed(name, random());
            complain(context, name, &failure, pause.as_secs_f64());
            ReconcileOutcome::Failed
        }
        Err(_) => {
            context.metrics.reconcile_failed(ErrorReason::Panic);
            context.queue.failed(name, random());
            tracing::error!(policy = name, "a reconciliation panicked; please report it");
            ReconcileOutcome::Failed
        }
    };
    tracing::debug!(
        policy = name,
        outcome = outcome.as_str(),
        seconds,
        "reconciled"
    );
    context.metrics.reconciled(outcome, seconds);
}

/// The key by which a failure is logged once a minute: policies mostly fail for one cause. Rights are given for each
/// kind that is followed, and a missing one is to be named for each.
fn failure_key(name: &str, reason: ErrorReason) -> String {
    match opt_in::of_key(name) {
        Some(followed) if matches!(reason, ErrorReason::Forbidden | ErrorReason::Invalid) => {
            format!("{} {}", reason.as_str(), followed.resource())
        }
        _ => reason.as_str().to_owned(),
    }
}

/// Says what went wrong, once a minute for all policies that fail for one cause.
fn complain(context: &Context, name: &str, failure: &Failure, retry_in: f64) {
    let reason = failure.reason();
    if !context.log_throttle.is_due(&failure_key(name, reason)) {
        tracing::debug!(policy = name, error = %failure, retry_in, "cannot write the status");
        return;
    }
    if let Failure::Unread(_) = failure {
        tracing::warn!(
            policy = name,
            error = %failure,
            retry_in,
            "cannot read this CustomResourceDefinition, retrying; similar failures are not logged"
        );
    } else if reason == ErrorReason::Forbidden
        && let Some(followed) = opt_in::of_key(name)
    {
        tracing::error!(
            policy = name,
            error = %failure,
            "cannot write the conditions of {}: grant `create` and `delete` on `{}` and `patch` on its status \
             (vap-status.dev) by the ClusterRole {}, unless its CRD is being deleted",
            followed.resource(),
            followed.row().objects.plural,
            followed.role()
        );
    } else if reason == ErrorReason::Invalid
        && let Some(followed) = opt_in::of_key(name)
    {
        tracing::error!(
            policy = name,
            error = %failure,
            retry_in,
            "the API server rejects the conditions of {}: install the CustomResourceDefinition {}.vap-status.dev of this version; \
             retrying until then",
            followed.resource(),
            followed.row().objects.plural
        );
    } else if reason == ErrorReason::Forbidden {
        tracing::error!(
            policy = name,
            error = %failure,
            "cannot write statuses: grant `patch` on `validatingadmissionpolicies/status` \
             (admissionregistration.k8s.io) in the ClusterRole vap-status-controller"
        );
    } else {
        tracing::warn!(
            policy = name,
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

    use super::opt_in::Followed;
    use super::*;

    #[test]
    fn a_missing_right_is_named_for_each_kind() {
        let forbidden = |name: &str| failure_key(name, ErrorReason::Forbidden);
        let mut keys: BTreeSet<String> = Followed::ALL
            .into_iter()
            .map(|followed| forbidden(&followed.key("a")))
            .collect();
        keys.insert(forbidden("a"));
        assert_eq!(keys.len(), Followed::ALL.len() + 1);
        let invalid = |name: &str| failure_key(name, ErrorReason::Invalid);
        let [one, other] = [
            Followed::MutatingAdmissionPolicies,
            Followed::CustomResourceDefinitions,
        ];
        assert_ne!(invalid(&one.key("a")), invalid(&other.key("a")));
        // An API server that does not answer is one failure.
        let of_kind = Followed::MutatingAdmissionPolicies.key("a");
        for reason in [ErrorReason::Timeout, ErrorReason::Connection] {
            assert_eq!(failure_key(&of_kind, reason), failure_key("a", reason));
        }
    }
}
