//! Evaluates probes in a separate queue, independently of the reconciliation of policies.
//!
//! A policy is reconciled with the last results of its probes. If the inputs of the probes have changed since then, the
//! policy is added to the queue of this module. There, the inputs are fetched, and the cases are evaluated. The results
//! are stored, and written to the statuses of the probes. Then the policy is reconciled again.
//!
//! Failures to evaluate probes or to write their statuses affect only the condition `ProbesPassed` of the policy.

mod authorization;
mod evaluate;
mod inputs;
mod rights;
pub(crate) mod stale;
mod statuses;
mod target;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::evaluate::{Evaluated, Task, evaluate};
use self::inputs::{collect, read_params};
use self::rights::Rights;
use self::target::Missing;
use super::context::Context;
use super::probes::{Finished, Given, Inputs, Lane, Probed, name_of};
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::controller::process::supervisor::WORK_LIMIT;
use crate::controller::subjects::probe::Probe;
use crate::controller::subjects::store::Entry;
use crate::policy::subject::SubjectId;
use crate::status::probes::ProbesState;
use crate::telemetry::metrics::Source;

/// The maximum age of a cached namespace. The periodic resync reads namespaces more often.
const MAX_NAMESPACE_AGE: Duration = Duration::from_secs(90);

/// Returns the names of a policy's probes. Empty if the probes are unknown.
pub(crate) fn names(context: &Context, policy: &SubjectId) -> Vec<String> {
    let probes = probes_of(context, policy).unwrap_or_default();
    probes
        .iter()
        // Probes with the field `target` are omitted. If their target is missing, only their own statuses report this.
        .filter(|probe| probe.spec.target.is_none())
        .map(|probe| name_of(probe).to_owned())
        .collect()
}

/// Returns true if a policy has probes. `None` if the probes are unknown.
pub(crate) fn has_probes(context: &Context, policy: &SubjectId) -> Option<bool> {
    let probes = probes_of(context, policy).ok()?;
    Some(!probes.is_empty())
}

fn probes_of(context: &Context, policy: &SubjectId) -> Result<Vec<Arc<Probe>>, ProbesState> {
    match context.readiness.rejection(Source::Probes) {
        Some(text) => Err(ProbesState::NotPermitted(text)),
        None => context.probes.for_policy(policy).ok_or(ProbesState::Unread),
    }
}

/// Returns the results of the probes of the policy `entry`.
///
/// If the results are outdated, queues the probes and waits briefly for new results. The policy is queued again when
/// there are new results. If the status of a probe is outdated, queues the probes too.
///
/// # Errors
/// Returns the reason why the probes are unknown.
pub(crate) async fn run_probes(
    context: &Arc<Context>,
    entry: &Entry,
    snapshot: &ClusterSnapshot,
) -> Result<Probed, ProbesState> {
    let id = &entry.id;
    let probe_runner = &context.probe_runner;
    let probes = probes_of(context, id)?;
    let groups = probes.iter().flat_map(|probe| probe.spec.groups.iter());
    let groups = groups.cloned().collect();
    context.store.note_probe_groups(id, groups);
    if probes.is_empty() {
        context.admissions.forget(id);
        probe_runner.forget(id);
        return Ok(Probed::default());
    }
    let inputs = collect(context, entry, &probes, snapshot);
    if let Some(outcome) = probe_runner.current(id, &inputs) {
        let generation = Some(entry.object_generation());
        let now = (context.now)();
        if !statuses::behind(context, id, &outcome.probed, generation, now).is_empty() {
            probe_runner.add(id);
        }
        return Ok(outcome.probed.clone());
    }
    probe_runner.add(id);
    probe_runner.wait(id, &inputs).await;
    // Until there are new results, the latest results for the current generations are used, although their inputs are
    // older.
    Ok(match probe_runner.latest(id, &inputs) {
        Some(outcome) => outcome.probed.clone(),
        None => Probed::pending(&probes, "it is not evaluated yet", true),
    })
}

/// Processes both queues of probes. Never returns.
pub(crate) async fn work(context: Arc<Context>) {
    context.started().await;
    tokio::join!(
        work_lane(&context, Lane::Quick),
        work_lane(&context, Lane::Slow)
    );
}

async fn work_lane(context: &Arc<Context>, lane: Lane) {
    let mut tasks = JoinSet::new();
    let heartbeat = context.supervisor.heartbeat(lane.name(), WORK_LIMIT);
    let mut idle = tokio::time::interval(WORK_LIMIT / 10);
    loop {
        let has_room = tasks.len() < lane.concurrency();
        tokio::select! {
            biased;
            Some(_) = tasks.join_next() => heartbeat.beat(),
            _ = idle.tick(), if tasks.is_empty() => heartbeat.beat(),
            id = context.probe_runner.queue(lane).next(), if has_room => {
                let context = Arc::clone(context);
                tasks.spawn(async move { process(&context, &id, lane).await });
            }
        }
    }
}

async fn process(context: &Arc<Context>, id: &SubjectId, lane: Lane) {
    let looked = AssertUnwindSafe(look(context, id, lane))
        .catch_unwind()
        .await;
    let is_waiting = looked.unwrap_or_else(|_| {
        context.metrics.check_panicked();
        tracing::error!(
            policy = id.to_string(),
            "running the probes of this policy panicked, which is a bug; please report it"
        );
        true
    });
    let queue = context.probe_runner.queue(lane);
    if is_waiting {
        queue.failed(id, crate::controller::process::queue::random());
    } else {
        queue.done(id);
    }
}

/// Evaluates the probes of a policy if their results are outdated, and writes the results. Returns true if the call
/// must be repeated after a backoff.
async fn look(context: &Arc<Context>, id: &SubjectId, lane: Lane) -> bool {
    let probe_runner = &context.probe_runner;
    // The policy's status reports why the probes are unknown. When they become known, the policy is queued again.
    let Ok(probes) = probes_of(context, id) else {
        return false;
    };
    let state = context.opt_in.state(id.kind);
    // If an opt-in kind cannot be watched, its subjects count as missing. This includes CRDs, although CRDs are always
    // stored.
    let is_followed = state.is_none_or(|state| state.obstacle().is_none());
    let entry = context.store.get(id).filter(|_| is_followed);
    let Some(entry) = entry else {
        return match target::missing(context, id, &probes) {
            Missing::Unknown => false,
            Missing::Absent(why) => not_evaluated(context, id, probes, &why, None).await,
            Missing::NotFollowed(why) => {
                let probes = probes
                    .iter()
                    .map(|probe| probe.with_problem(&why))
                    .collect();
                not_evaluated(context, id, probes, &why, None).await
            }
        };
    };
    if state.is_some_and(|state| !state.is_known()) {
        // The policy is queued again when its kind is listed.
        return false;
    }
    if entry.excluded.is_some() {
        let why = "vap-status-controller is configured to exclude the policy";
        let generation = Some(entry.object_generation());
        return not_evaluated(context, id, probes, why, generation).await;
    }
    if probes.is_empty() {
        probe_runner.forget(id);
        return false;
    }
    let snapshot = context.snapshot();
    let inputs = collect(context, &entry, &probes, &snapshot);
    let is_due = {
        let mut runs = probe_runner.lock();
        let probe_run = runs.entry(id.clone()).or_default();
        std::mem::take(&mut probe_run.is_due)
    };
    let cached = probe_runner.current(id, &inputs).filter(|_| !is_due);
    let outcome = match cached {
        Some(outcome) => outcome,
        None => {
            let finished = run(context, &entry, probes, &snapshot, inputs.clone(), lane).await;
            if finished.is_late && lane == Lane::Quick {
                let mut runs = probe_runner.lock();
                let probe_run = runs.entry(id.clone()).or_default();
                probe_run.is_slow = true;
                probe_run.is_due = true;
                probe_runner.slow.add(id);
                return false;
            }
            let is_slow = finished.took >= probe_runner.slots.quick.limit;
            if probe_runner.finish(id, finished) {
                context.queue.add(id);
            }
            let Some(cached) = probe_runner.lock().get_mut(id).map(|probe_run| {
                probe_run.is_slow = is_slow;
                probe_run.outcome.clone()
            }) else {
                return false;
            };
            let Some(outcome) = cached else { return false };
            outcome
        }
    };
    let is_transient = outcome.probed.is_transient;
    // Results for an older generation of the policy are not written.
    let is_same_generation = |entry: &Entry| entry.generation() == outcome.inputs.about.policy;
    let Some(live) = context.store.get(id).filter(is_same_generation) else {
        return is_transient;
    };
    let generation = Some(live.object_generation());
    statuses::write(context, id, &outcome.probed, generation).await || is_transient
}

async fn run(
    context: &Arc<Context>,
    entry: &Entry,
    probes: Vec<Arc<Probe>>,
    snapshot: &ClusterSnapshot,
    inputs: Inputs,
    lane: Lane,
) -> Finished {
    let param_kind = entry.subject.param_kind();
    let probe_runner = &context.probe_runner;
    let place = probe_runner.slots.get(lane);
    let of_probe = |probe: &Arc<Probe>| Rights::new(entry, inputs.bindings(), &probe.spec);
    let rights: Vec<Rights> = probes.iter().map(of_probe).collect();
    let needed = rights.iter().flat_map(Rights::allowed_namespaces).cloned();
    let needed = needed.collect();
    let definitions = target::definition_names(entry, &probes, snapshot);
    // The JSON of params and definitions stays in memory until the evaluation, so the number of objects is limited.
    let n_texts = inputs.n_params() + definitions.as_ref().map_or(0, BTreeSet::len);
    let _texts = place.reserve_texts(n_texts).await;
    let begin = Instant::now();
    let (params, definitions, definition, namespaces) = tokio::join!(
        read_params(&inputs, context, param_kind.as_ref(), snapshot),
        target::definitions(context, definitions),
        target::definition(context, entry),
        Given::read(
            &probe_runner.namespaces,
            &context.client,
            needed,
            MAX_NAMESPACE_AGE
        )
    );
    let versions = namespaces.versions();
    let fetching = begin.elapsed();
    let subject = Task {
        entry: entry.clone(),
        definitions,
        definition,
        probes: probes.clone(),
        rights,
        bindings: inputs.ready_bindings(),
        params,
        namespaces,
        mapper: Arc::clone(&snapshot.mapper),
        schemas: inputs.schemas().clone(),
    };
    let Evaluated {
        cases,
        is_transient,
        is_late,
        has_asked,
        took,
    } = evaluate(context, subject, place).await;
    Finished {
        inputs,
        probed: Probed::new(&probes, &cases, is_transient),
        at: Instant::now(),
        namespaces: versions,
        has_asked,
        is_late,
        took: fetching + took,
        charge: None,
    }
}

/// Sets the statuses of `probes` to pending, with the reason `why`. Returns true if a write must be retried.
async fn not_evaluated(
    context: &Context,
    id: &SubjectId,
    probes: Vec<Arc<Probe>>,
    why: &str,
    generation: Option<i64>,
) -> bool {
    context.probe_runner.forget(id);
    context.admissions.forget(id);
    let probed = Probed::pending(&probes, why, false);
    statuses::write(context, id, &probed, generation).await
}

#[cfg(test)]
mod tests;
