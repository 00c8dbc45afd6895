//! State of the probes of all policies: inputs, results, the evaluation queues, and limits.

mod access_limiter;
mod inputs;
mod namespaces;
mod results;
mod slots;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

pub(crate) use self::access_limiter::{AccessLimiter, BURST_OF_POLICY};
pub(crate) use self::inputs::{About, Inputs};
pub(crate) use self::namespaces::{Given, Namespaces, Version, needed};
pub(crate) use self::results::{Probed, name_of};
pub(crate) use self::slots::{EvaluationSlot, EvaluationSlots, Lane};
use crate::controller::process::memory::{self, Charge, Meter};
use crate::controller::process::queue::Queue;
use crate::policy::subject::SubjectId;

/// How long a reconciliation waits for the results of probes before it continues without them.
const PATIENCE: Duration = Duration::from_secs(1);

/// The maximum number of reconciliations that wait for results at the same time. Further reconciliations do not wait,
/// so that policies without probes are not delayed.
const MAX_PATIENT: usize = 8;

/// State of the probes of all policies, with the queues of policies whose probes must be evaluated.
#[derive(Debug)]
pub(crate) struct ProbeRunner {
    /// The queue of policies whose probes are quick or were never evaluated.
    pub(crate) quick: Queue,
    /// The queue of policies with slow probes.
    pub(crate) slow: Queue,
    known: Mutex<HashMap<SubjectId, Known>>,
    /// Notified when the probes of a policy have been evaluated.
    finished: Notify,
    patience: Semaphore,
    pub(crate) slots: EvaluationSlots,
    pub(crate) namespaces: Namespaces,
    pub(crate) access_limiter: AccessLimiter,
    /// The memory of all results, in bytes.
    pub(crate) results: Meter,
}

impl Default for ProbeRunner {
    fn default() -> Self {
        Self {
            quick: Queue::default(),
            slow: Queue::default(),
            known: Mutex::default(),
            finished: Notify::default(),
            patience: Semaphore::new(MAX_PATIENT),
            slots: EvaluationSlots::default(),
            namespaces: Namespaces::default(),
            access_limiter: AccessLimiter::default(),
            results: Meter::default(),
        }
    }
}

/// State of the probes of one policy.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) outcome: Option<Arc<Finished>>,
    /// The inputs for whose results a reconciliation is waiting. `None` if no reconciliation is waiting.
    pub(crate) awaited: Option<Inputs>,
    /// True if the probes exceed the time limit for quick evaluations.
    pub(crate) is_slow: bool,
    /// True if the probes must be evaluated again although their inputs are unchanged.
    pub(crate) is_due: bool,
}

/// The results of a policy's probes, with the inputs that determined them.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) inputs: Inputs,
    pub(crate) probed: Probed,
    pub(crate) at: Instant,
    /// The namespaces on which the results depend.
    pub(crate) namespaces: BTreeMap<String, Version>,
    /// True if the results depend on permission checks.
    pub(crate) has_asked: bool,
    /// True if the limits of time or memory prevented the evaluation of a case.
    pub(crate) is_late: bool,
    /// The time for reading inputs and for the evaluation. Waiting for a thread is not included.
    pub(crate) took: Duration,
    /// The memory of the results, counted in [`ProbeRunner::results`].
    pub(crate) charge: Option<Charge>,
}

impl ProbeRunner {
    /// Queues the probes of a policy.
    pub(crate) fn add(&self, policy: &SubjectId) {
        let is_slow = self.is_slow(policy);
        let lane = if is_slow { Lane::Slow } else { Lane::Quick };
        self.queue(lane).add(policy);
    }

    pub(crate) fn is_slow(&self, policy: &SubjectId) -> bool {
        let runs = self.lock();
        runs.get(policy).is_some_and(|probe_run| probe_run.is_slow)
    }

    pub(crate) fn queue(&self, lane: Lane) -> &Queue {
        match lane {
            Lane::Quick => &self.quick,
            Lane::Slow => &self.slow,
        }
    }

    /// Returns the number of policies whose probes are queued or being evaluated.
    pub(crate) fn n_unfinished(&self) -> usize {
        self.quick.n_unfinished() + self.slow.n_unfinished()
    }

    /// Queues the probes of a policy. They are evaluated even if their inputs are unchanged.
    pub(crate) fn renew(&self, policy: &SubjectId) {
        if let Some(known) = self.lock().get_mut(policy) {
            known.is_due = true;
        }
        self.add(policy);
    }

    /// Returns the results for exactly these inputs. `None` if there are none.
    pub(crate) fn current(&self, policy: &SubjectId, inputs: &Inputs) -> Option<Arc<Finished>> {
        let runs = self.lock();
        let outcome = runs.get(policy)?.outcome.as_ref()?;
        (outcome.inputs == *inputs).then(|| Arc::clone(outcome))
    }

    /// Returns the latest results if they are for the generations of the policy and its probes in `inputs`. Other
    /// inputs may differ.
    pub(crate) fn latest(&self, policy: &SubjectId, inputs: &Inputs) -> Option<Arc<Finished>> {
        let runs = self.lock();
        let outcome = runs.get(policy)?.outcome.as_ref()?;
        (outcome.inputs.about == inputs.about).then(|| Arc::clone(outcome))
    }

    pub(crate) fn forget(&self, policy: &SubjectId) {
        self.lock().remove(policy);
    }

    /// Waits up to [`PATIENCE`] for the results of these inputs. Returns immediately if the probes are slow, or if too
    /// many reconciliations wait.
    pub(crate) async fn wait(&self, policy: &SubjectId, inputs: &Inputs) {
        if self.is_slow(policy) {
            return;
        }
        let Ok(_patience) = self.patience.try_acquire() else {
            return;
        };
        let waiting = Waiting::new(self, policy, inputs);
        let finished = async {
            loop {
                let mut finished = std::pin::pin!(self.finished.notified());
                finished.as_mut().enable();
                if self.current(policy, inputs).is_some() {
                    return;
                }
                finished.await;
            }
        };
        drop(tokio::time::timeout(PATIENCE, finished).await);
        drop(waiting);
    }

    /// Stores results. Returns true if the policy must be reconciled again because of them.
    pub(crate) fn finish(&self, policy: &SubjectId, mut finished: Finished) -> bool {
        let mut n_bytes = finished.probed.n_bytes();
        if self.results.in_use() + n_bytes > memory::MAX_RESULTS {
            finished.probed = finished.probed.shortened();
            n_bytes = finished.probed.n_bytes();
        }
        finished.charge = Some(self.results.charge(n_bytes));
        let mut runs = self.lock();
        let probe_run = runs.entry(policy.clone()).or_default();
        let is_same = probe_run.outcome.as_ref().is_some_and(|before| {
            before.inputs.about == finished.inputs.about
                && before.probed.state() == finished.probed.state()
        });
        let is_awaited = probe_run.awaited.as_ref() == Some(&finished.inputs);
        probe_run.is_due = finished.probed.is_transient;
        probe_run.outcome = Some(Arc::new(finished));
        self.finished.notify_waiters();
        !is_same && !is_awaited
    }

    #[expect(
        clippy::iter_over_hash_type,
        reason = "the callers sort the collected data"
    )]
    pub(crate) fn for_each_outcome(&self, mut see: impl FnMut(&SubjectId, &Finished)) {
        for (policy, known) in &*self.lock() {
            if let Some(outcome) = &known.outcome {
                see(policy, outcome);
            }
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<SubjectId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets [`Known::awaited`] while a reconciliation waits for results. Dropping this value resets the field.
struct Waiting<'a> {
    probe_runner: &'a ProbeRunner,
    policy: &'a SubjectId,
}

impl<'a> Waiting<'a> {
    fn new(probe_runner: &'a ProbeRunner, policy: &'a SubjectId, inputs: &Inputs) -> Self {
        let mut runs = probe_runner.lock();
        runs.entry(policy.clone()).or_default().awaited = Some(inputs.clone());
        drop(runs);
        Self {
            probe_runner,
            policy,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.probe_runner.lock().get_mut(self.policy) {
            known.awaited = None;
        }
    }
}
